//! The dimension: transactions in flight, and those that have ended and are of interest.

use super::changes::{Changes, RowChange};
use super::deed::Places;
use super::ended::{Before, End, Ended};
use super::ended_log::{EndedAlone, EndedLog};
use super::file_works::FileWorks;
use super::in_flight::InFlight;
use super::told::Teller;
use super::work::{Prepared, Work};
use super::{EventsFound, PlacedEnd};
use crate::names::NameLessons;
use hashbrown::HashSet;
use walstat_format::block::{BlockMark, RelFileLocator};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::OrderBy;
use walstat_format::payload::dbase::DatabaseChange;
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::truncate::Truncate;
use walstat_format::payload::xact::Assignment;
use walstat_format::payload::{truncate, xact, xlog};
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::store::Store;
use walstat_read::scan::observe::Observe;

/// What was done to tables.
#[derive(Debug, Clone)]
pub struct Events {
    min_rows: u64,
    names: NameLessons,
    /// Of records that may be of catalogs, the ends and where they begin.
    places: Vec<(Lsn, Lsn)>,
    /// Where files of databases were removed, and the last end of a transaction before that.
    drops: Vec<(Lsn, Option<PlacedEnd>)>,
    last_end: Option<PlacedEnd>,
    open: InFlight,
    /// Those that have ended and are of interest, where nothing comes before what is seen.
    ended: Vec<Ended>,
    /// All that have ended, elsewhere.
    log: EndedLog,
    /// Where a server stopped first, or another one went on: transactions of before are gone.
    stopped: Option<Lsn>,
    before: Before,
    /// Nothing comes before what is seen: what has ended can get nothing more.
    is_first: bool,
    last: Last,
}

/// The last record of rows, if none of its blocks is of a catalog: what follows is mostly like it.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    /// Zero: there is none.
    xid: u32,
    mark: BlockMark,
    /// What each record with this `xl_info` does, to one row.
    change: Option<(u8, RowChange)>,
    /// Such records since that are not counted yet.
    more: Changes,
}

impl Events {
    /// None yet. Rows of a table are told from `min_rows` in a transaction on; names begin with those that
    /// `known` has.
    pub fn new(min_rows: u64, known: Option<&Store>) -> Events {
        Events {
            min_rows,
            names: known.map(NameLessons::over).unwrap_or_default(),
            places: Vec::new(),
            drops: Vec::new(),
            last_end: None,
            open: InFlight::default(),
            ended: Vec::new(),
            log: EndedLog::default(),
            stopped: None,
            before: Before::default(),
            is_first: false,
            last: Last::default(),
        }
    }

    /// The events, with names on top of those in `known`; where these say nothing, `others` do.
    pub fn finish(mut self, known: Store, others: &Names) -> EventsFound {
        self.settle();
        let Events { min_rows, names, places, drops, open, mut ended, before, .. } = self;
        ended.order_by_key(|ended| ended.lsn);
        let mut teller = Teller::new(names.history(known), Places { places, drops }, min_rows);
        ended.into_iter().for_each(|ended| teller.ended(ended));
        teller.open(open, before);
        teller.finish(others)
    }

    fn end(&mut self, record: &Record<'_>) {
        let info = record.header.info;
        let main_data = record.main_data().unwrap_or_default();
        match info & xact::OPCODE_MASK {
            xact::PREPARE => {
                if let Some(prepare) = Prepare::parse(&main_data, record.version) {
                    let subxids = prepare.subxids.iter().collect();
                    let prepared = Prepared { lsn: record.lsn, subxids };
                    self.open.of(prepare.xid).prepared = Some(prepared);
                }
            }
            xact::ASSIGNMENT => {
                if let Some(Assignment { top, subxids }) = Assignment::parse(&main_data) {
                    for sub in subxids.iter() {
                        self.open.of(sub).top = Some(top);
                    }
                }
            }
            _ => {
                let Some(end) = xact::End::parse(info, &main_data, record.version) else { return };
                let xid = end.prepared_xid.unwrap_or(record.header.xid);
                let was_prepared = end.prepared_xid.is_some();
                let ending = End::Recorded { commits: end.commits, time: end.time, was_prepared };
                let dropped = end.dropped.iter().filter(|_| end.commits).collect();
                self.put(record.lsn, xid, end.subxids.iter().collect(), ending, dropped);
                self.before.tick(end.time);
                self.last_end = Some(PlacedEnd { lsn: record.lsn, xid });
            }
        }
    }

