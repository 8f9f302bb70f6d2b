//! `--format csv`: one table, one line a row, the keys of the JSON as headings.

use crate::report::model::names::marked;
use crate::report::model::{Report, Table};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Writes the table that was asked for: of a dimension that has more than one thing to say, its rows.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Report { rmgrs, records, relations, tables, databases, tablespaces, forks, .. } = report;
    if let Some(transactions) = &report.transactions {
        return table(&transactions.top.rows, out);
    }
    if let Some(blocks) = &report.blocks {
        return table(&blocks.top.rows, out);
    }
    if let Some(timeline) = &report.timeline {
        return table(&timeline.buckets.rows, out);
    }
    if let Some(recovery) = &report.recovery {
        return table(&recovery.cycles.rows, out);
    }
    if let Some(replication) = &report.replication {
        return table(std::slice::from_ref(replication), out);
    }
    if let Some(commits) = &report.commits {
        return table(std::slice::from_ref(commits), out);
    }
    let found = rows(&report.checkpoints, out).or_else(|| rows(relations, out));
    let found = found.or_else(|| rows(tables, out));
    let found = found.or_else(|| rows(databases, out)).or_else(|| rows(tablespaces, out));
    let found = found.or_else(|| rows(forks, out)).or_else(|| rows(records, out));
    found.or_else(|| rows(rmgrs, out)).unwrap_or(Ok(()))
}

/// Writes a table if it is there.
fn rows<R: Serialize + Default>(
    found: &Option<Table<R>>,
    out: &mut dyn Write,
) -> Option<io::Result<()>> {
    found.as_ref().map(|found| table(&found.rows, out))
}

/// Writes rows: a column for each key that is no object or list in any of them. Without rows
/// there are the headings all the same.
pub fn table<R: Serialize + Default>(rows: &[R], out: &mut dyn Write) -> io::Result<()> {
    let mut nested: BTreeSet<String> = BTreeSet::new();
    for row in rows {
        let keys = keys_of(row)?.into_iter();
        nested.extend(keys.filter(|(_, v)| v.is_object() || v.is_array()).map(|(key, _)| key));
    }
    let keys = keys_of(&R::default())?;
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
    fn a_table_without_rows_has_its_headings() {
        assert_eq!(csv(&[]), "name,number,part,share\n");
    }
}
