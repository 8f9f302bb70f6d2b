//! From scenarios to simulated runs, and from these to predictions.

use super::base::Base;
use super::base::clock::NAP_MICROS;
use super::base_checkpoint::{BaseCheckpoint, CauseReading};
use super::outcome::RunOutcome;
use super::own;
use super::pace::shown::segments_of;
use super::pace::timed::may_overlap;
use super::position::Geometry;
use super::recode::{Recoded, Recoding};
use super::replay::replay;
use super::run_range::range_of_run;
use super::scenario::Scenario;
use super::settings::{ArchiveTimeout, Checkpoints, Settings, Timed};
use super::trace::Trace;
use super::uncertainty::{self, Circumstances, SECONDS_BETWEEN, Uncertainty, UncertaintyKind};
use std::num::NonZeroUsize;
use std::time::Duration;
use walstat_analyse::archive_timeout;
use walstat_analyse::checkpoint::cause::Cause;
use walstat_format::ordered::OrderBy;
use walstat_format::payload::SECOND;

/// A run that is simulated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedRun {
    /// Place of its scenario.
    pub(crate) scenario: usize,
    /// Which way the server goes.
    pub(crate) way: Way,
    /// Its settings.
    pub(crate) settings: Settings,
    /// How images are compressed that the base does not have so. The pages themselves are needed
    /// then.
    pub(crate) codec: Option<Recoding>,
}

/// A way that a server may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One that it may go at any time.
    Usual,
    /// It does not keep up with checkpoints by volume, and has none: only where they lie close together.
    Behind,
    /// Each takes as long as the base's longest: only where two of them lie close together.
    Busy,
}

/// What a scenario comes to.
#[derive(Debug, Clone, Default)]
pub struct Prediction {
    /// The simulated run.
    pub outcome: RunOutcome,
    /// Least that it can come to, bytes.
    pub low: u64,
    /// Most that it can come to, bytes.
    pub high: u64,
    /// Least that any way comes to which the server may go, bytes.
    pub low_other: u64,
    /// What of it is not certain, in the order in which it is told.
    pub uncertainties: Vec<Uncertainty>,
    /// What codecs took of one processor; `None` where that was not measured.
    pub codec_time: Option<Duration>,
    /// Bytes that they were given.
    pub codec_bytes: u64,
}

/// The runs of scenarios. Where the server itself does not repeat what it does, there is one for each way it
/// may go.
pub(crate) fn runs(base: &Base, scenarios: &[Scenario]) -> Vec<PlannedRun> {
    let of_one = |(scenario, asked): (usize, &Scenario)| {
        let settings = in_effect(base, asked);
        let others = other_ways(base, asked, &settings);
        let ways = std::iter::once((Way::Usual, settings)).chain(others);
        let run = |(way, settings): (Way, Settings)| {
            let codec = codec(base, &settings);
            PlannedRun { scenario, way, settings, codec }
        };
        ways.map(run).collect::<Vec<_>>()
    };
    scenarios.iter().enumerate().flat_map(of_one).collect()
}

/// The settings of a scenario. Where it is known after how much WAL volume begins a checkpoint, settings that
/// make WAL smaller or larger move those of the base, and bring others, too.
fn in_effect(base: &Base, asked: &Scenario) -> Settings {
    let mut settings = own::left_out(base, asked.settings());
    // The clock closes segments that hold less, too.
    if settings != Settings::default() && settings.archive_timeout.is_none() {
        settings.archive_timeout = base.switches.timeout.map(ArchiveTimeout::After);
    }
    let is_as_base = settings.checkpoints == Checkpoints::AsBase && settings != Settings::default();
    let is_shown = || base.has_checkpoints_by(Cause::Wal) && segments_of(base).is_some();
    if is_as_base && (base.segments.is_some() || is_shown()) {
        return Settings { checkpoints: Checkpoints::Timed(Timed::default()), ..settings };
    }
    settings
}

