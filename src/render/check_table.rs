//! `walstat check` for people: a table of checks with value, limit and verdict, what was broken,
//! and what was verified.

use super::number::{fraction, grouped, human_bytes};
use super::screen::problem_line;
use super::table::{Show, plain};
use crate::report::model::checked::{Bound, Check, Checked, Kind, Unit, Verdict};
use crate::report::model::{Report, Severity};
use anstyle::{AnsiColor, Effects};
use std::io::{self, Write};

/// Problems told one by one; the rest is counted. `-v` tells all.
const PROBLEMS_SHOWN: usize = 10;

/// Writes the checks of a report.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(checked) = &report.checked else { return Ok(()) };
    header(report, out)?;
    let mut table = plain(&["CHECK", "value", "limit", "verdict"]);
    // To the left: the table takes the letters of a colour for text and would move the word.
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for check in &checked.checks {
        let verdict = coloured(check.verdict);
        table.add_row([check.check.clone(), value(check, style), limit(check, style), verdict]);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    for check in checked.checks.iter().filter(|check| speaks(check, style)) {
        writeln!(out, "{}: {}", check.check, check.text)?;
    }
    problems(report, style, out)?;
    for note in &report.notes {
        writeln!(out, "Note: {note}.")?;
    }
    if style.verbose && !report.input.other_files.is_empty() {
        writeln!(out, "Not read: {}", report.input.other_files.join(", "))?;
    }
    writeln!(out, "{}: {}", verdict_line(checked), verified(checked))
}

fn header(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let input = &report.input;
    let timelines: Vec<String> = input.timelines.iter().map(u32::to_string).collect();
    writeln!(
        out,
        "PostgreSQL {}, cluster {}, timeline {}, {} to {}",
        input.postgres,
        input.system_identifier,
        timelines.join(" and "),
        report.range.start,
        report.range.end,
    )?;
    writeln!(out, "{}\n", report.ending.text)
}

/// What is more than pass or fail: whatever is broken or skipped, and how far a restore comes.
fn speaks(check: &Check, style: &Show) -> bool {
    check.verdict != Verdict::Pass || check.kind == Kind::Restore || style.verbose
}

fn problems(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let shown = if style.verbose { report.problems.len() } else { PROBLEMS_SHOWN };
    for problem in report.problems.iter().take(shown) {
        writeln!(out, "{}", problem_line(problem))?;
    }
    match report.problems.len().saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "PROBLEM {more} more (-v shows all)"),
    }
}

/// A check's value for people.
pub fn value(check: &Check, style: &Show) -> String {
    match check.kind {
        Kind::Rule if check.text == "nothing found" => "–".into(),
        Kind::Rule => severity(check.severity).into(),
        Kind::Integrity | Kind::Budget | Kind::Restore => amount(check.unit, check.value, style),
    }
}

/// A check's limit for people.
pub fn limit(check: &Check, style: &Show) -> String {
    let side = match check.bound {
        Some(Bound::Max) => "≤ ",
        Some(Bound::Min) => "≥ ",
        None => "",
    };
    format!("{side}{}", amount(check.unit, check.limit, style))
}

fn amount(unit: Unit, amount: Option<f64>, style: &Show) -> String {
    match (unit, amount) {
        (Unit::Ratio, ratio) => fraction(ratio),
        (Unit::Bytes, Some(bytes)) => style.bytes(bytes.round() as u64),
        (Unit::Problems, Some(1.0)) => "1 problem".into(),
        (Unit::Problems, Some(count)) => format!("{} problems", grouped(count as u64)),
        (_, None) | (Unit::None, _) => "–".into(),
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

/// A verdict in one word.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Skipped => "skipped",
    }
}

/// The verdict in its colour, which is taken off again where none is wanted.
fn coloured(verdict: Verdict) -> String {
    let colour = match verdict {
        Verdict::Pass => AnsiColor::Green.on_default(),
        Verdict::Fail => AnsiColor::Red.on_default().effects(Effects::BOLD),
        Verdict::Skipped => AnsiColor::Yellow.on_default(),
    };
    format!("{colour}{}{colour:#}", word(verdict))
}

/// `OK`, or what kind of failure.
pub fn verdict_line(checked: &Checked) -> String {
    let broken = checked.count(Verdict::Fail);
    let skipped = match checked.count(Verdict::Skipped) {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    match broken {
        0 => format!("OK{skipped}"),
        _ => format!("FAILED {broken} of {}{skipped}", checked.checks.len()),
    }
}

/// What was verified, and how fast: `200 segments, 3.10 GB, 2,431,391 records, …`.
pub fn verified(checked: &Checked) -> String {
    let verified = &checked.verified;
    let segments = if verified.segments == 1 { "segment" } else { "segments" };
    let checksums = match verified.checksums {
        true => "every checksum verified",
        false => "checksums not verified",
    };
    let rate = verified.bytes_per_second.map(|rate| format!(", {}/s", human_bytes(rate as u64)));
    format!(
        "{} {segments}, {}, {} records, {checksums}, {:.2} s{}",
        grouped(verified.segments as u64),
        human_bytes(verified.bytes),
        grouped(verified.records),
        verified.seconds,
        rate.unwrap_or_default(),
    )
}
