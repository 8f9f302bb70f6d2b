//! What vacuum wrote, by file, with the images that it brought.
//!
//! From 17 on the type of each of its records says so. Before, vacuum prunes a page by the same record
//! as a statement that comes across it. Whose that was, the page tells later: vacuum comes back to a page
//! that it pruned, freezes rows of it, takes away its dead line pointers, or marks it as visible to all.
//! A statement that prunes does not. So pruning is vacuum's if it was done outside of a transaction, and
//! the next that happens to the page is one of these. Pages that vacuum prunes and leaves at that stay
//! unknown, and count as pruned by statements.
//!
//! What lies further apart than the window is not joined, which bounds memory. What comes out does not
//! depend on how the WAL is divided.

use super::amounts::Amounts;
use super::fork_table::{ForkKey, ForkTable};
use super::open_events::OpenEvents;
use super::page::Page;
use super::recent_map::{Granule, RecentMap};
use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;
use walstat_format::payload::heap::OPCODE_MASK;
use walstat_format::payload::heap2;
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_read::scan::observe::Observe;

/// So far apart may be pruning and what vacuum does to the page next: 128 MB of WAL.
const WINDOW: u64 = 1 << 14;

/// Main data of `CLEAN` and `PRUNE`: an xid, then how many line pointers lead elsewhere or are dead.
const PRUNE_COUNTS: std::ops::Range<usize> = 4..8;

/// What happens to a page.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// It is pruned, by whom the record does not tell.
    Pruned(Amounts),
    /// A transaction prunes it.
    PrunedByTransaction,
    /// Vacuum comes to it.
    Vacuumed,
}

/// What vacuum wrote.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Vacuums {
    tables: ForkTable<Amounts>,
    /// Pruning among it, which the types of records do not tell from that of statements.
    pruning: Amounts,
    /// Pages that were pruned, by whom is not known yet; or that something else has happened to.
    pages: RecentMap<Page, Option<Amounts>, WINDOW>,
    /// Pages that vacuum came to; they may have been pruned before the first record.
    open: OpenEvents<(Granule, Page)>,
}

impl Vacuums {
    /// What vacuum wrote of a file, with its maps.
    pub fn of(&self, relation: RelFileLocator) -> Option<&Amounts> {
        self.tables.get(&ForkKey { relation, fork: 0 })
    }

    /// Pruning by vacuum that has the record type of pruning by statements.
    pub fn pruning(&self) -> Amounts {
        self.pruning
    }

    #[inline(never)]
    fn take(&mut self, record: &Record<'_>) {
        let Some(page) = page_of(record) else { return };
        let at = Granule::of(record.lsn);
        let is_pruning = rmgr::HEAP2 == record.header.rmgr
            && heap2::prunes_alone(record.header.info & OPCODE_MASK);
        if !is_pruning {
            self.add(page, &amounts(record));
        }
        // Where the type tells it, no page has to.
        if record.header.rmgr != rmgr::HEAP2 || record.version.pages.prunes_by_type {
            return;
        }
        self.open.note(at);
        let step = match (is_pruning, record.header.xid) {
            (false, _) => Step::Vacuumed,
            (true, 0) => Step::Pruned(amounts(record)),
            (true, _) => Step::PrunedByTransaction,
        };
        if is_pruning && is_second_pass(record) {
            self.step(page, at, Step::Vacuumed);
        }
        self.step(page, at, step);
    }

    fn step(&mut self, page: Page, at: Granule, step: Step) {
        match step {
            Step::Pruned(own) => {
                self.pages.insert(page, at, Some(own));
            }
            Step::PrunedByTransaction => self.forget(page, at),
            Step::Vacuumed => {
                self.judge(page, at);
                self.forget(page, at);
            }
        }
    }

    /// What was known of a page does not matter any more.
    fn forget(&mut self, page: Page, at: Granule) {
        if self.open.may_reach_before(WINDOW, at) {
            self.pages.insert(page, at, None);
        } else {
            self.pages.remove(&page, at);
        }
    }

    /// Vacuum has come to a page: if it was pruned before, that was vacuum.
    fn judge(&mut self, page: Page, at: Granule) {
        match self.pages.get(&page, at) {
            Some(Some(pruned)) => {
                self.pruning.add(&pruned);
                self.add(page, &pruned);
            }
            Some(None) => {}
            None if self.open.may_reach_before(WINDOW, at) => self.open.push((at, page)),
            None => {}
        }
    }

    fn add(&mut self, page: Page, amounts: &Amounts) {
        self.tables.value(ForkKey { relation: page.relation(), fork: 0 }).add(amounts);
    }
}

/// The page of a table or index that a record is about: what it says of a map is about that, too.
fn page_of(record: &Record<'_>) -> Option<Page> {
    let first = record.places().next();
    let place = record.places().find(|place| place.fork == 0).or(first)?;
    Some(Page::new(place.relation, place.block))
}

/// Whether up to 13 this is the second pass of vacuum: it takes line pointers away that were dead before,
/// and does nothing else to the page.
fn is_second_pass(record: &Record<'_>) -> bool {
    let main_data = record.main_data().unwrap_or_default();
    let counts = main_data.get(PRUNE_COUNTS);
    !record.version.pages.vacuum_cuts_items && counts.is_some_and(|counts| counts == [0; 4])
}

