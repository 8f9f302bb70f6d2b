//! The block WHO of the first screen: the tables that made most of the WAL, with their parts.

use super::number::{fraction, grouped};
use super::style::{Show, plain};
use super::visible::visible;
use crate::report::model::who::{NamesSummary, WholeTableRow};
use crate::report::model::{Numbers, Report};
use std::io::{self, Write};

/// Tables shown.
const TABLES_SHOWN: usize = 4;
/// Indexes of each shown.
const INDEXES_SHOWN: usize = 2;

/// Writes the block, if tables were counted and there are any.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(tables) = &report.tables else { return Ok(()) };
    let rows = tables.rows.iter().zip(tables.labels());
    let shown: Vec<(&WholeTableRow, String)> =
        rows.filter(|(row, _)| row.database.is_some()).take(TABLES_SHOWN).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let mut table = plain(&["WHO", "WAL", "images", "updates", "HOT"]);
    let mut rest = report.totals.total_bytes;
    for (place, (row, label)) in shown.iter().enumerate() {
        rest = rest.saturating_sub(row.numbers.total_bytes);
        let mut cells = line(2, label, &row.numbers, style);
        if row.updates > 0 {
            let hot = row.hot_updates as f64 / row.updates as f64;
            cells[3] = grouped(row.updates);
            cells[4] = fraction(Some(hot));
        }
        table.add_row(cells);
        if place == 0 {
            parts(row, style).into_iter().for_each(|cells| _ = table.add_row(cells));
        }
    }
    if rest > 0 {
        let bytes = style.bytes(rest);
        table.add_row([
            "  everything else".to_owned(),
            bytes,
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if let Some(names) = &report.names {
        for line in sources(names, report.totals.total_bytes) {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out)
}

/// The lines of a table's parts, if it has more than one.
fn parts(row: &WholeTableRow, style: &Show) -> Vec<[String; 5]> {
    let heap = row.heap.iter().map(|part| ("heap".to_owned(), &part.numbers));
    let toast = row.toast.iter().map(|part| ("TOAST".to_owned(), &part.numbers));
    let indexes = row.indexes.iter().take(INDEXES_SHOWN);
    let indexes = indexes.map(|index| (index.name.clone(), &index.part.numbers));
    let parts: Vec<_> = heap.chain(toast).chain(indexes).collect();
    if parts.len() < 2 {
        return Vec::new();
    }
    parts.into_iter().map(|(name, numbers)| line(4, &name, numbers, style)).collect()
}

fn line(indent: usize, label: &str, numbers: &Numbers, style: &Show) -> [String; 5] {
    let images =
        (numbers.total_bytes > 0).then(|| numbers.fpi_bytes as f64 / numbers.total_bytes as f64);
    let label = format!("{:indent$}{}", "", visible(label));
    [label, style.bytes(numbers.total_bytes), fraction(images), "–".to_owned(), "–".to_owned()]
}

/// Where the names come from, and what has none.
fn sources(names: &NamesSummary, all_bytes: u64) -> Vec<String> {
    let share = |bytes: u64| fraction((all_bytes > 0).then(|| bytes as f64 / all_bytes as f64));
    let words: Vec<&str> = names.sources.iter().map(|source| source.text()).collect();
    let mut lines = Vec::new();
    if !words.is_empty() {
        lines.push(format!("names from {}", words.join(", ")));
    }
    let without = share(all_bytes.saturating_sub(names.relation_bytes));
    let unnamed = names.relation_bytes - names.named_bytes;
    let mut rest = format!("{without} of bytes belong to no relation");
    if unnamed > 0 {
        rest.push_str(&format!(", {} have no name (--data-directory)", share(unnamed)));
    }
    lines.push(rest);
    lines
}
