//! What is told of WAL while it is written. At each telling what came since the last one is taken from what
//! counts, put together by table and kind, and added to what was told before: memory is as large as what is
//! told, not as what was read.

mod family;
mod happened;
mod redo_sums;
pub mod state;

use super::build::rfc3339;
use super::known::{Known, Sources};
use super::model::Numbers;
use super::model::follow::{
    KindSums, Moment, Now, OTHER, OpenTransaction, PgWal, RmgrSums, TableNow, TableSums,
};
use super::wal_keepers;
use super::who;
use family::{Family, Tally};
use happened::is_missing;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use walstat_analyse::follow::{self, EarlierNames, Following, News};
use walstat_analyse::totals::Totals;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr;
use walstat_format::version::Version;
use walstat_names::catalog::names;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::TOAST_SCHEMA_NAME;
use walstat_names::catalog::store::Store;
use walstat_read::follow::{Follower, Happening, Recount, Recounted};
use walstat_read::input::plan::Plan;

/// How often names learned from the WAL are looked up again; a file without a name is looked up at once.
const LEARN_EVERY: Duration = Duration::from_secs(15);
/// What keeps segments is looked at so often.
const KEEPERS_EVERY: Duration = Duration::from_secs(5);
/// After WAL was lost catalogs are read again, but not more often than this.
const CATALOGS_EVERY: Duration = Duration::from_secs(5);
/// WAL before the one that is counted is read for so long without a look whether that is to end.
const EARLIER: Duration = Duration::from_millis(200);
/// Names are remembered for so many files.
const FILES_MAX: usize = 20_000;

/// Database, schema and table; and the index, if a file is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
struct Owner {
    table: [String; 3],
    index: Option<String>,
}

/// Puts names to what is counted, and makes of it what is shown.
pub struct Reporter {
    sources: Sources,
    known: Known,
    /// When catalogs were read, and whether WAL is missing since.
    catalogs_read: Instant,
    are_names_old: bool,
    cluster: u64,
    version: &'static Version,
    store: Store,
    names: Names,
    learned: Option<Instant>,
    /// Files without a name when names were looked up last.
    unknown: BTreeSet<RelFileLocator>,
    /// Names that files had.
    owners: BTreeMap<RelFileLocator, Owner>,
    tables: Family,
    kinds: Family,
    top: usize,
    /// What was told last: the position without what was lost before it, when, and the sums.
    before: Option<(u64, Instant, Numbers)>,
    /// Checkpoints are told: those that had ended before the first telling are none of its time.
    tells_checkpoints: bool,
    /// The data directory that the WAL lies in.
    directory: Option<PathBuf>,
    /// Reads what is missing of the sums since the last redo point.
    recount: Option<Recount>,
    pg_wal: Option<(PgWal, Instant)>,
}

impl Reporter {
    /// Tells of the cluster of this plan, with names from these sources; `top` rows a family, 0 for all.
    pub fn new(sources: Sources, plan: &Plan, top: usize) -> Reporter {
        let (version, cluster) = (plan.version(), plan.geometry.system_identifier);
        let mut known = Known::names_beside(&sources, plan.data_directory.as_deref());
        let store = known.take_store(version, cluster);
        Reporter {
            sources,
            known,
            catalogs_read: Instant::now(),
            are_names_old: false,
            cluster,
            version,
            store,
            names: Names::default(),
            learned: None,
            unknown: BTreeSet::new(),
            owners: BTreeMap::new(),
            tables: Family::default(),
            kinds: Family::default(),
            top: if top == 0 { usize::MAX } else { top },
            before: None,
            tells_checkpoints: false,
            directory: plan.data_directory.clone(),
            recount: None,
            pg_wal: None,
        }
    }

    /// The catalogs that names begin with.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Learns names from the WAL between a redo point and where following begins: what was made in it is in
    /// no catalog on disk yet. Goes on until all was read, or is not there, or it `is_over`.
    pub fn learn_from(&mut self, redo: Lsn, follower: &Follower, is_over: impl Fn() -> bool) {
        let range = redo..follower.position();
        if range.is_empty() {
            return;
        }
        let mut reading = follower.recount(range, EarlierNames::over(&self.store));
        while !is_over() {
            match reading.go_on::<EarlierNames>(Instant::now() + EARLIER) {
                Recounted::GoesOn => {}
                Recounted::Gone => return,
                Recounted::Whole(names) => return names.teach(&mut self.store),
            }
        }
    }

