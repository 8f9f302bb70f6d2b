//! The promise: the tables of the article from which the 70 % rules come, fed through the
//! statistics, the ratios, the rules and the rendering, give the article's own figures and its
//! text, line for line.
//!
//! The servers wrote 9.6's WAL; their tool kept commits with and without extra information apart,
//! so the counts go into two slots of the same name. No WAL of theirs exists, so nothing is parsed
//! here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use walstat::render::pg_waldump;
use walstat_analyse::clock::Clock;
use walstat_analyse::dimension::Dimension;
use walstat_analyse::select::Filters;
use walstat_analyse::totals::{RecordTable, Totals};
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::rmgr;
use walstat_format::rmgr::RecordType;
use walstat_format::version::{VERSIONS, Version};
use walstat_read::input::plan::Plan;
use walstat_read::scan::ending::{Ending, EndingKind};
use walstat_read::scan::outcome::Outcome;
use walstat_report::build::{Counted, Request, build};
use walstat_report::model::finding::Severity;
use walstat_report::model::table::{Shares, percent};
use walstat_report::model::view::View;
use walstat_report::model::{CommandName, Numbers, Report};

const RIGHT: &str = "pgbench-10s-untuned";
const MAIN_DATA_ONLY: &str = "pgbench-10s-untuned-main-data-only";

/// A row of `tables.tsv`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    label: String,
    count: u64,
    record_bytes: u64,
    fpi_bytes: u64,
    combined_bytes: u64,
    /// The four percentages as printed.
    printed: Vec<String>,
}

fn fixture(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chen-2017").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The article's tables by name, each with its `Total` line last.
fn tables() -> BTreeMap<String, Vec<Line>> {
    let mut tables: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for text in fixture("tables.tsv").lines().skip(1) {
        let fields: Vec<&str> = text.split('\t').collect();
        let number = |index: usize| {
            fields[index].parse().unwrap_or_else(|_| panic!("field {index} of {text}"))
        };
        let line = Line {
            label: fields[1].to_owned(),
            count: number(2),
            record_bytes: number(3),
            fpi_bytes: number(4),
            combined_bytes: number(5),
            printed: fields[6..].iter().map(|&field| field.to_owned()).collect(),
        };
        tables.entry(fields[0].to_owned()).or_default().push(line);
    }
    assert_eq!(tables.len(), 8, "eight tables");
    tables
}

fn version() -> &'static Version {
    VERSIONS.iter().find(|version| version.name == "9.6").expect("9.6 is read")
}

/// The types that are printed under a label, by slot.
fn types_called(label: &str) -> impl Iterator<Item = RecordType> {
    let (manager, record) = label.split_once('/').expect("a manager and a record");
    let rmgr = rmgr::by_name(manager).unwrap_or_else(|| panic!("no resource manager {manager}"));
    let slots = (0..16).map(move |slot| RecordType { rmgr, slot });
    slots.filter(move |slot| slot.name(version()) == record)
}

/// The counts of a table in the form in which a scan leaves them. `main_data`: of each label, where
/// it is known.
fn counted(lines: &[Line], main_data: impl Fn(&Line) -> u64) -> RecordTable {
    let mut table = RecordTable::default();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.label != "Total") {
        let nth = seen.entry(&line.label).or_default();
        let slot =
            types_called(&line.label).nth(*nth).unwrap_or_else(|| panic!("no slot for {line:?}"));
        *nth += 1;
        let totals = Totals {
            count: line.count,
            total_bytes: line.combined_bytes,
            fpi_bytes: line.fpi_bytes,
            main_data_bytes: main_data(line),
            ..Totals::default()
        };
        table.add(slot, &totals);
    }
    table
}

