//! When WAL was written, in a few numbers: for the first screen and for the advice.

use super::padding::by_timeout;
use super::span::asked_for;
use super::{REPLAY_RATES, at_second};
use crate::model::when::{Causes, Overview, Range, Spacing};
use walstat_analyse::checkpoint::cause::{Cause, Judged, Verdict};
use walstat_analyse::checkpoint::evidence::Evidence;
use walstat_analyse::checkpoint::server::Server;
use walstat_analyse::checkpoint::{Cycle, Cycles};
use walstat_analyse::commit::{Pressure, SYNC_TIME};
use walstat_analyse::ratios::ratio;
use walstat_analyse::when::WhenFound;
use walstat_format::payload::{SECOND, Time};

/// Stretches of time, at most: cells of a line of bars.
const STRETCHES: usize = 48;

/// The numbers; `shown`: the time that is shown beside them.
pub(crate) fn overview(
    found: &WhenFound,
    judged: &Judged,
    server: &Server,
    shown: Option<(Time, Time)>,
) -> Overview {
    let mut overview = Overview::default();
    if let Some(curve) = &found.written {
        let peak = curve.peak_second().filter(|_| found.thin.knows_seconds());
        (overview.growth_seconds, overview.growth) = curve.stretches(STRETCHES);
        overview.mean_rate = curve.mean_rate();
        let stopped = found.cycles.as_ref().filter(|_| found.times.is_none());
        overview.running_rate = curve.rate_without(stopped.map_or(0, |cycles| cycles.stopped));
        overview.peak_rate = peak.map(|(bytes, _)| bytes);
        overview.peak_time = peak.and_then(|(_, second)| at_second(second));
        let lag = curve.backlog(REPLAY_RATES.0).peak_bytes as f64 / REPLAY_RATES.0 as f64;
        overview.slow_replay_lag_seconds = peak.map(|_| lag);
    }
    if let Some(pressure) = &found.pressure {
        overview.peak_commits = pressure.per_second.map(|found| found.peak);
        overview.mean_commits = mean_commits(pressure, shown);
        let syncs_most = (SECOND / i64::from(SYNC_TIME)) as u64;
        overview.peak_syncs = pressure.per_second.map(|found| found.peak.min(syncs_most));
    }
    if let Some(cycles) = &found.cycles {
        let (cycles, verdicts) = asked_for(found, cycles, &judged.verdicts);
        let settings = &judged.settings;
        let cycles = &*cycles;
        let backups = || cycles.cycles.iter().filter(|cycle| cycle.began_backup);
        overview.backups = backups().count() as u64;
        overview.backup_fpi_bytes = backups().map(|cycle| cycle.tally.fpi_bytes).sum();
        overview.archive_timeout_bytes =
            by_timeout(cycles, &found.clock, server).map(|padding| padding.most_bytes);
        overview.checkpoints = cycles.checkpoints;
        overview.before_drops = count_of_told(&verdicts, &[Evidence::BeforeDatabaseDropped]);
        let copied = [Evidence::AfterDatabaseCopied, Evidence::BeforeDatabaseCopied];
        overview.beside_copies = count_of_told(&verdicts, &copied);
        overview.has_initdb = cycles.of_initdb() > 0;
        overview.causes = causes(&cycles.cycles, &verdicts);
        overview.wal_by_cause = wal_by_cause(cycles, &verdicts);
        let apart = apart(cycles, &verdicts);
        overview.spacing_cause = leading(&apart);
        overview.spacing_seconds = match overview.spacing_cause {
            Some(_) => {
                let of_cause = apart.iter().filter(|one| one.cause == overview.spacing_cause);
                spacing(of_cause.map(|one| one.seconds).collect())
            }
            None => weighted(apart.iter().map(|one| (one.seconds, one.bytes)).collect()),
        };
        overview.spacing_bytes = spacing(distances(cycles));
        overview.checkpoint_timeout_seconds = settings.timeout_seconds;
        overview.max_wal_size_low = settings.max_wal_size.map(|size| size.least_bytes);
        overview.max_wal_size_high = settings.max_wal_size.map(|size| size.most_bytes);
        overview.fpi_first_quarter_ratio = first_quarter(&cycles.cycles);
        let replays = cycles.replays.iter().filter(|replay| cycles.has_all(replay.from, replay.to));
        let worst = replays.map(|replay| cycles.written(replay.from, replay.to)).max();
        worst.into_iter().for_each(|bytes| replays_at_least(&mut overview, bytes));
    }
    overview
}

