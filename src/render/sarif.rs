//! `--format sarif`: SARIF 2.1.0 (OASIS), for code scanning and its viewers. Every result has
//! its rule, a file and a fingerprint that stays the same from run to run.

use super::closing::{accepted_gaps, filters, verified};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use walstat_report::model::Unreadable;
use walstat_report::model::view::{Annotation, Level, View};

/// The schema, by the address that editors know it by.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The fingerprint's name; a new way to compute it would get a new number.
const FINGERPRINT: &str = "walstat/v1";

/// Writes one run.
pub fn render(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let annotations = &view.annotations;
    // One rule each, in the order of their names.
    let rules: BTreeMap<&str, &Annotation> =
        annotations.iter().map(|annotation| (annotation.rule.as_str(), annotation)).collect();
    let indexes: BTreeMap<&str, usize> =
        rules.keys().enumerate().map(|(index, rule)| (*rule, index)).collect();
    let results: Vec<Value> =
        annotations.iter().map(|a| result(a, indexes.get(a.rule.as_str()))).collect();
    let rules: Vec<Value> = rules.values().map(|annotation| rule(annotation)).collect();
    let said: Vec<Value> = std::iter::once(verified(view))
        .chain(filters(&view.report))
        .chain(accepted_gaps(&view.report))
        .chain(view.report.notes.iter().cloned())
        .map(|text| notification("note", &text))
        .collect();
    write(&run(&view.report.walstat, rules, true, said, results), out)
}

/// Writes why nothing could be checked: a run that did not succeed.
pub fn unreadable(answer: &Unreadable, out: &mut dyn Write) -> io::Result<()> {
    let said = vec![notification("error", &answer.error)];
    write(&run(&answer.walstat, Vec::new(), false, said, Vec::new()), out)
}

fn notification(level: &str, text: &str) -> Value {
    json!({"level": level, "message": {"text": text}})
}

fn run(
    version: &str,
    rules: Vec<Value>,
    successful: bool,
    said: Vec<Value>,
    results: Vec<Value>,
) -> Value {
    json!({
        "tool": {"driver": {
            "name": "walstat",
            "version": version,
            "semanticVersion": version,
            "rules": rules,
        }},
        "invocations": [{
            "executionSuccessful": successful,
            "toolExecutionNotifications": said,
        }],
        "results": results,
    })
}

fn write(run: &Value, out: &mut dyn Write) -> io::Result<()> {
    let log = json!({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]});
    serde_json::to_writer_pretty(&mut *out, &log).map_err(io::Error::from)?;
    writeln!(out)
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

fn rule(annotation: &Annotation) -> Value {
    let tag = if annotation.damage { "integrity" } else { "budget" };
    json!({
        "id": annotation.rule,
        "shortDescription": {"text": annotation.rule_text},
        "fullDescription": {"text": format!("{}.", annotation.rule_text)},
        "help": {"text": format!("{}. See 'walstat check --help' and docs/ci.md.", annotation.rule_text)},
        "defaultConfiguration": {"level": level(annotation.level)},
        "properties": {"tags": [tag]},
    })
}

fn result(annotation: &Annotation, index: Option<&usize>) -> Value {
    let mut place = json!({"artifactLocation": {"uri": uri(&annotation.path)}});
    // Bytes of a binary file; a length would be a guess.
    if let (Some(offset), Some(place)) = (annotation.offset, place.as_object_mut()) {
        place.insert("region".into(), json!({"byteOffset": offset}));
    }
    json!({
        "ruleId": annotation.rule,
        "ruleIndex": index,
        "level": level(annotation.level),
        "message": {"text": annotation.message},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {FINGERPRINT: annotation.fingerprint},
    })
}

/// A relative path as a relative reference (RFC 3986): everything but unreserved characters and
/// `/` in percent.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("wal/0000 1%.zst"), "wal/0000%201%25.zst");
        assert_eq!(uri("wal:a/ü"), "wal%3Aa/%C3%BC");
    }
}
