//! Who writes the WAL: those of the dimensions of relations, blocks and transactions that were
//! asked for, and the names that the WAL teaches beside them.

use super::amounts::Amounts;
use super::block::Blocks;
use super::dimension::{Dimension, Dimensions};
use super::finished::{FinishedRows, Order};
use super::names::NameLessons;
use super::relation::Relations;
use super::transaction::Transactions;
use crate::scan::record::{Observe, Record};
use crate::wal::catalog::names::Names;
use crate::wal::catalog::store::Store;

/// What is counted, as far as it was asked for.
#[derive(Debug, Clone, Default)]
pub struct Who {
    relations: Option<Relations>,
    blocks: Option<Blocks>,
    transactions: Option<Transactions>,
    names: Option<NameLessons>,
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    /// By relation.
    pub relations: Option<Relations>,
    /// By block.
    pub blocks: Option<Blocks>,
    /// By transaction, and the records without one.
    pub transactions: Option<(FinishedRows, Amounts)>,
    /// Names of relations.
    pub names: Names,
}

impl Who {
    /// What `asked` needs; `None`: nothing. `rows` transactions are kept, the first by `order`;
    /// names begin with those that `known` has.
    pub fn new(asked: &Dimensions, rows: usize, order: Order, known: Option<&Store>) -> Option<Who> {
        use Dimension::{Block, Database, Fork, Relation, Table, Tablespace, Transaction};
        let any = |list: &[Dimension]| list.iter().any(|dimension| asked.contains(dimension));
        let relations = any(&[Relation, Table, Database, Tablespace, Fork]);
        let names = relations || any(&[Block]);
        let lessons = || known.map(NameLessons::over).unwrap_or_default();
        let transactions = || Transactions::new(FinishedRows::new(rows, order));
        (names || any(&[Transaction])).then(|| Who {
            relations: relations.then(Relations::default),
            blocks: any(&[Block]).then(Blocks::default),
            transactions: any(&[Transaction]).then(transactions),
            names: names.then(lessons),
        })
    }

    /// What was counted, with names on top of those that `known` has.
    pub fn finish(mut self, known: Store, parent: impl Fn(u32) -> Option<u32>) -> Counted {
        self.settle();
        Counted {
            relations: self.relations,
            blocks: self.blocks,
            transactions: self.transactions.map(|transactions| transactions.finish(parent)),
            names: self.names.unwrap_or_default().names(known),
        }
    }
}

impl Observe for Who {
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if let Some(relations) = &mut self.relations {
            relations.observe(record);
        }
        if let Some(transactions) = &mut self.transactions {
            transactions.observe(record);
        }
        if let Some(names) = &mut self.names {
            names.observe(record);
        }
        if let Some(blocks) = &mut self.blocks {
            // A copy: the record itself then stays in registers.
            let record = *record;
            blocks.observe(&record);
        }
    }

    fn merge(&mut self, later: Who) {
        merge(&mut self.relations, later.relations);
        merge(&mut self.blocks, later.blocks);
        merge(&mut self.transactions, later.transactions);
        merge(&mut self.names, later.names);
    }

    fn settle(&mut self) {
        self.relations.iter_mut().for_each(Relations::settle);
        self.transactions.iter_mut().for_each(Transactions::settle);
    }

    fn shrink(&mut self) {
        self.relations.iter_mut().for_each(Relations::shrink);
        self.transactions.iter_mut().for_each(Transactions::shrink);
    }
}

fn merge<O: Observe>(ours: &mut Option<O>, theirs: Option<O>) {
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        ours.merge(theirs);
    }
}
