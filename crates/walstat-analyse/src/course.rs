//! The course of WAL over time: records and commits by second, summed up to buckets; the busiest second, ten
//! seconds and minute; how many seconds had no WAL.
//!
//! A record that states its own time belongs to it; any other to the time that the clock shows at
//! its place ([`super::time_map`]).

mod buckets;
mod peaks;
mod untimed_records;

pub use buckets::{Bucket, Buckets};
pub use peaks::{Peak, Peaks};

use super::deferred_log::{Chunk, RecordImages, RecordRun, StatedTime};
use super::time_map::{Anchor, COMPLETE, Interval, Tick, extend_span};
use serde::{Deserialize, Serialize};
use untimed_records::{UntimedGroup, UntimedRecords};
use walstat_format::lsn::Lsn;

/// So many seconds are kept; then those long past are summed up.
const SECONDS: usize = 1 << 14;
/// More buckets than that nobody reads: they become ten times as wide.
const BUCKETS: usize = 1_000_000;
/// Buckets that are not asked for by width are as narrow as gives so many, those without WAL
/// counted.
const AUTO_BUCKETS: i64 = 120;
/// Widths to choose from, in seconds; each divides the next.
const WIDTHS: [i64; 12] = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400, 604_800];
/// Buckets by the hour of the day are made of quarters: time zones differ by that.
pub(crate) const QUARTER: i64 = 900;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Config {
    /// Seconds in a bucket; `None`: as fits.
    pub bucket_seconds: Option<i64>,
    /// Quarters of an hour too, to be put together by the hour of the day.
    pub quarters: bool,
}

/// WAL over time, while it is read.
#[derive(Debug, Clone)]
pub struct Course {
    config: Config,
    last: Option<Anchor>,
    /// After the last anchor.
    records: UntimedRecords,
    images: UntimedRecords,
    seconds: Buckets,
    /// Seconds long past.
    past: Buckets,
    quarters: Option<Buckets>,
    peaks: Peaks,
    /// First and last second with WAL.
    span: Option<(i64, i64)>,
    /// Seconds with WAL among those long past.
    busy: i64,
}

/// WAL over time, when all of it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCourse {
    /// Ascending. Without a clock there is one bucket, of no time.
    pub buckets: Buckets,
    /// Whether there is a clock.
    pub has_clock: bool,
    /// The busiest stretches.
    pub peaks: Peaks,
    /// Share of the seconds without WAL.
    pub idle_ratio: Option<f64>,
    /// By quarters of an hour, if asked for.
    pub quarters: Option<Buckets>,
}

/// The ticks without those in the middle of a second: all that lies between two ticks of one second
/// belongs to it.
fn seconds_of(last: Option<Anchor>, ticks: &[Tick]) -> impl Iterator<Item = &Tick> {
    let second = |tick: &Tick| (!tick.is_set_back).then(|| tick.to.time.second());
    let mut before = last.map(|anchor| anchor.time.second());
    ticks.iter().enumerate().filter_map(move |(index, tick)| {
        let next = ticks.get(index + 1).and_then(second);
        let is_inside = before.is_some() && before == next && next == second(tick);
        before = Some(tick.to.time.second());
        (!is_inside).then_some(tick)
    })
}

impl Course {
    /// Nothing read yet.
    pub fn new(config: Config) -> Course {
        Course {
            config,
            last: None,
            records: UntimedRecords::default(),
            images: UntimedRecords::default(),
            seconds: Buckets::new(1),
            past: Buckets::new(config.bucket_seconds.unwrap_or(1)),
            quarters: config.quarters.then(|| Buckets::new(QUARTER)),
            peaks: Peaks::default(),
            span: None,
            busy: 0,
        }
    }

    /// Takes a chunk, over which the clock goes on by `ticks`.
    pub fn take(&mut self, chunk: &Chunk, ticks: &[Tick]) {
        match self.one_second(chunk, ticks) {
            Some((second, last)) => self.take_at_once(chunk, second, last),
            None => self.take_one_by_one(chunk, ticks),
        }
        self.forget_past();
    }

