//! `walstat follow` on a terminal: one page, usable at 80 × 24 and without colour.

mod room;

use super::follow::{happening_line, kind_name, largest_kinds, share, table_name};
use super::number::{UNKNOWN, grouped, human_bytes};
use super::style::BARS;
use super::time::clock;
use super::visible::visible;
use anstyle::{AnsiColor, Style};
use std::collections::VecDeque;
use textwrap::core::display_width;
use walstat_report::model::Numbers;
use walstat_report::model::follow::{
    HappeningRow, Keeper, KindSums, Moment, Now, OpenTransaction, PgWal, TableNow,
};

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
    /// What cannot be written, and why.
    pub troubles: &'m [String],
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

/// What happened that somebody should look at.
const ALARMING: [&str; 6] =
    ["lost", "damaged", "folder_gone", "folder_unreadable", "other_cluster", "other_history"];
/// A column of names is so wide, and wider only for a name that is.
const NAME_USUAL: usize = 48;
/// From this height on what keeps segments has at least so many lines.
const KEEPERS: usize = 3;
const KEEPERS_FROM: usize = 20;
/// So many lines are taken by what cannot be written.
const TROUBLES: usize = 3;
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
    let shown = page.tables.get(page.chosen.min(page.tables.len().saturating_sub(1)));
    let parts = shown.filter(|_| page.is_open).map(|table| table.parts.len() + 1);
    let kinds = largest_kinds(page.now);
    let events = page.happenings.map_or(0, VecDeque::len);
    let there = [parts.unwrap_or(page.tables.len()).max(1), kinds.len(), events];
    if let Some(pg_wal) = &moment.pg_wal {
        let own = if removable(pg_wal).is_some() { 4 } else { 3 };
        let taken = lines.lines.len() + own + room::least(there);
        let least = if height >= KEEPERS_FROM { KEEPERS } else { 1 };
        kept(pg_wal, height.saturating_sub(taken).max(least), &mut lines);
    }
    let rows = room::shares(height.saturating_sub(lines.lines.len() + 1), there);
    let [table_rows, kind_rows, event_rows] = rows;
    if table_rows > 0 {
        tables(page, table_rows, &mut lines);
    }
    if kind_rows > 0 {
        kinds_of(page, &kinds, kind_rows, &mut lines);
    }
    if event_rows > 0 {
        events_of(page, event_rows, &mut lines);
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
    let troubles: Vec<String> =
        page.troubles.iter().map(|text| visible(text).into_owned()).collect();
    let troubles = room::texts(&troubles, TROUBLES, lines.width);
    troubles.iter().for_each(|text| lines.add(Some(WARNING), text));
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
    lines.add(None, &format!("Checkpoint  {checkpoint}"));
    if let Some(OpenTransaction { xid, start_lsn, bytes }) = &moment.oldest_transaction {
        let least = if start_lsn.is_none() { "at least " } else { "" };
        let began = human_bytes(*bytes);
        lines.add(None, &format!("Oldest xact {xid} began {least}{began} ago"));
    }
}

/// What lies in `pg_wal`, and on at most so many lines what keeps it there.
fn kept(pg_wal: &PgWal, rows: usize, lines: &mut Lines) {
    let style = (!pg_wal.keepers.is_empty()).then_some(WARNING);
    let kept = match pg_wal.kept_segments {
        0 => String::new(),
        count => format!(", {count} kept longer than recovery needs them"),
    };
    let (size, width) = (human_bytes(pg_wal.bytes), lines.width);
    lines.add(style, &format!("pg_wal      {size} in {} segments{kept}", pg_wal.segments));
    let limit =
        pg_wal.max_wal_size_bytes.map(|limit| format!(", max_wal_size {}", human_bytes(limit)));
    let split = format!(
        "  {} since the last redo point, {} ahead for reuse{}",
        pg_wal.since_redo_segments,
        pg_wal.ahead_segments,
        limit.unwrap_or_default()
    );
    lines.add(None, &room::clauses(&split, width));
    if let Some(count) = removable(pg_wal) {
        lines.add(None, &format!("  {count} before it that the next checkpoint removes or reuses"));
    }
    // One of each sort comes first: many slots do not hide that archiving fails.
    let is_first = |at: usize, keeper: &Keeper| {
        pg_wal.keepers.iter().take(at).all(|before| before.keeper != keeper.keeper)
    };
    let (first, more): (Vec<_>, Vec<_>) =
        pg_wal.keepers.iter().enumerate().partition(|(at, keeper)| is_first(*at, keeper));
    let all = first.into_iter().chain(more);
    let texts: Vec<String> = all.map(|(_, keeper)| visible(&keeper.text).into_owned()).collect();
    room::texts(&texts, rows, width).iter().for_each(|text| lines.add(style, text));
}

