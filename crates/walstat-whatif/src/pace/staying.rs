//! Checkpoints of the base that stay between the same records, whatever the settings: those that had begun
//! before the range, those of backups, shutdown and recovery; and, where settings of the server are others,
//! those that somebody asked for.

use super::shown;
use crate::base::Base;
use crate::base_checkpoint::BaseCheckpoint;
use crate::blocks::Ordinal;
use crate::settings::{Checkpoints, Timed};
use walstat_analyse::checkpoint::cause::Cause;
use walstat_format::payload::Time;

/// A checkpoint that stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staying {
    /// The first record after its redo point.
    pub(crate) first: Ordinal,
    /// When it began.
    pub(crate) time: Time,
    /// Whether the server ran on.
    pub(crate) online: bool,
    /// How long nobody committed since then, if a backup waited for it: microseconds.
    pub(crate) silence: i64,
    /// Whether the server had crashed before it.
    pub(crate) ends_recovery: bool,
}

/// Those that stay, as far as they begin in the range, ascending.
pub(crate) fn of(base: &Base, checkpoints: &Checkpoints) -> Vec<Staying> {
    let own = base.own_checkpoints().filter(|checkpoint| stays(base, checkpoints, checkpoint));
    own.map(|checkpoint| Staying {
        first: checkpoint.first,
        time: checkpoint.time,
        online: checkpoint.online,
        silence: if checkpoint.is_of_backup { base.silence_after(checkpoint) } else { 0 },
        ends_recovery: checkpoint.ends_recovery(),
    })
    .collect()
}

/// The records of those that do not stay, ascending.
pub(crate) fn moved_records(base: &Base, checkpoints: &Checkpoints) -> Vec<Ordinal> {
    let moved = base.checkpoints.iter().filter(|own| !stays(base, checkpoints, own));
    let mut records: Vec<Ordinal> = moved.flat_map(|own| own.records.iter().copied()).collect();
    records.sort_unstable();
    records
}

/// Whether a checkpoint of the base stays.
pub(crate) fn stays(base: &Base, checkpoints: &Checkpoints, own: &BaseCheckpoint) -> bool {
    match checkpoints {
        Checkpoints::AsBase => true,
        Checkpoints::At(_) => false,
        Checkpoints::Timed(timed) => own.redo <= base.start || !is_timed_anew(base, *timed, own),
        Checkpoints::Never
        | Checkpoints::Factor(_)
        | Checkpoints::Bytes(_)
        | Checkpoints::Time(_) => {
            own.redo <= base.start || !own.online || own.is_of_backup || own.ends_recovery()
        }
    }
}

/// Whether volume or clock began it, and it is known by how much of it.
fn is_timed_anew(base: &Base, timed: Timed, own: &BaseCheckpoint) -> bool {
    match own.moved_by(timed.reading) {
        Some(Cause::Wal) => {
            own.cause.is_none()
                || timed.max_wal_size.is_some()
                || shown::segments_of(base).is_some()
        }
        Some(_) => timed.timeout.is_some() || base.shown.timeout_seconds.is_some(),
        None => false,
    }
}
