//! Turns transactions, one by one in the order in which they ended, into events.

use super::deed::{
    Places, Scene, Subject, Whole, holds_rows_of_users, is_index, is_of_system, rewritten,
};
use super::ended::{Before, End, Ended};
use super::in_flight::InFlight;
use super::renamed::Renamed;
use super::work::{Prepared, Work};
use super::{EventKind, EventsFound, Name, TableEvent, UnexplainedDrop};
use super::{of_relations, of_rows};
use crate::finished_transactions::TransactionOutcome;
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::history::moment::Moment;
use walstat_names::catalog::history::{CatalogsAt, Deeds, History};
use walstat_names::catalog::names::{Names, Relation};
use walstat_names::catalog::row::kind;

/// Tells events.
pub(super) struct Teller {
    history: History,
    places: Places,
    min_rows: u64,
    drafts: Vec<Draft>,
    renamed: Renamed,
    unknown: usize,
    unexplained: Vec<UnexplainedDrop>,
}

/// An event whose names may be learnt later.
struct Draft {
    event: TableEvent,
    subject: Subject,
    newest_xid: Option<u32>,
}

impl Teller {
    pub(super) fn new(history: History, places: Places, min_rows: u64) -> Teller {
        Teller {
            history,
            places,
            min_rows,
            drafts: Vec::new(),
            renamed: Renamed::default(),
            unknown: 0,
            unexplained: Vec::new(),
        }
    }

    /// The next transaction that has ended.
    pub(super) fn ended(&mut self, ended: Ended) {
        let (commits, time, was_prepared) = match ended.end {
            End::Recorded { commits, time, was_prepared } => (commits, Some(time), was_prepared),
            End::Lost => (false, None, false),
        };
        let outcome =
            if commits { TransactionOutcome::Committed } else { TransactionOutcome::Aborted };
        self.history.advance(ended.lsn);
        let whole = Whole {
            xid: ended.xid,
            xids: ended.xids().collect(),
            outcome,
            ended: time.map(|_| ended.lsn),
            time,
            was_prepared,
            before: ended.before,
            files: ended.files.into_rows().collect(),
            database_drop: ended.database_drop,
            dropped: ended.dropped,
        };
        self.whole(&whole);
    }

    /// All transactions that have not ended where the WAL does.
    pub(super) fn open(&mut self, open: InFlight, before: Before) {
        self.history.advance(Lsn::MAX);
        // Which transaction they are part of, as far as that is told before the end.
        let mut tops: HashMap<u32, u32> = HashMap::new();
        for (xid, work) in open.iter() {
            tops.extend(work.top.map(|top| (xid, top)));
            let prepared = work.prepared.iter().flat_map(|prepared| prepared.subxids.iter());
            tops.extend(prepared.map(|sub| (*sub, xid)));
        }
        let mut all: BTreeMap<u32, (Vec<u32>, Work)> = BTreeMap::new();
        for (xid, work) in open.into_rows() {
            let top = tops.get(&xid).copied().unwrap_or(xid);
            let (xids, whole) = all.entry(top).or_default();
            xids.extend(Some(xid).filter(|xid| *xid != top));
            whole.append(work);
        }
        for (xid, (subxids, work)) in all {
            let Work { files, prepared, database_drop, .. } = work;
            let outcome = match prepared {
                Some(_) => TransactionOutcome::Prepared,
                None => TransactionOutcome::Open,
            };
            let whole = Whole {
                xid,
                xids: std::iter::once(xid).chain(subxids).collect(),
                outcome,
                ended: prepared.map(|Prepared { lsn, .. }| lsn),
                time: None,
                was_prepared: false,
                before,
                files: files.into_rows().collect(),
                database_drop,
                dropped: Box::default(),
            };
            self.whole(&whole);
        }
    }

    fn whole(&mut self, whole: &Whole) {
        let commits = match whole.outcome {
            TransactionOutcome::Committed => Some(true),
            TransactionOutcome::Aborted => Some(false),
            TransactionOutcome::Prepared | TransactionOutcome::Open => None,
        };
        let deeds = self.history.ended(&whole.xids, commits);
        self.unknown += deeds.unknown;
        self.unexplained.extend(self.unexplained_by(whole, &deeds));
        self.renamed.note(&deeds, commits == Some(false));
        let newest_xid = whole.before.newest_xid;
        let moment = Moment { own: Arc::clone(&whole.xids), newest_xid };
        let mut scene = Scene {
            catalogs: self.history.at(moment.clone()),
            places: &self.places,
            min_rows: self.min_rows,
            whole,
            deeds: &deeds,
            rewritten: rewritten(&deeds),
        };
        let mut told = of_rows::told(&mut scene);
        told.extend(of_relations::told(scene));
        for deed in told {
            let (event, subject) = whole.event(deed, &self.places);
            let mut draft = Draft { event, subject, newest_xid };
            draft.name(&mut self.history.at(moment.clone()));
            self.drafts.push(draft);
        }
    }

    /// The files that a transaction took away without a change of `pg_class` that is seen.
    fn unexplained_by(&self, whole: &Whole, deeds: &Deeds) -> Option<UnexplainedDrop> {
        let is_seen = !deeds.classes.is_empty() && deeds.unknown == 0;
        let of_seen: HashSet<RelFileLocator> =
            deeds.classes.iter().filter_map(|touched| touched.row.file).collect();
        let is_left = |file: &RelFileLocator| {
            !is_of_system(*file) && !self.history.is_mapped(*file) && !of_seen.contains(file)
        };
        let commit = whole.ended.filter(|_| !is_seen)?;
        let files: Vec<_> = whole.dropped.iter().copied().filter(is_left).collect();
        (!files.is_empty()).then_some(UnexplainedDrop { xid: whole.xid, commit, files })
    }

