//! What `walstat check` and `walstat whatif` were asked for.

use super::super::check_table::{limit, value, verdict_line, word};
use super::super::style::Show;
use super::super::whatif::{change, remarks, self_check};
use super::chart::{self, Row};
use super::text::{escaped, exact, size, table};
use crate::report::model::Report;
use crate::report::model::checked::Check;
use crate::report::model::whatif::Scenario;
use std::fmt::Write as _;

/// A page is for people.
const STYLE: Show = Show { human: true, bars: false, main_data: false, verbose: false, width: 0 };

/// Verdicts, with what each found.
pub fn checks(report: &Report) -> String {
    if report.checks.is_none() {
        return String::new();
    }
    let row = |check: &Check| {
        let cells = [&check.check, &value(check, &STYLE), &limit(check, &STYLE)];
        let cells = cells.into_iter().map(|cell| escaped(cell));
        cells.chain([word(check.verdict).to_owned(), escaped(&check.text)]).collect()
    };
    let rows: Vec<Vec<String>> = report.checks().iter().map(row).collect();
    let table = table(&["Check", "Value", "Limit", "Verdict", "Why"], &rows);
    format!("<p><b>{}</b></p>\n{table}", escaped(&verdict_line(report)))
}

/// What other settings would have written.
pub fn predictions(report: &Report) -> String {
    let Some(whatif) = &report.whatif else { return String::new() };
    let bar = |scenario: &Scenario| Row {
        label: scenario.id.clone(),
        images: 0,
        records: scenario.predicted_bytes,
        value: format!("{} {}", size(scenario.predicted_bytes), change(scenario)),
    };
    let bars: Vec<Row> = whatif.scenarios.iter().map(bar).collect();
    let row = |scenario: &Scenario| {
        vec![
            escaped(&scenario.id),
            exact(scenario.predicted_bytes),
            change(scenario),
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
