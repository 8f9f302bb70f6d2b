//! Every output for machines, held against its schema or grammar (`tests/formats`): of a clean
//! archive, of broken limits, and of damage with more faults than any host wants to show.

use super::archive::{Archive, check};
use crate::support::finish;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REPORT_SCHEMA: &str = "docs/report.schema.json";

const BUDGETS: [&str; 9] = [
    "--max-fpi-ratio",
    "1%",
    "--min-hot-ratio",
    "0.1",
    "--max-wal-bytes",
    "1",
    "--fail-on",
    "warning",
    "--max-bytes-per-commit=1kB",
];

fn format_file(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match name {
        REPORT_SCHEMA => root.join(name),
        _ => root.join("tests/formats").join(name),
    }
}

/// An archive in which one record of every other page of a segment is spoiled, and one segment
/// is missing.
fn ruin() -> Archive {
    let archive = Archive::whole();
    archive.remove("00000001000000000000000C");
    archive.change("00000001000000000000000B", |bytes| {
        for page in (4..100).step_by(2) {
            bytes[page * 8192 + 4000] ^= 0xFF;
        }
    });
    archive
}

/// Clean, limits broken, damage; each with its exit code.
fn cases() -> [(Archive, &'static [&'static str], i32); 3] {
    [(Archive::whole(), &[], 0), (Archive::whole(), &BUDGETS, 1), (ruin(), &BUDGETS, 4)]
}

/// The answer in a format where there is nothing to read, and its one line for people.
fn answer(format: &str) -> (String, String) {
    let archive = Archive::whole();
    archive.put("letter.txt", b"Dear reader, <this> is no write-ahead log & more.");
    let mut call = check(&["-f", format]);
    let ran = finish(call.arg("archive/letter.txt").current_dir(archive.beside(""))).exits(3);
    let line = ran.stderr.strip_prefix("walstat: ").unwrap_or_default().trim_end().to_owned();
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(line.starts_with("archive/letter.txt: "), "{line}");
    (ran.stdout, line)
}

/// The three outputs in a format.
fn outputs(format: &str) -> Vec<String> {
    let run = |(archive, arguments, code): (Archive, &[&str], i32)| {
        archive.check(&[arguments, &["-f", format]].concat()).exits(code).stdout
    };
    cases().into_iter().map(run).collect()
}

