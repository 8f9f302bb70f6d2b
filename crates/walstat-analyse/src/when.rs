//! When WAL was written, and what of it: one dimension for the course of it, checkpoints, recovery,
//! replication and commits, which all follow one log ([`super::deferred_log`]).
//!
//! A run writes its log while it is read; as soon as nothing earlier can come, the log is followed
//! in WAL order and forgotten. So no result depends on how the WAL was divided.

use super::checkpoint::{CycleFollower, Cycles};
use super::commit::{self, Commits, Pressure};
use super::course::{self, Course, FinishedCourse};
use super::deferred_log::{Batch, Chunk, DeferredLog, Event, FileNumbers, Wants};
use super::replication::GrowthCurve;
use super::time_map::{ClockBuilder, ClockGaps, Tick, TimeMap};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::record::Record;
use walstat_read::scan::observe::Observe;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Config {
    /// WAL over time.
    pub course: Option<course::Config>,
    /// Checkpoint cycles and recovery.
    pub cycles: bool,
    /// Records and blocks of the cycles too, not their images alone.
    pub sums: bool,
    /// Commits, with what a write to disk takes in microseconds.
    pub commits: Option<u32>,
    /// Each commit by its own time. Else those of a stretch of WAL go by the last one's, which tells how
    /// many there are a second, but not how close they come.
    pub each_commit: bool,
    /// How WAL grows.
    pub curve: bool,
    /// Only between these times, the second one not included.
    pub times: Option<(Time, Time)>,
}

impl Config {
    /// What the report tells in a few numbers. Without a course, the curve has times and places of
    /// stretches of WAL only.
    pub const OVERVIEW: Config = Config {
        course: None,
        cycles: true,
        sums: false,
        commits: Some(commit::SYNC_TIME),
        each_commit: false,
        curve: true,
        times: None,
    };

    /// Everything, as it is if nobody says how.
    pub const ALL: Config = Config {
        course: Some(course::Config { bucket_seconds: None, quarters: false }),
        sums: true,
        each_commit: true,
        ..Config::OVERVIEW
    };
}

/// Everything about time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct When {
    config: Config,
    log: DeferredLog,
    /// Follows the log; only of what begins with the first record, and is read here.
    #[serde(skip)]
    follower: Option<Box<LogFollower>>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WhenFound {
    /// WAL over time, if asked for.
    pub course: Option<FinishedCourse>,
    /// Checkpoint cycles, if asked for.
    pub cycles: Option<Cycles>,
    /// Commits, if asked for.
    pub pressure: Option<Pressure>,
    /// How WAL grows, if asked for.
    pub curve: Option<GrowthCurve>,
    /// The same without the unused rest of segments.
    pub written: Option<GrowthCurve>,
    /// First and last time of any record.
    pub span: Option<(Time, Time)>,
    /// Between which times, if that was said: cycles and clock go on before and after.
    pub times: Option<(Time, Time)>,
    /// The clock.
    pub clock: TimeMap,
    /// How often the clock was set back.
    pub set_back: u64,
    /// Where the clock is thin.
    pub thin: ClockGaps,
}

/// What follows the log.
#[derive(Debug, Clone, Default)]
struct LogFollower {
    times: Option<(Time, Time)>,
    /// Where the first record or chunk begins.
    start: Option<Lsn>,
    clock: ClockBuilder,
    course: Option<Course>,
    cycles: Option<CycleFollower>,
    commits: Option<Commits>,
    curve: Option<GrowthCurve>,
    written: Option<GrowthCurve>,
    files: FileNumbers,
}

impl When {
    /// Nothing seen yet.
    pub fn new(config: Config) -> When {
        let records = config.course.is_some() || config.sums || config.each_commit;
        let log = DeferredLog::new(Wants { records, blocks: config.sums, each_time: false });
        When { config, log, follower: None }
    }

    fn follow(&mut self) {
        let batches = self.log.take();
        if batches.is_empty() && self.follower.is_some() {
            return;
        }
        let config = self.config;
        let follower = self.follower.get_or_insert_with(|| Box::new(LogFollower::new(config)));
        follower.start = follower.start.or(self.log.first());
        batches.into_iter().for_each(|batch| follower.take(batch));
    }

