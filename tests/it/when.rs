//! Everything about time against a naive twin: for real samples of every release and for WAL made on
//! purpose, on any number of threads.

mod backlog;
mod load;
mod outside;
mod spans;
mod switches;
mod twin;

use crate::common::builder::Form;
use crate::common::whole;
use crate::support::fixtures::samples;
use load::Load;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use walstat_analyse::course;
use walstat_analyse::when::{Config, When, WhenFound};
use walstat_format::lsn::Lsn;
use walstat_format::version::{VERSIONS, Version};
use walstat_read::Scan;
use walstat_read::scan::streamed::Wanted;

/// Everything, by seconds.
const BY_SECOND: Config = Config {
    course: Some(course::Config { bucket_seconds: Some(1), quarters: true }),
    ..Config::ALL
};

fn found(
    paths: &[PathBuf],
    config: Config,
    threads: usize,
    timeline: Option<u32>,
) -> (WhenFound, Lsn) {
    let wanted = Wanted { timeline, ..Wanted::default() };
    let threads = NonZeroUsize::new(threads).expect("a thread");
    let scan = Scan { wanted, threads, ..Scan::paths(paths) };
    let (_, outcome) = scan.count(&When::new(config)).expect("WAL");
    let end = outcome.ending.lsn;
    (outcome.observer.finish(end), end)
}

/// Holds what is found in a folder against the twin.
#[track_caller]
fn same_as_twin(folder: &Path, version: &'static Version, timeline: u32) -> WhenFound {
    let paths = [folder.to_owned()];
    let (found_there, end) = found(&paths, BY_SECOND, 1, Some(timeline));
    for threads in [2, 3, 8] {
        let (again, _) = found(&paths, BY_SECOND, threads, Some(timeline));
        assert_eq!(again, found_there, "{threads} threads");
    }
    let newest = newest_of_each(folder);
    let records = twin::ones(&whole::records(newest.path(), version, timeline), version);
    assert!(!records.is_empty());
    seconds_are_the_same(&found_there, &records);
    cycles_are_the_same(&found_there, &records, end, version);
    commits_are_the_same(&found_there, &records);
    found_there
}

/// The segments of a folder, of each the one of the newest timeline: the twin knows no history.
fn newest_of_each(folder: &Path) -> TempDir {
    let newest = TempDir::new().expect("a folder");
    let names = std::fs::read_dir(folder).expect("a folder");
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.len() >= 24).collect();
    names.sort();
    let chosen = names.into_iter().map(|name| (name[8..24].to_owned(), name));
    for (_, name) in chosen.collect::<BTreeMap<String, String>>() {
        std::fs::copy(folder.join(&name), newest.path().join(&name)).expect("a copy");
    }
    newest
}

fn seconds_are_the_same(found: &WhenFound, records: &[twin::One]) {
    let course = found.course.clone().expect("a timeline");
    let seconds = twin::seconds(records);
    let rows = course.buckets.into_rows();
    for (second, row) in &rows {
        let (tally, commits, start, end) = &seconds[second];
        assert_eq!((row.tally, row.commits), (*tally, *commits), "second {second}");
        assert_eq!(row.range, Some((Lsn(*start), Lsn(*end))), "second {second}");
    }
    assert_eq!(rows.len(), seconds.len());
    if !course.has_clock {
        return;
    }
    let bytes = |width: i64| {
        let stretch = |last: &i64| {
            let inside = || seconds.range(last - width + 1..=*last);
            let bytes: u64 = inside().map(|(_, row)| row.0.total_bytes).sum();
            (bytes, -*inside().map(|(at, _)| at).min().expect("itself"))
        };
        let most = seconds.keys().map(stretch).max();
        most.map(|(bytes, first)| (-first, bytes))
    };
    let peak = |peak: Option<course::Peak>| peak.map(|peak| (peak.second, peak.total_bytes));
    let peaks = [course.peaks.second(), course.peaks.ten_seconds(), course.peaks.minute()];
    assert_eq!(peaks.map(peak), [1, 10, 60].map(bytes));
    let all = seconds.keys().max().expect("one") - seconds.keys().min().expect("one") + 1;
    let idle = (all - seconds.len() as i64) as f64 / all as f64;
    assert_eq!(course.idle_ratio, Some(idle));
}

