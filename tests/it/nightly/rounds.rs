//! An archive that grows, is damaged, mended and expires at random: every round is held against a check that
//! reads all of it.

use super::{Archive, counts, until};
use crate::common::xorshift::Xorshift;
use crate::support::fixtures::sample;
use crate::support::wal::plain;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// An archive on its way, and what is known of it without walstat.
struct Story {
    archive: Archive,
    random: Xorshift,
    /// Files that are good: by name, with their bytes.
    good: BTreeMap<String, Vec<u8>>,
    /// Those that the server has not archived yet.
    coming: Vec<String>,
    /// Segments that were there in some round.
    seen: BTreeSet<String>,
    /// What was done, for messages.
    told: Vec<String>,
}

/// What may happen to an archive, and how.
type Step = (&'static str, fn(&mut Story));

const STEPS: [Step; 14] = [
    ("a segment is archived", Story::grow),
    ("two segments are archived", |story| {
        story.grow();
        story.grow();
    }),
    ("nothing", |_| {}),
    ("a byte changes", |story| {
        story.rewrite(|bytes, at| bytes[at] ^= 0x10);
    }),
    ("a byte changes, and the time does not", |story| {
        story.rewrite_at_the_same_time();
    }),
    ("a file is cut off", |story| story.rewrite(|bytes, at| bytes.truncate(at))),
    ("a file is empty", |story| story.rewrite(|bytes, _| bytes.clear())),
    ("a file is zeros", |story| story.rewrite(|bytes, _| bytes.fill(0))),
    ("a file is another segment", Story::swap),
    ("a file is compressed", Story::compress),
    ("a good file takes the place of a bad one", Story::mend),
    ("a segment in the middle is lost", |story| story.lose(false)),
    ("the newest segment is lost", |story| story.lose(true)),
    ("retention takes the oldest", Story::expire),
];

impl Story {
    fn of(sample_name: &str, segments: usize, seed: u64) -> Story {
        let sample = sample(sample_name);
        let names = sample.segments();
        let mut good: BTreeMap<String, Vec<u8>> = names
            .iter()
            .filter(|name| !sample.segment(name).to_string_lossy().contains(".partial"))
            .map(|name| (name.clone(), plain(&sample, name)))
            .collect();
        let mut coming: Vec<String> = good.keys().take(segments).cloned().collect();
        good.retain(|name, _| coming.contains(name));
        coming.reverse();
        let archive = Archive::empty();
        let history = sample.wal.join("00000002.history");
        if history.exists() {
            fs::copy(history, archive.file("00000002.history")).expect("a history");
        }
        let (random, seen, told) = (Xorshift::new(seed), BTreeSet::new(), Vec::new());
        Story { archive, random, good, coming, seen, told }
    }

    /// The files that are there.
    fn there(&self) -> Vec<String> {
        let entries = fs::read_dir(self.archive.path("archive")).expect("the archive");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.into_string().expect("a name"));
        let mut names: Vec<String> = names.filter(|name| !name.ends_with("history")).collect();
        names.sort();
        names
    }

    fn any(&mut self) -> Option<String> {
        let there = self.there();
        let place = self.random.below(there.len().max(1) as u64) as usize;
        there.get(place).cloned()
    }

    fn grow(&mut self) {
        if let Some(name) = self.coming.pop() {
            self.archive.put(&name, &self.good[&name]);
        }
    }

    fn rewrite(&mut self, change: impl FnOnce(&mut Vec<u8>, usize)) {
        let Some(name) = self.any() else { return };
        let mut bytes = fs::read(self.archive.file(&name)).expect("a file");
        if bytes.is_empty() {
            return;
        }
        let at = self.random.below(bytes.len() as u64) as usize;
        change(&mut bytes, at);
        self.archive.put(&name, &bytes);
    }

    fn rewrite_at_the_same_time(&mut self) {
        let Some(name) = self.any() else { return };
        let path = self.archive.file(&name);
        let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
        let mut bytes = fs::read(&path).expect("a file");
        let Some(at) = (bytes.len() as u64).checked_sub(1).map(|last| self.random.below(last + 1))
        else {
            return;
        };
        bytes[at as usize] ^= 0x10;
        fs::write(&path, bytes).expect("a file");
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(modified).expect("the time");
    }

    fn swap(&mut self) {
        let (Some(name), Some(other)) = (self.any(), self.any()) else { return };
        let bytes = fs::read(self.archive.file(&other)).expect("a file");
        self.archive.put(&name, &bytes);
    }

    fn compress(&mut self) {
        let Some(name) = self.any().filter(|name| !name.contains('.')) else { return };
        let bytes = fs::read(self.archive.file(&name)).expect("a file");
        let packed = zstd::encode_all(bytes.as_slice(), 1).expect("zstd");
        self.archive.put(&format!("{name}.zst"), &packed);
        // Sometimes both are there.
        if self.random.below(3) > 0 {
            self.archive.remove(&name);
        }
    }

    /// Everything that is not as it should be is put right, or only one of them.
    fn mend(&mut self) {
        let oldest = self.there().first().map(|name| name[..24].to_owned()).unwrap_or_default();
        let newest = self.there().last().map(|name| name[..24].to_owned()).unwrap_or_default();
        let all = self.random.below(2) == 0;
        let names: Vec<String> =
            self.good.range(oldest..=newest).map(|(name, _)| name.clone()).collect();
        for name in names {
            let packed = self.archive.file(&format!("{name}.zst"));
            let is_good =
                fs::read(self.archive.file(&name)).is_ok_and(|bytes| bytes == self.good[&name]);
            if is_good && !packed.exists() {
                continue;
            }
            let _ = fs::remove_file(packed);
            self.archive.put(&name, &self.good[&name]);
            if !all {
                break;
            }
        }
    }

    fn lose(&mut self, newest: bool) {
        let there = self.there();
        if there.len() < 3 {
            return;
        }
        let name = if newest { there.last().cloned() } else { self.any() };
        if let Some(name) = name {
            self.archive.remove(&name);
        }
    }

    fn expire(&mut self) {
        let there = self.there();
        if let Some(oldest) = there.first().filter(|_| there.len() > 2).map(|name| &name[..24]) {
            let files = there.iter().filter(|name| name.starts_with(oldest));
            files.for_each(|name| self.archive.remove(name));
        }
    }

    /// Segments that were there once, and are neither there nor older than all that are.
    fn lost(&self) -> BTreeSet<String> {
        let there: BTreeSet<String> =
            self.there().iter().map(|name| name[..24].to_owned()).collect();
        let oldest = there.iter().map(|name| &name[8..]).min().unwrap_or_default();
        let first = there.first().cloned().unwrap_or_default();
        let is_lost =
            |name: &&String| !there.contains(*name) && name[8..] >= *oldest && **name >= first;
        self.seen.iter().filter(is_lost).cloned().collect()
    }

    /// One step, and a round after it.
    fn step(&mut self) {
        let place = self.random.below(STEPS.len() as u64) as usize;
        let (what, step) = STEPS[place];
        self.told.push(what.to_owned());
        step(self);
        self.hold();
    }

    /// A round has the verdict of a check that reads everything, and of what is lost where none can see it.
    fn hold(&mut self) {
        let recheck: &[&str] = if self.random.below(4) == 0 { &["--recheck", "30%"] } else { &[] };
        let whole = self.archive.check(&["-f", "json"]);
        let round = self.archive.check(&[&["--state", "state", "-f", "json"], recheck].concat());
        let told = self.told.join("; ");
        let (want, got) = (whole.json(), round.json());
        if got.get("error").is_some() {
            assert_eq!((round.code, &got["error"]), (whole.code, &want["error"]), "{told}");
            return;
        }
        let problems = |report: &Value| report["problems"].as_array().expect("problems").clone();
        let (want_problems, got_problems) = (problems(&want), problems(&got));
        let missed: Vec<&Value> =
            want_problems.iter().filter(|problem| !got_problems.contains(problem)).collect();
        assert!(missed.is_empty(), "{told}: not told: {missed:?}");
        let more = got_problems.iter().filter(|problem| !want_problems.contains(problem));
        let more: Vec<&Value> = more.collect();
        let lost = self.lost();
        for problem in &more {
            let segment = problem["segment"].as_str().expect("a segment");
            assert_eq!(problem["kind"], "missing_segment", "{told}: {problem}");
            assert!(lost.contains(segment), "{told}: {problem}, lost: {lost:?}");
        }
        let behind = lost.iter().any(|name| {
            let there = self.there();
            there.last().is_some_and(|newest| newest[..24] < name[..])
        });
        assert!(!behind || !more.is_empty(), "{told}: lost: {lost:?}, {got_problems:?}");
        let code = if more.is_empty() { whole.code } else { Some(4) };
        assert_eq!(round.code, code, "{told}");
        if more.is_empty() {
            for key in ["books", "totals", "ratios", "ending", "range", "checks", "segment_groups"]
            {
                assert_eq!(got[key], want[key], "{told}: {key}");
            }
        }
        self.holds_counts(&got, recheck.is_empty());
        self.seen.extend(self.there().iter().map(|name| name[..24].to_owned()));
    }

    /// What did not change is not read again.
    fn holds_counts(&self, report: &Value, none_again: bool) {
        let told = self.told.join("; ");
        let [known, read, again] = counts(report);
        assert_eq!(known + read, self.there().len() as u64, "{told}");
        assert_eq!(again, if none_again { 0 } else { (known * 3).div_ceil(10) }, "{told}");
        if self.told.last().is_some_and(|what| what == "nothing") {
            // Files without a first page are read each time.
            let broken = self.there().into_iter().filter(|name| {
                let bytes = fs::read(self.archive.file(name)).expect("a file");
                bytes.len() < 40 || bytes.starts_with(&[0, 0]) || name.ends_with(".zst")
            });
            assert!(read <= broken.count() as u64, "{told}: {read} read");
        }
    }
}

