//! Budgets: from the command line, from `walstat.toml`, against a baseline; and the volume below
//! which ratios are not judged.

use super::archive::Archive;
use crate::support::{command, finish};
use serde_json::Value;
use std::fs;

/// Verdicts by check.
fn verdict<'j>(json: &'j Value, name: &str) -> &'j str {
    let checks = json["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["check"] == name);
    check.and_then(|check| check["verdict"].as_str()).unwrap_or("absent")
}

#[test]
fn each_budget_holds_or_breaks() {
    let archive = Archive::whole();
    // The sample: 38.76 % images, 30.03 % HOT, 198446 bytes a commit, 17066396 bytes of records.
    for (option, holds, breaks) in [
        ("--max-fpi-ratio", "39%", "0.38"),
        ("--min-hot-ratio", "0.30", "31%"),
        ("--max-bytes-per-commit", "194kB", "193kB"),
        ("--max-wal-bytes", "17066396", "17066395"),
    ] {
        archive.check(&[option, holds]).exits(0);
        let ran = archive.check(&[option, breaks]).exits(1);
        let name = option.trim_start_matches('-');
        let row = ran.stdout.lines().find(|line| line.starts_with(name)).expect("its row");
        assert!(row.ends_with("FAIL"), "{row}");
    }
}

#[test]
fn numbers_are_the_reports_own() {
    let json = Archive::whole().check(&["-f", "json", "--max-fpi-ratio", "1"]).exits(0).json();
    assert_eq!(json["command"], "check");
    assert_eq!(json["checks"][1]["value"], json["ratios"]["fpi_ratio"]);
    assert_eq!(json["checks"][1]["limit"], 1.0);
    assert_eq!(json["checks"][1]["unit"], "ratio");
    assert_eq!(json["checks"][1]["bound"], "max");
}

#[test]
fn ratios_of_little_wal_are_skipped_and_say_why() {
    let archive = Archive::whole();
    let gated = ["--max-fpi-ratio", "0", "--min-hot-ratio", "1"];
    for (volume, want, code) in
        [("17066397", "skipped", 0), ("17066396", "fail", 1), ("0", "fail", 1)]
    {
        let arguments = [&gated[..], &["-f", "json", "--min-volume", volume]].concat();
        let json = archive.check(&arguments).exits(code).json();
        for name in ["max-fpi-ratio", "min-hot-ratio"] {
            assert_eq!(verdict(&json, name), want, "{name} at {volume}");
        }
    }
    let ran = archive.check(&[&gated[..], &["--min-volume", "1GB"]].concat()).exits(0);
    assert!(ran.stdout.contains("OK, 2 skipped"), "{}", ran.stdout);
    let why = "max-fpi-ratio: not judged: 17066396 bytes of records are less than --min-volume 1073741824";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
    let byte_budget = ["--max-wal-bytes", "1", "--min-volume", "1GB"];
    archive.check(&byte_budget).exits(1);
}

#[test]
fn advice_breaks_the_check_from_its_severity_on() {
    let archive = Archive::whole();
    let json = archive.check(&["-f", "json", "--fail-on", "warning"]).exits(1).json();
    assert_eq!(verdict(&json, "hot-ratio"), "fail");
    assert_eq!(verdict(&json, "fpi-ratio"), "pass");
    let json = archive.check(&["-f", "json", "--fail-on", "critical"]).exits(1).json();
    assert_eq!(verdict(&json, "hot-ratio"), "pass");
    assert_eq!(verdict(&json, "checkpoint-spacing"), "fail", "rules of when look at a check too");
    let json = archive.check(&["-f", "json"]).exits(0).json();
    assert_eq!(verdict(&json, "hot-ratio"), "absent", "not asked for");
}

#[test]
fn few_updates_are_skipped_and_say_why() {
    let archive = Archive::whole();
    // The sample has 3137 updates.
    for (least, want, code) in [("3138", "skipped", 0), ("3137", "fail", 1), ("0", "fail", 1)] {
        let arguments = ["--min-hot-ratio", "1", "--min-updates", least, "-f", "json"];
        let json = archive.check(&arguments).exits(code).json();
        assert_eq!(verdict(&json, "min-hot-ratio"), want, "{least}");
    }
    let ran = archive.check(&["--min-hot-ratio", "1", "--min-updates", "9999"]).exits(0);
    let why = "min-hot-ratio: not judged: fewer updates (3137) than --min-updates 9999";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
}

#[test]
fn commits_are_counted_whatever_the_filters_say() {
    let archive = Archive::whole();
    let whole = archive.check(&["-f", "json"]).exits(0).json();
    let totals = &whole["totals"]["total_bytes"];
    let each =
        totals.as_f64().expect("bytes") / whole["ratios"]["commits"].as_f64().expect("commits");
    assert_eq!(whole["ratios"]["bytes_per_commit"], each);
    for filter in [&["-r", "Heap"][..], &["-x", "4294967295"], &["-w"], &["--record", "COMMIT"]] {
        let arguments = [filter, &["--max-bytes-per-commit", "193kB"], &["-f", "json"]].concat();
        let json = archive.check(&arguments).exits(1).json();
        assert_eq!(json["ratios"]["bytes_per_commit"], each, "{filter:?}");
        assert_eq!(json["ratios"]["commits"], whole["ratios"]["commits"], "{filter:?}");
        assert_eq!(verdict(&json, "max-bytes-per-commit"), "fail", "{filter:?}");
    }
}

