//! Large transactions, for every report: found without counting all transactions.
//!
//! Two sieves, one after the other: of each megabyte of WAL only the transactions pass that wrote a
//! sixteenth of it, and of what passed in each 16 MB only those that wrote a sixteenth of that. A few rows
//! are left of a gigabyte, whichever way the WAL was divided among threads. The sums are of what passed:
//! a transaction wrote at least that much.
//!
//! Which relations it wrote, a sample tells: of every 16 kB of WAL the record that goes past its end, which
//! costs next to nothing and does not depend on the division either.

mod stretch;

use self::stretch::Stretch;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_format::block::RelFileLocator;
use walstat_format::payload::heap;
use walstat_format::payload::heap::OPCODE_MASK;
use walstat_format::payload::heap2;
use walstat_format::payload::rmgr_info;
use walstat_format::payload::xact;
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_read::scan::observe::Observe;

/// Bytes of WAL that the first sieve looks at together, as a power of two ...
const FINE_SHIFT: u32 = 20;
/// ... and the second one.
const COARSE_SHIFT: u32 = 24;
/// A transaction passes that wrote one part of so many, as a power of two.
const PART_SHIFT: u32 = 4;
/// So many bytes of WAL, as a power of two, tell one relation.
const SAMPLE_SHIFT: u32 = 14;

sums! {
    /// What a transaction wrote, in bytes of records with their images.
    #[derive(Serialize, Deserialize)]
    pub struct Written {
        /// All of it.
        bytes,
        /// Rows inserted.
        insert_bytes,
        /// Rows updated.
        update_bytes,
        /// Rows deleted.
        delete_bytes,
        /// Entries of indexes that were there before.
        index_bytes,
        /// Whole pages: index builds, rewrites, copies.
        new_page_bytes,
    }
}

/// What a record is there for, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Sort {
    Insert,
    Update,
    Delete,
    Index,
    NewPage,
    Other,
}

impl Sort {
    #[inline(always)]
    fn of(record: &Record<'_>) -> Sort {
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        match (rmgr, info & OPCODE_MASK) {
            (rmgr::HEAP, heap::INSERT) => Sort::Insert,
            (rmgr::HEAP, heap::UPDATE | heap::HOT_UPDATE) => Sort::Update,
            (rmgr::HEAP, heap::DELETE) => Sort::Delete,
            (rmgr::HEAP2, heap2::MULTI_INSERT) => Sort::Insert,
            (rmgr::XLOG, _) if [xlog::FPI, xlog::FPI_MULTI].contains(&rmgr_info(info)) => {
                Sort::NewPage
            }
            _ if rmgr::INDEXES.contains(&rmgr) => Sort::Index,
            _ => Sort::Other,
        }
    }
}

impl Written {
    fn add_sort(&mut self, sort: Sort, bytes: u64) {
        self.bytes += bytes;
        match sort {
            Sort::Insert => self.insert_bytes += bytes,
            Sort::Update => self.update_bytes += bytes,
            Sort::Delete => self.delete_bytes += bytes,
            Sort::Index => self.index_bytes += bytes,
            Sort::NewPage => self.new_page_bytes += bytes,
            Sort::Other => {}
        }
    }

    /// The same apart, without what is 0.
    fn by_sort(&self) -> impl Iterator<Item = (Sort, u64)> {
        let known = [
            (Sort::Insert, self.insert_bytes),
            (Sort::Update, self.update_bytes),
            (Sort::Delete, self.delete_bytes),
            (Sort::Index, self.index_bytes),
            (Sort::NewPage, self.new_page_bytes),
        ];
        let sorted: u64 = known.iter().map(|(_, bytes)| bytes).sum();
        let others = self.bytes.saturating_sub(sorted);
        known.into_iter().chain([(Sort::Other, others)]).filter(|(_, bytes)| *bytes > 0)
    }
}

/// What a transaction wrote, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Work {
    written: Written,
    /// Relations by how often the sample met them.
    relations: BTreeMap<RelFileLocator, u64>,
}

