//! `--format github`: workflow commands that GitHub Actions turns into annotations, and the
//! summary of the step in Markdown.

use super::check_table::{limit, value, verdict_line, word};
use super::closing::{filters, verified};
use super::number::counted;
use super::style::Show;
use crate::report::model::view::{Annotation, Level, View};
use std::io::{self, Write};

/// GitHub shows so many annotations of a kind for a step, and silently drops the rest.
const SHOWN: usize = 10;

/// Writes the annotations, worst first, and one line on what was verified.
pub fn render(view: &View, out: &mut dyn Write) -> io::Result<()> {
    for (level, command) in [(Level::Error, "error"), (Level::Warning, "warning")] {
        let of_kind: Vec<&Annotation> =
            view.annotations.iter().filter(|a| a.level == level).collect();
        for annotation in of_kind.iter().take(SHOWN) {
            annotate(command, annotation, out)?;
        }
        // Another kind, or GitHub would drop this very line.
        if let Some(more @ 1..) = of_kind.len().checked_sub(SHOWN) {
            let more = counted(more as u64, &format!("more {command}"));
            writeln!(out, "::notice title=walstat::{more}")?;
        }
    }
    if let Some(filters) = filters(&view.report) {
        writeln!(out, "{}", data(&filters))?;
    }
    writeln!(out, "{}: {}", verdict_line(&view.report), verified(view))
}

/// Writes why nothing could be checked.
pub fn unreadable(annotation: &Annotation, out: &mut dyn Write) -> io::Result<()> {
    annotate("error", annotation, out)
}

fn annotate(command: &str, annotation: &Annotation, out: &mut dyn Write) -> io::Result<()> {
    let file = property(&annotation.path);
    let title = property(&format!("walstat: {}", annotation.rule));
    writeln!(out, "::{command} file={file},title={title}::{}", data(&annotation.message))
}

/// The value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Writes the step's summary.
pub fn summary(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    writeln!(out, "### walstat check: {}\n", verdict_line(report))?;
    writeln!(out, "| check | value | limit | verdict | |")?;
    writeln!(out, "| --- | ---: | ---: | --- | --- |")?;
    for check in report.checks() {
        let (value, limit) = (value(check, style), limit(check, style));
        let verdict = word(check.verdict);
        let text = cell(&check.text);
        writeln!(out, "| {} | {value} | {limit} | {verdict} | {text} |", cell(&check.check))?;
    }
    broken_files(&view.annotations, out)?;
    for line in filters(report).iter().chain(&report.notes) {
        writeln!(out, "\n{}.", cell(line))?;
    }
    writeln!(out, "\n{}.\n", verified(view))
}

fn broken_files(annotations: &[Annotation], out: &mut dyn Write) -> io::Result<()> {
    let damage: Vec<&Annotation> = annotations.iter().filter(|a| a.damage).collect();
    if damage.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for annotation in damage.iter().take(SHOWN) {
        writeln!(out, "* {}: {}", cell(&annotation.rule), cell(&annotation.message))?;
    }
    match damage.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "* {more} more"),
    }
}

/// Text in which Markdown and HTML find nothing to do.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_give_commands() {
        assert_eq!(data("a\n::add-path::/evil"), "a%0A::add-path::/evil");
        assert_eq!(property("100%,a:b\r"), "100%25%2Ca%3Ab%0D");
        assert_eq!(cell("a|b<i>\n`c`"), "a\\|b&lt;i> \\`c\\`");
    }
}
