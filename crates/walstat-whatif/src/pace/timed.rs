//! Checkpoints as the server times them: by the WAL written since the last redo point and by the
//! clock (`XLogCheckpointNeeded` and `CalculateCheckpointSegments` in
//! `src/backend/access/transam/xlog.c`, `CheckpointerMain` and `IsCheckpointOnSchedule` in
//! `src/backend/postmaster/checkpointer.c`).

use super::super::base::Base;
use super::super::base::clock::{NAP_MICROS, time_at};
use super::super::blocks::Ordinal;
use super::super::position::Geometry;
use super::super::settings::Timed;
use super::as_in_base::AsInBase;
use super::shown::{segments_of, timeout_of};
use super::staying::Staying;
use super::{Begin, Event};
use walstat_format::lsn::Lsn;
use walstat_format::payload::{SECOND, Time};
use walstat_format::version::Pacing;

/// State of the checkpointer.
pub(crate) struct TimedPace<'b> {
    geometry: Geometry,
    settings: TimedSettings<'b>,
    redo_segment: u64,
    /// Segments before this one are full and written.
    written: u64,
    running: Option<RunningCheckpoint>,
    /// Whether another one was asked for while one runs.
    pending: bool,
    due: Option<Due>,
    rate: WriteRate,
    clock: ClockRequest,
    /// When the last one was complete.
    completed: i64,
    now: Option<Time>,
}

/// What stays as it is while the server runs.
struct TimedSettings<'b> {
    /// `CheckPointSegments`: a checkpoint is requested when as many segments are full, counted
    /// from the one with the redo point.
    segments: Option<u64>,
    timeout: i64,
    /// How much is written while a checkpoint runs, and how long it takes at most.
    spread_bytes: u64,
    spread_time: i64,
    /// How long it takes at least, by the clock of these commits.
    least_time: i64,
    /// How much later than in the base whoever waits for a checkpoint that is spread goes on, and how long
    /// it takes in the base; `None` where the timeout is the same.
    waits: Option<Waits>,
    commits: &'b [(Ordinal, Time)],
    requests_lost: bool,
    late_segments: u64,
    late_micros: i64,
    unbuffered: bool,
    as_in_base: AsInBase,
    clock_off: i64,
}

/// A checkpoint that is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Due {
    /// From which position on it may begin.
    from: u64,
    /// And from when on, by the base's clock.
    not_before: Option<i64>,
}

/// How fast WAL is written, as the last commits tell.
#[derive(Debug, Clone, Copy, Default)]
struct WriteRate {
    /// That of the range so far, which it is not taken to be slower than; bytes in a microsecond. Before that
    /// is known, the base's.
    least: f64,
    last: f64,
    since: Option<(i64, u64)>,
    first: Option<(i64, u64)>,
}

impl WriteRate {
    /// Between two commits that are nearer to each other nothing is measured, microseconds.
    const MEASURED: i64 = 100_000;

    fn of(base: &Base) -> WriteRate {
        let least = base.bytes_per_second().unwrap_or(0.0) / SECOND as f64;
        WriteRate { least, ..WriteRate::default() }
    }

    fn after_commit(&mut self, time: Time, end: Lsn) {
        let since = |begun: &mut Option<(i64, u64)>, least: i64| {
            let (begun, from) = *begun.get_or_insert((time.0, end.0));
            let passed = time.0.saturating_sub(begun);
            (passed >= least).then(|| end.0.saturating_sub(from) as f64 / passed as f64)
        };
        self.least = since(&mut self.first, SECOND).unwrap_or(self.least);
        if let Some(last) = since(&mut self.since, WriteRate::MEASURED) {
            self.last = last;
            self.since = Some((time.0, end.0));
        }
    }

    /// How much is written in so many microseconds.
    fn bytes_in(&self, micros: i64) -> u64 {
        (self.last.max(self.least) * micros as f64) as u64
    }
}

/// When the clock asks for a checkpoint.
#[derive(Debug, Clone, Copy, Default)]
struct ClockRequest {
    /// Before which record it asks for the next one, as it did in the base.
    before: Option<Ordinal>,
    /// When it asks for the next one otherwise.
    at: Option<i64>,
    /// When it asked for the one that is due.
    asked: Option<i64>,
}