/// Commits a second in the time that is shown, which may be longer than from the first commit to the last.
fn mean_commits(pressure: &Pressure, shown: Option<(Time, Time)>) -> Option<f64> {
    let of_shown =
        shown.map_or(0, |(first, last)| last.second().abs_diff(first.second()).saturating_add(1));
    let mean = ratio(pressure.commits, of_shown.max(pressure.seconds));
    mean.filter(|_| pressure.commits > 0)
}

/// A crash would replay so many bytes, if not more.
pub(crate) fn replays_at_least(overview: &mut Overview, bytes: u64) {
    let bytes = overview.worst_recovery_bytes.map_or(bytes, |known| known.max(bytes));
    let (slow, fast) = REPLAY_RATES;
    let seconds = |rate: u64| bytes as f64 / rate as f64;
    overview.worst_recovery_bytes = Some(bytes);
    overview.worst_recovery_seconds = Some(Range { low: seconds(fast), high: seconds(slow) });
}

/// How many checkpoints are told by this evidence.
fn count_of_told(verdicts: &[Option<Verdict>], evidence: &[Evidence]) -> u64 {
    let told = verdicts.iter().flatten().filter(|verdict| evidence.contains(&verdict.evidence));
    told.count() as u64
}

/// The cause of a checkpoint, as far as it is likely.
fn cause_of(verdict: &Option<Verdict>) -> Option<Cause> {
    let sure = verdict.as_ref().filter(|verdict| verdict.is_sure());
    sure.map(|verdict| verdict.cause)
}

/// Where a cause is counted.
fn count_of(causes: &mut Causes, cause: Option<Cause>) -> &mut u64 {
    match cause {
        Some(Cause::Time) => &mut causes.time,
        Some(Cause::Wal) => &mut causes.wal,
        Some(Cause::Requested) => &mut causes.requested,
        Some(Cause::Shutdown) => &mut causes.shutdown,
        Some(Cause::EndOfRecovery) => &mut causes.end_of_recovery,
        Some(Cause::ShutdownOrRecovery) => &mut causes.shutdown_or_recovery,
        None => &mut causes.unknown,
    }
}

/// Checkpoints by their causes, as far as these are likely.
pub(crate) fn causes(cycles: &[Cycle], verdicts: &[Option<Verdict>]) -> Causes {
    let mut causes = Causes::default();
    let ended = cycles.iter().zip(verdicts).filter(|(cycle, _)| cycle.checkpoint.is_some());
    ended.for_each(|(_, verdict)| *count_of(&mut causes, cause_of(verdict)) += 1);
    // Where the WAL begins with records of an earlier one, the first checkpoint began within it.
    let first = cycles.iter().zip(verdicts).next();
    let is_before = |(cycle, verdict): &(&Cycle, &Option<Verdict>)| {
        cycle.checkpoint.is_some() && cause_of(verdict).is_none()
    };
    causes.before = first.filter(is_before).map_or(0, |_| 1);
    causes
}

/// Bytes of WAL before the checkpoints, by what began them: a few that somebody asked for on an idle
/// server, or that initdb wrote, say little of why the others began.
fn wal_by_cause(cycles: &Cycles, verdicts: &[Option<Verdict>]) -> Causes {
    let mut sums = Causes::default();
    let pairs = cycles.cycles.windows(2).zip(verdicts.iter().skip(1));
    for (pair, verdict) in pairs.skip(cycles.of_initdb()) {
        let [before, cycle] = pair else { continue };
        if cycle.checkpoint.is_some() {
            let bytes = cycles.written(before.start, before.end);
            *count_of(&mut sums, cause_of(verdict)) += bytes;
        }
    }
    sums
}

/// The cause of checkpoints that most of the WAL was written before, if there is one: those that are
/// so many bytes and seconds after another.
fn leading(apart: &[Apart]) -> Option<Cause> {
    let sum = |cause: Option<Cause>| {
        apart.iter().filter(|one| one.cause == cause).map(|one| one.bytes.max(1)).sum::<u64>()
    };
    let all: u64 = apart.iter().map(|one| one.bytes.max(1)).sum();
    [Cause::Time, Cause::Wal, Cause::Requested]
        .into_iter()
        .find(|cause| sum(Some(*cause)) * 2 > all)
}

