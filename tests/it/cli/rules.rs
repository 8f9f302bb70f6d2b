//! Presets and thresholds of the advice rules: `--ruleset`, and `[rules]` of `walstat.toml`.

use super::bad_input::one_line;
use crate::support::fixtures::sample;
use crate::support::{Ran, command, finish, walstat};
use serde_json::Value;
use std::fs;
use std::path::Path;
use walstat_report::advice::RULES;

/// A call in a directory, which may have a `walstat.toml`, about the PostgreSQL 15 sample.
fn call(directory: &Path, arguments: &[&str]) -> Ran {
    let sample = sample("pg15-mixed");
    finish(command(arguments).arg(&sample.wal).current_dir(directory))
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    call(directory, &[arguments, &["--format=json"]].concat()).exits(0).json()
}

/// The findings by their rules, with the thresholds that they were held against.
fn thresholds(report: &Value) -> Vec<(String, Option<f64>)> {
    let findings = report["findings"].as_array().expect("findings").iter();
    let one = |finding: &Value| {
        let rule = finding["rule"].as_str().expect("a rule").to_owned();
        let evidence = &finding["evidence"];
        let number = evidence.get("threshold").or_else(|| evidence.get("reachable"));
        (rule, number.and_then(Value::as_f64))
    };
    findings.map(one).collect()
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[test]
fn findings_are_held_against_the_preset_and_that_is_said() {
    let here = tempfile::tempdir().expect("a directory");
    let plain = json(here.path(), &[]);
    assert!(plain.get("thresholds").is_none());
    assert_eq!(json(here.path(), &["--ruleset=chen"])["notes"], plain["notes"]);
    let [relaxed, chen, strict] = ["relaxed", "chen", "strict"].map(|ruleset| {
        let report = json(here.path(), &["--ruleset", ruleset]);
        let found = thresholds(&report);
        for (id, number) in &found {
            let rule = RULES.iter().find(|rule| rule.id == id).expect("a rule");
            let presets = rule.threshold;
            let want = match ruleset {
                "strict" => presets.strict,
                "relaxed" => presets.relaxed,
                _ => presets.chen,
            };
            assert_eq!(*number, Some(want), "{id} {ruleset}");
        }
        if ruleset != "chen" {
            assert_eq!(report["thresholds"]["ruleset"], ruleset);
            assert!(notes(&report).contains(&format!("the preset {ruleset}")), "{report}");
        }
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    });
    assert!(relaxed.iter().all(|id| chen.contains(id)), "{relaxed:?} {chen:?}");
    assert!(chen.iter().all(|id| strict.contains(id)), "{chen:?} {strict:?}");
}

#[test]
fn thresholds_stand_in_a_file_and_the_command_line_wins() {
    let here = tempfile::tempdir().expect("a directory");
    let path = here.path().join("walstat.toml");
    let file = "[rules]\nruleset = \"strict\"\nhot-ratio = \"35%\"\ncheckpoint-spacing = false\n";
    fs::write(&path, file).expect("a file");
    let report = json(here.path(), &[]);
    let found = thresholds(&report);
    assert!(found.contains(&("hot-ratio".into(), Some(0.35))), "{found:?}");
    assert!(found.iter().all(|(id, _)| id != "checkpoint-spacing"), "{found:?}");
    for words in [
        "thresholds of rules are from walstat.toml",
        "preset strict; checkpoint-spacing is off; hot-ratio speaks below 35 %",
    ] {
        assert!(notes(&report).contains(words), "{words} is not in {}", report["notes"]);
    }
    fs::write(&path, file.replace("35%", "0.05%")).expect("a file");
    let silent = thresholds(&json(here.path(), &[]));
    assert!(
        silent.iter().all(|(id, _)| id != "hot-ratio"),
        "30.03 % of all, 0.09 % of the largest table"
    );
    fs::write(&path, file).expect("a file");
    let relaxed = json(here.path(), &["--ruleset=relaxed"]);
    assert_eq!(relaxed["thresholds"]["ruleset"], "relaxed");
    assert_eq!(relaxed["thresholds"]["set"], report["thresholds"]["set"]);
    assert!(json(here.path(), &["--config=/dev/null"]).get("thresholds").is_none());
    // Statistics have no advice, and a file is no reason to fail.
    fs::write(&path, "[rules]\nlock-trafic = 1\n").expect("a file");
    call(here.path(), &["--stats"]).exits(0);
    one_line(
        &call(here.path(), &[]).exits(2),
        &["walstat.toml", "rules.lock-trafic", "lock-traffic"],
    );
    fs::rename(&path, here.path().join("other.toml")).expect("renamed");
    one_line(&call(here.path(), &["--config=other.toml"]).exits(2), &["other.toml"]);
    one_line(&call(here.path(), &["--config=nowhere.toml"]).exits(2), &["nowhere.toml"]);
}

#[test]
fn a_check_has_the_same_rules() {
    let here = tempfile::tempdir().expect("a directory");
    let verdicts = |arguments: &[&str], code| {
        let words = [&["check", "--fail-on=warning", "--format=json"], arguments].concat();
        let report = call(here.path(), &words).exits(code).json();
        let checks = report["checks"].as_array().expect("checks").clone();
        let name = |check: &Value| check["check"].as_str().expect("a name").to_owned();
        let failed = |check: &&Value| check["verdict"] == "fail";
        let failed: Vec<String> = checks.iter().filter(failed).map(name).collect();
        (checks.iter().map(name).collect::<Vec<_>>(), failed, report)
    };
    let (_, failed, _) = verdicts(&[], 1);
    assert!(failed.contains(&"hot-ratio".into()), "{failed:?}");
    let off = "[check]\nmax-wal-bytes = \"1GB\"\n[rules]\nhot-ratio = \"0.05%\"\nwal-compression = false\n";
    fs::write(here.path().join("walstat.toml"), off).expect("a file");
    let (all, failed, report) = verdicts(&["--ruleset=relaxed"], 1);
    assert!(!failed.contains(&"hot-ratio".into()), "{failed:?}");
    assert!(
        all.contains(&"hot-ratio".into()) && !all.contains(&"wal-compression".into()),
        "{all:?}"
    );
    assert!(notes(&report).contains("limits and thresholds of rules are from walstat.toml"));
}

#[test]
fn a_merge_says_what_the_report_says() {
    let here = tempfile::tempdir().expect("a directory");
    fs::write(here.path().join("rules.toml"), "[rules]\nhot-ratio = 0.35\n").expect("a file");
    let parts = [&[][..], &["--ruleset=relaxed"]].map(|options: &[&str]| {
        let part = format!("{}.partial", options.len());
        call(here.path(), &[&["--partial", "--output", &part], options].concat()).exits(0);
        part
    });
    let merged = |part: &str, options: &[&str]| {
        let words = [&["merge", "--format=json", part], options].concat();
        let mut json = finish(command(&words).current_dir(here.path())).exits(0).json();
        json["input"]["paths"] = Value::Null;
        json
    };
    let whole = |options: &[&str]| {
        let mut json = json(here.path(), options);
        json["input"]["paths"] = Value::Null;
        json
    };
    for options in [&[][..], &["--ruleset=strict"], &["--ruleset=strict", "--config=rules.toml"]] {
        assert_eq!(merged(&parts[0], options), whole(options), "{options:?}");
    }
    // As with --sort: what the first part says, if nothing else is said.
    assert_eq!(merged(&parts[1], &[]), whole(&["--ruleset=relaxed"]));
    assert_eq!(merged(&parts[1], &["--ruleset=strict"]), whole(&["--ruleset=strict"]));
}

#[test]
fn rules_tells_the_thresholds_of_a_preset() {
    for (ruleset, words) in [
        ("chen", ["from 20 % on", "below 300 s", "above 70 %", "from 2 times on"]),
        ("strict", ["from 10 % on", "below 600 s", "above 50 %", "from 1.5 times on"]),
        ("relaxed", ["from 40 % on", "below 120 s", "above 85 %", "from 3 times on"]),
    ] {
        let list = walstat(&["rules", "--ruleset", ruleset]).exits(0).stdout;
        assert_eq!(list.lines().count(), RULES.len());
        let ids = ["lock-traffic", "checkpoint-spacing", "fpi-ratio", "index-cost"];
        for (id, words) in ids.into_iter().zip(words) {
            let line = list.lines().find(|line| line.starts_with(id)).unwrap_or_default();
            assert!(line.ends_with(words), "{ruleset}: {line}");
        }
    }
    let text = walstat(&["rules", "lock-traffic"]).exits(0).stdout;
    let presets = "It speaks from 20 % on (chen, the default), 10 % (strict) or 40 % (relaxed).";
    assert!(text.contains(presets), "{text}");
    walstat(&["rules", "lock-traffic", "--ruleset=strict"]).exits(2);
}

#[test]
fn nonsense_is_a_usage_error() {
    let here = tempfile::tempdir().expect("a directory");
    for (arguments, words) in [
        (&["--ruleset=strickt"][..], "strict"),
        (&["--stats", "--ruleset=strict"], "--stats"),
        (&["--stats", "--partial", "--output=part", "--ruleset=strict"], "--stats"),
        (&["--stats", "--config=/dev/null"], "--stats"),
    ] {
        let ran = call(here.path(), arguments).exits(2);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}
