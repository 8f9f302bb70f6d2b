//! `walstat follow` on a terminal: one page, usable at 80 × 24 and without colour.

use super::follow::{happening_line, kind_name, largest_kinds, share, table_name};
use super::number::{UNKNOWN, grouped, human_bytes};
use super::time::clock;
use super::visible::visible;
use anstyle::{AnsiColor, Style};
use std::collections::VecDeque;
use textwrap::core::display_width;
use walstat_report::model::Numbers;
use walstat_report::model::follow::{HappeningRow, Moment, Now, TableNow};

/// What the page shows.
#[derive(Debug)]
pub struct Page<'m> {
    /// What is followed.
    pub path: String,
    /// How far reading has come, before anything is known.
    pub reading: &'m str,
    /// What is known.
    pub moment: Option<&'m Moment>,
    /// What came lately.
    pub now: &'m Now,
    /// Tables that wrote lately, in the order asked for.
    pub tables: &'m [TableNow],
    /// What they are ordered by.
    pub sort: &'static str,
    /// Rates of the last minutes, bytes a second.
    pub rates: Option<&'m VecDeque<f64>>,
    /// What happened, the last first.
    pub happenings: Option<&'m VecDeque<HappeningRow>>,
    /// The table that is chosen.
    pub chosen: usize,
    /// Whether its parts are shown.
    pub is_open: bool,
    /// Whether the page stands still.
    pub is_paused: bool,
    /// Whether styles are written.
    pub has_styles: bool,
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARNING: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// Bars from low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What happened that somebody should look at.
const ALARMING: [&str; 4] = ["lost", "damaged", "folder_gone", "other_cluster"];
/// A column of names is no wider.
const NAME_MAX: usize = 48;
/// What keeps segments, so many of them, each on a line.
const KEEPERS: usize = 3;
/// Columns of numbers beside a name.
const NUMBERS: usize = 4 * 11;

/// The lines of the page.
pub fn lines(page: &Page<'_>, (width, height): (usize, usize)) -> Vec<String> {
    let mut lines = Lines { lines: Vec::new(), width, has_styles: page.has_styles };
    let Some(moment) = page.moment else {
        lines.add(Some(BOLD), &format!("walstat follow {}", visible(&page.path)));
        lines.add(None, &format!("reading the WAL that is there {} (q ends)", page.reading));
        return lines.lines;
    };
    head(page, moment, &mut lines);
    let left = height.saturating_sub(lines.lines.len() + 1);
    // Headings and an empty line before each.
    let rows = left.saturating_sub(6);
    let kinds = (rows / 4).clamp(1, 6);
    let events = (rows / 4).clamp(1, 8);
    tables(page, rows.saturating_sub(kinds + events).max(1), &mut lines);
    if height >= 20 {
        kinds_of(page, kinds, &mut lines);
        events_of(page, events, &mut lines);
    }
    lines.lines.truncate(height.saturating_sub(1));
    while lines.lines.len() + 1 < height {
        lines.lines.push(String::new());
    }
    let pause = if page.is_paused { "PAUSED  p goes on" } else { "p pauses" };
    let keys = format!("q ends  {pause}  s sorts ({})  ↑↓ choose  Enter indexes", page.sort);
    lines.add(Some(DIM), &keys);
    lines.lines
}

struct Lines {
    lines: Vec<String>,
    width: usize,
    has_styles: bool,
}

impl Lines {
    fn add(&mut self, style: Option<Style>, text: &str) {
        let text = fit(text, self.width);
        self.lines.push(match style.filter(|_| self.has_styles) {
            Some(style) => format!("{style}{text}{style:#}"),
            None => text,
        });
    }
}

/// As much of a text as is so wide.
fn fit(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut fitting = String::new();
    let mut buffer = [0; 4];
    for letter in text.chars() {
        let letter = letter.encode_utf8(&mut buffer);
        if display_width(&fitting) + display_width(letter) + 1 > width {
            break;
        }
        fitting.push_str(letter);
    }
    fitting.push('…');
    fitting
}

