//! `--format gitlab`: a code quality report as GitLab reads it.

use serde::Serialize;
use std::io::{self, Write};
use walstat_report::model::view::{Annotation, Level, View};

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

/// Writes the list of issues; empty if nothing is broken and no gap was accepted.
pub fn render(view: &View, out: &mut dyn Write) -> io::Result<()> {
    list(view.annotations.iter().chain(&view.gaps), out)
}

/// Writes why nothing could be checked.
pub fn unreadable(annotation: &Annotation, out: &mut dyn Write) -> io::Result<()> {
    list([annotation], out)
}

fn list<'a>(
    annotations: impl IntoIterator<Item = &'a Annotation>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let issues: Vec<Issue<'_>> = annotations.into_iter().map(issue).collect();
    serde_json::to_writer_pretty(&mut *out, &issues).map_err(io::Error::from)?;
    writeln!(out)
}

fn issue(annotation: &Annotation) -> Issue<'_> {
    let severity = match (annotation.damage, annotation.level) {
        (true, _) => "critical",
        (false, Level::Error) => "major",
        (false, Level::Warning) => "minor",
        (false, Level::Note) => "info",
    };
    Issue {
        description: format!("{}: {}", annotation.rule, annotation.message),
        check_name: &annotation.rule,
        fingerprint: &annotation.fingerprint,
        severity,
        location: Location { path: &annotation.path, lines: Lines { begin: 1 } },
    }
}
