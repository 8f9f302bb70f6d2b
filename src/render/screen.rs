//! The first screen: what is this WAL, why is there so much, what made it, what to do, and can
//! the numbers be trusted.

use super::closing;
use super::number::{counted, fraction, human_bytes, whole_bytes};
use super::style::{Show, plain};
use super::visible::visible;
use super::{when, who};
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};
use walstat_report::model::estimate::Predicted;
use walstat_report::model::finding::{Certainty, Finding, Severity, Together};
use walstat_report::model::percent::{hundredths, percent};
use walstat_report::model::threshold::FPI_RATIO;
use walstat_report::model::view::View;
use walstat_report::model::{Report, Why};

/// A threshold is crossed.
const LOOK: Style = AnsiColor::Yellow.on_default();
/// Cells of the longest bar.
const BAR_CELLS: f64 = 16.0;
/// Maintenance that wrote less than this share of the bytes is not told.
const MAINTENANCE_NOTICED: f64 = 0.05;
/// Lines that it has, besides problems and notes.
const LINES: usize = 40;
/// Columns of what is predicted: a size and a change.
const PREDICTED_CELLS: usize = 26;

/// How much is told: a screen that is too long says less of everything.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Causes told one by one.
    causes: usize,
    /// Tables and kinds of transactions.
    who: who::Shown,
    /// Findings beside critical ones; of how many it is said what to do; what to do about each, and what that
    /// costs.
    findings: usize,
    advised: usize,
    advice: usize,
    prices: usize,
    /// When not to mind a finding.
    is_long: bool,
}

/// From much to little. What to do about the first two findings, and about critical ones, is said whatever
/// there is.
const DETAILS: [Detail; 8] = [
    Detail { causes: 8, findings: 6, advised: 6, advice: 4, prices: 2, ..USUAL },
    Detail { causes: 5, findings: 5, advised: 5, advice: 2, ..USUAL },
    Detail { causes: 4, ..USUAL },
    Detail { causes: 4, who: TABLES, ..USUAL },
    Detail { who: TABLES, prices: 0, ..USUAL },
    TIGHT,
    Detail { causes: 2, ..TIGHT },
    Detail { causes: 2, who: who::Shown { kinds: 1, ..TABLES }, ..TIGHT },
];

/// What most of them say.
const USUAL: Detail = Detail {
    causes: 3,
    who: who::Shown { parts: true, ..TABLES },
    findings: 3,
    advised: 3,
    advice: 1,
    prices: 1,
    is_long: false,
};

/// Tables without their parts.
const TABLES: who::Shown = who::Shown { tables: 5, parts: false, kinds: 3 };

/// The same where there is little room.
const TIGHT: Detail = Detail { who: TABLES, advised: 2, prices: 0, ..USUAL };

/// With -v everything.
const ALL: Detail = Detail {
    causes: usize::MAX,
    who: who::Shown { tables: 8, parts: true, kinds: 3 },
    findings: usize::MAX,
    advised: usize::MAX,
    advice: usize::MAX,
    prices: usize::MAX,
    is_long: true,
};

/// Writes the report.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    // Problems come before the numbers, and are never left out for room.
    let mut beside = Vec::new();
    if !report.problems.is_empty() {
        closing::problems(&report.problems, closing::PROBLEMS_SHOWN, style.verbose, &mut beside)?;
        writeln!(beside)?;
    }
    let mut notes = Vec::new();
    closing::notes(report, style, &mut notes)?;
    let mut screen = Vec::new();
    let details = if style.verbose { &[ALL][..] } else { &DETAILS[..] };
    for detail in details {
        screen = blocks(view, *detail, style, &beside, &notes)?;
        if lines(&screen) <= LINES + lines(&beside) + lines(&notes) {
            break;
        }
    }
    out.write_all(&screen)
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// All blocks, with so much detail.
fn blocks(
    view: &View,
    detail: Detail,
    style: &Show,
    problems: &[u8],
    notes: &[u8],
) -> io::Result<Vec<u8>> {
    let (report, mut out) = (&view.report, Vec::new());
    header(report, style, &mut out)?;
    out.extend(problems);
    pg_wal(report, &mut out)?;
    why(report, detail, style, &mut out)?;
    who::render(report, detail.who, style, &mut out)?;
    when::render(report, style, &mut out)?;
    findings(report, detail, style, &mut out)?;
    out.extend(notes);
    closing::books(view, &mut out)?;
    Ok(wrapped(&String::from_utf8_lossy(&out), style.width).into_bytes())
}