    /// The second in which all marks of a chunk lie, and the one before the chunk too, and the last
    /// of them; `None` if they do not, or if the clock does not go on to the last one.
    fn one_second(&self, chunk: &Chunk, ticks: &[Tick]) -> Option<(i64, Anchor)> {
        let (from, to) = (self.last?, ticks.last()?.to);
        let second = from.time.second();
        let is_last = |mark: &StatedTime| chunk.mark_lsn(mark) == to.lsn;
        let all = chunk.marks.iter().all(|m| m.is_counted() && m.time.second() == second)
            && ticks.iter().all(|tick| tick.to.time.second() == second && !tick.is_set_back)
            && chunk.marks.last().is_some_and(is_last);
        all.then_some((second, to))
    }

    /// The same as one by one, where all up to the last mark belongs to one second.
    fn take_at_once(&mut self, chunk: &Chunk, second: i64, last: Anchor) {
        self.tick(&Tick { to: last, is_set_back: false });
        let (tally, end) = chunk.before_tail();
        let row = self.seconds.at(second);
        row.commits += chunk.marks.iter().map(StatedTime::commits).sum::<u64>();
        if tally.count > 0 {
            row.add_records(tally.count, tally.total_bytes, chunk.start.0, end.0);
            row.add_images(tally.fpi_count, tally.fpi_bytes);
        }
        for run in chunk.tail() {
            if run.has_time {
                self.seconds.at(second).add_records(1, run.total_bytes, run.lsn, run.end())
            } else {
                self.keep(run)
            }
        }
        for (lsn, image) in chunk.images().filter(|(lsn, _)| *lsn >= last.lsn) {
            self.keep_images(lsn, image);
        }
    }

    fn take_one_by_one(&mut self, chunk: &Chunk, ticks: &[Tick]) {
        let mut marks = chunk.marks.iter().filter(|mark| mark.is_counted());
        let mut runs = chunk.runs();
        let mut next = runs.next();
        let mut images = chunk.images().peekable();
        for tick in seconds_of(self.last, ticks) {
            let mut interval = self.tick(tick);
            let mut again = interval.again();
            while let Some(run) = next {
                let (before, after) = run.split(run.before(tick.to.lsn.0));
                if before.has_time && before.count > 0 {
                    self.add_stated(&before, marks.next())
                } else {
                    self.spread(before, &mut interval)
                }
                next = Some(after).filter(|after| after.count > 0);
                if next.is_some() {
                    break;
                }
                next = runs.next();
            }
            while let Some((lsn, image)) = images.next_if(|(lsn, _)| *lsn < tick.to.lsn) {
                if let Some((second, _)) = again.second_at(lsn.0) {
                    let bytes = u64::from(image.bytes);
                    self.seconds.at(second).add_images(u64::from(image.count), bytes);
                }
            }
        }
        for run in next.into_iter().chain(runs) {
            if run.has_time { self.add_stated(&run, marks.next()) } else { self.keep(run) }
        }
        images.for_each(|(lsn, image)| self.keep_images(lsn, image));
    }

    /// Keeps the images of a record until the clock goes on.
    fn keep_images(&mut self, lsn: Lsn, image: &RecordImages) {
        let (count, bytes) = (u64::from(image.count), u64::from(image.bytes));
        self.images.add(UntimedGroup { lsn: lsn.0, end: lsn.0, count, bytes });
    }

    /// Adds a record that states its own time.
    fn add_stated(&mut self, run: &RecordRun, mark: Option<&StatedTime>) {
        let Some(mark) = mark else { return };
        let row = self.seconds.at(mark.time.second());
        row.add_records(1, run.total_bytes, run.lsn, run.end());
        row.commits += mark.commits();
    }