#[test]
fn every_round_has_the_verdict_of_a_check_that_reads_everything() {
    let mut steps = 0;
    let seeds =
        std::env::var("WALSTAT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    for seed in 1..=seeds {
        let sample = if seed % 2 == 0 { "timeline" } else { "pg15-mixed" };
        let mut story = Story::of(sample, 9, seed * 7919);
        (0..3).for_each(|_| story.grow());
        story.hold();
        for _ in 0..25 {
            story.step();
            steps += 1;
        }
    }
    assert!(steps >= 100);
}

#[test]
fn a_round_costs_what_is_new() {
    let archive = Archive::with(12);
    let (code, first) = archive.round(&[]);
    assert_eq!((code, counts(&first)), (Some(0), [0, 12, 0]));
    assert_eq!(first["state"]["read_bytes"], 12 << 20);
    let (code, second) = archive.round(&[]);
    assert_eq!((code, counts(&second)), (Some(0), [12, 0, 0]));
    assert_eq!(second["state"]["read_bytes"], 0);
    assert_eq!(first["books"], second["books"]);
    assert_eq!(first["range"], second["range"]);
    let state = std::fs::metadata(archive.path("state")).expect("the state").len();
    assert!(state < 12 * 2000, "{state} bytes of 12 segments");
    let sample = sample("pg15-mixed");
    let next = &sample.segments()[12];
    archive.put(next, &plain(&sample, next));
    let (code, third) = archive.round(&[]);
    assert_eq!((code, counts(&third)), (Some(0), [12, 1, 0]));
    assert_eq!(third["state"]["read_bytes"], 1 << 20);
    // What was not read for the longest time comes first: after ten rounds all were read again.
    for _ in 0..10 {
        let (code, report) = archive.round(&["--recheck", "10%"]);
        assert_eq!((code, counts(&report)), (Some(0), [13, 0, 2]));
    }
}