/// Wraps lines to the width of the screen; continuation lines are indented.
fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = " ".repeat(hanging(line).min(width / 2));
        let options = textwrap::Options::new(width)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_separator(textwrap::WordSeparator::AsciiSpace);
        let parts = textwrap::wrap(line, options);
        parts.iter().for_each(|part| wrapped.extend([part.as_ref(), "\n"]));
    }
    wrapped
}

/// Where a line goes on: below what follows its heading, or two columns further in.
fn hanging(line: &str) -> usize {
    let heading = line.split("  ").next().unwrap_or_default();
    let is_heading = heading.len() > 1 && heading.chars().all(|c| c.is_ascii_uppercase());
    if is_heading { heading.len() + 2 } else { line.len() - line.trim_start().len() + 2 }
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
    let bytes = if style.human {
        human_bytes(report.totals.total_bytes)
    } else {
        format!("{} bytes", report.totals.total_bytes)
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

/// Why pg_wal is as full as it is.
fn pg_wal(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for (index, text) in closing::pg_wal(report).enumerate() {
        writeln!(out, "{}{}", if index == 0 { "KEPT  " } else { "  " }, visible(text))?;
    }
    if report.pg_wal.is_some() { writeln!(out) } else { Ok(()) }
}

/// `2026-11-21 09:12:01 to 09:53:10 UTC`: the date once if it is the same.
fn span(first: &str, last: &str) -> String {
    let parts = |time: &str| {
        let (date, clock) = time.split_once('T').unwrap_or((time, ""));
        (date.to_owned(), clock.split('.').next().unwrap_or(clock).to_owned())
    };
    let ((first_date, first_clock), (last_date, last_clock)) = (parts(first), parts(last));
    if first_date == last_date {
        format!("{first_date} {first_clock} to {last_clock} UTC")
    } else {
        format!("{first_date} {first_clock} to {last_date} {last_clock} UTC")
    }
}

fn why(report: &Report, detail: Detail, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(causes) = &report.why else { return Ok(()) };
    let mut table = plain(&["WHY", "bytes", "share", ""]);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let mut row = |label: &str, bytes: u64, share: Option<f64>| {
        let bar = share.filter(|_| style.bars).map_or_else(String::new, bar);
        let cells = style.width.saturating_sub(if style.bars { 42 } else { 26 }).min(38);
        table.add_row([format!("  {label:<cells$}"), style.bytes(bytes), fraction(share), bar]);
    };
    let causes: Vec<&Why> = causes.iter().filter(|cause| cause.bytes > 0).collect();
    let (shown, rest) = causes.split_at(causes.len().min(detail.causes));
    shown.iter().for_each(|cause| row(&cause.label, cause.bytes, cause.share));
    if let [first, ..] = rest {
        let bytes = rest.iter().map(|cause| cause.bytes).sum();
        let label = if rest.len() == 1 { first.label.as_str() } else { "everything else" };
        row(label, bytes, Some(rest.iter().filter_map(|cause| cause.share).sum()));
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let commit = report.ratios.bytes_per_commit.map(|bytes| {
        if style.human {
            format!("{} a commit; ", human_bytes(bytes as u64))
        } else {
            format!("{bytes:.0} bytes a commit; ")
        }
    });
    writeln!(
        out,
        "  {}images are {} of the bytes (above {} is worth a look)",
        commit.unwrap_or_default(),
        fraction(report.ratios.fpi_ratio),
        percent(report.thresholds.of("fpi-ratio", &FPI_RATIO), 0),
    )?;
    if let Some(told) = maintenance(report, |bytes| style.bytes(bytes)) {
        writeln!(out, "  {told}")?;
    }
    if let Some(told) = closing::closed_early(report, |bytes| style.bytes(bytes)) {
        writeln!(out, "  {told}")?;
    }
    writeln!(out)
}

/// What maintenance wrote, as far as it is worth a line.
pub fn maintenance(report: &Report, size: impl Fn(u64) -> String) -> Option<String> {
    let rows = report.maintenance.iter().flatten();
    let noticed = rows.filter(|row| row.share.is_some_and(|share| share >= MAINTENANCE_NOTICED));
    let told: Vec<String> = noticed
        .map(|row| format!("{} {} ({})", row.label, size(row.bytes), fraction(row.share)))
        .collect();
    (!told.is_empty()).then(|| format!("maintenance: {}", told.join(", ")))
}

/// A bar of eighths of a cell.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * BAR_CELLS * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn findings(report: &Report, detail: Detail, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(findings) = &report.findings else { return Ok(()) };
    let total = style.bytes(report.totals.total_bytes);
    if findings.iter().any(|finding| predicted(report, finding, style).is_some()) {
        let day = report
            .bytes_a_day
            .map_or_else(String::new, |bytes| format!(" ({} a day)", human_bytes(bytes)));
        told("WHAT TO DO", &format!("predicted instead of {total}{day}"), style, out)?
    } else {
        writeln!(out, "WHAT TO DO")?
    }
    if findings.is_empty() {
        return writeln!(out, "  {}\n", report.silent_rules().unwrap_or_default());
    }
    let mut said = Said::default();
    let (shown, rest) = shown(findings, detail.findings);
    for (number, finding) in &shown {
        one(report, *number, finding, (detail, style), &mut said, out)?;
    }
    if let Some(together) = &report.advice_together {
        let text = prediction(&together.predicted, style);
        let names = together_told(together, &shown);
        told(&format!("  {} together", names.join(" and ")), &text, style, out)?;
    }
    if !rest.is_empty() {
        let rules: Vec<&str> = rest.iter().map(|(_, finding)| finding.rule.as_str()).collect();
        writeln!(out, "  and {} more (-v): {}", rest.len(), rules.join(", "))?;
    }
    let spares = shown.iter().any(|(_, finding)| finding.fewer_checkpoints_bytes.is_some());
    for line in legend(&said, spares).into_iter().chain(report.silent_rules()) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "  walstat rules {} explains the first one\n", findings[0].rule)
}

/// A finding and its number.
type Numbered<'r> = (usize, &'r Finding);

