//! Rows of `walstat records` as lines of text.

use crate::render::csv;
use crate::render::number::grouped;
use crate::render::time::moment;
use crate::render::visible::visible;
use std::io::{self, Write};
use walstat_report::model::records::{
    BLOCK_ID, Column, RelationNames, Row, Time, Value, fork_name, image_bytes, rfc3339,
};

/// Formats of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// With headings.
    Csv,
    /// One object a line.
    Ndjson,
}

/// Writes lines.
pub struct Lines {
    form: Form,
    columns: Vec<Column>,
    /// Whether a row is a block reference.
    of_blocks: bool,
    clock: Clock,
}

impl Lines {
    /// Lines with these columns.
    pub fn of(form: Form, columns: Vec<Column>) -> Lines {
        let of_blocks = columns.iter().any(|column| column.name == BLOCK_ID);
        Lines { form, columns, of_blocks, clock: Clock::default() }
    }

    /// Writes what comes before all rows.
    pub fn head(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Table => {
                let size = if self.of_blocks { "data" } else { "size" };
                writeln!(
                    out,
                    "{:<12} {:<19} {:>10} {:<24} {size:>8} {:>8} {:<30}",
                    "LSN", "time", "xid", "record", "FPI", "block"
                )
            }
            Form::Csv => {
                let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
                writeln!(out, "{}", names.join(","))
            }
            Form::Ndjson => Ok(()),
        }
    }

    /// Writes a row.
    pub fn row(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Table => self.table(row, out),
            Form::Csv => self.csv(row, out),
            Form::Ndjson => self.object(row, out),
        }
    }

    fn table(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        let name = format!("{}/{}", row.rmgr, row.record);
        let of_block = row.block.filter(|_| self.of_blocks);
        let (bytes, image, more) = match of_block {
            Some(block) => (block.data_bytes.into(), image_bytes(&block), 0),
            None => {
                let image = row.parts.fpi_bytes;
                (row.total_bytes - image, image, row.block_refs.saturating_sub(1))
            }
        };
        let text = format!(
            "{:<12} {:<19} {:>10} {name:<24} {:>8} {:>8} {}",
            row.lsn.to_string(),
            moment(row.time.map(|time| self.clock.text(time))),
            row.xid,
            grouped(bytes.into()),
            grouped(image.into()),
            place(row, more),
        );
        writeln!(out, "{}", text.trim_end())
    }

    /// Only a name may need quotes.
    fn csv(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            match (column.field)(row) {
                None => {}
                Some(Value::Lsn(lsn)) => write!(out, "{lsn}")?,
                Some(Value::Number(number)) => write!(out, "{number}")?,
                Some(Value::Text(text)) => out.write_all(csv::quoted(text).as_bytes())?,
                Some(Value::Time(time)) => {
                    out.write_all(self.clock.text(time).as_bytes())?;
                }
                Some(Value::Flag(flag)) => write!(out, "{flag}")?,
            }
        }
        out.write_all(b"\n")
    }

    fn object(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        for (index, column) in self.columns.iter().enumerate() {
            let begin = if index == 0 { '{' } else { ',' };
            write!(out, "{begin}\"{}\":", column.name)?;
            match (column.field)(row) {
                None => out.write_all(b"null")?,
                Some(Value::Lsn(lsn)) => write!(out, "\"{lsn}\"")?,
                Some(Value::Number(number)) => write!(out, "{number}")?,
                Some(Value::Text(text)) => serde_json::to_writer(&mut *out, text)?,
                Some(Value::Time(time)) => write!(out, "\"{}\"", self.clock.text(time))?,
                Some(Value::Flag(flag)) => write!(out, "{flag}")?,
            }
        }
        out.write_all(b"}\n")
    }
}

/// The block of a row, as people read it; `more`: how many others the record refers to.
fn place(row: &Row, more: u32) -> String {
    let Some(block) = &row.block else { return String::new() };
    let fork = Some(fork_name(block.fork)).filter(|fork| *fork != "main").unwrap_or_default();
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    let file = match row.names.as_deref() {
        Some(RelationNames { schema: Some(schema), relation, .. }) => {
            format!("{schema}.{relation}")
        }
        Some(names) => names.relation.to_string(),
        None => block.relation.to_string(),
    };
    format!("{} {fork}{}{more}", visible(&file), block.block)
}

/// Times as text. Most rows have the time of the row before.
#[derive(Default)]
struct Clock {
    last: Option<Time>,
    text: String,
}

impl Clock {
    /// The time in RFC 3339; empty of one that has no date.
    fn text(&mut self, time: Time) -> &str {
        if self.last != Some(time) {
            self.last = Some(time);
            self.text = rfc3339(time).unwrap_or_default();
        }
        &self.text
    }
}
