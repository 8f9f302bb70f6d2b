//! Large transactions, for every report: found without counting all transactions.
//!
//! Two sieves, one after the other: of each megabyte of WAL only the transactions pass that wrote a
//! sixteenth of it, and of what passed in each 16 MB only those that wrote a sixteenth of that. A few rows
//! are left of a gigabyte, whichever way the WAL was divided among threads. The sums are of what passed:
//! a transaction wrote at least that much.
//!
//! Which relations it wrote, a sample tells: of every 16 kB of WAL the record that goes past its end, which
//! costs next to nothing and does not depend on the division either.

use hashbrown::HashMap;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_format::block::RelFileLocator;
use walstat_format::payload::heap;
use walstat_format::payload::heap::OPCODE_MASK;
use walstat_format::payload::heap2;
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

impl Written {
    /// What one record is.
    #[inline(always)]
    fn of(record: &Record<'_>) -> Written {
        let bytes = u64::from(record.header.total_bytes);
        let mut written = Written { bytes, ..Written::default() };
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        let kind = match (rmgr, info & OPCODE_MASK) {
            (rmgr::HEAP, heap::INSERT) => &mut written.insert_bytes,
            (rmgr::HEAP, heap::UPDATE | heap::HOT_UPDATE) => &mut written.update_bytes,
            (rmgr::HEAP, heap::DELETE) => &mut written.delete_bytes,
            (rmgr::HEAP2, heap2::MULTI_INSERT) => &mut written.insert_bytes,
            (rmgr::XLOG, _) if [xlog::FPI, xlog::FPI_MULTI].contains(&(info & 0xF0)) => {
                &mut written.new_page_bytes
            }
            _ if rmgr::INDEXES.contains(&rmgr) => &mut written.index_bytes,
            _ => return written,
        };
        *kind = bytes;
        written
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

    /// Notes the relation of a record that goes past the ends of so many stretches of the sample.
    #[inline(never)]
    fn sample(&mut self, record: &Record<'_>, times: u64) {
        let Some(block) = record.blocks().next() else { return };
        *self.relations.entry(block.relation).or_default() += times;
    }
}

/// How many stretches of the sample end within a record. Page headers are not counted, so that it does not
/// depend on anything but the record.
#[inline(always)]
fn sampled(record: &Record<'_>) -> u64 {
    let (start, bytes) = (record.lsn.0, u64::from(record.header.total_bytes));
    (start.saturating_add(bytes) >> SAMPLE_SHIFT) - (start >> SAMPLE_SHIFT)
}

/// What each transaction wrote of one such stretch of WAL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
struct XidBytes {
    number: u64,
    written: HashMap<u32, Work>,
}

/// The same in a partial result: its number, and by xid, ascending, how far each is from the one before
/// and its bytes. Most are neighbours, and so it becomes small.
type Packed = (u64, Vec<(u32, Work)>);

impl From<Packed> for XidBytes {
    fn from((number, rows): Packed) -> XidBytes {
        let mut before = 0u32;
        let row = |(apart, written): (u32, Work)| {
            before = before.wrapping_add(apart);
            (before, written)
        };
        XidBytes { number, written: rows.into_iter().map(row).collect() }
    }
}

impl From<XidBytes> for Packed {
    fn from(stretch: XidBytes) -> Packed {
        let mut rows: Vec<(u32, Work)> = stretch.written.into_iter().collect();
        rows.sort_unstable_by_key(|(xid, _)| *xid);
        let mut before = 0;
        for (xid, _) in &mut rows {
            (before, *xid) = (*xid, *xid - before);
        }
        (stretch.number, rows)
    }
}

/// Lets pass what is a good part of its stretch. The first stretch may have begun in the WAL before:
/// it stays open until that is known, as the last one does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sieve {
    first: Option<XidBytes>,
    last: Option<XidBytes>,
}

/// What one transaction wrote in a stretch.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Portion {
    /// The stretch's number.
    number: u64,
    xid: u32,
    work: Work,
}