    /// All events, with names that were learnt after them, or that `others` know.
    pub(super) fn finish(mut self, others: &Names) -> EventsFound {
        for draft in self.drafts.iter_mut().filter(|draft| draft.lacks_names()) {
            draft.name(&mut self.history.at(draft.moment()));
            draft.name_by(others);
        }
        for draft in &mut self.drafts {
            let mut catalogs = self.history.at(draft.moment());
            draft.name_as_before(&self.renamed, &mut catalogs);
            draft.event.names = draft.all_names(&self.renamed, &mut catalogs);
        }
        let history = &self.history;
        let told = self.drafts.into_iter().filter(|draft| !draft.is_hidden(others, history));
        let mut events: Vec<TableEvent> = told.map(|draft| draft.event).collect();
        one_of_reindex(&mut events);
        events.order_by_key(|event| (event.lsn, event.xid, event.kind));
        EventsFound { events, unknown: self.unknown, unexplained: self.unexplained }
    }
}

/// REINDEX CONCURRENTLY makes an index, puts it in the place of the old one, and drops that, each in a
/// transaction of its own: the second is the event.
fn one_of_reindex(events: &mut Vec<TableEvent>) {
    let reindexed = events.iter().filter(|event| {
        event.kind == EventKind::Reindex && event.outcome == TransactionOutcome::Committed
    });
    let (old, new): (HashSet<_>, HashSet<_>) =
        reindexed.map(|event| (event.file, event.new_file)).unzip();
    events.retain(|event| match event.kind {
        EventKind::CreateIndex => event.file.is_none() || !new.contains(&event.file),
        EventKind::DropIndex => event.file.is_none() || !old.contains(&event.file),
        _ => true,
    });
}

impl Draft {
    /// When its transaction ended.
    fn moment(&self) -> Moment {
        Moment { own: Arc::clone(&self.event.xids), newest_xid: self.newest_xid }
    }

    fn lacks_names(&self) -> bool {
        let TableEvent { database, schema, table, .. } = &self.event;
        let is_database = matches!(self.subject, Subject::Database(..));
        !is_database && (database.is_none() || schema.is_none() || table.is_none())
    }

    /// Names it as the catalogs do at the moment.
    fn name(&mut self, catalogs: &mut CatalogsAt<'_>) {
        if let Subject::File(file) = &self.subject
            && let Some(class) = catalogs.owner(*file)
        {
            self.subject = Subject::Relation(class, None);
        }
        let event = &mut self.event;
        let database = match &self.subject {
            Subject::Relation(class, _) => class.database,
            Subject::File(file) => file.database,
            Subject::Database(_, name) => return event.database = Some(Arc::clone(name)),
        };
        event.database =
            event.database.take().or_else(|| Some(catalogs.database(database)?.into()));
        let Subject::Relation(class, table_oid) = &self.subject else { return };
        if is_index(class) {
            event.index = Some(Arc::from(&*class.name));
            let table = table_oid.and_then(|oid| catalogs.class(database, oid));
            let name = table.map(|table| Arc::from(table.name));
            event.table = event.table.take().or(name);
        } else {
            event.table = Some(Arc::from(&*class.name));
        }
        // An index is in the schema of its table.
        let schema = event.schema.take();
        event.schema = schema.or_else(|| catalogs.schema(database, class.namespace));
    }

    /// Names it as it was called then, where the catalogs know only what it was called later.
    fn name_as_before(&mut self, renamed: &Renamed, catalogs: &mut CatalogsAt<'_>) {
        let Subject::Relation(class, _) = &self.subject else { return };
        if is_index(class) {
            return;
        }
        let (key, now) = ((class.database, class.oid), (class.namespace, &*class.name));
        let at = self.event.commit.unwrap_or(self.event.lsn);
        if let Some((namespace, name)) = renamed.before(key, now, at) {
            self.event.table = Some(name);
            self.event.schema = catalogs.schema(class.database, namespace);
        }
    }

    /// Names it as lists do, where the catalogs say nothing.
    fn name_by(&mut self, others: &Names) {
        let event = &mut self.event;
        let Some(file) = event.file.or(event.new_file) else { return };
        let database = others.database(file.database).map(Arc::from);
        event.database = event.database.take().or(database);
        let Some(relation) = others.relation(file) else { return };
        let table = others.table_of(file.database, relation).unwrap_or(relation);
        let name = || Some(Arc::from(&*table.name));
        event.table = event.table.take().or_else(name);
        event.schema = event.schema.take().or_else(|| table.schema.clone());
    }

    /// All names that the relation had, and the table of an index; or the database.
    fn all_names(&self, renamed: &Renamed, catalogs: &mut CatalogsAt<'_>) -> BTreeSet<Name> {
        let (class, table) = match &self.subject {
            Subject::Relation(class, table) => (class, table),
            Subject::Database(oid, _) => return renamed.database_names(*oid),
            Subject::File(_) => return BTreeSet::new(),
        };
        let oids = std::iter::once(class.oid).chain(*table);
        let now = self.event.database.as_deref();
        let names = oids.map(|oid| renamed.names((class.database, oid), now, catalogs));
        names.flatten().collect_set()
    }

    /// Whether it is about rows of what belongs to a table, or to the system.
    fn is_hidden(&self, others: &Names, history: &History) -> bool {
        match &self.subject {
            Subject::Relation(class, _) => self.event.rows.is_some() && !holds_rows_of_users(class),
            Subject::File(file) => {
                let is_toast = |relation: &Relation| relation.kind == kind::TOAST;
                history.is_mapped(*file) || others.relation(*file).is_some_and(is_toast)
            }
            Subject::Database(..) => false,
        }
    }
}