fn head(page: &Page<'_>, moment: &Moment, lines: &mut Lines) {
    let Moment { postgres, timeline, time, .. } = moment;
    let title = format!(
        "walstat follow  {}  PostgreSQL {postgres}  timeline {timeline}  {}",
        visible(&page.path),
        clock(time)
    );
    lines.add(Some(BOLD), &title);
    let rate =
        if page.now.seconds > 0.0 { page.now.wal_bytes as f64 / page.now.seconds } else { 0.0 };
    let bars =
        page.rates.map(|rates| bars(rates, lines.width.saturating_sub(46))).unwrap_or_default();
    let peak = page.rates.into_iter().flatten().fold(0.0f64, |peak, rate| peak.max(*rate));
    let text =
        format!("WAL         {:>12}  peak {:>12}  {bars}", per_second(rate), per_second(peak));
    lines.add(None, &text);
    let text = format!(
        "Position    {}  {} records, {} since {}",
        moment.position_lsn,
        grouped(moment.numbers.count),
        human_bytes(moment.numbers.total_bytes),
        moment.start_lsn
    );
    lines.add(None, &text);
    let behind = format!(
        "Behind      {}  lost {}",
        human_bytes(moment.behind_bytes),
        human_bytes(moment.lost_bytes)
    );
    lines.add((moment.lost_bytes > 0).then_some(WARNING), &behind);
    let now = share(page.now.numbers.fpi_bytes, page.now.numbers.total_bytes);
    let since = match (moment.fpi_bytes_since_redo, moment.bytes_since_redo) {
        (Some(images), Some(all)) => format!(", {} since the last checkpoint", share(images, all)),
        _ => String::new(),
    };
    lines.add(None, &format!("Images      {now} of the bytes now{since}"));
    let checkpoint = match (moment.checkpoint_distance_bytes, &moment.redo_lsn) {
        (Some(distance), Some(redo)) => {
            format!("{} since the redo point {redo}", human_bytes(distance))
        }
        _ => "not known".to_owned(),
    };
    let oldest = moment.oldest_transaction.as_ref().map(|oldest| {
        format!("; oldest transaction {} began {} ago", oldest.xid, human_bytes(oldest.bytes))
    });
    lines.add(None, &format!("Checkpoint  {checkpoint}{}", oldest.unwrap_or_default()));
    if let Some(pg_wal) = &moment.pg_wal {
        let size = human_bytes(pg_wal.bytes);
        let kept = match pg_wal.kept_segments {
            0 => String::new(),
            count => format!(", {count} kept longer than recovery needs them"),
        };
        let style = (!pg_wal.keepers.is_empty()).then_some(WARNING);
        lines.add(style, &format!("pg_wal      {size} in {} segments{kept}", pg_wal.segments));
        for keeper in pg_wal.keepers.iter().take(KEEPERS) {
            lines.add(style, &format!("  {}", visible(&keeper.text)));
        }
    }
}

fn tables(page: &Page<'_>, rows: usize, lines: &mut Lines) {
    let name = lines.width.saturating_sub(NUMBERS + 2).clamp(12, NAME_MAX);
    lines.add(None, "");
    let heading = format!(
        "  {:name$}{:>11}{:>11}{:>11}{:>11}",
        "TABLES NOW", "WAL/s", "share", "images", "records/s"
    );
    lines.add(Some(BOLD), &heading);
    let seconds = page.now.seconds.max(0.001);
    let row = |mark: char, label: &str, numbers: &Numbers| {
        let Numbers { count, fpi_bytes, total_bytes, .. } = *numbers;
        format!(
            "{mark} {}{:>11}{:>11}{:>11}{:>11}",
            padded(label, name),
            human_bytes((total_bytes as f64 / seconds) as u64),
            share(total_bytes, page.now.numbers.total_bytes),
            share(fpi_bytes, total_bytes),
            grouped((count as f64 / seconds) as u64)
        )
    };
    let chosen = page.chosen.min(page.tables.len().saturating_sub(1));
    if let Some(table) = page.tables.get(chosen).filter(|_| page.is_open) {
        lines.add(None, &row('>', &table_name(table), &table.numbers));
        let mut parts: Vec<&(String, Numbers)> = table.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.1.total_bytes));
        for (name, numbers) in parts.into_iter().take(rows.saturating_sub(1)) {
            let name = if name.is_empty() { "the table itself, with TOAST" } else { name };
            lines.add(None, &row(' ', &format!("  {}", visible(name)), numbers));
        }
        return;
    }
    let first = chosen.saturating_sub(rows.saturating_sub(1));
    for (place, table) in page.tables.iter().enumerate().skip(first).take(rows) {
        let mark = if place == chosen { '>' } else { ' ' };
        lines.add(None, &row(mark, &table_name(table), &table.numbers));
    }
    if page.tables.is_empty() {
        lines.add(Some(DIM), "  nothing is written");
    }
}

fn kinds_of(page: &Page<'_>, rows: usize, lines: &mut Lines) {
    let name = lines.width.saturating_sub(3 * 11 + 2).max(12);
    lines.add(None, "");
    let heading =
        format!("  {:name$}{:>11}{:>11}{:>11}", "TRANSACTIONS NOW", "WAL/s", "each", "ended/s");
    lines.add(Some(BOLD), &heading);
    let seconds = page.now.seconds.max(0.001);
    for kind in largest_kinds(page.now).iter().take(rows) {
        let bytes = kind.numbers.total_bytes;
        let [each, ended] = match kind.transactions {
            // Pruned pages and hint bits can be much of it.
            0 => [UNKNOWN.to_owned(), UNKNOWN.to_owned()],
            some => [human_bytes(bytes / some), grouped((some as f64 / seconds) as u64)],
        };
        let text = format!(
            "  {}{:>11}{each:>11}{ended:>11}",
            padded(&visible(&kind_name(kind)), name),
            human_bytes((bytes as f64 / seconds) as u64),
        );
        lines.add(None, &text);
    }
}