/// What a server may do as well: a request for a checkpoint that comes while one runs may be lost or not,
/// and where that is likely each may be served late; the clock is looked at some time after it is due; and
/// a checkpoint whose cause is not certain may have another one.
fn other_ways(base: &Base, asked: &Scenario, settings: &Settings) -> Vec<(Way, Settings)> {
    let with = |timed| Settings { checkpoints: Checkpoints::Timed(timed), ..settings.clone() };
    let usual = |settings| (Way::Usual, settings);
    let Checkpoints::Timed(timed) = settings.checkpoints else {
        let is_by_clock = settings.checkpoints == Checkpoints::AsBase
            && *settings != Settings::default()
            && base.shown.timeout_seconds.is_some()
            && base.has_checkpoints_by(Cause::Time);
        let ways = by_clock(Timed::default()).into_iter().filter(|_| is_by_clock);
        return ways.map(with).map(usual).collect();
    };
    let segment = settings.segment_bytes.unwrap_or(base.geometry.segment);
    let geometry = Geometry { segment, ..base.geometry };
    let lost = Timed { requests_lost: true, ..timed };
    let has_clock = heeds_clock(base, settings);
    let naps = by_clock(timed).into_iter().filter(|_| has_clock);
    let late = Timed { late_segments: 1, ..timed };
    let late = may_overlap(base, timed, geometry).then_some(late);
    let readings = other_readings(base).map(|reading| Timed { reading, ..timed });
    let without_volume = Timed { late_segments: FAR_SEGMENTS, ..timed };
    // What looks like volume may have been the clock, whose checkpoints are as even where the load is.
    let only_clock =
        (timed.max_wal_size.is_none() && is_volume_doubtful(base)).then_some(without_volume);
    let behind = timed.max_wal_size.map(|_| (Way::Behind, with(without_volume)));
    let unbuffered = Timed { unbuffered: true, ..timed };
    let by_volume = timed.max_wal_size.is_some() || segments_of(base).is_some();
    let woken_late = Timed { late_micros: WAKING_MICROS, ..timed };
    let woken_late = by_volume.then_some(woken_late);
    let busy = Timed { requests_lost: true, least_micros: busy_checkpoint(base), ..timed };
    let all = [lost, unbuffered, busy]
        .into_iter()
        .chain(woken_late)
        .chain(late)
        .chain(backups_at_once(base, timed))
        .chain(naps)
        .chain(readings)
        .chain(only_clock)
        .map(with);
    // Where all causes are certain, those by volume are known to move.
    let unmoved = Some(asked.settings()).filter(|own| own != settings && doubtful(base) > 0);
    let longest = timed.max_wal_size.and_then(|_| base.longest_checkpoint());
    let busier = longest.filter(|longest| *longest > busy.least_micros);
    let busier = busier.map(|least_micros| (Way::Busy, with(Timed { least_micros, ..busy })));
    all.chain(unmoved).map(usual).chain(behind).chain(busier).collect()
}

/// Under another timeout a backup may have waited for its checkpoint or not.
fn backups_at_once(base: &Base, timed: Timed) -> Option<Timed> {
    let has_backups = base.own_checkpoints().any(|own| own.is_of_backup);
    timed.timeout.filter(|_| has_backups)?;
    Some(Timed { backups_at_once: true, ..timed })
}

/// Whether volume began checkpoints of the base is only concluded from how far apart they are.
fn is_volume_doubtful(base: &Base) -> bool {
    let mut own = base.own_checkpoints();
    let is_known = base.segments.is_some() || base.shown.max_wal_size.is_some();
    !is_known && !own.any(|own| own.is_sure() && own.cause == Some(Cause::Wal))
}

/// How long a server is busy with a checkpoint at most where it is behind its schedule, microseconds: what
/// fills meanwhile asks for one that is lost. As long as the base shows, or as any server may take.
fn busy_checkpoint(base: &Base) -> i64 {
    base.unpaced_checkpoint().unwrap_or(0).max(BUSY_MICROS)
}

/// A server of which the base shows nothing took 0.3 to 0.6 s for 3,000 pages beside bulk work, on two
/// processors.
const BUSY_MICROS: i64 = 600_000;

/// By the clock a checkpoint begins within a second of when it is due.
fn by_clock(timed: Timed) -> [Timed; 2] {
    [-NAP_MICROS, SECOND + NAP_MICROS].map(|clock_off| Timed { clock_off, ..timed })
}