fn cycles_are_the_same(found: &WhenFound, records: &[twin::One], end: Lsn, version: &Version) {
    let cycles = found.cycles.clone().expect("cycles");
    assert!(!cycles.is_rough);
    let expected = twin::cycles(records, end.0, version);
    assert_eq!(cycles.cycles.len(), expected.len());
    for (cycle, want) in cycles.cycles.iter().zip(&expected) {
        let got = twin::Cycle {
            redo: cycle.redo.map(|lsn| lsn.0),
            start: cycle.start.0,
            end: cycle.end.0,
            checkpoint: cycle.checkpoint.as_ref().map(|ended| ended.lsn.0),
            tally: cycle.tally,
            distinct_blocks: cycle.distinct_blocks,
            tenths: want.tenths,
        };
        assert_eq!(&got, want);
        let shares = want
            .tenths
            .map(|tenths| tenths.map(|bytes| bytes as f64 / tenths.iter().sum::<u64>() as f64));
        assert_eq!(cycle.decay.map(|decay| decay.tenths), shares, "{want:?}");
        if let Some(by_time) = &cycle.by_time {
            assert_eq!(by_time.images, twin::by_time(records, want), "{want:?}");
        }
    }
    let brought: Vec<Option<u64>> = cycles.cycles.iter().map(|cycle| cycle.brought).collect();
    assert_eq!(brought, twin::brought(records, &expected));
    let replay = |replay: &walstat_analyse::checkpoint::Replay| {
        let sums = replay.sums;
        (replay.from.0, replay.to.0, sums.tally, sums.distinct_blocks, sums.without_image)
    };
    let got: Vec<twin::Replay> = cycles.replays.iter().map(replay).collect();
    assert_eq!(got, twin::replays(records, end.0));
}

fn commits_are_the_same(found: &WhenFound, records: &[twin::One]) {
    let pressure = found.pressure.clone().expect("commits");
    let times: Vec<i64> =
        records.iter().filter(|one| one.is_commit).filter_map(|one| one.stated).collect();
    assert_eq!(pressure.commits, times.len() as u64);
    let span = times.iter().min().zip(times.iter().max());
    assert_eq!(pressure.span.map(|(a, b)| (a.0, b.0)), span.map(|(a, b)| (*a, *b)));
    let Some((first, last)) = span else { return };
    let seconds = (first.div_euclid(1_000_000)..=last.div_euclid(1_000_000)).len_if_small();
    let Some(seconds) = seconds else { return };
    let in_second = |second: &i64| {
        times.iter().filter(|time| time.div_euclid(1_000_000) == *second).count() as u64
    };
    let mut counts: Vec<u64> = seconds.iter().map(in_second).collect();
    counts.sort_unstable();
    let rank = |percent: usize| counts[(percent * counts.len()).div_ceil(100) - 1];
    let per_second = pressure.per_second.expect("commits");
    assert_eq!(
        (per_second.median, per_second.p99, per_second.peak),
        (rank(50), rank(99), rank(100))
    );
    assert_eq!(pressure.seconds, counts.len() as u64);
    assert_eq!(pressure.syncs_high, per_second.peak);
    assert!((1..=pressure.syncs_high).contains(&pressure.syncs_low));
}

trait LenIfSmall {
    fn len_if_small(self) -> Option<Vec<i64>>;
}

impl LenIfSmall for std::ops::RangeInclusive<i64> {
    /// All of them, if the twin can count that far.
    fn len_if_small(self) -> Option<Vec<i64>> {
        (self.end() - self.start() < 5000).then(|| self.collect())
    }
}

#[test]
fn every_sample_is_what_the_twin_says() {
    for sample in samples() {
        let version = VERSIONS.iter().find(|version| version.name == sample.release);
        let timeline = sample.timeline.parse().expect("a timeline");
        println!("{}", sample.name);
        same_as_twin(&sample.wal, version.expect("a release"), timeline);
    }
}

#[track_caller]
fn load_is_what_the_twin_says(release: &str, load: &Load) -> WhenFound {
    let form = Form::of(release);
    let disk = load::wal(form, load).finish();
    same_as_twin(disk.write().path(), form.version, form.timeline)
}

#[test]
fn loads_of_any_kind_are_what_the_twin_says() {
    for release in ["9.5", "12", "15", "17", "19"] {
        for seed in [3, 11] {
            let found = load_is_what_the_twin_says(release, &Load { seed, ..Load::PLAIN });
            assert!(found.cycles.is_some_and(|cycles| cycles.cycles.len() > 3));
        }
    }
}

#[test]
fn clocks_may_jump() {
    for release in ["14", "18"] {
        let load = Load { jumps: 500, records: 6000, checkpoints: 500, ..Load::PLAIN };
        let found = load_is_what_the_twin_says(release, &load);
        assert!(found.set_back > 0);
    }
}

#[test]
fn there_may_be_no_commit_or_no_checkpoint_or_neither() {
    for (commits, checkpoints) in [(0, 2000), (5, 0), (0, 0)] {
        for release in ["13", "17"] {
            let load = Load { commits, checkpoints, records: 5000, ..Load::PLAIN };
            load_is_what_the_twin_says(release, &load);
        }
    }
}

#[test]
fn commits_may_be_minutes_apart() {
    let load = Load { commits: 900, pace: 40_000, records: 9000, checkpoints: 400, ..Load::PLAIN };
    load_is_what_the_twin_says("15", &load);
    load_is_what_the_twin_says("17", &load);
}
