//! The free space map, whose pages are changed as hint bits are: nothing is logged of it but images, and
//! those only where changes of hint bits are logged. Vacuum changes the page for what it looks at, and the
//! two above that (`src/backend/storage/freespace/freespace.c`).

use super::blocks::{ForkNumber, NEVER, Ordinal};
use super::redo;
use super::trace::RecordEffect;
use super::whole_record::WholeRecord;
use hashbrown::HashMap;
use walstat_format::map_page::blocks_per_free_space_page;

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
pub(crate) struct FreeSpace {
    /// By table and page of the map.
    seen: HashMap<(ForkNumber, u32), Seen>,
    /// By table, when the pages above were changed.
    above: HashMap<ForkNumber, Ordinal>,
}

impl FreeSpace {
    /// Takes a record, whose first block is of this table.
    pub(crate) fn of(
        &mut self,
        record: &WholeRecord<'_>,
        fork: ForkNumber,
        ordinal: Ordinal,
        page_bytes: usize,
    ) -> Option<RecordEffect> {
        let block = redo::vacuumed(record)?;
        let seen = self
            .seen
            .entry((fork, block / blocks_per_free_space_page(page_bytes as u32)))
            .or_default();
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