#[track_caller]
fn is_valid(schema: &str, instance: &Value) {
    let text = fs::read_to_string(format_file(schema)).expect("the schema");
    let mut schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    // A pattern with a bracket too many, as published, of a key that walstat does not write.
    for definition in ["run", "toolComponent"] {
        let place = format!("/definitions/{definition}/properties/language");
        if let Some(language) = schema.pointer_mut(&place) {
            language.as_object_mut().expect("an object").remove("pattern");
        }
    }
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<String> =
        validator.iter_errors(instance).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{instance:#}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn json_has_the_checks() {
    outputs("json").iter().for_each(|text| is_valid(REPORT_SCHEMA, &json(text)));
}

/// A validator that lets everything pass would make the other tests worthless.
#[test]
#[should_panic(expected = "ruleId")]
fn the_validator_finds_faults() {
    let mut log = json(&outputs("sarif").pop().unwrap_or_default());
    log["runs"][0]["results"][0]["ruleId"] = 5.into();
    is_valid("sarif-schema-2.1.0.json", &log);
}

#[test]
fn sarif_follows_the_schema_and_every_result_has_rule_file_and_fingerprint() {
    for (text, least) in outputs("sarif").iter().zip([0, 4, 20]) {
        let log = json(text);
        is_valid("sarif-schema-2.1.0.json", &log);
        let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert!(results.len() >= least, "{} results", results.len());
        let mut fingerprints = BTreeSet::new();
        for result in results {
            let index = result["ruleIndex"].as_u64().expect("a rule") as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            let uri = uri.as_str().expect("a file");
            assert!(uri == "archive" || uri.starts_with("archive/0000000100000000"), "{uri}");
            let print =
                result["partialFingerprints"]["walstat/v1"].as_str().expect("a fingerprint");
            assert!(fingerprints.insert(print.to_owned()), "{print} twice");
        }
    }
}

#[test]
fn fingerprints_are_the_same_in_every_place_and_run() {
    let prints = |format: &str| -> Vec<BTreeSet<String>> {
        let print = |value: &Value| value.as_str().map(str::to_owned);
        let of = |text: String| match format {
            "sarif" => {
                let log = json(&text);
                let results = log["runs"][0]["results"].as_array().cloned().unwrap_or_default();
                results
                    .iter()
                    .filter_map(|r| print(&r["partialFingerprints"]["walstat/v1"]))
                    .collect()
            }
            _ => {
                let issues = json(&text);
                let issues = issues.as_array().cloned().unwrap_or_default();
                issues.iter().filter_map(|issue| print(&issue["fingerprint"])).collect()
            }
        };
        outputs(format).into_iter().map(of).collect()
    };
    let sarif = prints("sarif");
    assert_eq!(sarif, prints("sarif"));
    assert_eq!(sarif, prints("gitlab"));
    assert!(sarif[2].len() > 20);
}

#[test]
fn gitlab_gets_what_its_manual_asks_for() {
    for (text, least) in outputs("gitlab").iter().zip([0, 4, 20]) {
        let issues = json(text);
        is_valid("gitlab-code-quality.schema.json", &issues);
        assert!(issues.as_array().is_some_and(|issues| issues.len() >= least));
    }
    assert_eq!(json(&outputs("gitlab")[0]), json("[]"));
}

#[test]
fn what_cannot_be_read_is_said_in_every_format() {
    let (text, line) = answer("json");
    is_valid(REPORT_SCHEMA, &json(&text));
    assert_eq!(
        (&json(&text)["command"], &json(&text)["error"]),
        (&"check".into(), &line.as_str().into())
    );

    let (text, line) = answer("sarif");
    is_valid("sarif-schema-2.1.0.json", &json(&text));
    let invocation = &json(&text)["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(invocation["toolExecutionNotifications"][0]["message"]["text"], line.as_str());

    let (text, line) = answer("gitlab");
    is_valid("gitlab-code-quality.schema.json", &json(&text));
    assert_eq!(json(&text)[0]["description"], format!("unreadable-input: {line}"));
    assert_eq!(json(&text)[0]["location"]["path"], "archive/letter.txt");

    let (text, line) = answer("github");
    let (command, _) = workflow_command(text.trim_end()).expect("a workflow command");
    assert!(command == "error" && text.trim_end().ends_with(&line), "{text}");

    let (text, line) = answer("junit");
    let escaped = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(text.contains(&format!(">{escaped}</error>")), "{text}");
    assert!(text.contains(" tests=\"1\" failures=\"0\" errors=\"1\" "), "{text}");

    assert_eq!(answer("table").0, "");
}

#[test]
fn a_name_is_said_once() {
    let issues = json(&outputs("gitlab")[1]);
    for issue in issues.as_array().expect("issues") {
        let name = issue["check_name"].as_str().expect("a name");
        let text = issue["description"].as_str().expect("a text");
        assert_eq!(text.matches(name).count(), 1, "{text}");
    }
    for line in outputs("github")[1].lines().filter(|line| line.starts_with("::")) {
        let name = line.split("walstat%3A ").nth(1).and_then(|rest| rest.split("::").next());
        assert_eq!(line.matches(name.expect("a title")).count(), 1, "{line}");
    }
}

#[test]
fn filters_are_said_where_there_is_a_place_for_them() {
    let archive = Archive::whole();
    let words = "--rmgr Heap --fullpage";
    for format in ["table", "junit", "sarif", "github", "nagios"] {
        let ran = archive.check(&["-r", "heap", "-w", "-f", format]).exits(0);
        assert!(ran.stdout.contains(words), "{format}: {}", ran.stdout);
        let ran = archive.check(&["-f", format]).exits(0);
        assert!(!ran.stdout.to_lowercase().contains("filter"), "{format}: {}", ran.stdout);
    }
    let json = archive.check(&["-r", "heap", "-w", "-f", "json"]).exits(0).json();
    assert_eq!(json["input"]["filters"], serde_json::json!({"rmgr": ["Heap"], "fullpage": true}));
}

#[test]
fn junit_follows_the_schema() {
    let directory = tempfile::tempdir().expect("a directory");
    let answer = answer("junit").0;
    for (index, text) in outputs("junit").iter().chain([&answer]).enumerate() {
        let path = directory.path().join(format!("{index}.xml"));
        fs::write(&path, text).expect("a file");
        let run = Command::new("xmllint")
            .args(["--noout", "--nonet", "--schema"])
            .args([&format_file("junit-10.xsd"), &path])
            .output();
        match run {
            Ok(run) => {
                let said = String::from_utf8_lossy(&run.stderr);
                assert!(run.status.success(), "{said}\n{text}");
            }
            Err(error) if std::env::var_os("WALSTAT_REQUIRE_LIVE").is_none() => {
                eprintln!(
                    "SKIPPED: junit is not held against its schema, xmllint is missing: {error}"
                );
            }
            Err(error) => panic!("xmllint (Debian: libxml2-utils) is required here: {error}"),
        }
    }
}

/// What the schema does not ask for but readers rely on; and the older schema of Ant.
#[test]
fn junit_counts_its_cases_and_says_everything_in_the_body() {
    for text in outputs("junit") {
        let count = |word: &str| text.matches(word).count();
        let suite = text.lines().find(|line| line.contains("<testsuite ")).expect("a suite");
        for (attribute, element) in
            [("tests", "<testcase "), ("failures", "<failure "), ("skipped", "<skipped ")]
        {
            let want = format!(" {attribute}=\"{}\"", count(element));
            assert!(suite.contains(&want), "{want} is not in {suite}");
        }
        for attribute in ["hostname", "timestamp", "time", "errors", "package", "id"] {
            assert!(suite.contains(&format!(" {attribute}=\"")), "{suite}");
        }
        for failure in text.split("<failure ").skip(1) {
            let body = failure.split_once('>').and_then(|(_, rest)| rest.split_once("</failure>"));
            assert!(body.is_some_and(|(body, _)| !body.trim().is_empty()), "{failure}");
        }
    }
    let ruin = outputs("junit").pop().unwrap_or_default();
    assert!(ruin.contains("PROBLEM 00000001000000000000000C"), "{ruin}");
}

/// `::command key=value,…::message`, each part escaped; gives command and properties.
fn workflow_command(line: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let (head, message) = line.strip_prefix("::")?.split_once("::")?;
    let (command, properties) = head.split_once(' ')?;
    let pairs =
        properties.split(',').map(|pair| pair.split_once('=')).collect::<Option<Vec<_>>>()?;
    let escaped = |text: &str| {
        text.split('%')
            .skip(1)
            .all(|rest| ["25", "0D", "0A", "3A", "2C"].iter().any(|code| rest.starts_with(code)))
    };
    let plain = pairs.iter().all(|(_, value)| !value.contains(':') && escaped(value));
    (plain && escaped(message) && !message.is_empty()).then_some((command, pairs))
}

#[test]
fn github_gets_at_most_ten_annotations_of_a_kind_worst_first() {
    for (text, damaged) in outputs("github").iter().zip([false, false, true]) {
        let (commands, rest): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("::"));
        assert_eq!(rest.len(), 1, "one line on what was verified: {rest:?}");
        let parsed: Vec<_> =
            commands.iter().map(|line| workflow_command(line).expect(line)).collect();
        for kind in ["error", "warning"] {
            let of_kind = parsed.iter().filter(|(command, _)| *command == kind).count();
            assert!(of_kind <= 10, "{of_kind} {kind}s");
        }
        for (command, properties) in parsed.iter().filter(|(command, _)| *command != "notice") {
            let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, ["file", "title"], "{command}");
            assert!(properties[0].1.starts_with("archive"), "{properties:?}");
        }
        if damaged {
            assert!(commands[0].contains("missing_segment"), "worst first: {}", commands[0]);
            let more =
                commands.iter().any(|c| c.starts_with("::notice ") && c.contains(" more errors"));
            assert!(more, "{text}");
        }
    }
}

