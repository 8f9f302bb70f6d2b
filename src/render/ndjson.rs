//! `--format ndjson`: one line a row, an object with the keys of the JSON's row, and `table`, the key
//! of the list that it is of.

use super::rows::{Take, each};
use serde::Serialize;
use std::io::{self, Write};
use walstat_report::model::{Report, Unreadable};

/// Writes all rows of the lists that were asked for.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    each(report, &mut Lines(out))
}

/// Writes why there is no report.
pub fn unreadable(answer: &Unreadable, out: &mut dyn Write) -> io::Result<()> {
    line(answer, out)
}

struct Lines<'o>(&'o mut dyn Write);

#[derive(Serialize)]
struct Line<'r, R> {
    table: &'static str,
    #[serde(flatten)]
    row: &'r R,
}

impl Take for Lines<'_> {
    fn rows<R: Serialize + Default>(&mut self, table: &'static str, rows: &[R]) -> io::Result<()> {
        rows.iter().try_for_each(|row| line(&Line { table, row }, self.0))
    }
}

/// Writes one object as a line.
pub fn line(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)
}
