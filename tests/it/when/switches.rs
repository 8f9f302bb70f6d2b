//! The unused rest of a segment after a switch is neither written nor replayed.

use crate::common::builder::{Form, Wal};
use crate::common::record::{Rec, TRANSACTION, XLOG};
use crate::support::walstat;
use serde_json::Value;
use std::path::Path;

/// 2026-01-01, in microseconds since 2000.
const BEGIN: i64 = 820_454_400_000_000;
/// Seconds from 1970 to 2000.
const EPOCH: i64 = 946_684_800;

/// A commit so many seconds later.
fn commit(seconds: i64) -> Rec {
    let mut record = Rec::new(TRANSACTION, 0x00, 8);
    record.main.copy_from_slice(&(BEGIN + seconds * 1_000_000).to_le_bytes());
    record
}

fn checkpoint(wal: &mut Wal, seconds: i64) {
    let layout = wal.form.version.checkpoint;
    let mut record = Rec { xid: 0, ..Rec::new(XLOG, 0x10, layout.bytes) };
    let at = layout.bytes - 24;
    record.main[..8].copy_from_slice(&wal.next().0.to_le_bytes());
    // ThisTimeLineID and PrevTimeLineID.
    record.main[8..16].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
    record.main[at..at + 8].copy_from_slice(&(BEGIN / 1_000_000 + EPOCH + seconds).to_le_bytes());
    wal.add(&record);
}

/// A server with little to do that begins a segment a second.
fn idle(release: &str) -> Wal {
    let mut wal = Wal::new(Form::of(release), 1);
    wal.add(&Rec::data(100));
    checkpoint(&mut wal, 0);
    for second in 1..20 {
        wal.add(&Rec::data(400));
        wal.add(&commit(second));
        wal.switch();
    }
    wal.add(&commit(20));
    wal
}

fn json(folder: &Path, options: &[&str]) -> Value {
    let folder = folder.to_str().expect("UTF-8");
    walstat(&[&["--format=json", folder], options].concat()).exits(0).json()
}

#[test]
fn neither_rates_nor_replay_have_the_unused_rest_of_segments() {
    for release in ["9.5", "13", "17"] {
        let folder = idle(release).finish().write();
        for threads in ["1", "3"] {
            let report = json(folder.path(), &["-j", threads]);
            let when = &report["when"];
            let bytes = |key: &str| when[key].as_u64().unwrap_or_else(|| panic!("{key}: {when}"));
            assert!(bytes("worst_recovery_bytes") < 20_000, "{when}");
            assert!(bytes("peak_rate") < 2000, "{when}");
            assert!(when["mean_rate"].as_f64().expect("a rate") < 1000.0, "{when}");
            let seconds = &when["worst_recovery_seconds"]["high"];
            assert!(seconds.as_f64().expect("seconds") < 0.01, "{when}");
        }
    }
}

#[test]
fn what_has_to_be_sent_is_all_of_a_segment() {
    let folder = idle("15").finish().write();
    let report = json(folder.path(), &["--stats=replication,recovery"]);
    let told = &report["replication"];
    assert!(told["peak_rate"].as_u64().expect("a rate") < 2000, "{told}");
    assert!(told["never_behind_rate"].as_u64().expect("a rate") > 1_000_000, "{told}");
    let replay = &report["recovery"]["worst"];
    let (bytes, records) = (&replay["wal_bytes"], &replay["total_bytes"]);
    let (bytes, records) = (bytes.as_u64().expect("bytes"), records.as_u64().expect("bytes"));
    assert!((records..records + 2500).contains(&bytes), "{replay}");
}

/// One transaction, of which only the end states a time: nobody knows when it wrote.
#[test]
fn where_the_clock_is_thin_no_peak_is_told() {
    let mut wal = Wal::new(Form::of("16"), 1);
    wal.add(&commit(0));
    for _ in 0..400 {
        wal.add(&Rec::data(5000));
    }
    wal.add(&commit(40_000));
    let folder = wal.finish().write();
    let report = json(folder.path(), &[]);
    assert!(report["when"]["peak_rate"].is_null(), "{}", report["when"]);
    assert!(report["when"]["mean_rate"].is_number(), "{}", report["when"]);
    let folder = folder.path().to_str().expect("UTF-8");
    let text = walstat(&[folder]).exits(0).stdout;
    assert!(text.contains("peak unknown: most of the WAL states no time"), "{text}");
}

/// By their share of what was read, of which the last segment is empty here but for a record.
#[test]
fn a_note_tells_of_them_where_the_report_does() {
    for (room, is_told) in [(256 << 10, true), (160 << 10, false)] {
        let mut wal = Wal::new(Form::of("16"), 1);
        let end = wal.at() + wal.form.segment;
        while wal.at() + room < end {
            wal.add(&Rec::data(5000));
        }
        wal.switch();
        wal.add(&commit(0));
        let folder = wal.finish().write();
        let notes = json(folder.path(), &["--stats=record"])["notes"].to_string();
        assert_eq!(notes.contains("closed early"), is_told, "{notes}");
        let folder = folder.path().to_str().expect("UTF-8");
        let text = walstat(&[folder]).exits(0).stdout;
        assert_eq!(text.contains("besides, "), is_told, "{text}");
    }
}
