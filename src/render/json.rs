//! `--format json`: the model as it is, one object.

use crate::report::model::Report;
use std::io::{self, Write};

/// Writes the report as JSON, indented.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report).map_err(io::Error::from)?;
    writeln!(out)
}
