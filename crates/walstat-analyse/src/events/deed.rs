//! What one transaction did, before anything has a name: deeds, of which the whole transaction makes events.

use super::ended::Before;
use super::file_works::FileWork;
use super::{EventKind, RecoveryTarget, TableEvent};
use crate::finished_transactions::TransactionOutcome;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::FIRST_NORMAL_OID;
use walstat_names::catalog::history::{ClassVersion, Deeds, History};
use walstat_names::catalog::row::kind;

/// What is known when a transaction is told.
pub(super) struct Scene<'s> {
    pub history: &'s mut History,
    pub places: &'s Places,
    pub min_rows: u64,
    pub whole: &'s Whole,
    /// What it did to the catalogs.
    pub deeds: &'s Deeds,
    /// Files of new versions of relations that it rewrites, and which relations these are.
    pub copies: BTreeMap<RelFileLocator, (u32, u32)>,
}

/// Ends of records, and where they begin; ascending.
pub(super) struct Places(pub Vec<(Lsn, Lsn)>);

impl Places {
    /// Where a record begins that ends here.
    pub(super) fn start_of(&self, end: Lsn) -> Lsn {
        let found = self.0.binary_search_by_key(&end, |(end, _)| *end);
        let place = found.ok().and_then(|place| self.0.get(place));
        place.map_or(end, |(_, start)| *start)
    }
}

/// What an event is about, for its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// A table or an index; of an index the table, where that is known.
    Relation(ClassVersion, Option<u32>),
    /// A file, of whatever it is.
    File(RelFileLocator),
    /// A database of this name.
    Database(Arc<str>),
}

/// An event, as one part of a transaction tells it.
pub(super) struct Deed {
    pub kind: EventKind,
    pub lsn: Lsn,
    pub subject: Subject,
    pub file: Option<RelFileLocator>,
    pub new_file: Option<RelFileLocator>,
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
    /// Where it cannot be undone any more, if that is before the transaction ends.
    pub no_return: Option<Lsn>,
}

/// A transaction, whatever became of it.
pub(super) struct Whole {
    pub files: BTreeMap<RelFileLocator, FileWork>,
    pub database_drop: Option<Lsn>,
    pub xid: u32,
    pub xids: Arc<[u32]>,
    pub outcome: TransactionOutcome,
    /// Where the record begins that ended or prepared it.
    pub ended: Option<Lsn>,
    /// When it ended.
    pub time: Option<Time>,
    /// Whether it ended after it had been prepared.
    pub was_prepared: bool,
    pub before: Before,
}

impl Whole {
    /// A deed of it as an event without names; and what it is about.
    pub(super) fn event(&self, deed: Deed) -> (TableEvent, Subject) {
        let Deed { kind, lsn, subject, file, new_file, rows, bytes, no_return } = deed;
        let commit = self.ended.filter(|_| self.outcome == TransactionOutcome::Committed);
        let event = TableEvent {
            kind,
            lsn,
            xid: self.xid,
            xids: Arc::clone(&self.xids),
            outcome: self.outcome,
            commit,
            time: self.time,
            was_prepared: self.was_prepared,
            clock: self.before.last,
            database: None,
            schema: None,
            table: None,
            index: None,
            names: BTreeSet::new(),
            file,
            new_file,
            rows,
            bytes,
            target: self.target(lsn, no_return),
        };
        (event, subject)
    }

    /// Where recovery stops before it. A transaction that has not ended is not there anyway: right before
    /// the event, or before it is prepared, which would hold its locks.
    fn target(&self, lsn: Lsn, no_return: Option<Lsn>) -> RecoveryTarget {
        let end = self.ended.unwrap_or(lsn);
        if let Some(no_return) = no_return.filter(|place| *place < end) {
            return RecoveryTarget { lsn: no_return, xid: None, time: None };
        }
        // By time recovery stops at the first end of a transaction that is later: that must be this one.
        let is_first = |time: &Time| self.before.latest.is_none_or(|latest| latest < *time);
        let time = self.time.filter(is_first).map(|time| Time(time.0 - 1));
        RecoveryTarget { lsn: end, xid: self.time.map(|_| self.xid), time }
    }
}

/// Whether the rows of a relation are a user's.
pub(super) fn holds_rows_of_users(class: &ClassVersion) -> bool {
    class.kind != kind::TOAST && !is_oid_of_system(class.oid)
}

/// Whether every cluster has what has this oid: nobody has made it.
pub(super) fn is_oid_of_system(oid: u32) -> bool {
    oid < FIRST_NORMAL_OID
}

/// Whether a file is one of those that every cluster has, as long as nobody rewrites them.
pub(super) fn is_of_system(file: RelFileLocator) -> bool {
    is_oid_of_system(file.relfilenode)
}

pub(super) fn is_index(class: &ClassVersion) -> bool {
    [kind::INDEX, kind::PARTITIONED_INDEX].contains(&class.kind)
}

/// The new versions of relations that are rewritten: their files, and which relations these are.
pub(super) fn rewritten(deeds: &Deeds) -> BTreeMap<RelFileLocator, (u32, u32)> {
    let new = deeds.classes.iter().filter(|touched| touched.inserted.is_some());
    let versions = new.filter_map(|touched| {
        let class = &touched.row;
        Some((class.file?, (class.database, class.rewrites?)))
    });
    versions.collect()
}