/// A checkpoint that runs.
struct RunningCheckpoint {
    until: u64,
    until_time: Option<i64>,
    /// Not before that, however much is written.
    not_before: Option<i64>,
}

/// A backup without `-c fast` waits for a checkpoint that takes its part of checkpoint_timeout, and what is
/// done after the backup with it.
#[derive(Debug, Clone, Copy)]
struct Waits {
    in_base: i64,
    longer: i64,
}

impl Waits {
    fn of(base: &Base, timed: Timed, target: f64) -> Option<Waits> {
        let spread = |timeout: i64| (timeout as f64 * target) as i64;
        let asked = timed.timeout.filter(|_| !timed.backups_at_once)?;
        let own = base.shown.timeout_seconds.and(Some(timeout_of(base)))?;
        Some(Waits { in_base: spread(own), longer: spread(asked).saturating_sub(spread(own)) })
    }

    /// How much longer than in the base it takes until somebody commits again.
    fn after(&self, silence: i64) -> i64 {
        // The server sleeps on the way, and is done a little before.
        if silence >= self.in_base.saturating_sub(SECOND) { self.longer } else { 0 }
    }
}

/// How long it waits where there was nothing to do.
const IDLE_WAIT_MICROS: i64 = Pacing::IDLE_SECONDS * SECOND;

/// Whether a checkpoint may still run when the next one is asked for: it ends a nap late, in which
/// more is written than is left of the distance.
pub(crate) fn may_overlap(base: &Base, timed: Timed, geometry: Geometry) -> bool {
    let pacing = base.version.pacing;
    let target = timed.completion_target.unwrap_or(pacing.completion_target);
    let Some(bytes) = timed.max_wal_size else { return false };
    let segments = pacing.checkpoint_segments(bytes, geometry.segment, target);
    let left = segments as f64 * geometry.segment as f64 * (1.0 - target);
    base.bytes_per_second().is_some_and(|rate| rate * (NAP_MICROS as f64 / 1e6) > left)
}

impl RunningCheckpoint {
    /// One of the base: its record ends it.
    const OF_BASE: RunningCheckpoint =
        RunningCheckpoint { until: u64::MAX, until_time: None, not_before: None };
}

