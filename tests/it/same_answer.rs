//! No answer depends on how many threads read, nor on how the WAL was divided into partial results, nor
//! on the order in which those are merged: not for WAL either that no server writes. Real WAL, with
//! fields of its records changed at random and all checksums right.
//!
//! Each seed reads in some of the ways, so that every way has its turn among them. `WALSTAT_SEEDS=FROM..TO`
//! tries other seeds, each in all ways; `WALSTAT_SEED_CHANGES=N` makes so many changes: the first N of those
//! that a seed makes, to find the one that matters.

use crate::common::changed::Stretch;
use crate::common::disk::Disk;
use crate::support::fixtures::{sample, sample_names};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use walstat_analyse::counters::Counters;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::finished_transactions::{Order, ROWS_MAX};
use walstat_analyse::when::{self, When};
use walstat_analyse::who::Who;
use walstat_read::Scan;
use walstat_read::input::error::InputError;
use walstat_read::input::packed::{PARTIAL, pack, unpack};
use walstat_read::input::plan::Plan;
use walstat_read::scan::outcome::Outcome;
use walstat_read::scan::partial::Partial;
use walstat_read::scan::progress::Progress;
use walstat_report::assemble::{Gathered, ReportOptions, assemble, dimensions, whole_request};
use walstat_report::build::Request;
use walstat_report::known::{Known, Sources};
use walstat_report::model::CommandName;

/// Segments of a stretch: two edges.
const SEGMENTS: usize = 3;
/// Seeds that are tried if nobody says which.
const SEEDS: std::ops::Range<u64> = 1..161;
/// The most changes that most seeds make; every sixth makes ten times as many.
const CHANGES: u64 = 12;
/// A stretch is read in some hundredths of a second; where idle time is not jumped over, in minutes.
const SLOW: Duration = Duration::from_secs(60);

/// What is asked.
#[derive(Clone, Copy)]
enum Asked {
    /// All dimensions.
    All,
    /// What the report looks at.
    Overview,
}

impl Asked {
    fn dimensions(self) -> Dimensions {
        match self {
            Asked::All => Dimension::ALL.iter().copied().collect(),
            Asked::Overview => dimensions(),
        }
    }

    fn prototype(self, known: &Known) -> Counters {
        let config = match self {
            Asked::All => when::Config::ALL,
            Asked::Overview => when::Config::OVERVIEW,
        };
        Counters {
            who: Who::new(&self.dimensions(), ROWS_MAX, Order::Bytes, known.store()),
            when: Some(When::new(config)),
            advice: Some(Default::default()),
            ..Counters::default()
        }
    }

    /// The report, or why there is none.
    fn told(self, read: Result<(Plan, Outcome<Counters>), InputError>, known: Known) -> String {
        let (plan, outcome) = match read {
            Ok(read) => read,
            Err(error) => return error.to_string(),
        };
        let request =
            Request { dimensions: self.dimensions(), ..whole_request(CommandName::Report) };
        let gathered = Gathered::of(Vec::new(), plan, outcome, known);
        let report = assemble(gathered, &request, &ReportOptions::default()).conclude().report;
        serde_json::to_string_pretty(&report).expect("a report is JSON")
    }

    fn scan(files: &[PathBuf], threads: usize) -> Scan {
        let threads = NonZeroUsize::new(threads).expect("at least one thread");
        Scan { threads, ..Scan::paths(files) }
    }

    /// What so many threads say.
    fn on_threads(self, files: &[PathBuf], threads: usize) -> String {
        let scan = Asked::scan(files, threads);
        let found = scan.found().expect("files");
        let known = Known::of(&Sources::default(), &found, &self.dimensions());
        let read = scan.count_found(found, &self.prototype(&known));
        self.told(read, known)
    }

    /// Partial results of one segment each, as their files have them.
    fn parts(self, files: &[PathBuf]) -> Vec<Vec<u8>> {
        let part = |file: &PathBuf| {
            let scan = Asked::scan(std::slice::from_ref(file), 1);
            let found = scan.found().expect("a file");
            let prototype = self.prototype(&Known::default());
            let part = Partial::read(found, &scan.wanted, &Progress::default(), &prototype);
            pack(PARTIAL, &[0], &part.expect("read")).expect("a partial result")
        };
        files.iter().map(part).collect()
    }

    /// What they say together.
    fn merged<'p>(self, parts: impl Iterator<Item = &'p Vec<u8>>) -> String {
        let part = |bytes: &Vec<u8>| {
            unpack::<Partial<Counters>>(PARTIAL, &[0], bytes).expect("a partial result")
        };
        let (found, passed) = match Partial::merge(parts.map(part).collect()) {
            Ok(merged) => merged,
            Err(error) => return InputError::from(error).to_string(),
        };
        let known = Known::of(&Sources::default(), &found, &self.dimensions());
        let observer = Partial::observer(&self.prototype(&known));
        let scan = Asked::scan(&[], 1);
        let read = scan.count_passed(found, passed, &observer);
        self.told(read.map(|(plan, seen)| (plan, seen.map(Counters::of))), known)
    }
}