fn events_of(page: &Page<'_>, rows: usize, lines: &mut Lines) {
    let Some(happenings) = page.happenings.filter(|of| !of.is_empty()) else { return };
    lines.add(None, "");
    lines.add(Some(BOLD), "  EVENTS");
    for happening in happenings.iter().take(rows) {
        let time = happening.time.as_deref().map(clock).unwrap_or("        ");
        let style = ALARMING.contains(&happening.event.as_str()).then_some(WARNING);
        lines.add(style, &format!("  {time} {}", happening_line(happening)));
    }
}

fn padded(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let left = width.saturating_sub(display_width(&text));
    format!("{text}{}", " ".repeat(left))
}

fn per_second(rate: f64) -> String {
    format!("{}/s", human_bytes(rate as u64))
}

/// The last rates as bars.
fn bars(rates: &VecDeque<f64>, width: usize) -> String {
    let peak = rates.iter().fold(1.0f64, |peak, rate| peak.max(*rate));
    let last = rates.iter().skip(rates.len().saturating_sub(width));
    let bar = |rate: &f64| {
        let height = (rate / peak * BARS.len() as f64).ceil() as usize;
        height.checked_sub(1).and_then(|height| BARS.get(height)).unwrap_or(&' ')
    };
    last.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::follow::KindSums;

    #[test]
    fn what_no_transaction_wrote_has_its_line() {
        let kind = |kind: &str, transactions: u64, total_bytes: u64| KindSums {
            database: String::new(),
            kind: kind.into(),
            transactions,
            aborted: 0,
            numbers: Numbers { total_bytes, ..Numbers::default() },
        };
        let kinds = vec![kind("INSERT t", 20, 4000), kind("none: other", 0, 9000)];
        let now = Now { kinds, seconds: 2.0, ..Now::default() };
        let page = Page {
            moment: Some(&Moment::default()),
            tables: &[],
            happenings: None,
            rates: None,
            chosen: 0,
            is_open: false,
            path: "/x".into(),
            reading: "",
            now: &now,
            sort: "bytes",
            is_paused: false,
            has_styles: false,
        };
        let lines = lines(&page, (80, 24));
        let words = |begins: &str| -> Vec<&str> {
            let line = lines.iter().find(|line| line.trim_start().starts_with(begins));
            line.unwrap_or_else(|| panic!("no {begins}: {lines:?}")).split_whitespace().collect()
        };
        let of_none = ["no", "transaction:", "other", "4.39", "kB", UNKNOWN, UNKNOWN];
        assert_eq!(words("no transaction"), of_none);
        assert_eq!(words("INSERT"), ["INSERT", "t", "1.95", "kB", "200", "B", "10"]);
    }

    #[test]
    fn a_page_fits_every_terminal() {
        let moment = Moment { position_lsn: "0/1".into(), ..Moment::default() };
        let table = |name: &str| TableNow {
            labels: ["db".into(), "public".into(), name.into()],
            numbers: Numbers { count: 9, total_bytes: 99, ..Numbers::default() },
            parts: vec![(String::new(), Numbers::default()), ("i".into(), Numbers::default())],
        };
        let tables: Vec<TableNow> =
            (0..40).map(|n| table(&format!("table_{n}_{}", "ü".repeat(n)))).collect();
        let happening = HappeningRow {
            time: None,
            event: "lost".into(),
            lsn: String::new(),
            text: "x".repeat(300),
        };
        let happenings: VecDeque<HappeningRow> = vec![happening; 30].into();
        let rates: VecDeque<f64> = (0..500).map(f64::from).collect();
        for (size, is_open) in
            [((80, 24), false), ((40, 10), true), ((200, 60), true), ((10, 3), false)]
        {
            let page = Page {
                moment: Some(&moment),
                tables: &tables,
                happenings: Some(&happenings),
                rates: Some(&rates),
                chosen: 30,
                is_open,
                path: "/x".into(),
                reading: "",
                now: &Now::default(),
                sort: "bytes",
                is_paused: false,
                has_styles: false,
            };
            let lines = lines(&page, size);
            assert!(lines.len() <= size.1, "{size:?}: {}", lines.len());
            for line in &lines {
                assert!(display_width(line) <= size.0, "{size:?}: {line}");
            }
        }
    }
}
