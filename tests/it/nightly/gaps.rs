//! Gaps that are accepted: they hide what is missing in them, and nothing else.

use super::Archive;
use std::fs;

const SIXTH: &str = "00000001000000000000000B";
const SEVENTH: &str = "00000001000000000000000C";
/// The two of them.
const GAP: &str = "0/B00000..0/D00000";
const WHY: &str = "the disk of 2026-03-01, ticket 4711";

/// An archive in which the sixth and the seventh segment are missing.
fn with_a_hole() -> Archive {
    let archive = Archive::with(12);
    archive.remove(SIXTH);
    archive.remove(SEVENTH);
    archive
}

#[test]
fn a_gap_that_is_accepted_is_no_problem_and_is_told() {
    let archive = with_a_hole();
    archive.check(&[]).exits(4);
    for state in [&[][..], &["--state", "state"], &["--state", "state"]] {
        let accept = ["-f", "json", "--accept-gap", GAP, "--because", WHY];
        let report = archive.check(&[state, &accept].concat()).exits(0).json();
        let gap = &report["accepted_gaps"][0];
        let told = [&gap["start_lsn"], &gap["end_lsn"], &gap["because"]];
        assert_eq!(told, ["0/00B00000", "0/00D00000", WHY]);
        assert_eq!(gap["used"], true);
        assert!(
            report["checks"][0]["text"]
                .as_str()
                .is_some_and(|text| text.contains("1 accepted gap"))
        );
    }
    let report = archive.check(&["-f", "json"]).exits(4).json();
    assert!(report.get("accepted_gaps").is_none());
}

#[test]
fn a_gap_that_is_not_there_is_told_as_unused() {
    let archive = Archive::with(12);
    let accept = ["-f", "json", "--accept-gap", GAP, "--because", WHY];
    let report = archive.check(&accept).exits(0).json();
    assert_eq!(report["accepted_gaps"][0]["used"], false);
    assert!(!report["checks"][0]["text"].as_str().is_some_and(|text| text.contains("gap")));
}

#[test]
fn every_format_lists_the_gap_and_its_reason() {
    let archive = with_a_hole();
    let formats = [
        "table",
        "json",
        "ndjson",
        "csv",
        "markdown",
        "html",
        "openmetrics",
        "junit",
        "sarif",
        "github",
        "gitlab",
        "nagios",
    ];
    for format in formats {
        let ran = archive.check(&["-f", format, "--accept-gap", GAP, "--because", WHY]).exits(0);
        for text in ["0/00B00000", "0/00D00000", WHY, "used"] {
            assert!(ran.stdout.contains(text), "{format}: no {text}\n{}", ran.stdout);
        }
    }
}

#[test]
fn nothing_beside_a_gap_is_hidden() {
    let archive = with_a_hole();
    // One of both segments is not in the gap.
    for (gap, missing) in [("0/B00000..0/C00000", SEVENTH), ("0/C00000..0/D00000", SIXTH)] {
        let accept = ["-f", "json", "--accept-gap", gap, "--because", WHY];
        let report = archive.check(&accept).exits(4).json();
        let problems = report["problems"].as_array().expect("problems");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0]["segment"], *missing);
        assert_eq!(problems[0]["found"], "no such file");
        assert_eq!(report["accepted_gaps"][0]["used"], true);
    }
    // A segment before it is damaged.
    archive.damage("000000010000000000000008");
    archive.check(&["--accept-gap", GAP, "--because", WHY]).exits(4);
}

#[test]
fn damage_in_a_gap_is_not_hidden() {
    let archive = Archive::with(12);
    archive.damage(SIXTH);
    archive.remove(SEVENTH);
    let report =
        archive.check(&["-f", "json", "--accept-gap", GAP, "--because", WHY]).exits(4).json();
    let problems = report["problems"].as_array().expect("problems");
    assert!(problems.iter().all(|problem| problem["segment"] == SIXTH), "{problems:?}");
    fs::write(archive.file(SIXTH), b"").expect("an empty file");
    archive.check(&["--accept-gap", GAP, "--because", WHY]).exits(4);
}

