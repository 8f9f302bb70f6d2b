//! Who writes the WAL, as rows of the model: what was counted by relation, block and transaction,
//! with the names that are known.

mod kind;
mod table;

use super::build::rfc3339;
use super::model::kind::KindRow;
use super::model::table::{LeftOut, Sort};
use super::model::who::{
    BlockRow, BlockSummary, BlockUse, Blocks, CommitBytes, DatabaseRow, ForkRow, NamesSummary,
    RelationRow, TableName, TablespaceRow, TransactionRow, TransactionSummary, Transactions,
};
use super::model::{Numbers, Report, Table};
use std::collections::{BTreeMap, BTreeSet};
use walstat_analyse::amounts::Amounts;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::finished_transactions::{
    FinishedRows, FinishedTransaction, Summary, TransactionOutcome,
};
use walstat_analyse::hot_blocks;
use walstat_analyse::kind::FoundKinds;
use walstat_analyse::relation::{Group, Relation, Relations};
use walstat_analyse::who::{Counted, FoundTransactions};
use walstat_format::fork::Fork;
use walstat_format::rmgr;
use walstat_format::version::Version;
use walstat_names::catalog::names;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::kind::UNKNOWN;

pub(crate) use kind::kind_sample;

/// Kinds of transactions by table, and whether percentiles of all are exact. What vacuum pruned by records
/// that statements write too is not told apart.
pub(crate) fn kind_rows(found: FoundKinds, names: &Names) -> (Vec<KindRow>, bool) {
    kind::rows(found, &Amounts::default(), names, By::Table)
}

/// What stands in a row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Each partition.
    Table,
    /// A partitioned table with all its partitions.
    Parent,
}

/// Kinds of records that a block's row names.
const KINDS_SHOWN: usize = 3;

/// Which rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// What stands in a row of its own.
    pub by: By,
    /// Which come first.
    pub sort: Sort,
    /// How many will be shown; 0: all. What nothing else is concluded from has hardly more.
    pub shown: usize,
}

/// Fills the tables that were asked for.
pub(crate) fn fill(
    report: &mut Report,
    counted: Counted,
    asked: &Dimensions,
    wanted: Rows,
    version: &Version,
) {
    let Counted { relations, updates, vacuums, blocks, transactions, names } = counted;
    let pruning = vacuums.as_ref().map(|vacuums| vacuums.pruning()).unwrap_or_default();
    let asked = |dimension| asked.contains(&dimension);
    if let Some(relations) = &relations {
        let rows = relations.rows().map(|row| relation_row(&row, &names));
        let gathered = || Table::gather(rows, wanted.sort, wanted.shown);
        report.relations = asked(Dimension::Relation).then(gathered);
        let shows_names = asked(Dimension::Relation) || asked(Dimension::Table);
        report.names = shows_names.then(|| summary(relations, &names));
        let vacuums = vacuums.unwrap_or_default();
        let tables = |updates| table::rows(relations, &updates, &vacuums, &names, wanted.by).into();
        report.tables = updates.map(tables);
        report.databases = asked(Dimension::Database).then(|| databases(relations, &names));
        report.tablespaces = asked(Dimension::Tablespace).then(|| tablespaces(relations, &names));
        report.forks = asked(Dimension::Fork).then(|| forks(relations));
    }
    report.blocks = blocks.map(|blocks| hot_blocks(&blocks, &names, wanted.shown, version));
    if let Some(FoundTransactions { rows, without_transaction, kinds }) = transactions {
        if !rows.is_exact {
            let note =
                "there were too many unfinished transactions to keep all: some appear in two rows";
            report.notes.push(note.to_owned());
        }
        if let Some(kinds) = kinds {
            fill_kinds(report, kinds, &pruning, &names, wanted.by);
        }
        if asked(Dimension::Transaction) {
            let rows = transaction_rows(rows, without_transaction, &mut report.notes);
            report.transactions = Some(rows);
        }
    }
}

/// Fills in kinds of transactions.
fn fill_kinds(report: &mut Report, found: FoundKinds, pruning: &Amounts, names: &Names, by: By) {
    let others = found.other.transactions;
    let (rows, is_exact) = kind::rows(found, pruning, names, by);
    if others > 0 {
        report.notes.push(format!(
            "there were too many kinds of transactions to keep all: {others} transactions are in the row \
             \"other\""
        ));
    }
    let maybe: u64 = rows.iter().map(|row| row.maybe_savepoints).sum();
    if maybe > 0 {
        report.notes.push(format!(
            "{maybe} of the aborted transactions may be savepoints that were rolled back, and belong to \
             other transactions: below wal_level = logical the WAL rarely says which, pg_subtrans of a \
             data directory may"
        ));
    }
    if !is_exact {
        let note = "percentiles of kinds of transactions are accurate to 0.1 %: there were too many \
                    different sizes to keep all";
        report.notes.push(note.to_owned());
    }
    report.kinds = Some(rows.into());
}

