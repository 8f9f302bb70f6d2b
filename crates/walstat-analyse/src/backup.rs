//! What a backup leaves in the WAL: the checkpoint that it starts from, and the record that says where it is
//! consistent; and what a server restored from it needs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use walstat_format::lsn::Lsn;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::tablespace;
use walstat_format::payload::xlog::{self, Limits, ParameterChange};
use walstat_format::record::Record;
use walstat_format::rmgr::{TABLESPACE, XLOG};
use walstat_read::scan::few::{Few, STRETCH_BITS};
use walstat_read::scan::observe::Observe;

/// `MAXPGPATH`: no server makes a tablespace with a longer path.
const PATH_BYTES_MAX: usize = 1024;

/// A checkpoint record and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct PlacedCheckpoint {
    /// Start of the record.
    lsn: Lsn,
    /// What it says.
    checkpoint: Checkpoint,
}

/// What is known of a place that may have a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointAt {
    /// There is one.
    Noted(Checkpoint),
    /// There is none.
    Nothing,
    /// There may be one: there are more around it than are noted.
    Unknown,
}

/// The end of a backup that was taken from a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupEnd {
    /// Where the backup started (its redo point).
    pub start: Lsn,
    /// After the record: replayed up to here, the backup is consistent.
    pub end: Lsn,
}

/// Checkpoints, ends of backups, changes of settings and new tablespaces, in the order of the WAL. Of each,
/// few are noted in each stretch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Backups {
    checkpoints: Vec<PlacedCheckpoint>,
    /// Stretches of the WAL that have more checkpoints than are noted.
    crowded: BTreeSet<u64>,
    /// Checkpoints that are noted wherever they lie.
    #[serde(skip)]
    wanted: BTreeSet<Lsn>,
    /// Ends of backups.
    pub ends: Vec<BackupEnd>,
    /// Where settings changed that a hot standby needs as much of.
    pub limits: Vec<(Lsn, Limits)>,
    /// Where a tablespace was made, and in which directory.
    pub tablespaces: Vec<(Lsn, String)>,
    /// How many there were before, of checkpoints, changes, ends and tablespaces.
    before: [Few; 4],
}

impl Backups {
    /// Nothing yet; the checkpoints at these places will be asked for.
    pub fn of_checkpoints(wanted: impl IntoIterator<Item = Lsn>) -> Backups {
        Backups { wanted: wanted.into_iter().collect(), ..Backups::default() }
    }

    /// The checkpoint at a place.
    pub fn checkpoint_at(&self, lsn: Lsn) -> CheckpointAt {
        match self.checkpoints.iter().find(|placed| placed.lsn == lsn) {
            Some(placed) => CheckpointAt::Noted(placed.checkpoint),
            None if self.crowded.contains(&(lsn.0 >> STRETCH_BITS)) => CheckpointAt::Unknown,
            None => CheckpointAt::Nothing,
        }
    }

    /// The places of checkpoints, of those that are noted, that were taken at a shutdown or at the end of
    /// recovery: replay begins with their own record.
    pub fn shutdown_checkpoints(&self) -> impl Iterator<Item = Lsn> {
        let at_once = self.checkpoints.iter().filter(|it| it.checkpoint.redo == it.lsn);
        at_once.map(|placed| placed.lsn)
    }

    /// Whether a checkpoint is noted.
    fn notes_checkpoint(&mut self, lsn: Lsn) -> bool {
        let [checkpoints, ..] = &mut self.before;
        let is_one_of_few = checkpoints.takes(lsn);
        if !is_one_of_few {
            self.crowded.insert(lsn.0 >> STRETCH_BITS);
        }
        is_one_of_few || self.wanted.contains(&lsn)
    }

    /// Takes note of a record of the WAL itself.
    fn look_into(&mut self, record: &Record<'_>) {
        let (lsn, info) = (record.lsn, record.header.rmgr_info());
        match info {
            xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN if self.notes_checkpoint(lsn) => {
                let data = record.main_data().unwrap_or_default();
                let checkpoint = Checkpoint::parse(&data, record.version.checkpoint);
                self.checkpoints
                    .extend(checkpoint.map(|checkpoint| PlacedCheckpoint { lsn, checkpoint }));
            }
            xlog::PARAMETER_CHANGE if self.before[1].takes(lsn) => {
                let data = record.main_data().unwrap_or_default();
                let change = ParameterChange::parse(&data, record.version);
                self.limits.extend(change.map(|change| (lsn, change.limits)));
            }
            xlog::BACKUP_END if self.before[2].takes(lsn) => {
                let end = record.end.aligned();
                let start = xlog::backup_start(record.main_data_start());
                self.ends.extend(start.map(|start| BackupEnd { start, end }));
            }
            _ => {}
        }
    }

    /// Takes note of a tablespace.
    fn look_into_tablespace(&mut self, record: &Record<'_>) {
        let is_created = record.header.rmgr_info() == tablespace::CREATE;
        if is_created && self.before[3].takes(record.lsn) {
            let data = record.main_data().unwrap_or_default();
            let path = tablespace::created_at(&data).filter(|path| is_outside(path));
            let path = path.map(|path| String::from_utf8_lossy(path).into_owned());
            self.tablespaces.extend(path.map(|path| (record.lsn, path)));
        }
    }
}

/// Whether a tablespace lies outside of the data directory.
fn is_outside(path: &[u8]) -> bool {
    (1..PATH_BYTES_MAX).contains(&path.len())
}

impl Observe for Backups {
    fn observe(&mut self, record: &Record<'_>) {
        match record.header.rmgr {
            XLOG => self.look_into(record),
            TABLESPACE => self.look_into_tablespace(record),
            _ => {}
        }
    }

    fn merge(&mut self, later: Backups) {
        self.checkpoints.extend(later.checkpoints);
        self.crowded.extend(later.crowded);
        let before = self.before.iter_mut().zip(later.before);
        before.for_each(|(own, later)| own.merge(later));
        self.ends.extend(later.ends);
        self.limits.extend(later.limits);
        self.tablespaces.extend(later.tablespaces);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_very_many_checkpoints_those_that_are_wanted_are_noted() {
        let wanted = Lsn((1 << STRETCH_BITS) + 120 * 128);
        let mut backups = Backups::of_checkpoints([wanted]);
        let all = (0..2_u64 << STRETCH_BITS).step_by(128).map(Lsn);
        let noted: Vec<Lsn> = all.filter(|lsn| backups.notes_checkpoint(*lsn)).collect();
        assert_eq!(noted.len(), 2 * 64 + 1);
        assert!(noted.contains(&wanted) && noted.contains(&Lsn(1 << STRETCH_BITS)));
        let mut all = Backups::default();
        all.merge(backups);
        let other = Lsn((1 << STRETCH_BITS) + 200 * 128);
        assert_eq!(all.checkpoint_at(other), CheckpointAt::Unknown);
        assert_eq!(all.checkpoint_at(Lsn(2 << STRETCH_BITS)), CheckpointAt::Nothing);
    }
}
