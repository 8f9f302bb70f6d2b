//! `walstat follow` and what it reads with, on WAL that grows, disappears and goes on elsewhere.

mod history;
mod outlets;
mod program;

use crate::common::builder::{Form, Wal};
use crate::common::record::Rec;
use crate::support::fixtures::{Sample, sample};
use crate::support::patience::PATIENCE;
use crate::support::wal::plain;
use crate::support::{WALSTAT, command, signals, walstat};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_read::Scan;
use walstat_read::follow::{Follower, Happening, StartAt};
use walstat_read::input::discover::discover;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::streamed::Wanted;

/// Where records end, and how long they are.
#[derive(Clone, Default)]
struct Ends(Vec<(u64, u64)>);

impl Observe for Ends {
    // As dimensions that want whole records.
    const WHOLE: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        self.0.push((record.end.0, u64::from(record.header.total_bytes)));
    }

    fn merge(&mut self, later: Ends) {
        self.0.extend(later.0);
    }
}

/// Numbers without sense, the same in every run (xorshift).
struct Noise(u64);

impl Noise {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// All that is read until there is nothing more for now.
fn look(follower: &mut Follower) -> Vec<Happening> {
    let mut happenings = Vec::new();
    loop {
        let look = follower.look(soon());
        assert!(look.error.is_none(), "{look:?}");
        happenings.extend(look.happenings);
        if look.is_at_end {
            return happenings;
        }
    }
}

fn ends(follower: &mut Follower) -> Vec<(u64, u64)> {
    follower.counted(|ends: &mut Ends| ends.0.clone()).expect("the same")
}

fn begin(wal: &Path, from: StartAt) -> Follower {
    let found = discover(&[wal.to_owned()]).expect("WAL");
    let (mut follower, _) = Follower::begin(&found, from, &Wanted::default()).expect("WAL");
    follower.count(Ends::default());
    follower
}

/// A server's directory that WAL is written into: segments are there before, as zeros or with old content.
struct Growing {
    folder: TempDir,
    segments: Vec<(String, Vec<u8>)>,
}

impl Growing {
    fn of(sample: &Sample) -> Growing {
        let folder = TempDir::new().expect("a directory");
        fs::create_dir(folder.path().join("archive_status")).expect("a directory");
        let names = sample.segments().into_iter();
        let segments = names.map(|name| (name.clone(), plain(sample, &name))).collect();
        Growing { folder, segments }
    }

    /// Makes segment `index` with what a server leaves there.
    fn prepare(&self, index: usize) {
        let Some((name, bytes)) = self.segments.get(index) else { return };
        let old = match index % 2 {
            1 => self.segments[index - 1].1.clone(),
            _ => vec![0; bytes.len()],
        };
        fs::write(self.folder.path().join(name), old).expect("written");
    }