    /// A transaction ends here.
    fn put(
        &mut self,
        lsn: Lsn,
        xid: u32,
        subxids: Box<[u32]>,
        end: End,
        dropped: Box<[RelFileLocator]>,
    ) {
        if subxids.is_empty() && dropped.is_empty() && self.put_alone(lsn, xid, end) {
            return;
        }
        let before = self.before;
        let (files, in_catalogs, database_drop) = (FileWorks::default(), false, None);
        let mut ended =
            Ended { lsn, end, xid, subxids, files, in_catalogs, database_drop, dropped, before };
        let xids: Vec<u32> = ended.xids().collect();
        for work in xids.iter().filter_map(|xid| self.open.remove(*xid)) {
            ended.add(work);
        }
        self.keep(ended);
    }

    /// A transaction ends alone: it is passed over, or a few words are enough; whether it is so.
    fn put_alone(&mut self, lsn: Lsn, xid: u32, end: End) -> bool {
        let Events { open, log, before, min_rows, is_first, .. } = self;
        open.forget(xid, |work| {
            let is_of_interest = work.is_of_interest(*min_rows);
            if *is_first {
                return !is_of_interest;
            }
            let (newest_xid, files) = (before.newest_xid, &work.files);
            let ended = EndedAlone { lsn, xid, end, newest_xid, files, is_of_interest };
            work.is_plain() && log.push_plain(ended)
        })
    }

    fn keep(&mut self, ended: Ended) {
        if !self.is_first {
            self.log.push(ended);
        } else if ended.is_of_interest(self.min_rows) {
            self.ended.push(ended);
        }
    }

    /// All transactions in flight end here as lost, except prepared ones and those in `others`.
    fn stop(&mut self, lsn: Lsn, others: &HashSet<u32>) {
        let prepared = self.open.iter().filter(|(_, work)| work.prepared.is_some());
        let mut stay: HashSet<u32> = others.clone();
        for (xid, work) in prepared {
            stay.insert(xid);
            stay.extend(work.prepared.iter().flat_map(|prepared| prepared.subxids.iter()));
        }
        let mut gone: Vec<u32> = self.open.xids().filter(|xid| !stay.contains(xid)).collect();
        gone.sort_unstable();
        for xid in gone {
            self.put(lsn, xid, Box::default(), End::Lost, Box::default());
        }
    }

    #[inline(always)]
    fn work(&mut self, xid: u32) -> &mut Work {
        self.open.of(xid)
    }

    #[inline(always)]
    fn file(record: &Record<'_>) -> Option<RelFileLocator> {
        match record.block_mark() {
            Some(mark) => (mark.fork() == 0).then(|| mark.relation()),
            None => record.blocks().find(|block| block.fork == 0).map(|block| block.relation),
        }
    }

    /// Counts a record if it is of rows, of the same transaction, and of the same block as the last one.
    #[inline(always)]
    fn count_if_like_last(&mut self, record: &Record<'_>) -> bool {
        let Last { xid, mark, change, .. } = self.last;
        if record.header.xid != xid
            || xid == 0
            || record.header.rmgr != rmgr::HEAP
            || record.block_mark() != Some(mark)
        {
            return false;
        }
        if change.is_some_and(|(info, _)| info == record.header.info) {
            self.last.more.rows += 1;
            self.last.more.bytes += u64::from(record.header.total_bytes);
        } else {
            self.work(xid).count(record, mark.relation());
        }
        true
    }

    /// Counts the records that were like the last one.
    fn count_more(&mut self) {
        let Last { xid, mark, change, more } = self.last;
        if let Some((_, change)) = change.filter(|_| more.rows > 0) {
            self.work(xid).files.of(mark.relation()).count(change, more);
            self.last.more = Changes { first: more.first, ..Changes::default() };
        }
    }

    /// Takes note of a record that is not like the last one.
    #[inline(never)]
    fn observe_unlike_last(&mut self, record: &Record<'_>) {
        self.count_more();
        self.names.observe(record);
        if !self.names.is_idle() {
            // It may have taught which files are catalogs.
            self.last = Last::default();
        }
        let (rmgr, xid) = (record.header.rmgr, record.header.xid);
        if xid != 0 {
            self.before.see(xid);
        }
        if rmgr == rmgr::TRANSACTION {
            return self.end(record);
        }
        let has_rows = [rmgr::HEAP, rmgr::HEAP2].contains(&rmgr);
        if (has_rows || rmgr == rmgr::XLOG)
            && !self.names.is_idle()
            && record.blocks().next().is_some()
        {
            self.places.push((record.end.aligned(), record.lsn));
            if xid != 0 {
                self.work(xid).in_catalogs = true;
            }
        }
        match Events::file(record).filter(|_| has_rows && xid != 0) {
            Some(file) => {
                self.work(xid).count(record, file);
                if let Some(mark) = record.block_mark().filter(|_| self.names.is_idle()) {
                    let more = Changes { first: record.lsn, ..Changes::default() };
                    self.last = Last { xid, mark, change: RowChange::of_one(record), more };
                }
            }
            None => self.observe_without_rows(record),
        }
    }

