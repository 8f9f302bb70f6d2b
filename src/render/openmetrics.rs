//! `--format openmetrics`: gauges of one window of WAL, for the textfile collector of
//! `node_exporter` and whatever else reads the text form of Prometheus. Values have no timestamps: a
//! collector that finds some in a file refuses it.
//!
//! A family has a sample for each row that is shown, and one for all others, so that it adds up.

use std::collections::BTreeMap;
use std::io::{self, Write};
use walstat_report::model::checked::{AcceptedGap, Check, Verdict};
use walstat_report::model::finding::Finding;
use walstat_report::model::follow::OTHER;
use walstat_report::model::kind::KindRow;
use walstat_report::model::table::{Table, TableRow};
use walstat_report::model::whatif::Scenario;
use walstat_report::model::when::Causes;
use walstat_report::model::who::{DatabaseRow, RelationRow, TablespaceRow, WholeTableRow};
use walstat_report::model::{Numbers, RecordRow, Report, RmgrRow, VERSION};

/// What is told of each row: the end of the metric's name, what it is, the value.
pub(super) type Measure = (&'static str, &'static str, fn(&Numbers) -> u64);

pub(super) const MEASURES: [Measure; 5] = [
    ("records", "WAL records", |numbers| numbers.count),
    ("record_bytes", "Bytes of WAL records without full page images", |n| n.record_bytes),
    ("fpi", "Full page images", |numbers| numbers.fpi_count),
    ("fpi_bytes", "Bytes of full page images as stored", |numbers| numbers.fpi_bytes),
    ("total_bytes", "Bytes of WAL records with their full page images", |n| n.total_bytes),
];

/// The same of a prediction.
type Prediction = (&'static str, &'static str, fn(&Scenario) -> u64);

const PREDICTIONS: [Prediction; 5] = [
    ("predicted_bytes", "LSN distance under these settings", |s| s.predicted_bytes),
    ("low_bytes", "Least that it can come to", |s| s.low_bytes),
    ("high_bytes", "Most that it can come to", |s| s.high_bytes),
    ("fpi", "References to blocks with a full page image", |s| s.fpi_count),
    ("recovery_bytes", "Most that crash recovery has to replay", |s| s.recovery_bytes),
];

/// Writes the metrics of a report.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    begin(1, out)?;
    for (name, help, value) in MEASURES {
        gauge(&format!("walstat_{name}"), help, value(&report.totals.numbers()) as f64, out)?;
    }
    ratios(report, out)?;
    overview(report, out)?;
    findings(report, out)?;
    rows("rmgr", "by resource manager", &report.rmgrs, ["rmgr"], rmgr, out)?;
    rows("record_type", "by record type", &report.records, ["rmgr", "record"], record, out)?;
    let labels = ["database", "schema", "table"];
    rows("table", "by table with its indexes and TOAST", &report.tables, labels, table, out)?;
    let labels = ["database", "schema", "relation", "fork"];
    rows("relation", "by fork of a relation", &report.relations, labels, relation, out)?;
    rows("database", "by database", &report.databases, ["database"], database, out)?;
    let labels = ["tablespace"];
    rows("tablespace", "by tablespace", &report.tablespaces, labels, tablespace, out)?;
    rows("fork", "by fork", &report.forks, ["fork"], |row| [text(&row.fork)], out)?;
    let labels = ["database", "kind"];
    rows("kind", "by kind of transaction", &report.kinds, labels, KindRow::labels, out)?;
    checks(report, out)?;
    state(report, out)?;
    predictions(report, out)?;
    writeln!(out, "# EOF")
}

/// Writes that there is no report.
pub fn unreadable(out: &mut dyn Write) -> io::Result<()> {
    begin(0, out)?;
    writeln!(out, "# EOF")
}

/// Writes what every text begins with.
pub(super) fn begin(up: u8, out: &mut dyn Write) -> io::Result<()> {
    head("walstat_build_info", "The version of walstat", out)?;
    sample("walstat_build_info", &["version"], &[VERSION.to_owned()], 1.0, out)?;
    gauge("walstat_up", "Whether the WAL could be read", f64::from(up), out)
}

/// What there is one number of.
fn ratios(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Report { input, books, ratios, problems, .. } = report;
    gauge("walstat_input_bytes", "Bytes read", books.input_bytes as f64, out)?;
    gauge("walstat_segments", "WAL segments read", input.segments as f64, out)?;
    gauge("walstat_problems", "Places where the WAL is damaged", problems.len() as f64, out)?;
    gauge("walstat_commits", "Commits", ratios.commits as f64, out)?;
    let told = [
        ("walstat_fpi_ratio", "Bytes of full page images of all bytes", ratios.fpi_ratio),
        ("walstat_hot_ratio", "HOT updates of all updates", ratios.hot_ratio),
        (
            "walstat_write_amplification",
            "All bytes for each byte of records without images",
            ratios.write_amplification,
        ),
        ("walstat_commit_bytes", "Bytes of WAL for each commit", ratios.bytes_per_commit),
    ];
    let known = told.iter().filter_map(|(name, help, value)| Some((name, help, (*value)?)));
    known.into_iter().try_for_each(|(name, help, value)| gauge(name, help, value, out))
}

