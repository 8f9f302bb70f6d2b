//! What was done to the rows of a table, as far as records of the heap tell: attempts, those that
//! were rolled back too.

use serde::{Deserialize, Serialize};
use walstat_format::block::BlockRef;
use walstat_format::payload::heap;
use walstat_format::payload::heap::{Delete, Update, delete_flag, update_flag};
use walstat_format::payload::heap2;
use walstat_format::payload::heap2::MultiInsert;
use walstat_format::record::Record;
use walstat_format::rmgr;

sums! {
    /// Operations on the rows of one table.
    #[derive(Serialize, Deserialize)]
    pub struct Operations {
        /// Rows inserted, one by one and several at once.
        inserts,
        /// Rows updated, HOT or not.
        updates,
        /// Rows updated without a change of an indexed column, in the same page.
        hot_updates,
        /// Rows whose new version went to another page.
        updates_new_page,
        /// Rows deleted.
        deletes,
        /// Rows locked.
        locks,
        /// Records of vacuum, pruning and freezing.
        vacuum_records,
    }
}

impl Operations {
    /// Counts a record of Heap or Heap2 on the table; `first`: its first main-fork block.
    #[inline(always)]
    pub fn count(&mut self, record: &Record<'_>, first: &BlockRef) {
        let opcode = record.header.info & heap::OPCODE_MASK;
        if record.header.rmgr == rmgr::HEAP2 {
            return self.count_several(record, opcode);
        }
        self.count_alike(opcode, 1);
        if opcode == heap::UPDATE {
            self.updates_new_page += u64::from(has_another_page(record, first));
        }
    }

    /// Counts records of Heap of one kind, all of one block.
    pub fn count_alike(&mut self, opcode: u8, count: u64) {
        match opcode {
            heap::INSERT => self.inserts += count,
            heap::DELETE => self.deletes += count,
            heap::LOCK => self.locks += count,
            heap::UPDATE => self.updates += count,
            heap::HOT_UPDATE => {
                self.updates += count;
                self.hot_updates += count;
            }
            _ => {}
        }
    }

    fn count_several(&mut self, record: &Record<'_>, opcode: u8) {
        match opcode {
            heap2::MULTI_INSERT => {
                let main_data = record.main_data().unwrap_or_default();
                let insert = MultiInsert::parse(record.header.info, &main_data);
                self.inserts += insert.map_or(0, |insert| u64::from(insert.count));
            }
            heap2::LOCK_UPDATED => self.locks += 1,
            _ if heap2::cleans(opcode) => self.vacuum_records += 1,
            _ => {}
        }
    }
}

/// Whether the old version of an updated row lies on another page than the new one.
fn has_another_page(record: &Record<'_>, new: &BlockRef) -> bool {
    let old = record.blocks().find(|block| block.id == 1 && block.fork == 0);
    old.is_some_and(|old| old.block != new.block)
}

sums! {
    /// Bytes of rows that records carry besides the change itself, for logical decoding.
    #[derive(Serialize, Deserialize)]
    pub struct Substance {
        /// Old rows, or their keys (replica identity).
        old_row_bytes,
        /// Those that are whole rows (REPLICA IDENTITY FULL), a part of `old_row_bytes`.
        whole_old_row_bytes,
        /// New rows beside an image that has them too.
        beside_image_bytes,
    }
}

impl Substance {
    /// What a record of Heap or Heap2 carries; `None` if it is nothing.
    #[inline(always)]
    pub fn of(record: &Record<'_>) -> Option<Substance> {
        let has_images = record.parts.fpi_count > 0 && record.parts.block_data_bytes > 0;
        if record.parts.main_data_bytes <= Update::BYTES && !has_images {
            return None;
        }
        Substance::found(record)
    }

    #[inline(never)]
    fn found(record: &Record<'_>) -> Option<Substance> {
        let mut substance = Substance::default();
        if record.header.rmgr == rmgr::HEAP {
            let main_data = record.main_data().unwrap_or_default();
            let old = match record.header.info & heap::OPCODE_MASK {
                heap::UPDATE | heap::HOT_UPDATE => Update::parse(&main_data)
                    .map(|u| (u.old.len(), u.flags & update_flag::CONTAINS_OLD_TUPLE)),
                heap::DELETE => Delete::parse(&main_data)
                    .map(|d| (d.old.len(), d.flags & delete_flag::CONTAINS_OLD_TUPLE)),
                _ => None,
            };
            let (bytes, is_whole) = old.unwrap_or_default();
            substance.old_row_bytes = bytes as u64;
            substance.whole_old_row_bytes = if is_whole > 0 { bytes as u64 } else { 0 };
        }
        if rmgr::inserts_rows(record.header.rmgr, record.header.info) {
            let flags = record.version.image_flags;
            // An image for checking only replaces nothing.
            let kept = record
                .blocks()
                .filter(|block| block.image.is_some_and(|image| flags.is_applied(image.info)));
            substance.beside_image_bytes = kept.map(|block| u64::from(block.data_bytes)).sum();
        }
        (substance != Substance::default()).then_some(substance)
    }
}
