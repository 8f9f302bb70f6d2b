//! The rows of `walstat records`, made on the threads that read, and handed on in the order of the WAL.

use super::Output;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use walstat_analyse::deferred_log;
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_names::catalog::names::Names;
use walstat_read::scan::observe::Observe;
use walstat_report::model::records::{RelationNames, Row};

/// How many rows are held back at most, in case a server was writing and they have to be read again.
const HELD_MAX: usize = 500_000;

/// Rows that may not be written yet.
#[derive(Clone)]
pub struct Rows {
    rows: Vec<Row>,
    /// How many of them come before the first time that this run states: theirs is told by the run before.
    untimed: usize,
    /// The last time that a transaction has stated, counted or not.
    time: Option<Time>,
    /// How many of them lie before the first place where records are missing. If a server was writing
    /// there, the scan starts again, and finds the missing records.
    sure: Option<usize>,
    /// What relations are called, as far as it was asked.
    known: HashMap<RelFileLocator, Option<Arc<RelationNames>>>,
    output: Arc<Output>,
}

impl Rows {
    /// None yet.
    pub fn new(output: &Arc<Output>) -> Rows {
        Rows {
            rows: Vec::new(),
            untimed: 0,
            time: None,
            sure: None,
            known: HashMap::new(),
            output: Arc::clone(output),
        }
    }

    /// Takes note of the time that a record states, if it does.
    fn tick(&mut self, record: &Record<'_>) {
        if let Some((time, _)) = deferred_log::stated_time(record) {
            if self.time.is_none() {
                self.untimed = self.rows.len();
            }
            self.time = Some(time);
        }
    }

    /// The last row has come.
    pub fn finish(self) {
        self.output.write(self.rows.into_iter());
    }

    fn row(&mut self, record: &Record<'_>, block: Option<BlockRef>) -> Row {
        Row {
            lsn: record.lsn,
            end_lsn: record.end,
            xid: record.header.xid,
            rmgr: rmgr::name(record.header.rmgr),
            record: record.record_type().name(record.version),
            total_bytes: record.header.total_bytes,
            parts: record.parts,
            block_refs: record.blocks().count() as u32,
            hole_bytes: None,
            time: self.time,
            names: block.and_then(|block| self.names(block.relation)),
            block,
            version: record.version,
        }
    }

    fn names(&mut self, file: RelFileLocator) -> Option<Arc<RelationNames>> {
        let names = &self.output.names;
        self.known.entry(file).or_insert_with(|| names_of(file, names).map(Arc::new)).clone()
    }
}

impl Observe for Rows {
    const KEEPS: bool = true;

    fn needs_whole(&self) -> bool {
        self.output.blocks
    }

    fn observe(&mut self, record: &Record<'_>) {
        if self.output.is_over() {
            return;
        }
        self.tick(record);
        if self.output.blocks {
            for block in record.blocks() {
                let hole_bytes = record.hole_bytes(&block);
                let row = Row { hole_bytes, ..self.row(record, Some(block)) };
                self.rows.push(row);
            }
        } else {
            let row = self.row(record, record.blocks().next());
            self.rows.push(row);
        }
    }

    fn passed_over(&mut self, record: &Record<'_>) {
        self.tick(record);
    }

    fn lost(&mut self, _range: Range<Lsn>) {
        self.sure.get_or_insert(self.rows.len());
    }

    fn merge(&mut self, mut later: Rows) {
        let sure = later.sure.map(|sure| self.rows.len() + sure);
        self.sure = self.sure.or(sure);
        let untimed = if later.time.is_some() { later.untimed } else { later.rows.len() };
        if self.time.is_none() {
            self.untimed = self.rows.len() + untimed;
        } else {
            later.rows.iter_mut().take(untimed).for_each(|row| row.time = self.time);
        }
        self.time = later.time.or(self.time);
        self.rows.append(&mut later.rows);
    }

    fn settle(&mut self) {
        let sure = match self.sure {
            Some(sure) if self.rows.len() - sure.min(self.rows.len()) < HELD_MAX => sure,
            _ => self.rows.len(),
        };
        let sure = sure.min(self.rows.len());
        self.output.write(self.rows.drain(..sure));
        self.sure = self.sure.map(|_| 0);
    }
}

/// What the relation that a file belongs to is called.
fn names_of(file: RelFileLocator, names: &Names) -> Option<RelationNames> {
    let relation = names.relation(file)?;
    let table = names.table_of(file.database, relation);
    let schema = table.map_or(&relation.schema, |table| &table.schema);
    Some(RelationNames {
        schema: schema.as_deref().map(Box::from),
        table: table.map(|table| table.name.clone()),
        relation: relation.name.clone(),
        is_index: relation.is_index(),
    })
}
