//! Kinds of transactions as rows: what was counted by file is put together by table.

use super::{By, database_name, schema};
use crate::build::rfc3339;
use crate::model::kind::{KindOfWork, KindOperation, KindRow, KindSample, SampledKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use walstat_analyse::amounts::Amounts;
use walstat_analyse::kind::{FoundKinds, FoundMaintenance, KindSums, Maintenance, RowOperation};
use walstat_analyse::ratios::ratio;
use walstat_format::block::RelFileLocator;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_format::payload::checkpoint::FIRST_NORMAL_OID;
use walstat_names::catalog::names;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::kind::TOAST;
use walstat_names::catalog::row::{CATALOG_SCHEMA_NAME, holds_large_objects};

/// What transactions of one kind have in common: their database, and what they did.
type Key = (Option<u32>, Vec<KindOperation>);

/// All kinds, and whether percentiles of all of them are exact; `pruning` is what vacuum wrote by
/// records that statements write too.
pub(crate) fn rows(
    found: FoundKinds,
    pruning: &Amounts,
    names: &Names,
    by: By,
) -> (Vec<KindRow>, bool) {
    let FoundKinds { kinds, other, maintained } = found.with_pruning(pruning);
    let mut by_table: BTreeMap<Key, KindSums> = BTreeMap::new();
    for (operations, sums) in kinds {
        by_table.entry(key(&operations, names, by)).or_default().merge(sums);
    }
    let is_exact = other.is_exact() && by_table.values().all(KindSums::is_exact);
    let mut rows: Vec<KindRow> = by_table
        .into_iter()
        .map(|((database, operations), sums)| KindRow {
            kind: KindRow::called(&operations),
            database,
            database_name: database.and_then(|oid| database_name(oid, names)),
            operations,
            ..sums_row(&sums)
        })
        .collect();
    if other.transactions > 0 {
        rows.push(KindRow { kind: "other".to_owned(), ..sums_row(&other) });
    }
    let maintained = maintained.into_iter().filter(|(_, found)| found.amounts.count > 0);
    rows.extend(
        maintained.map(|(maintenance, found)| maintenance_row(maintenance, &found, names, by)),
    );
    (rows, is_exact)
}

/// Fewer transactions tell nothing of all others.
const SAMPLE_MIN: u64 = 16;
/// A kind with fewer transactions in the sample may be there by chance.
const SAMPLED_MIN: u64 = 4;
/// So many kinds of a sample are told.
const SAMPLED_KINDS: usize = 3;

/// The kinds of a sample of transactions that wrote most of it, if there are some. A large transaction that
/// came once may or may not be in a sample: the report tells it elsewhere.
pub(crate) fn kind_sample(found: FoundKinds, names: &Names, by: By) -> Option<KindSample> {
    let (mut rows, _) = rows(found, &Amounts::default(), names, by);
    rows.order_by(|a, b| {
        let key = |row: &KindRow| (Reverse(row.numbers.total_bytes), row.kind.clone());
        key(a).cmp(&key(b))
    });
    let transactions: u64 = rows.iter().map(|row| row.transactions).sum();
    let told = rows.iter().filter(|row| row.transactions >= SAMPLED_MIN).take(SAMPLED_KINDS);
    let kinds = told.map(|row| SampledKind {
        kind: row.short(),
        transactions: row.transactions,
        median_bytes: row.median_bytes.unwrap_or_default(),
        mean_bytes: row.bytes_per_transaction.unwrap_or_default().round() as u64,
    });
    let kinds = kinds.collect();
    (transactions >= SAMPLE_MIN).then_some(KindSample { transactions, kinds })
}

fn sums_row(sums: &KindSums) -> KindRow {
    let [median_bytes, p99_bytes] = sums.percentiles([50, 99]);
    KindRow {
        transactions: sums.transactions,
        aborted: sums.aborted,
        maybe_savepoints: sums.maybe_savepoints,
        numbers: sums.amounts.numbers(),
        bytes_per_transaction: ratio(sums.amounts.total_bytes(), sums.transactions),
        median_bytes,
        p99_bytes,
        first_time: sums.first_time.and_then(rfc3339),
        last_time: sums.last_time.and_then(rfc3339),
        ..KindRow::default()
    }
}

/// A file's table as a row names it, without the operation.
struct Owner<'n> {
    database: u32,
    table: Option<&'n names::Relation>,
    is_toast: bool,
    file: RelFileLocator,
}

