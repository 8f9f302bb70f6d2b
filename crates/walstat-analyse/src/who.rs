//! Who writes the WAL: those of the dimensions of relations, blocks and transactions that were
//! asked for, and the names that the WAL teaches beside them.

use super::dimension::{Dimension, Dimensions};
use super::finished_transactions::{FinishedRows, Order};
use super::hot_blocks::HotBlocks;
use super::kind::FoundKinds;
use super::names::NameLessons;
use super::relation::Relations;
use super::transaction::Transactions;
use super::update::Updates;
use super::vacuum::Vacuums;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use walstat_format::block::RelFileLocator;
use walstat_format::ordered::CollectOrdered;
use walstat_format::record::Record;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::store::Store;
use walstat_read::scan::observe::Observe;

pub use super::transaction::FoundTransactions;

/// What is counted, as far as it was asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Who {
    relations: Option<Relations>,
    updates: Option<Updates>,
    vacuums: Option<Vacuums>,
    blocks: Option<HotBlocks>,
    transactions: Option<Transactions>,
    names: Option<NameLessons>,
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    /// By relation.
    pub relations: Option<Relations>,
    /// What updates cost, if tables are asked for.
    pub updates: Option<Updates>,
    /// What vacuum wrote, if tables or kinds of transactions are asked for.
    pub vacuums: Option<Vacuums>,
    /// By block.
    pub blocks: Option<HotBlocks>,
    /// By transaction, and by kind of it.
    pub transactions: Option<FoundTransactions>,
    /// Names of relations.
    pub names: Names,
}

/// What is made of the rows of relations.
const RELATIONS: [Dimension; 5] = [
    Dimension::Relation,
    Dimension::Table,
    Dimension::Database,
    Dimension::Tablespace,
    Dimension::Fork,
];

/// What transactions are followed for.
const TRANSACTIONS: [Dimension; 2] = [Dimension::Transaction, Dimension::Kind];

fn any(asked: &Dimensions, list: &[Dimension]) -> bool {
    list.iter().any(|dimension| asked.contains(dimension))
}

impl Counted {
    /// The databases in the WAL whose relations may have names.
    pub fn databases(&self) -> BTreeSet<u32> {
        self.each_file().map(|file| file.database).filter(|oid| *oid != 0).collect_set()
    }

    /// The files in the WAL that may have names.
    pub fn files(&self) -> BTreeSet<RelFileLocator> {
        self.each_file().collect_set()
    }

    /// The same, some of them more than once.
    fn each_file(&self) -> impl Iterator<Item = RelFileLocator> {
        let relations = self.relations.iter().flat_map(Relations::rows);
        let relations = relations.filter_map(|row| Some(row.key?.relation));
        let kinds = self.transactions.iter().filter_map(|found| found.kinds.as_ref());
        let of_kinds = kinds.flat_map(FoundKinds::files);
        relations.chain(self.blocks.iter().flat_map(HotBlocks::files)).chain(of_kinds)
    }
}

impl Who {
    /// Names alone, which begin with those that `known` has.
    pub fn names(known: Option<&Store>) -> Who {
        Who { names: Some(known.map(NameLessons::over).unwrap_or_default()), ..Who::default() }
    }

    /// What `asked` needs. `rows` transactions are kept, the first by `order`; names begin with
    /// those that `known` has.
    pub fn new(asked: &Dimensions, rows: usize, order: Order, known: Option<&Store>) -> Who {
        let lessons = || known.map(NameLessons::over).unwrap_or_default();
        let kinds = asked.contains(&Dimension::Kind);
        let finished = || {
            if asked.contains(&Dimension::Transaction) {
                FinishedRows::new(rows, order)
            } else {
                FinishedRows::unwanted()
            }
        };
        let transactions = || Transactions::new(finished(), kinds);
        Who {
            relations: any(asked, &RELATIONS).then(Relations::default),
            updates: asked.contains(&Dimension::Table).then(Updates::default),
            vacuums: any(asked, &[Dimension::Table, Dimension::Kind]).then(Vacuums::default),
            blocks: asked.contains(&Dimension::Block).then(HotBlocks::default),
            transactions: Who::needs_transactions(asked).then(transactions),
            names: Who::needs_names(asked).then(lessons),
        }
    }