    fn write(&self, index: usize, at: usize, bytes: usize) {
        let (name, all) = &self.segments[index];
        let path = self.folder.path().join(name);
        let mut file = OpenOptions::new().write(true).open(path).expect("a segment");
        file.seek(SeekFrom::Start(at as u64)).expect("a place");
        file.write_all(&all[at..at + bytes]).expect("written");
    }
}

/// However WAL comes, in half pages and in many: each record is counted once, as soon as it is whole.
fn grows(name: &str, seed: u64) {
    let sample = sample(name);
    let growing = Growing::of(&sample);
    let (_, outcome) = Scan::paths([&sample.wal]).count(&Ends::default()).expect("WAL");
    let all = outcome.observer.0;
    let first = growing.segments[0].1.len() as u64;
    let part = |digits: &str| u64::from_str_radix(digits, 16).expect("a number");
    let name_of_first = &growing.segments[0].0;
    let start = (part(&name_of_first[8..16]) << 32) + part(&name_of_first[16..]) * first;
    let mut noise = Noise(seed);
    growing.prepare(0);
    growing.write(0, 0, 8192);
    growing.prepare(1);
    let mut follower = begin(growing.folder.path(), StartAt::Oldest);
    let mut written = start + 8192;
    for index in 0..growing.segments.len() {
        let length = growing.segments[index].1.len();
        let mut at = if index == 0 { 8192 } else { 0 };
        growing.prepare(index + 1);
        while at < length {
            let most = [200, 8192, 100_000, 600_000][noise.below(4) as usize];
            let bytes = (1 + noise.below(most) as usize).min(length - at);
            growing.write(index, at, bytes);
            at += bytes;
            written += bytes as u64;
            assert_eq!(look(&mut follower), []);
            let counted = ends(&mut follower);
            let whole = all.iter().take_while(|(end, _)| *end <= written).count();
            // One of which nothing is missing but zeros is whole before it is written.
            let found = counted.len();
            assert!(found == whole || found == whole + 1, "{name} {seed}: after {}", Lsn(written));
            assert_eq!(counted.last(), all[..found].last());
            assert!(follower.position().0 <= written.next_multiple_of(length as u64));
        }
    }
    assert_eq!(ends(&mut follower), all);
    assert_eq!(follower.lost_bytes(), 0);
}

#[test]
fn each_record_is_counted_once_as_soon_as_it_is_whole() {
    for seed in [1, 77] {
        grows("pg15-mixed", seed);
    }
}

#[test]
fn a_torn_record_that_recovery_replaced_is_passed() {
    grows("overwrite", 3);
}

/// The record that replaces it lies alone in the first page of a segment that is closed early.
#[test]
fn a_torn_record_that_was_replaced_before_a_switch_is_passed() {
    let form = Form::of("15");
    let mut wal = Wal::new(form, 5);
    wal.add(&Rec::data(100));
    let pages = (wal.at().next_multiple_of(form.segment) - wal.at()).div_ceil(form.page);
    wal.tear(&Rec::data(2 * form.segment as usize), pages);
    wal.overwrite();
    wal.add(&Rec::data(50));
    wal.switch();
    let (end, files) = (wal.at(), wal.finish().files);
    let folder = TempDir::new().expect("a directory");
    for (number, bytes) in files {
        fs::write(folder.path().join(format!("00000001{number:016X}")), bytes).expect("written");
    }
    let mut follower = begin(folder.path(), StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    assert_eq!((follower.position().0, follower.lost_bytes()), (end, 0));
}

#[test]
fn a_newer_timeline_is_followed_from_where_it_leaves() {
    let sample = sample("timeline");
    let folder = TempDir::new().expect("a directory");
    let copy = |wanted: &dyn Fn(&str) -> bool| {
        for entry in fs::read_dir(&sample.wal).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_str().expect("text").to_owned();
            if wanted(&name) {
                fs::copy(&path, folder.path().join(&name)).expect("a copy");
            }
        }
    };
    // The older timeline up to before the segment in which the newer one leaves it.
    copy(&|name| name.starts_with("00000001000000000000000") && name < "000000010000000000000008");
    let mut follower = begin(folder.path(), StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    assert_eq!(follower.timeline(), 1);
    copy(&|name| name.starts_with("00000002"));
    let happened = look(&mut follower);
    assert!(
        matches!(happened.as_slice(), [Happening::Timeline { timeline: 2, counted_to: None, .. }]),
        "{happened:?}"
    );
    look(&mut follower);
    assert_eq!(follower.timeline(), 2);
    let (_, outcome) = Scan::paths([folder.path()]).count(&Ends::default()).expect("WAL");
    assert_eq!(ends(&mut follower), outcome.observer.0);
}

/// A segment that is gone before it was read is lost, and nothing else is.
#[test]
fn what_is_recycled_before_it_was_read_is_lost() {
    let sample = sample("pg15-mixed");
    let growing = Growing::of(&sample);
    let put = |index: usize| {
        growing.prepare(index);
        growing.write(index, 0, growing.segments[index].1.len());
    };
    put(0);
    put(1);
    let mut follower = begin(growing.folder.path(), StartAt::Oldest);
    look(&mut follower);
    let before = follower.position();
    (4..7).for_each(put);
    let begun = Instant::now();
    let mut happened = Vec::new();
    while happened.is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        happened.extend(look(&mut follower));
        // Nothing is told before that is known.
        assert!(!happened.is_empty() || follower.is_held_up().expect("WAL"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!follower.is_held_up().expect("WAL"));
    let [Happening::Lost { from, to }] = happened.as_slice() else { panic!("{happened:?}") };
    assert_eq!((*from, to.0 - from.0), (before, follower.lost_bytes()));
    let (_, outcome) = Scan::paths([growing.folder.path()]).count(&Ends::default()).expect("WAL");
    assert_eq!(ends(&mut follower), outcome.observer.0);
}

/// What pushes several segments at a time stores them in any order, also where nothing came for a while.
#[test]
fn a_segment_that_comes_after_the_next_one_is_not_lost() {
    let sample = sample("pg15-mixed");
    let folder = plain_folder("pg15-mixed", 0..2);
    let mut follower = begin(folder.path(), StartAt::Oldest);
    let look_for = |follower: &mut Follower, time: Duration| {
        let begun = Instant::now();
        while begun.elapsed() < time {
            let happened = look(follower);
            assert!(happened.is_empty(), "{happened:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    look_for(&mut follower, Duration::from_secs(3));
    add_segments(&sample, folder.path(), 3..4);
    look_for(&mut follower, Duration::from_secs(4));
    add_segments(&sample, folder.path(), 2..3);
    look_for(&mut follower, Duration::from_secs(1));
    let (_, outcome) = Scan::paths([folder.path()]).count(&Ends::default()).expect("WAL");
    assert_eq!(ends(&mut follower), outcome.observer.0);
}

/// How far it is behind counts what lies beyond a place that it does not get over yet.
#[test]
fn what_lies_beyond_damage_is_behind() {
    let growing = Growing::of(&sample("pg15-mixed"));
    for index in 0..4 {
        growing.prepare(index);
        growing.write(index, 0, growing.segments[index].1.len());
    }
    let (name, bytes) = &growing.segments[1];
    let file = OpenOptions::new().write(true).open(growing.folder.path().join(name));
    let mut file = file.expect("a segment");
    file.seek(SeekFrom::Start(bytes.len() as u64 / 2)).expect("a place");
    file.write_all(&vec![0; bytes.len() / 2]).expect("written");
    let mut follower = begin(growing.folder.path(), StartAt::Oldest);
    let segment = bytes.len() as u64;
    let last = follower.position().0 / segment * segment + 3 * segment;
    assert_eq!(look(&mut follower), []);
    assert!(follower.position().0 < last - segment);
    assert!(follower.position().0 + follower.behind_bytes() >= last);
    assert!(follower.is_held_up().expect("WAL"));
}

/// Where a server's directory was removed and made anew for another cluster, that is said, once.
#[test]
fn another_cluster_in_the_same_place_is_told() {
    let growing = Growing::of(&sample("pg15-mixed"));
    growing.prepare(0);
    growing.write(0, 0, 8192);
    let folder = growing.folder.path();
    let mut follower = begin(folder, StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    let at = follower.position();
    let remake = |with: &Growing| {
        fs::create_dir_all(folder.join("archive_status")).expect("a directory");
        let (name, bytes) = &with.segments[0];
        fs::write(folder.join(name), bytes).expect("written");
    };
    fs::remove_dir_all(folder).expect("removed");
    assert!(follower.is_readable());
    assert_eq!(look(&mut follower), [Happening::Gone { at }]);
    assert_eq!(look(&mut follower), []);
    assert!(!follower.is_readable());
    let other = Growing::of(&sample("pg17-mixed"));
    remake(&other);
    let told = look(&mut follower);
    let [Happening::OtherCluster { system_identifier, .. }] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_ne!(*system_identifier, follower.geometry().system_identifier);
    assert_eq!(look(&mut follower), []);
    assert!(!follower.is_readable());
    // The same one again, as from a copy, is none.
    fs::rename(folder, folder.with_extension("aside")).expect("renamed");
    remake(&growing);
    assert_eq!(look(&mut follower), [Happening::Back { at }]);
    assert!(follower.is_readable());
    fs::remove_dir_all(folder.with_extension("aside")).expect("removed");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).expect("a vector takes everything");
    gzip.finish().expect("gzip ends")
}

/// As `pg_receivewal --compress` makes them: a file that is empty at first, then grows, and is renamed.
#[test]
fn a_compressed_segment_is_read_once_it_has_its_name() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let sample = sample("pg15-mixed");
    let name = &sample.segments()[2];
    let at = |suffix: &str| folder.path().join(format!("{name}{suffix}"));
    fs::write(at(".gz.partial"), b"").expect("written");
    let mut follower = begin(folder.path(), StartAt::Oldest);
    look(&mut follower);
    fs::write(at(".gz.partial"), gzip(&plain(&sample, name))).expect("written");
    look(&mut follower);
    fs::rename(at(".gz.partial"), at(".gz")).expect("renamed");
    assert_eq!(look(&mut follower), []);
    let (_, outcome) = Scan::paths([folder.path()]).count(&Ends::default()).expect("WAL");
    assert_eq!(ends(&mut follower), outcome.observer.0);
}

/// The same segment as the sample has it, but of another cluster, which goes on at the same place.
#[test]
fn what_another_cluster_writes_into_the_same_segment_is_not_counted() {
    let growing = Growing::of(&sample("pg15-mixed"));
    let folder = growing.folder.path();
    growing.prepare(0);
    growing.write(0, 0, 5 * 8192);
    std::thread::sleep(Duration::from_millis(200));
    let mut follower = begin(folder, StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    let counted = ends(&mut follower);
    let (name, bytes) = &growing.segments[0];
    let mut foreign = bytes.clone();
    foreign[24] ^= 1;
    // The folder itself, and then only the file in it.
    let aside = folder.with_extension("aside");
    fs::rename(folder, &aside).expect("renamed");
    fs::create_dir_all(folder.join("archive_status")).expect("a directory");
    fs::write(folder.join(name), &foreign).expect("written");
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::OtherCluster { .. }]), "{told:?}");
    assert!(!follower.is_readable());
    fs::remove_dir_all(folder).expect("removed");
    fs::rename(&aside, folder).expect("renamed");
    let told = look(&mut follower);
    assert!(matches!(told.last(), Some(Happening::Back { .. })), "{told:?}");
    assert!(follower.is_readable());
    fs::rename(folder.join(name), folder.join("aside")).expect("renamed");
    fs::write(folder.join(name), &foreign).expect("written");
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::OtherCluster { .. }]), "{told:?}");
    assert!(!follower.is_readable());
    assert_eq!(ends(&mut follower), counted);
    assert_eq!(follower.lost_bytes(), 0);
}

