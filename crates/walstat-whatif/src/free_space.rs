//! The free space map, whose pages are changed as hint bits are: nothing is logged of it but images, and
//! those only where changes of hint bits are logged. Vacuum changes the page for what it looks at, and the
//! two above that (`src/backend/storage/freespace/freespace.c`).

use super::blocks::{ForkNumber, NEVER, Ordinal};
use super::redo;
use super::trace::RecordEffect;
use super::whole_record::WholeRecord;
use hashbrown::HashMap;

/// Blocks that one page of the map tells of (`SlotsPerFSMPage`) where pages have 8 kB.
const BLOCKS_PER_PAGE: u32 = 4069;
/// Of vacuum's records that follow within so many others, only the first is noted.
const NEAR: Ordinal = 256;
/// But at least one of so many.
const FAR: Ordinal = 4096;

/// When vacuum was seen in a table.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    last: Ordinal,
    marked: Ordinal,
}

/// Follows where vacuum works.
#[derive(Debug, Clone, Default)]
pub struct FreeSpace {
    /// By table and page of the map.
    seen: HashMap<(ForkNumber, u32), Seen>,
    /// By table, when the pages above were changed.
    above: HashMap<ForkNumber, Ordinal>,
}

impl FreeSpace {
    /// Takes a record, whose first block is of this table.
    pub fn of(
        &mut self,
        record: &WholeRecord<'_>,
        fork: ForkNumber,
        ordinal: Ordinal,
    ) -> Option<RecordEffect> {
        let block = redo::vacuumed(record)?;
        let seen = self.seen.entry((fork, block / BLOCKS_PER_PAGE)).or_default();
        let is_near = ordinal - seen.last <= NEAR && ordinal - seen.marked <= FAR;
        let is_first = seen.marked == NEVER;
        seen.last = ordinal;
        if is_near && !is_first {
            return None;
        }
        let page = std::mem::replace(&mut seen.marked, ordinal);
        let above = self.above.insert(fork, ordinal).unwrap_or(NEVER);
        Some(RecordEffect::FreeSpace { page, above })
    }
}
