//! `walstat records`: one row a record, or a block reference, for SQL and for whoever looks closer.

#[cfg(feature = "parquet")]
mod parquet;
mod text;

use std::io::{self, Write};
use walstat_report::model::records::{Column, Row};

/// What rows are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// With headings.
    Csv,
    /// One object a line.
    Ndjson,
    /// Columns, for engines.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Writes rows, one after the other.
pub enum RowWriter {
    /// As text, a line a row.
    Text(text::Lines),
    /// In groups, column by column.
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::Groups>),
}

impl RowWriter {
    /// Writes rows with these columns; what comes before all of them is written now.
    pub fn begin(form: Form, columns: Vec<Column>, out: &mut dyn Write) -> io::Result<RowWriter> {
        let form = match form {
            Form::Table => text::Form::Table,
            Form::Csv => text::Form::Csv,
            Form::Ndjson => text::Form::Ndjson,
            #[cfg(feature = "parquet")]
            Form::Parquet => {
                let groups = parquet::Groups::begin(columns)?;
                return Ok(RowWriter::Parquet(Box::new(groups)));
            }
        };
        let mut lines = text::Lines::of(form, columns);
        lines.head(out)?;
        Ok(RowWriter::Text(lines))
    }

    /// Takes a row.
    pub fn row(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        match self {
            RowWriter::Text(lines) => lines.row(row, out),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(groups) => groups.row(row, out),
        }
    }

    /// All rows were taken.
    pub fn end(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            RowWriter::Text(_) => out.flush(),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(groups) => groups.end(out),
        }
    }
}
