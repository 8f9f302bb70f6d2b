//! The same segment more than once: raw and compressed, whole and partial, from two servers. It is
//! counted once. Where copies have other bytes, each is read after the segment before it, and one
//! without damage is counted.

use super::around::Around;
use super::outcome::Outcome;
use super::timeline_switches::TimelineSwitches;
use super::verify::Verifier;
use crate::input::digest::Digest;
use crate::input::layout::is_behind;
use crate::input::names::compression_suffix;
use crate::input::placing::Key;
use crate::input::plan::Plan;
use crate::input::problem::{Fetched, Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::timeline::Lineage;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use walstat_format::lsn::Lsn;

/// What was found in a copy, read after the segment before it.
struct Judged {
    segment: Segment,
    /// What is wrong in it.
    problems: Vec<Problem>,
    /// Whether records fill it to its end.
    whole: bool,
    /// Whether the next segment lies beside it, so that nobody goes on writing it.
    is_finished: bool,
    /// How far valid records go.
    reach: Lsn,
    /// Sum over its records. Where sums are equal, copies differ only in bytes that no server reads:
    /// padding, and what follows an `XLOG_SWITCH`.
    records: u64,
}

/// Puts the best copy of each segment first, books the others as duplicates, and reports those of them
/// that are damaged.
pub(super) fn resolve(plan: &mut Plan, verifier: &Verifier<'_>) {
    let several = plan.files.iter().filter(|(_, files)| files.len() > 1);
    let keys: Vec<Key> = several.map(|(key, _)| *key).collect();
    for key in keys {
        let files = plan.files.get(&key).cloned().unwrap_or_default();
        let digests: Vec<Option<Digest>> = files.iter().map(|file| verifier.digest(file)).collect();
        let best = best(plan, key, &files, &digests, verifier);
        plan.duplicate_bytes += duplicate_bytes(plan, key, &digests, best, verifier);
        if let Some(files) = plan.files.get_mut(&key) {
            files.swap(0, best);
        }
    }
    plan.choose();
}

/// The bytes of all copies but the best one, in the range.
fn duplicate_bytes(
    plan: &Plan,
    (timeline, number): Key,
    digests: &[Option<Digest>],
    best: usize,
    verifier: &Verifier<'_>,
) -> u64 {
    if plan.lineage.of_file(number, plan.geometry.segment_bytes) != timeline {
        return 0;
    }
    let segment = u64::from(plan.geometry.segment_bytes);
    let start = number * segment;
    let others = digests.iter().enumerate().filter(|(index, _)| *index != best);
    let bytes = others.filter_map(|(_, digest)| Some(digest.as_ref()?.bytes.min(segment)));
    bytes.map(|bytes| verifier.scope.clip(Lsn(start), Lsn(start + bytes))).sum()
}

/// The index of the copy to be counted. Problems of the other copies are reported.
fn best<'d>(
    plan: &mut Plan,
    key: Key,
    files: &'d [Segment],
    digests: &'d [Option<Digest>],
    verifier: &Verifier<'_>,
) -> usize {
    let standing = files.first().map(|file| file.standing);
    let rivals = files.iter().zip(digests).enumerate();
    let rivals = rivals.filter(|(_, (file, _))| Some(file.standing) == standing);
    // Of equal copies only the preferred one. Copies whose names have different SHA-1s are not equal.
    let mut known: BTreeSet<(&Digest, &Option<Arc<str>>)> = BTreeSet::new();
    let mut is_new = |file, digest: &'d Option<Digest>| {
        let sound = digest.as_ref().filter(|digest| digest.whole);
        sound.is_none_or(|digest| known.insert((digest, file)))
    };
    let distinct = rivals.filter(|(_, (file, digest))| is_new(&file.sha1, digest));
    let distinct: Vec<usize> = distinct.map(|(index, _)| index).collect();
    if distinct.len() < 2 || verifier.scope.limit.is_some() {
        return 0;
    }
    let lineage = plan.lineage_of(key.0).cloned().unwrap_or_default();
    let judged: Vec<(usize, Judged)> = distinct
        .iter()
        .filter_map(|&index| {
            let file = files.get(index)?.clone();
            Some((index, judge(plan, file, &lineage, verifier)))
        })
        .collect();
    let order = |(index, copy): &&(usize, Judged)| {
        (!copy.problems.is_empty(), !copy.whole, std::cmp::Reverse(copy.reach), *index)
    };
    let Some((chosen, best)) = judged.iter().min_by_key(order) else { return 0 };
    // A server removes segments that lie elsewhere, too.
    let others =
        judged.iter().filter(|(index, copy)| index != chosen && !copy.segment.source.is_gone());
    let (packed, others): (Vec<_>, Vec<_>) =
        others.partition(|(_, copy)| is_being_packed(plan, copy, best));
    let told = others.into_iter().flat_map(|(_, other)| problems_of_copy(other, best));
    plan.problems.extend(told.collect::<Vec<Problem>>());
    plan.notes.extend(packed.into_iter().map(|(_, copy)| {
        let (file, whole) = (copy.segment.file(), best.segment.file());
        format!(
            "{file}: it ends in its middle, as while it is being packed: restore_command has to take {whole}"
        )
    }));
    *chosen
}

