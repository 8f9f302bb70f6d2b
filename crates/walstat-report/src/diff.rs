//! Two reports side by side: what changed, by resource manager, record type and table.

use super::model::diff::{Change, Compared, Diff, RecordChange, RmgrChange, Side, TableChange};
use super::model::table::{RecordRow, RmgrRow, Table, TableRow};
use super::model::who::WholeTableRow;
use super::model::{self, CommandName, Input, Numbers, Range, Ratios, Report, Sums};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walstat_analyse::ratios::ratio;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::row::kind::{INDEX, PARTITIONED_INDEX};

/// What is compared of a report. From JSON it is read without what else is in a report, and whatever is added
/// to reports later.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ComparedReport {
    input: Input,
    range: Range,
    totals: Sums,
    ratios: Ratios,
    rmgrs: Option<Table<RmgrRow>>,
    records: Option<Table<RecordRow>>,
    tables: Option<Table<WholeTableRow>>,
    #[serde(deserialize_with = "length")]
    problems: usize,
}

/// How long a list is.
fn length<'de, D: Deserializer<'de>>(list: D) -> Result<usize, D::Error> {
    Ok(Vec::<IgnoredAny>::deserialize(list)?.len())
}

impl From<Report> for ComparedReport {
    fn from(report: Report) -> ComparedReport {
        ComparedReport {
            input: report.input,
            range: report.range,
            totals: report.totals,
            ratios: report.ratios,
            rmgrs: report.rmgrs,
            records: report.records,
            tables: report.tables,
            problems: report.problems.len(),
        }
    }
}