/// When WAL was written, and why checkpoints began.
fn overview(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(when) = &report.when else { return Ok(()) };
    let told = [
        ("walstat_mean_bytes_per_second", "WAL a second on average", when.mean_rate),
        (
            "walstat_peak_bytes_per_second",
            "WAL in the busiest second",
            when.peak_rate.map(|rate| rate as f64),
        ),
        (
            "walstat_worst_recovery_bytes",
            "WAL that a crash would make the server replay at the worst moment",
            when.worst_recovery_bytes.map(|bytes| bytes as f64),
        ),
    ];
    let known = told.into_iter().filter_map(|(name, help, value)| Some((name, help, value?)));
    known.into_iter().try_for_each(|(name, help, value)| gauge(name, help, value, out))?;
    if let Some(seconds) = &when.worst_recovery_seconds {
        let bounds = [("low", seconds.low), ("high", seconds.high)];
        let samples = bounds.map(|(bound, seconds)| ([bound.to_owned()], seconds));
        let help = "How long that would take";
        family("walstat_worst_recovery_seconds", help, ["bound"], samples.into(), out)?;
    }
    let causes = [
        ("walstat_checkpoints", "Checkpoints, by what began them", &when.causes),
        ("walstat_checkpoint_wal_bytes", "WAL before them, by what began them", &when.wal_by_cause),
    ];
    causes
        .into_iter()
        .try_for_each(|(name, help, causes)| family(name, help, ["cause"], by_cause(causes)?, out))
}

/// One sample a cause, of all causes that there are.
fn by_cause(causes: &Causes) -> io::Result<BTreeMap<[String; 1], f64>> {
    let causes = serde_json::to_value(causes)?;
    let causes = causes.as_object().into_iter().flatten();
    Ok(causes.filter_map(|(cause, n)| Some(([cause.clone()], n.as_f64()?))).collect())
}

/// What the rules found: one sample a rule.
fn findings(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(findings) = &report.findings else { return Ok(()) };
    gauge("walstat_findings", "Rules that found something", findings.len() as f64, out)?;
    let sample = |finding: &Finding| ([finding.rule.clone(), finding.severity.to_string()], 1.0);
    let samples = findings.iter().map(sample).collect();
    family("walstat_finding", "A rule that found something", ["rule", "severity"], samples, out)
}

/// Writes the families of a table, if it is there.
fn rows<R: TableRow, const N: usize>(
    of: &str,
    by: &str,
    table: &Option<Table<R>>,
    labels: [&str; N],
    values: impl Fn(&R) -> [String; N],
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(table) = table else { return Ok(()) };
    // Rows may look alike to whoever sees the labels only.
    let mut sums: BTreeMap<[String; N], Numbers> = BTreeMap::new();
    for row in &table.rows {
        sums.entry(values(row)).or_default().add(&row.numbers());
    }
    if let Some(left_out) = &table.left_out {
        let others = std::array::from_fn(|_| OTHER.to_owned());
        sums.entry(others).or_default().add(&left_out.numbers);
    }
    for (name, help, value) in MEASURES {
        let name = format!("walstat_{of}_{name}");
        head(&name, &format!("{help}, {by}"), out)?;
        for (values, numbers) in &sums {
            sample(&name, &labels, values, value(numbers) as f64, out)?;
        }
    }
    Ok(())
}

/// What a check found, and its limit: of those that were judged.
fn checks(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    // Of checks with one name, as of tables of two databases, the broken one is told: it comes last.
    let of = |verdict| report.checks().iter().filter(move |check| check.verdict == verdict);
    let judged = || of(Verdict::Pass).chain(of(Verdict::Fail));
    let passed = |check: &Check| Some(f64::from(u8::from(check.verdict == Verdict::Pass)));
    let labels = ["check"];
    let mut family = |name, help, value: &dyn Fn(&Check) -> Option<f64>| {
        let samples = judged().filter_map(|check| Some(([check.check.clone()], value(check)?)));
        family(name, help, labels, samples.collect(), out)
    };
    family("walstat_check_passed", "Whether the check holds", &passed)?;
    family("walstat_check_value", "What the check found", &|check| check.value)?;
    family("walstat_check_limit", "The limit of the check", &|check| check.limit)
}

/// What a round with a state has read, and the gaps that were accepted.
fn state(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if let Some(state) = &report.state {
        let told = [
            ("known", "Segments that an earlier round has read", state.known_segments),
            ("read", "Segments that are new or were changed", state.read_segments),
            ("rechecked", "Known segments that were read again", state.rechecked_segments),
        ];
        for (name, help, count) in told {
            gauge(&format!("walstat_state_{name}_segments"), help, count as f64, out)?;
        }
    }
    let sample = |gap: &AcceptedGap| {
        let labels = [gap.start_lsn.clone(), gap.end_lsn.clone(), gap.because.clone()];
        (labels, f64::from(u8::from(gap.used)))
    };
    let samples = report.accepted_gaps.iter().flatten().map(sample).collect();
    let help = "Whether segments are missing in a gap that was accepted";
    family("walstat_accepted_gap_used", help, ["start_lsn", "end_lsn", "because"], samples, out)
}

