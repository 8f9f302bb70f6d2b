//! Checkpoint cycles: the WAL from one redo point to the next, and what a crash in it would make the
//! server replay.
//!
//! From 17 on a record marks each redo point. Before, only the checkpoint's record says where it
//! began, when it ends; until then the records since the last checkpoint's record are undivided in a form
//! that can be divided (`undivided`). Why a checkpoint began is told by [`cause`].

mod by_settings;
mod by_spacing;
pub mod cause;
mod cycle_sums;
mod cycle_times;
mod decay;
mod events_since;
pub mod evidence;
pub mod server;
mod spacing;
mod touched_blocks;
mod undivided;
mod verdict;

pub use spacing::{SHORTEST_TIMEOUT, SOONEST_BY_CLOCK};

pub use cycle_sums::ReplaySums;
pub use cycle_times::ByTime;
pub use decay::{Decay, power_of_two};
pub use events_since::{EventsSince, OidStock};

use super::archive_timeout::OtherReasons;
use super::deferred_log::{
    CheckpointSeen, Chunk, Event, FilesChange, OpenTransactions, PlacedEvent, Tally,
};
use super::time_map::Tick;
use super::unused;
use cycle_sums::{CycleSums, ReplayBuilder};
use cycle_times::CycleTimes;
use std::ops::Range;
use touched_blocks::TouchedBlocks;
use undivided::UndividedRecords;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// A checkpoint whose record is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCheckpoint {
    /// Start of its record.
    pub lsn: Lsn,
    /// Where the record after it starts at the earliest.
    pub end: Lsn,
    /// Its record.
    pub seen: CheckpointSeen,
    /// What was there to see since the checkpoint before.
    pub since: EventsSince,
}

/// From one redo point to the next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cycle {
    /// The redo point with which it begins; `None` if it begins with the range.
    pub redo: Option<Lsn>,
    /// Its first place.
    pub start: Lsn,
    /// The next redo point, or the end of the range.
    pub end: Lsn,
    /// The checkpoint that began with it.
    pub checkpoint: Option<EndedCheckpoint>,
    /// Its records.
    pub tally: Tally,
    /// Blocks that they touch.
    pub distinct_blocks: u64,
    /// How images are spread over it; `None` without any.
    pub decay: Option<Decay>,
    /// How it went by the clock; `None` where that is too thin.
    pub by_time: Option<ByTime>,
    /// Microseconds from its checkpoint's beginning, which is stated in whole seconds, to its record;
    /// `None` where the clock is thin.
    pub took: Option<u64>,
    /// Images of blocks that the cycle before had touched too: without this checkpoint they would not
    /// have been written. `None` if the cycle before is not complete.
    pub brought: Option<u64>,
    /// Whether a base backup started from its redo point.
    pub began_backup: bool,
    /// Files that were copied or went away after its record, before the next checkpoint.
    pub files: Option<(FilesChange, Lsn)>,
}

impl Cycle {
    /// Whether its checkpoint began, as a record marks from 17 on, and no record says that it ended.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.redo.is_some() && self.checkpoint.is_none()
    }
}

/// What a crash would make the server replay, at its worst moment after a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// The checkpoint's redo point.
    pub from: Lsn,
    /// Start of the next checkpoint's record, or the end of the range.
    pub to: Lsn,
    /// Sums over it.
    pub sums: ReplaySums,
}

/// A switch to the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switched {
    /// Where its record ends, and the unused rest of the segment begins.
    pub end: Lsn,
    /// The last time that was stated before it.
    pub time: Option<Time>,
}

/// All cycles of a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cycles {
    /// In WAL order, without gaps.
    pub cycles: Vec<Cycle>,
    /// How many checkpoint records there are.
    pub checkpoints: u64,
    /// One for each checkpoint record.
    pub replays: Vec<Replay>,
    /// Switches to the next segment, in WAL order.
    pub switches: Vec<Switched>,
    /// Why others than archive_timeout switched: base backups, shutdowns' checkpoints, restore points.
    pub other_switches: OtherReasons,
    /// Where records are missing, in WAL order.
    pub holes: Vec<Range<Lsn>>,
    /// Where nothing was written, in WAL order: the rests of segments after switches.
    pub unused: Vec<Range<Lsn>>,
    /// Microseconds between shutdowns and what states a time next: the server was down, or wrote nothing.
    pub stopped: i64,
    /// Whether redo points were found too late to divide the records around them one by one.
    pub is_rough: bool,
}

