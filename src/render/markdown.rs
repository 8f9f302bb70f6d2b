//! `--format markdown`: the report for a pull request, a step's summary, a page of notes.
//!
//! Names may hold anything that the format gives a meaning to: all of that is escaped. A text that
//! readers of summaries would refuse for its length is cut, and says so.

use super::closing;
use super::number::{counted, fraction, grouped, human_bytes};
use super::screen;
use super::style::Show;
use super::visible::visible;
use super::when;
use std::io::{self, Write};
use walstat_report::model::finding::Finding;
use walstat_report::model::table::{Line, Table, TableRow};
use walstat_report::model::view::View;
use walstat_report::model::{Report, Sums, Why};

/// GitHub refuses a step's summary of 1 MiB.
const BYTES_MAX: usize = 1_000_000;
/// Problems told one by one; the rest is counted.
const PROBLEMS_SHOWN: usize = 20;
/// What has a meaning in a line of text; an underscore has none inside of a word.
const MARKS: &str = "\\`*[]<>|~&#$@!";

/// Writes the report, or the tables that were asked for.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    shortened(out, |text| {
        header(&view.report, style, text)?;
        problems(&view.report, text)?;
        write(view, style, text)
    })
}

/// Passes on what is written, cut where it is too long.
pub fn shortened(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    let whole = text.len();
    if whole > BYTES_MAX {
        let cut = text.get(..BYTES_MAX).unwrap_or_default();
        let lines = cut.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        text.truncate(lines);
        let left = counted((whole - lines) as u64, "byte");
        write!(text, "\n*Cut here: {left} more; --top shows fewer rows.*\n")?;
    }
    out.write_all(&text)
}

fn write(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    if let Some(causes) = &report.why {
        why(causes, style, out)?;
        if let Some(told) = screen::maintenance(report, |bytes| style.bytes(bytes)) {
            writeln!(out, "{}\n", escaped(&told))?;
        }
        if let Some(told) = closing::closed_early(report, |bytes| style.bytes(bytes)) {
            writeln!(out, "{}\n", escaped(&closing::sentence(&told)))?;
        }
    }
    who(report, style, out)?;
    let lines = when::lines(report);
    if !lines.is_empty() {
        writeln!(out, "## When\n")?;
        lines.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))?;
        writeln!(out)?;
    }
    if let Some(findings) = &report.findings {
        advice(report, findings, out)?;
    }
    closing(report, out)
}

/// Notes, and whether the books are closed.
pub fn closing(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for note in closing::pg_wal(report).chain(report.notes.iter().map(String::as_str)) {
        writeln!(out, "> Note: {}.\n", escaped(note))?;
    }
    let books = &report.books;
    writeln!(
        out,
        "{} read, {} unaccounted; {}, {}.",
        counted(books.input_bytes, "byte"),
        books.unaccounted_bytes,
        counted(report.totals.count, "record"),
        closing::checksums(report),
    )
}

/// What was read.
pub fn header(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let range = &report.range;
    writeln!(out, "# WAL of {}\n", escaped(&closing::origin(&report.input)))?;
    let segments = counted(report.input.segments as u64, "segment");
    let bytes = if style.human {
        human_bytes(report.totals.total_bytes)
    } else {
        counted(report.totals.total_bytes, "byte")
    };
    writeln!(out, "{segments}, {} to {}: {bytes} of records.", range.start, range.end)?;
    if let (Some(first), Some(last)) = (&range.first_time, &range.last_time) {
        writeln!(out, "{first} to {last}.")?;
    }
    if let Some(filters) = closing::filters(report) {
        writeln!(out, "{}.", escaped(&filters))?;
    }
    writeln!(out, "{}\n", escaped(&report.ending.text))
}

/// The problems, if there are any.
pub fn problems(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "## {}\n", counted(report.problems.len() as u64, "problem"))?;
    for problem in report.problems.iter().take(PROBLEMS_SHOWN) {
        writeln!(out, "- {}", escaped(&closing::problem_line(problem)))?;
    }
    match report.problems.len().saturating_sub(PROBLEMS_SHOWN) {
        0 => writeln!(out),
        more => writeln!(out, "- {more} more\n"),
    }
}