/// The name of a fork; its number if it has none.
fn fork_name(number: u8) -> String {
    Fork::of(number).map_or_else(|| number.to_string(), |fork| fork.to_string())
}

fn kind(relation: &names::Relation) -> Option<String> {
    (relation.kind != UNKNOWN).then(|| char::from(relation.kind).to_string())
}

fn schema(relation: &names::Relation) -> Option<String> {
    relation.schema.as_deref().map(str::to_owned)
}

fn relation_row(row: &Relation<'_>, names: &Names) -> RelationRow {
    let file = row.key.map(|key| key.relation);
    let named = file.and_then(|file| names.relation(file));
    let table = file.zip(named).and_then(|(file, named)| names.table_of(file.database, named));
    let Relation { operations, images, substance, .. } = row;
    RelationRow {
        tablespace: file.map(|file| file.tablespace),
        database: file.map(|file| file.database),
        relfilenode: file.map(|file| file.relfilenode),
        fork: row.key.map(|key| fork_name(key.fork)),
        numbers: row.amounts.numbers(),
        block_refs: row.block_refs,
        block_data_bytes: row.block_data_bytes,
        distinct_blocks: row.distinct_blocks,
        hint_fpi_count: images.hint_count,
        hint_fpi_bytes: images.hint_bytes,
        new_page_fpi_count: images.new_page_count,
        new_page_fpi_bytes: images.new_page_bytes,
        inserts: operations.inserts,
        updates: operations.updates,
        hot_updates: operations.hot_updates,
        updates_new_page: operations.updates_new_page,
        deletes: operations.deletes,
        locks: operations.locks,
        vacuum_records: operations.vacuum_records,
        old_row_bytes: substance.old_row_bytes,
        beside_image_bytes: substance.beside_image_bytes,
        database_name: file.and_then(|file| database_name(file.database, names)),
        schema: named.and_then(schema),
        name: named.map(|named| named.name.to_string()),
        kind: named.and_then(kind),
        oid: named.map(|named| named.oid),
        table: table.map(|table| TableName {
            oid: table.oid,
            schema: schema(table),
            name: table.name.to_string(),
        }),
        names_source: named.map(|named| named.source),
    }
}

fn database_name(oid: u32, names: &Names) -> Option<String> {
    names.database(oid).filter(|_| oid != 0).map(str::to_owned)
}

fn summary(relations: &Relations, names: &Names) -> NamesSummary {
    let mut summary = NamesSummary::default();
    let mut sources = BTreeSet::new();
    for row in relations.rows() {
        let (bytes, Some(key)) = (row.amounts.total_bytes(), row.key) else { continue };
        summary.relation_bytes += bytes;
        if let Some(named) = names.relation(key.relation) {
            summary.named_bytes += bytes;
            sources.insert(named.source);
        }
    }
    summary.sources = sources.into_iter().collect();
    summary
}

/// A row of a table of groups: its identity, its sums.
fn grouped<K: Ord, R>(
    groups: BTreeMap<Option<K>, Group>,
    row: impl Fn(Option<K>, Numbers, Group) -> R,
) -> Table<R> {
    let rows = groups.into_iter().map(|(key, group)| row(key, group.amounts.numbers(), group));
    rows.collect::<Vec<R>>().into()
}

fn databases(relations: &Relations, names: &Names) -> Table<DatabaseRow> {
    let groups = relations.by(|key| key.relation.database);
    grouped(groups, |database, numbers, group| DatabaseRow {
        database,
        database_name: database.and_then(|oid| database_name(oid, names)),
        numbers,
        block_refs: group.block_refs,
        distinct_blocks: group.distinct_blocks,
    })
}

fn tablespaces(relations: &Relations, names: &Names) -> Table<TablespaceRow> {
    let groups = relations.by(|key| key.relation.tablespace);
    grouped(groups, |tablespace, numbers, group| TablespaceRow {
        tablespace,
        tablespace_name: tablespace.and_then(|oid| names.tablespace(oid)).map(str::to_owned),
        numbers,
        block_refs: group.block_refs,
        distinct_blocks: group.distinct_blocks,
    })
}