    /// The clock goes on: spreads what was kept before the next anchor.
    fn tick(&mut self, tick: &Tick) -> Interval {
        let to = (!tick.is_set_back).then_some(tick.to);
        let mut interval = Interval::new(self.last, to);
        self.last = Some(tick.to);
        let seconds = &mut self.seconds;
        for group in self.records.drain_before(tick.to.lsn.0) {
            if let Some((second, _)) = interval.second_at(group.lsn) {
                seconds.at(second).add_records(group.count, group.bytes, group.lsn, group.end);
            }
        }
        let mut again = interval.again();
        for group in self.images.drain_before(tick.to.lsn.0) {
            if let Some((second, _)) = again.second_at(group.lsn) {
                seconds.at(second).add_images(group.count, group.bytes);
            }
        }
        interval
    }

    fn spread(&mut self, mut run: RecordRun, interval: &mut Interval) {
        while run.count > 0 {
            let Some((second, until)) = interval.second_at(run.lsn) else { return };
            let (now, later) = run.split(run.before(until).max(1));
            let bytes = now.count * now.total_bytes;
            self.seconds.at(second).add_records(now.count, bytes, now.lsn, now.end());
            run = later;
        }
    }

    /// Keeps records until the clock goes on.
    fn keep(&mut self, mut run: RecordRun) {
        while run.count > 0 {
            let end = self.records.group_end(run.lsn);
            let (now, later) = run.split(run.before(end).max(1));
            let bytes = now.count * now.total_bytes;
            self.records.add(UntimedGroup {
                lsn: now.lsn,
                end: now.end(),
                count: now.count,
                bytes,
            });
            run = later;
        }
    }

    fn forget_past(&mut self) {
        if self.seconds.len() > SECONDS {
            let now = self.last.map_or(0, |last| last.time.second());
            self.sum_up(i64::MIN, now - COMPLETE);
            self.sum_up(now + COMPLETE, i64::MAX);
        }
    }

    /// Sums up the seconds in `[from, until)`.
    fn sum_up(&mut self, from: i64, until: i64) {
        for (second, row) in self.seconds.take_range(from, until) {
            extend_span(&mut self.span, second);
            self.busy += i64::from(row.tally.count > 0);
            self.peaks.add(second, row.tally.total_bytes);
            self.past.add(second, &row);
            if let Some(quarters) = &mut self.quarters {
                quarters.add(second, &row);
            }
        }
        self.widen();
    }

    /// Widens the buckets if they are too many.
    fn widen(&mut self) {
        let width = match self.config.bucket_seconds {
            None => self.auto_width(),
            Some(_) if self.past.len() > BUCKETS => self.past.width().saturating_mul(10),
            Some(_) => return,
        };
        if width > self.past.width() {
            self.past = std::mem::take(&mut self.past).widened(width);
        }
    }

    fn auto_width(&self) -> i64 {
        let Some((first, last)) = self.span else { return 1 };
        let fits = |width: &i64| last.div_euclid(*width) - first.div_euclid(*width) < AUTO_BUCKETS;
        let widest = WIDTHS[WIDTHS.len() - 1];
        WIDTHS.into_iter().find(fits).unwrap_or(widest)
    }

    /// Nothing follows: `ticks` are the last ones.
    pub fn finish(mut self, ticks: &[Tick]) -> FinishedCourse {
        for tick in ticks {
            self.tick(tick);
        }
        let has_clock = self.last.is_some();
        let mut interval = Interval::new(self.last, None);
        let mut second_at = |lsn| interval.second_at(lsn).map_or(0, |(second, _)| second);
        for group in self.records.drain_before(u64::MAX) {
            let row = self.seconds.at(second_at(group.lsn));
            row.add_records(group.count, group.bytes, group.lsn, group.end);
        }
        for group in self.images.drain_before(u64::MAX) {
            self.seconds.at(second_at(group.lsn)).add_images(group.count, group.bytes);
        }
        self.sum_up(i64::MIN, i64::MAX);
        let idle = self.span.map(|(first, last)| {
            let seconds = last.saturating_sub(first).saturating_add(1);
            seconds.saturating_sub(self.busy).max(0) as f64 / seconds as f64
        });
        FinishedCourse {
            buckets: self.past,
            has_clock,
            peaks: self.peaks,
            idle_ratio: idle.filter(|_| has_clock),
            quarters: self.quarters,
        }
    }
}