/// Where two reports differ: some lines of each.
fn difference(one: &str, other: &str) -> Option<String> {
    let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    let lines = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(same.saturating_sub(8)).take(14).collect();
        lines.join("\n")
    };
    (one != other).then(|| format!("line {same}\n{}\n  against\n{}", lines(one), lines(other)))
}

/// How parts are put together: a name, and the number of each part in turn.
const ORDERS: [(&str, [usize; SEGMENTS]); 3] = [
    ("merged in order", [0, 1, 2]),
    ("merged from the end", [2, 1, 0]),
    ("the middle first", [1, 2, 0]),
];

/// Reads it in the ways of a seed, or in each; what differs, and how long it took to read it once.
fn differences(disk: &Disk, asked: Asked, seed: Option<usize>) -> (Vec<String>, Duration) {
    // Those that go by two, by three and by six are told apart: what is asked goes by three, how much is
    // changed by six.
    let has_turn = |way: usize, ways: usize| seed.is_none_or(|seed| seed / 6 % ways == way);
    let directory = disk.write();
    let files: Vec<PathBuf> =
        disk.files.keys().map(|number| disk.path(directory.path(), *number)).collect();
    let begun = Instant::now();
    let one = asked.on_threads(&files, 1);
    let took = begun.elapsed();
    let mut found = Vec::new();
    if took > SLOW {
        found.push(format!("slow: {took:?}"));
    }
    let mut hold = |way: &str, other: String| {
        found.extend(difference(&one, &other).map(|told| format!("{way}: {told}")));
    };
    for (way, threads) in [2, 5].into_iter().enumerate() {
        if has_turn(way, 2) {
            hold(&format!("{threads} threads"), asked.on_threads(&files, threads));
        }
    }
    let parts = asked.parts(&files);
    for (way, (name, order)) in ORDERS.into_iter().enumerate() {
        if has_turn(way, ORDERS.len()) {
            hold(name, asked.merged(order.iter().filter_map(|number| parts.get(*number))));
        }
    }
    (found, took)
}

/// Stretches of all samples whose segments are plain files.
fn stretches() -> Vec<(String, Stretch)> {
    let mut stretches = Vec::new();
    for name in sample_names() {
        let sample = sample(&name);
        for index in (0..).step_by(SEGMENTS) {
            match Stretch::read(&sample.wal, &sample.release, index, SEGMENTS) {
                Some(stretch) if stretch.len() > 100 => {
                    stretches.push((format!("{name}/{index}"), stretch));
                }
                Some(_) => {}
                None => break,
            }
        }
    }
    assert!(stretches.len() > 20, "{}", stretches.len());
    stretches
}

/// A range of seeds, or one number, of an environment variable.
fn asked_for(variable: &str) -> Option<std::ops::Range<u64>> {
    let text = std::env::var(variable).ok()?;
    let (from, to) = text.split_once("..").unwrap_or((&text, &text));
    let number = |text: &str| text.parse::<u64>().expect("a number");
    Some(number(from)..number(to).max(number(from) + 1))
}

#[test]
fn changed_records_give_one_answer_on_any_division() {
    let stretches = stretches();
    let most = asked_for("WALSTAT_SEED_CHANGES").map_or(usize::MAX, |range| range.start as usize);
    let (mut failed, mut slowest) = (Vec::new(), (Duration::ZERO, 0));
    let asked_seeds = asked_for("WALSTAT_SEEDS");
    for seed in asked_seeds.clone().unwrap_or(SEEDS) {
        let (name, stretch) = &stretches[(seed as usize * 7) % stretches.len()];
        let many = if seed % 6 == 0 { 10 } else { 1 };
        let changes = ((1 + seed / 7 % CHANGES) * many) as usize;
        let (disk, told) = stretch.changed(seed, changes.min(most));
        let asked = if seed % 3 == 0 { Asked::Overview } else { Asked::All };
        let turn = asked_seeds.is_none().then_some(seed as usize);
        let (found, took) = differences(&disk, asked, turn);
        slowest = slowest.max((took, seed));
        for found in found {
            println!("seed {seed}, {name}, {told:#?}\n{found}\n");
            failed.push(seed);
        }
    }
    println!("slowest: seed {}, {:?}", slowest.1, slowest.0);
    failed.dedup();
    assert!(failed.is_empty(), "seeds {failed:?}");
}
