//! `walstat check --format markdown`: verdicts for a pull request or the summary of a step.

use super::check_table::{limit, value, verdict_line, word};
use super::closing::{filters, verified};
use super::markdown::{escaped, shortened, table};
use super::style::Show;
use std::io::{self, Write};
use walstat_report::model::checked::Check;
use walstat_report::model::view::{Annotation, View};

/// Broken files told one by one; the rest is counted.
const SHOWN: usize = 10;

/// Writes the checks of a report.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    shortened(out, |text| write(view, style, text))
}

fn write(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    let title = format!("walstat check: {}", verdict_line(report));
    let row = |check: &Check| {
        let (value, limit) = (value(check, style), limit(check, style));
        vec![escaped(&check.check), value, limit, word(check.verdict).into(), escaped(&check.text)]
    };
    let headings = ["check", "value", "limit", "verdict", ""];
    table(&title, &headings, report.checks().iter().map(row), out)?;
    broken_files(&view.annotations, out)?;
    for line in filters(report).iter().chain(&report.notes) {
        writeln!(out, "{}.\n", escaped(line))?;
    }
    writeln!(out, "{}.\n", verified(view))
}

fn broken_files(annotations: &[Annotation], out: &mut dyn Write) -> io::Result<()> {
    let damage: Vec<&Annotation> = annotations.iter().filter(|a| a.damage).collect();
    for annotation in damage.iter().take(SHOWN) {
        writeln!(out, "- {}: {}", escaped(&annotation.rule), escaped(&annotation.message))?;
    }
    match damage.len().saturating_sub(SHOWN) {
        0 if damage.is_empty() => Ok(()),
        0 => writeln!(out),
        more => writeln!(out, "- {more} more\n"),
    }
}