/// In a folder that is filled, whatever numbers the other cluster's segments have.
#[test]
fn segments_of_another_cluster_in_place_of_all_others_are_told() {
    let names = sample("pg15-mixed").segments();
    let folder = plain_folder("pg15-mixed", 2..4);
    let mut follower = begin(folder.path(), StartAt::Oldest);
    look(&mut follower);
    let at = follower.position();
    for number in ["01", "40"] {
        names[2..4].iter().for_each(|name| fs::remove_file(folder.path().join(name)).expect("it"));
        let other = format!("0000000100000000000000{number}");
        let mut foreign = plain(&sample("pg15-mixed"), &names[4]);
        foreign[24] ^= 1;
        fs::write(folder.path().join(&other), &foreign).expect("written");
        let told = look(&mut follower);
        let [Happening::OtherCluster { .. }] = told.as_slice() else { panic!("{told:?}") };
        assert!(!follower.is_readable());
        fs::remove_file(folder.path().join(&other)).expect("removed");
        add_segments(&sample("pg15-mixed"), folder.path(), 2..4);
        assert_eq!(look(&mut follower), [Happening::Back { at }]);
        assert!(follower.is_readable());
    }
}

/// An older copy of the same WAL, which a server has gone on from with other records.
#[test]
fn an_older_copy_that_went_on_otherwise_is_told_and_not_counted() {
    let growing = Growing::of(&sample("pg15-mixed"));
    let folder = growing.folder.path();
    growing.prepare(0);
    growing.write(0, 0, 6 * 8192);
    let mut follower = begin(folder, StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    let (counted, lost) = (ends(&mut follower), follower.lost_bytes());
    let (name, bytes) = &growing.segments[0];
    let put = |pages: usize, change: u8| {
        let mut copy = vec![0; bytes.len()];
        copy[..pages * 8192].copy_from_slice(&bytes[..pages * 8192]);
        copy[2 * 8192 + 24..].iter_mut().for_each(|byte| *byte ^= change);
        fs::write(folder.join("copy"), copy).expect("written");
        fs::rename(folder.join("copy"), folder.join(name)).expect("renamed");
    };
    put(2, 0);
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::OtherHistory { .. }]), "{told:?}");
    put(7, 1);
    assert_eq!(look(&mut follower), []);
    assert!(!follower.is_readable());
    assert_eq!((ends(&mut follower), follower.lost_bytes()), (counted, lost));
    // What was counted is there again, and more.
    put(9, 0);
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::Back { .. }]), "{told:?}");
    assert!(follower.is_readable());
    let (_, outcome) =
        Scan::paths([&sample("pg15-mixed").wal]).count(&Ends::default()).expect("WAL");
    let counted = ends(&mut follower);
    assert_eq!(counted, outcome.observer.0[..counted.len()]);
}

