//! Holes in a server's own directory that nobody fills: it recycles what the archiver has taken, and keeps an
//! older segment that waits for that, as the first of a base backup from which a standby was made, until the
//! standby is promoted (`RemoveOldXlogFiles` in `src/backend/access/transam/xlog.c`).

use super::Plan;
use crate::control;
use crate::input_kind::ARCHIVE_STATUS;
use crate::label::BACKUP_LABEL;
use crate::storage;
use std::ops::Range;
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;

impl Plan {
    /// Holes between a server's own segments, before the one in which its recovery would begin, of which it
    /// has removed the archive status, too. None where other WAL is read as well, which they may be missing
    /// in.
    pub(super) fn holes_recycled(&self) -> Vec<Range<Lsn>> {
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
        let wal = self.data_directory_read.as_deref();
        let wal = wal.map(|data| data.join(self.version().wal_directory));
        let Some((wal, redo)) = wal.and_then(|wal| Some((wal, self.redo()?))) else {
            return Vec::new();
        };
        let status = numbers_with_status(&wal, self.geometry.segment_bytes);
        holes.retain(|hole| {
            let numbers = hole.start.0 / bytes..hole.end.0 / bytes;
            numbers.end <= redo.0 / bytes && !status.iter().any(|number| numbers.contains(number))
        });
        holes
    }

    /// Where recovery of the server begins, if no WAL but its own is read. That of a base backup begins
    /// before the checkpoint that its `pg_control` names.
    fn redo(&self) -> Option<Lsn> {
        let data = self.data_directory_read.as_deref()?;
        let wal = storage::identity(&data.join(self.version().wal_directory)).ok()?;
        let mut directories: Vec<&Path> =
            self.files.values().flatten().filter_map(|file| file.source.path().parent()).collect();
        directories.dedup();
        let is_own = |path: &&Path| storage::identity(path).is_ok_and(|it| it == wal);
        if data.join(BACKUP_LABEL).exists() || !directories.iter().all(is_own) {
            return None;
        }
        let control = control::read(data).ok()?;
        let is_servers = control.system_identifier == self.geometry.system_identifier;
        is_servers.then_some(control.checkpoint.redo)
    }
}

/// The segments of which an archiver's status is there, whether they are or not.
fn numbers_with_status(wal: &Path, segment_bytes: u32) -> Vec<u64> {
    let entries = storage::entries(&wal.join(ARCHIVE_STATUS)).unwrap_or_default().into_iter();
    let names = entries.filter_map(|(name, _)| SegmentName::leading(&name.to_string_lossy()));
    names.filter_map(|name| name.number(segment_bytes)).collect()
}
