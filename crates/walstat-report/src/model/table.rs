//! Tables of the model: rows, the order and number of them that was asked for, and what was left
//! out for that.

use super::{Numbers, Report, Sums};
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use walstat_format::ordered::OrderBy;

/// A table. In JSON it is the list of its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table<R> {
    /// The rows that are shown.
    pub rows: Vec<R>,
    /// Those that are not, if there are any.
    #[serde(skip)]
    pub left_out: Option<LeftOut>,
    /// What those are called, as hashes: a row that is called the same says more of itself, however
    /// many rows are shown.
    #[serde(skip)]
    left_out_labels: BTreeSet<u64>,
    /// In which databases of users those lie.
    #[serde(skip)]
    left_out_databases: BTreeSet<u32>,
}

/// Rows of a table that are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// How many.
    pub rows: usize,
    /// Their sums.
    pub numbers: Numbers,
    /// See [`TableRow::main_data_only_bytes`].
    pub main_data_only_bytes: Option<u64>,
}

/// A row of a table.
pub trait TableRow {
    /// How people call it; rows of the same sums are in the order of these.
    fn label(&self) -> String;
    /// A longer label, for rows whose [`TableRow::label`] is shared with another row.
    fn full_label(&self) -> String {
        self.label()
    }
    /// The full identity, for rows whose [`TableRow::full_label`] is still shared with another row.
    fn exact_label(&self) -> String {
        self.full_label()
    }
    /// Its sums.
    fn numbers(&self) -> Numbers;
    /// In whose database it lies, where rows lie in several.
    fn home(&self) -> Home {
        Home::Nowhere
    }
    /// Main data and record headers, where the row tells them.
    fn main_data_only_bytes(&self) -> Option<u64> {
        None
    }
}

named! {
    /// What rows are ordered by; largest first, names from A to Z.
    pub enum Sort {
        Bytes "bytes" "All bytes";
        Count "count" "Records";
        Fpi "fpi" "Image bytes";
        Name "name" "Name";
    }
}

/// In whose database a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// In none.
    Nowhere,
    /// In a template: its rows say so.
    Template,
    /// In a database of users, by its oid: where there are several, all rows say in which.
    Database(u32),
}

/// A row as tables for people have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is about.
    pub label: String,
    /// Its sums.
    pub numbers: Numbers,
    /// Its part of the table.
    pub shares: Shares,
    /// See [`TableRow::main_data_only_bytes`].
    pub main_data_only_bytes: Option<u64>,
}

/// A row's part of the whole table, in percent; 0 where the table's sum is 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Of all records.
    pub count: f64,
    /// Of all record bytes.
    pub record: f64,
    /// Of all image bytes.
    pub fpi: f64,
    /// Of all bytes.
    pub total: f64,
}

impl<R> Default for Table<R> {
    fn default() -> Table<R> {
        Vec::new().into()
    }
}

impl<R> From<Vec<R>> for Table<R> {
    fn from(rows: Vec<R>) -> Table<R> {
        Table {
            rows,
            left_out: None,
            left_out_labels: BTreeSet::new(),
            left_out_databases: BTreeSet::new(),
        }
    }
}

impl<R> Table<R> {
    /// Rows, and what was left out beside them.
    pub(crate) fn of(rows: Vec<R>, left_out: Option<LeftOut>) -> Table<R> {
        Table { left_out, ..Table::from(rows) }
    }
}

/// So many rows more than are kept are gathered before the others are left out.
const GATHERED: usize = 1000;
/// Of so many rows that are left out it is known what they are called.
const LABELS_MAX: usize = 100_000;

/// How many rows are kept; 0 keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Top {
    /// Of resource managers, which are few.
    pub rmgrs: usize,
    /// Of the timeline's buckets, which are as few as fit.
    pub buckets: usize,
    /// Of checkpoint cycles.
    pub cycles: usize,
    /// Of every other table.
    pub others: usize,
}

