//! What one transaction did, before anything has a name: deeds, of which the whole transaction makes events.

use super::ended::Before;
use super::file_works::FileWork;
use super::{EventKind, PlacedEnd, RecoveryTarget, TableEvent};
use crate::finished_transactions::TransactionOutcome;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::OrderBy;
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::FIRST_NORMAL_OID;
use walstat_names::catalog::history::{CatalogsAt, ClassVersion, Deeds, Touched};
use walstat_names::catalog::row::kind;

/// What is known when a transaction is told.
pub(super) struct Scene<'s> {
    /// The catalogs as it has seen them at its end.
    pub catalogs: CatalogsAt<'s>,
    pub places: &'s Places,
    pub min_rows: u64,
    pub whole: &'s Whole,
    /// What it did to the catalogs.
    pub deeds: &'s Deeds,
    /// Files of new versions of relations that it rewrites.
    pub rewritten: BTreeMap<RelFileLocator, Rewritten>,
}

/// Places in the WAL, ascending.
pub(super) struct Places {
    /// Ends of records, and where they begin.
    pub places: Vec<(Lsn, Lsn)>,
    /// Where files of databases were removed, and the last end of a transaction before that.
    pub drops: Vec<(Lsn, Option<PlacedEnd>)>,
}

impl Places {
    /// Where a record begins that ends here.
    pub(super) fn start_of(&self, end: Lsn) -> Lsn {
        let found = self.places.binary_search_by_key(&end, |(end, _)| *end);
        let place = found.ok().and_then(|place| self.places.get(place));
        place.map_or(end, |(_, start)| *start)
    }

    /// The last end of a transaction before files of a database were removed.
    fn end_before(&self, drop: Lsn) -> Option<PlacedEnd> {
        let found = self.drops.binary_search_by_key(&drop, |(place, _)| *place).ok()?;
        self.drops.get(found)?.1
    }
}

/// What an event is about, for its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// A table or an index; of an index the table, where that is known.
    Relation(ClassVersion, Option<u32>),
    /// A file, of whatever it is.
    File(RelFileLocator),
    /// A database of this oid and name.
    Database(u32, Arc<str>),
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
    /// Files that its commit took away.
    pub dropped: Box<[RelFileLocator]>,
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
    pub(super) fn event(&self, deed: Deed, places: &Places) -> (TableEvent, Subject) {
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
            target: self.target(lsn, no_return, places),
            is_irrevocable: no_return.is_some(),
        };
        (event, subject)
    }

    /// Where recovery stops before it. A transaction that has not ended is not there anyway: right before
    /// the event, or before it is prepared, which would hold its locks.
    fn target(&self, lsn: Lsn, no_return: Option<Lsn>, places: &Places) -> RecoveryTarget {
        let end = self.ended.unwrap_or(lsn);
        if let Some(no_return) = no_return.filter(|place| self.ended.is_none_or(|end| *place < end))
        {
            let after = places.end_before(no_return);
            return RecoveryTarget { lsn: no_return, xid: None, time: None, after };
        }
        // By time recovery stops at the first end of a transaction that is later, or if it is not inclusive,
        // as late: either must be this one. Its own time would be too late for one that is inclusive.
        let before = self.time.and_then(|time| time.0.checked_sub(1)).map(Time);
        let is_first = |time: &Time| self.before.latest.is_none_or(|latest| latest < *time);
        let time = before.filter(is_first);
        RecoveryTarget { lsn: end, xid: self.time.map(|_| self.xid), time, after: None }
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

/// A file of the new version of a relation that is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rewritten {
    /// The relation: its database and oid.
    pub relation: (u32, u32),
    /// Whether the rows are written anew into it. In the end, when both change places, the new version has
    /// the file that the relation had, which the same transaction may have made.
    pub is_copy: bool,
}

/// The files of new versions of relations that are rewritten.
pub(super) fn rewritten(deeds: &Deeds) -> BTreeMap<RelFileLocator, Rewritten> {
    let made = |touched: &&Touched<ClassVersion>| {
        touched.row.rewrites.is_some() && touched.inserted.is_some()
    };
    let mut versions: Vec<_> = deeds.classes.iter().filter(made).collect();
    versions.order_by_key(|touched| touched.inserted);
    let (mut seen, mut files) = (BTreeSet::new(), BTreeMap::new());
    for class in versions.into_iter().map(|touched| &touched.row) {
        let is_copy = seen.insert((class.database, class.oid));
        if let (Some(file), Some(oid)) = (class.file, class.rewrites) {
            files.entry(file).or_insert(Rewritten { relation: (class.database, oid), is_copy });
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server stops before the first end of which the time is later than the target (inclusive), or not
    /// earlier (not inclusive): `recoveryStopsBefore`.
    #[test]
    fn by_time_recovery_stops_at_the_transaction_or_there_is_no_time() {
        let own = 1_000_000;
        for (latest, told) in [(own - 2, true), (own - 1, false), (own, false), (own + 5, false)] {
            let whole = Whole {
                files: BTreeMap::new(),
                database_drop: None,
                dropped: Box::default(),
                xid: 700,
                xids: [700].into(),
                outcome: TransactionOutcome::Committed,
                ended: Some(Lsn(8000)),
                time: Some(Time(own)),
                was_prepared: false,
                before: Before { latest: Some(Time(latest)), ..Before::default() },
            };
            let places = Places { places: Vec::new(), drops: Vec::new() };
            let target = whole.target(Lsn(7000), None, &places);
            assert_eq!((target.lsn, target.xid), (Lsn(8000), Some(700)));
            assert_eq!(target.time.is_some(), told, "{latest}");
            let Some(Time(target)) = target.time else { continue };
            for stops in
                [|end: i64, target: i64| end > target, |end: i64, target: i64| end >= target]
            {
                assert!(!stops(latest, target), "the one before is replayed");
                assert!(stops(own, target), "and this one is not");
            }
        }
    }

    /// TRUNCATE, then ALTER TABLE twice, in one transaction.
    #[test]
    fn the_file_that_a_new_version_has_first_is_the_copy() {
        let file = |relfilenode| RelFileLocator { tablespace: 1663, database: 5, relfilenode };
        let version = |oid, relfilenode, lsn| Touched {
            row: ClassVersion {
                database: 5,
                oid,
                name: "pg_temp_16384".into(),
                namespace: 2200,
                file: Some(file(relfilenode)),
                kind: b'r',
                rewrites: Some(16384),
            },
            inserted: Some(Lsn(lsn)),
            ended: None,
            is_update: false,
        };
        let classes = vec![
            version(20, 102, 40),
            version(10, 101, 20),
            version(10, 100, 30),
            version(20, 101, 50),
        ];
        let deeds = Deeds { classes, ..Deeds::default() };
        let told = rewritten(&deeds).into_iter().map(|(file, new)| (file.relfilenode, new.is_copy));
        assert_eq!(told.collect::<Vec<_>>(), [(100, false), (101, true), (102, true)]);
    }
}