/// What other settings would have written.
fn predictions(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(whatif) = &report.whatif else { return Ok(()) };
    for (name, help, value) in PREDICTIONS {
        let sample = |scenario: &Scenario| ([scenario.id.clone()], value(scenario) as f64);
        let samples = whatif.scenarios.iter().map(sample).collect();
        family(&format!("walstat_whatif_{name}"), help, ["scenario"], samples, out)?;
    }
    Ok(())
}

/// Writes a family that has samples.
fn family<const N: usize>(
    name: &str,
    help: &str,
    labels: [&str; N],
    samples: BTreeMap<[String; N], f64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if samples.is_empty() {
        return Ok(());
    }
    head(name, help, out)?;
    samples.iter().try_for_each(|(values, value)| sample(name, &labels, values, *value, out))
}

fn rmgr(row: &RmgrRow) -> [String; 1] {
    [row.rmgr.clone()]
}

fn record(row: &RecordRow) -> [String; 2] {
    [row.rmgr.clone(), row.record.clone()]
}

fn table(row: &WholeTableRow) -> [String; 3] {
    let name = match &row.heap {
        None if row.name.is_none() => String::new(),
        _ => row.name.clone().unwrap_or_else(|| row.label()),
    };
    [named(&row.database_name, row.database), text(&row.schema), name]
}

fn relation(row: &RelationRow) -> [String; 4] {
    let file = |number: u32| row.name.clone().unwrap_or_else(|| number.to_string());
    [
        named(&row.database_name, row.database),
        text(&row.schema),
        row.relfilenode.map(file).unwrap_or_default(),
        text(&row.fork),
    ]
}

fn database(row: &DatabaseRow) -> [String; 1] {
    [named(&row.database_name, row.database)]
}

fn tablespace(row: &TablespaceRow) -> [String; 1] {
    [named(&row.tablespace_name, row.tablespace)]
}

/// A name, or the number of what has none; empty for nothing.
fn named(name: &Option<String>, oid: Option<u32>) -> String {
    name.clone().or_else(|| oid.map(|oid| oid.to_string())).unwrap_or_default()
}

fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_default()
}

/// Writes a gauge without labels.
pub(super) fn gauge(name: &str, help: &str, value: f64, out: &mut dyn Write) -> io::Result<()> {
    head(name, help, out)?;
    sample(name, &[], &[], value, out)
}

fn head(name: &str, help: &str, out: &mut dyn Write) -> io::Result<()> {
    head_of("gauge", name, help, out)
}

/// What describes a metric of a type.
pub(super) fn head_of(
    of_type: &str,
    name: &str,
    help: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "# HELP {name} {help}.\n# TYPE {name} {of_type}")
}

/// Writes a value.
pub(super) fn sample(
    name: &str,
    labels: &[&str],
    values: &[String],
    value: impl std::fmt::Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{name}")?;
    for (place, (label, value)) in labels.iter().zip(values).enumerate() {
        let open = if place == 0 { '{' } else { ',' };
        write!(out, "{open}{label}=\"{}\"", escaped(value))?;
    }
    let close = if labels.is_empty() { "" } else { "}" };
    writeln!(out, "{close} {value}")
}

/// A label's value: what the format says itself of backslash, quote and newline.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::sample;

    fn metrics(report: &Report) -> String {
        let mut text = Vec::new();
        assert!(render(report, &mut text).is_ok());
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn a_family_adds_up_and_labels_are_escaped() {
        let mut report = sample::report(0, 1000);
        let row = |name: &str, total_bytes| WholeTableRow {
            name: Some(name.to_owned()),
            schema: Some("public".to_owned()),
            database: Some(5),
            numbers: Numbers { total_bytes, ..Numbers::default() },
            ..WholeTableRow::default()
        };
        let rows = vec![row("a\"b\\c\nd", 600), row("x", 300), row("x", 50), row("y", 50)];
        let mut table = Table::from(rows);
        table.cut(3);
        report.tables = Some(table);
        let text = metrics(&report);
        let family = |line: &&str| line.starts_with("walstat_table_total_bytes{");
        let lines: Vec<&str> = text.lines().filter(family).collect();
        let begin = "walstat_table_total_bytes{database=";
        assert_eq!(
            lines,
            [
                format!("{begin}\"5\",schema=\"public\",table=\"a\\\"b\\\\c\\nd\"}} 600"),
                format!("{begin}\"5\",schema=\"public\",table=\"x\"}} 350"),
                format!("{begin}\"other\",schema=\"other\",table=\"other\"}} 50"),
            ]
        );
        assert!(text.ends_with("# EOF\n"));
        assert!(text.contains("\nwalstat_up 1\n"), "{text}");
    }

    #[test]
    fn each_family_is_described_once() {
        let text = metrics(&sample::report(0, 1000));
        let mut types: Vec<&str> = text.lines().filter(|l| l.starts_with("# TYPE")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all);
    }
}