impl Report {
    /// Orders the rows of all tables and keeps the first ones.
    pub fn arrange(&mut self, sort: Sort, top: Top) {
        if let Some(table) = &mut self.rmgrs {
            table.arrange(sort, top.rmgrs);
        }
        arrange(&mut self.records, sort, top.others);
        arrange(&mut self.relations, sort, top.others);
        arrange(&mut self.tables, sort, top.others);
        arrange(&mut self.databases, sort, top.others);
        arrange(&mut self.tablespaces, sort, top.others);
        arrange(&mut self.forks, sort, top.others);
        arrange(&mut self.kinds, sort, top.others);
        if let Some(blocks) = &mut self.blocks {
            blocks.top.cut(top.others);
        }
        if let Some(transactions) = &mut self.transactions {
            transactions.top.cut(top.others);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.buckets.cut(top.buckets);
        }
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.cut(top.cycles);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.cycles.cut(top.others);
        }
    }
}

fn arrange<R: TableRow>(table: &mut Option<Table<R>>, sort: Sort, top: usize) {
    if let Some(table) = table {
        table.arrange(sort, top);
    }
}

impl<R: TableRow> Table<R> {
    /// Of very many rows those that [`Table::arrange`] would keep, and some more.
    pub(crate) fn gather(rows: impl Iterator<Item = R>, sort: Sort, top: usize) -> Table<R> {
        let mut table = Table::default();
        for row in rows {
            table.rows.push(row);
            if top > 0 && table.rows.len() > 2 * top + GATHERED {
                table.arrange(sort, top);
            }
        }
        table
    }

    /// Orders the rows and keeps the first `top`; 0 keeps all.
    pub(crate) fn arrange(&mut self, sort: Sort, top: usize) {
        self.rows.order_by(|a, b| compare(a, b, sort));
        self.cut(top);
    }

    /// Keeps the first `top` rows, which have an order of their own; 0 keeps all.
    pub fn cut(&mut self, top: usize) {
        if top == 0 || self.rows.len() <= top {
            return;
        }
        let mut left_out = self.left_out.take().unwrap_or_default();
        for row in self.rows.drain(top..) {
            if self.left_out_labels.len() < LABELS_MAX {
                self.left_out_labels.insert(hash_of(&row.label()));
            }
            self.left_out_databases.extend(user_database(&row));
            left_out.rows += 1;
            left_out.numbers.add(&row.numbers());
            let sum = left_out.main_data_only_bytes.unwrap_or_default();
            left_out.main_data_only_bytes = row.main_data_only_bytes().map(|bytes| bytes + sum);
        }
        self.left_out = Some(left_out);
    }

    /// The rows as lines, with their part of `all`. Rows that are called alike say more.
    pub fn lines(&self, all: &Sums) -> impl Iterator<Item = Line> {
        self.labels()
            .into_iter()
            .zip(&self.rows)
            .map(|(label, row)| Line::new(label, row.numbers(), row.main_data_only_bytes(), all))
    }

    /// Whether rows lie in several databases of users.
    fn is_of_several_databases(&self) -> bool {
        let shown = self.rows.iter().filter_map(user_database);
        let first = self.left_out_databases.iter().copied().chain(shown);
        let mut others = first.clone().skip_while(|oid| Some(*oid) == first.clone().next());
        others.next().is_some()
    }

    /// How people call a row of this table: with its database, or without.
    pub(crate) fn label_of(&self, row: &R) -> String {
        self.labelling().label_of(row)
    }

    /// The same for very many rows: how the table looks is found out once.
    pub(crate) fn labelling(&self) -> Labelling {
        Labelling { with_databases: self.is_of_several_databases() }
    }

    /// How people call the rows, each differently where that can be.
    pub fn labels(&self) -> Vec<String> {
        let labels: Vec<String> = self.rows.iter().map(R::label).collect();
        let full: Vec<String> = self.rows.iter().map(R::full_label).collect();
        let own = self.rows.iter().filter(|row| user_database(*row).is_some());
        let own: Vec<String> = own.map(R::label).collect();
        let (counts, own_counts, full_counts) = (counts(&labels), counts(&own), counts(&full));
        let several = |counts: &BTreeMap<&str, usize>, label: &String| {
            counts.get(label.as_str()).is_some_and(|count| *count > 1)
        };
        let are_several = self.is_of_several_databases();
        let label = |((label, full), row): ((&String, &String), &R)| {
            let is_told = match row.home() {
                Home::Nowhere => {
                    several(&counts, label) || self.left_out_labels.contains(&hash_of(label))
                }
                Home::Template => true,
                Home::Database(_) => are_several || several(&own_counts, label),
            };
            match (!is_told, several(&full_counts, full)) {
                (true, _) => label.clone(),
                (false, false) => full.clone(),
                (false, true) => row.exact_label(),
            }
        };
        labels.iter().zip(&full).zip(&self.rows).map(label).collect()
    }