/// What the system says of it: nothing of a known file is read, not even its first page.
#[cfg(target_os = "linux")]
#[test]
fn a_known_file_is_not_opened() {
    let archive = Archive::with(12);
    archive.round(&[]);
    let read_by = |arguments: &[&str]| {
        let mut child = archive
            .command(arguments)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("walstat");
        let status = format!("/proc/{}/stat", child.id());
        until("it ends", || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
        });
        let io = fs::read_to_string(format!("/proc/{}/io", child.id())).expect("io of a process");
        child.wait().expect("its end");
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("rchar");
        line.trim().parse::<u64>().expect("a number")
    };
    let state = fs::metadata(archive.path("state")).expect("the state").len();
    let (all, known) = (read_by(&["--no-mmap"]), read_by(&["--state", "state"]));
    assert!(all > 10 << 20, "{all}");
    // Its libraries, what the system says of itself, and the state.
    assert!(known < (256 << 10) + state, "{known} bytes, of them {state} of the state");
}

/// A segment under the name of another one was never there as that one.
#[test]
fn a_file_that_was_blamed_and_taken_away_is_not_missing() {
    let archive = Archive::with(3);
    let stray = "000000010000000000000009";
    let first = fs::read(archive.file("000000010000000000000007")).expect("a segment");
    archive.put(stray, &first);
    assert_eq!(archive.round(&[]).0, Some(4));
    archive.remove(stray);
    assert_eq!(archive.round(&[]).0, Some(0));
}
