//! When WAL was written, as rows of the model: what was found over time, with what was asked about
//! rates and delays.

mod checkpoints;
mod evidence;
mod overview;
mod padding;
mod span;

use super::build::rfc3339;
use super::model::when::{
    Backlog, BucketRow, Commits, HourRow, Peak, Peaks, PerSecond, Recovery, RecoveryRow,
    Replication, Timeline,
};
pub(crate) use overview::{overview, replays_at_least};

use super::model::percent::percent;
use super::model::{Numbers, Report};
use super::settings::pace;
use jiff::tz::TimeZone;
use walstat_analyse::checkpoint::cause::Judged;
use walstat_analyse::checkpoint::server::{KnownPace, Server};
use walstat_analyse::checkpoint::{Cycles, Replay};
use walstat_analyse::commit::Pressure;
use walstat_analyse::course;
use walstat_analyse::course::{Bucket, Buckets, FinishedCourse};
use walstat_analyse::deferred_log::Tally;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::ratios::ratio;
use walstat_analyse::replication::GrowthCurve;
use walstat_analyse::time_map::{ClockGaps, GAP};
use walstat_analyse::when::WhenFound;
use walstat_format::payload::{SECOND, Time};
use walstat_format::version::Version;
use walstat_names::server_settings::ServerSettings;
use walstat_read::input::plan::Plan;

/// Replay runs at so many bytes a second on common hardware, slow and fast.
pub(crate) const REPLAY_RATES: (u64, u64) = (50 << 20, 150 << 20);

/// What was asked about what was found.
#[derive(Debug, Clone)]
pub struct Questions {
    /// The time zone of hours.
    pub zone: TimeZone,
    /// A link's rate, in bytes a second.
    pub link_rate: Option<u64>,
    /// A standby's rates, slow and fast.
    pub replay_rates: Option<(u64, u64)>,
    /// The longest delay, in seconds.
    pub max_lag: Option<u64>,
}

/// Nothing special: hours are those of UTC.
impl Default for Questions {
    fn default() -> Questions {
        Questions { zone: TimeZone::UTC, link_rate: None, replay_rates: None, max_lag: None }
    }
}

/// Where the WAL comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// Bytes of a segment.
    pub(crate) segment_bytes: u32,
    /// The release that wrote it.
    pub(crate) version: &'static Version,
    /// When the server's settings begin checkpoints, if they are known.
    pub(crate) pace: Option<KnownPace>,
    /// Its archive_timeout in seconds, if it is known.
    pub(crate) archive_timeout: Option<u64>,
}

impl Origin {
    /// Where that of a plan comes from.
    pub(crate) fn of(plan: &Plan, settings: Option<&ServerSettings>) -> Origin {
        let version = plan.version();
        let pace = settings.and_then(pace);
        let archive_timeout = settings.and_then(|settings| settings.archive_timeout);
        Origin { segment_bytes: plan.geometry.segment_bytes, version, pace, archive_timeout }
    }

    /// What is known of the server.
    pub(crate) fn server(&self) -> Server {
        let Origin { segment_bytes, version, pace, archive_timeout } = *self;
        Server { segment_bytes: u64::from(segment_bytes), version, pace, archive_timeout }
    }
}

/// What is to be told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WhenAsked<'q> {
    /// The tables.
    pub(crate) dimensions: &'q Dimensions,
    /// With these questions.
    pub(crate) questions: &'q Questions,
    /// Whose WAL it is.
    pub(crate) origin: Origin,
}

