//! The first screen: what is this WAL, why is there so much, what made it, what to do, and can
//! the numbers be trusted.

use super::number::{fraction, grouped, human_bytes, whole_bytes};
use super::table::{Show, plain, record_table};
use crate::report::model::{Finding, Problem, Report, Severity};
use anstyle::{AnsiColor, Effects, Style};
use std::io::{self, Write};

/// Something is wrong.
const BAD: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
/// A threshold is crossed.
const LOOK: Style = AnsiColor::Yellow.on_default();
/// Problems told one by one; the rest is counted. `-v` tells all.
const PROBLEMS_SHOWN: usize = 5;
/// Cells of the longest bar.
const BAR_CELLS: f64 = 16.0;

/// Writes the report.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    header(report, style, out)?;
    problems(report, style, out)?;
    why(report, style, out)?;
    if let Some(records) = &report.records {
        writeln!(out, "WHAT")?;
        writeln!(out, "{}\n", record_table(report, records, style).trim_fmt())?;
    }
    findings(report, out)?;
    closing(report, style, out)
}

fn header(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let input = &report.input;
    let plural = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        _ => format!("{} {word}s", grouped(count as u64)),
    };
    let timelines: Vec<String> = input.timelines.iter().map(u32::to_string).collect();
    writeln!(
        out,
        "PostgreSQL {}, cluster {}, timeline {}, {} of {}",
        input.postgres,
        input.system_identifier,
        timelines.join(" and "),
        plural(input.segments, "segment"),
        whole_bytes(u64::from(input.segment_bytes)),
    )?;
    let range = &report.range;
    let commits = plural(report.ratios.commits as usize, "commit");
    let bytes = match style.human {
        true => human_bytes(report.totals.total_bytes),
        false => format!("{} bytes", report.totals.total_bytes),
    };
    write!(out, "{} to {}: {bytes}", range.start, range.end)?;
    if let (Some(first), Some(last)) = (&range.first_time, &range.last_time) {
        write!(out, ", {}", span(first, last))?;
    }
    writeln!(out, ", {commits}")?;
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

/// Problems come before the numbers, in one line each.
fn problems(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    if report.problems.is_empty() {
        return Ok(());
    }
    let shown = if style.verbose { report.problems.len() } else { PROBLEMS_SHOWN };
    for problem in report.problems.iter().take(shown) {
        writeln!(out, "{BAD}{}{BAD:#}", problem_line(problem))?;
    }
    match report.problems.len().saturating_sub(shown) {
        0 => writeln!(out),
        more => writeln!(out, "PROBLEM {more} more (-v shows all)\n"),
    }
}

/// A problem in one line.
pub fn problem_line(problem: &Problem) -> String {
    let place = match &problem.lsn {
        Some(lsn) => format!("{} {lsn}", problem.segment),
        None => problem.segment.clone(),
    };
    let skipped = match problem.skipped_bytes {
        0 => String::new(),
        bytes => format!("; {} bytes skipped", grouped(bytes)),
    };
    let Problem { kind, found, expected, .. } = problem;
    format!("PROBLEM {place}: {kind}: found {found}, expected {expected}{skipped}")
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
    let images = fraction(report.ratios.fpi_ratio);
    writeln!(
        out,
        "  {}images are {images} of the bytes (above 70 % is worth a look)\n",
        commit.unwrap_or_default()
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
        return writeln!(out, "  no rule found anything worth a change\n");
    }
    for (index, finding) in findings.iter().enumerate() {
        tell(index + 1, finding, out)?;
    }
    writeln!(out, "  walstat rules {} explains the first one\n", findings[0].rule)
}

fn tell(number: usize, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let style = if finding.severity > Severity::Info { LOOK } else { Style::new() };
    writeln!(out, "  {number} {style}{}{style:#}", finding.title)?;
    for advice in &finding.advice {
        writeln!(out, "      {advice}")?;
    }
    for price in &finding.side_effects {
        writeln!(out, "      price: {price}")?;
    }
    Ok(())
}

/// Ratios and books: what every answer for people ends with.
pub fn closing(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    if report.why.is_none() {
        problems(report, style, out)?;
        let ratios = &report.ratios;
        let times = ratios.write_amplification.map_or("–".into(), |times| format!("{times:.2}"));
        writeln!(
            out,
            "Images: {} of bytes, {} of records. HOT updates: {}. Write amplification: {times}.",
            fraction(ratios.fpi_ratio),
            fraction(ratios.fpi_record_ratio),
            fraction(ratios.hot_ratio),
        )?;
        writeln!(out, "{}", report.ending.text)?;
    }
    for note in &report.notes {
        writeln!(out, "Note: {note}.")?;
    }
    if style.verbose && !report.input.other_files.is_empty() {
        writeln!(out, "Not read: {}", report.input.other_files.join(", "))?;
    }
    books(report, out)
}

fn books(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let books = &report.books;
    let checksums = match report.input.checksums_verified {
        true => "every checksum verified",
        false => "checksums not verified",
    };
    let problems = match report.problems.len() {
        1 => "1 problem".to_owned(),
        count => format!("{} problems", grouped(count as u64)),
    };
    writeln!(
        out,
        "BOOKS  {} bytes read, {} unaccounted; {} records,\n       {checksums}; {problems}. {:.2} s",
        grouped(books.input_bytes),
        books.unaccounted_bytes,
        grouped(report.totals.count),
        report.elapsed_seconds,
    )
}