/// The first findings and all critical ones, and the rest. What is critical may save little, or nobody can
/// tell how much: it comes late then.
fn shown(findings: &[Finding], first: usize) -> (Vec<Numbered<'_>>, Vec<Numbered<'_>>) {
    let numbered = findings.iter().enumerate().map(|(index, finding)| (index + 1, finding));
    numbered.partition(|(number, finding)| *number <= first || is_critical(finding))
}

fn is_critical(finding: &Finding) -> bool {
    finding.severity == Severity::Critical
}

/// A finding: its title with what is predicted, what to do and what that costs.
fn one(
    report: &Report,
    number: usize,
    finding: &Finding,
    (detail, style): (Detail, &Show),
    said: &mut Said,
    out: &mut dyn Write,
) -> io::Result<()> {
    let colour = if finding.severity > Severity::Info { LOOK } else { Style::new() };
    let title = format!("  {number} {colour}{}{colour:#}", visible(&finding.title));
    let predicted = predicted(report, finding, style).filter(|text| said.note(text));
    told(&title, &predicted.unwrap_or_default(), style, out)?;
    if number > detail.advised && !is_critical(finding) {
        return Ok(());
    }
    let advice = finding.advice.iter().filter(|line| said.note(line)).take(detail.advice);
    for advice in advice.collect::<Vec<_>>() {
        writeln!(out, "      {}", visible(advice))?;
    }
    let prices = finding.side_effects.iter().filter(|line| said.note(line));
    for price in prices.take(detail.prices).collect::<Vec<_>>() {
        writeln!(out, "      price: {}", visible(price))?;
    }
    if detail.is_long && !finding.ignore_when.is_empty() {
        writeln!(out, "      ignore it {}", visible(&finding.ignore_when))?;
    }
    Ok(())
}