impl<'b> TimedPace<'b> {
    /// As the settings, the base and the release say.
    pub(crate) fn new(base: &'b Base, timed: Timed, geometry: Geometry) -> TimedPace<'b> {
        let pacing = base.version.pacing;
        let target = timed.completion_target.unwrap_or(pacing.completion_target);
        let segments = match timed.max_wal_size {
            Some(bytes) => Some(pacing.checkpoint_segments(bytes, geometry.segment, target)),
            // As many bytes, in segments of this run.
            None => segments_of(base)
                .map(|segments| (segments * base.geometry.segment / geometry.segment).max(1)),
        };
        let timeout = timed.timeout.unwrap_or_else(|| timeout_of(base));
        let before = base.checkpoint_before();
        let as_in_base = AsInBase::of(base, timed);
        let redo = before.map_or(base.start, |checkpoint| checkpoint.redo);
        let runs_at_start = before
            .and_then(|checkpoint| checkpoint.record)
            .is_some_and(|record| record >= base.first);
        // Without a limit only the clock ends a checkpoint.
        let spread = segments.map_or(u64::MAX, |segments| {
            (segments as f64 * geometry.usable_per_segment() as f64 * target) as u64
        });
        // A server that starts looks at its clock anew.
        let online = before.filter(|checkpoint| checkpoint.online);
        let asks_at = |begun: Time| due_after(begun.0, timeout) + timed.clock_off;
        let clock = ClockRequest {
            before: before.and_then(|checkpoint| as_in_base.after(checkpoint.first)),
            at: online.map(|checkpoint| asks_at(checkpoint.time)),
            asked: None,
        };
        let settings = TimedSettings {
            segments,
            timeout,
            spread_bytes: spread,
            spread_time: (timeout as f64 * target) as i64,
            least_time: timed.least_micros,
            waits: Waits::of(base, timed, target),
            commits: &base.commits,
            requests_lost: timed.requests_lost,
            late_segments: timed.late_segments,
            late_micros: timed.late_micros,
            unbuffered: timed.unbuffered,
            as_in_base,
            clock_off: timed.clock_off,
        };
        TimedPace {
            geometry,
            settings,
            redo_segment: redo.0 / geometry.segment,
            written: base.start.0 / geometry.segment,
            running: runs_at_start.then_some(RunningCheckpoint::OF_BASE),
            pending: false,
            due: None,
            rate: WriteRate::of(base),
            clock,
            completed: i64::MIN,
            now: None,
        }
    }

    /// What happens next before a record that would begin at `usable`.
    pub(crate) fn next(&mut self, ordinal: Ordinal, usable: u64) -> Option<Event> {
        let is_over = |running: &RunningCheckpoint| {
            let late = running.until_time.zip(self.now).is_some_and(|(end, now)| now.0 >= end);
            let is_time =
                || running.not_before.is_none_or(|least| self.time(ordinal) >= Some(least));
            (usable >= running.until || late) && is_time()
        };
        if self.running.as_ref().is_some_and(is_over) {
            self.end_running();
            return Some(Event::Complete);
        }
        self.write_by_buffers(ordinal, usable);
        if self.clock.before.take_if(|due| *due <= ordinal).is_some() {
            self.request(Due { from: usable, not_before: None });
        }
        let commits = self.settings.commits;
        let is_reached = |due: &mut Due| {
            due.from <= usable
                && due
                    .not_before
                    .is_none_or(|time| time_at(commits, ordinal).is_some_and(|now| now.0 >= time))
        };
        if self.running.is_some() || self.due.take_if(is_reached).is_none() {
            return None;
        }
        // By the clock it begins when it is due, whoever commits next.
        let begun = self.clock.asked.take().or(self.now.map(|now| now.0));
        self.clock.before = self.settings.as_in_base.after(ordinal);
        self.clock.at = begun.map(|begun| self.due_after(begun)).or(self.clock.at);
        // What the clock asks for until now has nothing to write: nobody committed since then.
        if let (Some(due_at), Some(now)) = (&mut self.clock.at, self.now) {
            *due_at = after_waits(*due_at, now.0);
        }
        self.running = Some(RunningCheckpoint {
            until: usable.saturating_add(self.settings.spread_bytes),
            until_time: begun.map(|begun| begun.saturating_add(self.settings.spread_time)),
            not_before: self
                .time(ordinal)
                .map(|begun| begun.saturating_add(self.settings.least_time)),
        });
        Some(Event::Begin(Begin::Paced))
    }

    /// When a record is written, where checkpoints take a time at least.
    fn time(&self, ordinal: Ordinal) -> Option<i64> {
        time_at(self.settings.commits, ordinal)
            .filter(|_| self.settings.least_time > 0)
            .map(|time| time.0)
    }

    /// A checkpoint of the base begins: one that runs is ended at once, or by a crash never.
    pub(crate) fn make_way(&mut self, staying: &Staying) -> Option<Event> {
        let running = self.running.take();
        (self.pending, self.due, self.clock.asked) = (false, None, None);
        if running.is_some() && !staying.ends_recovery {
            return Some(Event::Complete);
        }
        // A server that starts looks at its clock anew.
        let wait = self.settings.waits.map_or(0, |waits| waits.after(staying.silence));
        // By the base's clock, in which it takes as long as there.
        let due_at = self.due_after(staying.time.0).saturating_sub(wait);
        self.clock.before = self.settings.as_in_base.after(staying.first);
        self.clock.at = staying.online.then_some(due_at);
        self.running = Some(RunningCheckpoint::OF_BASE);
        None
    }

    /// When the clock asks for the next one: the server counts whole seconds, and looks within the next
    /// one.
    fn due_after(&self, begun: i64) -> i64 {
        due_after(begun, self.settings.timeout).saturating_add(self.settings.clock_off)
    }

    /// The one that runs is complete. Another one that was asked for begins at once: the checkpointer is
    /// awake.
    fn end_running(&mut self) {
        self.running = None;
        if std::mem::take(&mut self.pending) && !self.settings.requests_lost {
            self.due = Some(Due::default());
        }
    }

    /// The record of a checkpoint of the base was written.
    pub(crate) fn base_completed(&mut self) {
        self.end_running();
        self.completed = self.now.map_or(i64::MIN, |now| now.0);
    }

    /// Up to which position nothing happens until the next commit.
    pub(crate) fn quiet(&self) -> u64 {
        let ends = self.running.as_ref().map_or(u64::MAX, |running| running.until);
        let is_late = self.running.as_ref().and_then(|running| running.until_time).zip(self.now);
        if self.due.is_some() || is_late.is_some_and(|(end, now)| now.0 >= end) {
            return 0;
        }
        // A segment that the buffers hold is written when the one after it is on its last page.
        let segment = self.geometry.usable_per_segment();
        let held = if self.settings.unbuffered { 1 } else { 2 };
        let full = self.written.saturating_add(held).saturating_mul(segment);
        ends.min(full.saturating_sub(self.geometry.page))
    }

    /// Before which record the clock asks for a checkpoint as in the base.
    pub(crate) fn next_as_in_base(&self) -> Ordinal {
        self.clock.before.unwrap_or(Ordinal::MAX)
    }

    /// Whether something may happen before a record that begins at `usable` at most.
    pub(crate) fn is_due(&self, ordinal: Ordinal, usable: u64) -> bool {
        let ends = self.running.as_ref().is_some_and(|running| usable >= running.until);
        let segment = self.geometry.start(usable).0 / self.geometry.segment;
        let fills = segment > self.written && self.is_needed(segment);
        let by_clock = self.clock.before.is_some_and(|due| due <= ordinal);
        self.due.is_some() || ends || fills || by_clock
    }

    /// Whether a full segment asks for a checkpoint.
    fn is_needed(&self, segment: u64) -> bool {
        let late = self.settings.late_segments;
        self.settings
            .segments
            .is_some_and(|segments| segment + 1 >= self.redo_segment + segments + late)
    }

    /// Without commits WAL is written when its buffers are full, which hold a segment: a page is written when
    /// the one that takes its place in them begins (`AdvanceXLInsertBuffer`). Or before, by the walwriter.
    fn write_by_buffers(&mut self, ordinal: Ordinal, usable: u64) {
        let Geometry { page, segment } = self.geometry;
        let begun = (self.geometry.start(usable).0 / page + 1) * page;
        let buffered = if self.settings.unbuffered { page } else { segment };
        let commits = self.settings.commits;
        self.written_up_to(begun.saturating_sub(buffered) / segment, usable, || {
            time_at(commits, ordinal)
        });
    }

    /// Segments before this one are written, while the next record begins at `usable`.
    fn written_up_to(&mut self, segment: u64, usable: u64, now: impl FnOnce() -> Option<Time>) {
        // Each full segment asks, and all of them ask for the same.
        if self.written < segment && self.is_needed(segment - 1) {
            let late = self.settings.late_micros;
            // Between two commits far apart, time says little of how fast a statement writes.
            let from = usable.saturating_add(self.rate.bytes_in(late));
            let asked = if late > 0 { now() } else { None };
            let not_before = asked.map(|asked| asked.0.saturating_add(late));
            self.request(Due { from, not_before });
        }
        self.written = self.written.max(segment);
    }

    /// Asks for a checkpoint.
    fn request(&mut self, due: Due) {
        match self.running {
            Some(_) => self.pending = true,
            None => self.due = self.due.or(Some(due)),
        }
    }

    /// A checkpoint began at `redo`.
    pub(crate) fn began(&mut self, redo: Lsn) {
        self.redo_segment = redo.0 / self.geometry.segment;
    }

    /// A commit was written, up to `end`.
    pub(crate) fn after_commit(&mut self, time: Time, end: Lsn) {
        let before = self.now.replace(time);
        self.rate.after_commit(time, end);
        let written = end.0 / self.geometry.segment;
        self.written_up_to(written, self.geometry.usable(end), || Some(time));
        if let Some(until) = self.running.as_ref().and_then(|running| running.until_time) {
            if until > time.0 {
                return;
            }
            self.completed = until;
        } else if self.running.is_some() {
            return;
        }
        self.look_at_clock(before, time);
    }

    /// The clock asks for a checkpoint when it is time; where nothing was written since the last one was
    /// complete, again later (`CreateCheckPoint`, `CheckpointerMain`).
    fn look_at_clock(&mut self, before: Option<Time>, time: Time) {
        if self.clock.before.is_some() {
            return;
        }
        let due_at = self.clock.at.get_or_insert(time.0.saturating_add(self.settings.timeout));
        let is_idle = |before: Time| before.0 < *due_at && before.0 <= self.completed;
        if *due_at <= time.0 && before.is_some_and(is_idle) {
            *due_at = after_waits(*due_at, time.0.saturating_add(1));
        } else if *due_at <= time.0 {
            self.due = Some(Due::default());
            self.clock.asked = Some(*due_at);
        }
    }
}

fn due_after(begun: i64, timeout: i64) -> i64 {
    let second = begun.div_euclid(SECOND).saturating_mul(SECOND);
    second.saturating_add(timeout)
}

/// The first time from `now` on that lies whole waits after `due_at`.
fn after_waits(due_at: i64, now: i64) -> i64 {
    let late = now.saturating_sub(due_at).max(0) as u64;
    let waits = late.div_ceil(IDLE_WAIT_MICROS as u64) as i64;
    due_at.saturating_add(waits.saturating_mul(IDLE_WAIT_MICROS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checkpoints each 30 s, whatever is written.
    fn pace(segment: u64, commits: &[(Ordinal, Time)]) -> TimedPace<'_> {
        let settings = TimedSettings {
            segments: None,
            timeout: 30 * SECOND,
            spread_bytes: u64::MAX,
            spread_time: 27 * SECOND,
            least_time: 0,
            waits: None,
            commits,
            requests_lost: false,
            late_segments: 0,
            late_micros: 0,
            unbuffered: false,
            as_in_base: AsInBase::default(),
            clock_off: 0,
        };
        TimedPace {
            geometry: Geometry { page: 8192, segment },
            settings,
            redo_segment: 1,
            written: 1,
            running: None,
            pending: false,
            due: None,
            rate: WriteRate::default(),
            clock: ClockRequest { at: Some(30 * SECOND), ..ClockRequest::default() },
            completed: i64::MIN,
            now: None,
        }
    }

    /// A segment of 1 MB in each 10 ms, for a second; a checkpoint is wanted after each four.
    fn checkpoints_in_a_burst(least_time: i64) -> usize {
        let commits: Vec<_> = (1..=100).map(|n| (n, Time(i64::from(n) * 10_000))).collect();
        let mut pace = pace(1 << 20, &commits);
        pace.settings = TimedSettings {
            segments: Some(4),
            spread_bytes: 3 << 20,
            least_time,
            requests_lost: true,
            ..pace.settings
        };
        let mut begun = 0;
        for &(ordinal, time) in &commits {
            let usable = pace.geometry.usable(Lsn((1 + u64::from(ordinal)) << 20)) + 100;
            while let Some(event) = pace.next(ordinal, usable) {
                if event == Event::Begin(Begin::Paced) {
                    begun += 1;
                    pace.began(pace.geometry.start(usable));
                }
            }
            pace.after_commit(time, pace.geometry.start(usable));
        }
        begun
    }

    #[test]
    fn a_busy_server_begins_no_checkpoint_while_one_runs() {
        assert_eq!([0, 300_000].map(checkpoints_in_a_burst), [20, 4]);
    }

    /// 1 MB in each 10 ms, a checkpoint after 40 of them.
    #[test]
    fn a_checkpoint_by_volume_may_begin_as_much_later_as_is_written_meanwhile() {
        let commits: Vec<_> = (1..=120).map(|n| (n, Time(i64::from(n) * 5_000))).collect();
        let first_begun = |late_micros| {
            let mut pace = pace(1 << 20, &commits);
            pace.settings = TimedSettings { segments: Some(40), late_micros, ..pace.settings };
            let position = |ordinal: Ordinal| Lsn((2 << 20) + (u64::from(ordinal) << 19));
            commits.iter().find_map(|&(ordinal, time)| {
                let begun = pace.next(ordinal, pace.geometry.usable(position(ordinal)));
                pace.after_commit(time, position(ordinal));
                begun.map(|_| ordinal)
            })
        };
        let at_once = first_begun(0).expect("a checkpoint");
        assert_eq!(first_begun(50_000), Some(at_once + 10));
    }

    #[test]
    fn within_a_statement_a_checkpoint_begins_later_by_the_clock() {
        // A statement of 2 s, which writes 40 MB, and small ones before.
        let small = (1..=150).map(|n| (n, Time(i64::from(n) * 10_000)));
        let commits: Vec<_> = small.chain([(1150, Time(3_500_000))]).collect();
        let first_begun = |late_micros| {
            let mut pace = pace(1 << 20, &commits);
            pace.settings = TimedSettings { segments: Some(20), late_micros, ..pace.settings };
            let position = |ordinal: Ordinal| {
                Lsn((2 << 20)
                    + 1_000 * u64::from(ordinal)
                    + 40_000 * u64::from(ordinal.max(150) - 150))
            };
            (1..=1150).find_map(|ordinal| {
                let begun = pace.next(ordinal, pace.geometry.usable(position(ordinal)));
                if let Some((_, time)) = commits.iter().find(|(commit, _)| *commit == ordinal) {
                    pace.after_commit(*time, position(ordinal));
                }
                begun.map(|_| ordinal)
            })
        };
        // 500 records a second.
        let at_once = first_begun(0).expect("a checkpoint");
        assert_eq!(first_begun(50_000), Some(at_once + 25));
    }

    #[test]
    fn a_run_is_as_fast_as_it_was_so_far_and_not_as_its_base() {
        let mut rate = WriteRate { least: 50.0, ..WriteRate::default() };
        let bytes_after = |micros: i64| {
            rate.after_commit(Time(micros), Lsn(2 * micros as u64));
            rate.bytes_in(1_000)
        };
        assert_eq!([0, 999_999, 1_000_000].map(bytes_after), [50_000, 50_000, 2_000]);
    }

    #[test]
    fn silence_of_any_length_is_passed_over_at_once() {
        assert_eq!(after_waits(100, 100), 100);
        assert_eq!(after_waits(100, 101), 100 + IDLE_WAIT_MICROS);
        let year_9999 = 253_000_000_000 * SECOND;
        let due = after_waits(0, year_9999);
        assert!((year_9999..year_9999 + IDLE_WAIT_MICROS).contains(&due));
    }

    #[test]
    fn what_comes_after_a_backup_comes_as_much_later_as_its_checkpoint_takes() {
        let waits = Waits { in_base: 27 * SECOND, longer: 27 * SECOND };
        assert_eq!([0, 25, 27, 40].map(|seconds| waits.after(seconds * SECOND)), {
            [0, 0, 27 * SECOND, 27 * SECOND]
        });
    }

    /// Bursts of 8 s, 33 s of silence between: after a checkpoint whose record is written in the silence, the
    /// next one that the clock asks for has nothing to write (as PostgreSQL 15 did it).
    #[test]
    fn an_idle_server_skips_what_the_clock_asks_for() {
        let mut pace = pace(16 << 20, &[]);
        let mut begun = Vec::new();
        let commits = (0..4).flat_map(|burst| (0..=8).map(move |second| burst * 41 + second));
        for (usable, second) in (16u64 << 20..).zip(commits) {
            while let Some(event) = pace.next(0, usable) {
                if event == Event::Begin(Begin::Paced) {
                    begun.push(second);
                }
            }
            pace.after_commit(Time(second * SECOND), Lsn(usable));
        }
        assert_eq!(begun, [42, 123]);
    }
}