    /// A record of anything but rows and transactions.
    fn observe_without_rows(&mut self, record: &Record<'_>) {
        let (info, xid) = (record.header.rmgr_info(), record.header.xid);
        match record.header.rmgr {
            rmgr::DATABASE if xid != 0 => {
                let main_data = record.main_data().unwrap_or_default();
                let change = DatabaseChange::parse(record.header.info, &main_data, record.version);
                if let Some(DatabaseChange::Drop { .. }) = change {
                    self.work(xid).database_drop.get_or_insert(record.lsn);
                    self.drops.push((record.lsn, self.last_end));
                }
            }
            rmgr::XLOG if [xlog::CHECKPOINT_SHUTDOWN, xlog::END_OF_RECOVERY].contains(&info) => {
                self.stop(record.lsn, &HashSet::new());
                self.stopped.get_or_insert(record.lsn);
            }
            rmgr::STORAGE if xid != 0 && info == truncate::TRUNCATE => {
                let main_data = record.main_data().unwrap_or_default();
                if let Some(cut) = Truncate::parse(&main_data).filter(|cut| cut.blocks == 0) {
                    let end = record.end.aligned();
                    self.places.push((end, record.lsn));
                    self.work(xid).files.of(cut.relation).emptied.get_or_insert(end);
                }
            }
            rmgr if writes_pages(rmgr) && xid != 0 => {
                if let Some(file) = Events::file(record) {
                    self.work(xid).count_bytes(record, file);
                }
            }
            _ => {}
        }
    }
}

/// Whether records of a resource manager write what a file is made of when an index or a table is built.
fn writes_pages(rmgr: u8) -> bool {
    rmgr == rmgr::XLOG || rmgr == rmgr::GENERIC || rmgr::INDEXES.contains(&rmgr)
}

impl Observe for Events {
    const WHOLE: bool = true;
    const KEEPS: bool = true;

    #[inline]
    fn observe(&mut self, record: &Record<'_>) {
        if !self.count_if_like_last(record) {
            self.observe_unlike_last(record);
        }
    }

    fn merge(&mut self, mut later: Events) {
        self.count_more();
        later.count_more();
        self.last = Last::default();
        self.names.merge(later.names);
        self.places.extend(later.places);
        let drops = later.drops.into_iter();
        self.drops.extend(drops.map(|(place, end)| (place, end.or(self.last_end))));
        self.last_end = later.last_end.or(self.last_end);
        // Before missing segments lies nothing but what it has already: it was settled with that.
        self.ended.append(&mut later.ended);
        let mut stopped = later.stopped;
        // What goes on after a stop was prepared before it.
        let mut stay: HashSet<u32> = later.open.xids().collect();
        if let Some(stop) = stopped {
            for logged in later.log.iter().filter(|logged| logged.lsn() > stop) {
                stay.extend(logged.into_ended().xids());
            }
        }
        for logged in later.log.iter() {
            if let Some(stop) = stopped.take_if(|stop| logged.lsn() > *stop) {
                self.stop(stop, &stay);
            }
            if self.is_first && logged.idle_xid().is_some_and(|xid| !self.open.has(xid)) {
                continue;
            }
            let mut ended = logged.into_ended();
            let xids: Vec<u32> = ended.xids().collect();
            for work in xids.iter().filter_map(|xid| self.open.remove(*xid)) {
                ended.add(work);
            }
            ended.before = ended.before.after(self.before);
            self.keep(ended);
        }
        if let Some(stop) = stopped {
            self.stop(stop, &stay);
        }
        for (xid, work) in later.open.into_rows() {
            self.open.of(xid).append(work);
        }
        self.stopped = self.stopped.or(later.stopped);
        self.before = later.before.after(self.before);
    }

    fn settle(&mut self) {
        self.count_more();
        self.is_first = true;
        for logged in std::mem::take(&mut self.log).iter() {
            self.keep(logged.into_ended());
        }
    }

    fn shrink(&mut self) {
        self.names.shrink();
        self.log.shrink();
    }
}