/// Fills the tables that were asked for.
pub(crate) fn fill(report: &mut Report, found: WhenFound, judged: &Judged, asked: &WhenAsked<'_>) {
    let WhenAsked { dimensions, questions, origin } = *asked;
    let asked = |dimension| dimensions.contains(&dimension);
    report.notes.extend(notes(&found));
    if let Some(cycles) = &found.cycles {
        if asked(Dimension::Checkpoint) {
            let (rows, summary) =
                { checkpoints::checkpoints(&found, cycles, &judged.verdicts, &origin.server()) };
            report.checkpoints = Some(rows.into());
            report.checkpoint_summary = Some(summary);
        }
        let rates = questions.replay_rates.unwrap_or(REPLAY_RATES);
        let cycles = span::asked_for(&found, cycles, &judged.verdicts).0;
        report.recovery = asked(Dimension::Recovery).then(|| recovery(&cycles, rates));
    }
    if let Some(curve) = &found.curve {
        let even = found.thin.longest.map(|(longest, _)| (longest / SECOND).unsigned_abs());
        let written = found.written.as_ref().unwrap_or(curve);
        let told = || Replication {
            mean_rate: written.mean_rate(),
            peak_rate: written.peak_rate().filter(|_| found.thin.knows_seconds()),
            longest_even_seconds: even,
            ..replication(curve, questions)
        };
        report.replication = asked(Dimension::Replication).then(told);
    }
    if let Some(course) = found.course.filter(|_| asked(Dimension::Timeline)) {
        report.timeline = Some(timeline(course, questions));
    }
    if let Some(pressure) = found.pressure.filter(|_| asked(Dimension::Commit)) {
        report.commits = Some(commits(&pressure, report.ratios.bytes_per_commit));
    }
}

/// What a reader of the times should know.
pub(crate) fn notes(found: &WhenFound) -> Vec<String> {
    let mut notes = Vec::new();
    if found.span.is_none() {
        notes.push("no record states a time: nothing is known of when".to_owned());
    }
    if found.set_back > 0 {
        let times =
            if found.set_back == 1 { "once".into() } else { format!("{} times", found.set_back) };
        notes.push(format!("the server's clock was set back {times}: times may overlap"));
    }
    notes.extend(thin(&found.thin).filter(|_| found.span.is_some()));
    if found.cycles.as_ref().is_some_and(|cycles| cycles.is_rough) {
        notes.push(
            "the beginning of a checkpoint cycle is off by up to some thousand records: too many lay between \
             its redo point and its checkpoint record to keep each"
                .to_owned(),
        );
    }
    notes
}

/// From such a share of the WAL on it is said that times are not known well.
const THIN: f64 = 0.1;

/// Where the clock is thin, if much WAL lies there.
fn thin(thin: &ClockGaps) -> Option<String> {
    let share = ratio(thin.bytes + thin.flat, thin.all).filter(|share| *share >= THIN)?;
    let share = percent(share, 0);
    let mut text = format!("{share} of the WAL lies where few records state a time: ");
    if let Some((longest, from)) = thin.longest {
        let from = rfc3339(from).unwrap_or_default();
        text.push_str(&format!(
            "{} stretches of more than {} s, the longest {} s from {from}, are taken for even; ",
            thin.stretches,
            GAP / SECOND,
            longest / SECOND
        ));
    }
    text.push_str(&format!(
        "{} bytes before the first and after the last timestamp are counted at those times",
        thin.flat
    ));
    Some(text)
}

fn numbers(tally: &Tally) -> Numbers {
    Numbers {
        count: tally.count,
        record_bytes: tally.total_bytes.saturating_sub(tally.fpi_bytes),
        fpi_bytes: tally.fpi_bytes,
        total_bytes: tally.total_bytes,
        fpi_count: tally.fpi_count,
    }
}

fn at_second(second: i64) -> Option<String> {
    rfc3339(Time(second.checked_mul(SECOND)?))
}

fn timeline(course: FinishedCourse, questions: &Questions) -> Timeline {
    let has_clock = course.has_clock;
    let by_hour = course.quarters.map(|quarters| hours(quarters, &questions.zone));
    let bucket_seconds = course.buckets.width().unsigned_abs();
    let rows = course.buckets.into_rows();
    let rows = rows.iter().map(|(second, bucket)| bucket_row(*second, bucket, has_clock));
    let rows: Vec<BucketRow> = rows.collect();
    let peak = |peak: Option<course::Peak>| {
        let peak = peak.filter(|_| has_clock);
        Peak {
            time: peak.and_then(|peak| at_second(peak.second)),
            total_bytes: peak.map(|peak| peak.total_bytes),
        }
    };
    Timeline {
        bucket_seconds,
        buckets: rows.into(),
        peaks: Peaks {
            second: peak(course.peaks.second()),
            ten_seconds: peak(course.peaks.ten_seconds()),
            minute: peak(course.peaks.minute()),
        },
        idle_ratio: course.idle_ratio,
        by_hour: by_hour.filter(|_| has_clock),
    }
}