#[test]
fn nonsense_is_a_usage_error() {
    let archive = Archive::whole();
    for (arguments, words) in [
        (&["--max-fpi-ratio", "70"][..], "expected a ratio"),
        (&["--max-wal-bytes", "10 parsecs"], "expected a size"),
        (&["--fail-on", "info"], "possible values: warning, critical"),
        (&["--max-growth", "10%"], "--max-growth needs a --baseline"),
        (&["--max-fpi-ration", "1"], "'--max-fpi-ratio'"),
        (&["--from", "0/700028", "--backup-label", "x"], "cannot be used with"),
        (&["--from", "0/700028", "-r", "Heap"], "take no filter"),
        (&["--from", "0/700028", "-n", "5"], "take no --limit"),
    ] {
        let ran = archive.check(arguments).exits(2);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn limits_stand_in_a_file_and_the_command_line_wins() {
    let archive = Archive::whole();
    let config = "[check]\nmax-wal-bytes = \"1kB\"\nmax-fpi-ratio = 0.5\n";
    fs::write(archive.beside("limits.toml"), config).expect("a config");
    archive.check(&[]).exits(0);
    let json = archive.check(&["-f", "json", "--config", "limits.toml"]).exits(1).json();
    assert_eq!(verdict(&json, "max-wal-bytes"), "fail");
    assert_eq!(verdict(&json, "max-fpi-ratio"), "pass");
    archive.check(&["--config", "limits.toml", "--max-wal-bytes", "1GB"]).exits(0);

    // The file of the current directory is found by its name; one that is named replaces it.
    fs::rename(archive.beside("limits.toml"), archive.beside("walstat.toml")).expect("renamed");
    let ran = archive.check(&[]).exits(1);
    assert!(ran.stdout.contains("Note: limits are from walstat.toml.\n"), "{}", ran.stdout);
    archive.check(&["--max-wal-bytes", "1GB"]).exits(0);
    let ran = archive.check(&["--config", "/dev/null"]).exits(0);
    assert!(!ran.stdout.contains("limits are from"), "{}", ran.stdout);
}

#[test]
fn a_wrong_config_is_a_usage_error_that_names_the_key() {
    let archive = Archive::whole();
    archive.check(&["--config", "nowhere.toml"]).exits(2);
    for (config, words) in [
        (
            "[check]\nmax-fpi = 1\n",
            "unknown key \"check.max-fpi\", did you mean \"max-fpi-ratio\"?",
        ),
        ("max-wal-bytes = 1\n", "unknown key \"max-wal-bytes\", it belongs under [check]"),
        ("[check]\nmax-fpi-ratio = \"lots\"\n", "check.max-fpi-ratio: expected a ratio"),
        ("[check\n", "walstat.toml: line 1:"),
        ("[check]\nmax-growth = \"10%\"\n", "needs a --baseline"),
    ] {
        fs::write(archive.beside("walstat.toml"), config).expect("a config");
        let ran = archive.check(&[]).exits(2);
        assert!(ran.stderr.contains(words), "{config}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn growth_is_judged_against_an_earlier_report() {
    let archive = Archive::whole();
    let mut report = archive.check(&["-f", "json"]).exits(0).json();
    let now = report["ratios"]["bytes_per_commit"].as_f64().expect("bytes per commit");
    for (factor, arguments, code) in [
        (1.0, &["--max-growth", "0%"][..], 0),
        (0.9, &[], 1),
        (0.9, &["--max-growth", "12%"], 0),
        (0.92, &[], 0),
    ] {
        report["ratios"]["bytes_per_commit"] = (now * factor).into();
        fs::write(archive.beside("before.json"), report.to_string()).expect("a baseline");
        archive.check(&[&["--baseline", "before.json"], arguments].concat()).exits(code);
    }
    report["ratios"]["bytes_per_commit"] = Value::Null;
    fs::write(archive.beside("before.json"), report.to_string()).expect("a baseline");
    let json = archive.check(&["--baseline", "before.json", "-f", "json"]).exits(0).json();
    assert_eq!(verdict(&json, "max-growth"), "skipped");
}

#[test]
fn what_is_no_report_is_no_baseline() {
    let archive = Archive::whole();
    for (text, words) in [
        ("", "no walstat report"),
        ("{\"some\": \"JSON\"}", "no walstat report"),
        (
            "{\"walstat\":\"9\",\"schema\":\"2.0\",\"ratios\":{\"bytes_per_commit\":1}}",
            "schema 2.0, expected 1.0",
        ),
    ] {
        fs::write(archive.beside("before.json"), text).expect("a file");
        let ran = archive.check(&["--baseline", "before.json"]).exits(3);
        assert!(ran.stderr.starts_with("walstat: before.json: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    archive.check(&["--baseline", "nowhere.json"]).exits(3);
}

/// A terabyte of holes, with memory for much less than the largest report there is.
#[cfg(target_os = "linux")]
#[test]
fn a_baseline_that_is_too_large_is_not_read() {
    let archive = Archive::whole();
    let file = fs::File::create(archive.beside("before.json")).expect("a file");
    file.set_len(1 << 40).expect("its size");
    let call = command(&["check", "-j", "1", "--baseline"]);
    let mut shell = std::process::Command::new("bash");
    shell.arg("-c").arg("ulimit -v 700000; exec \"$0\" \"$@\"").arg(call.get_program());
    let ran =
        finish(shell.args(call.get_args()).arg(archive.beside("before.json")).arg(archive.path()));
    assert!(ran.exits(3).stderr.contains("larger than 1024 MB"));
}