fn why(causes: &[Why], style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let ratio = causes.iter().filter(|cause| cause.bytes > 0);
    let rows = ratio
        .map(|cause| vec![escaped(&cause.label), style.bytes(cause.bytes), fraction(cause.share)]);
    table("Why", &["Cause", "Bytes", "Share"], rows, out)
}

/// The tables that there are.
fn who(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let all = &report.totals;
    statistics("Resource managers", &report.rmgrs, all, style, out)?;
    statistics("Tables", &report.tables, all, style, out)?;
    statistics("Relations", &report.relations, all, style, out)?;
    statistics("Databases", &report.databases, all, style, out)?;
    statistics("Tablespaces", &report.tablespaces, all, style, out)?;
    statistics("Forks", &report.forks, all, style, out)?;
    let blocks = report.blocks.as_ref().map(|blocks| blocks.top.clone());
    statistics("Blocks", &blocks, all, style, out)?;
    let transactions = report.transactions.as_ref().map(|found| found.top.clone());
    statistics("Transactions", &transactions, all, style, out)?;
    statistics("Kinds of transactions", &report.kinds, all, style, out)?;
    statistics("Record types", &report.records, all, style, out)
}

fn statistics<R: TableRow>(
    title: &str,
    rows: &Option<Table<R>>,
    all: &Sums,
    style: &Show,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(rows) = rows else { return Ok(()) };
    let lines = rows.lines(all).filter(|line| line.numbers.count > 0);
    let lines = lines.chain(rows.left_out(all, |count| format!("{count} more")));
    let lines = lines.chain([Line::total(all)]);
    let cells = lines.map(|line| {
        let Line { label, numbers, shares, .. } = line;
        vec![
            escaped(&label),
            grouped(numbers.count),
            style.bytes(numbers.record_bytes),
            style.bytes(numbers.fpi_bytes),
            style.bytes(numbers.total_bytes),
            format!("{:.2}", shares.total),
        ]
    });
    table(title, &["", "N", "Record size", "FPI size", "Combined size", "%"], cells, out)
}

/// A table: the first column to the left, all others to the right.
pub fn table(
    title: &str,
    headings: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "## {title}\n\n| {} |", headings.join(" | "))?;
    let rule = |index| if index == 0 { ":--" } else { "--:" };
    let rules: Vec<&str> = (0..headings.len()).map(rule).collect();
    writeln!(out, "| {} |", rules.join(" | "))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    writeln!(out)
}

fn advice(report: &Report, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## What to do\n")?;
    for (index, finding) in findings.iter().enumerate() {
        writeln!(out, "{}. **{}** ({})", index + 1, escaped(&finding.title), finding.rule)?;
        for line in &finding.advice {
            writeln!(out, "   - {}", escaped(line))?;
        }
        for price in &finding.side_effects {
            writeln!(out, "   - price: {}", escaped(price))?;
        }
        writeln!(out, "   - ignore it {}", escaped(&finding.ignore_when))?;
    }
    if let Some(silent) = report.silent_rules() {
        writeln!(
            out,
            "{}{}",
            if findings.is_empty() { "" } else { "\n" },
            closing::sentence(&silent)
        )?;
    }
    writeln!(out)
}

/// A text in one line, as it is, whatever is in it.
pub fn escaped(text: &str) -> String {
    let shown = visible(text);
    let mut line = String::with_capacity(shown.len() + 8);
    let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut before = None;
    let mut chars = shown.chars().peekable();
    while let Some(c) = chars.next() {
        let in_word = is_inside(before) && is_inside(chars.peek().copied());
        if MARKS.contains(c) || c == '_' && !in_word {
            line.push('\\');
        }
        line.push(c);
        before = Some(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_meaning_of_their_own() {
        assert_eq!(escaped("public.order_items"), "public.order_items");
        assert_eq!(escaped("_a_ |x| <b> `c` *d*"), "\\_a\\_ \\|x\\| \\<b\\> \\`c\\` \\*d\\*");
        assert_eq!(escaped("a\nb\u{202E}c"), "a\\\\nb\\\\u{202e}c");
    }
}