#[test]
fn a_start_after_all_wal_is_told_and_waited_for() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let names = sample("pg15-mixed").segments();
    let number = u64::from_str_radix(&names[3][16..], 16).expect("a number");
    let mut follower = begin(folder.path(), StartAt::Lsn(Lsn((number << 20) + 100)));
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::OtherHistory { .. }]), "{told:?}");
    assert!(!follower.is_readable());
    add_segments(&sample("pg15-mixed"), folder.path(), 2..5);
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::Back { .. }]), "{told:?}");
    assert_eq!(follower.lost_bytes(), 0);
    assert!(!ends(&mut follower).is_empty());
}

/// A state of later than the WAL, as after a restore.
#[test]
fn a_state_goes_on_only_where_its_last_record_is() {
    let folder = plain_folder("pg15-mixed", 0..4);
    let beside = TempDir::new().expect("a directory");
    let state = beside.path().join("state");
    let words = ["--state", state.to_str().expect("text")];
    let first = Following::begin(folder.path(), &words).end_after_a_line();
    let older = plain_folder("pg15-mixed", 0..2);
    let following = Following::begin(older.path(), &words);
    let line = following.line(|_| true);
    assert_eq!((&line["up"], &line["lost_bytes"]), (&Value::Bool(false), &Value::from(0)));
    let told = line["happenings"].to_string();
    assert!(told.contains("other_history"), "{told}");
    add_segments(&sample("pg15-mixed"), older.path(), 2..5);
    let line = following.line(|line| line["position_lsn"] != first["position_lsn"]);
    assert_eq!((&line["up"], &line["lost_bytes"]), (&Value::Bool(true), &Value::from(0)));
    is_as_stats(&line, older.path());
    following.end("TERM");
}