    /// Whether what is `asked` for follows transactions.
    pub fn needs_transactions(asked: &Dimensions) -> bool {
        any(asked, &TRANSACTIONS)
    }

    /// Whether what is `asked` for has names.
    pub fn needs_names(asked: &Dimensions) -> bool {
        any(asked, &RELATIONS) || any(asked, &[Dimension::Block, Dimension::Kind])
    }

    /// Whether nothing is counted.
    pub(crate) fn is_nothing(&self) -> bool {
        let Who { relations, updates, vacuums, blocks, transactions, names } = self;
        let has_tables = updates.is_some() || vacuums.is_some();
        let has_rows = relations.is_some() || has_tables || blocks.is_some();
        !has_rows && transactions.is_none() && names.is_none()
    }

    /// The same, with subtransactions whose parents are known before.
    pub fn with_subtransactions(mut self, parents: &[(u32, u32)]) -> Who {
        if let Some(transactions) = &mut self.transactions {
            transactions.know(parents);
        }
        self
    }

    /// What was counted, with names on top of those that `known` has.
    pub fn finish(mut self, known: Store) -> Counted {
        self.settle();
        Counted {
            relations: self.relations,
            updates: self.updates,
            vacuums: self.vacuums,
            blocks: self.blocks,
            transactions: self.transactions.map(|transactions| transactions.finish()),
            names: self.names.map(|lessons| lessons.names(known)).unwrap_or_default(),
        }
    }
}

impl Observe for Who {
    const WHOLE: bool = true;

    fn needs_whole(&self) -> bool {
        !self.is_nothing()
    }

    fn keeps(&self) -> bool {
        self.transactions.as_ref().is_some_and(Transactions::keeps)
    }

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let mark = record.block_mark();
        // Whether it is of the same type as the one before and of the same block: neither of vacuum, nor does
        // it teach anything.
        let mut goes_on = false;
        if let Some(relations) = &mut self.relations {
            goes_on = relations.take(record, mark);
        }
        if let Some(transactions) = &mut self.transactions {
            goes_on |= transactions.take(record, mark);
        }
        if let Some(updates) = &mut self.updates {
            updates.observe(record);
        }
        if let Some(vacuums) = self.vacuums.as_mut().filter(|_| !goes_on) {
            vacuums.observe(record);
        }
        if let Some(names) = self.names.as_mut().filter(|names| !goes_on || !names.is_idle()) {
            names.take(record, mark);
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.observe(record);
        }
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if let Some(transactions) = &mut self.transactions {
            transactions.passed_over(record);
        }
        if let Some(names) = &mut self.names {
            names.passed_over(record);
        }
    }

    fn merge(&mut self, later: Who) {
        merge(&mut self.relations, later.relations);
        merge(&mut self.updates, later.updates);
        merge(&mut self.vacuums, later.vacuums);
        merge(&mut self.blocks, later.blocks);
        merge(&mut self.transactions, later.transactions);
        merge(&mut self.names, later.names);
    }

    fn settle(&mut self) {
        self.relations.iter_mut().for_each(Relations::settle);
        self.updates.iter_mut().for_each(Updates::settle);
        self.vacuums.iter_mut().for_each(Vacuums::settle);
        self.transactions.iter_mut().for_each(Transactions::settle);
    }

    fn shrink(&mut self) {
        self.relations.iter_mut().for_each(Relations::shrink);
        self.updates.iter_mut().for_each(Updates::shrink);
        self.vacuums.iter_mut().for_each(Vacuums::shrink);
        self.transactions.iter_mut().for_each(Transactions::shrink);
        self.names.iter_mut().for_each(NameLessons::shrink);
    }
}

fn merge<O: Observe>(ours: &mut Option<O>, theirs: Option<O>) {
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        ours.merge(theirs);
    }
}
