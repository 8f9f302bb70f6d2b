//! `walstat diff` for people: what changed, most first; and for pull requests.

use super::markdown::{escaped, table as markdown_table};
use super::number::{UNKNOWN, counted, fraction, grouped, human_bytes};
use super::style::{Show, plain};
use super::visible::visible;
use std::io::{self, Write};
use walstat_report::model::diff::{Compared, Diff, Side};
use walstat_report::model::percent::{self, hundredths};

/// One table of rows: what it is of, and its rows with what they are called.
type Rows = (&'static str, Vec<(String, Compared)>);

/// Writes it as tables, with so many rows each; 0: all.
pub fn render(diff: &Diff, top: usize, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "BEFORE  {}", visible(&told(&diff.before)))?;
    writeln!(out, "AFTER   {}\n", visible(&told(&diff.after)))?;
    for (heading, rows) in all(diff).into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let mut table = plain(&[heading, "N", "change", "before", "after", "change", ""]);
        for (label, compared) in cut(&rows, top) {
            let mut cells = cells(&compared, style);
            cells.insert(0, visible(&label).into_owned());
            table.add_row(cells);
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    let mut table = plain(&["Ratio", "before", "after", "change"]);
    ratios(diff).into_iter().for_each(|cells| {
        table.add_row(cells);
    });
    writeln!(out, "{}", table.trim_fmt())?;
    if !diff.notes.is_empty() {
        writeln!(out)?;
    }
    diff.notes.iter().try_for_each(|note| writeln!(out, "Note: {}.", visible(note)))
}

/// Writes it for a pull request.
pub fn markdown(diff: &Diff, top: usize, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# WAL before and after\n")?;
    writeln!(out, "- Before: {}", escaped(&told(&diff.before)))?;
    writeln!(out, "- After: {}\n", escaped(&told(&diff.after)))?;
    for (heading, rows) in all(diff).into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let rows = cut(&rows, top).into_iter().map(|(label, compared)| {
            let mut cells = cells(&compared, style);
            cells.insert(0, escaped(&label));
            cells
        });
        let headings = ["", "N", "change", "before", "after", "change", ""];
        markdown_table(heading, &headings, rows, out)?;
    }
    let ratios = ratios(diff).into_iter().map(Vec::from);
    markdown_table("Ratios", &["", "before", "after", "change"], ratios, out)?;
    diff.notes.iter().try_for_each(|note| writeln!(out, "\n> Note: {}.", escaped(note)))
}

/// All tables.
fn all(diff: &Diff) -> Vec<Rows> {
    let rmgrs = diff.rmgrs.iter().map(|row| (row.rmgr.clone(), row.compared));
    let records =
        diff.records.iter().map(|row| (format!("{}/{}", row.rmgr, row.record), row.compared));
    let tables = diff.tables.iter().map(|row| (row.label.clone(), row.compared));
    let total = vec![("all records".to_owned(), diff.totals)];
    vec![
        ("Total", total),
        ("Resource manager", rmgrs.collect()),
        ("Record", records.collect()),
        ("Table", tables.collect()),
    ]
}

fn cut(rows: &[(String, Compared)], top: usize) -> Vec<(String, Compared)> {
    let most = if top == 0 { rows.len() } else { top.min(rows.len()) };
    let mut shown: Vec<(String, Compared)> = rows.iter().take(most).cloned().collect();
    if let Some(rest) = rows.get(most..).filter(|rest| !rest.is_empty()) {
        let mut sum = Compared::default();
        for (_, compared) in rest {
            sum.before.add(&compared.before);
            sum.after.add(&compared.after);
            sum.change.count += compared.change.count;
            sum.change.total_bytes += compared.change.total_bytes;
        }
        shown.push((format!("{} more", rest.len()), sum));
    }
    shown
}

fn cells(compared: &Compared, style: &Show) -> Vec<String> {
    let Compared { before, after, change } = compared;
    let ratio = (before.total_bytes > 0)
        .then(|| change.total_bytes as f64 / before.total_bytes as f64)
        .map_or_else(|| "new".to_owned(), |ratio| percent::change(ratio, 2));
    vec![
        grouped(after.count),
        signed(change.count, grouped),
        style.bytes(before.total_bytes),
        style.bytes(after.total_bytes),
        signed(change.total_bytes, |bytes| style.bytes(bytes)),
        ratio,
    ]
}

fn signed(change: i64, told: impl Fn(u64) -> String) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", told(change.unsigned_abs()))
}

/// What a side is.
fn told(side: &Side) -> String {
    let Side { input, range, problems, .. } = side;
    let problems = match problems {
        0 => String::new(),
        count => format!(", {}", counted(*count as u64, "problem")),
    };
    format!(
        "{}: PostgreSQL {}, {} to {}, {} commits{problems}",
        input.paths.join(" "),
        input.postgres,
        range.start,
        range.end,
        grouped(side.commits),
    )
}

/// What does not depend on how much there is of the WAL: name, before, after, change.
fn ratios(diff: &Diff) -> Vec<[String; 4]> {
    let (before, after) = (&diff.before, &diff.after);
    let commit = before.bytes_per_commit.zip(after.bytes_per_commit);
    let commit = commit.filter(|(before, _)| *before > 0.0);
    let commit = commit.map(|(before, after)| percent::change((after - before) / before, 2));
    let size = |bytes: Option<f64>| or_dash(bytes.map(|bytes| human_bytes(bytes.round() as u64)));
    let share = |name: &str, before: Option<f64>, after: Option<f64>| {
        let points =
            |(before, after): (f64, f64)| format!("{:+.2} points", hundredths(after - before));
        let change = before.zip(after).map(points);
        [name.to_owned(), fraction(before), fraction(after), or_dash(change)]
    };
    let bytes = [size(before.bytes_per_commit), size(after.bytes_per_commit), or_dash(commit)];
    let [was, is, change] = bytes;
    vec![
        ["bytes a commit".to_owned(), was, is, change],
        share("images of all bytes", before.fpi_ratio, after.fpi_ratio),
        share("HOT of all updates", before.hot_ratio, after.hot_ratio),
    ]
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}