/// What a record wrote, without images that are for checking only.
fn amounts(record: &Record<'_>) -> Amounts {
    let flags = record.version.image_flags;
    let images = record.blocks().filter_map(|block| block.image);
    let (fpi_count, fpi_bytes) = images
        .filter(|image| flags.is_applied(image.info))
        .fold((0, 0), |(count, bytes), image| (count + 1, bytes + u64::from(image.bytes)));
    let record_bytes = u64::from(record.header.total_bytes - record.parts.fpi_bytes);
    Amounts { count: 1, record_bytes, fpi_bytes, fpi_count }
}

impl Observe for Vacuums {
    // Main data stands after the images, where a window may end.
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        // Most records.
        if rmgr == rmgr::HEAP {
            return;
        }
        let prunes = rmgr == rmgr::HEAP2 && heap2::prunes_alone(info & OPCODE_MASK);
        if prunes || rmgr::is_of_vacuum(rmgr, info) {
            self.take(record);
        }
    }

    fn merge(&mut self, later: Vacuums) {
        let Vacuums { tables, pruning, pages, open } = later;
        self.open.join(open).into_iter().for_each(|(at, page)| self.judge(page, at));
        for (key, amounts) in tables.into_rows() {
            self.tables.value(key).add(&amounts);
        }
        self.pruning.add(&pruning);
        self.pages.merge(pages, |_, _, _, _| {});
    }

    fn settle(&mut self) {
        self.open.settle();
    }

    fn shrink(&mut self) {
        self.tables.shrink();
        self.open.shrink();
        self.pages.shrink();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::lsn::Lsn;

    type Seen = (Granule, Page, Step);

    fn page(block: u32) -> Page {
        let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode: 1 };
        Page::new(relation, block)
    }

    fn bytes(record_bytes: u64) -> Amounts {
        Amounts { count: 1, record_bytes, fpi_bytes: 8000, fpi_count: 1 }
    }

    fn counted(steps: &[Seen]) -> Vacuums {
        let mut vacuums = Vacuums::default();
        for (at, page, step) in steps {
            vacuums.open.note(*at);
            vacuums.step(*page, *at, *step);
        }
        vacuums
    }

    #[test]
    fn pruning_is_vacuums_if_vacuum_comes_back_to_the_page() {
        let at = |lsn: u64| Granule::of(Lsn(lsn << 13));
        let found = |steps: &[Seen]| counted(steps).pruning().record_bytes;
        let (pruned, vacuumed) = (Step::Pruned(bytes(60)), Step::Vacuumed);
        assert_eq!(found(&[(at(1), page(1), pruned), (at(9), page(1), vacuumed)]), 60);
        assert_eq!(found(&[(at(1), page(1), pruned), (at(9), page(2), vacuumed)]), 0);
        // A statement has pruned it, and vacuum after that; vacuum comes twice.
        let twice = [
            (at(1), page(1), Step::Pruned(bytes(40))),
            (at(2), page(1), pruned),
            (at(3), page(1), vacuumed),
            (at(4), page(1), vacuumed),
        ];
        assert_eq!(found(&twice), 60);
        let by_transaction = [
            (at(1), page(1), pruned),
            (at(2), page(1), Step::PrunedByTransaction),
            (at(3), page(1), vacuumed),
        ];
        assert_eq!(found(&by_transaction), 0);
        let far = [(at(1), page(1), pruned), (at(2 + WINDOW), page(1), vacuumed)];
        assert_eq!(found(&far), 0);
    }

    /// Steps of all sorts at a few pages, some of them far apart.
    fn steps(seed: u64) -> Vec<Seen> {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) % limit
        };
        let mut at = 0;
        let steps = (0..90u64).map(|index| {
            at += [0, 0, 1, 900, WINDOW / 2, WINDOW][below(6) as usize] * 8192;
            let step = match below(5) {
                0 | 1 => Step::Pruned(bytes(1 << (index % 50))),
                2 => Step::PrunedByTransaction,
                _ => Step::Vacuumed,
            };
            (Granule::of(Lsn(at)), page(below(4) as u32), step)
        });
        steps.collect()
    }

    #[test]
    fn it_does_not_depend_on_how_the_wal_is_divided() {
        let mut all = 0;
        for seed in 0..300 {
            let steps = steps(seed);
            let whole = counted(&steps).pruning();
            all += whole.record_bytes;
            for (first, second) in [(0, 30), (10, 11), (20, 60), (45, 50), (80, 90)] {
                let [a, b, c] =
                    [&steps[..first], &steps[first..second], &steps[second..]].map(counted);
                let mut right = b.clone();
                right.merge(c.clone());
                let mut other = a.clone();
                other.merge(right);
                let mut left = a;
                left.settle();
                left.merge(b);
                left.settle();
                left.merge(c);
                for merged in [left, other] {
                    assert_eq!(merged.pruning(), whole, "{seed}, {first}, {second}");
                    let table = merged.of(page(0).relation()).copied().unwrap_or_default();
                    assert_eq!(table, whole, "{seed}, {first}, {second}");
                }
            }
        }
        assert!(all > 0);
    }
}
