//! Charts as plain SVG, drawn in the page's own colours. They stretch with the page: so their texts stand
//! beside them, where they stay readable.

use super::super::number::human_bytes;
use super::text::escaped;
use std::fmt::Write as _;

/// Units of a plot in both directions.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// Images and all of it, in bytes.
pub struct Stacked {
    /// What it is called, for whoever points at it.
    pub label: String,
    /// Where it begins, as a share of the whole width.
    pub at: f64,
    /// Its width.
    pub width: f64,
    /// Image bytes.
    pub images: u64,
    /// Record bytes without images.
    pub records: u64,
}

/// A row of bars: name, images, records, and what stands behind.
pub struct Row {
    /// The name, as text.
    pub label: String,
    /// Image bytes.
    pub images: u64,
    /// Record bytes without images.
    pub records: u64,
    /// What stands behind, as HTML.
    pub value: String,
}

/// Columns over time, stacked, with marks across; `ends` stand at both ends of the axis.
pub fn columns(label: &str, columns: &[Stacked], marks: &[f64], ends: (&str, &str)) -> String {
    let most = columns.iter().map(|c| c.images + c.records).max().unwrap_or(0).max(1);
    let height = |bytes: u64| bytes as f64 / most as f64 * HEIGHT;
    let mut svg = begin(label);
    for column in columns {
        let (x, width) = (column.at * WIDTH, (column.width * WIDTH).max(0.5));
        let (images, records) = (height(column.images), height(column.records));
        let _ = write!(svg, "<g><title>{}</title>", escaped(&column.label));
        for (class, y, h) in
            [("record", HEIGHT - records, records), ("image", HEIGHT - records - images, images)]
        {
            if h > 0.0 {
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
                     height=\"{h:.2}\"/>"
                );
            }
        }
        svg.push_str("</g>");
    }
    for mark in marks {
        let x = mark * WIDTH;
        let _ = write!(svg, "<path class=\"tick\" d=\"M{x:.2} 0V{HEIGHT}\"/>");
    }
    format!(
        "<div class=\"axis\"><span>{} at most</span></div>\n{svg}</svg>\n<div class=\"axis\"><span>{}\
         </span><span>{}</span></div>\n",
        human_bytes(most),
        escaped(ends.0),
        escaped(ends.1),
    )
}

/// A line through points, evenly apart, each with its name below.
pub fn curve(label: &str, points: &[(String, u64)]) -> String {
    let most = points.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1);
    let step = WIDTH / points.len().max(1) as f64;
    let places: Vec<(f64, f64)> = points
        .iter()
        .enumerate()
        .map(|(index, (_, bytes))| {
            let high = *bytes as f64 / most as f64 * (HEIGHT - 10.0);
            ((index as f64 + 0.5) * step, HEIGHT - 5.0 - high)
        })
        .collect();
    let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let mut svg = begin(label);
    let _ = write!(svg, "<path class=\"curve\" d=\"M{}\"/>", line.join("L"));
    for ((x, y), (name, bytes)) in places.iter().zip(points) {
        let _ = write!(
            svg,
            "<path class=\"dot\" d=\"M{x:.1} {y:.1}h0.01\"><title>{}: {}</title></path>",
            escaped(name),
            human_bytes(*bytes)
        );
    }
    let names: String = points
        .iter()
        .map(|(name, bytes)| format!("<span>{}<br>{}</span>", escaped(name), human_bytes(*bytes)))
        .collect();
    format!("{svg}</svg>\n<div class=\"axis names\">{names}</div>\n")
}

/// Bars, longest first or as they come: images and records in each.
pub fn bars(label: &str, rows: &[Row]) -> String {
    let most = rows.iter().map(|row| row.images + row.records).max().unwrap_or(0).max(1);
    let length = |bytes: u64| bytes as f64 / most as f64 * WIDTH;
    let mut html =
        format!("<div class=\"bars\" role=\"group\" aria-label=\"{}\">\n", escaped(label));
    for row in rows {
        let (images, records) = (length(row.images), length(row.records));
        let _ = writeln!(
            html,
            "<span>{}</span><svg viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><rect class=\"image\" width=\"{images:.1}\" height=\"10\"/><rect \
             class=\"record\" x=\"{images:.1}\" width=\"{records:.1}\" height=\"10\"/></svg>\
             <span>{}</span>",
            escaped(&row.label),
            row.value
        );
    }
    html.push_str("</div>\n");
    html
}

/// What the colours mean.
pub fn key(with_marks: bool) -> String {
    let marks = if with_marks { " <span class=\"key mark\">checkpoints</span>" } else { "" };
    format!(
        "<p><span class=\"key image\">full page images</span> <span class=\"key record\">everything \
         else</span>{marks}</p>\n"
    )
}

fn begin(label: &str) -> String {
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\">",
        escaped(label)
    )
}
