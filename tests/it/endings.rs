//! The promise: every ending has a name, and all but damage are normal: exit 0, no problem, no
//! message.

use crate::common::builder::{Form, Wal};
use crate::common::record::Rec;
use crate::support::fixtures::{Sample, sample, samples};
use crate::support::wal::{file, plain, put};
use crate::support::{json_of, number, walstat};
use crate::verdicts::around::data_directory;
use serde_json::Value;
use std::fs;
use std::path::Path;
use walstat_format::record::Record;
use walstat_read::Scan;
use walstat_read::scan::observe::Observe;

/// Kind and place of the ending; requires what every normal ending has.
fn ending(json: &Value, name: &str) -> (String, String) {
    let ending = &json["ending"];
    let text = |key: &str| {
        ending[key].as_str().unwrap_or_else(|| panic!("{name}: {key} in {ending}")).to_owned()
    };
    assert!(text("text").ends_with('.'), "{name}: one sentence: {ending}");
    assert_eq!(text("segment").len(), 24, "{name}: a segment's name: {ending}");
    assert_eq!(json["problems"], Value::Array(vec![]), "{name}: a normal ending is no problem");
    assert_eq!(number(json, "books.damaged_bytes"), 0, "{name}: a normal ending damages nothing");
    (text("kind"), text("lsn"))
}

fn ending_of(arguments: &[&str], path: &Path) -> (String, String) {
    let json = json_of(&[&["--stats"], arguments].concat(), path);
    ending(&json, &format!("{} {arguments:?}", path.display()))
}

/// An LSN as a number.
fn lsn(text: &str) -> u64 {
    let (high, low) = text.split_once('/').unwrap_or_else(|| panic!("{text} is no LSN"));
    let part =
        |digits| u64::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{text} is no LSN"));
    part(high) << 32 | part(low)
}

/// The segment in which a place lies, and the offset there; segments of 1 MB on timeline 1.
fn place(text: &str) -> (String, usize) {
    let position = lsn(text);
    (
        format!("00000001{:08X}{:08X}", position >> 32, (position & 0xFFFF_FFFF) >> 20),
        position as usize & 0xF_FFFF,
    )
}

#[test]
fn a_server_that_was_stopped_ends_in_its_shutdown_checkpoint() {
    for sample in samples() {
        if !(sample.name.ends_with("-mixed") || sample.name.ends_with("-workload")) {
            continue;
        }
        let (kind, end) = ending_of(&[], &sample.wal);
        assert_eq!(kind, "shutdown", "{}", sample.name);
        assert!(lsn(&end) > lsn(&sample.end), "{}: the shutdown is behind the range", sample.name);
    }
}

/// From 15 on the official tool says where the last record ends.
#[test]
fn the_end_is_where_the_official_tool_ends() {
    let told: Vec<Sample> = samples().into_iter().filter(|sample| sample.all_stats).collect();
    let mut compared = 0;
    for sample in told {
        let golden = sample.golden("all-stats.txt");
        let Some(line) =
            golden.lines().next().and_then(|line| line.strip_prefix("WAL statistics between "))
        else {
            continue;
        };
        let (start, end) = line.trim_end_matches(':').split_once(" and ").expect("two places");
        let json = json_of(&["--stats"], &sample.wal);
        let (_, found) = ending(&json, &sample.name);
        assert_eq!(lsn(&found), lsn(end), "{}: end", sample.name);
        let first = json["range"]["start"].as_str().expect("range.start");
        assert_eq!(lsn(first), lsn(start), "{}: start", sample.name);
        compared += 1;
    }
    assert!(compared >= 4, "only {compared} samples say where they end");
}

#[test]
fn a_range_ends_complete_whatever_lies_behind_it() {
    for sample in samples() {
        let (kind, end) = ending_of(&sample.range(), &sample.wal);
        assert_eq!(kind, "complete", "{}", sample.name);
        assert_eq!(lsn(&end), lsn(&sample.end), "{}", sample.name);
    }
}

