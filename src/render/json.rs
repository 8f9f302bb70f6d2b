//! `--format json`: the model as it is, one object; also where there is no report.

use serde::Serialize;
use std::io::{self, Write};

/// Writes a report, or the answer where there is none, as JSON, indented.
pub fn render(result: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, result).map_err(io::Error::from)?;
    writeln!(out)
}