    /// What there is to be said of names.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.known.take_warnings()
    }

    /// Tells what a follower has counted, and what came since the last time.
    /// `is_last`: nothing is looked up on disk any more.
    pub fn tell(
        &mut self,
        follower: &mut Follower,
        happenings: &[Happening],
        is_last: bool,
    ) -> (Moment, Now) {
        let position = follower.position();
        self.are_names_old |= happenings.iter().any(is_missing);
        if !is_last {
            self.note_redo(follower);
        }
        let told = follower.counted(|following: &mut Following| {
            let news = following.take_news();
            self.learn(following, &news, is_last);
            let rows = self.happened(happenings, &news, following);
            let sums = by_rmgr(following);
            (news, rows, sums, following.oldest_open(), following.marks.clone())
        });
        let Some((news, rows, (rmgrs, commits), (oldest, is_known), marks)) = told else {
            return Default::default();
        };
        let mut numbers = Numbers::default();
        rmgrs.iter().for_each(|row| numbers.add(&row.numbers));
        let now = self.add(news);
        let now = self.pace(now, follower, numbers);
        let since_redo = marks.since_redo();
        let moment = Moment {
            time: format!("{:.6}", jiff::Timestamp::now()),
            wal_time: marks.time.and_then(rfc3339),
            postgres: self.version.name.to_owned(),
            system_identifier: self.cluster.to_string(),
            timeline: follower.timeline(),
            start_lsn: follower.start().to_string(),
            position_lsn: position.to_string(),
            start_bytes: follower.start().0,
            position_bytes: position.0,
            numbers,
            commits,
            lost_bytes: follower.lost_bytes(),
            up: follower.is_readable(),
            behind_bytes: follower.behind_bytes(),
            bytes_per_second: now.bytes_per_second(),
            redo_lsn: marks.redo().map(|redo| redo.to_string()),
            checkpoint_distance_bytes: marks.redo().map(|redo| position.0.saturating_sub(redo.0)),
            bytes_since_redo: since_redo.map(|(_, total)| total),
            fpi_bytes_since_redo: since_redo.map(|(images, _)| images),
            oldest_transaction: oldest.map(|oldest| open_transaction(&oldest, position)),
            open_transactions_known: is_known,
            rmgrs,
            tables: self.tables.told(3).into_iter().map(table_sums).collect(),
            kinds: self.kinds.told(2).into_iter().map(kind_sums).collect(),
            pg_wal: self.pg_wal(follower),
            happenings: rows,
        };
        (moment, now)
    }

    /// What lies in `pg_wal`; looked at now and then.
    fn pg_wal(&mut self, follower: &Follower) -> Option<PgWal> {
        if !follower.is_readable() {
            self.pg_wal = None;
            return None;
        }
        let is_old = |(_, at): &(PgWal, Instant)| at.elapsed() >= KEEPERS_EVERY;
        if let Some(directory) = &self.directory
            && self.pg_wal.as_ref().is_none_or(is_old)
        {
            // What cannot be read is told by the report.
            let found = wal_keepers::read(directory, follower.position(), &mut Vec::new());
            self.pg_wal = found.map(|found| (found, Instant::now()));
        }
        self.pg_wal.as_ref().map(|(found, _)| found.clone())
    }

    /// Looks up names where it is time to, or where some are missing.
    fn learn(&mut self, following: &mut Following, news: &News, is_last: bool) {
        let files = || {
            let files = news.relations.rows().filter_map(|row| row.key.map(|key| key.relation));
            files.chain(news.kinds.files())
        };
        let is_missing = |file: &RelFileLocator| self.names.relation(*file).is_none();
        // Whether a table is gone, or has another file, is told by names that are up to date; and one that
        // nobody wrote to since it was made has no name yet. Temporary tables are not among these
        // (`smgrGetPendingDeletes` in `src/backend/catalog/storage.c`).
        let is_new = !news.dropped.is_empty()
            || files().filter(is_missing).any(|file| !self.unknown.contains(&file));
        // A file without a name would be a row of its own for good.
        let is_due = self.learned.is_none_or(|at| at.elapsed() >= LEARN_EVERY);
        if !is_last && self.are_names_old && self.catalogs_read.elapsed() >= CATALOGS_EVERY {
            self.read_catalogs();
        } else if !is_new && !is_due {
            return;
        }
        if is_due {
            self.learned = Some(Instant::now());
            self.unknown.clear();
        }
        following.teach(&mut self.store);
        self.names = self.known.names_by(&self.store, &BTreeSet::new(), self.cluster);
        let unknown = files().filter(|file| self.names.relation(*file).is_none());
        self.unknown.extend(unknown);
    }

    /// Begins anew with the names that there are: some may have been given in WAL that was lost. What the WAL
    /// after it has taught comes on top of them.
    fn read_catalogs(&mut self) {
        self.known = Known::names_beside(&self.sources, self.directory.as_deref());
        self.store = self.known.take_store(self.version, self.cluster);
        (self.are_names_old, self.catalogs_read) = (false, Instant::now());
    }

    fn owner(&mut self, file: RelFileLocator) -> Owner {
        let Some(named) = self.names.relation(file) else {
            let known = self.owners.get(&file).cloned();
            return known.unwrap_or_else(|| {
                let database = self.database(file.database);
                Owner { table: [database, String::new(), file.to_string()], index: None }
            });
        };
        let table = self.names.table_of(file.database, named).unwrap_or(named);
        let schema = table.schema.as_deref().unwrap_or_default().to_owned();
        let is_own = named.is_index() && !is_of_toast(named);
        let owner = Owner {
            table: [self.database(file.database), schema, table.name.to_string()],
            index: is_own.then(|| named.name.to_string()),
        };
        if self.owners.len() > FILES_MAX {
            self.owners.clear();
        }
        self.owners.insert(file, owner.clone());
        owner
    }

    fn database(&self, oid: u32) -> String {
        self.names.database(oid).map_or_else(|| oid.to_string(), str::to_owned)
    }

    /// Adds what is new by table and by kind.
    fn add(&mut self, news: News) -> Now {
        let mut tables: BTreeMap<[String; 3], TableNow> = BTreeMap::new();
        for row in news.relations.rows() {
            let owner = row.key.map(|key| self.owner(key.relation)).unwrap_or_default();
            let numbers = row.amounts.numbers();
            let now = tables.entry(owner.table.clone()).or_default();
            now.labels = owner.table;
            now.numbers.add(&numbers);
            let part = owner.index.unwrap_or_default();
            match now.parts.iter_mut().find(|(name, _)| *name == part) {
                Some((_, sums)) => sums.add(&numbers),
                None => now.parts.push((part, numbers)),
            }
        }
        let by_table = tables.values().map(|now| (now.labels.to_vec(), Tally::of(now.numbers)));
        self.tables.add(by_table.collect(), self.top);
        let (rows, _) = who::kind_rows(news.kinds, &self.names);
        let by_kind = rows.iter().map(|row| (row.labels().to_vec(), Tally::of_kind(row)));
        let by_kind: Vec<(Vec<String>, Tally)> = by_kind.collect();
        let kinds = by_kind.iter().cloned().map(kind_sums).collect();
        self.kinds.add(by_kind, self.top);
        Now { tables: tables.into_values().collect(), kinds, ..Now::default() }
    }

    /// How fast it goes since the last time.
    fn pace(&mut self, now: Now, follower: &Follower, numbers: Numbers) -> Now {
        let read = follower.position().0.saturating_sub(follower.lost_bytes());
        let moment = Instant::now();
        let Some((read_before, at, before)) = self.before.replace((read, moment, numbers)) else {
            return now;
        };
        let seconds = moment.duration_since(at).as_secs_f64();
        let wal_bytes = read.saturating_sub(read_before);
        let numbers = Numbers {
            count: numbers.count - before.count,
            record_bytes: numbers.record_bytes - before.record_bytes,
            fpi_bytes: numbers.fpi_bytes - before.fpi_bytes,
            total_bytes: numbers.total_bytes - before.total_bytes,
            fpi_count: numbers.fpi_count - before.fpi_count,
        };
        Now { seconds, wal_bytes, numbers, ..now }
    }
}

