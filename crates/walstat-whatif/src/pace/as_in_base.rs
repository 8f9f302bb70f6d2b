//! Checkpoints that the clock begins where it did in the base: as long as the one before them is the base's
//! own and checkpoint_timeout is the same, the clock asks for the next one at the same record. The time of a
//! commit says when that is only to some tenths of a second.

use crate::base::Base;
use crate::base_checkpoint::BaseCheckpoint;
use crate::blocks::Ordinal;
use crate::settings::{Checkpoints, Timed};
use std::collections::BTreeMap;
use walstat_analyse::checkpoint::cause::Cause;

/// The first record after a checkpoint's redo point, and that of the next one if the clock began it.
#[derive(Debug, Clone, Default)]
pub(super) struct AsInBase {
    next: BTreeMap<Ordinal, Ordinal>,
}

impl AsInBase {
    /// Those of the base; none where checkpoint_timeout is another.
    pub(super) fn of(base: &Base, timed: Timed) -> AsInBase {
        if timed.timeout.is_some() {
            return AsInBase::default();
        }
        let checkpoints = Checkpoints::Timed(timed);
        let is_by_clock = |own: &BaseCheckpoint| {
            own.moved_by(timed.reading) == Some(Cause::Time)
                && !super::staying::stays(base, &checkpoints, own)
        };
        let place = |own: &BaseCheckpoint| {
            if is_by_clock(own) {
                base.moved_by_clock(own.first, timed.clock_off)
            } else {
                own.first
            }
        };
        let pairs = base.checkpoints.windows(2).filter_map(|pair| match pair {
            [before, own] if is_by_clock(own) => Some((place(before), place(own))),
            _ => None,
        });
        AsInBase { next: pairs.collect() }
    }

    /// Where the clock asks for the next checkpoint, if one begins before this record.
    pub(super) fn after(&self, ordinal: Ordinal) -> Option<Ordinal> {
        self.next.get(&ordinal).copied()
    }
}
