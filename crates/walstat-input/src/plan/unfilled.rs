//! Holes that nobody fills. In a server's own directory: it recycles what the archiver has taken, and keeps
//! an older segment that waits for that, as the first of a base backup from which a standby was made, until
//! the standby is promoted (`RemoveOldXlogFiles` in `src/backend/access/transam/xlog.c`). In the archive of
//! such a standby, if that is a directory of its own: it begins with that older segment.

use super::Plan;
use crate::control;
use crate::discover::data_directory_of;
use crate::input_kind::{ARCHIVE_STATUS, InputKind};
use crate::label::BACKUP_LABEL;
use crate::names::backup_start;
use crate::segment::Segment;
use crate::storage;
use std::ops::Range;
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;

/// A hole between segments that no file is lost in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfilled {
    /// From the end of the segment before it to the beginning of the one behind it.
    pub range: Range<Lsn>,
    /// Why nothing is there.
    pub why: WhyUnfilled,
}

/// Why a hole is not filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnfilled {
    /// The server has used the files again.
    Recycled,
    /// The server that archives was a standby then, and took what it streamed for archived.
    NeverArchived,
}

impl Plan {
    /// Holes that no file is lost in.
    pub(super) fn holes_unfilled(&self) -> Vec<Unfilled> {
        let made = |why| move |range| Unfilled { range, why };
        let recycled = self.holes_recycled().into_iter().map(made(WhyUnfilled::Recycled));
        let mut holes: Vec<Unfilled> = recycled.collect();
        if holes.is_empty() {
            holes.extend(self.hole_not_archived().map(made(WhyUnfilled::NeverArchived)));
        }
        holes
    }

    /// The hole in the archive of a server that was a standby, which took what it streamed for archived: only
    /// the first segment of the backup that it was made from lies before the hole, which ends where the
    /// server's own timeline begins. None where a backup begins before that.
    fn hole_not_archived(&self) -> Option<Range<Lsn>> {
        let [first, second, ..] = &*self.segments else { return None };
        let bytes = u64::from(self.geometry.segment_bytes);
        let begun = self.lineage.leaves(first.timeline)?.0 / bytes;
        let is_hole = first.number + 1 < second.number && second.number == begun;
        let is_alone = self.files.keys().filter(|(_, number)| *number < begun).count() == 1;
        let mut files = self.files.values().flatten();
        let is_archive = files.any(|file| file.taken_for != InputKind::PgWal);
        let begins_before = |file: &String| {
            let start =
                backup_start(file).and_then(|name| name.number(self.geometry.segment_bytes));
            start.is_some_and(|start| start < begun)
        };
        // Whoever has it whole was no standby there.
        let went_on = self.files.iter().any(|((timeline, number), files)| {
            let is_older = *timeline < self.timeline && *number >= begun;
            is_older
                && self.lineage.of_file(*number, self.geometry.segment_bytes) != *timeline
                && files.iter().any(Segment::claims_whole_segment)
        });
        let hole = Lsn((first.number + 1) * bytes)..Lsn(begun * bytes);
        let is_unfilled = is_hole && is_alone && is_archive && !went_on;
        let is_named = self.other_files.iter().any(begins_before);
        (is_unfilled && !is_named && !self.is_restored_from(&hole)).then_some(hole)
    }

    /// Whether a backup is to be restored that begins before the end of a hole.
    fn is_restored_from(&self, hole: &Range<Lsn>) -> bool {
        self.to_restore.begins.is_some_and(|begins| begins < hole.end)
    }

    /// Holes between a server's own segments, before the one in which its recovery would begin, of which it
    /// has removed the archive status, too. None where other WAL is read as well, which they may be missing
    /// in.
    fn holes_recycled(&self) -> Vec<Range<Lsn>> {
        let bytes = u64::from(self.geometry.segment_bytes);
        let holes = self.segments.windows(2).filter_map(|pair| match pair {
            [before, after] if before.number + 1 < after.number => {
                Some(Lsn((before.number + 1) * bytes)..Lsn(after.number * bytes))
            }
            _ => None,
        });
        let mut holes: Vec<Range<Lsn>> = holes.collect();
        if holes.is_empty() {
            return holes;
        }
        let wal = self.wal_alone.as_deref();
        let Some((wal, begins)) = wal.and_then(|wal| Some((wal, self.recovery_begins(wal)?)))
        else {
            return Vec::new();
        };
        let status = numbers_with_status(wal, self.geometry.segment_bytes);
        holes.retain(|hole| {
            let numbers = hole.start.0 / bytes..hole.end.0 / bytes;
            let is_before = numbers.end <= begins.0 / bytes && !self.is_restored_from(hole);
            // The older one waits for the archiver, or did.
            is_before
                && status.contains(&(numbers.start - 1))
                && !status.iter().any(|number| numbers.contains(number))
        });
        holes
    }

    /// Where recovery of the server whose WAL this is begins. That of a base backup begins before the
    /// checkpoint that its `pg_control` names. Where no `pg_control` is in sight, as on a disk of its own,
    /// the newest timeline is the server's own, and began with a checkpoint.
    fn recovery_begins(&self, wal: &Path) -> Option<Lsn> {
        let Some(data) = data_directory_of(wal) else {
            let spans = self.lineage.spans();
            let (_, own) = spans.last().filter(|_| self.lineage.spans().nth(1).is_some())?;
            return storage::is_dir(&wal.join(ARCHIVE_STATUS)).then_some(own.start);
        };
        if data.join(BACKUP_LABEL).exists() {
            return None;
        }
        let control = control::read(&data).ok()?;
        let is_servers = control.system_identifier == self.geometry.system_identifier;
        is_servers.then_some(control.checkpoint.redo)
    }
}

/// The segments of which an archiver's status is there, whether they are or not.
fn numbers_with_status(wal: &Path, segment_bytes: u32) -> Vec<u64> {
    let entries = storage::entries(&wal.join(ARCHIVE_STATUS)).unwrap_or_default().into_iter();
    let numbers = entries.filter_map(|(name, _)| {
        let name = name.to_string_lossy();
        let name = name.strip_suffix(".ready").or(name.strip_suffix(".done"))?;
        SegmentName::parse(name)?.number(segment_bytes)
    });
    numbers.collect()
}