impl Work {
    fn add(&mut self, other: Work) {
        self.written.add(&other.written);
        for (relation, times) in other.relations {
            *self.relations.entry(relation).or_default() += times;
        }
    }
}

/// How many stretches of the sample end within a record. Page headers are not counted, so that it does not
/// depend on anything but the record.
#[inline(always)]
fn sampled(record: &Record<'_>) -> u64 {
    let (start, bytes) = (record.lsn.0, u64::from(record.header.total_bytes));
    (start.saturating_add(bytes) >> SAMPLE_SHIFT) - (start >> SAMPLE_SHIFT)
}

/// Lets pass what is a good part of its stretch. The first stretch may have begun in the WAL before:
/// it stays open until that is known, as the last one does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Sieve {
    first: Option<Stretch>,
    last: Option<Stretch>,
}

/// What one transaction wrote in a stretch.
#[derive(Debug, Clone)]
struct Portion {
    /// The stretch's number.
    number: u64,
    xid: u32,
    work: Work,
}

/// A transaction passes that wrote so many bytes of a stretch.
const fn least(shift: u32) -> u64 {
    1 << (shift - PART_SHIFT)
}

impl Sieve {
    /// The last stretch, if it is the one of this number.
    #[inline(always)]
    fn last(&mut self, number: u64) -> Option<&mut Stretch> {
        self.last.as_mut().filter(|last| last.number == number)
    }

    /// The stretch of this number, which may begin with it; and what passed of the one before.
    #[inline(never)]
    fn at(&mut self, number: u64, shift: u32) -> (&mut Stretch, Vec<Portion>) {
        let is_last = self.last.as_ref().is_some_and(|last| last.number == number);
        let is_first = self.first.as_ref().is_some_and(|first| first.number == number);
        let mut passed = Vec::new();
        if !is_last && !is_first {
            match &mut self.last {
                Some(last) if self.first.is_some() => {
                    passed = last.passed(least(shift));
                    last.begin(number);
                }
                last => self.first = last.replace(Stretch::new(number)),
            }
        }
        let here = if is_last || !is_first { &mut self.last } else { &mut self.first };
        (here.get_or_insert_with(|| Stretch::new(number)), passed)
    }

    /// What comes after this one; returns what passed of stretches that are whole now.
    fn join(&mut self, later: Sieve, shift: u32) -> Vec<Portion> {
        let mut found = Vec::new();
        for stretch in later.first.into_iter().chain(later.last) {
            let (ours, passed) = self.at(stretch.number, shift);
            ours.append(stretch);
            found.extend(passed);
        }
        found
    }

    /// What passes of those that are still open, the first one last: nothing comes after it.
    fn finish(self, shift: u32) -> Vec<Portion> {
        let open = self.last.into_iter().chain(self.first);
        open.flat_map(|stretch| stretch.passed(least(shift))).collect()
    }
}

/// Records of one transaction and one sort that come at the moment, in one stretch.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Streak {
    number: u64,
    xid: u32,
    sort: Sort,
    bytes: u64,
}

/// Sees all records.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LargeTransactions {
    streak: Option<Streak>,
    fine: Sieve,
    coarse: Sieve,
    found: BTreeMap<u32, Work>,
    /// Transactions that were rolled back, large or not.
    aborted: RoaringBitmap,
}

/// A transaction and what it wrote at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeTransaction {
    /// Its own xid: subtransactions have their own.
    pub xid: u32,
    /// At least so much.
    pub written: Written,
    /// The relations that it wrote, by how often a sample met them.
    pub relations: BTreeMap<RelFileLocator, u64>,
    /// Whether it was rolled back.
    pub is_aborted: bool,
}

impl LargeTransactions {
    /// The transactions with most, largest first.
    pub fn finish(mut self) -> Vec<LargeTransaction> {
        self.end_streak();
        let fine = std::mem::take(&mut self.fine).finish(FINE_SHIFT);
        self.pass(fine);
        let coarse = std::mem::take(&mut self.coarse).finish(COARSE_SHIFT);
        self.add_found(coarse);
        let aborted = &self.aborted;
        let row = |(xid, Work { written, relations })| {
            let is_aborted = aborted.contains(xid);
            LargeTransaction { xid, written, relations, is_aborted }
        };
        let mut rows: Vec<_> = self.found.into_iter().map(row).collect();
        rows.sort_unstable_by_key(|row| (std::cmp::Reverse(row.written.bytes), row.xid));
        rows
    }