impl Cycles {
    /// Whether no record is missing from `from` to `to`: else nobody knows how much WAL, or how many
    /// checkpoints, lay between.
    pub fn has_all(&self, from: Lsn, to: Lsn) -> bool {
        let after = self.holes.partition_point(|hole| hole.end < from);
        self.holes.get(after).is_none_or(|hole| hole.start >= to)
    }

    /// How many of them, the first ones, began while initdb set the cluster up, which says nothing of how
    /// the server runs: all up to the last checkpoint that knows of no oid as users' objects have. Those
    /// before it may, since a checkpoint in the midst of work counts the oids that were set aside.
    pub fn of_initdb(&self) -> usize {
        let is_of_initdb = |cycle: &Cycle| {
            cycle.checkpoint.as_ref().is_some_and(|ended| ended.seen.says.is_of_initdb())
        };
        self.cycles.iter().rposition(is_of_initdb).map_or(0, |last| last + 1)
    }

    /// Bytes from `from` to `to` that were written: records with their page headers, but not the unused
    /// rest of segments.
    pub fn written(&self, from: Lsn, to: Lsn) -> u64 {
        let first = self.unused.partition_point(|unused| unused.end <= from);
        let last = self.unused.partition_point(|unused| unused.start < to);
        unused::written(self.unused.get(first..last).unwrap_or_default(), from..to)
    }
}

impl Cycle {
    /// The same cycle where what is read begins in the middle of it: nothing is known of its beginning.
    pub fn begun_before(self) -> Cycle {
        Cycle { redo: None, checkpoint: None, took: None, brought: None, ..self }
    }
}

/// The cycle that is being read.
#[derive(Debug, Clone, Default)]
struct OpenCycle {
    redo: Option<Lsn>,
    start: Lsn,
    checkpoint: Option<EndedCheckpoint>,
    began_backup: bool,
    files: Option<(FilesChange, Lsn)>,
    sums: CycleSums,
}

/// The checkpoint that a crash would start from.
#[derive(Debug, Clone)]
struct OpenReplay {
    from: Lsn,
    /// Cycles that are over since.
    replayed: ReplayBuilder,
}

/// Follows the log from cycle to cycle.
#[derive(Debug, Clone, Default)]
pub struct CycleFollower {
    found: Cycles,
    open: Option<OpenCycle>,
    replay: Option<OpenReplay>,
    undivided: UndividedRecords,
    /// What the cycle before touched, if it is complete.
    previous: Option<TouchedBlocks>,
    times: CycleTimes,
    events: events_since::EventWatch,
    /// Whether records mark redo points.
    has_marks: bool,
    /// The last shutdown, if nothing states a time since.
    shutdown: Option<(Lsn, Time)>,
}

impl CycleFollower {
    /// Takes what happens at the beginning of a chunk, before the clock goes on over it. `start`: where
    /// the WAL begins, for the first chunk; `has_marks`: records mark redo points.
    pub fn begin(&mut self, chunk: &Chunk, start: Lsn, has_marks: bool) {
        self.has_marks = has_marks;
        if self.open.is_none() {
            self.open = Some(OpenCycle { start, ..OpenCycle::default() });
        }
        if let Some(placed) = &chunk.event {
            self.event(placed);
        }
    }

    /// The clock goes on.
    pub fn tick(&mut self, tick: &Tick) {
        self.goes_on(tick.to.lsn, tick.to.time);
        self.times.tick(tick);
    }

    /// A time is stated at a place: a server that was shut down before it runs again.
    fn goes_on(&mut self, lsn: Lsn, time: Time) {
        if let Some((_, stopped)) = self.shutdown.take_if(|(place, _)| *place < lsn) {
            self.found.stopped += time.0.saturating_sub(stopped.0).max(0);
        }
    }