/// Though nothing in it has changed meanwhile.
#[test]
fn a_folder_that_is_there_again_is_told() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let inside = folder.path().join("wal");
    fs::create_dir(&inside).expect("a directory");
    add_segments(&sample("pg15-mixed"), &inside, 0..2);
    std::thread::sleep(Duration::from_millis(200));
    let mut follower = begin(&inside, StartAt::Oldest);
    look(&mut follower);
    let at = follower.position();
    fs::rename(&inside, folder.path().join("aside")).expect("renamed");
    assert_eq!(look(&mut follower), [Happening::Gone { at }]);
    fs::rename(folder.path().join("aside"), &inside).expect("renamed");
    assert_eq!(look(&mut follower), [Happening::Back { at }]);
    assert!(follower.is_readable());
}

/// A segment that is renamed and written anew can still be read, as long as nobody writes over it.
#[test]
fn a_segment_that_is_recycled_is_read_to_its_end() {
    let sample = sample("pg15-mixed");
    let growing = Growing::of(&sample);
    (0..3).for_each(|index| growing.prepare(index));
    growing.write(0, 0, 8192);
    let mut follower = begin(growing.folder.path(), StartAt::Oldest);
    look(&mut follower);
    (0..3).for_each(|index| growing.write(index, 0, growing.segments[index].1.len()));
    let path = |index: usize| growing.folder.path().join(&growing.segments[index].0);
    fs::rename(path(0), path(5)).expect("renamed");
    fs::remove_file(path(1)).expect("removed");
    assert_eq!(look(&mut follower), []);
    assert_eq!(follower.lost_bytes(), 0);
    let (_, outcome) = Scan::paths([&sample.wal]).count(&Ends::default()).expect("WAL");
    let all = outcome.observer.0;
    let counted = ends(&mut follower);
    assert_eq!(counted, all[..counted.len()]);
    let third = follower.position().0 >> 20;
    assert!(third >= 8, "the third segment was read: {}", follower.position());
}

// ---- the program ----

/// The program, which is ended with the test.
struct Following {
    child: Child,
    folder: TempDir,
}

