//! What every answer for people says of the input and ends with: what was read, problems, notes,
//! and whether the books are closed.

use super::number::{UNKNOWN, counted, fraction};
use super::style::Show;
use super::visible::visible;
use anstyle::{AnsiColor, Effects, Style};
use std::io::{self, Write};
use walstat_report::model::checked::CheckKind;
use walstat_report::model::view::View;
use walstat_report::model::{Input, Problem, ProblemKind, Report};

/// Something is wrong.
const BAD: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// `PostgreSQL 15, cluster 7710480150743322958, timeline 1`.
pub fn origin(input: &Input) -> String {
    let timelines: Vec<String> = input.timelines.iter().map(u32::to_string).collect();
    let timelines = timelines.join(" and ");
    let Input { postgres, system_identifier, .. } = input;
    format!("PostgreSQL {postgres}, cluster {system_identifier}, timeline {timelines}")
}

/// The line about the filters, if any was on.
pub fn filters(report: &Report) -> Option<String> {
    report.input.filters.options().map(|options| format!("Filters: {options}"))
}

/// A line about each gap that was accepted, for formats that list no checks.
pub fn accepted_gaps(report: &Report) -> impl Iterator<Item = String> {
    let gaps = report.checks().iter().filter(|check| check.kind == CheckKind::Gap);
    gaps.map(|gap| format!("{}: {}", visible(&gap.check), visible(&gap.text)))
}

/// Whether checksums were verified, and how many failed.
pub fn checksums(report: &Report) -> String {
    let failed = report.problems.iter().filter(|p| p.kind == ProblemKind::Checksum).count();
    match (report.input.checksums_verified, failed) {
        (false, _) => "checksums not verified".into(),
        (true, 0) => "every checksum verified".into(),
        (true, failed) => format!("{} failed", counted(failed as u64, "checksum")),
    }
}

/// Problems told one by one on a screen; the rest is counted.
pub const PROBLEMS_SHOWN: usize = 5;

/// What a command says of the WAL before what it was asked: where from, how it ends, what is wrong.
pub fn opening(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let range = &report.range;
    writeln!(out, "{}, {} to {}", origin(&report.input), range.start, range.end)?;
    writeln!(out, "{}\n", report.ending.text)?;
    problems(&report.problems, PROBLEMS_SHOWN, style.verbose, out)
}

/// Problems in one line each, `shown` of them and the number of the rest; `-v` shows all.
pub fn problems(
    problems: &[Problem],
    shown: usize,
    is_verbose: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown = if is_verbose { problems.len() } else { shown };
    for problem in problems.iter().take(shown) {
        writeln!(out, "{BAD}{}{BAD:#}", problem_line(problem))?;
    }
    match problems.len().saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "PROBLEM {more} more (-v shows all)"),
    }
}

/// A problem in one line.
pub fn problem_line(problem: &Problem) -> String {
    let Problem { kind, segment, found, expected, .. } = problem;
    let place = match &problem.lsn {
        Some(lsn) => format!("{segment} {lsn}"),
        None => segment.clone(),
    };
    let skipped = match problem.skipped_bytes {
        0 => String::new(),
        bytes => format!("; {} skipped", counted(bytes, "byte")),
    };
    let line = format!("PROBLEM {place}: {kind}: found {found}, expected {expected}{skipped}");
    visible(&line).into_owned()
}

/// A text that begins small as a sentence.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map_or_else(String::new, |letter| letter.to_uppercase().collect());
    format!("{first}{}.", letters.as_str())
}

/// What no cause has, since no record has it: the unused rest of segments that were closed early.
pub fn closed_early(report: &Report, size: impl Fn(u64) -> String) -> Option<String> {
    report.books.closed_early_ratio().map(|share| {
        format!(
            "besides, {} ({} of what was read) are the unused rest of segments closed early, by \
             archive_timeout, pg_switch_wal or a backup",
            size(report.books.switch_bytes),
            fraction(Some(share))
        )
    })
}

/// Ratios and ending, for answers that did not begin with them.
pub fn ratios(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let ratios = &report.ratios;
    let times = ratios.write_amplification.map_or(UNKNOWN.into(), |times| format!("{times:.2}"));
    writeln!(
        out,
        "Images: {} of bytes, {} of records. HOT updates: {}. Write amplification: {times}.",
        fraction(ratios.fpi_ratio),
        fraction(ratios.fpi_record_ratio),
        fraction(ratios.hot_ratio),
    )?;
    writeln!(out, "{}", report.ending.text)
}

/// What keeps segments in `pg_wal`, and how many there are, in sentences.
pub fn pg_wal(report: &Report) -> impl Iterator<Item = &str> {
    report.pg_wal.iter().flat_map(|pg_wal| {
        let keepers = pg_wal.keepers.iter().map(|keeper| keeper.text.as_str());
        std::iter::once(pg_wal.text.as_str()).chain(keepers)
    })
}

/// Notes, and with `-v` the files that were not read.
pub fn notes(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    for note in &report.notes {
        writeln!(out, "Note: {}.", visible(note))?;
    }
    if style.verbose && !report.input.other_files.is_empty() {
        writeln!(out, "Not counted: {}", visible(&report.input.other_files.join(", ")))?;
    }
    Ok(())
}

/// The books: what was read, and whether every byte of it is accounted for.
pub fn books(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    writeln!(
        out,
        "BOOKS  {} read, {} unaccounted; {}, {}; {}. {:.2} s",
        counted(report.books.input_bytes, "byte"),
        report.books.unaccounted_bytes,
        counted(report.totals.count, "record"),
        checksums(report),
        counted(report.problems.len() as u64, "problem"),
        view.elapsed_seconds,
    )
}

/// What was verified, and how fast: `200 segments, 3.10 GB, 2,431,391 records, …`.
pub fn verified(view: &View) -> String {
    let verified = view.verified();
    let rate = verified
        .bytes_per_second
        .map(|rate| format!(", {}/s", super::number::human_bytes(rate as u64)));
    format!(
        "{}, {}, {}, {}, {:.2} s{}",
        counted(verified.segments as u64, "segment"),
        super::number::human_bytes(verified.bytes),
        counted(verified.records, "record"),
        checksums(&view.report),
        verified.seconds,
        rate.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::Books;
    use walstat_report::model::sample;

    #[test]
    fn what_switches_leave_unused_is_told_from_a_tenth_on() {
        let told = |switch_bytes| {
            let mut report = sample::report(0, 100);
            report.books = Books { switch_bytes, input_bytes: 1000, ..Books::default() };
            closed_early(&report, |bytes| format!("{bytes} B"))
        };
        assert_eq!(told(99), None);
        assert!(told(100).is_some_and(|text| text.starts_with("besides, 100 B (10.00 % of what")));
    }

    #[test]
    fn a_sentence_begins_large_and_ends() {
        assert_eq!((sentence("a b"), sentence("")), ("A b.".to_owned(), ".".to_owned()));
    }
}
