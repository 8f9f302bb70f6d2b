//! `walstat whatif` for people: a line a scenario, and how far the predictions can be trusted.

use super::closing;
use super::number::{UNKNOWN, counted, grouped};
use super::style::{Show, plain};
use super::visible::visible;
use std::io::{self, Write};
use walstat_report::model::percent;
use walstat_report::model::view::View;
use walstat_report::model::whatif::{NARROW, RecordDifference, Scenario, WhatIf};

/// Columns of the settings of a scenario, as long as they stand on one line.
const ID_MAX: usize = 26;
/// Record types told one by one.
const DIFFERENCES_SHOWN: usize = 8;

/// Writes the predictions.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    closing::opening(report, style, out)?;
    if let Some(whatif) = &report.whatif {
        scenarios(whatif, style, out)?;
        lines(&self_check(whatif), out)?;
    }
    closing::notes(report, style, out)?;
    closing::books(view, out)
}

fn scenarios(whatif: &WhatIf, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let mut table = plain(&HEADINGS.map(|heading| match heading {
        "redo points" => "redo\npoints",
        other => other,
    }));
    let with_empty = counts_empty(whatif);
    for scenario in &whatif.scenarios {
        let mut cells = cells(scenario, style, with_empty);
        cells[0] = in_lines(&visible(&cells[0]));
        table.add_row(cells);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    lines(&remarks(whatif, style), out)
}

/// Several settings, each on a line if they are too long for one: the table has 80 columns.
fn in_lines(settings: &str) -> String {
    if settings.len() <= ID_MAX { settings.to_owned() } else { settings.replace(',', ",\n") }
}

fn lines(lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{}", visible(line)))
}

/// What the cells of a scenario are.
pub const HEADINGS: [&str; 7] =
    ["WHAT IF", "WAL", "change", "certain", "images", "redo points", "recovery"];

/// Whether somebody asked about what is left empty of segments: then that is shown with the rest.
pub fn counts_empty(whatif: &WhatIf) -> bool {
    let mut settings = whatif.scenarios.iter().flat_map(|scenario| scenario.settings.keys());
    settings.any(|name| EMPTY_BY.contains(&name.as_str()))
}

/// Settings that decide how much of segments is left empty.
const EMPTY_BY: [&str; 2] = ["archive_timeout", "wal_segment_size"];

/// A scenario in a line of a table; with what is left empty of segments or without.
pub fn cells(scenario: &Scenario, style: &Show, with_empty: bool) -> [String; 7] {
    let (bytes, _) = measured(scenario, with_empty);
    let (low, high) = (scenario.recovery_seconds_low, scenario.recovery_seconds_high);
    [
        scenario.id.clone(),
        style.bytes(bytes),
        change(scenario, with_empty),
        certain(scenario),
        grouped(scenario.fpi_count),
        grouped(scenario.redo_points.len() as u64),
        format!("{low:.1} to {high:.1} s"),
    ]
}

/// By how much the prediction differs from the base.
pub fn change(scenario: &Scenario, with_empty: bool) -> String {
    measured(scenario, with_empty).1.map_or(UNKNOWN.into(), |ratio| percent::change(ratio, 2))
}

/// Bytes of a scenario, and how they differ from the base's.
pub fn measured(scenario: &Scenario, with_empty: bool) -> (u64, Option<f64>) {
    if with_empty {
        (scenario.predicted_bytes, scenario.change_ratio)
    } else {
        (scenario.written_bytes, scenario.written_change_ratio)
    }
}

/// The share that is neither estimated nor unknown.
fn certain(scenario: &Scenario) -> String {
    let Scenario { predicted_bytes, exact_bytes, .. } = scenario;
    if predicted_bytes == exact_bytes {
        return "all".to_owned();
    }
    percent::percent(*exact_bytes as f64 / (*predicted_bytes as f64).max(1.0), 2)
}

/// What the rows have no room for: ranges, and texts with the scenarios that they are about.
pub fn remarks(whatif: &WhatIf, style: &Show) -> Vec<String> {
    let with_empty = counts_empty(whatif);
    let mut lines = Vec::new();
    for scenario in &whatif.scenarios {
        let Scenario { id, low_bytes, high_bytes, predicted_bytes, .. } = scenario;
        if (high_bytes - low_bytes) as f64 > *predicted_bytes as f64 * NARROW {
            let beside = if with_empty { 0 } else { scenario.switch_bytes };
            let written = |bytes: u64| style.bytes(bytes.saturating_sub(beside));
            let (low, high) = (written(*low_bytes), written(*high_bytes));
            lines.push(format!("{id}: between {low} and {high}"));
        }
        if scenario.switch_bytes > 0 {
            let empty = style.bytes(scenario.switch_bytes);
            lines.push(if with_empty {
                format!("{id}: {empty} of it are what switches leave empty of segments")
            } else {
                format!("{id}: switches of segments leave {empty} more empty")
            });
        }
        if let Some(seconds) = scenario.cpu_seconds.filter(|seconds| *seconds >= 0.005) {
            lines.push(format!("{id}: {seconds:.2} s of CPU for compression"));
        }
    }
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for scenario in &whatif.scenarios {
        for text in scenario.side_effects.iter().chain(&scenario.notes) {
            match told.iter_mut().find(|(known, _)| known == text) {
                Some((_, ids)) => ids.push(&scenario.id),
                None => told.push((text, vec![&scenario.id])),
            }
        }
    }
    lines.extend(told.into_iter().map(|(text, ids)| {
        let about = if ids.len() == whatif.scenarios.len() { "all".into() } else { ids.join(", ") };
        format!("{about}: {text}")
    }));
    lines
}

/// How the base under its own settings came out.
pub fn self_check(whatif: &WhatIf) -> Vec<String> {
    let check = &whatif.self_check;
    if check.by_record.is_empty() && check.difference_bytes == 0 {
        let text = "Self-check: replayed under its own settings, the WAL comes out byte for byte.";
        return vec![text.to_owned()];
    }
    let first = format!(
        "Self-check: replayed under its own settings, the WAL comes out {:+} bytes of {}{}",
        check.difference_bytes,
        grouped(whatif.base_bytes),
        if check.by_record.is_empty() { ", beside its records." } else { ":" }
    );
    let row = |row: &RecordDifference| {
        let records = counted(row.records, "record");
        format!("  {:+} bytes in {records} {}", row.difference_bytes, row.record)
    };
    [first].into_iter().chain(check.by_record.iter().take(DIFFERENCES_SHOWN).map(row)).collect()
}