impl<'n> Owner<'n> {
    fn of(file: RelFileLocator, names: &'n Names, by: By) -> Owner<'n> {
        let named = names.relation(file);
        let table = named.map(|named| names.table_of(file.database, named).unwrap_or(named));
        let is_toast = named.is_some_and(|named| named.kind == TOAST)
            && table.zip(named).is_some_and(|(table, named)| table.oid != named.oid);
        let table = match by {
            By::Parent => table.map(|table| names.root_of(file.database, table)),
            By::Table => table,
        };
        Owner { database: file.database, table, is_toast, file }
    }

    fn is_catalog(&self) -> bool {
        self.table.is_some_and(|table| {
            table.oid < FIRST_NORMAL_OID
                && table.schema.as_deref().is_none_or(|schema| schema == CATALOG_SCHEMA_NAME)
                && !holds_large_objects(table.oid)
        })
    }

    fn with(&self, operation: KindOfWork) -> KindOperation {
        let RelFileLocator { tablespace, database, relfilenode } = self.file;
        KindOperation {
            operation,
            schema: self.table.and_then(schema),
            table: self.table.map(|table| table.name.to_string()),
            relation: match self.table {
                Some(_) => None,
                None => Some(format!("{tablespace}/{database}/{relfilenode}")),
            },
        }
    }
}

/// What a kind did by table. What was done to TOAST is part of what was done to the table, as the lock of a
/// row that is updated is part of the update.
fn key(operations: &[(RelFileLocator, RowOperation)], names: &Names, by: By) -> Key {
    let owners: Vec<(Owner<'_>, KindOfWork)> = operations
        .iter()
        .map(|(file, operation)| {
            let owner = Owner::of(*file, names, by);
            let work = match operation {
                _ if owner.is_catalog() => KindOfWork::Ddl,
                RowOperation::Insert => KindOfWork::Insert,
                RowOperation::Update => KindOfWork::Update,
                RowOperation::Delete => KindOfWork::Delete,
                RowOperation::Lock => KindOfWork::Lock,
            };
            (owner, work)
        })
        .collect();
    let own = owners.iter().filter(|(owner, _)| !owner.is_toast);
    let mut told: BTreeSet<KindOperation> =
        own.map(|(owner, work)| owner.with(*work)).collect_set();
    for (owner, work) in owners.iter().filter(|(owner, _)| owner.is_toast) {
        let writes = [KindOfWork::Insert, KindOfWork::Update, KindOfWork::Delete, KindOfWork::Ddl];
        // Where the WAL begins within a transaction, its table may be missing.
        if !writes.iter().any(|own| told.contains(&owner.with(*own))) {
            told.insert(owner.with(*work));
        }
    }
    let updated: Vec<KindOperation> =
        told.iter().filter(|told| told.operation == KindOfWork::Update).cloned().collect();
    for update in updated {
        told.remove(&KindOperation { operation: KindOfWork::Lock, ..update });
    }
    let database = owners.iter().map(|(owner, _)| owner.database).find(|oid| *oid != 0);
    (database, told.into_iter().collect())
}

fn maintenance_row(
    maintenance: Maintenance,
    found: &FoundMaintenance,
    names: &Names,
    by: By,
) -> KindRow {
    let work = match maintenance {
        Maintenance::Vacuum => KindOfWork::Vacuum,
        Maintenance::Checkpoint => KindOfWork::Checkpoint,
        Maintenance::Other => KindOfWork::Other,
    };
    let mut operations = Vec::new();
    let mut known = BTreeSet::new();
    for (file, _) in &found.files {
        let operation = Owner::of(*file, names, by).with(work);
        if known.insert(operation.clone()) {
            operations.push(operation);
        }
    }
    KindRow {
        kind: "none".to_owned(),
        maintenance: Some(maintenance.to_string()),
        operations,
        numbers: found.amounts.numbers(),
        ..KindRow::default()
    }
}
