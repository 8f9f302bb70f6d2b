//! Problems of a `.partial`. No server asks for one, so a restore ends before it, whatever it holds: of one
//! before other segments it is told that the segment is missing, and one after all is what comes next.

use super::Outcome;
use crate::input::names::Standing;
use crate::input::plan::Chain;
use crate::input::problem::{Elsewhere, Problem};
use crate::input::segment::Segment;
use std::collections::BTreeSet;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

impl<O> Outcome<O> {
    /// Sets them aside: they are no problems of the archive.
    pub(crate) fn set_unfetched_aside(&mut self, chain: &Chain<'_>) {
        let Some(last) = chain.segments.iter().rposition(|segment| !is_partial(segment)) else {
            return;
        };
        if let Some(first) = chain.segments.get(last + 1) {
            self.blame_after_all(first, chain.span(first).start);
        }
        let partials = chain.segments.iter().filter(|segment| is_partial(segment));
        let partials: BTreeSet<String> = partials.map(Segment::file).collect_set();
        let is_of_one = |problem: &mut Problem| partials.contains(&problem.segment);
        self.unfetched.extend(self.problems.extract_if(.., is_of_one));
    }

    /// Blames the first file after all segments, which begins at `begin`, where a record goes on in it: a
    /// server does not come to the end of that record.
    fn blame_after_all(&mut self, first: &Segment, begin: Lsn) {
        for problem in &mut self.problems {
            if let (Some(Elsewhere::GoesOn { to, .. }), Some(at)) = (problem.elsewhere, problem.lsn)
                && (at < begin && to > begin)
            {
                problem.segment = first.file();
                problem.lsn = Some(begin);
                problem.elsewhere = Some(Elsewhere::Begins { at, may_be_wrong: true });
            }
        }
    }
}

fn is_partial(segment: &Segment) -> bool {
    segment.standing == Standing::Partial
}

/// The name of the file in which `lsn` lies: of a `.partial` with that.
pub(super) fn file_at(chain: &Chain<'_>, lsn: Lsn) -> String {
    let own = chain.segment_at(lsn).filter(|segment| is_partial(segment));
    own.map_or_else(|| chain.segment_name(lsn), Segment::file)
}