#[test]
fn a_broken_budget_is_an_error_and_advice_a_warning() {
    let text = &outputs("github")[1];
    assert!(text.contains("::error file=archive,title=walstat%3A max-wal-bytes::"), "{text}");
    assert!(text.contains("::warning file=archive,title=walstat%3A hot-ratio::"), "{text}");
}

#[test]
fn github_gets_a_summary_of_the_step_behind_what_others_wrote() {
    let archive = ruin();
    let path = archive.beside("summary.md");
    fs::write(&path, "# Others\n").expect("a summary");
    let arguments = [&BUDGETS[..], &["-f", "github"]].concat();
    let summary = |command: &mut Command| {
        command.env("GITHUB_STEP_SUMMARY", &path);
    };
    archive.check_with(&arguments, summary).exits(4);
    let text = fs::read_to_string(&path).expect("the summary");
    assert!(text.starts_with("# Others\n## walstat check: FAILED"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() >= 7, "{text}");
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 6, "{row}");
    }
    assert!(text.contains("- missing_segment: 00000001000000000000000C"), "{text}");
    // No other format writes there.
    fs::write(&path, "").expect("a summary");
    archive.check_with(&["-f", "json"], summary).exits(4);
    assert_eq!(fs::read_to_string(&path).expect("the summary"), "");
}