    /// What was found in a range that ends at `end`.
    pub fn finish(mut self, end: Lsn) -> WhenFound {
        self.follow();
        self.follower.map(|follower| follower.finish(end)).unwrap_or_default()
    }
}

impl Observe for When {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.log.add(record);
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        self.log.passed_over(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.log.lost(range);
    }

    fn unused(&mut self, range: Range<Lsn>) {
        self.log.unused(range);
    }

    fn merge(&mut self, later: When) {
        // What has followed its log begins with the first record: nothing was seen before it.
        if later.follower.is_some() { *self = later } else { self.log.append(later.log) }
    }

    fn settle(&mut self) {
        self.follow();
    }

    fn shrink(&mut self) {
        self.log.shrink();
    }
}

impl LogFollower {
    fn new(config: Config) -> LogFollower {
        LogFollower {
            times: config.times,
            start: None,
            clock: ClockBuilder::default(),
            course: config.course.map(Course::new),
            cycles: config.cycles.then(CycleFollower::default),
            commits: config.commits.map(Commits::new),
            curve: config.curve.then(GrowthCurve::default),
            written: config.curve.then(GrowthCurve::default),
            files: FileNumbers::default(),
        }
    }

    fn take(&mut self, batch: Batch) {
        let numbers: Vec<u32> = batch.files.all().iter().map(|f| self.files.number(*f)).collect();
        for mut chunk in batch.chunks {
            let start = self.start.map_or(chunk.begin(), |start| start.min(chunk.begin()));
            self.start = Some(start);
            self.clock.begin(start);
            if self.times.is_none() {
                self.curves().for_each(|curve| curve.begin(start));
            }
            if let Some(cycles) = &mut self.cycles {
                cycles.begin(&chunk, start, batch.marks_redo);
            }
            self.take_times(&chunk);
            if let Some(cycles) = &mut self.cycles {
                chunk.drop_marks();
                chunk.renumber(&numbers);
                cycles.take(chunk);
            }
        }
        if let (Some(cycles), Some(seen)) = (&mut self.cycles, &batch.transactions) {
            cycles.take_transactions(seen);
        }
    }

    fn curves(&mut self) -> impl Iterator<Item = &mut GrowthCurve> {
        self.curve.iter_mut().chain(&mut self.written)
    }

    fn take_times(&mut self, chunk: &Chunk) {
        if let Some(placed) = &chunk.event {
            self.clock.event(placed);
            if let (Event::Unused, Some(written)) = (&placed.event, &mut self.written) {
                written.leave_out(placed.lsn..placed.end);
            }
        }
        let ticks = self.clock.ticks(chunk);
        if let Some(course) = &mut self.course {
            course.take(chunk, &ticks);
        }
        self.grow(&ticks);
        if let Some(cycles) = &mut self.cycles {
            ticks.iter().for_each(|tick| cycles.tick(tick));
        }
        if let Some(commits) = &mut self.commits {
            chunk.marks.iter().for_each(|mark| commits.add(mark.time, mark.commits()));
        }
    }

    /// The curve goes on, between the times that were asked for.
    fn grow(&mut self, ticks: &[Tick]) {
        let (since, until) = self.times.unwrap_or((Time(i64::MIN), Time(i64::MAX)));
        for tick in ticks.iter().filter(|tick| (since..until).contains(&tick.to.time)) {
            self.curves().for_each(|curve| curve.tick(tick));
        }
    }

    fn finish(mut self, end: Lsn) -> WhenFound {
        let ticks = self.clock.last_ticks();
        self.grow(&ticks);
        if self.times.is_none() {
            self.curves().for_each(|curve| curve.end(end));
        }
        if let Some(cycles) = &mut self.cycles {
            ticks.iter().for_each(|tick| cycles.tick(tick));
        }
        WhenFound {
            thin: self.clock.thin(end),
            course: self.course.map(|course| course.finish(&ticks)),
            cycles: self.cycles.map(|cycles| cycles.finish(end)),
            pressure: self.commits.map(Commits::finish),
            curve: self.curve,
            written: self.written,
            span: self.clock.span(),
            times: self.times,
            clock: self.clock.map,
            set_back: self.clock.set_back,
        }
    }
}
