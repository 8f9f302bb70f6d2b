//! What `walstat check` and `walstat whatif` were asked for.

use super::super::check_table::{limit, value, verdict_line, word};
use super::super::style::Show;
use super::super::whatif::{change, counts_empty, measured, remarks, self_check};
use super::chart::{self, Row};
use super::text::{escaped, exact, size, table};
use std::fmt::Write as _;
use walstat_report::model::Report;
use walstat_report::model::checked::{Check, Verdict};
use walstat_report::model::whatif::Scenario;

/// A page is for people.
const STYLE: Show = Show { human: true, bars: false, main_data: false, verbose: false, width: 0 };

/// Verdicts, with what each found.
pub fn checks(report: &Report) -> String {
    if report.checks.is_none() {
        return String::new();
    }
    let row = |check: &Check| {
        let failed = check.verdict == Verdict::Fail;
        let class = if failed { "bad" } else { "soft" };
        let why = format!("<br><span class=\"{class}\">{}</span>", escaped(&check.text));
        let verdict = format!("<b class=\"{class}\">{}</b>", word(check.verdict));
        vec![
            escaped(&check.check) + &why,
            escaped(&value(check, &STYLE)),
            escaped(&limit(check, &STYLE)),
            verdict,
        ]
    };
    // What is broken comes first.
    let (broken, others): (Vec<_>, Vec<_>) =
        report.checks().iter().partition(|check| check.verdict == Verdict::Fail);
    let rows: Vec<Vec<String>> = broken.into_iter().chain(others).map(row).collect();
    let table = table(&["Check", "Value", "Limit", "Verdict"], &rows);
    format!("<p><b>walstat check: {}</b></p>\n{table}", escaped(&verdict_line(report)))
}

/// What other settings would have written.
pub fn predictions(report: &Report) -> String {
    let Some(whatif) = &report.whatif else { return String::new() };
    let with_empty = counts_empty(whatif);
    let bar = |scenario: &Scenario| Row {
        label: scenario.id.clone(),
        images: 0,
        records: measured(scenario, with_empty).0,
        value: format!(
            "{} {}",
            size(measured(scenario, with_empty).0),
            change(scenario, with_empty)
        ),
    };
    let bars: Vec<Row> = whatif.scenarios.iter().map(bar).collect();
    let row = |scenario: &Scenario| {
        vec![
            escaped(&scenario.id),
            exact(measured(scenario, with_empty).0),
            change(scenario, with_empty),
            exact(scenario.low_bytes),
            exact(scenario.high_bytes),
            exact(scenario.fpi_count),
            exact(scenario.redo_points.len() as u64),
            exact(scenario.recovery_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = whatif.scenarios.iter().map(row).collect();
    let headings =
        ["What if", "Bytes", "Change", "Low", "High", "Images", "Redo points", "Recovery"];
    let mut html = format!(
        "<figure>{}</figure>\n{}<ul>\n",
        chart::bars("WAL under other settings", &bars),
        table(&headings, &rows)
    );
    for line in remarks(whatif, &STYLE).iter().chain(&self_check(whatif)) {
        let _ = writeln!(html, "<li>{}</li>", escaped(line));
    }
    html.push_str("</ul>\n");
    html
}
