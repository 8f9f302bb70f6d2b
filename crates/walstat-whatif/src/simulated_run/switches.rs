//! How a simulated run closes segments early: those that the base closed, and by archive_timeout.

use super::{SWITCH_BYTES, SimulatedRun};
use crate::base::Base;
use crate::blocks::Ordinal;
use crate::outcome::{RunOutcome, Switch};
use crate::settings::ArchiveTimeout;
use walstat_format::payload::xlog;
use walstat_format::payload::{SECOND, Time};
use walstat_format::rmgr::XLOG;

/// So much late the checkpointer looks, microseconds: it sleeps whole seconds, half a second too long on
/// average.
const LATE: i64 = SECOND / 2;

/// The segment that is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenSegment {
    /// Its number when the clock was looked at last for archive_timeout.
    segment: u64,
    /// When that was.
    looked_at: Option<Time>,
    /// Where the segment after the last switch begins.
    left_at: u64,
}

impl OpenSegment {
    /// The one in which the base begins.
    pub(super) fn first_of(base: &Base, segment_bytes: u64) -> OpenSegment {
        OpenSegment {
            segment: base.start.0 / segment_bytes,
            looked_at: base.commits.first().map(|(_, time)| *time),
            left_at: 0,
        }
    }
}

impl SimulatedRun<'_> {
    /// The checkpointer looks at the clock when a segment has been open for that long, whoever commits or
    /// not, and closes it if anything was written since it looked before: so between this commit and the
    /// next one it closes a segment once.
    pub(super) fn switch_by_time(&mut self, ordinal: Ordinal, time: Time) {
        let Some(ArchiveTimeout::After(wait)) = self.settings.archive_timeout else { return };
        let segment = self.position().0 / self.geometry.segment;
        if segment != self.open.segment {
            // It was full.
            self.open = OpenSegment { segment, looked_at: Some(time), ..self.open };
        }
        let looked = self.open.looked_at.get_or_insert(time);
        let passed =
            self.base.next_commit(ordinal).map_or(0, |next| next.0.saturating_sub(looked.0));
        let late = LATE.min(wait / 10);
        let looks = passed.checked_div(wait).unwrap_or(0);
        if looks < 1 || passed < wait.saturating_add(late) {
            return;
        }
        looked.0 = looked.0.saturating_add(looks.saturating_mul(wait));
        if self.usable != self.geometry.next_segment(self.usable) {
            let mut switch = 0;
            self.outcome.switches += 1;
            self.add(self.kind(XLOG, xlog::SWITCH), SWITCH_BYTES, &mut switch);
            self.usable += switch;
            self.leave_segment(false);
        }
        self.open.segment = self.position().0 / self.geometry.segment;
    }

    /// After a switch, which may lie elsewhere in other runs: what is left of the segment holds nothing.
    pub(super) fn leave_segment(&mut self, moves: bool) {
        let left = self.geometry.left_of_segment(self.usable);
        let since = self.usable.saturating_sub(self.open.left_at);
        let is_own = since < self.geometry.usable_per_segment();
        let RunOutcome { placed, uncertain, .. } = self.outcome;
        let redo_points = self.outcome.redo_points.len() as u64;
        let switch = Switch { left, redo_points, placed, is_own, moves, uncertain };
        self.outcome.left_empty.push(switch);
        self.usable = self.geometry.next_segment(self.usable);
        self.open.left_at = self.usable;
    }
}