/// The report over `table`, as if a range of just its bytes had been read.
fn view(table: RecordTable) -> View {
    let version = version();
    let bytes = table.sum(|_| true).total_bytes;
    let geometry =
        Geometry { version, system_identifier: 1, segment_bytes: 16 << 20, page_bytes: 8192 };
    let mut plan = Plan::new(geometry);
    (plan.timeline, plan.timelines) = (1, vec![1]);
    let start = Lsn(16 << 20);
    let outcome = Outcome {
        input_bytes: bytes,
        ending: Ending::at(EndingKind::Complete, Lsn(start.0 + bytes)),
        first: Some(start),
        ..Outcome::new(start, (table, Clock::default()))
    };
    let request = Request {
        command: CommandName::Report,
        dimensions: Dimension::ALL.iter().copied().collect(),
        checksums_verified: true,
        start: Some(start),
        filters: Filters::default(),
    };
    build(Vec::new(), &plan, &outcome, Counted::from(&outcome.observer), &request).conclude()
}

/// All eight tables as reports.
fn reports() -> BTreeMap<String, Report> {
    let report = |lines: &[Line]| view(counted(lines, |_| 0)).report;
    tables().into_iter().map(|(name, lines)| (name, report(&lines))).collect()
}

#[test]
fn the_tables_come_out_line_for_line() {
    for (name, lines) in tables() {
        let mut text = Vec::new();
        pg_waldump::render(&view(counted(&lines, |_| 0)), &mut text)
            .expect("a vector takes everything");
        let text = String::from_utf8(text).expect("UTF-8");
        let want = fixture(&format!("{name}.txt"));
        for (number, (got, want)) in text.lines().zip(want.lines()).enumerate() {
            assert_eq!(got.trim_end(), want.trim_end(), "{name}.txt, line {}", number + 1);
        }
        assert_eq!(text.lines().count(), want.lines().count(), "{name}.txt");
    }
}

#[test]
fn rows_totals_and_percentages_are_the_articles() {
    for (name, lines) in tables() {
        let report = view(counted(&lines, |_| 0)).report;
        let records = report.records.as_ref().expect("records were asked for");
        let (total, lines) = lines.split_last().expect("a Total line");
        assert_eq!(total.label, "Total");
        assert_eq!(records.rows.len(), lines.len(), "{name}");
        for (row, line) in records.lines(&report.totals).zip(lines) {
            assert_eq!(row.label, line.label, "{name}");
            same_sums(&row.numbers, line, &name);
            let Shares { count, record, fpi, total } = row.shares;
            let shares = [count, record, fpi, total].map(|share| format!("{share:.2}"));
            assert_eq!(shares.as_slice(), line.printed, "{name} {}", line.label);
        }
        same_sums(&report.totals.numbers(), total, &name);
        assert_eq!(report.books.unaccounted_bytes, 0, "{name}");
        assert_eq!(report.books.input_bytes, total.combined_bytes, "{name}");
    }
}

fn same_sums(row: &Numbers, line: &Line, name: &str) {
    let got = [row.count, row.record_bytes, row.fpi_bytes, row.total_bytes];
    let want = [line.count, line.record_bytes, line.fpi_bytes, line.combined_bytes];
    assert_eq!(got, want, "{name} {}", line.label);
}

/// A fraction as the article prints it.
fn printed(ratio: Option<f64>, decimals: usize) -> String {
    let ratio = ratio.expect("there is something to divide by");
    format!("{:.decimals$}", ratio * 100.0)
}

#[test]
fn the_shares_of_images_are_95_62_and_92_60_and_93_43_and_59_88() {
    let reports = reports();
    for (name, share) in [
        (RIGHT, "95.62"),
        ("fillfactor-100", "92.60"),
        ("fillfactor-90", "93.43"),
        ("fillfactor-90-wal-compression", "59.88"),
    ] {
        assert_eq!(printed(reports[name].ratios.fpi_ratio, 2), share, "{name}");
    }
}

