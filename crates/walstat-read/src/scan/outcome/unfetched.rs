//! Problems of a `.partial` that is newer than all segments. No server asks for one, so a restore ends before
//! it, whatever it holds.

use super::Outcome;
use crate::input::names::Standing;
use crate::input::plan::Chain;
use crate::input::problem::{Elsewhere, Problem};
use crate::input::segment::Segment;
use walstat_format::lsn::Lsn;

impl<O> Outcome<O> {
    /// Sets them aside: they are no problems of the archive.
    pub(crate) fn set_unfetched_aside(&mut self, chain: &Chain<'_>) {
        let unfetched = unfetched(chain);
        let Some(first) = unfetched.first() else { return };
        let begin = chain.span(first).start;
        for problem in &mut self.problems {
            if let (Some(Elsewhere::GoesOn { to, .. }), Some(at)) = (problem.elsewhere, problem.lsn)
                && (at < begin && to > begin)
            {
                // A server does not come to the end of this record.
                problem.segment = first.file();
                problem.lsn = Some(begin);
                problem.elsewhere = Some(Elsewhere::Begins { at, may_be_wrong: true });
            }
        }
        let is_of_one = |problem: &mut Problem| {
            unfetched.iter().any(|segment| segment.file() == problem.segment)
        };
        self.unfetched.extend(self.problems.extract_if(.., is_of_one));
    }
}

/// The files after the last segment that a server asks for, if there is one.
fn unfetched<'c>(chain: &Chain<'c>) -> &'c [Segment] {
    let is_partial = |segment: &Segment| segment.standing == Standing::Partial;
    let last = chain.segments.iter().rposition(|segment| !is_partial(segment));
    last.and_then(|last| chain.segments.get(last + 1..)).unwrap_or_default()
}

/// The name of the file in which `lsn` lies: of a `.partial` with that.
pub(super) fn file_at(chain: &Chain<'_>, lsn: Lsn) -> String {
    let own = chain.segment_at(lsn).filter(|segment| segment.standing == Standing::Partial);
    own.map_or_else(|| chain.segment_name(lsn), Segment::file)
}