#[test]
fn a_killed_server_ends_in_the_old_content_of_a_recycled_segment() {
    let sample = sample("livedir");
    let json = json_of(&["--stats"], &sample.wal);
    assert_eq!(ending(&json, &sample.name).0, "recycled");
    let ahead = 1 << 20;
    assert!(
        number(&json, "books.stale_bytes") > ahead,
        "the segment made ready ahead is old content as well"
    );
}

#[test]
fn a_file_that_was_cut_ends_partial() {
    let sample = sample("truncated");
    let json = json_of(&["--stats"], &sample.wal);
    let (kind, end) = ending(&json, &sample.name);
    assert_eq!(kind, "partial_page");
    let (_, cut) = place(&end);
    assert!(cut < 500_123, "the last record ends before the cut: {end}");
    assert!(number(&json, "books.incomplete_bytes") > 0, "the cut went through a record");
}

/// What was torn is what lies between the place that the server names in its record and the page
/// that carries the flag, less the page headers on the way.
#[test]
fn a_torn_record_is_overwritten_and_the_wal_goes_on() {
    let sample = sample("overwrite");
    let (torn, replaced) = torn_record(&sample);
    let pages = (torn / 8192 + 1)..(replaced / 8192);
    let headers: u64 = pages.map(|page| if page * 8192 % (1 << 20) == 0 { 40 } else { 24 }).sum();
    let json = json_of(&["--stats=record"], &sample.wal);
    assert_eq!(number(&json, "books.overwritten_bytes"), i128::from(replaced - torn - headers));
    let records = json["records"].as_array().expect("records");
    let replacement =
        records.iter().find(|row| row["record"] == "OVERWRITE_CONTRECORD").expect("the record");
    assert_eq!(number(replacement, "count"), 1);
    assert_eq!(ending(&json, &sample.name).0, "shutdown");
}

/// Where the torn record begins, and where the page begins that replaces it.
fn torn_record(sample: &Sample) -> (u64, u64) {
    const OVERWRITE: u16 = 0x0008;
    for name in sample.segments() {
        let bytes = plain(sample, &name);
        for page in bytes.chunks_exact(8192) {
            let info = u16::from_le_bytes([page[2], page[3]]);
            if info & OVERWRITE != 0 {
                let eight =
                    |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
                // Page header, record header, short header of the main data.
                return (eight(24 + 24 + 2), eight(8));
            }
        }
    }
    panic!("{}: no page with XLP_FIRST_IS_OVERWRITE_CONTRECORD", sample.name)
}

/// Without the segment that goes on, the torn record is simply not whole.
#[test]
fn a_record_that_goes_on_in_a_missing_segment_is_incomplete() {
    let sample = sample("overwrite");
    let (torn, _) = torn_record(&sample);
    let segment = sample.segment(&place(&format!("0/{torn:X}")).0);
    let (kind, end) = ending_of(&[], &segment);
    assert_eq!((kind.as_str(), lsn(&end)), ("incomplete_record", torn));
}

#[test]
fn one_segment_alone_ends_normally() {
    let mut seen = std::collections::BTreeSet::new();
    for sample in samples() {
        for name in sample.segments() {
            let path = sample.segment(&name);
            let ran =
                walstat(&["--stats".as_ref(), "-f".as_ref(), "json".as_ref(), path.as_os_str()]);
            if ran.code == Some(3) {
                // A segment made ready ahead, or the middle of a record that fills it.
                assert!(
                    ran.stderr.contains("no WAL record found"),
                    "{}: {}",
                    sample.name,
                    ran.stderr
                );
                continue;
            }
            let (kind, _) = ending(&ran.exits(0).json(), &format!("{}/{name}", sample.name));
            assert_ne!(kind, "damage", "{}/{name}", sample.name);
            seen.insert(kind);
        }
    }
    for kind in ["complete", "incomplete_record", "partial_page", "recycled", "shutdown", "switch"]
    {
        assert!(seen.contains(kind), "no segment ends in {kind}; there is {seen:?}");
    }
}