#[test]
fn the_articles_comparison_of_its_runs_comes_out() {
    let reports = reports();
    let text = fixture("summary.tsv");
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let headings = lines.next().expect("headings");
    let column =
        |name: &str| headings.iter().position(|heading| *heading == name).expect("a column");
    let mut compared = 0;
    for line in lines {
        let field = |name: &str| line[column(name)];
        let report = &reports[field("table")];
        assert_eq!(report.totals.record_bytes.to_string(), field("record_bytes"), "{line:?}");
        assert_eq!(report.totals.total_bytes.to_string(), field("total_bytes"), "{line:?}");
        assert_eq!(printed(report.ratios.fpi_ratio, 2), field("fpi_pct"), "{line:?}");
        if !field("hot_pct").is_empty() {
            assert_eq!(printed(report.ratios.hot_ratio, 0), field("hot_pct"), "{line:?}");
            compared += 1;
        }
        let each = report.ratios.bytes_per_commit.expect("there are commits");
        assert_eq!(each.floor().to_string(), field("bytes_per_transaction"), "{line:?}");
    }
    assert_eq!(compared, 3, "44, 81 and 78 % of the updates were HOT");
}

/// Untuned, 20 bytes and more are written for each byte of change; with all measures together,
/// fewer than 3.
#[test]
fn write_amplification_goes_from_above_20_to_below_3() {
    let reports = reports();
    let times = |name: &str| reports[name].ratios.write_amplification.expect("there are records");
    assert!(times(RIGHT) > 20.0, "{}", times(RIGHT));
    assert!(times("fillfactor-90-wal-compression") < 3.0);
}

#[test]
fn the_rules_say_of_the_articles_runs_what_the_article_says() {
    let reports = reports();
    let found = |name: &str| -> Vec<&str> {
        let findings = reports[name].findings.iter().flatten();
        let mut rules: Vec<&str> = findings.map(|finding| finding.rule.as_str()).collect();
        rules.sort_unstable();
        rules
    };
    assert_eq!(found("fillfactor-100"), ["fpi-ratio", "hot-ratio", "write-amplification"]);
    assert_eq!(found("fillfactor-90"), ["fpi-ratio", "write-amplification"]);
    assert_eq!(found("fillfactor-90-wal-compression"), Vec::<&str>::new());
    // The server that was never tuned is critical, the others are not.
    let worst = |name: &str| reports[name].findings.iter().flatten().map(|f| f.severity).max();
    assert_eq!(worst(RIGHT), Some(Severity::Critical));
    assert_eq!(worst("fillfactor-100"), Some(Severity::Warning));
}

/// BUG #14687: up to 9.5.7 and 9.6.3 the tool counted main data and the record header alone. The
/// two tables are of the same WAL, so one record table has to give both.
#[test]
fn the_table_of_bug_14687_differs_in_the_record_size_alone() {
    let tables = tables();
    let (right, old) = (&tables[RIGHT], &tables[MAIN_DATA_ONLY]);
    let old_size = |label: &str| {
        old.iter().find(|line| line.label == label).expect("the same types").record_bytes
    };
    let report = view(counted(right, |line| old_size(&line.label) - 24 * line.count)).report;
    let records = &report.records.as_ref().expect("records were asked for").rows;
    assert_eq!(records.len() + 1, old.len());
    for (row, line) in records.iter().zip(old) {
        let row = &row.sums;
        let sizes = [row.count, row.main_data_only_bytes(), row.fpi_bytes];
        assert_eq!(sizes, [line.count, line.record_bytes, line.fpi_bytes], "{}", line.label);
        assert!(
            row.record_bytes > line.record_bytes,
            "{}: block headers were left out",
            line.label
        );
    }
    let all = &report.totals;
    let share =
        |record_bytes: u64| format!("{:.2}", percent(all.fpi_bytes, record_bytes + all.fpi_bytes));
    assert_eq!(share(all.main_data_only_bytes()), "98.10", "as the tool said then");
    assert_eq!(share(all.record_bytes), "95.62", "as it is");
    assert_eq!(printed(report.ratios.fpi_ratio, 2), "95.62", "what walstat says");
}
