//! Names as lines of columns: CSV, and TSV as `COPY` writes it.

use super::{FileWarnings, NEEDED, Placed};
use crate::catalog::listing::Listed;
use std::collections::HashMap;
use walstat_input::formula::unmarked;

/// Only lists that walstat wrote have this column; they mark texts that would be formulas.
const OWN_COLUMN: &str = "names_source";

/// What the columns are.
struct Headings {
    places: HashMap<String, usize>,
    count: usize,
    is_own: bool,
}

impl Headings {
    /// The headings, if they are those of a names file.
    fn of(fields: &[String], line: u64, warnings: &mut FileWarnings) -> Option<Headings> {
        let place = |(place, field): (usize, &String)| (field.trim().to_owned(), place);
        let places: HashMap<String, usize> = fields.iter().enumerate().map(place).collect();
        if let Some(missing) = NEEDED.iter().find(|key| !places.contains_key(**key)) {
            // It may be any file: what is not known to be a names file is not shown.
            let count = fields.len();
            warnings.add(line, &format!("found {count} columns, expected one called {missing}"));
            return None;
        }
        let is_own = places.contains_key(OWN_COLUMN);
        Some(Headings { places, count: fields.len(), is_own })
    }

    /// Whether a row is the headings again, of a file put together of several.
    fn repeat_as(&self, fields: &[String]) -> bool {
        let is_there = |(place, field): (usize, &String)| self.places.get(field) == Some(&place);
        fields.len() == self.count && fields.iter().enumerate().all(is_there)
    }

    fn row(&self, fields: &[String]) -> Result<Listed, String> {
        if fields.len() != self.count {
            return Err(format!("found {} columns, expected {}", fields.len(), self.count));
        }
        Listed::of_columns(|key| {
            let field = fields.get(*self.places.get(key)?)?.as_str();
            Some(if self.is_own { unmarked(field) } else { field })
        })
    }
}

/// The rows of lines; the first one has the headings.
fn rows(
    lines: impl Iterator<Item = (u64, Result<Vec<String>, String>)>,
    warnings: &mut FileWarnings,
) -> Vec<Placed> {
    let (mut headings, mut rows) = (None::<Headings>, Vec::new());
    for (line, fields) in lines {
        let row = match (fields, &headings) {
            (Ok(fields), None) => {
                headings = Headings::of(&fields, line, warnings);
                match &headings {
                    Some(_) => continue,
                    None => return rows,
                }
            }
            (Ok(fields), Some(headings)) if headings.repeat_as(&fields) => continue,
            (Ok(fields), Some(headings)) => headings.row(&fields),
            (Err(what), _) => Err(what),
        };
        rows.extend(warnings.row(line, row));
    }
    if headings.is_none() {
        warnings.add(1, "found no headings, expected those of 'walstat names --sql'");
    }
    rows
}

/// The rows of CSV.
pub(super) fn csv(bytes: &[u8], warnings: &mut FileWarnings) -> Vec<Placed> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut columns: Vec<String> = Vec::new();
    let lines = reader.byte_records().map_while(|record| {
        // Bytes in memory can always be read.
        let record = record.ok()?;
        let line = record.position().map_or(1, csv::Position::line);
        let fields = texts(record.iter(), &columns);
        if let (true, Ok(fields)) = (columns.is_empty(), &fields) {
            columns.clone_from(fields);
        }
        Some((line, fields))
    });
    rows(lines, warnings)
}

/// Bytes as texts; `Err` names the column of those that are none.
fn texts<'f>(
    fields: impl Iterator<Item = &'f [u8]>,
    columns: &[String],
) -> Result<Vec<String>, String> {
    let text = |(place, bytes): (usize, &[u8])| {
        let column = || columns.get(place).map_or("line", |column| column.as_str());
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|_| format!("{}: found bytes that are no UTF-8", column()))
    };
    fields.enumerate().map(text).collect()
}

/// The rows of TSV.
pub(super) fn tsv(bytes: &[u8], warnings: &mut FileWarnings) -> Vec<Placed> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1u64..);
    let lines = lines.map(|(line, number)| (line.strip_suffix(b"\r").unwrap_or(line), number));
    let lines = lines.filter(|(line, _)| !line.is_empty() && *line != b"\\.");
    let lines = lines.map(|(line, number)| {
        let fields = texts(line.split(|byte| *byte == b'\t'), &[]);
        let fields =
            fields.and_then(|fields| fields.iter().map(|field| unescaped(field)).collect());
        (number, fields)
    });
    rows(lines, warnings)
}

/// A text as `COPY` reads it; null is empty.
fn unescaped(field: &str) -> Result<String, String> {
    if field == "\\N" {
        return Ok(String::new());
    }
    let (mut text, mut chars) = (String::with_capacity(field.len()), field.chars());
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => escape(chars.next())?,
            c => c,
        });
    }
    Ok(text)
}

fn escape(c: Option<char>) -> Result<char, String> {
    match c {
        Some('\\') => Ok('\\'),
        Some('b') => Ok('\u{8}'),
        Some('f') => Ok('\u{c}'),
        Some('n') => Ok('\n'),
        Some('r') => Ok('\r'),
        Some('t') => Ok('\t'),
        Some('v') => Ok('\u{b}'),
        other => {
            let found = other.map_or("nothing".to_owned(), |c| format!("'{}'", c.escape_debug()));
            Err(format!("found {found} after a backslash, expected an escape of COPY"))
        }
    }
}
