//! `walstat names`: rows of relations, for people, for other programs, and for `--names`.

use super::number::UNKNOWN;
use super::style::plain;
use super::visible::visible;
use super::{csv, json};
use serde_json::{Map, Value};
use std::io::{self, Write};
use walstat_report::model::names::{Listed, NamesReport};

/// Writes a table for people.
pub fn table(report: &NamesReport, out: &mut dyn Write) -> io::Result<()> {
    let mut table = plain(&["File", "Relation", "Kind", "Oid", "Table", "Parent", "Source"]);
    for row in &report.names {
        let number = |number: Option<u32>| number.map_or(UNKNOWN.to_owned(), |oid| oid.to_string());
        let names = [row.database_name.as_deref(), row.schema.as_deref(), Some(row.name.as_str())];
        let name: Vec<&str> = names.into_iter().flatten().collect();
        table.add_row([
            row.file().map_or(UNKNOWN.to_owned(), |file| file.to_string()),
            visible(&name.join(".")).into_owned(),
            row.kind.map_or(UNKNOWN.to_owned(), String::from),
            row.oid.to_string(),
            number(row.table),
            number(row.parent),
            row.names_source.map_or(UNKNOWN.to_owned(), |source| source.to_string()),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// Writes one object.
pub fn object(report: &NamesReport, out: &mut dyn Write) -> io::Result<()> {
    json::render(report, out)
}

/// Writes an object a line.
pub fn lines(report: &NamesReport, out: &mut dyn Write) -> io::Result<()> {
    for row in &report.names {
        serde_json::to_writer(&mut *out, row)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes CSV.
pub fn csv(report: &NamesReport, out: &mut dyn Write) -> io::Result<()> {
    csv::table(&report.names, out)
}

/// Writes lines of columns as `COPY` does, with headings.
pub fn tsv(report: &NamesReport, out: &mut dyn Write) -> io::Result<()> {
    let columns = columns(&Listed::default())?;
    let headings: Vec<&str> = columns.keys().map(String::as_str).collect();
    writeln!(out, "{}", headings.join("\t"))?;
    for row in &report.names {
        let fields = self::columns(row)?;
        let fields: Vec<String> = fields.values().map(field).collect();
        writeln!(out, "{}", fields.join("\t"))?;
    }
    Ok(())
}

fn columns(row: &Listed) -> io::Result<Map<String, Value>> {
    match serde_json::to_value(row)? {
        Value::Object(columns) => Ok(columns),
        _ => Ok(Map::new()),
    }
}

/// A value as `COPY` writes it.
fn field(value: &Value) -> String {
    match value {
        Value::Null => "\\N".to_owned(),
        Value::String(text) => text.chars().fold(String::new(), |mut field, c| {
            match c {
                '\\' => field.push_str("\\\\"),
                '\n' => field.push_str("\\n"),
                '\r' => field.push_str("\\r"),
                '\t' => field.push_str("\\t"),
                c => field.push(c),
            }
            field
        }),
        other => other.to_string(),
    }
}
