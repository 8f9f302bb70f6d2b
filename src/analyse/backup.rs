//! What a backup leaves in the WAL: the checkpoint that it starts from, and the record that
//! says where it is consistent.

use crate::scan::record::{Observe, Record};
use crate::wal::lsn::Lsn;
use crate::wal::payload::checkpoint::Checkpoint;
use crate::wal::rmgr::{XLOG, XLOG_CHECKPOINT_ONLINE, XLOG_CHECKPOINT_SHUTDOWN};
use serde::{Deserialize, Serialize};

/// `XLOG_BACKUP_END` of `src/include/catalog/pg_control.h`; its main data is the backup's start.
const XLOG_BACKUP_END: u8 = 0x50;

/// A checkpoint record and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Start of the record.
    pub lsn: Lsn,
    /// What it says.
    pub checkpoint: Checkpoint,
}

/// The end of a backup that was taken from a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupEnd {
    /// Where the backup started (its redo point).
    pub start: Lsn,
    /// Behind the record: replayed up to here, the backup is consistent.
    pub end: Lsn,
}

/// Checkpoints and ends of backups, in the order of the WAL.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Backups {
    /// All checkpoints.
    pub checkpoints: Vec<Placed>,
    /// All ends of backups.
    pub ends: Vec<BackupEnd>,
}

impl Observe for Backups {
    #[inline]
    fn observe(&mut self, record: &Record<'_>) {
        if record.header.rmgr != XLOG {
            return;
        }
        match record.header.info & 0xF0 {
            XLOG_CHECKPOINT_ONLINE | XLOG_CHECKPOINT_SHUTDOWN => {
                let data = record.main_data().unwrap_or_default();
                let checkpoint = Checkpoint::parse(&data, record.version.checkpoint);
                let lsn = record.lsn;
                self.checkpoints.extend(checkpoint.map(|checkpoint| Placed { lsn, checkpoint }));
            }
            XLOG_BACKUP_END => {
                let end = record.end.aligned();
                let start = record.main_data_start().first_chunk();
                let start = start.map(|bytes| Lsn(u64::from_le_bytes(*bytes)));
                self.ends.extend(start.map(|start| BackupEnd { start, end }));
            }
            _ => {}
        }
    }

    fn merge(&mut self, later: Backups) {
        self.checkpoints.extend(later.checkpoints);
        self.ends.extend(later.ends);
    }
}