    /// Takes the records of a chunk that was begun.
    pub fn take(&mut self, chunk: Chunk) {
        match (self.has_marks, &mut self.open) {
            _ if chunk.has_no_records() => {}
            (true, Some(open)) => open.sums.add_chunk(&chunk),
            _ => self.undivided.push(chunk),
        }
    }

    /// Takes what became of transactions after the last event that says it.
    pub(crate) fn take_transactions(&mut self, seen: &OpenTransactions) {
        self.events.transactions(seen);
    }

    fn event(&mut self, placed: &PlacedEvent) {
        placed.transactions.iter().for_each(|seen| self.events.transactions(seen));
        match &placed.event {
            Event::Redo => self.begin_cycle(placed.lsn),
            Event::Checkpoint(seen) => self.checkpoint(placed.lsn, placed.end.aligned(), seen),
            Event::BackupEnd(start) => {
                self.found.other_switches.begins_segment(*start);
                self.found.other_switches.ends_segment(placed.lsn);
                self.backup_end(*start);
            }
            Event::RestorePoint(_) => {
                self.found.other_switches.ends_segment(placed.lsn);
            }
            Event::Switch => {
                let time = self.times.now();
                self.found.switches.push(Switched { end: placed.end, time });
            }
            Event::Lost => self.found.holes.push(placed.lsn..placed.end),
            Event::Unused => self.found.unused.push(placed.lsn..placed.end),
            Event::Files(change) => {
                // A checkpoint that is still running cannot have been requested for this change of files.
                if let Some(open) = self.open.as_mut().filter(|open| open.checkpoint.is_some()) {
                    open.files = Some((*change, placed.lsn));
                }
            }
            _ => {}
        }
        self.events.event(placed);
    }

    /// A base backup ends: a mark on the cycle that it started with.
    fn backup_end(&mut self, start: Lsn) {
        if let Some(open) = self.open.as_mut().filter(|open| open.redo == Some(start)) {
            open.began_backup = true;
        }
        let same = |cycle: &&mut Cycle| cycle.redo == Some(start);
        if let Some(cycle) = self.found.cycles.iter_mut().rev().find(same) {
            cycle.began_backup = true;
        }
    }

    /// A checkpoint's record, from `lsn` to `end`.
    fn checkpoint(&mut self, lsn: Lsn, end: Lsn, seen: &CheckpointSeen) {
        let redo = if seen.is_shutdown { lsn } else { seen.says.redo };
        let start = self.open.as_ref().map_or(lsn, |open| open.start);
        if seen.is_shutdown {
            self.goes_on(lsn, seen.says.time);
            self.found.other_switches.begins_segment(lsn);
            self.shutdown = Some((lsn, seen.says.time));
            self.end_replay(lsn);
            self.begin_cycle(lsn);
        } else {
            // At wal_level minimal nothing need lie between the two.
            if !self.has_marks && (start..=lsn).contains(&redo) {
                self.begin_cycle(redo);
            }
            self.end_replay(lsn);
        }
        let since = self.events.since_checkpoint(redo, seen);
        if let Some(open) = &mut self.open {
            // A redo point before the range begins none of its cycles, but this is its checkpoint.
            if open.redo.is_none_or(|begun| begun == redo) {
                open.checkpoint = Some(EndedCheckpoint { lsn, end, seen: seen.clone(), since });
            }
        }
        self.replay = Some(OpenReplay { from: redo, replayed: ReplayBuilder::default() });
    }

    /// Ends the cycle at `redo`, where the next one begins.
    fn begin_cycle(&mut self, redo: Lsn) {
        let Some(mut open) = self.open.take() else { return };
        let mut next = OpenCycle { redo: Some(redo), start: redo, ..OpenCycle::default() };
        if self.has_marks {
            self.undivided.drain_into(&mut open.sums);
        }
        let is_exact = self.undivided.divide(redo, &mut open.sums, &mut next.sums);
        self.found.is_rough |= !is_exact;
        if open.start < redo || open.redo.is_some() {
            self.end_cycle(open, redo);
        }
        self.open = Some(next);
    }