fn forks(relations: &Relations) -> Table<ForkRow> {
    grouped(relations.by(|key| key.fork), |fork, numbers, group| ForkRow {
        fork: fork.map(fork_name),
        numbers,
        block_refs: group.block_refs,
        distinct_blocks: group.distinct_blocks,
    })
}

fn hot_blocks(
    blocks: &hot_blocks::HotBlocks,
    names: &Names,
    shown: usize,
    version: &Version,
) -> Blocks {
    let hottest = blocks.hottest(shown);
    let mut kept = Amounts::default();
    hottest.iter().for_each(|hot| kept.add(&hot.amounts));
    let left_out = usize::try_from(blocks.distinct()).unwrap_or(usize::MAX) - hottest.len();
    let left_out = (left_out > 0).then(|| LeftOut {
        rows: left_out,
        numbers: blocks.amounts().less(&kept).numbers(),
        main_data_only_bytes: None,
    });
    let rows = hottest.into_iter().map(|hot| {
        let file = hot.key.relation;
        let named = names.relation(file);
        let by = hot.kinds.iter().take(KINDS_SHOWN).map(|kind| BlockUse {
            record: format!("{}/{}", rmgr::name(kind.record.rmgr), kind.record.name(version)),
            block_refs: u64::from(kind.refs),
        });
        BlockRow {
            tablespace: file.tablespace,
            database: file.database,
            relfilenode: file.relfilenode,
            fork: fork_name(hot.key.fork),
            block: hot.block,
            schema: named.and_then(schema),
            name: named.map(|named| named.name.to_string()),
            block_refs: hot.refs,
            numbers: hot.amounts.numbers(),
            by: by.collect(),
        }
    });
    Blocks {
        top: Table::of(rows.collect(), left_out),
        summary: BlockSummary {
            distinct_blocks: blocks.distinct(),
            without_block: blocks.without_block().numbers(),
        },
    }
}

fn transaction_rows(
    finished: FinishedRows,
    without: Amounts,
    notes: &mut Vec<String>,
) -> Transactions {
    let (rows, summary) = finished.into_rows();
    let left_out = not_kept(&rows, &summary);
    let sizes = &summary.commit_sizes;
    if !sizes.is_exact() {
        notes.push("percentiles of bytes a commit are within 0.1 %: too many sizes".to_owned());
    }
    let [median, p90, p99] = sizes.percentiles([50, 90, 99]);
    let summary = TransactionSummary {
        transactions: summary.transactions(),
        committed: summary.committed,
        aborted: summary.aborted,
        prepared: summary.prepared,
        open: summary.open,
        subtransactions: summary.subtransactions,
        aborted_bytes: summary.aborted_bytes,
        bytes_per_commit: CommitBytes { median, p90, p99, max: sizes.max() },
        without_transaction: without.numbers(),
    };
    let rows: Vec<TransactionRow> = rows.iter().map(transaction_row).collect();
    if (rows.len() as u64) < summary.transactions {
        notes.push(format!(
            "of {} transactions the first {} are rows; the summary has all",
            summary.transactions,
            rows.len()
        ));
    }
    Transactions { summary, top: Table::of(rows, left_out) }
}

/// The transactions that are no rows.
fn not_kept(rows: &[FinishedTransaction], summary: &Summary) -> Option<LeftOut> {
    let left_out = summary.transactions().saturating_sub(rows.len() as u64);
    let mut kept = Amounts::default();
    rows.iter().for_each(|row| kept.add(&row.amounts));
    (left_out > 0).then(|| LeftOut {
        rows: usize::try_from(left_out).unwrap_or(usize::MAX),
        numbers: summary.amounts.less(&kept).numbers(),
        main_data_only_bytes: None,
    })
}

fn transaction_row(row: &FinishedTransaction) -> TransactionRow {
    let outcome = match row.outcome {
        TransactionOutcome::Open => "open",
        TransactionOutcome::Prepared => "prepared",
        TransactionOutcome::Aborted => "aborted",
        TransactionOutcome::Committed => "committed",
    };
    TransactionRow {
        xid: row.xid.to_string(),
        outcome: outcome.to_owned(),
        commit_time: row.commit_time.and_then(rfc3339),
        start_lsn: row.start.to_string(),
        end_lsn: row.end.to_string(),
        numbers: row.amounts.numbers(),
        subtransactions: row.subtransactions,
        top_level: row.top_level.then_some(true),
        relations: row.relations,
    }
}
