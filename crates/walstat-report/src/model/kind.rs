//! Kinds of transactions: those that did the same to the same tables, and records without a transaction.

use super::Numbers;
use super::table::{Home, TableRow};
use super::who::home;
use serde::{Deserialize, Serialize};
use walstat_names::catalog::row::CATALOG_SCHEMA_NAME;

named! {
    /// What was done to a table.
    pub enum KindOfWork {
        Insert "insert" "INSERT";
        Update "update" "UPDATE";
        Delete "delete" "DELETE";
        Lock "lock" "LOCK";
        Ddl "ddl" "DDL";
        Vacuum "vacuum" "vacuum";
        Checkpoint "checkpoint" "checkpoint";
        Other "other" "pruning and other of";
    }
}

/// Something that was done to a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindOperation {
    /// `insert`, `update`, `delete`, `lock` of rows, `ddl` of a system catalog; of records without a
    /// transaction, what they are there for.
    pub operation: KindOfWork,
    /// Schema of the table.
    pub schema: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// Its file, `tablespace/database/relfilenode`, where the table is not known.
    pub relation: Option<String>,
}

/// Transactions that did the same to the same tables.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindRow {
    /// What they did, for people: `INSERT history, UPDATE accounts, branches`; `no rows`; `none` for
    /// records without a transaction; `other` for all kinds beyond those that can be kept.
    pub kind: String,
    /// Of records without a transaction: `vacuum`, `checkpoint`, `other`.
    pub maintenance: Option<String>,
    /// Database oid, where a table lies in one.
    pub database: Option<u32>,
    /// Its name.
    pub database_name: Option<String>,
    /// All that they did; without a transaction, the tables with the most bytes first.
    pub operations: Vec<KindOperation>,
    /// How many transactions, those that were rolled back too.
    pub transactions: u64,
    /// How many of them were rolled back.
    pub aborted: u64,
    /// How many of these may be savepoints that were rolled back: the WAL does not tell whose they are.
    pub maybe_savepoints: u64,
    /// The sums.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// All bytes by the number of transactions.
    pub bytes_per_transaction: Option<f64>,
    /// Bytes of half of the transactions, by nearest rank.
    pub median_bytes: Option<u64>,
    /// Bytes of 99 in a hundred.
    pub p99_bytes: Option<u64>,
    /// When the first of them ended.
    pub first_time: Option<String>,
    /// When the last of them ended.
    pub last_time: Option<String>,
}

/// The largest kinds of a sample of transactions, one in 64.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindSample {
    /// Transactions in the sample.
    pub transactions: u64,
    /// The largest kinds of which there are several.
    pub kinds: Vec<SampledKind>,
}

/// A kind of transactions, as a sample tells it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledKind {
    /// What they did.
    pub kind: String,
    /// How many of the sample.
    pub transactions: u64,
    /// Bytes of half of them.
    pub median_bytes: u64,
    /// Bytes of each on average: all bytes by the number of transactions.
    #[serde(default)]
    pub mean_bytes: u64,
}

/// So many tables of an operation are named for people.
const NAMED: usize = 4;
/// Schemas that people do not have to be told.
const USUAL_SCHEMAS: [&str; 2] = ["public", CATALOG_SCHEMA_NAME];

impl KindOperation {
    /// How people call the table.
    fn name(&self) -> String {
        match (&self.schema, &self.table, &self.relation) {
            (Some(schema), Some(table), _) if !USUAL_SCHEMAS.contains(&schema.as_str()) => {
                format!("{schema}.{table}")
            }
            (_, Some(table), _) => table.clone(),
            (_, None, Some(file)) => file.clone(),
            (_, None, None) => "no table".to_owned(),
        }
    }
}

/// What operations come to in words, with so many tables of each.
fn words(operations: &[KindOperation], most: usize) -> String {
    let by_operation = operations.chunk_by(|one, other| one.operation == other.operation);
    let told = by_operation.filter_map(|alike| {
        let mut names: Vec<String> = alike.iter().take(most).map(KindOperation::name).collect();
        if alike.len() > most {
            names.push(format!("{} more", alike.len() - most));
        }
        Some(format!("{} {}", alike.first()?.operation.text(), names.join(", ")))
    });
    told.collect::<Vec<String>>().join(", ")
}

impl KindRow {
    /// Labels of its counters: the database, and the kind with what is done where there is no transaction.
    pub fn labels(&self) -> [String; 2] {
        let oid = || self.database.map(|oid| oid.to_string());
        let database = self.database_name.clone().or_else(oid).unwrap_or_default();
        let kind = match &self.maintenance {
            Some(maintenance) => format!("{}: {maintenance}", self.kind),
            None => self.kind.clone(),
        };
        [database, kind]
    }

    /// What transactions that did this are called.
    pub(crate) fn called(operations: &[KindOperation]) -> String {
        match operations {
            [] => "no rows".to_owned(),
            _ => words(operations, usize::MAX),
        }
    }

    /// The same with no more than a few tables of each operation.
    pub fn short(&self) -> String {
        match (&self.maintenance, self.operations.is_empty()) {
            (Some(maintenance), true) => format!("no transaction: {maintenance}"),
            (Some(_), false) => format!("no transaction: {}", words(&self.operations, NAMED)),
            (None, true) => self.kind.clone(),
            (None, false) => words(&self.operations, NAMED),
        }
    }
}

impl TableRow for KindRow {
    fn label(&self) -> String {
        self.short()
    }

    fn full_label(&self) -> String {
        match (&self.database_name, self.database) {
            (Some(name), _) => format!("{name}: {}", self.short()),
            (None, Some(oid)) => format!("{oid}: {}", self.short()),
            (None, None) => self.short(),
        }
    }

    fn exact_label(&self) -> String {
        match self.database_name.as_deref().filter(|_| self.maintenance.is_none()) {
            Some(name) => format!("{name}: {}", self.kind),
            None => self.kind.clone(),
        }
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }

    fn home(&self) -> Home {
        home(&self.database_name, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(operation: KindOfWork, schema: &str, table: &str) -> KindOperation {
        let (schema, table) = (Some(schema.to_owned()), Some(table.to_owned()));
        KindOperation { operation, schema, table, relation: None }
    }

    #[test]
    fn a_kind_is_called_by_its_operations() {
        let many = (0..6).map(|n| operation(KindOfWork::Update, "public", &format!("t{n}")));
        let operations: Vec<KindOperation> =
            [operation(KindOfWork::Insert, "app", "history")].into_iter().chain(many).collect();
        let kind = KindRow::called(&operations);
        assert_eq!(kind, "INSERT app.history, UPDATE t0, t1, t2, t3, t4, t5");
        let row = KindRow { kind, operations, ..KindRow::default() };
        assert_eq!(row.label(), "INSERT app.history, UPDATE t0, t1, t2, t3, 2 more");
        assert_eq!(KindRow::called(&[]), "no rows");
    }

    #[test]
    fn what_belongs_to_no_transaction_says_so() {
        let operations = vec![operation(KindOfWork::Vacuum, "public", "t")];
        let vacuum = KindRow {
            kind: "none".into(),
            maintenance: Some("vacuum".into()),
            operations,
            ..KindRow::default()
        };
        assert_eq!(vacuum.label(), "no transaction: vacuum t");
        let none = KindRow { operations: Vec::new(), ..vacuum };
        assert_eq!(none.label(), "no transaction: vacuum");
    }
}