/// `NAME STATE - text[ | data…]`, data being `'label'=value[unit][;warn][;crit]`.
fn plugin_line(line: &str) -> Option<(&str, Vec<&str>)> {
    let rest = line.strip_prefix("WALSTAT ")?;
    let (state, rest) = rest.split_once(" - ")?;
    ["OK", "WARNING", "CRITICAL", "UNKNOWN"].contains(&state).then_some(())?;
    let (text, data) = rest.split_once(" | ").unwrap_or((rest, ""));
    let data: Vec<&str> = data.split_ascii_whitespace().collect();
    (!text.is_empty() && !text.contains('|') && data.iter().all(|d| is_datum(d)))
        .then_some((state, data))
}

fn is_datum(datum: &str) -> bool {
    let Some((label, rest)) = datum.split_once('=') else { return false };
    let label = label.strip_prefix('\'').and_then(|l| l.strip_suffix('\'')).unwrap_or(label);
    let mut parts = rest.split(';');
    let value = parts.next().unwrap_or_default();
    let number = value.trim_end_matches(['%', 'B', 's']);
    let unit = &value[number.len()..];
    let range = |range: &str| {
        let range = range.strip_prefix('@').unwrap_or(range);
        let ends =
            range.split(':').all(|end| end.is_empty() || end == "~" || end.parse::<f64>().is_ok());
        ends && range.matches(':').count() <= 1
    };
    !label.is_empty()
        && !label.contains(['\'', '='])
        && number.parse::<f64>().is_ok()
        && ["", "s", "%", "B"].contains(&unit)
        && parts.clone().count() <= 4
        && parts.all(range)
}

#[test]
fn nagios_has_its_line_its_data_and_its_own_exit_codes() {
    for ((archive, arguments, _), (code, want)) in
        cases().into_iter().zip([(0, "OK"), (2, "CRITICAL"), (2, "CRITICAL")])
    {
        let ran = archive.check(&[arguments, &["-f", "nagios"]].concat()).exits(code);
        let first = ran.stdout.lines().next().unwrap_or_default();
        let (state, data) = plugin_line(first).unwrap_or_else(|| panic!("{first}"));
        assert_eq!(state, want);
        assert!(data.iter().any(|d| d.starts_with("'integrity'=")), "{data:?}");
        assert!(ran.stdout.lines().skip(1).all(|line| !line.contains('|')), "{}", ran.stdout);
        assert_eq!(ran.stderr, "");
    }
    // A limit that is broken warns; advice is as loud as its rule.
    let ran = Archive::whole().check(&["--max-fpi-ratio", "1%", "-f", "nagios"]).exits(1);
    let (state, data) = plugin_line(ran.stdout.lines().next().expect("a line")).expect("its form");
    assert_eq!(state, "WARNING");
    assert!(data.contains(&"segments=18"), "{data:?}");
}

#[test]
fn nagios_hears_of_everything_else_as_unknown() {
    let archive = Archive::whole();
    for arguments in [
        &["-f", "nagios", "--no-such-option"][..],
        &["--format=nagios", "--max-fpi-ratio", "70"],
        &["-fnagios", "--max-growth", "1%"],
        &["-qf", "nagios", "--no-such-option"],
        &["-wvf=nagios", "--no-such-option"],
        &["-f", "nagios", "--config", "nowhere"],
        &["-f", "nagios", "--baseline", "nowhere"],
        &["-f", "nagios", "nowhere"],
    ] {
        let ran = archive.check(arguments).exits(3);
        assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
        assert_eq!(plugin_line(ran.stdout.trim_end()).map(|(state, _)| state), Some("UNKNOWN"));
        assert_eq!(ran.stderr, "");
    }
    // Help is help.
    assert!(archive.check(&["-f", "nagios", "--help"]).exits(0).stdout.contains("Usage:"));
}

#[test]
fn the_grammar_tells_wrong_lines() {
    for line in [
        "WALSTAT FINE - x",
        "WALSTAT OK x",
        "WALSTAT OK - x | a",
        "WALSTAT OK - x | a=1kB;;;;;;",
        "WALSTAT OK - x | a=b",
        "WALSTAT OK - x | y | a=1",
    ] {
        assert!(plugin_line(line).is_none(), "{line}");
    }
    for line in ["::error::", "::error file=a:b::x", "::error file=a::50%", "error file=a::x"] {
        assert!(workflow_command(line).is_none(), "{line}");
    }
}