/// A checkpoint after another, while the server went on.
struct Apart {
    seconds: u64,
    /// Bytes that were written between.
    bytes: u64,
    /// Why the second one began, as far as that is likely.
    cause: Option<Cause>,
}

/// Seconds from one checkpoint to the next, while the server went on.
pub(crate) fn seconds(cycles: &Cycles) -> Vec<u64> {
    apart(cycles, &[]).into_iter().map(|one| one.seconds).collect()
}

fn apart(cycles: &Cycles, verdicts: &[Option<Verdict>]) -> Vec<Apart> {
    let online = |cycle: &Cycle| {
        let ended = cycle.checkpoint.as_ref()?;
        Some((ended.seen.says.time.second(), ended.seen.is_shutdown))
    };
    let distance = |(before, pair): (usize, &[Cycle])| match pair {
        [a, b] if cycles.has_all(a.start, b.end) => match (online(a)?, online(b)?) {
            ((from, false), (to, false)) => {
                let seconds = u64::try_from(to.checked_sub(from)?).ok()?;
                let bytes = cycles.written(a.start, a.end);
                let cause = verdicts.get(before + 1).and_then(cause_of);
                Some(Apart { seconds, bytes, cause })
            }
            _ => None,
        },
        _ => None,
    };
    let pairs = cycles.cycles.windows(2).enumerate();
    pairs.skip(cycles.of_initdb()).filter_map(distance).collect()
}

/// Those that begin and end with a checkpoint.
pub(crate) fn whole(cycles: &[Cycle]) -> impl Iterator<Item = &Cycle> {
    let all_but_last = cycles.len().saturating_sub(1);
    cycles.iter().take(all_but_last).filter(|cycle| cycle.redo.is_some())
}

/// Bytes of whole cycles.
pub(crate) fn distances(cycles: &Cycles) -> Vec<u64> {
    let known = whole(&cycles.cycles).filter(|cycle| cycles.has_all(cycle.start, cycle.end));
    known.map(|cycle| cycle.end.0 - cycle.start.0).collect()
}

/// What is worth telling of distances, each as often as there is WAL in it; `None` without any. Where
/// most of the WAL was written counts, not what an idle server did.
fn weighted(mut distances: Vec<(u64, u64)>) -> Option<Spacing> {
    distances.sort_unstable();
    // Nothing lies between two checkpoints of which the second one did nothing.
    let weight = |bytes: u64| u128::from(bytes.max(1));
    let all: u128 = distances.iter().map(|(_, bytes)| weight(*bytes)).sum();
    let rank = |percent: u128| {
        let mut below = 0;
        distances.iter().find_map(|(seconds, bytes)| {
            below += weight(*bytes);
            (below * 100 >= all * percent).then_some(*seconds)
        })
    };
    let sum: u128 = distances.iter().map(|(s, bytes)| u128::from(*s) * weight(*bytes)).sum();
    Some(Spacing {
        count: distances.len() as u64,
        min: distances.first()?.0,
        mean: sum as f64 / all as f64,
        median: rank(50)?,
        p90: rank(90)?,
        max: distances.last()?.0,
    })
}

/// What is worth telling of distances; `None` without any.
pub(crate) fn spacing(mut distances: Vec<u64>) -> Option<Spacing> {
    distances.sort_unstable();
    let rank = |percent: usize| (percent * distances.len()).div_ceil(100).saturating_sub(1);
    Some(Spacing {
        count: distances.len() as u64,
        min: *distances.first()?,
        mean: distances.iter().map(|distance| *distance as f64).sum::<f64>()
            / distances.len() as f64,
        median: *distances.get(rank(50))?,
        p90: *distances.get(rank(90))?,
        max: *distances.last()?,
    })
}

