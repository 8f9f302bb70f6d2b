//! The block WHO of the first screen: the tables that made most of the WAL, with their parts.

use super::number::{UNKNOWN, fraction, grouped, human_bytes};
use super::style::{Show, plain};
use super::visible::visible;
use std::io::{self, Write};
use walstat_report::model::kind::SampledKind;
use walstat_report::model::who::{IndexPart, NamesSummary, WholeTableRow};
use walstat_report::model::{Numbers, Report};

/// Columns beside the names.
const CELLS_BESIDE: usize = 42;
/// Columns that a name has at least.
const NAME_CELLS: usize = 16;
/// Indexes of each shown.
const INDEXES_SHOWN: usize = 2;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Tables.
    pub tables: usize,
    /// The parts of the first.
    pub parts: bool,
    /// Kinds of transactions.
    pub kinds: usize,
}

/// Writes the block, if tables were counted.
pub fn render(report: &Report, most: Shown, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(tables) = &report.tables else { return Ok(()) };
    let rows = tables.rows.iter().zip(tables.labels());
    let shown: Vec<(&WholeTableRow, String)> =
        rows.filter(|(row, _)| row.database.is_some()).take(most.tables).collect();
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
        if place == 0 && most.parts {
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
        writeln!(out, "  {}", sources(names, report.totals.total_bytes))?;
    }
    for line in kinds(report, most.kinds) {
        writeln!(out, "  {}", visible(&line))?;
    }
    writeln!(out)
}

/// What the largest kinds of transactions did, a line each.
fn kinds(report: &Report, most: usize) -> Vec<String> {
    let Some(sample) = &report.kind_sample else { return Vec::new() };
    let share = |part: u64, all: u64| fraction((all > 0).then(|| part as f64 / all as f64));
    let line = |kind: &SampledKind| {
        format!(
            "{} of them, {} each: {}",
            share(kind.transactions, sample.transactions),
            human_bytes(kind.mean_bytes),
            kind.kind
        )
    };
    let head = format!(
        "transactions, by a sample of {} (--stats=kind counts all):",
        grouped(sample.transactions)
    );
    std::iter::once(head).chain(sample.kinds.iter().take(most).map(line)).collect()
}

/// The lines of a table's parts, if it has more than one: all of them in a long report.
fn parts(row: &WholeTableRow, style: &Show) -> Vec<[String; 5]> {
    let most = if style.verbose { usize::MAX } else { INDEXES_SHOWN };
    let shown = row.indexes.len().min(most);
    let (indexes, more) = row.indexes.split_at(shown);
    let heap = row.heap.iter().map(|part| ("heap".to_owned(), &part.numbers));
    let toast = row.toast.iter().map(|part| ("TOAST".to_owned(), &part.numbers));
    let indexes = indexes.iter().map(|index| (index.name.clone(), &index.part.numbers));
    let parts: Vec<_> = heap.chain(toast).chain(indexes).collect();
    if parts.len() < 2 {
        return Vec::new();
    }
    let more = not_shown(more);
    let more = more.iter().map(|(label, numbers)| (label.clone(), numbers));
    parts.into_iter().chain(more).map(|(name, numbers)| line(4, &name, numbers, style)).collect()
}

/// What indexes that are not shown come to.
fn not_shown(indexes: &[IndexPart]) -> Option<(String, Numbers)> {
    let sum = |of: fn(&Numbers) -> u64| indexes.iter().map(|index| of(&index.part.numbers)).sum();
    let (total_bytes, fpi_bytes) = (sum(|row| row.total_bytes), sum(|row| row.fpi_bytes));
    let label = match indexes.len() {
        0 => return None,
        1 => "1 more index".to_owned(),
        more => format!("{more} more indexes"),
    };
    Some((label, Numbers { total_bytes, fpi_bytes, ..Numbers::default() }))
}

fn line(indent: usize, label: &str, numbers: &Numbers, style: &Show) -> [String; 5] {
    let images =
        (numbers.total_bytes > 0).then(|| numbers.fpi_bytes as f64 / numbers.total_bytes as f64);
    let most = style.width.saturating_sub(CELLS_BESIDE + indent).max(NAME_CELLS);
    let label = format!("{:indent$}{}", "", cut(&visible(label), most));
    [
        label,
        style.bytes(numbers.total_bytes),
        fraction(images),
        UNKNOWN.to_owned(),
        UNKNOWN.to_owned(),
    ]
}

/// A name that is too long, without its middle.
fn cut(name: &str, most: usize) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= most {
        return name.to_owned();
    }
    let (first, last) = (most / 2, most - most / 2 - 1);
    let start: String = all.iter().take(first).collect();
    let end: String = all.iter().skip(all.len() - last).collect();
    format!("{start}…{end}")
}

/// Where the names come from, and what has none.
fn sources(names: &NamesSummary, all_bytes: u64) -> String {
    let share = |bytes: u64| fraction((all_bytes > 0).then(|| bytes as f64 / all_bytes as f64));
    let words: Vec<&str> = names.sources.iter().map(|source| source.text()).collect();
    let without = share(all_bytes.saturating_sub(names.relation_bytes));
    let mut text =
        if words.is_empty() { String::new() } else { format!("names from {}; ", words.join(", ")) };
    text.push_str(&format!("{without} of bytes belong to no relation"));
    let unnamed = names.relation_bytes - names.named_bytes;
    if unnamed > 0 {
        text.push_str(&format!(", {} have no name (--data-directory)", share(unnamed)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::kind::KindSample;
    use walstat_report::model::sample;
    use walstat_report::model::who::Part;

    #[test]
    fn kinds_of_a_sample_are_told_with_their_share_and_size() {
        let mut report = sample::report(0, 1000);
        assert!(kinds(&report, 3).is_empty());
        let kind = SampledKind {
            kind: "INSERT t".into(),
            transactions: 30,
            median_bytes: 105,
            mean_bytes: 200,
        };
        report.kind_sample = Some(KindSample { transactions: 40, kinds: vec![kind] });
        assert_eq!(kinds(&report, 3)[1..], ["75.00 % of them, 200 B each: INSERT t"]);
    }

    #[test]
    fn indexes_that_are_not_shown_are_told_as_a_sum() {
        let numbers = |bytes| Numbers { total_bytes: bytes, ..Numbers::default() };
        let part = |bytes| Part { numbers: numbers(bytes), ..Part::default() };
        let index = |(name, bytes): (&str, u64)| IndexPart {
            name: name.into(),
            part: part(bytes),
            ..IndexPart::default()
        };
        let named = [("email", 9), ("pkey", 7), ("seen", 5), ("last", 1)];
        let indexes = named.map(index).to_vec();
        let row = WholeTableRow { heap: Some(part(16)), indexes, ..Default::default() };
        let told = |verbose| {
            let show = Show { human: false, bars: false, main_data: false, verbose, width: 80 };
            parts(&row, &show).into_iter().map(|cells| [cells[0].trim(), &cells[1]].join(" "))
        };
        let short: Vec<String> = told(false).collect();
        assert_eq!(short, ["heap 16", "email 9", "pkey 7", "2 more indexes 6"]);
        let long: Vec<String> = told(true).collect();
        assert_eq!(long, ["heap 16", "email 9", "pkey 7", "seen 5", "last 1"]);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(cut("public.orders", 13), "public.orders");
        assert_eq!(cut("public.orders_with_items", 13), "public…_items");
    }
}