impl Following {
    fn begin(path: &Path, words: &[&str]) -> Following {
        let folder = TempDir::new().expect("a directory");
        let mut all =
            vec!["follow", path.to_str().expect("text"), "-f", "ndjson", "--every", "100ms"];
        all.extend(words);
        Following::spawn(signals::none_ignored(&command(&all)), folder)
    }

    /// The same as `nohup` does it: whoever started it wants SIGHUP to be ignored.
    fn begin_without_hangup(path: &Path) -> Following {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", WALSTAT, "follow"]);
        shell.arg(path).args(["-f", "ndjson", "--every", "100ms"]);
        Following::spawn(shell, TempDir::new().expect("a directory"))
    }

    fn spawn(mut following: std::process::Command, folder: TempDir) -> Following {
        let file = |name| fs::File::create(folder.path().join(name)).expect("a file");
        following.stdout(file("out")).stderr(file("err"));
        Following { child: following.spawn().expect("it starts"), folder }
    }

    fn text(&self, name: &str) -> String {
        let mut text = String::new();
        let mut file = fs::File::open(self.folder.path().join(name)).expect("a file");
        file.read_to_string(&mut text).expect("text");
        text
    }

    /// The first line for which something holds.
    fn line(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let text = self.text("out");
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let lines = whole.lines().map(|line| serde_json::from_str(line).expect("JSON"));
            if let Some(line) = lines.into_iter().find(|line| wanted(line)) {
                return line;
            }
            assert!(begun.elapsed() < PATIENCE, "{}\n{text}", self.text("err"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn send(&self, signal: &str) {
        signals::send(&self.child, signal);
    }

    /// Ends it by a signal: exit 0. Returns its last line.
    fn end(mut self, signal: &str) -> Option<Value> {
        self.send(signal);
        let ended = self.child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0), "{}", self.text("err"));
        self.text("out").lines().last().map(|line| serde_json::from_str(line).expect("JSON"))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn plain_folder(name: &str, segments: std::ops::Range<usize>) -> TempDir {
    let sample = sample(name);
    let folder = TempDir::new().expect("a directory");
    add_segments(&sample, folder.path(), segments);
    folder
}

fn add_segments(sample: &Sample, folder: &Path, segments: std::ops::Range<usize>) {
    for name in sample.segments().get(segments).expect("segments") {
        fs::write(folder.join(name), plain(sample, name)).expect("written");
    }
}

/// The sums are those of --stats from the start to the position.
fn is_as_stats(line: &Value, path: &Path) {
    let text = |key: &str| line[key].as_str().expect("an LSN").to_owned();
    let (start, position) = (text("start_lsn"), text("position_lsn"));
    let words = ["--stats=rmgr,table", "-f", "json", "-s", &start, "-e", &position];
    let stats = walstat(&[&words[..], &[path.to_str().expect("text")]].concat()).exits(0).json();
    for key in ["count", "record_bytes", "fpi_bytes", "total_bytes", "fpi_count"] {
        assert_eq!(line[key], stats["totals"][key], "{key} to {position}");
        let sum = |rows: &Value| -> u64 {
            rows.as_array().expect("rows").iter().map(|row| row[key].as_u64().expect("a sum")).sum()
        };
        assert_eq!(sum(&line["tables"]), sum(&stats["tables"]), "{key} of tables");
    }
    for row in stats["rmgrs"].as_array().expect("rows").iter().filter(|row| row["count"] != 0) {
        let of_same = |own: &&Value| own["rmgr"] == row["rmgr"];
        let own = line["rmgrs"].as_array().expect("rows").iter().find(of_same).expect("a row");
        assert_eq!(own["total_bytes"], row["total_bytes"]);
    }
    if let Some(redo) = line["redo_lsn"].as_str() {
        let words = ["--stats", "-f", "json", "-s", redo, "-e", &position];
        let since = walstat(&[&words[..], &[path.to_str().expect("text")]].concat()).json();
        let own = [&line["bytes_since_redo"], &line["fpi_bytes_since_redo"]];
        let all = [&since["totals"]["total_bytes"], &since["totals"]["fpi_bytes"]];
        assert_eq!(own, all, "{redo} to {position}");
    }
    let told = line["tables"].as_array().expect("rows");
    if told.iter().any(|row| row["table"] == "other") {
        return;
    }
    for row in
        stats["tables"].as_array().expect("rows").iter().filter(|row| row["name"].is_string())
    {
        let is_it = |own: &&Value| own["table"] == row["name"] && own["schema"] == row["schema"];
        let own = told.iter().filter(is_it);
        let told: u64 = own.map(|own| own["total_bytes"].as_u64().expect("bytes")).sum();
        assert!(told >= row["total_bytes"].as_u64().expect("bytes"), "{row}");
    }
}

#[test]
fn a_folder_is_followed_to_its_last_whole_segment_and_as_it_fills() {
    let folder = plain_folder("pg15-mixed", 0..5);
    let following = Following::begin(folder.path(), &["--top", "0"]);
    let line = following.line(|_| true);
    is_as_stats(&line, folder.path());
    let sample = sample("pg15-mixed");
    let half = plain(&sample, &sample.segments()[5]);
    let path = folder.path().join(&sample.segments()[5]);
    fs::write(&path, &half[..half.len() / 2]).expect("written");
    add_segments(&sample, folder.path(), 5..9);
    let before = line["position_lsn"].clone();
    let ninth = |line: &Value| line["position_lsn"].as_str().is_some_and(|lsn| lsn >= "0/00E80000");
    let line = following.line(ninth);
    assert_ne!(line["position_lsn"], before);
    is_as_stats(&line, folder.path());
    let last = following.end("TERM").expect("a line");
    assert_eq!(last["count"], line["count"]);
}

#[test]
fn an_empty_folder_is_waited_for_with_one_line() {
    let folder = TempDir::new().expect("a directory");
    let following = Following::begin(folder.path(), &[]);
    let begun = Instant::now();
    while following.text("err").is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    add_segments(&sample("pg15-mixed"), folder.path(), 0..2);
    is_as_stats(&following.line(|line| line["count"] != 0), folder.path());
    let text = following.text("err");
    assert!(text.lines().count() == 1 && text.contains("no WAL yet"), "{text}");
    following.end("INT");
    let following = Following::begin(Path::new("/nowhere"), &[]);
    let mut following = following;
    assert_eq!(following.child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn a_hangup_that_is_to_be_ignored_does_not_end_it() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let mut following = Following::begin_without_hangup(folder.path());
    following.line(|_| true);
    following.send("HUP");
    let lines = |following: &Following| following.text("out").lines().count();
    let (before, begun) = (lines(&following), Instant::now());
    // More than it tells in the second that it has to end.
    while lines(&following) < before + 15 {
        assert_eq!(following.child.try_wait().expect("its state"), None, "it ended");
        assert!(begun.elapsed() < PATIENCE, "{}", following.text("out"));
        std::thread::sleep(Duration::from_millis(20));
    }
    following.end("TERM");
    let following = Following::begin(folder.path(), &[]);
    following.line(|_| true);
    following.end("HUP");
}

#[test]
fn a_state_goes_on_where_it_stopped_totals_too() {
    let folder = plain_folder("pg15-mixed", 0..4);
    let beside = TempDir::new().expect("a directory");
    let state = beside.path().join("state");
    let words = ["--state", state.to_str().expect("text"), "--top", "3"];
    let first = Following::begin(folder.path(), &words).end_after_a_line();
    add_segments(&sample("pg15-mixed"), folder.path(), 4..9);
    let following = Following::begin(folder.path(), &words);
    let line = following.line(|line| line["position_lsn"] != first["position_lsn"]);
    is_as_stats(&line, folder.path());
    assert_eq!(line["start_lsn"], first["start_lsn"]);
    for row in first["tables"].as_array().expect("rows") {
        let is_it =
            |own: &&Value| ["database", "schema", "table"].iter().all(|key| own[key] == row[key]);
        let own = line["tables"].as_array().expect("rows").iter().find(is_it).expect("it stays");
        assert!(own["total_bytes"].as_u64() >= row["total_bytes"].as_u64(), "{row} {own}");
    }
    following.end("TERM");
    let text = fs::read_to_string(&state).expect("a state");
    let refused = |content: &str, path: &Path, why: &str| {
        fs::write(&state, content).expect("written");
        let mut following = Following::begin(path, &words);
        assert_eq!(following.child.wait().expect("it ends").code(), Some(2), "{why}");
        let said = following.text("err");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
        assert_eq!(fs::read_to_string(&state).expect("a state"), content, "{why}");
    };
    refused(&text[..text.len() - 1], folder.path(), "expected a whole state");
    refused(&text[..text.len() / 2], folder.path(), "expected a whole state");
    refused("", folder.path(), "expected a whole state");
    refused("{}", folder.path(), "another file");
    refused(&text.replacen("state\":1", "state\":2", 1), folder.path(), "version 2");
    refused(&text, plain_folder("pg13-mixed", 0..3).path(), "of cluster");
}

/// So a service begins once with what is written then, and goes on from there at each later start.
#[test]
fn a_start_is_for_the_first_time_where_there_is_a_state() {
    let folder = plain_folder("pg15-mixed", 0..4);
    let beside = TempDir::new().expect("a directory");
    let state = beside.path().join("state");
    let words = ["--state", state.to_str().expect("text"), "--start", "now"];
    let first = Following::begin(folder.path(), &words).end_after_a_line();
    add_segments(&sample("pg15-mixed"), folder.path(), 4..7);
    let following = Following::begin(folder.path(), &words);
    let line = following.line(|line| line["position_lsn"] != first["position_lsn"]);
    assert_eq!(line["lost_bytes"], 0);
    is_as_stats(&line, folder.path());
    following.end("TERM");
}

#[test]
fn two_do_not_use_one_state() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let beside = TempDir::new().expect("a directory");
    let state = beside.path().join("state");
    let words = ["--state", state.to_str().expect("text")];
    let first = Following::begin(folder.path(), &words);
    first.line(|_| true);
    let mut second = Following::begin(folder.path(), &words);
    assert_eq!(second.child.wait().expect("it ends").code(), Some(2));
    let said = second.text("err");
    assert!(said.contains("another follow is using this state file"), "{said}");
    first.end("TERM");
    Following::begin(folder.path(), &words).end_after_a_line();
}

/// The sample empties a table and drops it later: by the time that it is told, the table is gone.
#[test]
fn what_was_truncated_before_it_was_dropped_was_not_dropped_then() {
    let following = Following::begin(&sample("pg14-mixed").wal, &[]);
    let line = following.line(|line| !line["happenings"].as_array().expect("rows").is_empty());
    following.end("TERM");
    let rows = line["happenings"].as_array().expect("rows").iter();
    let texts = rows.map(|row| row["text"].as_str().expect("a sentence"));
    let of_table: Vec<&str> = texts.filter(|text| text.ends_with(" public.tt")).collect();
    let dropped = of_table.iter().filter(|text| text.contains(" dropped public")).count();
    assert!(of_table.len() > 1 && dropped == 1, "{of_table:?}");
}

/// As a full disk leaves it.
#[test]
fn lines_begin_anew_after_half_a_line() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let beside = TempDir::new().expect("a directory");
    let file = beside.path().join("lines");
    fs::write(&file, "{\"whole\":1}\n{\"time\":\"2026-").expect("written");
    let words = ["-o", file.to_str().expect("text")];
    let mut following = Following::begin(folder.path(), &words);
    let (begun, half) = (Instant::now(), fs::metadata(&file).expect("a file").len());
    while fs::metadata(&file).expect("a file").len() == half {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    following.send("TERM");
    assert_eq!(following.child.wait().expect("it ends").code(), Some(0));
    let text = fs::read_to_string(&file).expect("text");
    let read = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    let whole: Vec<bool> = text.lines().map(read).collect();
    assert!(whole.len() > 2 && whole.iter().filter(|whole| !**whole).count() == 1, "{text}");
    assert!(!whole[1], "{text}");
}

impl Following {
    fn end_after_a_line(self) -> Value {
        self.line(|_| true);
        self.end("TERM").expect("a line")
    }
}

#[test]
fn usage_is_told_before_anything_is_read() {
    let folder = plain_folder("pg15-mixed", 0..1);
    let path = folder.path().to_str().expect("text");
    let file = folder.path().join("000000010000000000000006");
    let inside = folder.path().join("0000000100000000000000AA");
    for words in [
        &["follow", path, "--every", "1ms"][..],
        &["follow", path, "--start", "then"],
        &["follow", path, "--listen", "9187"],
        &["follow", file.to_str().expect("text")],
        &["follow", path, "-f", "ndjson", "-o", inside.to_str().expect("text")],
    ] {
        let ran = walstat(words).exits(2);
        assert!(ran.stdout.is_empty(), "{words:?}");
    }
}