/// Share of the images of whole cycles in their first quarters; `None` where these have less than half of all
/// images, as a server has that began its last cycle long ago.
fn first_quarter(cycles: &[Cycle]) -> Option<f64> {
    let (mut first, mut all) = (0.0, 0.0);
    for cycle in whole(cycles) {
        let bytes = cycle.tally.fpi_bytes as f64;
        first += bytes * cycle.decay.map_or(0.0, |decay| decay.first_quarter);
        all += bytes;
    }
    let every: u64 = cycles.iter().map(|cycle| cycle.tally.fpi_bytes).sum();
    (all > 0.0 && 2.0 * all >= every as f64).then(|| first / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_analyse::checkpoint::{EndedCheckpoint, EventsSince};
    use walstat_analyse::deferred_log::CheckpointSeen;
    use walstat_format::lsn::Lsn;
    use walstat_format::payload::checkpoint::Checkpoint;

    /// 10 commits in the midst of 29 seconds were told as 2.5 a second on average.
    #[test]
    fn commits_are_spread_over_the_time_that_is_shown() {
        let pressure = Pressure { commits: 10, seconds: 4, ..Pressure::default() };
        let at = |second: i64| Time(second * SECOND);
        let mean = |shown| mean_commits(&pressure, shown);
        assert_eq!(mean(Some((at(21), at(49)))), Some(10.0 / 29.0));
        assert_eq!((mean(Some((at(46), at(47)))), mean(None)), (Some(2.5), Some(2.5)));
        assert_eq!(mean_commits(&Pressure::default(), Some((at(21), at(49)))), None);
    }

    #[test]
    fn distances_count_as_often_as_there_is_wal_in_them() {
        // Many close to each other as a server is set up, two under load.
        let mut distances = vec![(0, 1000); 20];
        distances.extend([(60, 50_000_000), (65, 55_000_000)]);
        let spacing = weighted(distances).expect("distances");
        assert_eq!((spacing.count, spacing.min, spacing.median, spacing.max), (22, 0, 65, 65));
        assert!(weighted(Vec::new()).is_none());
        assert_eq!(weighted(vec![(7, 0)]).map(|spacing| spacing.median), Some(7));
    }

    /// Of nine that somebody asked for, all within the range, one was told as from before it.
    #[test]
    fn a_checkpoint_is_from_before_the_wal_if_the_wal_begins_with_it() {
        let says = Checkpoint {
            redo: Lsn(100),
            timeline: 1,
            previous_timeline: 1,
            full_page_writes: true,
            wal_level: None,
            next_xid: 1000,
            next_oid: 20_000,
            next_multixact: (1, 0),
            oldest_xid: 700,
            oldest_multixact: 1,
            time: Time(0),
            oldest_active_xid: 0,
        };
        let seen = CheckpointSeen { is_shutdown: false, previous: Lsn(8), says };
        let since = EventsSince::default();
        let ended = || EndedCheckpoint { lsn: Lsn(200), end: Lsn(300), seen: seen.clone(), since };
        let begun = |redo| Cycle { redo, checkpoint: Some(ended()), ..Cycle::default() };
        let told = |cycles: &[Cycle]| {
            let Causes { unknown, before, .. } = causes(cycles, &vec![None; cycles.len()]);
            (unknown, before)
        };
        assert_eq!(told(&[Cycle::default(), begun(Some(Lsn(100)))]), (1, 0));
        // The redo point is where the WAL begins, or lies before it.
        assert_eq!(told(&[begun(Some(Lsn(100)))]), (1, 1));
        assert_eq!(told(&[begun(None), begun(Some(Lsn(100)))]), (2, 1));
    }

    #[test]
    fn cycles_with_few_of_the_images_say_nothing_of_them() {
        let cycle = |fpi_bytes| {
            let mut cycle = Cycle { redo: Some(Lsn(8)), ..Cycle::default() };
            cycle.tally.fpi_bytes = fpi_bytes;
            cycle
        };
        let told = |last| first_quarter(&[cycle(100), cycle(last)]);
        assert_eq!((told(100), told(101)), (Some(0.0), None));
    }

    #[test]
    fn a_cause_leads_if_most_of_the_wal_comes_before_it() {
        let of = |rows: &[(u64, Option<Cause>)]| {
            let apart = |(bytes, cause): &(u64, Option<Cause>)| Apart {
                seconds: 9,
                bytes: *bytes,
                cause: *cause,
            };
            leading(&rows.iter().map(apart).collect::<Vec<_>>())
        };
        let (time, wal, asked) = (Some(Cause::Time), Some(Cause::Wal), Some(Cause::Requested));
        assert_eq!(of(&[(900, wal), (12, asked), (5, asked), (50, None)]), wal);
        assert_eq!(of(&[(40, time), (30, wal), (30, asked)]), None);
        assert_eq!((of(&[(30, wal), (70, None)]), of(&[])), (None, None));
    }
}
