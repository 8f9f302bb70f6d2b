//! What a restore needs to know: backups, how far records go, and at which ones it ends.

use super::backup::Backups;
use super::contradictions::Contradictions;
use super::replay_points::ReplayPoints;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::record::{Record, RecordPlace};
use walstat_read::scan::observe::Observe;

/// What a restore needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RestoreInput {
    /// Where it may begin.
    pub backups: Backups,
    /// How far it comes.
    pub replay_points: ReplayPoints,
    /// Where it ends.
    pub contradictions: Contradictions,
}

impl RestoreInput {
    /// Nothing yet; the checkpoints at these places will be asked for.
    pub fn of_checkpoints(wanted: impl IntoIterator<Item = Lsn>) -> RestoreInput {
        RestoreInput { backups: Backups::of_checkpoints(wanted), ..RestoreInput::default() }
    }

    #[inline(never)]
    fn look_into(&mut self, place: RecordPlace<'_>) {
        let Some(record) = &place.read() else { return debug_assert!(false, "{place:?}") };
        self.backups.observe(record);
        self.replay_points.observe(record);
        self.contradictions.observe(record);
    }
}

impl Observe for RestoreInput {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        // Nearly every one moves on replay, and nothing else.
        if !(self.replay_points.moves_on(record) && self.contradictions.is_usual(record)) {
            self.look_into(record.place());
        }
    }

    fn passed_over(&mut self, record: &Record<'_>) {
        self.contradictions.passed_over(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.replay_points.lost(range);
    }

    fn merge(&mut self, later: RestoreInput) {
        self.backups.merge(later.backups);
        self.replay_points.merge(later.replay_points);
        self.contradictions.merge(later.contradictions);
    }
}
