//! `walstat whatif` for people: a line a scenario, and how far the predictions can be trusted.

use super::closing;
use super::number::{counted, grouped};
use super::style::{Show, plain};
use super::visible::visible;
use crate::report::model::view::View;
use crate::report::model::whatif::{Scenario, WhatIf};
use std::io::{self, Write};

/// Problems told one by one; the rest is counted.
const PROBLEMS_SHOWN: usize = 5;
/// A range that is narrower than this part of the prediction is not told.
const NARROW: f64 = 0.001;
/// Record types told one by one.
const DIFFERENCES_SHOWN: usize = 8;

/// Writes the predictions.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    let range = &report.range;
    writeln!(out, "{}, {} to {}", closing::origin(&report.input), range.start, range.end)?;
    writeln!(out, "{}\n", report.ending.text)?;
    closing::problems(report, PROBLEMS_SHOWN, style, out)?;
    if let Some(whatif) = &report.whatif {
        scenarios(whatif, style, out)?;
        self_check(whatif, out)?;
    }
    closing::notes(report, style, out)?;
    closing::books(view, out)
}

fn scenarios(whatif: &WhatIf, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let mut table =
        plain(&["WHAT IF", "WAL", "change", "certain", "images", "redo points", "recovery"]);
    for scenario in &whatif.scenarios {
        table.add_row(cells(scenario, style));
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    details(whatif, style, out)
}

fn cells(scenario: &Scenario, style: &Show) -> Vec<String> {
    let change =
        scenario.change_ratio.map_or("–".into(), |ratio| format!("{:+.2} %", ratio * 100.0));
    let (low, high) = (scenario.recovery_seconds_low, scenario.recovery_seconds_high);
    vec![
        visible(&scenario.id).into_owned(),
        style.bytes(scenario.predicted_bytes),
        change,
        certain(scenario),
        grouped(scenario.fpi_count),
        grouped(scenario.redo_points.len() as u64),
        format!("{low:.1} to {high:.1} s"),
    ]
}

/// The share that is neither estimated nor unknown.
fn certain(scenario: &Scenario) -> String {
    if scenario.predicted_bytes == scenario.exact_bytes {
        return "all".to_owned();
    }
    let share = scenario.exact_bytes as f64 / scenario.predicted_bytes as f64;
    format!("{:.2} %", share * 100.0)
}

/// What the rows have no room for: ranges, and texts with the scenarios that they are about.
fn details(whatif: &WhatIf, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    for scenario in &whatif.scenarios {
        let Scenario { low_bytes, high_bytes, predicted_bytes, .. } = scenario;
        let id = visible(&scenario.id);
        if (high_bytes - low_bytes) as f64 > *predicted_bytes as f64 * NARROW {
            let (low, high) = (style.bytes(*low_bytes), style.bytes(*high_bytes));
            writeln!(out, "{id}: between {low} and {high}")?;
        }
        if let Some(seconds) = scenario.cpu_seconds.filter(|seconds| *seconds > 0.0) {
            writeln!(out, "{id}: {seconds:.2} s of CPU for compression")?;
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
    for (text, ids) in told {
        let about = if ids.len() == whatif.scenarios.len() { "all".into() } else { ids.join(", ") };
        writeln!(out, "{}: {}", visible(&about), visible(text))?;
    }
    Ok(())
}

fn self_check(whatif: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let check = &whatif.self_check;
    if check.by_record.is_empty() && check.difference_bytes == 0 {
        return writeln!(
            out,
            "Self-check: replayed under its own settings, the WAL comes out byte for byte."
        );
    }
    writeln!(
        out,
        "Self-check: replayed under its own settings, the WAL comes out {:+} bytes of {}{}",
        check.difference_bytes,
        grouped(whatif.base_bytes),
        if check.by_record.is_empty() { ", beside its records." } else { ":" }
    )?;
    for row in check.by_record.iter().take(DIFFERENCES_SHOWN) {
        let records = counted(row.records, "record");
        writeln!(out, "  {:+} bytes in {records} {}", row.difference_bytes, row.record)?;
    }
    Ok(())
}