#[test]
fn the_newest_timeline_is_followed_across_the_switch() {
    let sample = sample("timeline");
    let json = json_of(&["--stats"], &sample.wal);
    assert_eq!(ending(&json, "timeline").0, "shutdown");
    assert_eq!(json["input"]["timelines"], serde_json::json!([1, 2]));
    assert_eq!(number(&json, "input.segments"), 6, "three of timeline 1, three of timeline 2");
    // What timeline 1 has from the switch on is another history.
    let others = serde_json::json!(["000000010000000000000008", "000000010000000000000009"]);
    assert_eq!(json["input"]["other_files"], others);
}

#[test]
fn the_older_timeline_ends_where_the_newer_one_branches_off() {
    let sample = sample("timeline");
    let history =
        fs::read_to_string(sample.wal.join("00000002.history")).expect("the history file");
    let branch = history.split_whitespace().nth(1).expect("the place of the switch");
    let json = json_of(&["--stats", "-t", "1"], &sample.wal);
    let (kind, end) = ending(&json, "timeline 1");
    assert_eq!((kind.as_str(), lsn(&end)), ("timeline_switch", lsn(branch)));
    assert_eq!(json["input"]["timelines"], serde_json::json!([1]));
    assert_eq!(number(&json, "input.segments"), 5);
    let others = serde_json::json!([
        "000000020000000000000008",
        "000000020000000000000009",
        "00000002000000000000000A"
    ]);
    assert_eq!(json["input"]["other_files"], others);
}

/// A server that is promoted copies the segment up to where it leaves the old timeline, and the last
/// page of it again and again over the rest. Until that is written over, it is the end.
#[test]
fn a_promoted_servers_first_segment_ends_in_copies_of_a_page() {
    let sample = sample("timeline");
    let (segment, switch) = (String::from("000000020000000000000008"), 0x0089_2E18);
    let mut bytes = plain(&sample, &segment);
    let in_page = switch % 8192;
    let page_start = switch % (1 << 20) - in_page;
    let mut copied = bytes[page_start..page_start + 8192].to_vec();
    copied[in_page..].fill(0);
    // Some pages of the new timeline are written, the rest is as the promotion left it.
    let (written, rest) = bytes.split_at_mut(page_start + 4 * 8192);
    rest.chunks_exact_mut(8192).for_each(|page| page.copy_from_slice(&copied));
    let last_page = written.len() - 8192;
    let directory = tempfile::tempdir().expect("a directory for the segment");
    file(directory.path(), &segment, &bytes);
    let (kind, end) = ending_of(&["--as=pg_wal"], directory.path());
    assert_eq!(kind, "incomplete_record");
    let end = lsn(&end);
    assert!(end > 0x80_0000 + last_page as u64, "{end:X}");

    // And if the last record is whole, with zeros to the end of its page.
    bytes[end as usize % (1 << 20)..last_page + 8192].fill(0);
    file(directory.path(), &segment, &bytes);
    let ended = ending_of(&["--as=pg_wal"], directory.path());
    assert_eq!((ended.0.as_str(), lsn(&ended.1)), ("recycled", end));
}

/// The shutdown checkpoint of a sample taken away, as if the server still ran.
#[test]
fn zeros_behind_the_last_record_are_a_running_server() {
    let sample = sample("pg15-mixed");
    let (segment, offset) = place(&sample.end);
    let mut bytes = plain(&sample, &segment);
    bytes[offset..].fill(0);
    let directory = tempfile::tempdir().expect("a directory for the segment");
    file(directory.path(), &segment, &bytes);
    let (kind, end) = ending_of(&[], directory.path());
    assert_eq!((kind.as_str(), lsn(&end)), ("zeroed", lsn(&sample.end)));

    // The next segment, made and never written to, changes nothing.
    let next = format!(
        "{}{:02X}",
        &segment[..22],
        u8::from_str_radix(&segment[22..], 16).expect("hex") + 1
    );
    file(directory.path(), &next, &vec![0; 1 << 20]);
    let json = json_of(&["--stats"], directory.path());
    let (kind, end) = ending(&json, "with the next segment");
    assert_eq!((kind.as_str(), lsn(&end)), ("zeroed", lsn(&sample.end)));
    assert!(number(&json, "books.zero_bytes") >= 1 << 20, "{}", json["books"]);

    // A copy that stops with the last record, as of a file still being sent.
    bytes.truncate(offset);
    let directory = tempfile::tempdir().expect("a directory for the segment");
    file(directory.path(), &format!("{segment}.partial"), &bytes);
    let (kind, end) = ending_of(&[], directory.path());
    assert_eq!((kind.as_str(), lsn(&end)), ("partial_page", lsn(&sample.end)));
}

