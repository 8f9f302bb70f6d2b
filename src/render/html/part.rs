//! The parts of the page, one function each: HTML, or nothing where there is nothing to say.

use super::super::closing;
use super::super::number::{UNKNOWN, counted, fraction, grouped, human_bytes};
use super::super::screen;
use super::super::time::{duration, moment, seconds_between};
use super::super::when;
use super::axis;
use super::chart::{self, Row, Stacked};
use super::text::{details, escaped, exact, share, size, table};
use std::fmt::Write as _;
use walstat_report::model::percent::percent;
use walstat_report::model::table::{Table, TableRow};
use walstat_report::model::when::{BucketRow, CheckpointRow};
use walstat_report::model::who::WholeTableRow;
use walstat_report::model::{Numbers, Report};

/// Rows of tables that may be very long.
const ROWS_MAX: usize = 500;
/// Marks across a chart.
const MARKS_MAX: usize = 300;
/// Bars of a chart: the table below has all.
const BARS_MAX: usize = 20;

/// What is this, in a few numbers.
pub fn header(report: &Report) -> String {
    let (range, totals, ratios) = (&report.range, &report.totals, &report.ratios);
    let mut html = format!(
        "<p>{}, {}</p>\n<p class=\"soft\">{} to {}",
        escaped(&closing::origin(&report.input)),
        counted(report.input.segments as u64, "segment"),
        range.start,
        range.end
    );
    if let (Some(first), Some(last)) = (&range.first_time, &range.last_time) {
        let _ = write!(html, ", {} to {} UTC", moment(Some(first)), moment(Some(last)));
    }
    let _ = writeln!(html, ". {}</p>", escaped(&report.ending.text));
    if let Some(filters) = closing::filters(report) {
        let _ = writeln!(html, "<p>{}</p>", escaped(&filters));
    }
    let per_commit = ratios.bytes_per_commit.map(|bytes| human_bytes(bytes.round() as u64));
    let amplification = ratios.write_amplification.map(|times| format!("{times:.2}"));
    let problems = report.problems.len();
    let class = if problems > 0 { " bad" } else { "" };
    let cards = [
        (
            human_bytes(totals.total_bytes),
            format!("of WAL records: {} bytes", exact(totals.total_bytes)),
        ),
        (fraction(ratios.fpi_ratio), "of that is full page images".to_owned()),
        (grouped(ratios.commits), "commits".to_owned()),
        (per_commit.unwrap_or_else(|| UNKNOWN.to_owned()), "a commit".to_owned()),
        (amplification.unwrap_or_else(|| UNKNOWN.to_owned()), "write amplification".to_owned()),
        (fraction(ratios.hot_ratio), "of the updates are HOT".to_owned()),
    ];
    html.push_str("<div class=\"cards\">\n");
    for (number, about) in cards.into_iter().chain(over_time(report)) {
        let _ = writeln!(html, "<div class=\"card\"><b>{number}</b>{about}</div>");
    }
    let _ = writeln!(
        html,
        "<div class=\"card{class}\"><b>{}</b>{}</div>\n</div>",
        counted(problems as u64, "problem"),
        closing::checksums(report),
    );
    html
}

/// Numbers of WHEN, each with its range.
fn over_time(report: &Report) -> Vec<(String, String)> {
    let Some(when) = &report.when else { return Vec::new() };
    let mut cards = Vec::new();
    // While it ran: a server that was down wrote nothing.
    if let (Some(mean), Some(peak)) = (when.running_rate.or(when.mean_rate), when.peak_rate) {
        let about = format!("on average, about {}/s at most", human_bytes(peak));
        cards.push((format!("{}/s", human_bytes(mean as u64)), about));
    }
    if let Some(spacing) = &when.spacing_seconds {
        let (min, max) = (duration(spacing.min), duration(spacing.max));
        let about = format!("from checkpoint to checkpoint; {min} to {max}");
        cards.push((duration(spacing.median), about));
    }
    if let (Some(bytes), Some(seconds)) = (when.worst_recovery_bytes, &when.worst_recovery_seconds)
    {
        let seconds = seconds_between(seconds.low, seconds.high);
        cards.push((human_bytes(bytes), format!("to replay after a crash at most: {seconds}")));
    }
    cards
}

