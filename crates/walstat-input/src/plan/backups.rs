//! Base backups whose histories (`.backup`) lie beside the segments.

use super::Plan;
use crate::input_kind::InputKind;
use crate::names::backup_start;
use crate::problem::{Problem, ProblemKind, none_of};
use crate::segment::Segment;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;

impl Plan {
    /// Looks for the segments with which base backups begin, as the archive's backup histories name
    /// them. What is older than all others was removed together with its backup; the history stays
    /// (`pg_archivecleanup` before 17). But a history is archived after its segment.
    pub(super) fn check_backups(&mut self) {
        let bytes = self.geometry.segment_bytes;
        // Of each timeline, the first missing segment that was not told yet.
        let mut missing_from: BTreeMap<u32, u64> = BTreeMap::new();
        let is_no_archive = self.files.values().all(|files| are_servers(files));
        let of_servers = self.files.iter().filter(|(_, files)| are_servers(files));
        let of_servers: BTreeSet<u32> =
            of_servers.map(|((timeline, _), _)| *timeline).collect_set();
        for other in &self.other_files {
            let Some(name) = backup_start(other) else { continue };
            let Some(number) = name.number(bytes) else { continue };
            if of_servers.contains(&name.timeline) {
                continue;
            }
            let range = (name.timeline, 0)..=(name.timeline, u64::MAX);
            let mut of_timeline = self.files.range(range).map(|((_, number), _)| *number);
            let first = of_timeline.next();
            let last = of_timeline.next_back().or(first);
            match (first, last) {
                (Some(first), _) if number < first => self.removed_backups.push(other.clone()),
                (_, Some(last)) if number <= last => self.has_begun_backup = true,
                // A server keeps the history of its last backup longer than the WAL of the timeline.
                (None, None) if is_no_archive => {}
                // Of all of its timeline nothing is left, and a newer one goes on.
                (None, None) if self.files.keys().any(|(newer, _)| *newer > name.timeline) => {
                    self.removed_backups.push(other.clone());
                }
                // Of what was written behind the place where the timeline was left, and was removed.
                _ if self.is_left_before(name.timeline, begin_of(other, number, bytes)) => {
                    self.notes.push(removed_backup(other));
                }
                _ => {
                    let after = || last.map_or(number, |last| last + 1);
                    let begin = missing_from.entry(name.timeline).or_insert_with(after);
                    if *begin <= number {
                        let missing = *begin..number + 1;
                        self.problems.push(missing_start(other, name, missing, bytes));
                        *begin = number + 1;
                    }
                }
            }
        }
        self.notes.extend(self.removed_backups.iter().map(|file| removed_backup(file)));
    }

    /// Whether the history that a server follows leaves a timeline before a place.
    fn is_left_before(&self, timeline: u32, place: Lsn) -> bool {
        self.lineage_read().leaves(timeline).is_some_and(|left| left <= place)
    }
}

/// Where a backup begins, by the name of its history: the offset follows on the segment.
fn begin_of(file: &str, number: u64, segment_bytes: u32) -> Lsn {
    let offset = file.split('.').nth(1).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Lsn(number.saturating_mul(u64::from(segment_bytes)).saturating_add(offset.unwrap_or(0)))
}

/// Whether a segment's file lies in a server's own directory, which is no archive of its backups.
fn are_servers(files: &[Segment]) -> bool {
    files.iter().any(|file| file.taken_for == InputKind::PgWal)
}

/// The note of a base backup that was removed with its WAL.
fn removed_backup(file: &str) -> String {
    format!("{file}: the WAL of this backup is not there any more")
}

/// The segment that a base backup begins in and that is not there, with those before it that are not.
fn missing_start(file: &str, start: SegmentName, missing: Range<u64>, bytes: u32) -> Problem {
    let first = SegmentName::new(start.timeline, missing.start, bytes).to_string();
    let expected = format!("segment {start}, in which the backup of {file} begins");
    let found = none_of(missing.end - missing.start, &start.to_string());
    let problem = Problem::of_file(ProblemKind::MissingSegment, &first, expected, found);
    let begin = Lsn(missing.start.saturating_mul(u64::from(bytes)));
    Problem { lsn: Some(begin), ..problem }
}
