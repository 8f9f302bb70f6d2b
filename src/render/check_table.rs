//! `walstat check` for people: a table of checks with value, limit and verdict, what was broken,
//! and what was verified.

use super::closing::{self, verified};
use super::number::{UNKNOWN, counted, fraction};
use super::style::{Show, plain};
use super::visible::visible;
use anstyle::{AnsiColor, Effects};
use std::io::{self, Write};
use walstat_report::model::Report;
use walstat_report::model::checked::{Bound, Check, CheckKind, Unit, Verdict};
use walstat_report::model::view::View;

/// Problems told one by one; the rest is counted.
const PROBLEMS_SHOWN: usize = 10;

/// Writes the checks of a report.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    header(report, out)?;
    let mut table = plain(&["CHECK", "value", "limit", "verdict"]);
    // To the left: the table takes the letters of a colour for text and would move the word.
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for check in report.checks() {
        let verdict = coloured(check.verdict);
        let name = visible(&check.check).into_owned();
        table.add_row([name, value(check, style), limit(check, style), verdict]);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    for check in report.checks().iter().filter(|check| speaks(check, style)) {
        writeln!(out, "{}: {}", visible(&check.check), visible(&check.text))?;
    }
    closing::problems(&report.problems, PROBLEMS_SHOWN, style.verbose, out)?;
    closing::notes(report, style, out)?;
    writeln!(out, "{}: {}", verdict_line(report), verified(view))
}

fn header(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (origin, range) = (closing::origin(&report.input), &report.range);
    writeln!(out, "{origin}, {} to {}", range.start, range.end)?;
    if let Some(filters) = closing::filters(report) {
        writeln!(out, "{filters}")?;
    }
    writeln!(out, "{}\n", report.ending.text)
}

/// What is more than pass or fail: whatever is broken or skipped, and how far a restore comes.
fn speaks(check: &Check, style: &Show) -> bool {
    let kinds = [CheckKind::Restore, CheckKind::Gap];
    check.verdict != Verdict::Pass || kinds.contains(&check.kind) || style.verbose
}

/// A check's value for people.
pub fn value(check: &Check, style: &Show) -> String {
    match check.kind {
        CheckKind::Rule if check.text == "nothing found" => UNKNOWN.into(),
        CheckKind::Rule => check.severity.name().into(),
        CheckKind::Integrity | CheckKind::Budget | CheckKind::Restore | CheckKind::Gap => {
            amount(check.unit, check.value, style)
        }
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
        (Unit::Problems, Some(count)) => counted(count as u64, "problem"),
        (_, None) | (Unit::None, _) => UNKNOWN.into(),
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
pub fn verdict_line(report: &Report) -> String {
    let skipped = match report.checks_that(Verdict::Skipped).count() {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    match report.checks_that(Verdict::Fail).count() {
        0 => format!("OK{skipped}"),
        broken => format!("FAILED {broken} of {}{skipped}", report.checks().len()),
    }
}
