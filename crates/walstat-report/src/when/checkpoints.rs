//! Checkpoint cycles as rows, and what they come to together.

use super::evidence;
use super::overview::{causes, distances, seconds, spacing, whole};
use super::padding::{by_timeout, rest};
use super::span::asked_for;
use super::{numbers, rfc3339};
use crate::amount::DAY;
use crate::model::when::{Cause, Causes, CheckpointRow, CheckpointSummary, Kind};
use walstat_analyse::checkpoint::cause::Verdict;
use walstat_analyse::checkpoint::server::Server;
use walstat_analyse::checkpoint::{Cycle, Cycles, power_of_two};
use walstat_analyse::ratios::ratio;
use walstat_analyse::time_map::TimeMap;
use walstat_analyse::when::WhenFound;
use walstat_format::payload::SECOND;

/// A shorter range says nothing of a day.
const LEAST_SECONDS: f64 = 60.0;
/// What full_page_writes makes of the pace by the reckoning with which it was proposed to pace
/// checkpoints: progress to the power of 1.5. The servers' own schedule takes WAL for even.
const FULL_PAGE_PACE: f64 = 1.5;

/// One row a cycle, and their summary.
pub(crate) fn checkpoints(
    found: &WhenFound,
    cycles: &Cycles,
    verdicts: &[Option<Verdict>],
    server: &Server,
) -> (Vec<CheckpointRow>, CheckpointSummary) {
    let clock = &found.clock;
    let (cycles, verdicts) = asked_for(found, cycles, verdicts);
    let cycles = &*cycles;
    let mut summary = CheckpointSummary {
        checkpoints: cycles.checkpoints,
        causes: causes(&cycles.cycles, &verdicts),
        spacing_seconds: spacing(seconds(cycles)),
        spacing_bytes: spacing(distances(cycles)),
        ..CheckpointSummary::default()
    };
    summary.forced_ratio = forced(&summary.causes);
    spread(&mut summary, &cycles.cycles);
    cost(&mut summary, &cycles.cycles);
    switches(&mut summary, cycles, clock, server);
    let rows = cycles.cycles.iter().zip(verdicts);
    (rows.map(|(cycle, verdict)| row(cycle, verdict, clock)).collect(), summary)
}

fn row(cycle: &Cycle, verdict: Option<Verdict>, clock: &TimeMap) -> CheckpointRow {
    let ended = cycle.checkpoint.as_ref();
    let time = match ended {
        Some(ended) => Some(ended.seen.says.time),
        None => cycle.redo.and_then(|redo| clock.at(redo)),
    };
    let kind = match ended.map(|ended| ended.seen.is_shutdown) {
        Some(true) => Some(Kind::Shutdown),
        Some(false) => Some(Kind::Online),
        // A record marks where it began, and none where it ended.
        None => cycle.redo.map(|_| Kind::Online),
    };
    let by_time = cycle.by_time.and_then(|found| found.images);
    CheckpointRow {
        redo_lsn: cycle.redo.map(|redo| redo.to_string()),
        start_lsn: cycle.start.to_string(),
        end_lsn: cycle.end.to_string(),
        checkpoint_lsn: ended.map(|ended| ended.lsn.to_string()),
        kind,
        time: time.and_then(rfc3339),
        spread_seconds: cycle.took.map(in_seconds),
        cause: verdict.as_ref().map(|verdict| verdict.cause),
        cause_confidence: verdict
            .as_ref()
            .filter(|verdict| verdict.cause != Cause::ShutdownOrRecovery)
            .map(|verdict| verdict.confidence),
        cause_evidence: verdict.map(|verdict| evidence::sentence(&verdict.evidence)),
        numbers: numbers(&cycle.tally),
        distinct_blocks: cycle.distinct_blocks,
        fpi_first_tenth_ratio: cycle.decay.map(|decay| decay.first_tenth),
        fpi_first_quarter_ratio: cycle.decay.map(|decay| decay.first_quarter),
        fpi_first_half_ratio: cycle.decay.map(|decay| decay.first_half),
        fpi_first_tenth_time_ratio: by_time.map(|[tenth, _, _]| tenth),
        fpi_first_quarter_time_ratio: by_time.map(|[_, quarter, _]| quarter),
        fpi_first_half_time_ratio: by_time.map(|[_, _, half]| half),
        fpi_decay: cycle.decay.map(|decay| decay.tenths),
        fpi_decay_exponent: cycle.decay.map(|decay| decay.exponent),
        wal_pace_exponent: cycle.by_time.map(|found| found.pace),
        brought_fpi_count: cycle.brought,
        brought_fpi_bytes: brought_bytes(cycle),
    }
}

