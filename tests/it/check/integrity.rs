//! A clean archive passes and says what was verified; every kind of damage is named.

use super::archive::Archive;
use crate::support::fixtures::sample;
use crate::support::wal::plain;

const VICTIM: &str = "00000001000000000000000A";

/// Every fault is told in the table and in JSON, and wins over a broken budget.
#[track_caller]
fn is_damaged(archive: &Archive, kinds: &[&str], segment: &str) {
    let ran = archive.check(&["--max-wal-bytes", "1"]).exits(4);
    let told = ran.stdout.lines().any(|line| {
        line.starts_with("PROBLEM ")
            && line.contains(segment)
            && kinds.iter().any(|kind| line.contains(kind))
    });
    assert!(told, "none of {kinds:?} told of {segment}:\n{}", ran.stdout);
    let json = archive.check(&["-f", "json"]).exits(4).json();
    let problems = json["problems"].as_array().expect("problems");
    let named = |problem: &&serde_json::Value| {
        kinds.iter().any(|kind| problem["kind"] == *kind)
            && problem["segment"].as_str().is_some_and(|name| name.contains(segment))
    };
    assert!(problems.iter().find(named).is_some(), "{problems:?}");
    assert_eq!(json["checks"][0]["check"], "integrity");
    assert_eq!(json["checks"][0]["verdict"], "fail");
    assert_eq!(json["checks"][0]["value"], problems.len() as f64);
}

#[test]
fn a_clean_archive_passes_and_says_what_was_verified() {
    let ran = Archive::whole().check(&[]).exits(0);
    let last = ran.stdout.lines().last().unwrap_or_default();
    for words in
        ["OK: 18 segments, 18.0 MB, 72,170 records, every checksum verified, ", " s, ", "B/s"]
    {
        assert!(last.contains(words), "{last}");
    }
    assert_eq!(ran.stderr, "");
}

#[test]
fn unverified_checksums_are_said() {
    let ran = Archive::whole().check(&["--no-verify-checksums", "-v"]).exits(0);
    assert!(ran.stdout.contains("checksums not verified"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("every checksum verified"), "{}", ran.stdout);
}

#[test]
fn a_missing_segment_is_damage() {
    let archive = Archive::whole();
    archive.remove(VICTIM);
    is_damaged(&archive, &["missing_segment"], VICTIM);
}

#[test]
fn a_flipped_bit_is_damage() {
    let archive = Archive::whole();
    archive.change(VICTIM, |bytes| bytes[500_000] ^= 0x10);
    is_damaged(&archive, &["checksum", "record_length", "prev_link", "rmgr"], VICTIM);
}

#[test]
fn a_truncated_segment_is_damage() {
    let archive = Archive::whole();
    archive.change(VICTIM, |bytes| bytes.truncate(300_000));
    is_damaged(&archive, &["truncated"], VICTIM);
}

#[test]
fn a_segment_of_another_cluster_is_damage() {
    let archive = Archive::whole();
    let other = sample("pg14-mixed");
    let name = other.segments().into_iter().find(|name| name == VICTIM).expect("the same name");
    archive.remove(VICTIM);
    archive.put(VICTIM, &plain(&other, &name));
    is_damaged(&archive, &["other_release", "other_cluster"], VICTIM);
    is_damaged(&archive, &["missing_segment"], VICTIM);
}

#[test]
fn damage_is_counted_by_group_of_segments() {
    let archive = Archive::whole();
    archive.remove(VICTIM);
    let json = archive.check(&["-f", "json"]).exits(4).json();
    let group = &json["segment_groups"][0];
    assert_eq!(group["group"], "0000000100000000");
    assert_eq!(group["segments"], 17);
    assert_eq!(group["first"], "000000010000000000000006");
    assert_eq!(group["last"], "000000010000000000000017");
    assert_eq!(group["problems"], serde_json::json!([0]));
}

#[test]
fn what_cannot_be_read_at_all_is_neither_pass_nor_damage() {
    let archive = Archive::whole();
    for entry in std::fs::read_dir(archive.path()).expect("the archive") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("a file less");
    }
    let ran = archive.check(&[]).exits(3);
    assert!(ran.stdout.is_empty() && ran.stderr.lines().count() == 1, "{}", ran.stderr);
}

#[test]
fn quiet_leaves_the_exit_code() {
    let archive = Archive::whole();
    archive.remove(VICTIM);
    assert_eq!(archive.check(&["-q"]).exits(4).stdout, "");
}

#[test]
fn the_table_goes_into_a_file_on_request() {
    let archive = Archive::whole();
    let ran = archive.check(&["-o", "result.txt"]).exits(0);
    assert_eq!(ran.stdout, "");
    let text = std::fs::read_to_string(archive.beside("result.txt")).expect("the result");
    assert!(text.contains("integrity") && text.contains("OK: 18 segments"), "{text}");
}

/// A page on which a record goes on and which says that it was replaced: no server reads past it.
#[test]
fn a_page_cannot_both_continue_a_record_and_replace_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let sample = sample("pg15-mixed");
    let names =
        ["000000010000000000000006", "000000010000000000000007", "000000010000000000000008"];
    for name in names {
        let packed =
            std::fs::File::open(sample.wal.join(format!("{name}.zst"))).expect("a segment");
        let mut bytes = zstd::decode_all(packed).expect("whole");
        if name.ends_with('7') {
            let continues = |page: &&mut [u8]| page[2] == 0x05 || page[2] == 0x01;
            let page = bytes.chunks_mut(8192).skip(1).find(continues).expect("such a page");
            page[2] |= 0x08;
        }
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let call = ["check".as_ref(), folder.path().as_os_str()];
    let ran = crate::support::walstat(&call).exits(4);
    assert!(ran.stdout.contains("page_flags"), "{}", ran.stdout);
}