/// Segments that the next checkpoint removes, if there are any.
fn removable(pg_wal: &PgWal) -> Option<u64> {
    pg_wal.removable_segments.filter(|count| *count > 0)
}

fn tables(page: &Page<'_>, rows: usize, lines: &mut Lines) {
    let chosen = page.chosen.min(page.tables.len().saturating_sub(1));
    let open = page.tables.get(chosen).filter(|_| page.is_open);
    let first = chosen.saturating_sub(rows.saturating_sub(1));
    let name = {
        let parts = open.iter().flat_map(|table| &table.parts);
        let parts = parts.map(|(name, _)| display_width(&visible(name)) + 2);
        let names = page.tables.iter().skip(first).take(rows);
        let names = names.map(|table| table_name(table, page.tables));
        let longest = names.map(|name| display_width(&name)).chain(parts).max().unwrap_or_default();
        let most = lines.width.saturating_sub(NUMBERS + 2).max(12);
        longest.max(NAME_USUAL).min(most)
    };
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
            times(count as f64 / seconds)
        )
    };
    if let Some(table) = open {
        lines.add(None, &row('>', &table_name(table, page.tables), &table.numbers));
        let mut parts: Vec<&(String, Numbers)> = table.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.1.total_bytes));
        for (name, numbers) in parts.into_iter().take(rows.saturating_sub(1)) {
            let name = if name.is_empty() { "the table itself, with TOAST" } else { name };
            lines.add(None, &row(' ', &format!("  {}", visible(name)), numbers));
        }
        return;
    }
    for (place, table) in page.tables.iter().enumerate().skip(first).take(rows) {
        let mark = if place == chosen { '>' } else { ' ' };
        lines.add(None, &row(mark, &table_name(table, page.tables), &table.numbers));
    }
    if page.tables.is_empty() {
        lines.add(Some(DIM), "  nothing is written");
    }
}

fn kinds_of(page: &Page<'_>, kinds: &[&KindSums], rows: usize, lines: &mut Lines) {
    let name = lines.width.saturating_sub(3 * 11 + 2).max(12);
    lines.add(None, "");
    let heading =
        format!("  {:name$}{:>11}{:>11}{:>11}", "TRANSACTIONS NOW", "WAL/s", "each", "ended/s");
    lines.add(Some(BOLD), &heading);
    let seconds = page.now.seconds.max(0.001);
    for kind in kinds.iter().take(rows) {
        let bytes = kind.numbers.total_bytes;
        let [each, ended] = match kind.transactions {
            // Pruned pages and hint bits can be much of it.
            0 => [UNKNOWN.to_owned(), UNKNOWN.to_owned()],
            some => [human_bytes(bytes / some), times(some as f64 / seconds)],
        };
        let text = format!(
            "  {}{:>11}{each:>11}{ended:>11}",
            padded(&visible(&kind_name(kind, kinds)), name),
            human_bytes((bytes as f64 / seconds) as u64),
        );
        lines.add(None, &text);
    }
}