fn bucket_row(second: i64, bucket: &Bucket, has_clock: bool) -> BucketRow {
    BucketRow {
        time: at_second(second).filter(|_| has_clock),
        start_lsn: bucket.range.map(|(start, _)| start.to_string()),
        end_lsn: bucket.range.map(|(_, end)| end.to_string()),
        commits: bucket.commits,
        numbers: numbers(&bucket.tally),
    }
}

/// Quarters of an hour, by the hour of the day in a time zone.
fn hours(quarters: Buckets, zone: &TimeZone) -> Vec<HourRow> {
    let mut hours: Vec<HourRow> =
        (0..24).map(|hour| HourRow { hour, ..HourRow::default() }).collect();
    for (second, bucket) in quarters.into_rows() {
        let Ok(time) = jiff::Timestamp::from_second(second) else { continue };
        let hour = usize::try_from(zone.to_datetime(time).hour()).unwrap_or(0);
        if let Some(row) = hours.get_mut(hour) {
            row.commits += bucket.commits;
            row.numbers.add(&numbers(&bucket.tally));
        }
    }
    hours
}

fn recovery(cycles: &Cycles, rates: (u64, u64)) -> Recovery {
    let row = |replay: &Replay| recovery_row(replay, cycles.written(replay.from, replay.to), rates);
    let rows: Vec<RecoveryRow> = cycles.replays.iter().map(row).collect();
    // The first of equals.
    let worst = rows.iter().rev().max_by_key(|row| row.wal_bytes);
    Recovery {
        at_end: rows.last().cloned(),
        worst: worst.cloned(),
        cycles: rows.into(),
        replay_rate_low: rates.0,
        replay_rate_high: rates.1,
    }
}

fn recovery_row(replay: &Replay, wal_bytes: u64, (low, high): (u64, u64)) -> RecoveryRow {
    let seconds = |rate: u64| wal_bytes as f64 / rate.max(1) as f64;
    RecoveryRow {
        from_lsn: replay.from.to_string(),
        to_lsn: replay.to.to_string(),
        wal_bytes,
        numbers: numbers(&replay.sums.tally),
        distinct_blocks: replay.sums.distinct_blocks,
        blocks_without_fpi: replay.sums.without_image,
        seconds_low: seconds(high),
        seconds_high: seconds(low),
    }
}

fn replication(curve: &GrowthCurve, questions: &Questions) -> Replication {
    let replay_rate = questions.replay_rates.map(|(low, _)| low);
    // The slower of the two holds the other one up.
    let rate = questions.link_rate.into_iter().chain(replay_rate).min();
    Replication {
        never_behind_rate: curve.never_behind_rate(),
        link_rate: questions.link_rate,
        replay_rate,
        max_lag_rate: questions.max_lag.and_then(|lag| curve.max_lag_rate(lag)),
        backlog: rate.map(|rate| backlog(curve, rate)),
        ..Replication::default()
    }
}

fn backlog(curve: &GrowthCurve, rate: u64) -> Backlog {
    let found = curve.backlog(rate);
    Backlog {
        peak_bytes: found.peak_bytes,
        peak_seconds: found.peak_bytes as f64 / rate.max(1) as f64,
        peak_time: found.peak_second.and_then(at_second),
        clear_time: found.clear_second.and_then(at_second),
    }
}

fn commits(pressure: &Pressure, bytes_per_commit: Option<f64>) -> Commits {
    Commits {
        commits: pressure.commits,
        first_time: pressure.span.and_then(|(first, _)| rfc3339(first)),
        last_time: pressure.span.and_then(|(_, last)| rfc3339(last)),
        seconds: pressure.seconds,
        per_second: pressure.per_second.map(|found| PerSecond {
            mean: found.mean,
            median: found.median,
            p99: found.p99,
            peak: found.peak,
            peak_time: at_second(found.peak_second),
        }),
        wal_bytes_per_commit: bytes_per_commit,
        syncs_per_second_low: pressure.syncs_low,
        syncs_per_second_high: pressure.syncs_high,
    }
}
