//! What was broken, one by one, as code hosts and scanners take it: a rule, a level, a file and
//! a fingerprint that stays the same from run to run.

use super::model::checked::{Check, CheckKind, Verdict};
use super::model::finding::Severity;
use super::model::view::{Annotation, Level};
use super::model::{Problem, ProblemKind, Report};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use twox_hash::XxHash3_128;
use walstat_format::ordered::OrderBy;

/// Where the files that a report speaks of are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Where whatever has no file of its own is: the first path given.
    pub root: String,
    /// The relative path of each file, by its name and by the segment's.
    pub files: BTreeMap<String, String>,
}

impl Places {
    /// The file of a problem.
    fn of(&self, segment: &str) -> String {
        let known = self.files.get(segment).cloned();
        known.unwrap_or_else(|| match segment {
            "" => self.root.clone(),
            _ => format!("{}/{segment}", self.root.trim_end_matches('/')),
        })
    }
}

/// `path` as seen from `here`, or by its own last names if it lies elsewhere. Both canonical.
pub fn relative(path: &Path, here: &Path, given: &Path) -> String {
    let inside = path.strip_prefix(here).ok();
    let below = || path.strip_prefix(given.parent().unwrap_or(given)).ok();
    let relative = inside.or_else(below).unwrap_or(path);
    let names = relative.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let path = names.collect::<Vec<_>>().join("/");
    if path.is_empty() { ".".into() } else { path }
}

/// Problems and broken checks, worst first: missing segments, then by bytes lost, then limits.
pub(crate) fn annotations(report: &Report, checks: &[Check], places: &Places) -> Vec<Annotation> {
    let mut problems: Vec<&Problem> = report.problems.iter().collect();
    problems.order_by_key(|p| (p.kind != ProblemKind::MissingSegment, Reverse(p.skipped_bytes)));
    let problems = problems.into_iter().map(|problem| of_problem(problem, places));
    // The problems themselves stand for the check of integrity.
    let broken =
        checks.iter().filter(|c| c.verdict == Verdict::Fail && c.kind != CheckKind::Integrity);
    let broken = broken.map(|check| of_check(check, places));
    let mut all: Vec<Annotation> = problems.chain(broken).collect();
    all.order_by_key(|annotation| annotation.level);
    number_twins(&mut all);
    all
}

fn of_problem(problem: &Problem, places: &Places) -> Annotation {
    let Problem { kind, segment, lsn, found, expected, .. } = problem;
    let lsn = lsn.as_deref().unwrap_or("");
    let place = [segment.as_str(), lsn].join(" ");
    Annotation {
        rule: kind.name().to_owned(),
        rule_text: kind.text().to_owned(),
        level: Level::Error,
        damage: true,
        message: format!("{}: found {found}, expected {expected}", place.trim()),
        path: places.of(segment),
        offset: problem.offset,
        fingerprint: fingerprint(&[kind.name(), segment, lsn]),
    }
}

fn of_check(check: &Check, places: &Places) -> Annotation {
    let warning = check.kind == CheckKind::Rule && check.severity < Severity::Critical;
    let rule_text = match check.kind {
        CheckKind::Rule => format!("Advice rule {}", check.check),
        CheckKind::Gap => "A gap in the WAL that was accepted".into(),
        CheckKind::Restore => "The WAL is enough to restore the backup".into(),
        CheckKind::Integrity | CheckKind::Budget => format!("Budget --{}", check.check),
    };
    Annotation {
        rule: check.check.clone(),
        rule_text,
        level: if warning { Level::Warning } else { Level::Error },
        damage: false,
        message: check.text.clone(),
        path: places.root.clone(),
        offset: None,
        fingerprint: fingerprint(&[&check.check]),
    }
}

/// The gaps that were accepted: nothing is broken.
pub(crate) fn gaps(checks: &[Check], places: &Places) -> Vec<Annotation> {
    let gaps = checks.iter().filter(|check| check.kind == CheckKind::Gap);
    let mut gaps: Vec<Annotation> =
        gaps.map(|gap| Annotation { level: Level::Note, ..of_check(gap, places) }).collect();
    number_twins(&mut gaps);
    gaps
}

/// What stands for the whole run where nothing could be checked: `error` says why.
pub fn unreadable(error: &str, path: &str) -> Annotation {
    Annotation {
        rule: "unreadable-input".to_owned(),
        rule_text: "The input cannot be read as WAL".to_owned(),
        level: Level::Error,
        damage: true,
        message: error.to_owned(),
        path: path.to_owned(),
        offset: None,
        fingerprint: fingerprint(&["unreadable-input", path]),
    }
}

/// A hash of `parts` that is the same on every machine and in every release (XXH3, whose
/// output is fixed).
fn fingerprint(parts: &[&str]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(parts.join("\n").as_bytes()))
}

/// Scanners take the fingerprint for the identity: a second one alike gets its own.
fn number_twins(annotations: &mut [Annotation]) {
    let mut seen = BTreeSet::new();
    for annotation in annotations {
        let first = annotation.fingerprint.clone();
        let mut number = 1;
        while !seen.insert(annotation.fingerprint.clone()) {
            number += 1;
            annotation.fingerprint = fingerprint(&[&first, &number.to_string()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    fn problem(kind: ProblemKind, segment: &str, skipped_bytes: u64) -> Problem {
        Problem {
            kind,
            segment: segment.to_owned(),
            lsn: Some("0/01000028".into()),
            offset: Some(0x28),
            expected: "a".into(),
            found: "b".into(),
            skipped_bytes,
        }
    }

    #[test]
    fn worst_first_and_each_with_its_own_fingerprint() {
        let mut report = sample::report(0, 0);
        let small = problem(ProblemKind::Checksum, "1", 1);
        report.problems = vec![
            small.clone(),
            problem(ProblemKind::ZeroPage, "2", 9),
            problem(ProblemKind::MissingSegment, "3", 0),
            small,
        ];
        let all = annotations(&report, &[], &Places::default());
        let rules: Vec<&str> = all.iter().map(|a| a.rule.as_str()).collect();
        assert_eq!(rules, ["missing_segment", "zero_page", "checksum", "checksum"]);
        let prints: BTreeSet<&str> = all.iter().map(|a| a.fingerprint.as_str()).collect();
        assert_eq!(prints.len(), 4);
        let again = annotations(&report, &[], &Places::default());
        assert_eq!(all, again);
    }

    /// As `xxhsum -H128` computes it.
    #[test]
    fn a_fingerprint_is_fixed_for_ever() {
        let want = "a892980a912a8ca504c1cf27428a4149";
        assert_eq!(fingerprint(&["checksum", "000000010000000000000007", "0/00700028"]), want);
    }

    #[test]
    fn paths_are_relative_to_here_or_to_what_was_given() {
        let told = |path: &str, given: &str| {
            relative(Path::new(path), Path::new("/home/me"), Path::new(given))
        };
        assert_eq!(told("/home/me/wal/1", "/home/me/wal"), "wal/1");
        assert_eq!(told("/archive/wal/1", "/archive/wal"), "wal/1");
        assert_eq!(told("/archive/wal/1", "/archive/wal/1"), "1");
        assert_eq!(told("/home/me", "/home/me"), ".");
    }
}