fn in_seconds(microseconds: u64) -> f64 {
    microseconds as f64 / SECOND as f64
}

/// Bytes of the images that a checkpoint brought, each taken for an average one of its cycle.
fn brought_bytes(cycle: &Cycle) -> Option<u64> {
    let bytes = u128::from(cycle.brought?) * u128::from(cycle.tally.fpi_bytes);
    Some((bytes / u128::from(cycle.tally.fpi_count.max(1))) as u64)
}

/// Share of those that did not wait for their time, among those that a running server began; `None`
/// where it is not known of most of them why.
fn forced(causes: &Causes) -> Option<f64> {
    let forced = causes.wal + causes.requested;
    let known = forced + causes.time;
    ratio(forced, known).filter(|_| causes.unknown <= known)
}

/// How whole cycles go: by half of them, and their images all together.
fn spread(summary: &mut CheckpointSummary, cycles: &[Cycle]) {
    summary.spread_seconds = median(cycles.iter().filter_map(|cycle| cycle.took.map(in_seconds)));
    let paces = whole(cycles).filter_map(|cycle| cycle.by_time.map(|found| found.pace));
    let pace = median(paces);
    summary.wal_pace_exponent = pace;
    summary.wal_pace_beyond_full_page_writes = pace.map(|pace| pace - FULL_PAGE_PACE);
    summary.half_of_wal_time_ratio = pace.map(|pace| power_of_two(-pace));
    let by_wal = |cycle: &Cycle| {
        cycle.decay.map(|decay| [decay.first_tenth, decay.first_quarter, decay.first_half])
    };
    [
        summary.fpi_first_tenth_ratio,
        summary.fpi_first_quarter_ratio,
        summary.fpi_first_half_ratio,
    ] = shares(cycles, by_wal);
    [
        summary.fpi_first_tenth_time_ratio,
        summary.fpi_first_quarter_time_ratio,
        summary.fpi_first_half_time_ratio,
    ] = shares(cycles, |cycle| cycle.by_time.and_then(|found| found.images));
}

/// Shares of the images of whole cycles together, as far as they are known.
fn shares(cycles: &[Cycle], of: impl Fn(&Cycle) -> Option<[f64; 3]>) -> [Option<f64>; 3] {
    let (mut first, mut all) = ([0.0; 3], 0.0);
    for (cycle, shares) in whole(cycles).filter_map(|cycle| Some((cycle, of(cycle)?))) {
        let bytes = cycle.tally.fpi_bytes as f64;
        first.iter_mut().zip(shares).for_each(|(sum, share)| *sum += bytes * share);
        all += bytes;
    }
    first.map(|sum| (all > 0.0).then(|| sum / all))
}

/// What one more checkpoint brings, on average of whole cycles.
fn cost(summary: &mut CheckpointSummary, cycles: &[Cycle]) {
    let brought = || whole(cycles).filter(|cycle| cycle.brought.is_some());
    let count = brought().count() as u64;
    summary.brought_fpi_count = ratio(brought().filter_map(|cycle| cycle.brought).sum(), count);
    summary.brought_fpi_bytes = ratio(brought().filter_map(brought_bytes).sum(), count);
}

/// What switches to the next segment leave unused.
fn switches(summary: &mut CheckpointSummary, cycles: &Cycles, clock: &TimeMap, server: &Server) {
    let elapsed = clock.span().map_or(0, |(first, last)| last.0.saturating_sub(first.0));
    let seconds = elapsed as f64 / SECOND as f64;
    let a_day = |bytes: u64| (seconds >= LEAST_SECONDS).then(|| bytes as f64 * DAY / seconds);
    summary.switches = cycles.switches.len() as u64;
    summary.switch_bytes = cycles.switches.iter().map(|one| rest(one, server)).sum();
    summary.switch_bytes_per_day = a_day(summary.switch_bytes);
    let Some(padding) = by_timeout(cycles, clock, server).filter(|found| found.bytes > 0) else {
        return;
    };
    summary.archive_timeout_seconds = Some(padding.timeout_seconds);
    summary.archive_timeout_bytes_per_day = a_day(padding.bytes);
}