/// How long it takes at most until a checkpoint that volume asks for begins: the checkpointer has to wake up,
/// on processors that are busy. (Where 30 MB a second were written, redo points lay 0.3 to 1.3 MB after
/// the end of their segment.)
const WAKING_MICROS: i64 = 50_000;

/// So far away no WAL asks for a checkpoint.
const FAR_SEGMENTS: u64 = 1 << 40;

fn is_by_volume(settings: &Settings) -> bool {
    matches!(settings.checkpoints, Checkpoints::Timed(Timed { max_wal_size: Some(_), .. }))
}

/// Whether a run has as many checkpoints as a server may not keep up with.
fn is_crowded(base: &Base, settings: &Settings, outcome: &RunOutcome) -> bool {
    let count = outcome.redo_points.len() as f64;
    let seconds = base.seconds().unwrap_or(0.0);
    is_by_volume(settings) && count > 1.0 && seconds < count * SECONDS_BETWEEN
}

fn codec(base: &Base, settings: &Settings) -> Option<Recoding> {
    match settings.compression {
        Some(asked) => asked.map(Recoding::With),
        None if *settings == Settings::default() => None,
        None => base.compression.map(|_| Recoding::AsTheBase),
    }
}

/// Simulates runs that need no pages, each thread its share.
pub(crate) fn replay_all(
    trace: &Trace,
    base: &Base,
    runs: &[Settings],
    threads: NonZeroUsize,
) -> Vec<RunOutcome> {
    let share = runs.len().div_ceil(threads.get()).max(1);
    std::thread::scope(|scope| {
        let start = |share| scope.spawn(move || replay(trace, base, share));
        let (own, deltas) = runs.split_at(share.min(runs.len()));
        let deltas: Vec<_> = deltas.chunks(share).map(start).collect();
        let mut outcomes = replay(trace, base, own);
        for delta in deltas {
            match delta.join() {
                Ok(done) => outcomes.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcomes
    })
}

/// The background writer logs the running transactions every 15 s (`LOG_SNAPSHOT_INTERVAL_MS`): how often
/// depends on how long the same work takes.
const SNAPSHOT_BYTES: u64 = 56;
/// So many times more or less, and one in so many: runs of some seconds took up to ten times as long as their
/// base where other work was beside them, long ones keep their pace.
const SNAPSHOTS: u64 = 3;
const SNAPSHOT_PART: u64 = 16;

/// By the clock, and by the volume, a checkpoint begins some records after it is due: so many pages may
/// be changed before it or after it. As many may be read, where that brings images for hint bits.
const LATE_PAGES: u64 = 16;
/// One part in so many: equal runs differ by that where transactions run concurrently. `whatif/remark.rs` of
/// walstat-report and `docs/whatif.md` call it half a percent.
const CONCURRENT_PART: u64 = 200;
/// The same, in all, where requested checkpoints or vacuums fall into running work, since they meet other
/// work in each run. (45 reruns, `docs/whatif-mixed.tsv` and its history: one was farther off, by 1.6 %.)
const MEETS_PART: u64 = 80;
/// The same where the clock places checkpoints, which have other pages to log in each run (up to 2.4 % off).
const CLOCK_PART: u64 = 40;
/// The last look at the clock may come before the end of the range or after it, and the first one too.
const LATE_SWITCHES: u64 = 2;

/// How far a server is from doing at the very record what it does by clock and volume.
fn lateness(
    base: &Base,
    page_bytes: u64,
    settings: &Settings,
    outcome: &RunOutcome,
) -> [Uncertainty; 3] {
    let changed = match settings.checkpoints {
        Checkpoints::Timed(_) | Checkpoints::Time(_) | Checkpoints::Bytes(_) => {
            LATE_PAGES * outcome.placed
        }
        _ => 0,
    };
    let pages = (changed * page_bytes).max(read_late(base, settings, outcome));
    let is_other = *settings != Settings::default();
    let part = |part: u64| if is_other { outcome.bytes / part } else { 0 };
    // The larger one holds the smaller ones: they are about the same work.
    let (clock, side_by_side) = if heeds_clock(base, settings) {
        (part(CLOCK_PART), 0)
    } else if base.has_checkpoints_beside_work() || base.vacuums_beside_work {
        (part(MEETS_PART), 0)
    } else {
        (0, if base.is_concurrent { part(CONCURRENT_PART) } else { 0 })
    };
    [
        Uncertainty { kind: UncertaintyKind::Clock, low: clock, high: clock },
        Uncertainty { kind: UncertaintyKind::SideBySide, low: side_by_side, high: side_by_side },
        Uncertainty { kind: UncertaintyKind::Lateness, low: pages, high: pages },
    ]
}

/// Who reads a page first, which no record tells, comes before a redo point or after it: bytes of images for
/// hint bits.
fn read_late(base: &Base, settings: &Settings, outcome: &RunOutcome) -> u64 {
    let logs_hints = settings.log_hints.unwrap_or(base.log_hints);
    let image = outcome.image_bytes.checked_div(outcome.images).filter(|_| logs_hints);
    LATE_PAGES * outcome.redo_points.len() as u64 * image.unwrap_or(0)
}

/// Whether the clock begins checkpoints, or may.
fn heeds_clock(base: &Base, settings: &Settings) -> bool {
    let mut own = base.own_checkpoints();
    let may_be = own.any(|own| own.online && own.cause == Some(Cause::Time));
    match &settings.checkpoints {
        Checkpoints::AsBase => may_be,
        Checkpoints::Timed(timed) => timed.timeout.is_some() || may_be,
        _ => false,
    }
}

/// Segments that the clock may close or not, and that somebody may have closed.
fn whole_segments(
    base: &Base,
    segment: u64,
    settings: &Settings,
    outcome: &RunOutcome,
) -> [Uncertainty; 2] {
    let (fewer, more) = match settings.archive_timeout {
        Some(ArchiveTimeout::After(wait)) => {
            let looks = base.seconds().unwrap_or(0.0) * 1e6 / wait as f64;
            (LATE_SWITCHES.min(outcome.switches), LATE_SWITCHES.min(1 + looks as u64))
        }
        _ => (0, 0),
    };
    let count = outcome.switches_dropped;
    let of_clock = UncertaintyKind::Lateness;
    let dropped = UncertaintyKind::DroppedSwitches { count };
    [
        Uncertainty { kind: of_clock, low: fewer * segment, high: more * segment },
        Uncertainty { kind: dropped, low: 0, high: count * segment },
    ]
}

/// What servers do not do at the same record each time, but for segments.
fn of_servers(
    base: &Base,
    page_bytes: u64,
    settings: &Settings,
    outcome: &RunOutcome,
) -> Vec<Uncertainty> {
    let is_base = *settings == Settings::default();
    let snapshots = if is_base { 0 } else { SNAPSHOTS + base.snapshots / SNAPSHOT_PART };
    let bytes = snapshots * SNAPSHOT_BYTES;
    let by_clock = lateness(base, page_bytes, settings, outcome).into_iter();
    by_clock
        .chain([Uncertainty { kind: UncertaintyKind::Snapshots, low: bytes, high: bytes }])
        .collect()
}

/// Puts together what the runs of one scenario came to: the first one is the prediction.
pub(crate) fn predict(
    page_bytes: u64,
    base: &Base,
    asked: &Scenario,
    ways: &[(Way, Recoded)],
) -> Prediction {
    let Some((_, first)) = ways.first() else { return Prediction::default() };
    let settings = in_effect(base, asked);
    let is_crowded = is_crowded(base, &settings, &first.outcome);
    let is_close = first.outcome.closest_micros.is_some_and(|closest| closest < BUSY_MICROS);
    let may_be = |way: &Way| match way {
        Way::Usual => true,
        Way::Behind => is_crowded,
        Way::Busy => is_close,
    };
    let ways = || ways.iter().filter(|(way, _)| may_be(way)).map(|(_, run)| run);
    let circumstances = Circumstances {
        page_bytes,
        has_no_images: !base.full_page_writes,
        to_logical: settings.logical == Some(true) && !base.logical,
        writes_images: settings.full_page_writes.unwrap_or(base.full_page_writes),
        has_codec: settings.compression.is_some_and(|codec| codec.is_some()),
    };
    let segment = settings.segment_bytes.unwrap_or(base.geometry.segment);
    // Of the base itself everything is known, and so it is of settings that are its own.
    let is_base = settings == Settings::default();
    let of_servers = of_servers(base, page_bytes, &settings, &first.outcome);
    // Where archive_timeout closes segments, it closes those that are not full any more, too: up to as many
    // as there were. Whether it does is known where the server's settings are.
    let keeps_switches = settings.archive_timeout.is_none() && !is_base && !base.switches.is_set;
    let closes = keeps_switches && base.switches.unexplained() >= archive_timeout::SWITCHES;
    let most_with_switches = if closes { base.bytes() } else { 0 };
    let of_segments = whole_segments(base, segment, &settings, &first.outcome);
    let range_of = |run: &Recoded| {
        let (low, high) = range_of_run(&run.outcome, &of_servers, &circumstances, segment);
        let (fewer, more) = uncertainty::sums(&of_segments);
        (low.saturating_sub(fewer), (high + more).max(most_with_switches))
    };
    let whole = |run: &Recoded| (run.outcome.bytes, run.outcome.bytes);
    let ranges = || ways().map(|run| if is_base { whole(run) } else { range_of(run) });
    let bytes = || ways().map(|run| run.outcome.bytes);
    let differ = bytes().any(|other| other != first.outcome.bytes);
    let mut uncertainties = first.outcome.uncertain.uncertainties(&circumstances);
    uncertainties.extend(of_servers.iter().chain(&of_segments).cloned());
    uncertainties.extend(told(base, &settings, first, is_crowded, differ));
    uncertainties.order_by(|one, other| one.kind.cmp(&other.kind));
    Prediction {
        outcome: first.outcome.clone(),
        low: ranges().map(|(low, _)| low).min().unwrap_or_default(),
        high: ranges().map(|(_, high)| high).max().unwrap_or_default(),
        low_other: bytes().min().unwrap_or_default(),
        uncertainties,
        codec_time: first.codec_time.or(first.needs_no_codec().then_some(Duration::ZERO)),
        codec_bytes: first.codec_bytes,
    }
}

/// Checkpoints of the range whose cause is not certain.
fn doubtful(base: &Base) -> u64 {
    base.own_checkpoints().filter(|own| own.is_doubtful()).count() as u64
}

/// The ways to read those, beside the likely one, as far as they come to something else.
fn other_readings(base: &Base) -> impl Iterator<Item = CauseReading> {
    CauseReading::ENDS.into_iter().filter(|reading| {
        let of = |own: &BaseCheckpoint, reading| own.moved_by(reading).is_some();
        base.own_checkpoints().any(|own| of(own, *reading) != of(own, CauseReading::Likely))
    })
}

/// What is only told: its range is that of all ways, or is not known.
fn told(
    base: &Base,
    settings: &Settings,
    run: &Recoded,
    is_crowded: bool,
    ways_differ: bool,
) -> Vec<Uncertainty> {
    let is_timed = matches!(settings.checkpoints, Checkpoints::Timed(_) | Checkpoints::Time(_));
    let sample = run.sampled_images.map(|compressed| UncertaintyKind::Sample {
        compressed,
        images: run.outcome.images,
        error: run.outcome.uncertain.sample_error,
    });
    let kinds = [
        is_crowded.then_some(UncertaintyKind::CrowdedCheckpoints),
        ways_differ.then_some(UncertaintyKind::LostRequests),
        (is_timed && base.commits.is_empty()).then_some(UncertaintyKind::NoClock),
        is_timed.then(|| UncertaintyKind::DoubtfulCauses { count: doubtful(base) }),
        sample,
    ];
    kinds.into_iter().flatten().map(|kind| Uncertainty { kind, low: 0, high: 0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::base;
    use crate::outcome::RedoPoint;
    use crate::settings::Change;
    use walstat_format::lsn::Lsn;

    fn run(bytes: u64) -> Recoded {
        Recoded { outcome: RunOutcome { bytes, ..RunOutcome::default() }, ..Recoded::default() }
    }

    #[test]
    fn a_server_is_behind_where_checkpoints_are_crowded_only_and_in_any_order_of_the_ways() {
        let (_, base) = base(&[]);
        let asked = Scenario::of([Change::MaxWalSize(64 << 20)]);
        let tags = runs(&base, std::slice::from_ref(&asked));
        assert_eq!(tags.iter().filter(|run| run.way == Way::Behind).count(), 1);
        let point = RedoPoint { base: Lsn(1), simulated: Lsn(1) };
        let least = |count: usize, order: [usize; 3]| {
            let mut first = run(1_000_000);
            first.outcome.redo_points = vec![point; count];
            let ways =
                [(Way::Usual, first), (Way::Behind, run(10_000)), (Way::Usual, run(900_000))];
            let ways = order.map(|index| ways[index].clone());
            predict(8192, &base, &asked, &ways).low_other
        };
        for order in [[0, 1, 2], [0, 2, 1]] {
            assert_eq!((least(1, order), least(2, order)), (900_000, 10_000), "{order:?}");
        }
    }

    #[test]
    fn a_server_is_as_busy_as_in_the_base_where_two_checkpoints_lie_close_together() {
        let (_, base) = base(&[]);
        let asked = Scenario::of([Change::MaxWalSize(64 << 20)]);
        let least = |closest_micros| {
            let mut first = run(1_000_000);
            first.outcome.closest_micros = closest_micros;
            let ways = [(Way::Usual, first), (Way::Busy, run(10_000))];
            predict(8192, &base, &asked, &ways).low_other
        };
        let close = BUSY_MICROS - 1;
        assert_eq!(
            [None, Some(BUSY_MICROS), Some(close)].map(least),
            [1_000_000, 1_000_000, 10_000]
        );
    }

    #[test]
    fn what_meets_other_work_is_less_certain_and_holds_what_runs_side_by_side() {
        let (_, mut base) = base(&[]);
        let asked = Scenario::of([Change::FullPageWrites(false)]);
        let range = |base: &Base| {
            let prediction = predict(8192, base, &asked, &[(Way::Usual, run(1_000_000))]);
            (1_000_000 - prediction.low - 3 * 56, prediction.high - 1_000_000 - 3 * 56)
        };
        base.is_concurrent = true;
        assert_eq!(range(&base), (5_000, 5_000));
        base.vacuums_beside_work = true;
        assert_eq!(range(&base), (12_500, 12_500));
    }

    #[test]
    fn a_size_that_the_base_has_already_counts_where_another_setting_changes_the_volume() {
        let (_, mut base) = base(&[]);
        let (least, most) = base.version.pacing.max_wal_size(4, base.geometry.segment);
        let size = || Change::MaxWalSize(least.midpoint(most));
        let larger = || Change::FullPageWrites(!base.full_page_writes);
        let both = [Scenario::of([larger(), size()]), Scenario::of([larger()])];
        let alone = Scenario::of([size()]);
        base.segments = Some(4);
        // No checkpoint of the base began by volume.
        for asked in both {
            let checkpoints = in_effect(&base, &asked).checkpoints;
            assert_eq!(checkpoints, Checkpoints::Timed(Timed::default()), "{}", asked.id());
        }
        assert_eq!(in_effect(&base, &alone), Settings::default());
    }

    #[test]
    fn the_clock_logs_running_transactions_some_times_more_or_less() {
        let (_, mut base) = base(&[]);
        let asked = Scenario::of([Change::FullPageWrites(false)]);
        let range = |base: &Base| {
            let prediction = predict(8192, base, &asked, &[(Way::Usual, run(1_000_000))]);
            (prediction.low, prediction.high)
        };
        assert_eq!(range(&base), (1_000_000 - 3 * 56, 1_000_000 + 3 * 56));
        base.snapshots = 32;
        assert_eq!(range(&base), (1_000_000 - 5 * 56, 1_000_000 + 5 * 56));
    }

    #[test]
    fn other_runs_without_checkpoints_by_volume_are_not_those_of_a_server_that_is_behind() {
        let (_, base) = base(&[]);
        let asked = Scenario::of([Change::CheckpointTimeout(60 * SECOND)]);
        let runs = runs(&base, &[asked]);
        let is_far = |run: &&PlannedRun| match run.settings.checkpoints {
            Checkpoints::Timed(timed) => timed.late_segments == FAR_SEGMENTS,
            _ => false,
        };
        let far: Vec<Way> = runs.iter().filter(is_far).map(|run| run.way).collect();
        assert_eq!(far, [Way::Usual]);
    }
}