    /// The rows that were left out as one line, which `label` calls by their number.
    pub fn left_out(&self, all: &Sums, label: impl Fn(usize) -> String) -> Option<Line> {
        let LeftOut { rows, numbers, main_data_only_bytes } = self.left_out?;
        Some(Line::new(label(rows), numbers, main_data_only_bytes, all))
    }
}

/// How rows of a table are called, one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Labelling {
    with_databases: bool,
}

impl Labelling {
    /// How people call a row: with its database, or without.
    pub(crate) fn label_of<R: TableRow>(self, row: &R) -> String {
        match row.home() {
            Home::Template => row.full_label(),
            Home::Database(_) if self.with_databases => row.full_label(),
            _ => row.label(),
        }
    }
}

fn user_database<R: TableRow>(row: &R) -> Option<u32> {
    match row.home() {
        Home::Database(oid) => Some(oid),
        Home::Nowhere | Home::Template => None,
    }
}

fn counts(labels: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    labels.iter().for_each(|label| *counts.entry(label.as_str()).or_default() += 1);
    counts
}

fn hash_of(label: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    label.hash(&mut hasher);
    hasher.finish()
}

fn compare<R: TableRow>(a: &R, b: &R, sort: Sort) -> Ordering {
    let key = |row: &R| match sort {
        Sort::Bytes => row.numbers().total_bytes,
        Sort::Count => row.numbers().count,
        Sort::Fpi => row.numbers().fpi_bytes,
        Sort::Name => 0,
    };
    let by_key = Reverse(key(a)).cmp(&Reverse(key(b)));
    by_key.then_with(|| a.label().cmp(&b.label()))
}

impl Line {
    fn new(label: String, numbers: Numbers, main_data: Option<u64>, all: &Sums) -> Line {
        let shares = Shares::of(&numbers, &all.numbers());
        Line { label, numbers, shares, main_data_only_bytes: main_data }
    }

    /// The line of all rows together.
    pub fn total(all: &Sums) -> Line {
        Line::new("Total".to_owned(), all.numbers(), Some(all.main_data_only_bytes()), all)
    }
}

impl Shares {
    /// The shares of `part` in `all`, by the arithmetic of `pg_waldump`.
    pub(crate) fn of(part: &Numbers, all: &Numbers) -> Shares {
        Shares {
            count: percent(part.count, all.count),
            record: percent(part.record_bytes, all.record_bytes),
            fpi: percent(part.fpi_bytes, all.fpi_bytes),
            total: percent(part.total_bytes, all.total_bytes),
        }
    }
}

/// `100 × a / b`, 0 if there is nothing to divide by.
pub fn percent(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { 100.0 * a as f64 / b as f64 }
}

/// Sums of one resource manager.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RmgrRow {
    /// Its name.
    pub rmgr: String,
    /// Its id.
    pub id: u8,
    /// The sums.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Sums of one record type.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordRow {
    /// The resource manager's name.
    pub rmgr: String,
    /// The record's name.
    pub record: String,
    /// `xl_info & 0xF0`.
    pub info: String,
    /// The sums.
    #[serde(flatten)]
    pub sums: Sums,
}

impl TableRow for RmgrRow {
    fn label(&self) -> String {
        self.rmgr.clone()
    }

    fn numbers(&self) -> Numbers {
        self.sums.numbers()
    }

    fn main_data_only_bytes(&self) -> Option<u64> {
        Some(self.sums.main_data_only_bytes())
    }
}

impl TableRow for RecordRow {
    fn label(&self) -> String {
        format!("{}/{}", self.rmgr, self.record)
    }

    fn numbers(&self) -> Numbers {
        self.sums.numbers()
    }

    fn main_data_only_bytes(&self) -> Option<u64> {
        Some(self.sums.main_data_only_bytes())
    }
}

/// The list of its rows.
#[cfg(feature = "schema")]
impl<R: schemars::JsonSchema> schemars::JsonSchema for Table<R> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Table_of_{}", R::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Vec<R>>()
    }
}
