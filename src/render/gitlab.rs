//! `--format gitlab`: a code quality report as GitLab reads it.

use crate::report::model::Report;
use crate::report::model::checked::{Annotation, Level};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct Issue<'a> {
    description: String,
    check_name: &'a str,
    fingerprint: &'a str,
    severity: &'static str,
    location: Location<'a>,
}

#[derive(Serialize)]
struct Location<'a> {
    path: &'a str,
    lines: Lines,
}

/// GitLab wants a line; a segment has none.
#[derive(Serialize)]
struct Lines {
    begin: u32,
}

/// Writes the list of issues; empty if nothing is broken.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(checked) = &report.checked else { return Ok(()) };
    let issues: Vec<Issue<'_>> = checked.annotations.iter().map(issue).collect();
    serde_json::to_writer_pretty(&mut *out, &issues).map_err(io::Error::from)?;
    writeln!(out)
}

fn issue(annotation: &Annotation) -> Issue<'_> {
    let severity = match (annotation.damage, annotation.level) {
        (true, _) => "critical",
        (false, Level::Error) => "major",
        (false, Level::Warning) => "minor",
    };
    Issue {
        description: format!("{}: {}", annotation.rule, annotation.message),
        check_name: &annotation.rule,
        fingerprint: &annotation.fingerprint,
        severity,
        location: Location { path: &annotation.path, lines: Lines { begin: 1 } },
    }
}