/// Whoever reads the report and not the JSON is told as well.
#[test]
fn the_ending_is_told_in_one_line() {
    for (name, words) in
        [("pg19-mixed", "server stopped"), ("livedir", "recycled"), ("truncated", "file")]
    {
        let sample = sample(name);
        for arguments in [&["--stats"][..], &[]] {
            let mut call: Vec<&std::ffi::OsStr> = arguments.iter().map(AsRef::as_ref).collect();
            call.push(sample.wal.as_os_str());
            let ran = walstat(&call).exits(0);
            let told =
                ran.stdout.lines().any(|line| line.starts_with("Ends ") && line.contains(words));
            assert!(told, "{name}: no line tells the ending\n{}", ran.stdout);
            assert_eq!(ran.stderr, "", "{name}: nothing to complain about");
            assert!(!ran.stdout.contains("invalid record length"), "{name}");
        }
    }
}

/// The LSN after each record.
#[derive(Debug, Clone, Default)]
struct Ends(Vec<u64>);

impl Observe for Ends {
    fn observe(&mut self, record: &Record<'_>) {
        self.0.push(record.end.0.next_multiple_of(8));
    }

    fn merge(&mut self, mut later: Ends) {
        self.0.append(&mut later.0);
    }
}

/// A standby writes what it receives, up to the end of any record, into a segment that was used before: the
/// rest of the page is old, too. A server that writes WAL itself leaves zeros there.
#[test]
fn a_standby_ends_in_old_content_from_the_middle_of_a_page_on() {
    let sample = sample("pg15-mixed");
    let [old, older, last] =
        ["07", "08", "09"].map(|number| plain(&sample, &format!("0000000100000000000000{number}")));
    let directory = tempfile::tempdir().expect("a folder");
    let begin = 0x90_0000;
    put(directory.path(), "000000010000000000000007", &old);
    put(directory.path(), "000000010000000000000008", &older);
    put(directory.path(), "000000010000000000000009", &last);
    let (_, whole) = Scan::paths([directory.path()]).count(&Ends::default()).expect("WAL");
    // As made ready for what comes: under its name, with what it had before.
    put(directory.path(), "00000001000000000000000A", &old);
    let ends = whole.observer.0.iter().filter(|end| (begin..begin + 0x10_0000).contains(*end));
    let (mut cut, mut damaged) = (0, 0);
    for end in ends.step_by(53) {
        let at = (end - begin) as usize;
        let file = [&last[..at], &old[at..]].concat();
        put(directory.path(), "000000010000000000000009", &file);
        let path = directory.path().to_str().expect("a path");
        let ran = walstat(&["check", "-f", "json", "--as", "pg_wal", path]);
        cut += 1;
        damaged += usize::from(ran.code != Some(0));
    }
    assert!(cut > 100, "{cut}");
    assert_eq!(damaged, 0, "of {cut}");
}

/// The `pg_control` of a data directory says of a server that it is a standby.
fn make_standby(data_directory: &Path) {
    let control = data_directory.join("global/pg_control");
    let mut bytes = fs::read(&control).expect("pg_control");
    let is_checksum = |at: &usize| bytes[*at..][..4] == crc32c::crc32c(&bytes[..*at]).to_le_bytes();
    let checksum = (0..512).find(is_checksum).expect("a checksum");
    bytes[16..20].copy_from_slice(&5_u32.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..checksum]);
    bytes[checksum..][..4].copy_from_slice(&sum.to_le_bytes());
    fs::write(control, bytes).expect("written");
}

