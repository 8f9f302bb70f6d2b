//! WAL without a whole first page of a segment is read from the first page that is whole, with a problem.

use super::{NAMES, archive, check, segment, told};
use crate::support::{Ran, command, finish};
use serde_json::Value;
use std::fs;

/// What is read of one file.
#[track_caller]
fn salvaged(name: &str, bytes: Vec<u8>) -> Ran {
    let directory = archive(&[(name, bytes)]);
    let ran = check(&[], &directory.path().join(name)).exits(4);
    let report = ran.json();
    assert_eq!(report["books"]["unaccounted_bytes"], 0, "{name}");
    assert_eq!(report["input"]["segment_bytes"], 1 << 20, "{name}");
    assert!(report["notes"].to_string().contains("first page"), "{}", report["notes"]);
    ran
}

fn count(report: &Value) -> u64 {
    report["totals"]["count"].as_u64().expect("a count")
}

fn whole() -> u64 {
    let directory = archive(&[(NAMES[1], segment(1))]);
    count(&check(&[], directory.path()).exits(0).json())
}

#[test]
fn a_lone_segment_with_a_bad_first_page_is_read_from_the_second_on() {
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes[..8192].fill(0),
        |bytes| bytes[0] ^= 1,
        |bytes| bytes[..4096].fill(0x41),
        |bytes| bytes[..40 * 8192].fill(0),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        for name in [NAMES[1], "segment.bin"] {
            let mut bytes = segment(1);
            damage(&mut bytes);
            let ran = salvaged(name, bytes);
            let read = count(&ran.json());
            let least = if number == 3 { whole() / 3 } else { whole() / 10 * 9 };
            assert!(read > least && read < whole(), "{name} {number}: {read} of {}", whole());
            assert_eq!(ran.json()["range"]["start"].as_str().map(|s| &s[..5]), Some("0/008"));
            assert_eq!(told(&ran).len(), 1, "{:?}", told(&ran));
        }
    }
}

#[test]
fn a_segment_behind_leading_zeros_is_read() {
    let bytes = [vec![0; 3 * 8192], segment(1)].concat();
    for name in [NAMES[1], "segment.bin"] {
        let ran = salvaged(name, bytes.clone());
        assert_eq!(count(&ran.json()), whole(), "{name}");
    }
}

#[test]
fn pages_from_the_middle_of_a_segment_are_read_where_they_belong() {
    let bytes = segment(1)[50 * 8192..90 * 8192].to_vec();
    let named = format!("{}.cut", NAMES[1]);
    for name in ["pages.bin", &named] {
        let directory = archive(&[(name, bytes.clone())]);
        let report = check(&[], &directory.path().join(name)).exits(4).json();
        assert!(count(&report) > 500, "{name}");
        assert_eq!(report["books"]["unaccounted_bytes"], 0);
        assert_eq!(report["books"]["input_bytes"], 40 * 8192);
    }
}

/// What comes through a pipe, or is compressed, is read as a file is.
#[test]
fn a_lone_segment_in_a_stream_is_read_from_its_first_whole_page_on() {
    let mut damaged = segment(1);
    damaged[..8192].fill(0);
    let read = |ran: Ran| {
        let report = ran.exits(4).json();
        assert_eq!(report["books"]["unaccounted_bytes"], 0);
        assert!(report["notes"].to_string().contains("first page"), "{}", report["notes"]);
        count(&report)
    };
    let expected = count(&salvaged(NAMES[1], damaged.clone()).json());
    let packed = zstd::encode_all(damaged.as_slice(), 1).expect("a vector takes everything");
    for bytes in [&damaged, &packed] {
        assert_eq!(read(through_a_pipe(bytes)), expected);
        for name in ["lone.zst", "lone"] {
            let directory = archive(&[(name, bytes.clone())]);
            assert_eq!(read(check(&[], &directory.path().join(name))), expected, "{name}");
        }
    }
    // More than one is what its bytes are as one.
    let two = [damaged, segment(2)].concat();
    assert!(read(through_a_pipe(&two)) >= expected);
}

fn through_a_pipe(bytes: &[u8]) -> Ran {
    let directory = archive(&[("bytes", bytes.to_vec())]);
    let file = fs::File::open(directory.path().join("bytes")).expect("the file");
    finish(command(&["check", "-f", "json", "-"]).stdin(file))
}

#[test]
fn what_holds_no_page_is_no_wal() {
    for bytes in [vec![0; 1 << 20], b"no WAL at all\n".repeat(10_000)] {
        through_a_pipe(&bytes).exits(3);
        let directory = archive(&[(NAMES[1], bytes)]);
        check(&[], directory.path()).exits(3);
    }
}