    fn end_cycle(&mut self, open: OpenCycle, end: Lsn) {
        let previous = self.previous.take().filter(|_| open.redo.is_some());
        self.found.cycles.push(Cycle {
            redo: open.redo,
            start: open.start,
            end,
            checkpoint: open.checkpoint,
            tally: open.sums.tally,
            distinct_blocks: open.sums.touched.len(),
            decay: open.sums.images.decay(open.start, end, &self.found.unused),
            by_time: None,
            took: None,
            brought: previous.map(|previous| open.sums.images_of(&previous)),
            began_backup: open.began_backup,
            files: open.files,
        });
        let (mut sums, index) = (open.sums, self.found.cycles.len() - 1);
        self.times.add(&mut self.found.cycles, index, std::mem::take(&mut sums.images));
        self.previous = open.redo.map(|_| sums.touched.clone());
        if let Some(replay) = &mut self.replay {
            replay.replayed.add(sums);
        }
    }

    /// From here on a crash would start from another checkpoint, or nothing follows.
    fn end_replay(&mut self, to: Lsn) {
        if let Some(open) = &mut self.open {
            self.undivided.drain_into(&mut open.sums);
            if let Some(replay) = self.replay.take() {
                let sums = replay.replayed.with(&open.sums);
                self.found.replays.push(Replay { from: replay.from, to, sums });
            }
        }
    }

    /// Nothing follows: the range ends at `end`.
    pub fn finish(mut self, end: Lsn) -> Cycles {
        self.end_replay(end);
        if let Some(open) = self.open.take() {
            let end = end.max(open.start);
            self.end_cycle(open, end);
        }
        self.times.finish(&mut self.found.cycles);
        self.found.checkpoints = self.found.replays.len() as u64;
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_map::Anchor;

    #[test]
    fn the_time_after_a_shutdown_is_no_time_of_work() {
        let mut follower = CycleFollower::default();
        let shutdown = |follower: &mut CycleFollower, lsn, time| {
            let mut seen = CheckpointSeen { is_shutdown: true, ..CheckpointSeen::sample() };
            seen.says.time = Time(time);
            follower.checkpoint(Lsn(lsn), Lsn(lsn + 100), &seen);
        };
        let tick = |follower: &mut CycleFollower, lsn, time| {
            let to = Anchor { lsn: Lsn(lsn), time: Time(time) };
            follower.tick(&Tick { to, is_set_back: false });
        };
        tick(&mut follower, 500, 10);
        shutdown(&mut follower, 1000, 20);
        // The clock shows the shutdown itself; then the server goes on, twice.
        tick(&mut follower, 1000, 20);
        tick(&mut follower, 1200, 5020);
        tick(&mut follower, 1300, 5030);
        shutdown(&mut follower, 2000, 6000);
        shutdown(&mut follower, 2100, 6100);
        assert_eq!(follower.found.stopped, 5000 + 100);
    }

    /// CREATE DATABASE, which initdb calls, has checkpoints that count oids set aside.
    #[test]
    fn what_lies_before_the_last_checkpoint_of_initdb_is_of_initdb() {
        let cycle = |next_oid| {
            let mut seen = CheckpointSeen::sample();
            seen.says.next_oid = next_oid;
            let (lsn, end, since) = (Lsn(100), Lsn(200), EventsSince::default());
            let checkpoint = Some(EndedCheckpoint { lsn, end, seen, since });
            Cycle { checkpoint, ..Cycle::default() }
        };
        let of = |oids: &[u32]| {
            let cycles = oids.iter().map(|oid| cycle(*oid)).collect();
            Cycles { cycles, ..Cycles::default() }.of_initdb()
        };
        assert_eq!(of(&[12_000, 20_192, 20_192, 13_761, 24_576, 24_577]), 4);
        assert_eq!((of(&[24_576, 24_577]), of(&[])), (0, 0));
    }
}