fn events_of(page: &Page<'_>, rows: usize, lines: &mut Lines) {
    let Some(happenings) = page.happenings.filter(|of| !of.is_empty()) else { return };
    lines.add(None, "");
    lines.add(Some(BOLD), "  EVENTS");
    for happening in most_telling(happenings, rows) {
        let time = happening.time.as_deref().map(clock).unwrap_or("        ");
        let style = ALARMING.contains(&happening.event.as_str()).then_some(WARNING);
        lines.add(style, &format!("  {time} {}", happening_line(happening)));
    }
}

/// So many of what happened, the latest: of checkpoints one, unless there is room for more.
fn most_telling(happenings: &VecDeque<HappeningRow>, rows: usize) -> Vec<&HappeningRow> {
    let is_checkpoint = |row: &HappeningRow| row.event == "checkpoint";
    let others = happenings.iter().filter(|row| !is_checkpoint(row)).count();
    let mut checkpoints = rows.saturating_sub(others).max(1);
    let shown = happenings.iter().filter(|row| {
        let has_room = !is_checkpoint(row) || checkpoints > 0;
        checkpoints -= usize::from(is_checkpoint(row) && has_room);
        has_room
    });
    shown.take(rows).collect()
}

fn padded(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let left = width.saturating_sub(display_width(&text));
    format!("{text}{}", " ".repeat(left))
}

