//! `--format html`: the report as one page that needs nothing else: no network, no script. Every chart
//! has its numbers as a table beside it.

mod advice;
mod asked;
mod axis;
mod chart;
mod part;
mod text;

use super::style::Show;
use std::io::{self, Write};
use text::escaped;
use walstat_report::model::Report;
use walstat_report::model::view::View;

/// The page's looks.
const STYLE: &str = include_str!("html/style.css");

/// A part of the page: its id, its heading, and what is in it; empty: it has nothing to say.
type Part = (&'static str, &'static str, fn(&Report) -> String);

/// The parts, in the order in which they are asked for: why, who, when, what to do, can it be trusted.
const PARTS: [Part; 13] = [
    ("checks", "Checks", asked::checks),
    ("problems", "Problems", part::problems),
    ("predictions", "Predictions", asked::predictions),
    ("what-to-do", "What to do", advice::advice),
    ("why", "Why", part::why),
    ("tables", "Who: tables with their indexes", part::tables),
    ("kinds", "Who: kinds of transactions", part::kinds),
    ("time", "When: WAL over time", part::timeline),
    ("checkpoints", "Checkpoints", part::checkpoints),
    ("what-if", "What if", advice::estimates),
    ("records", "What: record types", part::records),
    ("statistics", "More statistics", part::others),
    ("books", "Books", part::books),
];

/// Writes the page.
pub fn render(view: &View, _style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    let title = format!("WAL of PostgreSQL {}", report.input.postgres);
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
         name=\"generator\" content=\"walstat {}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>",
        escaped(&report.walstat),
        escaped(&title),
    )?;
    writeln!(out, "<header>\n<h1>{}</h1>\n{}</header>", escaped(&title), part::header(report))?;
    let parts = PARTS.map(|(id, heading, write)| (id, heading, write(report)));
    let told = parts.iter().filter(|(_, _, text)| !text.is_empty());
    let link = |(id, heading, _): &(&str, &str, String)| {
        format!("<li><a href=\"#{id}\">{heading}</a></li>")
    };
    let links: Vec<String> = told.clone().map(link).collect();
    writeln!(out, "<nav aria-label=\"Contents\"><ul>{}</ul></nav>\n<main>", links.concat())?;
    for (id, heading, text) in told {
        writeln!(out, "<section id=\"{id}\">\n<h2>{heading}</h2>\n{text}</section>")?;
    }
    writeln!(out, "</main>\n</body>\n</html>")
}