/// Half of them are no more than this.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_analyse::checkpoint::Switched;
    use walstat_analyse::time_map::Anchor;
    use walstat_format::lsn::Lsn;
    use walstat_format::payload::Time;

    const SEGMENT: u64 = 1 << 20;

    /// What is said of switches at these seconds, each in a segment of its own, where backups end here.
    fn said(at: &[i64], backups: &[u64], archive_timeout: Option<u64>) -> CheckpointSummary {
        let mut clock = TimeMap::default();
        let mut cycles = Cycles::default();
        backups.iter().for_each(|place| cycles.other_switches.ends_segment(Lsn(*place)));
        for (number, second) in at.iter().enumerate() {
            let end = Lsn(number as u64 * SEGMENT + SEGMENT / 4);
            let time = Time(second * SECOND);
            clock.push(Anchor { lsn: end, time });
            clock.push(Anchor { lsn: Lsn((number as u64 + 1) * SEGMENT), time });
            cycles.switches.push(Switched { end, time: Some(time) });
        }
        let server = Server {
            segment_bytes: SEGMENT,
            version: walstat_format::version::VERSIONS.last().expect("a release"),
            pace: None,
            archive_timeout,
        };
        let mut summary = CheckpointSummary::default();
        switches(&mut summary, &cycles, &clock, &server);
        summary
    }

    #[test]
    fn switches_at_one_distance_are_those_of_a_timeout() {
        let at = [0, 60, 121, 180, 190, 250];
        let summary = said(&at, &[], None);
        let unused = SEGMENT * 3 / 4;
        assert_eq!((summary.switches, summary.switch_bytes), (6, 6 * unused));
        assert_eq!(summary.archive_timeout_seconds, Some(60));
        let a_day = summary.archive_timeout_bytes_per_day.expect("a day");
        assert!((a_day - 4.0 * unused as f64 * DAY / 250.0).abs() < 1.0, "{a_day}");
        assert_eq!(said(&at, &[], Some(0)).archive_timeout_seconds, None);
        assert_eq!(said(&at, &[], Some(600)).archive_timeout_seconds, None);
    }

    #[test]
    fn switches_beside_backups_are_none_of_a_timeout() {
        let at = [0, 5, 10, 15, 20];
        assert_eq!(said(&at, &[], None).archive_timeout_seconds, Some(5));
        let backup = [2 * SEGMENT + 8, 4 * SEGMENT + 8];
        assert_eq!(said(&at, &backup, None).archive_timeout_seconds, None);
    }

    /// As PostgreSQL 15 did it with archive_timeout = 3s, after a start and with few commits.
    #[test]
    fn a_timeout_that_is_set_leaves_what_it_may_have_left() {
        let mut clock = TimeMap::default();
        let mut cycles = Cycles::default();
        cycles.other_switches.begins_segment(Lsn(2 * SEGMENT + 40));
        for number in 2..6 {
            let end = Lsn(number * SEGMENT + SEGMENT / 4);
            let time = Time(number as i64 * 3 * SECOND);
            clock.push(Anchor { lsn: Lsn(end.0 - 200), time: Time(time.0 + SECOND) });
            clock.push(Anchor { lsn: Lsn(end.0 - 100), time: Time(time.0 + 2 * SECOND) });
            cycles.switches.push(Switched { end, time: None });
        }
        let server = Server {
            segment_bytes: SEGMENT,
            version: walstat_format::version::VERSIONS.last().expect("a release"),
            pace: None,
            archive_timeout: Some(3),
        };
        let padding = by_timeout(&cycles, &clock, &server).expect("a timeout");
        let all = cycles.switches.iter().map(|one| rest(one, &server)).sum();
        assert_eq!((padding.bytes, padding.most_bytes), (all, all));
    }

    #[test]
    fn forced_ones_are_those_that_did_not_wait() {
        let causes = |time, wal, requested| Causes { time, wal, requested, ..Causes::default() };
        assert_eq!(forced(&causes(6, 1, 1)), Some(0.25));
        assert_eq!(forced(&causes(0, 0, 0)), None);
        assert_eq!(forced(&Causes { unknown: 18, ..causes(0, 0, 1) }), None);
    }
}
