//! `--format csv`: one table, one line a row, the keys of the JSON as headings.

use super::rows::{Take, each};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{self, Write};
use walstat_report::model::Report;
use walstat_report::model::names::marked;

/// Writes the table that was asked for.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    each(report, &mut Text(out))
}

struct Text<'o>(&'o mut dyn Write);

impl Take for Text<'_> {
    fn rows<R: Serialize + Default>(&mut self, _: &'static str, rows: &[R]) -> io::Result<()> {
        table(rows, self.0)
    }
}

/// Writes rows: a column for each key that is no object or list in any of them. Without rows
/// there are the headings all the same.
pub fn table<R: Serialize + Default>(rows: &[R], out: &mut dyn Write) -> io::Result<()> {
    let mut nested: BTreeSet<String> = BTreeSet::new();
    let keys = keys_of(&R::default())?;
    for row in rows.iter().map(keys_of).chain([Ok(keys.clone())]) {
        let keys = row?.into_iter();
        nested.extend(keys.filter(|(_, v)| v.is_object() || v.is_array()).map(|(key, _)| key));
    }
    let columns: Vec<&String> = keys.keys().filter(|key| !nested.contains(*key)).collect();
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&columns)?;
    for row in rows {
        let row = keys_of(row)?;
        writer.write_record(columns.iter().map(|key| field(row.get(key.as_str()))))?;
    }
    writer.flush()
}

fn keys_of(row: &impl Serialize) -> io::Result<Map<String, Value>> {
    match serde_json::to_value(row)? {
        Value::Object(keys) => Ok(keys),
        _ => Ok(Map::new()),
    }
}

/// A name as a field of a line that is written piece by piece: in quotes where it needs them.
pub fn quoted(name: &str) -> String {
    let name = marked(name);
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into_owned()
    }
}

fn field(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => marked(text).into_owned(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Default, Serialize)]
    struct Row {
        name: &'static str,
        number: Option<u64>,
        part: Option<Value>,
        share: f64,
    }

    fn csv(rows: &[Row]) -> String {
        let mut text = Vec::new();
        assert!(table(rows, &mut text).is_ok());
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn columns_are_the_keys_that_are_plain_in_every_row() {
        let rows = [
            Row { name: "a,b", number: None, part: None, share: 0.5 },
            Row { name: "=1+1", number: Some(7), part: Some(json!({"x": 1})), share: 1.0 },
        ];
        assert_eq!(csv(&rows), "name,number,share\n\"a,b\",,0.5\n'=1+1,7,1.0\n");
    }

    #[test]
    fn a_name_is_quoted_as_in_a_table() {
        for name in ["a,b", "=1+1", "a\"b", "two\nlines", "plain"] {
            let row = Row { name, ..Row::default() };
            let line = csv(&[row]);
            let begin = format!("name,number,part,share\n{},,,0.0\n", quoted(name));
            assert_eq!(line, begin, "{name}");
        }
    }

    #[derive(Default, Serialize)]
    struct Whole {
        name: &'static str,
        target: Row,
    }

    #[test]
    fn what_is_always_an_object_is_no_heading_without_rows_either() {
        let csv = |rows: &[Whole]| {
            let mut text = Vec::new();
            assert!(table(rows, &mut text).is_ok());
            String::from_utf8_lossy(&text).into_owned()
        };
        assert_eq!(csv(&[]), "name\n");
        assert_eq!(csv(&[Whole::default()]), "name\n\"\"\n");
    }

    #[test]
    fn a_table_without_rows_has_its_headings() {
        assert_eq!(csv(&[]), "name,number,part,share\n");
    }
}
