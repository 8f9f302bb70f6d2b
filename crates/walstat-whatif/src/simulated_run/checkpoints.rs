//! What a simulated run does at checkpoints, and what it notes of the cycle between two.

use super::{CHECKPOINT_REDO_BYTES, HEAD_BYTES, RUNNING_XACTS_BYTES, SimulatedRun, Touched};
use crate::base::Base;
use crate::base::clock::time_at;
use crate::blocks::{BEFORE, FIRST, NEVER, Ordinal};
use crate::outcome::RedoPoint;
use crate::pace::{Begin, Event};
use crate::trace::{TracedBlock, TracedRecord};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::standby::RUNNING_XACTS;
use walstat_format::payload::xlog::{CHECKPOINT_ONLINE, CHECKPOINT_REDO};
use walstat_format::rmgr::{STANDBY, XLOG};

/// Where the last checkpoint began, and the last one that is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastCheckpoints {
    begun: Lsn,
    completed: Lsn,
    /// The first record after the redo point of that one.
    completed_redo: Ordinal,
    /// When the last one began, if the server timed it.
    paced: Option<Time>,
}

impl LastCheckpoints {
    /// That before the range.
    pub(super) fn before(base: &Base) -> LastCheckpoints {
        let redo = base.checkpoint_before().map_or(base.start, |checkpoint| checkpoint.redo);
        let completed_redo = base.redo_at_start();
        LastCheckpoints { begun: redo, completed: redo, completed_redo, paced: None }
    }
}

impl SimulatedRun<'_> {
    pub(super) fn checkpoint(&mut self, event: Event, traced: &TracedRecord<'_>, before: &mut u64) {
        let (ordinal, lsn) = (traced.ordinal, traced.entry.lsn);
        let Event::Begin(begin) = event else { return self.complete(before) };
        let simulated = self.geometry.start(self.usable + *before);
        self.note_crash(ordinal);
        self.note_unread();
        self.redo = ordinal;
        self.last.begun = simulated;
        self.has_base_redo_points &= self.base.own_checkpoints().any(|own| own.first == ordinal);
        if lsn > self.base.start {
            self.outcome.redo_points.push(RedoPoint { base: lsn, simulated });
            self.outcome.placed += u64::from(begin != Begin::AsInBase);
        }
        self.pace.began(simulated);
        self.note_distance(begin, ordinal);
        if begin != Begin::AsInBase && self.base.version.pacing.marks_redo {
            self.add(self.kind(XLOG, CHECKPOINT_REDO), CHECKPOINT_REDO_BYTES, before);
        }
        if begin == Begin::AtOnce {
            self.complete(before);
        }
    }

    /// A checkpoint that the base does not have is complete, and recovery begins at its redo point from now
    /// on.
    fn complete(&mut self, before: &mut u64) {
        self.note_recovery(*before);
        self.last_is_complete();
        if self.base.logs_running {
            let bytes = RUNNING_XACTS_BYTES + 4 * self.running;
            self.add(self.kind(STANDBY, RUNNING_XACTS), bytes, before);
        }
        let bytes = HEAD_BYTES + self.base.version.checkpoint.bytes as u32;
        self.add(self.kind(XLOG, CHECKPOINT_ONLINE), bytes, before);
    }

    fn note_distance(&mut self, begin: Begin, ordinal: Ordinal) {
        let begun = time_at(&self.base.commits, ordinal).filter(|_| begin == Begin::Paced);
        if let Some((before, begun)) = std::mem::replace(&mut self.last.paced, begun).zip(begun) {
            let apart = begun.0.saturating_sub(before.0);
            let closest = &mut self.outcome.closest_micros;
            *closest = Some(closest.map_or(apart, |closest| closest.min(apart)));
        }
    }

    fn last_is_complete(&mut self) {
        self.last.completed = self.last.begun;
        self.last.completed_redo = self.redo;
    }

    /// A checkpoint's own record. At a shutdown, and after a crash, there is one under any settings.
    pub(super) fn base_checkpoint(&mut self, ordinal: Ordinal, online: bool) {
        self.note_recovery(0);
        if !online {
            self.note_unread();
            self.redo = ordinal;
            self.last.begun = self.position();
            self.pace.began(self.last.begun);
        }
        self.last_is_complete();
        self.pace.base_completed();
        self.quiet = (NEVER, 0);
    }

    /// A crash takes away what no WAL tells of the pages that were changed since the last checkpoint: hint
    /// bits, and room that was pruned. With another checkpoint before it those are others than in the base;
    /// more where recovery begins before it did there.
    fn note_crash(&mut self, ordinal: Ordinal) {
        let is_other = self.redo != self.base.redo_at(ordinal - 1);
        let mut own = self.base.checkpoints.iter();
        let recovers = own.any(|own| own.first == ordinal && own.ends_recovery());
        if is_other && recovers {
            let tally = &mut self.outcome.uncertain;
            let recovers_more = self.last.completed_redo < self.base.recovers_from(ordinal);
            let pages = if recovers_more {
                &mut tally.pages_of_longer_crash
            } else {
                &mut tally.pages_of_crash
            };
            *pages += self.touched.since;
        }
    }

    /// At a redo point: notes the pages that may have been read without being changed again.
    pub(super) fn note_unread(&mut self) {
        let Touched { before, since, again, old, old_again, .. } = self.touched;
        let may_differ = !self.base.log_hints || self.replaces_checkpoints;
        if self.settings.log_hints && self.settings.full_page_writes && may_differ {
            self.outcome.uncertain.hint_images_possible += before.saturating_sub(again);
        }
        let previous_redo = self.redo;
        self.touched = Touched { previous_redo, before: since, since: 0, again: 0, old, old_again };
    }

    /// Pages that were changed before the range, and not in it, may be read in it for the first time.
    pub(super) fn note_old(&mut self) {
        if self.settings.log_hints && self.settings.full_page_writes && !self.base.log_hints {
            let Touched { old, old_again, .. } = self.touched;
            self.outcome.uncertain.hint_images_possible += old.saturating_sub(old_again);
        }
    }

    pub(super) fn touch(&mut self, refs: &[TracedBlock]) {
        let mut touched = self.touched;
        for reference in refs.iter().filter(|r| self.stamps(r) && self.is_stale(r)) {
            touched.since += 1;
            let again = reference.stamped > BEFORE && reference.stamped >= touched.previous_redo;
            touched.again += u64::from(again);
            let is_old = reference.stamped >= FIRST && reference.stamped < self.base.first;
            touched.old_again += u64::from(is_old);
        }
        self.touched = touched;
    }

    pub(super) fn note_recovery(&mut self, before: u64) {
        let here = self.geometry.start(self.usable + before);
        let distance = here.0.saturating_sub(self.last.completed.0);
        self.outcome.recovery_bytes = self.outcome.recovery_bytes.max(distance);
    }
}
