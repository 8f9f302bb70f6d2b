//! Two reports side by side: what changed, by resource manager, record type and table.

use super::model::diff::{Change, Compared, Diff, RecordChange, RmgrChange, Side, TableChange};
use super::model::table::{RecordRow, RmgrRow, Table, TableRow};
use super::model::who::WholeTableRow;
use super::model::{self, CommandName, Numbers, Report};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walstat_analyse::ratios::ratio;

/// Puts them side by side.
pub fn diff(before: &Report, after: &Report) -> Diff {
    Diff {
        walstat: model::VERSION.to_owned(),
        schema: model::SCHEMA.to_owned(),
        command: CommandName::Diff,
        before: side(before),
        after: side(after),
        totals: compared(&before.totals.numbers(), &after.totals.numbers()),
        rmgrs: rmgrs(before, after),
        records: records(before, after),
        tables: tables(before, after),
        notes: notes(before, after),
    }
}

fn side(report: &Report) -> Side {
    Side {
        input: report.input.clone(),
        range: report.range.clone(),
        commits: report.ratios.commits,
        // Of what the filters left, which is what is compared.
        bytes_per_commit: ratio(report.totals.total_bytes, report.ratios.commits),
        problems: report.problems.len(),
    }
}

fn compared(before: &Numbers, after: &Numbers) -> Compared {
    let change = |of: fn(&Numbers) -> u64| of(after).wrapping_sub(of(before)) as i64;
    Compared {
        before: *before,
        after: *after,
        change: Change {
            count: change(|numbers| numbers.count),
            record_bytes: change(|numbers| numbers.record_bytes),
            fpi_bytes: change(|numbers| numbers.fpi_bytes),
            total_bytes: change(|numbers| numbers.total_bytes),
            fpi_count: change(|numbers| numbers.fpi_count),
        },
    }
}

/// Rows of both sides by what makes them the same; those that changed, most first.
fn changes<'r, K: Ord + Clone, R: 'r>(
    before: impl Iterator<Item = (K, &'r R, Numbers)>,
    after: impl Iterator<Item = (K, &'r R, Numbers)>,
) -> Vec<(&'r R, Compared)> {
    let mut rows: BTreeMap<K, (&R, Numbers, Numbers)> = BTreeMap::new();
    for (key, row, numbers) in before {
        rows.entry(key).or_insert((row, Numbers::default(), Numbers::default())).1.add(&numbers);
    }
    for (key, row, numbers) in after {
        let entry = rows.entry(key).or_insert((row, Numbers::default(), Numbers::default()));
        // What a row is called now.
        entry.0 = row;
        entry.2.add(&numbers);
    }
    let compared = rows.into_values().map(|(row, before, after)| (row, compared(&before, &after)));
    let mut changes: Vec<_> = compared.filter(|(_, c)| c.change != Change::default()).collect();
    // Those that changed alike stay in the order of their names.
    changes.sort_by_key(|(_, compared)| Reverse(compared.change.total_bytes.unsigned_abs()));
    changes
}

fn rmgrs(before: &Report, after: &Report) -> Vec<RmgrChange> {
    let rows = |report: &'_ Report| -> Vec<RmgrRow> { rows(&report.rmgrs) };
    let (before, after) = (rows(before), rows(after));
    let key = |row: &RmgrRow| row.rmgr.clone();
    let keyed = |row| (key(row), row, TableRow::numbers(row));
    changes(before.iter().map(keyed), after.iter().map(keyed))
        .into_iter()
        .map(|(row, compared)| RmgrChange { rmgr: row.rmgr.clone(), compared })
        .collect()
}

fn records(before: &Report, after: &Report) -> Vec<RecordChange> {
    let (before, after) = (rows(&before.records), rows(&after.records));
    let keyed = |row: &RecordRow| ((row.rmgr.clone(), row.record.clone()), TableRow::numbers(row));
    let with = |row| {
        let (key, numbers) = keyed(row);
        (key, row, numbers)
    };
    changes(before.iter().map(with), after.iter().map(with))
        .into_iter()
        .map(|(row, compared)| RecordChange {
            rmgr: row.rmgr.clone(),
            record: row.record.clone(),
            compared,
        })
        .collect()
}

fn tables(before: &Report, after: &Report) -> Vec<TableChange> {
    let (before, after) = (rows(&before.tables), rows(&after.tables));
    let with = |row| (identity(row), row, TableRow::numbers(row));
    changes(before.iter().map(with), after.iter().map(with))
        .into_iter()
        .map(|(row, compared)| TableChange {
            database: row.database,
            database_name: row.database_name.clone(),
            oid: row.oid,
            schema: row.schema.clone(),
            name: row.name.clone(),
            label: match row.name {
                Some(_) => row.full_label(),
                None => row.label(),
            },
            compared,
        })
        .collect()
}

/// What makes two rows the same table.
fn identity(row: &WholeTableRow) -> (String, String, String) {
    let database = row.database.map_or_else(String::new, |oid| oid.to_string());
    match &row.name {
        Some(name) => (
            row.database_name.clone().unwrap_or(database),
            row.schema.clone().unwrap_or_default(),
            name.clone(),
        ),
        None => (database, String::new(), row.oid.map_or_else(|| row.label(), |o| o.to_string())),
    }
}

fn rows<R: Clone>(table: &Option<Table<R>>) -> Vec<R> {
    table.as_ref().map_or_else(Vec::new, |table| table.rows.clone())
}

/// What makes the two sides hard to compare.
fn notes(before: &Report, after: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differs = |what: &str, before: &str, after: &str| {
        if before != after {
            notes.push(format!("{what} before: {before}, after: {after}"));
        }
    };
    differs("PostgreSQL", &before.input.postgres, &after.input.postgres);
    let filters =
        |report: &Report| report.input.filters.options().unwrap_or_else(|| "no filters".to_owned());
    differs("filters", &filters(before), &filters(after));
    let has = |report: &Report| match report.tables {
        Some(_) => "there are tables",
        None => "no tables (walstat -f json without --stats has them)",
    };
    differs("tables", has(before), has(after));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    fn with_records(rows: &[(&str, u64, u64)]) -> Report {
        let total = rows.iter().map(|(_, _, bytes)| bytes).sum();
        let mut report = sample::report(0, total);
        let row = |(name, count, bytes): &(&str, u64, u64)| RecordRow {
            rmgr: "Heap".into(),
            record: (*name).to_owned(),
            info: "0x00".into(),
            sums: model::Sums {
                count: *count,
                record_bytes: *bytes,
                total_bytes: *bytes,
                ..Default::default()
            },
        };
        report.records = Some(rows.iter().map(row).collect::<Vec<_>>().into());
        report
    }

    #[test]
    fn what_changed_most_comes_first_and_what_did_not_is_left_out() {
        let before = with_records(&[("INSERT", 10, 1000), ("DELETE", 1, 50), ("LOCK", 5, 300)]);
        let after = with_records(&[("INSERT", 11, 1100), ("DELETE", 1, 50), ("UPDATE", 2, 200)]);
        let diff = diff(&before, &after);
        let told: Vec<(&str, i64, i64)> = diff
            .records
            .iter()
            .map(|row| {
                (row.record.as_str(), row.compared.change.count, row.compared.change.total_bytes)
            })
            .collect();
        assert_eq!(told, [("LOCK", -5, -300), ("UPDATE", 2, 200), ("INSERT", 1, 100)]);
        assert_eq!(diff.totals.change.total_bytes, 0);
        assert!(diff.notes.is_empty(), "{:?}", diff.notes);
    }
}