/// Puts them side by side.
pub fn diff(before: &ComparedReport, after: &ComparedReport) -> Diff {
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

fn side(report: &ComparedReport) -> Side {
    Side {
        input: report.input.clone(),
        range: report.range.clone(),
        commits: report.ratios.commits,
        // Of what the filters left, which is what is compared.
        bytes_per_commit: ratio(report.totals.total_bytes, report.ratios.commits),
        fpi_ratio: report.ratios.fpi_ratio,
        hot_ratio: report.ratios.hot_ratio,
        problems: report.problems,
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
    changes.order_by_key(|(_, compared)| Reverse(compared.change.total_bytes.unsigned_abs()));
    changes
}

fn rmgrs(before: &ComparedReport, after: &ComparedReport) -> Vec<RmgrChange> {
    let rows = |report: &'_ ComparedReport| -> Vec<RmgrRow> { rows(&report.rmgrs) };
    let (before, after) = (rows(before), rows(after));
    let key = |row: &RmgrRow| row.rmgr.clone();
    let keyed = |row| (key(row), row, TableRow::numbers(row));
    changes(before.iter().map(keyed), after.iter().map(keyed))
        .into_iter()
        .map(|(row, compared)| RmgrChange { rmgr: row.rmgr.clone(), compared })
        .collect()
}

fn records(before: &ComparedReport, after: &ComparedReport) -> Vec<RecordChange> {
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

fn tables(before: &ComparedReport, after: &ComparedReport) -> Vec<TableChange> {
    let is_one_cluster = before.input.system_identifier == after.input.system_identifier;
    let (before, after) = (rows(&before.tables), rows(&after.tables));
    let parts = Parts::of(before.iter().chain(&after), is_one_cluster);
    let with = |row| {
        let table = parts.table_of(row).unwrap_or(row);
        (identity(table), table, TableRow::numbers(row))
    };
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

/// Database, schema and name; or what stands for them.
type Identity = (String, String, String);

/// The tables of what one side knows as a part of a table, and the other as a relation of its own: an
/// index that is gone, of which the catalogs know nothing any more.
struct Parts<'r> {
    /// By file.
    files: BTreeMap<&'r str, &'r WholeTableRow>,
    /// By the index's name.
    indexes: BTreeMap<Identity, &'r WholeTableRow>,
}

impl<'r> Parts<'r> {
    /// The parts of some tables; files are told only within one cluster.
    fn of(rows: impl Iterator<Item = &'r WholeTableRow>, is_one_cluster: bool) -> Parts<'r> {
        let mut parts = Parts { files: BTreeMap::new(), indexes: BTreeMap::new() };
        for table in rows.filter(|row| row.name.is_some() && !is_index(row)) {
            let indexes = table.indexes.iter().map(|index| &index.part);
            let all = table.heap.iter().chain(&table.toast).chain(indexes);
            let files = all.flat_map(|part| &part.relfilenodes).filter(|_| is_one_cluster);
            parts.files.extend(files.map(|file| (file.as_str(), table)));
            for index in &table.indexes {
                let schema = index.schema.clone().unwrap_or_default();
                parts.indexes.insert((database(table), schema, index.name.clone()), table);
            }
        }
        parts
    }

    /// The table that a row is only a part of.
    fn table_of(&self, row: &WholeTableRow) -> Option<&'r WholeTableRow> {
        if row.name.is_some() {
            return self.indexes.get(&identity(row)).filter(|_| is_index(row)).copied();
        }
        let mut files = row.heap.iter().flat_map(|part| &part.relfilenodes);
        let first = *self.files.get(files.next()?.as_str())?;
        let is_its = |file: &String| {
            self.files.get(file.as_str()).is_some_and(|other| identity(other) == identity(first))
        };
        files.all(is_its).then_some(first)
    }
}

/// Whether a row is an index, whose table is not known.
fn is_index(row: &WholeTableRow) -> bool {
    row.is_of_kind(&[INDEX, PARTITIONED_INDEX])
}

/// A database's name, or its oid.
fn database(row: &WholeTableRow) -> String {
    let oid = || row.database.map_or_else(String::new, |oid| oid.to_string());
    row.database_name.clone().unwrap_or_else(oid)
}

/// What makes two rows the same table.
fn identity(row: &WholeTableRow) -> Identity {
    let oid = row.database.map_or_else(String::new, |oid| oid.to_string());
    match &row.name {
        Some(name) => (database(row), row.schema.clone().unwrap_or_default(), name.clone()),
        None => (oid, String::new(), row.oid.map_or_else(|| row.label(), |o| o.to_string())),
    }
}

fn rows<R: Clone>(table: &Option<Table<R>>) -> Vec<R> {
    table.as_ref().map_or_else(Vec::new, |table| table.rows.clone())
}

/// What makes the two sides hard to compare.
fn notes(before: &ComparedReport, after: &ComparedReport) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differs = |what: &str, before: &str, after: &str| {
        if before != after {
            notes.push(format!("{what} before: {before}, after: {after}"));
        }
    };
    differs("PostgreSQL", &before.input.postgres, &after.input.postgres);
    let filters = |report: &ComparedReport| {
        report.input.filters.options().unwrap_or_else(|| "no filters".to_owned())
    };
    differs("filters", &filters(before), &filters(after));
    let without = match (&before.tables, &after.tables) {
        (Some(_), None) => Some("second"),
        (None, Some(_)) => Some("first"),
        _ => None,
    };
    notes.extend(without.map(|side| {
        format!(
            "the {side} report has no tables: walstat -f json, without --stats, makes one with them"
        )
    }));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::model::who::{IndexPart, Part};

    fn with_records(rows: &[(&str, u64, u64)]) -> ComparedReport {
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
        report.into()
    }

    /// An index that was dropped is a file without a name, or a relation of its own, where its table is
    /// not known any more.
    #[test]
    fn indexes_that_are_gone_are_folded_into_their_table() {
        let part = |file: &str| Part { relfilenodes: vec![file.to_owned()], ..Part::default() };
        let row = |bytes| WholeTableRow {
            database: Some(5),
            schema: Some("public".to_owned()),
            numbers: Numbers { total_bytes: bytes, ..Numbers::default() },
            ..WholeTableRow::default()
        };
        let index = |name: &str, file: &str| IndexPart {
            schema: Some("public".to_owned()),
            name: name.to_owned(),
            part: part(file),
            ..IndexPart::default()
        };
        let table = |bytes, indexes| WholeTableRow {
            name: Some("orders".to_owned()),
            heap: Some(part("1663/5/100")),
            indexes,
            ..row(bytes)
        };
        let named = |name: &str, kind: &str| WholeTableRow {
            name: Some(name.to_owned()),
            kind: Some(kind.to_owned()),
            ..row(10)
        };
        let report = |tables: Vec<WholeTableRow>| -> ComparedReport {
            Report { tables: Some(tables.into()), ..sample::report(0, 1000) }.into()
        };
        let indexes = vec![index("by_day", "1663/5/101"), index("by_name", "1663/5/102")];
        let before = report(vec![table(1000, indexes)]);
        let file = WholeTableRow { heap: Some(part("1663/5/101")), ..row(200) };
        let other = WholeTableRow { heap: Some(part("1663/5/999")), ..row(7) };
        let after =
            vec![table(300, vec![]), file, named("by_name", "i"), named("by_name", "r"), other];
        let told = |before: &ComparedReport, after: &ComparedReport| -> Vec<(String, i64)> {
            let tables = diff(before, after).tables.into_iter();
            tables.map(|row| (row.label, row.compared.change.total_bytes)).collect()
        };
        let after = report(after);
        let (orders, by_name) = ("5: public.orders".to_owned(), "5: public.by_name".to_owned());
        let unknown = |file: &str, bytes| (file.to_owned(), bytes);
        let folded = vec![(orders.clone(), -490), (by_name.clone(), 10), unknown("1663/5/999", 7)];
        assert_eq!(told(&before, &after), folded);
        let reversed: Vec<_> = folded.into_iter().map(|(label, bytes)| (label, -bytes)).collect();
        assert_eq!(told(&after, &before), reversed);
        // In another cluster the same number is another file.
        let mut elsewhere = before;
        elsewhere.input.system_identifier = "2".to_owned();
        let apart =
            [(orders, -690), unknown("1663/5/101", 200), (by_name, 10), unknown("1663/5/999", 7)];
        assert_eq!(told(&elsewhere, &after), apart);
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