/// Whether a copy is what a tool has packed so far of the file beside it, which it removes at its end; or was
/// interrupted. Where the next segment is there packed alone, `restore_command` takes packed ones.
fn is_being_packed(plan: &Plan, copy: &Judged, best: &Judged) -> bool {
    let is_packed = |segment: &Segment| compression_suffix(&segment.file()).is_some();
    let parent = |segment: &Segment| segment.source.path().parent().map(Path::to_owned);
    // Not the whole stream of a file that was too short.
    let is_cut = |problem: &Problem| {
        let is_short =
            problem.fetched == Some(Fetched::InAnotherSize) && copy.segment.raw_bytes != Some(0);
        problem.kind == ProblemKind::Truncated && !is_short
    };
    let next = (best.segment.timeline, best.segment.number.saturating_add(1));
    let mut next = plan.files.get(&next).into_iter().flatten();
    is_packed(&copy.segment)
        && !is_packed(&best.segment)
        && parent(&copy.segment) == parent(&best.segment)
        && best.whole
        && best.problems.is_empty()
        && !copy.problems.is_empty()
        && copy.problems.iter().all(is_cut)
        && (next.clone().next().is_none() || next.any(|next| !is_packed(next)))
}

/// Reads a copy after the segments before it in which the record lies that goes on in it; if it is full, with
/// those after it too, into which its last record may go on.
fn judge(plan: &Plan, segment: Segment, lineage: &Lineage, verifier: &Verifier<'_>) -> Judged {
    let around = Around { plan, lineage };
    let range = plan.chain().span(&segment);
    let mut chain = around.before(segment.number);
    chain.push(segment.clone());
    let alone = verifier.read_in(plan, &chain, lineage);
    let mut problems = problems_in(&alone, &segment, &range);
    let whole = alone.whole_to >= range.end;
    if whole && problems.is_empty() {
        problems = fewest(around.after(segment.number).into_iter().map(|after| {
            let chain: Vec<Segment> = chain.iter().cloned().chain(after).collect();
            problems_in(&verifier.read_in(plan, &chain, lineage), &segment, &range)
        }));
    }
    let last = alone.last;
    Judged {
        problems,
        whole,
        is_finished: is_finished(plan, &segment),
        reach: last.map_or(range.start, |last| last.next.min(range.end)),
        records: alone.observer.sum(),
        segment,
    }
}