/// How often something is, in a second; few times with a decimal.
fn times(rate: f64) -> String {
    match rate {
        0.05..10.0 => format!("{rate:.1}"),
        0.0..0.05 if rate > 0.0 => "<0.1".to_owned(),
        _ => grouped(rate as u64),
    }
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

    /// A page of a folder in which nothing was written yet.
    fn page<'m>(moment: &'m Moment, now: &'m Now) -> Page<'m> {
        Page {
            moment: Some(moment),
            tables: &[],
            happenings: None,
            troubles: &[],
            rates: None,
            chosen: 0,
            is_open: false,
            path: "/x".into(),
            reading: "",
            now,
            sort: "bytes",
            is_paused: false,
            has_styles: false,
        }
    }

    #[test]
    fn checkpoints_push_nothing_else_out_of_the_events() {
        let row = |event: &str| HappeningRow {
            time: None,
            event: event.to_owned(),
            lsn: String::new(),
            text: String::new(),
        };
        let events = ["checkpoint", "checkpoint", "dropped", "checkpoint", "lost"].map(row);
        let shown = |rows: usize| {
            let events = VecDeque::from(events.clone());
            let shown = most_telling(&events, rows).into_iter();
            shown.map(|row| row.event.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(3), "checkpoint dropped lost");
        assert_eq!(shown(4), "checkpoint checkpoint dropped lost");
        assert_eq!(shown(9).split(' ').count(), 5);
    }

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
        let moment = Moment::default();
        let page = page(&moment, &now);
        let lines = lines(&page, (80, 24));
        let words = |begins: &str| -> Vec<&str> {
            let line = lines.iter().find(|line| line.trim_start().starts_with(begins));
            line.unwrap_or_else(|| panic!("no {begins}: {lines:?}")).split_whitespace().collect()
        };
        let of_none = words("no transaction: pruning, hint bits");
        assert_eq!(of_none[of_none.len() - 4..], ["4.39", "kB", UNKNOWN, UNKNOWN]);
        assert_eq!(words("INSERT"), ["INSERT", "t", "1.95", "kB", "200", "B", "10"]);
    }

    #[test]
    fn what_cannot_be_written_stands_below_the_title() {
        let troubles =
            ["/x/state: No space left on device; it is tried again each time".to_owned()];
        let (moment, now) = (Moment::default(), Now::default());
        let page = Page { troubles: &troubles, ..page(&moment, &now) };
        assert_eq!(lines(&page, (80, 24))[1].trim_start(), troubles[0]);
    }

    #[test]
    fn what_is_seldom_is_not_zero() {
        let told = [0.0, 0.01, 0.2, 9.94, 10.0, 1234.5].map(times);
        assert_eq!(told, ["0", "<0.1", "0.2", "9.9", "10", "1,234"]);
    }

    /// A page of a server of which much is to be told.
    fn full(size: (usize, usize)) -> Vec<String> {
        let keeper = |number: u32| Keeper {
            text: format!(
                "replication slot s{number} (physical) keeps 8 segments: it needs WAL since 0/00300000, 8 MB \
                 ago; drop it if nobody uses it, or set max_slot_wal_keep_size"
            ),
            ..Keeper::default()
        };
        let pg_wal = PgWal {
            since_redo_segments: 3,
            removable_segments: Some(130),
            ahead_segments: 7,
            max_wal_size_bytes: Some(1 << 30),
            keepers: (0..5).map(keeper).collect(),
            ..PgWal::default()
        };
        let oldest = OpenTransaction { xid: "4294967295".into(), start_lsn: None, bytes: 12345678 };
        let moment = Moment {
            pg_wal: Some(pg_wal),
            oldest_transaction: Some(oldest),
            checkpoint_distance_bytes: Some(123_456_789_012),
            redo_lsn: Some("1A2B/3C4D5E6F".into()),
            ..Moment::default()
        };
        let kind = |number: u32| KindSums {
            database: String::new(),
            kind: format!("INSERT t{number}"),
            transactions: 1,
            aborted: 0,
            numbers: Numbers { total_bytes: 99, ..Numbers::default() },
        };
        let index = "i".repeat(60);
        let table = |number: u32| TableNow {
            labels: ["db".into(), "public".into(), format!("table_{number}")],
            numbers: Numbers::default(),
            parts: vec![(index.clone(), Numbers::default())],
        };
        let happening = |number: u32| HappeningRow {
            time: None,
            event: "checkpoint".into(),
            lsn: String::new(),
            text: format!("checkpoint {number}"),
        };
        let tables: Vec<TableNow> = (0..40).map(table).collect();
        let happenings = (0..20).map(happening).collect();
        let now = Now { kinds: (0..9).map(kind).collect(), seconds: 1.0, ..Now::default() };
        let page = Page {
            tables: &tables,
            happenings: Some(&happenings),
            is_open: size.0 > 130,
            ..page(&moment, &now)
        };
        lines(&page, size)
    }

    #[test]
    fn room_is_used_and_nothing_is_cut_that_matters() {
        let has = |size: (usize, usize), part: &str| {
            let lines = full(size);
            assert_eq!(lines.len(), size.1, "{lines:#?}");
            assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:#?}");
            let empty = |pair: &[String]| pair.iter().all(String::is_empty);
            assert!(!lines.windows(2).any(empty), "{lines:#?}");
        };
        for size in [(60, 16), (80, 18), (80, 24), (132, 43)] {
            has(size, "Oldest xact 4294967295 began at least 11.8 MB ago");
            has(size, "TABLES NOW");
            has(size, "3 since the last redo point, 7 ahead for reuse");
            has(size, "130 before it that the next checkpoint removes or reuses");
        }
        has((60, 16), "and 4 more");
        has((80, 24), "and 3 more");
        has((80, 24), "max_wal_size 1.00 GB");
        has((80, 24), "TRANSACTIONS NOW");
        has((132, 43), "replication slot s4");
        has((132, 43), "max_slot_wal_keep_size");
        has((132, 43), &"i".repeat(60));
        has((132, 43), "EVENTS");
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
        let now = Now::default();
        for (size, is_open) in
            [((80, 24), false), ((40, 10), true), ((200, 60), true), ((10, 3), false)]
        {
            let page = Page {
                tables: &tables,
                happenings: Some(&happenings),
                rates: Some(&rates),
                chosen: 30,
                is_open,
                ..page(&moment, &now)
            };
            let lines = lines(&page, size);
            assert!(lines.len() <= size.1, "{size:?}: {}", lines.len());
            for line in &lines {
                assert!(display_width(line) <= size.0, "{size:?}: {line}");
            }
        }
    }
}