/// Problems, each with its segment and place.
pub fn problems(report: &Report) -> String {
    if report.problems.is_empty() {
        return String::new();
    }
    let row = |problem: &walstat_report::model::Problem| {
        vec![
            escaped(&problem.segment),
            escaped(problem.lsn.as_deref().unwrap_or(UNKNOWN)),
            escaped(&problem.kind.to_string()),
            escaped(&problem.found),
            escaped(&problem.expected),
            exact(problem.skipped_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = report.problems.iter().map(row).collect();
    table(&["Segment", "LSN", "Kind", "Found", "Expected", "Bytes skipped"], &rows)
}

/// Causes: all of the bytes.
pub fn why(report: &Report) -> String {
    let Some(causes) = &report.why else { return String::new() };
    let total = report.totals.total_bytes;
    let rows: Vec<Row> = causes
        .iter()
        .filter(|cause| cause.bytes > 0)
        .map(|cause| {
            let images = cause.fpi_bytes;
            let records = cause.bytes.saturating_sub(images);
            let value = format!("{} {}", size(cause.bytes), share(cause.bytes, total));
            Row { label: cause.label.clone(), images, records, value }
        })
        .collect();
    let cells: Vec<Vec<String>> = causes
        .iter()
        .map(|cause| vec![escaped(&cause.label), exact(cause.bytes), fraction(cause.share)])
        .collect();
    let numbers = details("Numbers", &["Cause", "Bytes", "Share"], &cells);
    let maintenance = screen::maintenance(report, human_bytes)
        .map(|told| format!("<p>{}</p>\n", escaped(&told)))
        .unwrap_or_default();
    let besides = closing::closed_early(report, human_bytes)
        .map(|told| format!("<p>{}</p>\n", escaped(&closing::sentence(&told))))
        .unwrap_or_default();
    format!(
        "{}<figure>{}</figure>\n{maintenance}{besides}{numbers}",
        chart::key(false),
        chart::bars("Bytes by cause", &rows)
    )
}

/// Seconds since 1970 of a time of the report.
fn seconds(time: &str) -> Option<f64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.as_microsecond() as f64 / 1e6)
}

/// Where checkpoints began, as shares of `span` seconds from `first` on.
fn marks(report: &Report, first: f64, span: f64) -> Vec<f64> {
    let checkpoints = report.checkpoints.as_ref().map_or(&[][..], |table| &table.rows);
    let begun = checkpoints.iter().filter(|row| row.redo_lsn.is_some());
    let places = begun.filter_map(|row| Some((seconds(row.time.as_deref()?)? - first) / span));
    places.filter(|place| (0.0..=1.0).contains(place)).take(MARKS_MAX).collect()
}

/// WAL over time, with checkpoints marked.
pub fn timeline(report: &Report) -> String {
    let Some(timeline) = &report.timeline else { return String::new() };
    let buckets = &timeline.buckets.rows;
    let times: Vec<(f64, &BucketRow)> =
        buckets.iter().filter_map(|row| Some((seconds(row.time.as_deref()?)?, row))).collect();
    let (Some((first, first_row)), Some((last, _))) = (times.first(), times.last()) else {
        return String::new();
    };
    let width = timeline.bucket_seconds.max(1) as f64;
    let span = last - first + width;
    let columns: Vec<Stacked> = times
        .iter()
        .map(|(time, row)| Stacked {
            label: format!(
                "{}: {}, {} of images",
                moment(row.time.as_deref()),
                human_bytes(row.numbers.total_bytes),
                human_bytes(row.numbers.fpi_bytes)
            ),
            at: (time - first) / span,
            width: width / span,
            images: row.numbers.fpi_bytes,
            records: row.numbers.record_bytes,
        })
        .collect();
    let marks = marks(report, *first, span);
    let ends = (moment(first_row.time.as_deref()), moment(axis::time_of(first + span).as_deref()));
    let label = match timeline.bucket_seconds {
        1 => "WAL in each second".to_owned(),
        seconds => format!("WAL in each {}", duration(seconds)),
    };
    let labels = axis::of_times(*first, span);
    let plot = chart::columns(&label, &columns, &marks, &labels, (&ends.0, &ends.1));
    let rows: Vec<Vec<String>> = buckets
        .iter()
        .take(ROWS_MAX)
        .map(|row| {
            let mut cells = vec![moment(row.time.as_deref()), grouped(row.commits)];
            cells.extend(numbers(&row.numbers));
            cells
        })
        .collect();
    let lines: String =
        when::lines(report).iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    format!(
        "<ul>\n{lines}</ul>\n{}<figure><figcaption>{label}, by time in UTC</figcaption>{plot}</figure>\n{}",
        chart::key(!marks.is_empty()),
        details(
            &format!(
                "Numbers of each {} s, {} of {} rows",
                timeline.bucket_seconds,
                rows.len(),
                buckets.len()
            ),
            &["Time", "Commits", "N", "Record size", "FPI size", "Combined size"],
            &rows,
        )
    )
}

/// Cycles, and how images decay in them.
pub fn checkpoints(report: &Report) -> String {
    let Some(rows) = report.checkpoints.as_ref().map(|table| &table.rows) else {
        return String::new();
    };
    let mut html = decay(rows);
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(ROWS_MAX)
        .map(|row| {
            let mut cells = vec![
                escaped(row.redo_lsn.as_deref().unwrap_or("in mid-cycle")),
                moment(row.time.as_deref()),
                row.cause.map_or_else(|| UNKNOWN.to_owned(), |cause| cause.to_string()),
                grouped(row.distinct_blocks),
            ];
            cells.extend(numbers(&row.numbers));
            cells.push(fraction(row.fpi_first_quarter_ratio));
            cells
        })
        .collect();
    let headings = [
        "Redo point",
        "Time",
        "Cause",
        "Blocks",
        "N",
        "Record size",
        "FPI size",
        "Combined size",
        "Images in the first quarter",
    ];
    let summary = format!("{} of {}", cells.len(), counted(rows.len() as u64, "cycle"));
    html.push_str(&details(&summary, &headings, &cells));
    html
}

/// How the images of all cycles are spread over the tenths of their WAL.
fn decay(rows: &[CheckpointRow]) -> String {
    let mut tenths = [0.0; 10];
    for row in rows {
        for (tenth, share) in tenths.iter_mut().zip(row.fpi_decay.unwrap_or_default()) {
            *tenth += share * row.numbers.fpi_bytes as f64;
        }
    }
    let all: f64 = tenths.iter().sum();
    if all <= 0.0 {
        return String::new();
    }
    let columns: Vec<Stacked> = (0u8..)
        .zip(tenths)
        .map(|(index, bytes)| Stacked {
            label: format!("tenth {}: {} of the images", index + 1, percent(bytes / all, 1)),
            at: f64::from(index) / 10.0,
            width: 0.098,
            images: bytes as u64,
            records: 0,
        })
        .collect();
    let row = |(index, bytes): (usize, &f64)| {
        vec![format!("{} %", (index + 1) * 10), percent(bytes / all, 2)]
    };
    let cells: Vec<Vec<String>> = tenths.iter().enumerate().map(row).collect();
    format!(
        "<figure><figcaption>Images in each tenth of their cycle's WAL, in bytes, all cycles \
         together</figcaption>{}</figure>\n{}",
        chart::columns(
            "Images by tenth of a cycle",
            &columns,
            &[],
            &[0.25, 0.5, 0.75].map(|at| axis::Label { at, text: percent(at, 0) }),
            ("redo point", "next redo point")
        ),
        details("Numbers", &["Up to", "Share of the images"], &cells)
    )
}

fn numbers(numbers: &Numbers) -> Vec<String> {
    vec![
        grouped(numbers.count),
        exact(numbers.record_bytes),
        exact(numbers.fpi_bytes),
        exact(numbers.total_bytes),
    ]
}

/// Tables, each with its parts.
pub fn tables(report: &Report) -> String {
    let Some(tables) = &report.tables else { return String::new() };
    let mut cells = Vec::new();
    for (label, row) in tables.labels().iter().zip(&tables.rows) {
        let mut line = vec![escaped(label)];
        line.extend(numbers(&row.numbers));
        line.extend([grouped(row.updates), share(row.hot_updates, row.updates)]);
        cells.push(line);
        cells.extend(parts(row));
    }
    let headings = ["Table", "N", "Record size", "FPI size", "Combined size", "Updates", "HOT"];
    let names = report.names.as_ref().map_or_else(String::new, |names| {
        let sources: Vec<&str> = names.sources.iter().map(|source| source.text()).collect();
        if sources.is_empty() {
            "<p class=\"soft\">No names are known: files as tablespace/database/file.</p>\n".into()
        } else {
            format!("<p class=\"soft\">Names from {}.</p>\n", escaped(&sources.join(", ")))
        }
    });
    format!("{names}{}", ranked("Tables", tables, report, &headings, cells))
}

/// A table's parts, if it has more than one.
fn parts(row: &WholeTableRow) -> Vec<Vec<String>> {
    let part = |name: &str, numbers_of: &Numbers| {
        let mut cells = vec![format!("<span class=\"soft\">&emsp;{}</span>", escaped(name))];
        cells.extend(numbers(numbers_of));
        cells.extend([String::new(), String::new()]);
        cells
    };
    let heap = row.heap.iter().map(|heap| part("heap", &heap.numbers));
    let toast = row.toast.iter().map(|toast| part("TOAST", &toast.numbers));
    let indexes = row.indexes.iter().map(|index| part(&index.name, &index.part.numbers));
    let parts: Vec<Vec<String>> = heap.chain(toast).chain(indexes).collect();
    if parts.len() > 1 { parts } else { Vec::new() }
}

/// Bars for the first rows, and a table of all.
fn ranked<R: TableRow>(
    name: &str,
    rows: &Table<R>,
    report: &Report,
    headings: &[&str],
    mut cells: Vec<Vec<String>>,
) -> String {
    let total = report.totals.total_bytes;
    let bars: Vec<Row> = rows
        .labels()
        .into_iter()
        .zip(&rows.rows)
        .filter(|(_, row)| row.numbers().total_bytes > 0)
        .take(BARS_MAX)
        .map(|(label, row)| {
            let numbers = row.numbers();
            let value =
                format!("{} {}", size(numbers.total_bytes), share(numbers.total_bytes, total));
            Row { label, images: numbers.fpi_bytes, records: numbers.record_bytes, value }
        })
        .collect();
    if let Some(rest) = &rows.left_out {
        let mut line = vec![format!("{} more (--top 0 has all)", grouped(rest.rows as u64))];
        line.extend(numbers(&rest.numbers));
        cells.push(line);
    }
    let mut line = vec!["Total".to_owned()];
    line.extend(numbers(&report.totals.numbers()));
    cells.push(line);
    cells.iter_mut().for_each(|line| line.resize(headings.len(), String::new()));
    format!(
        "{}<figure>{}</figure>\n{}",
        chart::key(false),
        chart::bars(name, &bars),
        details("Numbers", headings, &cells)
    )
}

/// A table without columns of its own.
fn statistics<R: TableRow>(name: &str, rows: &Option<Table<R>>, report: &Report) -> String {
    let Some(rows) = rows else { return String::new() };
    let rows_with_records =
        rows.labels().into_iter().zip(&rows.rows).filter(|(_, row)| row.numbers().count > 0);
    let cells = rows_with_records.map(|(label, row)| {
        let mut line = vec![escaped(&label)];
        line.extend(numbers(&row.numbers()));
        line
    });
    let headings = [name, "N", "Record size", "FPI size", "Combined size"];
    let html = ranked(name, rows, report, &headings, cells.collect());
    format!("<h3>{name}</h3>\n{html}")
}

/// Kinds of transactions, and records without one.
pub fn kinds(report: &Report) -> String {
    let Some(kinds) = &report.kinds else { return String::new() };
    let cells = kinds.labels().into_iter().zip(&kinds.rows).map(|(label, row)| {
        let of_transactions =
            |text: String| if row.transactions > 0 { text } else { UNKNOWN.into() };
        let bytes = |bytes: Option<u64>| bytes.map_or(UNKNOWN.to_owned(), exact);
        let mut line = vec![escaped(&label)];
        line.extend([row.transactions, row.aborted].map(|count| of_transactions(grouped(count))));
        line.extend([bytes(row.median_bytes), bytes(row.p99_bytes)]);
        line.extend(numbers(&row.numbers));
        line
    });
    let headings = [
        "Kind",
        "Transactions",
        "Aborted",
        "Median",
        "p99",
        "N",
        "Record size",
        "FPI size",
        "Combined size",
    ];
    ranked("Kinds of transactions", kinds, report, &headings, cells.collect())
}

/// What was asked for beside.
pub fn others(report: &Report) -> String {
    let blocks = report.blocks.as_ref().map(|blocks| blocks.top.clone());
    let transactions = report.transactions.as_ref().map(|found| found.top.clone());
    [
        statistics("Resource manager", &report.rmgrs, report),
        statistics("Relation", &report.relations, report),
        statistics("Database", &report.databases, report),
        statistics("Tablespace", &report.tablespaces, report),
        statistics("Fork", &report.forks, report),
        statistics("Block", &blocks, report),
        statistics("Transaction", &transactions, report),
    ]
    .concat()
}

/// Record types.
pub fn records(report: &Report) -> String {
    statistics("Record type", &report.records, report)
}

/// Every byte under one heading.
pub fn books(report: &Report) -> String {
    let books = serde_json::to_value(report.books).unwrap_or_default();
    let totals = serde_json::to_value(report.totals).unwrap_or_default();
    let keys = |value: &serde_json::Value| -> Vec<Vec<String>> {
        let keys = value.as_object().into_iter().flatten();
        keys.map(|(key, number)| vec![escaped(key), escaped(&number.to_string())]).collect()
    };
    let notes: String = closing::pg_wal(report)
        .chain(report.notes.iter().map(String::as_str))
        .map(|note| format!("<li>{}.</li>\n", escaped(note)))
        .collect();
    format!(
        "<p>{} read, {} unaccounted; {}, {}.</p>\n<ul>\n{notes}</ul>\n{}<h3>Totals</h3>\n{}",
        counted(report.books.input_bytes, "byte"),
        report.books.unaccounted_bytes,
        counted(report.totals.count, "record"),
        closing::checksums(report),
        table(&["Heading", "Bytes"], &keys(&books)),
        table(&["Sum over all records", "Number"], &keys(&totals)),
    )
}