/// Whether the next segment of its timeline lies in a segment's directory, and was written: one that was
/// only made ready has an old address. Of copies of a `pg_wal`; an archiver's groups are archives, where
/// nothing may be unfinished.
fn is_finished(plan: &Plan, segment: &Segment) -> bool {
    let next = segment.number.saturating_add(1);
    let begin = Lsn(next.saturating_mul(u64::from(plan.geometry.segment_bytes)));
    let directory = segment.source.path().parent();
    plan.files.get(&(segment.timeline, next)).into_iter().flatten().any(|file| {
        file.source.path().parent() == directory
            && file.first_page.as_ref().is_ok_and(|page| page.header.address == begin)
    })
}

/// The shortest list; stops at an empty one.
fn fewest(mut lists: impl Iterator<Item = Vec<Problem>>) -> Vec<Problem> {
    let mut fewest = lists.next().unwrap_or_default();
    while !fewest.is_empty()
        && let Some(list) = lists.next()
    {
        if list.len() < fewest.len() {
            fewest = list;
        }
    }
    fewest
}

/// The problems that lie in a segment.
fn problems_in(
    outcome: &Outcome<TimelineSwitches>,
    segment: &Segment,
    range: &Range<Lsn>,
) -> Vec<Problem> {
    // A setting in the WAL says nothing of this copy against another.
    let inside = |problem: &&Problem| match problem.lsn {
        _ if problem.kind == ProblemKind::WalLevel => false,
        Some(lsn) => {
            let reaches = problem.skipped().is_some_and(|skipped| skipped.end > range.start);
            lsn < range.end && (lsn >= range.start || reaches)
        }
        None => problem.segment == segment.file(),
    };
    outcome.problems.iter().filter(inside).cloned().collect()
}

/// Problems of a copy that is not counted; they name both paths.
fn problems_of_copy(copy: &Judged, best: &Judged) -> Vec<Problem> {
    let (path, counted) = (copy.segment.source.path(), best.segment.source.path());
    let directory = counted.parent();
    let is_below = path.parent() != directory
        && directory.is_some_and(|directory| path.starts_with(directory));
    let is_passed_over = is_below || is_behind(path, counted);
    let differs = |lsn: Option<Lsn>, kind: ProblemKind, found: &str| {
        let expected = format!("the bytes of {}", counted.display());
        let found = format!("{}: {found}", path.display());
        let problem = Problem::of_file(kind, &copy.segment.file(), expected, found);
        Problem { lsn, fetched: is_passed_over.then_some(Fetched::Another), ..problem }
    };
    if !copy.segment.claims_whole_segment() {
        return Vec::new();
    }
    if !copy.problems.is_empty() {
        let told = |problem: &Problem| {
            // Alone, a SHA-1 that does not hold is no problem; of two files, pgBackRest restores neither.
            let is_of_sha1 = problem.kind == ProblemKind::ArchiveChecksum;
            if problem.kind.is_of_file() && !is_of_sha1 {
                differs(problem.lsn, problem.kind, &problem.whole_found())
            } else {
                let found = format!("{}, {}", problem.kind, problem.whole_found());
                differs(problem.lsn, ProblemKind::DuplicateDiffers, &found)
            }
        };
        return copy.problems.iter().map(told).collect();
    }
    // Names with two checksums are those of pgBackRest, whose archive-get refuses both files.
    if let (Some(sha1), Some(other)) = (&best.segment.sha1, &copy.segment.sha1)
        && sha1 != other
    {
        let found = "another SHA-1 in its name: pgBackRest restores neither";
        return vec![differs(None, ProblemKind::DuplicateDiffers, found)];
    }
    // A copy that is not full may have been taken before the rest was written. Not where the next segment
    // lies beside it: then its server had filled it, and the rest is lost.
    if best.whole && !copy.whole && copy.is_finished {
        let found = format!("no record from {} on", copy.reach);
        return vec![differs(Some(copy.reach), ProblemKind::DuplicateDiffers, &found)];
    }
    let differ = copy.whole && best.whole && copy.records != best.records;
    let found = "other records, which are valid too";
    differ.then(|| differs(None, ProblemKind::DuplicateDiffers, found)).into_iter().collect()
}
