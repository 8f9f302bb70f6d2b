//! Files that come to a server in another size than a segment's, which ends it (`RestoreArchivedFile` in
//! `src/backend/access/transam/xlogarchive.c`). On a packed file that is damaged, a tool fails; of one that
//! is sound it makes whatever was packed.

use super::Wal;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Elsewhere, Fetched, Problem, ProblemKind};
use walstat_read::input::segment::Segment;

/// Such a file, which a server fetches where replay ends.
#[derive(Debug)]
pub(crate) struct WrongSize<'w> {
    file: String,
    /// For what replay ends.
    problem: &'w Problem,
    /// That is told of this file.
    is_its_own: bool,
}

/// The file of wrong size that a server meets where replay ends for `problem`: its own, or one in which the
/// record goes on.
pub(crate) fn wrong_size<'w>(problem: &'w Problem, wal: &Wal<'_>) -> Option<WrongSize<'w>> {
    let own = file_of(problem, wal.plan);
    if is_of_wrong_size(&own, wal) {
        return Some(WrongSize { file: own, problem, is_its_own: true });
    }
    let Some(Elsewhere::GoesOn { to, .. }) = problem.elsewhere else { return None };
    let begins = |segment: &&Segment| wal.plan.chain().span(segment).start;
    let later = wal.plan.segments.iter();
    let later = later.filter(|segment| problem.lsn < Some(begins(segment)) && begins(segment) < to);
    let file = later.map(Segment::file).find(|file| is_of_wrong_size(file, wal))?;
    Some(WrongSize { file, problem, is_its_own: false })
}

fn is_of_wrong_size(name: &str, wal: &Wal<'_>) -> bool {
    let bytes = u64::from(wal.plan.geometry.segment_bytes);
    let is_of_size = |it: &Problem| match it.fetched {
        Some(fetched) => fetched == Fetched::InAnotherSize,
        None => it.kind == ProblemKind::TrailingBytes,
    };
    // It is in no plan.
    let is_no_wal = |it: &Problem| it.kind == ProblemKind::NotWal && it.segment == name;
    if wal.problems.iter().any(|it| is_no_wal(it) && is_of_size(it)) {
        return true;
    }
    let comes_so = wal.problems.iter().any(|it| is_of_size(it) && file_of(it, wal.plan) == name);
    let mut files = wal.plan.files.values().flatten().filter(|file| file.file() == name);
    files.any(|file| {
        let is_so = match file.raw_bytes {
            // The tool fails.
            Some(_) if file.is_to_be_unpacked() => file.is_unpacked_to_nothing(),
            Some(found) => found != bytes,
            None => comes_so,
        };
        file.is_asked_for() && is_so
    })
}

/// The file that a problem is of: where its place tells, the one that was read there.
fn file_of(problem: &Problem, plan: &Plan) -> String {
    let is_of_place = |segment: &&Segment| {
        let name = SegmentName::parse(&problem.segment);
        let bytes = plan.geometry.segment_bytes;
        name == Some(SegmentName::new(segment.timeline, segment.number, bytes))
    };
    let read = problem.lsn.and_then(|lsn| plan.chain().segment_at(lsn)).filter(is_of_place);
    read.map_or_else(|| problem.segment.clone(), Segment::file)
}

impl WrongSize<'_> {
    /// Whether it is the file that the problem is told of.
    pub(super) fn is_its_own(&self) -> bool {
        self.is_its_own
    }

    /// What has to be done before replay comes to its limit.
    pub(crate) fn at_the_limit(&self) -> String {
        let file = if self.is_its_own { "that file" } else { &self.file };
        format!(", once {file} is gone: a server ends with FATAL at its wrong size")
    }

    /// Why a backup from which replay meets it is not restored to the end.
    pub(crate) fn why_not(&self, reaches: Lsn) -> String {
        let (kind, file) = (self.problem.kind, &self.file);
        let what = if self.is_its_own {
            format!("{kind} in {}", self.problem.segment)
        } else {
            format!("{file}, in which a broken record goes on")
        };
        format!(
            "not restorable: {what}: a server ends with FATAL at its wrong size; once that file is gone, \
             restorable to LSN {reaches} only"
        )
    }
}
