//! `walstat whatif --format markdown`: the predictions for a pull request or a page of notes.

use super::markdown::{closing, escaped, header, problems, shortened, table};
use super::style::Show;
use super::whatif::{HEADINGS, cells, counts_empty, remarks, self_check};
use std::io::{self, Write};
use walstat_report::model::Report;
use walstat_report::model::view::View;
use walstat_report::model::whatif::{Scenario, WhatIf};

/// Writes the predictions.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    shortened(out, |text| write(&view.report, style, text))
}

fn write(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    header(report, style, out)?;
    problems(report, out)?;
    if let Some(whatif) = &report.whatif {
        predictions(whatif, style, out)?;
    }
    closing(report, out)
}

fn predictions(whatif: &WhatIf, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let with_empty = counts_empty(whatif);
    let row = |scenario: &Scenario| {
        cells(scenario, style, with_empty).map(|cell| escaped(&cell)).to_vec()
    };
    table("Predictions", &HEADINGS, whatif.scenarios.iter().map(row), out)?;
    for line in remarks(whatif, style).iter().chain(&self_check(whatif)) {
        writeln!(out, "- {}", escaped(line.trim_start()))?;
    }
    writeln!(out)
}