/// A `.partial` stands in for no segment: a gap is one with it and without it.
#[test]
fn what_is_left_over_of_a_segment_in_a_gap_does_not_undo_it() {
    let whole = Archive::with(12);
    let bytes = |name| fs::read(whole.file(name)).expect("a segment");
    let open = |name| [&bytes(name)[..500_000], &[0; (1 << 20) - 500_000]].concat();
    for (what, name, left) in [
        ("whole", SIXTH, bytes(SIXTH)),
        ("whole", SEVENTH, bytes(SEVENTH)),
        ("open", SIXTH, open(SIXTH)),
        ("open", SEVENTH, open(SEVENTH)),
        ("cut", SIXTH, bytes(SIXTH)[..300_000].to_vec()),
    ] {
        let archive = with_a_hole();
        fs::write(archive.file(&format!("{name}.partial")), left).expect("written");
        archive.check(&[]).exits(4);
        for state in [&[][..], &["--state", "state"], &["--state", "state"]] {
            let accept = ["-f", "json", "--accept-gap", GAP, "--because", WHY];
            let report = archive.check(&[state, &accept].concat()).exits(0).json();
            assert_eq!(report["accepted_gaps"][0]["used"], true, "{what} {name}");
            let other_files = report["input"]["other_files"].to_string();
            assert!(other_files.contains(".partial"), "{what} {name}: {other_files}");
        }
        // Nothing is missing but what lies in the gap.
        let part = ["--accept-gap", "0/B00000..0/C00000", "--because", WHY];
        archive.check(&part).exits(4);
    }
}

#[test]
fn the_newest_may_be_accepted_as_lost_too() {
    let archive = Archive::with(12);
    archive.round(&[]);
    let newest = "000000010000000000000011";
    archive.remove(newest);
    for _ in 0..2 {
        let (code, report) = archive.round(&[]);
        assert_eq!(code, Some(4));
        assert_eq!(report["problems"][0]["segment"], newest);
        let accept = ["--accept-gap", "0/1100000..0/1200000", "--because", WHY];
        let (code, report) = archive.round(&accept);
        assert_eq!((code, &report["accepted_gaps"][0]["used"]), (Some(0), &true.into()));
    }
}

#[test]
fn no_backup_is_restored_across_a_gap() {
    let archive = with_a_hole();
    let accept = ["--accept-gap", GAP, "--because", WHY, "--from", "0/801000"];
    let ran = archive.check(&accept).exits(1);
    assert!(ran.stdout.contains("not to the end"), "{}", ran.stdout);
}

#[test]
fn gaps_stand_in_the_configuration_too() {
    let archive = with_a_hole();
    let text =
        format!("[[check.accept-gap]]\nrange = \"0/B00000..0/C00000\"\nbecause = \"{WHY}\"\n");
    fs::write(archive.path("walstat.toml"), text).expect("a file");
    archive.check(&[]).exits(4);
    let accept = ["-f", "json", "--accept-gap", "0/C00000..0/D00000", "--because", "the other one"];
    let report = archive.check(&accept).exits(0).json();
    assert_eq!(report["accepted_gaps"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_gap_has_bounds_of_segments_and_a_reason() {
    let archive = with_a_hole();
    for (arguments, words) in [
        (&["--accept-gap", "0/B00001..0/D00000", "--because", WHY][..], "the nearest, 0/00B00000"),
        (&["--accept-gap", "0/B00000..0/CFFFFF", "--because", WHY], "the nearest, 0/00D00000"),
        (&["--accept-gap", GAP], "needs a --because of its own"),
        (&["--because", WHY], "needs a --because of its own"),
        (&["--accept-gap", GAP, "--because", " "], "expected a reason"),
        (&["--accept-gap", "0/D00000..0/B00000", "--because", WHY], "after the start"),
        (&["--accept-gap", "0/D00000", "--because", WHY], "expected two LSNs"),
        (
            &["--accept-gap", GAP, "--accept-gap", GAP, "--because", WHY],
            "found 2 --accept-gap and 1",
        ),
    ] {
        for state in [&[][..], &["--state", "state"]] {
            let ran = archive.check(&[state, arguments].concat()).exits(2);
            assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        }
    }
    assert!(!archive.path("state").exists());
}
