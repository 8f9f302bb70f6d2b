//! What a backup leaves in the WAL: the checkpoint that it starts from, and the record that says where it is
//! consistent; and what a server restored from it needs.

use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::xlog::{self, Limits, ParameterChange};
use walstat_format::record::Record;
use walstat_format::rmgr::XLOG;
use walstat_read::scan::observe::Observe;

/// A checkpoint record and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedCheckpoint {
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
    /// After the record: replayed up to here, the backup is consistent.
    pub end: Lsn,
}

/// Checkpoints, ends of backups and changes of settings, in the order of the WAL.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Backups {
    /// All checkpoints.
    pub checkpoints: Vec<PlacedCheckpoint>,
    /// All ends of backups.
    pub ends: Vec<BackupEnd>,
    /// Where settings changed that a hot standby needs as much of.
    pub limits: Vec<(Lsn, Limits)>,
}

impl Backups {
    /// Takes note of a record of the WAL itself.
    #[inline(never)]
    fn look_into(&mut self, record: &Record<'_>) {
        let info = record.header.rmgr_info();
        match info {
            xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN => {
                let data = record.main_data().unwrap_or_default();
                let checkpoint = Checkpoint::parse(&data, record.version.checkpoint);
                let lsn = record.lsn;
                self.checkpoints
                    .extend(checkpoint.map(|checkpoint| PlacedCheckpoint { lsn, checkpoint }));
            }
            xlog::PARAMETER_CHANGE => {
                let data = record.main_data().unwrap_or_default();
                let change = ParameterChange::parse(&data, record.version);
                self.limits.extend(change.map(|change| (record.lsn, change.limits)));
            }
            xlog::BACKUP_END => {
                let end = record.end.aligned();
                let start = xlog::backup_start(record.main_data_start());
                self.ends.extend(start.map(|start| BackupEnd { start, end }));
            }
            _ => {}
        }
    }
}

impl Observe for Backups {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if record.header.rmgr == XLOG {
            // A copy: the record itself then stays in registers.
            let record = *record;
            self.look_into(&record);
        }
    }

    fn merge(&mut self, later: Backups) {
        self.checkpoints.extend(later.checkpoints);
        self.ends.extend(later.ends);
        self.limits.extend(later.limits);
    }
}
