//! Charts as plain SVG, drawn in the page's own colours. They stretch with the page: so their texts stand
//! beside them, where they stay readable.

use super::super::number::human_bytes;
use super::axis::{self, Label};
use super::text::{breakable, escaped};
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

/// A point of a curve.
pub struct Point {
    /// What stands below.
    pub name: String,
    /// How high it is.
    pub bytes: u64,
    /// From where to where it may lie.
    pub range: (u64, u64),
}

/// Columns over time, stacked, with marks across, a scale beside them and labels below; `ends` stand at both
/// ends of the axis.
pub fn columns(
    label: &str,
    columns: &[Stacked],
    marks: &[f64],
    labels: &[Label],
    ends: (&str, &str),
) -> String {
    let most = columns.iter().map(|c| c.images + c.records).max().unwrap_or(0);
    let top = axis::top(most);
    let height = |bytes: u64| bytes as f64 / top as f64 * HEIGHT;
    let mut svg = begin(label);
    grid(labels, &mut svg);
    for column in columns {
        let (x, width) = (column.at * WIDTH, (column.width * WIDTH).max(0.5));
        let (images, records) = (height(column.images), height(column.records));
        let _ = write!(
            svg,
            "<g><title>{}</title><rect class=\"hover\" x=\"{x:.2}\" width=\"{width:.2}\" \
             height=\"{HEIGHT}\"/>",
            escaped(&column.label)
        );
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
    let below = format!(
        "{}<div class=\"axis\"><span>{}</span><span>{}</span></div>\n",
        axis::row(labels),
        escaped(ends.0),
        escaped(ends.1)
    );
    chart(top, &svg, &below)
}

/// A line through points, evenly apart, each with its name below and its range across it.
pub fn curve(label: &str, points: &[Point]) -> String {
    let most = points.iter().map(|point| point.bytes.max(point.range.1)).max().unwrap_or(0);
    let top = axis::top(most);
    let step = WIDTH / points.len().max(1) as f64;
    let high = |bytes: u64| HEIGHT - bytes as f64 / top as f64 * HEIGHT;
    let across = |index: usize| (index as f64 + 0.5) * step;
    let line = points.iter().enumerate();
    let line = line.map(|(index, point)| format!("{:.1} {:.1}", across(index), high(point.bytes)));
    let line: Vec<String> = line.collect();
    let mut svg = begin(label);
    grid(&[], &mut svg);
    let _ = write!(svg, "<path class=\"curve\" d=\"M{}\"/>", line.join("L"));
    for (index, point) in points.iter().enumerate() {
        let (x, y) = (across(index), high(point.bytes));
        let (low, up) = (high(point.range.0), high(point.range.1));
        let _ = write!(
            svg,
            "<g><title>{}: {}, {}</title><rect class=\"hover\" x=\"{:.1}\" width=\"{step:.1}\" \
             height=\"{HEIGHT}\"/><path class=\"range\" d=\"M{x:.1} {low:.1}V{up:.1}\"/><path \
             class=\"dot\" d=\"M{x:.1} {y:.1}h0.01\"/></g>",
            escaped(&point.name),
            human_bytes(point.bytes),
            between(point.range.0, point.range.1),
            x - step / 2.0,
        );
    }
    let name = |point: &Point| {
        format!("<span>{}<br>{}</span>", escaped(&point.name), human_bytes(point.bytes))
    };
    let names: String = points.iter().map(name).collect();
    chart(top, &svg, &format!("<div class=\"axis names\">{names}</div>\n"))
}

/// `3.00 MB to 3.20 MB`.
pub fn between(low: u64, high: u64) -> String {
    format!("{} to {}", human_bytes(low), human_bytes(high))
}

/// A plot with its scale beside it and what stands below.
fn chart(top: u64, svg: &str, below: &str) -> String {
    let scale = axis::scale(top);
    format!("<div class=\"chart\">\n{scale}{svg}</svg>\n<div class=\"below\">{below}</div></div>\n")
}

/// Lines at half of the scale and above each label.
fn grid(labels: &[Label], svg: &mut String) {
    let middle = HEIGHT / 2.0;
    let _ = write!(svg, "<path class=\"grid\" d=\"M0 {middle}H{WIDTH}");
    for label in labels {
        let _ = write!(svg, "M{:.2} 0V{HEIGHT}", label.at * WIDTH);
    }
    svg.push_str("\"/>");
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
             aria-hidden=\"true\"><title>{}: {} of images, {} of everything else</title><rect \
             class=\"hover\" width=\"{WIDTH}\" height=\"10\"/><rect class=\"image\" \
             width=\"{images:.1}\" height=\"10\"/><rect class=\"record\" x=\"{images:.1}\" \
             width=\"{records:.1}\" height=\"10\"/></svg><span>{}</span>",
            breakable(&row.label),
            escaped(&row.label),
            human_bytes(row.images),
            human_bytes(row.records),
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