    #[inline(always)]
    fn begin_streak(&mut self, streak: Streak) {
        if let Some(Streak { number, xid, sort, bytes }) = self.streak.replace(streak) {
            match self.fine.last(number) {
                Some(stretch) => stretch.add(xid, sort, bytes),
                None => self.add(number, xid, sort, bytes),
            }
        }
    }

    fn end_streak(&mut self) {
        if let Some(Streak { number, xid, sort, bytes }) = self.streak.take() {
            self.add(number, xid, sort, bytes);
        }
    }

    /// Adds what a transaction wrote in a stretch that may begin with it.
    #[inline(never)]
    fn add(&mut self, number: u64, xid: u32, sort: Sort, bytes: u64) {
        let (stretch, passed) = self.fine.at(number, FINE_SHIFT);
        stretch.add(xid, sort, bytes);
        self.pass(passed);
    }

    /// Notes the relation of a record that goes past the ends of so many stretches of the sample.
    #[inline(never)]
    fn sample(&mut self, record: &Record<'_>, times: u64) {
        let Some(place) = record.places().next() else { return };
        let (stretch, passed) = self.fine.at(record.lsn.0 >> FINE_SHIFT, FINE_SHIFT);
        stretch.add_relation(record.header.xid, place.relation, times);
        self.pass(passed);
    }

    /// Takes what passed the first sieve to the second one.
    fn pass(&mut self, fine: Vec<Portion>) {
        for Portion { number, xid, work } in fine {
            let number = number >> (COARSE_SHIFT - FINE_SHIFT);
            let (stretch, passed) = self.coarse.at(number, COARSE_SHIFT);
            stretch.add_work(xid, &work);
            self.add_found(passed);
        }
    }

    /// Takes what passed both.
    fn add_found(&mut self, coarse: Vec<Portion>) {
        for Portion { xid, work, .. } in coarse {
            self.found.entry(xid).or_default().add(work);
        }
    }

    /// Takes note of a transaction that is rolled back, with its subtransactions.
    #[inline(never)]
    fn abort(&mut self, record: &Record<'_>) {
        let data = record.main_data().unwrap_or_default();
        let end = xact::End::parse(record.header.info, &data, record.version);
        let (prepared, subxids) =
            end.map_or((None, Default::default()), |end| (end.prepared_xid, end.subxids));
        self.aborted.insert(prepared.unwrap_or(record.header.xid));
        self.aborted.extend(subxids.iter());
    }
}

/// Whether a record rolls a transaction back.
#[inline(always)]
fn is_abort(record: &Record<'_>) -> bool {
    record.header.rmgr == rmgr::TRANSACTION
        && [xact::ABORT, xact::ABORT_PREPARED].contains(&(record.header.info & xact::OPCODE_MASK))
}

