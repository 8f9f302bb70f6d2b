//! What to do, and what that is predicted to come to.

use super::super::closing::sentence;
use super::super::number::{counted, human_bytes};
use super::chart::{self, Point, Row};
use super::text::{details, escaped, exact, size};
use std::fmt::Write as _;
use walstat_report::model::Report;
use walstat_report::model::estimate::{EstimateRow, Estimates};
use walstat_report::model::finding::{Certainty, Finding};
use walstat_report::model::percent::change;

/// Findings with their evidence, and what a change is predicted to come to.
pub fn advice(report: &Report) -> String {
    let Some(findings) = &report.findings else { return String::new() };
    let mut html: String = findings.iter().map(|finding| one(report, finding)).collect();
    if let Some(silent) = report.silent_rules() {
        let _ = writeln!(html, "<p>{}</p>", sentence(&silent));
    }
    if let Some(together) = &report.advice_together {
        let predicted = &together.predicted;
        let _ = writeln!(
            html,
            "<div class=\"finding\"><h3>{} together: {} ({} to {}) instead of {}, {}</h3></div>",
            escaped(&together.rules.join(" and ")),
            size(predicted.predicted_bytes),
            size(predicted.low_bytes),
            size(predicted.high_bytes),
            size(report.totals.total_bytes),
            change(predicted.change_ratio, 0),
        );
    }
    html
}

fn one(report: &Report, finding: &Finding) -> String {
    let mut html = format!(
        "<article class=\"finding {}\">\n<h3>{}</h3>\n",
        finding.severity,
        escaped(&finding.title)
    );
    if let Some(predicted) = &finding.predicted {
        let _ = writeln!(
            html,
            "<p>Predicted: <b>{}</b> ({} to {}) instead of {}, {}</p>",
            size(predicted.predicted_bytes),
            size(predicted.low_bytes),
            size(predicted.high_bytes),
            size(report.totals.total_bytes),
            change(predicted.change_ratio, 0),
        );
    }
    if let (None, Some(saved)) = (&finding.predicted, finding.estimate.filter(|saved| *saved > 0)) {
        let how = match finding.certainty {
            Certainty::Possible => "at most",
            _ => "about",
        };
        let share = -(saved as f64) / report.totals.total_bytes.max(1) as f64;
        let _ = writeln!(
            html,
            "<p>Would save {how} <b>{}</b>, by the rule: {}</p>",
            size(saved),
            change(share, 0)
        );
    }
    html.push_str("<ul>\n");
    for line in &finding.advice {
        let _ = writeln!(html, "<li>{}</li>", escaped(line));
    }
    for price in &finding.side_effects {
        let _ = writeln!(html, "<li class=\"soft\">Price: {}</li>", escaped(price));
    }
    let _ =
        writeln!(html, "<li class=\"soft\">Ignore it {}</li></ul>", escaped(&finding.ignore_when));
    let evidence = finding.evidence.iter();
    let rows: Vec<Vec<String>> =
        evidence.map(|(key, value)| vec![escaped(key), escaped(&value.to_string())]).collect();
    html.push_str(&details(
        &format!("Evidence; <code>walstat rules {}</code> explains it", escaped(&finding.rule)),
        &["Number", "Value"],
        &rows,
    ));
    html.push_str("</article>\n");
    html
}

/// What other settings would have written.
pub fn estimates(report: &Report) -> String {
    let Some(estimates) = &report.estimates else { return String::new() };
    let plain = estimates.scenarios.iter().filter(|row| row.wal_compression.is_none());
    let point = |row: &EstimateRow| Point {
        name: apart(row),
        bytes: row.predicted.predicted_bytes,
        range: (row.predicted.low_bytes, row.predicted.high_bytes),
    };
    let points: Vec<Point> = plain.map(point).collect();
    let now = estimates.scenarios.iter().filter(|row| row.checkpoints_apart == Some(1));
    let codecs: Vec<Row> = now
        .map(|row| {
            let name = row.wal_compression.as_deref().unwrap_or("as now");
            let predicted = &row.predicted;
            let value = format!(
                "<span title=\"{}\">{} {}</span>",
                chart::between(predicted.low_bytes, predicted.high_bytes),
                human_bytes(predicted.predicted_bytes),
                change(predicted.change_ratio, 0)
            );
            let rest = report.totals.record_bytes.min(row.predicted.predicted_bytes);
            let images = row.predicted.predicted_bytes - rest;
            Row { label: format!("wal_compression {name}"), images, records: rest, value }
        })
        .collect();
    let headings = ["Checkpoints apart", "wal_compression", "Bytes", "Change", "Low", "High"];
    let (plain, all) = (scenarios(estimates, false), scenarios(estimates, true));
    let mut html = format!(
        "<p class=\"soft\">Estimated from {}, of which {} were compressed{}; \
         <code>walstat whatif</code> is exact.</p>\n",
        counted(estimates.sampled_images, "image"),
        estimates.compressed_images,
        if estimates.is_whole { ", which are all" } else { "" },
    );
    if points.len() > 1 {
        let _ = write!(
            html,
            "<figure><figcaption>WAL with checkpoints further apart</figcaption>{}</figure>\n{}",
            chart::curve("WAL with checkpoints further apart", &points),
            details("Numbers", &headings, &plain)
        );
    }
    if codecs.len() > 1 {
        let _ = write!(
            html,
            "<figure><figcaption>WAL with another codec for images</figcaption>{}</figure>\n{}",
            chart::bars("WAL with another codec", &codecs),
            details("Numbers of both together", &headings, &all)
        );
    }
    html
}

/// How far checkpoints are apart.
fn apart(row: &EstimateRow) -> String {
    match row.checkpoints_apart {
        Some(1) => "as now".to_owned(),
        Some(times) => format!("{times} times"),
        None => "none by volume or time".to_owned(),
    }
}

/// Combinations as lines, with other codecs or without.
fn scenarios(estimates: &Estimates, codecs: bool) -> Vec<Vec<String>> {
    estimates
        .scenarios
        .iter()
        .filter(|row| codecs || row.wal_compression.is_none())
        .map(|row| {
            let predicted = &row.predicted;
            vec![
                apart(row),
                row.wal_compression.clone().unwrap_or_else(|| "as now".to_owned()),
                exact(predicted.predicted_bytes),
                change(predicted.change_ratio, 2),
                exact(predicted.low_bytes),
                exact(predicted.high_bytes),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::estimate::Predicted;
    use walstat_report::model::finding::Together;
    use walstat_report::model::sample;

    /// A finding that is not among them stands above it too.
    #[test]
    fn what_is_taken_together_is_named() {
        let mut report = sample::report(0, 1000);
        let predicted =
            Predicted { predicted_bytes: 200, change_ratio: -0.8, low_bytes: 150, high_bytes: 250 };
        let rules = ["checkpoint-spacing", "wal-compression"].map(str::to_owned).to_vec();
        report.findings = Some(Vec::new());
        let (changes, settings) = (Vec::new(), serde_json::Map::new());
        report.advice_together = Some(Together { rules, changes, settings, predicted });
        let html = advice(&report);
        assert!(html.contains("<h3>checkpoint-spacing and wal-compression together: "), "{html}");
    }
}
