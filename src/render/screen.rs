//! The first screen: what is this WAL, why is there so much, what made it, what to do, and can
//! the numbers be trusted.

use super::closing;
use super::number::{counted, fraction, human_bytes, whole_bytes};
use super::style::{Show, plain};
use super::table::record_table;
use super::visible::visible;
use super::{when, who};
use crate::report::model::Report;
use crate::report::model::finding::{Finding, Severity};
use crate::report::model::threshold::{FPI_RATIO, MIN_VOLUME_BYTES};
use crate::report::model::view::View;
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};

/// A threshold is crossed.
const LOOK: Style = AnsiColor::Yellow.on_default();
/// Problems told one by one; the rest is counted.
const PROBLEMS_SHOWN: usize = 5;
/// Cells of the longest bar.
const BAR_CELLS: f64 = 16.0;

/// Writes the report.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    header(report, style, out)?;
    // Problems come before the numbers.
    if !report.problems.is_empty() {
        closing::problems(report, PROBLEMS_SHOWN, style, out)?;
        writeln!(out)?;
    }
    why(report, style, out)?;
    who::render(report, style, out)?;
    when::render(report, style, out)?;
    if let Some(records) = &report.records {
        writeln!(out, "WHAT")?;
        writeln!(out, "{}\n", record_table(records, &report.totals, style).trim_fmt())?;
    }
    findings(report, out)?;
    closing::notes(report, style, out)?;
    closing::books(view, out)
}

fn header(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let input = &report.input;
    writeln!(
        out,
        "{}, {} of {}",
        closing::origin(input),
        counted(input.segments as u64, "segment"),
        whole_bytes(u64::from(input.segment_bytes)),
    )?;
    let range = &report.range;
    let bytes = match style.human {
        true => human_bytes(report.totals.total_bytes),
        false => format!("{} bytes", report.totals.total_bytes),
    };
    write!(out, "{} to {}: {bytes}", range.start, range.end)?;
    if let (Some(first), Some(last)) = (&range.first_time, &range.last_time) {
        write!(out, ", {}", span(first, last))?;
    }
    let commits = counted(report.ratios.commits, "commit");
    match closing::filters(report) {
        // Commits are counted whatever the filters leave of them.
        Some(filters) => writeln!(out, ", {commits} in all\n{filters}")?,
        None => writeln!(out, ", {commits}")?,
    }
    writeln!(out, "{}\n", report.ending.text)
}

/// `2026-11-21 09:12:01 to 09:53:10 UTC`: the date once if it is the same.
fn span(first: &str, last: &str) -> String {
    let parts = |time: &str| {
        let (date, clock) = time.split_once('T').unwrap_or((time, ""));
        (date.to_owned(), clock.split('.').next().unwrap_or(clock).to_owned())
    };
    let ((first_date, first_clock), (last_date, last_clock)) = (parts(first), parts(last));
    match first_date == last_date {
        true => format!("{first_date} {first_clock} to {last_clock} UTC"),
        false => format!("{first_date} {first_clock} to {last_date} {last_clock} UTC"),
    }
}

fn why(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(causes) = &report.why else { return Ok(()) };
    let mut table = plain(&["WHY", "bytes", "share", ""]);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for cause in causes.iter().filter(|cause| cause.bytes > 0) {
        let bar = cause.share.filter(|_| style.bars).map_or_else(String::new, bar);
        let label = format!("  {:<38}", cause.label);
        table.add_row([label, style.bytes(cause.bytes), fraction(cause.share), bar]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let commit = report.ratios.bytes_per_commit.map(|bytes| match style.human {
        true => format!("{} a commit; ", human_bytes(bytes as u64)),
        false => format!("{bytes:.0} bytes a commit; "),
    });
    writeln!(
        out,
        "  {}images are {} of the bytes (above {:.0} % is worth a look)\n",
        commit.unwrap_or_default(),
        fraction(report.ratios.fpi_ratio),
        FPI_RATIO * 100.0,
    )
}

/// A bar of eighths of a cell.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * BAR_CELLS * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn findings(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(findings) = &report.findings else { return Ok(()) };
    writeln!(out, "WHAT TO DO")?;
    if findings.is_empty() {
        let found = match report.totals.total_bytes {
            bytes if bytes < MIN_VOLUME_BYTES => format!(
                "too little WAL for most rules, which begin at {}: an archive has more",
                whole_bytes(MIN_VOLUME_BYTES)
            ),
            _ => "no rule found anything worth a change".to_owned(),
        };
        return writeln!(out, "  {found}\n");
    }
    for (index, finding) in findings.iter().enumerate() {
        tell(index + 1, finding, out)?;
    }
    writeln!(out, "  walstat rules {} explains the first one\n", findings[0].rule)
}

fn tell(number: usize, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let style = if finding.severity > Severity::Info { LOOK } else { Style::new() };
    writeln!(out, "  {number} {style}{}{style:#}", visible(&finding.title))?;
    for advice in &finding.advice {
        writeln!(out, "      {}", visible(advice))?;
    }
    for price in &finding.side_effects {
        writeln!(out, "      price: {price}")?;
    }
    Ok(())
}