/// Whether an index is that of a TOAST table.
fn is_of_toast(named: &names::Relation) -> bool {
    named.schema.as_deref() == Some(TOAST_SCHEMA_NAME)
}

fn by_rmgr(following: &Following) -> (Vec<RmgrSums>, u64) {
    let mut sums: BTreeMap<u8, Totals> = BTreeMap::new();
    let mut commits = 0;
    for (record, totals) in following.records.rows() {
        sums.entry(record.rmgr).or_default().add(totals);
        if record.is_commit() {
            commits += totals.count;
        }
    }
    let row = |(id, totals): (u8, Totals)| RmgrSums {
        rmgr: rmgr::name(id).to_string(),
        numbers: totals.sums(0).numbers(),
    };
    (sums.into_iter().map(row).collect(), commits)
}

fn open_transaction(open: &follow::OpenTransaction, position: Lsn) -> OpenTransaction {
    OpenTransaction {
        xid: open.xid.to_string(),
        start_lsn: open.is_first.then(|| open.since.to_string()),
        bytes: position.0.saturating_sub(open.since.0),
    }
}

fn table_sums((labels, tally): (Vec<String>, Tally)) -> TableSums {
    let mut labels = labels.into_iter();
    let mut next = || labels.next().unwrap_or_default();
    TableSums { database: next(), schema: next(), table: next(), numbers: tally.numbers }
}

fn kind_sums((labels, tally): (Vec<String>, Tally)) -> KindSums {
    let mut labels = labels.into_iter();
    let mut next = || labels.next().unwrap_or_default();
    let Tally { numbers, transactions, aborted } = tally;
    KindSums { database: next(), kind: next(), transactions, aborted, numbers }
}

/// The labels of all that is told together.
fn others(labels: usize) -> Vec<String> {
    vec![OTHER.to_owned(); labels]
}
