//! `--format github`: workflow commands that GitHub Actions turns into annotations. The summary of the
//! step is the check in Markdown.

use super::check_table::verdict_line;
use super::closing::{accepted_gaps, filters, verified};
use super::number::counted;
use super::visible::visible;
use std::io::{self, Write};
use walstat_report::model::view::{Annotation, Level, View};

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
    for gap in accepted_gaps(&view.report) {
        writeln!(out, "::notice title=walstat::{}", data(&gap))?;
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

/// The message of a workflow command. It is read in a log, too: what would command a terminal is shown.
fn data(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    visible(&escaped).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_give_commands() {
        assert_eq!(data("a\n::add-path::/evil"), "a%0A::add-path::/evil");
        assert_eq!(property("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(property("100%,a:b\r"), "100%25%2Ca%3Ab%0D");
    }
}