impl Sieve {
    fn open_at(&mut self, number: u64) -> Option<&mut XidBytes> {
        let mut open = [&mut self.last, &mut self.first].into_iter().flatten();
        open.find(|stretch| stretch.number == number)
    }

    /// Notes what a transaction wrote in a stretch; returns what passed of the stretch before.
    fn note(&mut self, portion: Portion, shift: u32) -> Vec<Portion> {
        let Portion { number, xid, work } = portion;
        if let Some(stretch) = self.open_at(number) {
            stretch.written.entry(xid).or_default().add(work);
            return Vec::new();
        }
        let new = XidBytes { number, written: [(xid, work)].into_iter().collect() };
        match self.last.replace(new) {
            Some(before) if self.first.is_some() => passed(before, shift),
            before => {
                self.first = before;
                Vec::new()
            }
        }
    }

    /// What comes after this one; returns what passed of stretches that are whole now.
    fn join(&mut self, later: Sieve, shift: u32) -> Vec<Portion> {
        let mut found = Vec::new();
        for stretch in later.first.into_iter().chain(later.last) {
            let number = stretch.number;
            for (xid, work) in stretch.written {
                found.extend(self.note(Portion { number, xid, work }, shift));
            }
        }
        found
    }

    /// What passes of those that are still open, the first one last: nothing comes after it.
    fn finish(self, shift: u32) -> Vec<Portion> {
        self.last.into_iter().chain(self.first).flat_map(|s| passed(s, shift)).collect()
    }
}

/// What passes of a stretch.
fn passed(stretch: XidBytes, shift: u32) -> Vec<Portion> {
    let least = 1 << (shift - PART_SHIFT);
    let XidBytes { number, written } = stretch;
    written
        .into_iter()
        .filter(|(_, work)| work.written.bytes >= least)
        .map(|(xid, work)| Portion { number, xid, work })
        .collect()
}

/// Sees all records.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LargeTransactions {
    /// The transaction whose records come at the moment, and what it wrote in this stretch.
    run: Option<Portion>,
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
        self.end_run();
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

    #[inline(never)]
    fn begin_run(&mut self, run: Portion) {
        self.end_run();
        self.run = Some(run);
    }

    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        let passed = self.fine.note(run, FINE_SHIFT);
        self.pass(passed);
    }

    /// Takes what passed the first sieve to the second one.
    fn pass(&mut self, fine: Vec<Portion>) {
        for portion in fine {
            let number = portion.number >> (COARSE_SHIFT - FINE_SHIFT);
            let passed = self.coarse.note(Portion { number, ..portion }, COARSE_SHIFT);
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
        let written = Written::of(record);
        match &mut self.run {
            Some(run) if (run.number, run.xid) == (number, xid) => run.work.written.add(&written),
            _ => {
                let work = Work { written, ..Work::default() };
                self.begin_run(Portion { number, xid, work });
            }
        }
        let times = sampled(record);
        if times > 0
            && let Some(run) = &mut self.run
        {
            run.work.sample(record, times);
        }
    }

    fn merge(&mut self, mut later: LargeTransactions) {
        self.end_run();
        later.end_run();
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
            // The kinds go with the bytes.
            let written = Written { bytes: *bytes, delete_bytes: *bytes, ..Written::default() };
            let relations = [(RelFileLocator::default(), *bytes)].into();
            let work = Work { written, relations };
            large.begin_run(Portion { number: lsn >> FINE_SHIFT, xid: *xid, work });
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

    #[test]
    fn a_stretch_is_packed_and_read_back() {
        let of = |bytes| {
            let written = Written { bytes, ..Written::default() };
            Work { written, relations: [(RelFileLocator::default(), bytes)].into() }
        };
        let written = [(700, of(5)), (702, of(6)), (u32::MAX, of(7))].into();
        let stretch = XidBytes { number: 9, written };
        let packed = Packed::from(stretch.clone());
        assert_eq!(packed, (9, vec![(700, of(5)), (2, of(6)), (u32::MAX - 702, of(7))]));
        assert_eq!(XidBytes::from(packed), stretch);
    }
}