/// The old record into which a standby's last one was written goes on to the page's end, with zeros at its
/// own end: that it is old only the pages behind it show, and that the server is a standby its `pg_control`.
#[test]
fn a_standby_ends_in_the_middle_of_an_old_record_with_zeros() {
    let (data, names) = data_directory(["07", "08", "09", "0A"]);
    let wal = data.path().join("pg_wal");
    let [old, last] = [0, 2].map(|index| fs::read(wal.join(&names[index])).expect("a segment"));
    let (_, whole) = Scan::paths([&wal]).count(&Ends::default()).expect("WAL");
    let in_last = |end: &&u64| (0x90_0000..0x90_8000).contains(*end) && **end % 8192 > 64;
    let at = (whole.observer.0.iter().find(in_last).expect("a record") - 0x90_0000) as usize;
    let page_end = at.next_multiple_of(8192);
    let record = vec![0x55; page_end - at - 64];
    let with = |behind: &[u8]| {
        let mut file = [&last[..at], &record, &[0; 64], behind].concat();
        file.resize(last.len(), 0);
        put(&wal, &names[2], &file);
        walstat(&["check", "-f", "json", "-j", "2", data.path().to_str().expect("a path")])
    };
    let some_pages = &old[page_end..page_end + 5 * 8192];
    put(&wal, &names[3], &old);
    with(some_pages).exits(4);
    make_standby(data.path());
    let ended = with(some_pages).exits(0).json();
    assert_eq!(ended["ending"]["kind"], "recycled");
    assert_eq!(lsn(ended["ending"]["lsn"].as_str().expect("text")), 0x90_0000 + at as u64);
    // It was cut off, and nothing old is there; or there are records of this WAL.
    put(&wal, &names[3], &vec![0; old.len()]);
    with(&[]).exits(4);
    with(&last[page_end..]).exits(4);
    with(&[some_pages, &last[page_end + 5 * 8192..]].concat()).exits(4);
}

/// Behind its end is the rest of an old record in which something looks like the header of one that goes on:
/// an LSN, or two numbers that read as one.
#[test]
fn what_looks_like_a_record_in_old_content_is_none() {
    let mut old = Wal::new(Form::of("15"), 7);
    [50, 300, 50, 4000, 6000].iter().for_each(|size| _ = old.add(&Rec::data(*size)));
    old.switch();
    let old = old.finish().files.remove(&7).expect("the segment");
    let mut wal = Wal::new(Form::of("15"), 8);
    wal.add(&Rec::data(50));
    wal.switch();
    [50, 100].iter().for_each(|size| _ = wal.add(&Rec::data(*size)));
    let at = wal.at();
    let mut files = wal.finish().files;
    let file = files.get_mut(&9).expect("the segment");
    file.resize(old.len(), 0);
    let offset = (at % old.len() as u64) as usize;
    file[offset..].copy_from_slice(&old[offset..]);
    let header = [&0x1_0000_u32.to_le_bytes()[..], &[0; 4], &(at - 40).to_le_bytes()].concat();
    file[offset + 16..][..16].copy_from_slice(&header);
    file[offset + 32..][..8].copy_from_slice(&[0x10, 8, 0, 0, 1, 2, 3, 4]);
    let directory = tempfile::tempdir().expect("a folder");
    for (number, bytes) in &files {
        put(directory.path(), &format!("{:08X}{number:016X}", 1), bytes);
    }
    let path = directory.path().to_str().expect("a path");
    let ran = walstat(&["check", "-f", "json", "--as", "pg_wal", path]);
    assert_eq!(ran.json()["problems"], Value::Array(vec![]));
    assert_eq!(ran.exits(0).json()["ending"]["kind"], "recycled");
}