impl Observe for LargeTransactions {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let (number, xid) = (record.lsn.0 >> FINE_SHIFT, record.header.xid);
        if is_abort(record) {
            self.abort(record);
        }
        if xid == 0 {
            return;
        }
        let (sort, bytes) = (Sort::of(record), u64::from(record.header.total_bytes));
        match &mut self.streak {
            Some(streak) if (streak.number, streak.xid, streak.sort) == (number, xid, sort) => {
                streak.bytes += bytes;
            }
            _ => self.begin_streak(Streak { number, xid, sort, bytes }),
        }
        let times = sampled(record);
        if times > 0 {
            self.sample(record, times);
        }
    }

    fn merge(&mut self, mut later: LargeTransactions) {
        self.end_streak();
        later.end_streak();
        // What passes of its first stretch comes before all that passed there.
        let LargeTransactions { fine, coarse, found, aborted, .. } = later;
        let passed = self.fine.join(fine, FINE_SHIFT);
        self.pass(passed);
        let passed = self.coarse.join(coarse, COARSE_SHIFT);
        self.add_found(passed);
        for (xid, work) in found {
            self.found.entry(xid).or_default().add(work);
        }
        self.aborted |= aborted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each record is: its place, transaction and length.
    type One = (u64, u32, u64);

    fn large(records: &[One]) -> LargeTransactions {
        let mut large = LargeTransactions::default();
        for (lsn, xid, bytes) in records {
            let number = lsn >> FINE_SHIFT;
            large.begin_streak(Streak { number, xid: *xid, sort: Sort::Delete, bytes: *bytes });
            let (stretch, passed) = large.fine.at(number, FINE_SHIFT);
            stretch.add_relation(*xid, RelFileLocator::default(), *bytes);
            large.pass(passed);
        }
        large
    }

    fn sums(rows: &[LargeTransaction]) -> Vec<(u32, u64)> {
        for row in rows {
            assert_eq!(row.written.delete_bytes, row.written.bytes);
            assert_eq!(row.relations.values().sum::<u64>(), row.written.bytes);
        }
        rows.iter().map(|row| (row.xid, row.written.bytes)).collect()
    }

    /// The same by another way: all sums of all stretches.
    fn naive(records: &[One]) -> Vec<(u32, u64)> {
        let mut fine: std::collections::BTreeMap<(u64, u32), u64> = Default::default();
        for (lsn, xid, bytes) in records {
            *fine.entry((lsn >> 20, *xid)).or_default() += bytes;
        }
        let mut coarse: std::collections::BTreeMap<(u64, u32), u64> = Default::default();
        for ((number, xid), bytes) in fine.into_iter().filter(|(_, bytes)| *bytes >= 1 << 16) {
            *coarse.entry((number >> 4, xid)).or_default() += bytes;
        }
        let mut all: std::collections::BTreeMap<u32, u64> = Default::default();
        for ((_, xid), bytes) in coarse.into_iter().filter(|(_, bytes)| *bytes >= 1 << 20) {
            *all.entry(xid).or_default() += bytes;
        }
        let mut rows: Vec<(u32, u64)> = all.into_iter().collect();
        rows.sort_by_key(|(xid, bytes)| (std::cmp::Reverse(*bytes), *xid));
        rows
    }

    /// 80 MB: three large ones side by side with small ones, each for a time.
    fn records() -> Vec<One> {
        let mut lsn = 5 << 20;
        let mut state = 1u64;
        (0..200_000u32)
            .map(|number| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let bytes = 100 + (state >> 33) % 640;
                lsn += bytes;
                let large = (state >> 40) % 3;
                let is_large = (state >> 50).is_multiple_of(4) && number / 60_000 >= large as u32;
                (lsn, if is_large { 7 + large as u32 } else { 1000 + number / 3 }, bytes)
            })
            .collect()
    }

    #[test]
    fn the_large_ones_are_found_however_the_wal_was_divided() {
        let records = records();
        let wanted = naive(&records);
        assert_eq!(wanted.iter().map(|(xid, _)| *xid).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(sums(&large(&records).finish()), wanted);
        for pieces in [2, 3, 7, 100, 1000, 50_000] {
            let mut parts = records.chunks(records.len() / pieces).map(large);
            let mut whole = parts.next().unwrap_or_default();
            parts.by_ref().for_each(|part| whole.merge(part));
            assert_eq!(sums(&whole.finish()), wanted, "{pieces}");
            // Together in pairs first, as threads do it.
            let mut parts: Vec<LargeTransactions> =
                records.chunks(records.len() / pieces).map(large).collect();
            while parts.len() > 1 {
                let pairs = parts.chunks(2).map(|pair| {
                    let mut both = pair[0].clone();
                    pair.get(1).into_iter().for_each(|later| both.merge(later.clone()));
                    both
                });
                parts = pairs.collect();
            }
            assert_eq!(sums(&parts.remove(0).finish()), wanted, "{pieces} in pairs");
        }
    }
}
