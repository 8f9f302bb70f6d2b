//! `--format nagios`: one line with performance data, then details, as the Monitoring Plugins
//! guidelines have it for Nagios, Icinga and their kin.

use super::closing::{accepted_gaps, filters, problem_line, verified};
use std::io::{self, Write};
use walstat_report::model::Report;
use walstat_report::model::checked::{Bound, Check, Unit, Verdict};
use walstat_report::model::finding::Severity;
use walstat_report::model::percent::hundredths;
use walstat_report::model::view::View;

/// Lines of details; monitoring cuts long output anyway.
const DETAILS: usize = 20;

/// The states of a service; their numbers are the exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All checks hold.
    Ok = 0,
    /// A limit is broken.
    Warning = 1,
    /// Damage, no restore, a critical rule.
    Critical = 2,
    /// Nothing could be read.
    Unknown = 3,
}

impl State {
    /// The state that a checked report is in.
    pub fn of(report: &Report) -> State {
        match report.worst() {
            None => State::Ok,
            Some(Severity::Critical) => State::Critical,
            Some(Severity::Info | Severity::Warning) => State::Warning,
        }
    }

    fn word(self) -> &'static str {
        match self {
            State::Ok => "OK",
            State::Warning => "WARNING",
            State::Critical => "CRITICAL",
            State::Unknown => "UNKNOWN",
        }
    }
}

/// Writes the state, the performance data and what is broken.
pub fn render(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    let broken = report.checks_that(Verdict::Fail);
    let broken: Vec<String> = broken.map(|c| format!("{}: {}", c.check, c.text)).collect();
    let text = if broken.is_empty() { verified(view) } else { broken.join("; ") };
    let data = performance(view).join(" ");
    writeln!(out, "WALSTAT {} - {} | {data}", State::of(report).word(), plain(&text))?;
    if let Some(filters) = filters(report) {
        writeln!(out, "{}", plain(&filters))?;
    }
    accepted_gaps(report).try_for_each(|gap| writeln!(out, "{}", plain(&gap)))?;
    for problem in report.problems.iter().take(DETAILS) {
        writeln!(out, "{}", plain(&problem_line(problem)))?;
    }
    match report.problems.len().saturating_sub(DETAILS) {
        0 => Ok(()),
        more => writeln!(out, "PROBLEM {more} more"),
    }
}

/// Writes why nothing could be checked.
pub fn unknown(reason: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "WALSTAT {} - {}", State::Unknown.word(), plain(reason))
}

/// Text without what ends it: a line end, and the bar before performance data.
fn plain(text: &str) -> String {
    let replaced = |c: char| match c {
        '|' => '/',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(replaced).collect()
}

fn performance(view: &View) -> Vec<String> {
    let verified = view.verified();
    let mut data = vec![
        format!("segments={}", verified.segments),
        format!("records={}", verified.records),
        format!("bytes={}B", verified.bytes),
        format!("time={:.3}s", verified.seconds),
    ];
    if let Some(ratio) = view.report.ratios.fpi_ratio {
        data.push(format!("fpi_ratio={:.2}%", hundredths(ratio)));
    }
    data.extend(view.report.checks().iter().filter_map(datum));
    data
}

/// `'label'=value[UOM];warn;crit`: a limit of ours is a range of theirs.
fn datum(check: &Check) -> Option<String> {
    let (value, limit) = (check.value?, check.limit?);
    let (scale, decimals, unit) = match check.unit {
        Unit::Ratio => (hundredths(1.0), 2, "%"),
        Unit::Bytes => (1.0, 0, "B"),
        Unit::Problems => (1.0, 0, ""),
        Unit::None => return None,
    };
    let (value, limit) = (value * scale, limit * scale);
    let range = match check.bound {
        Some(Bound::Min) => format!("{limit:.decimals$}:"),
        // Growth may be negative, which is fine: `~` is no lower end.
        _ if check.unit == Unit::Ratio => format!("~:{limit:.decimals$}"),
        _ => format!("{limit:.decimals$}"),
    };
    let ranges = match check.severity {
        Severity::Critical => format!(";{range}"),
        Severity::Info | Severity::Warning => range,
    };
    Some(format!("'{}'={value:.decimals$}{unit};{ranges}", label(&check.check)))
}

/// A label: quotes in it are doubled, and it has no equals sign.
fn label(name: &str) -> String {
    plain(name).replace('\'', "''").replace('=', "_")
}