/// What is told together: numbers of findings that are shown, and what others say to set.
fn together_told(together: &Together, shown: &[Numbered]) -> Vec<String> {
    let number = |rule: &String| {
        shown.iter().find(|(_, finding)| finding.rule == *rule).map(|(number, _)| *number)
    };
    let rules = together.rules.iter().enumerate();
    let told = rules.map(|(index, rule)| match number(rule) {
        Some(number) => number.to_string(),
        None => visible(together.changes.get(index).unwrap_or(rule)).to_string(),
    });
    told.collect()
}

/// What the words behind the figures that were told mean; whether some of them have what fewer checkpoints
/// spare in them.
fn legend(said: &Said, spares: bool) -> Option<String> {
    let most = match spares {
        true => "no more than that, with what fewer checkpoints by volume spare",
        false => "no more than that",
    };
    let words = [("most", most), ("rule", "what the rule says, not tried")];
    let is_told = |word: &str| said.0.iter().any(|text| text.ends_with(&format!(" % {word}")));
    let told = words.iter().filter(|(word, _)| is_told(word));
    let told: Vec<String> = told.map(|(word, what)| format!("{word}: {what}")).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// What was said already: the same is not said twice.
#[derive(Default)]
struct Said(std::collections::HashSet<String>);

impl Said {
    /// Takes note of a text; whether it is new.
    fn note(&mut self, text: &str) -> bool {
        self.0.insert(text.to_owned())
    }
}

/// A line with something at its right end, if there is room; else below it.
fn told(left: &str, right: &str, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let cells = textwrap::core::display_width(left);
    let room = style.width.saturating_sub(PREDICTED_CELLS.max(right.len()));
    match (right.is_empty(), cells <= room) {
        (true, _) => writeln!(out, "{left}"),
        (_, true) => writeln!(out, "{left}{:room$}{right}", "", room = room - cells),
        (_, false) => writeln!(out, "{left}\n{:room$}{right}", ""),
    }
}

/// What a finding's settings come to; where they were not tried, what a rule says that they save.
fn predicted(report: &Report, finding: &Finding, style: &Show) -> Option<String> {
    if let Some(predicted) = &finding.predicted {
        return Some(prediction(predicted, style));
    }
    let total = report.totals.total_bytes;
    let saved = finding.estimate.filter(|saved| (1..=total).contains(saved))?;
    let change = -(saved as f64) / total as f64;
    let sure = if finding.certainty == Certainty::Possible { "most" } else { "rule" };
    Some(format!("{:>11} {:>7} {sure}", style.bytes(total - saved), signed_percent(change)))
}

fn prediction(predicted: &Predicted, style: &Show) -> String {
    if predicted.may_save_nothing() {
        let (least, change) = (predicted.low_bytes, predicted.best_change_ratio());
        return format!("{:>11} {:>7} most", style.bytes(least), signed_percent(change));
    }
    if let Some((least, most)) = predicted.uneven_range() {
        let bytes = style.bytes(predicted.predicted_bytes);
        let least = signed_percent(least);
        let least = least.trim_end_matches(['%', ' ']);
        return format!("{bytes:>11} {least} to {}", signed_percent(most));
    }
    let is_sure = predicted.low_bytes == predicted.high_bytes;
    // In points of the change beside it.
    let error = predicted.high_bytes.saturating_sub(predicted.predicted_bytes) as f64;
    let error = hundredths(error / predicted.base_bytes().max(1) as f64).ceil();
    let error = if is_sure { String::new() } else { format!(" ±{error:.0}") };
    let bytes = style.bytes(predicted.predicted_bytes);
    format!("{bytes:>11} {:>7}{error:<5}", signed_percent(predicted.change_ratio))
}

/// `−68 %`.
fn signed_percent(change: f64) -> String {
    let sign = if change < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(change.abs(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_has_nothing_in_it_is_told_by_its_end() {
        let show = Show { human: false, bars: false, main_data: false, verbose: false, width: 80 };
        let told = |low_bytes, high_bytes| {
            let predicted =
                Predicted { predicted_bytes: 410, change_ratio: -0.59, low_bytes, high_bytes };
            prediction(&predicted, &show).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(400, 420), "410 −59 % ±1");
        assert_eq!(told(400, 991), "400 −60 % most");
        assert_eq!(told(410, 410), "410 −59 %");
        assert_eq!(told(390, 700), "410 −30 to −61 %");
    }

    /// A report with so many findings, of which those of these numbers are critical.
    fn with_findings(count: usize, critical: &[usize]) -> Report {
        let finding = |number: usize| {
            let is_critical = critical.contains(&number);
            let severity = if is_critical { Severity::Critical } else { Severity::Info };
            let json = serde_json::json!({
                "rule": format!("rule-{number}"), "severity": severity, "title": format!("title {number}"),
                "evidence": {}, "advice": [format!("advice {number}")], "side_effects": [],
                "ignore_when": "", "estimate": null, "settings": {}, "predicted": null, "source": "",
            });
            serde_json::from_value(json).expect("a finding")
        };
        let findings = (1..=count).map(finding).collect();
        Report { findings: Some(findings), ..walstat_report::model::sample::report(0, 1 << 30) }
    }

    #[test]
    fn what_is_critical_is_shown_wherever_it_stands() {
        let show = Show { human: false, bars: false, main_data: false, verbose: false, width: 80 };
        for detail in DETAILS {
            let mut out = Vec::new();
            findings(&with_findings(9, &[5, 8]), detail, &show, &mut out).expect("a screen");
            let text = String::from_utf8(out).expect("text");
            for number in [1, 2, 3, 5, 8] {
                assert!(text.contains(&format!("title {number}")), "{number}: {text}");
            }
            for number in [5, 8] {
                assert!(text.contains(&format!("      advice {number}\n")), "{number}: {text}");
            }
            let numbers = (1..=9).filter(|number| text.contains(&format!("title {number}")));
            let more = 9 - numbers.count();
            assert!(text.contains(&format!("  and {more} more (-v): rule-")), "{text}");
            assert!(text.ends_with("rule-9\n  walstat rules rule-1 explains the first one\n\n"));
        }
    }

    #[test]
    fn of_what_is_not_shown_the_setting_is_told() {
        let nothing =
            Predicted { predicted_bytes: 0, change_ratio: 0.0, low_bytes: 0, high_bytes: 0 };
        let together = Together {
            rules: vec!["wal-compression".into(), "checkpoint-spacing".into()],
            changes: vec!["wal_compression = lz4".into(), "max_wal_size = 384MB".into()],
            settings: Default::default(),
            predicted: nothing,
        };
        assert_eq!(
            together_told(&together, &[]),
            ["wal_compression = lz4", "max_wal_size = 384MB"]
        );
        // Of an earlier release the rule alone is known.
        let earlier = Together { changes: Vec::new(), ..together };
        assert_eq!(together_told(&earlier, &[]), ["wal-compression", "checkpoint-spacing"]);
    }

    #[test]
    fn words_behind_figures_are_explained_where_they_stand() {
        let told = |texts: &[&str]| {
            let mut said = Said::default();
            texts.iter().for_each(|text| assert!(said.note(text)));
            legend(&said, false)
        };
        let most = "most: no more than that";
        assert_eq!(told(&["400    −60 % most", "410    −59 % ±1"]).as_deref(), Some(most));
        let both = told(&["400    −60 % rule", "410    −59 % most"]);
        let rule = "rule: what the rule says, not tried";
        assert_eq!(both, Some(format!("{most}; {rule}")));
        assert_eq!(told(&["410    −59 % ±1", "do the most"]), None);
        let mut said = Said::default();
        said.note("400    −60 % most");
        let spares = "most: no more than that, with what fewer checkpoints by volume spare";
        assert_eq!(legend(&said, true).as_deref(), Some(spares));
    }

    #[test]
    fn long_lines_go_on_indented() {
        let text = "short\n  1 a line that is longer than twenty\n\n";
        assert_eq!(wrapped(text, 20), "short\n  1 a line that is\n    longer than\n    twenty\n\n");
    }
}
