//! How many bytes of a block's data redo reads at least, whatever its lists say. A server that finds none
//! ends by signal 11; one that finds fewer reads what lies behind.

use super::by_type::{Row, Table};
use super::number::{Number, bit, whole};
use crate::block::BlockRef;
use crate::payload::btree::opcode as btree;
use crate::payload::gin::opcode as gin;
use crate::payload::hash::opcode as hash;
use crate::payload::heap;
use crate::record::Record;
use crate::rmgr::{BTREE, GIN, HASH, HEAP};
use crate::version::Release;
use Read::{Always, AlwaysIf, Nothing as N, Redone, RedoneIf, RedoneWith};

/// How many bytes redo reads of the data of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// None, or as many as lists say.
    Nothing,
    /// So many where the page is not restored from an image.
    Redone(u8),
    /// The same where this number is not 0.
    RedoneIf(Number, u8),
    /// The same, and so many more for each of these that is not 0.
    RedoneWith(u8, [Number; 2], u8),
    /// So many beside an image too: the page is made anew.
    Always(u8),
    /// The same where this number is not 0.
    AlwaysIf(Number, u8),
}

/// Those of the blocks of a type, in the order of their ids.
pub(super) struct Reads(&'static [Read]);

const fn row(rmgr: u8, info: u8, reads: &'static [Read]) -> Row<Reads> {
    Row { rmgr, info, since: None, what: Reads(reads) }
}

const fn since(release: Release, row: Row<Reads>) -> Row<Reads> {
    Row { since: Some(release), ..row }
}

/// In `xl_info` of types of tables: redo makes the page anew.
const INIT: u8 = heap::INIT_PAGE;
/// `XLH_UPDATE_PREFIX_FROM_OLD` and `XLH_UPDATE_SUFFIX_FROM_OLD` in the flags of `xl_heap_update`: how many
/// bytes of the old row are taken over stands before the new one.
const AFFIXES: [Number; 2] = [bit(7, 0x20), bit(7, 0x40)];
/// Bytes of `xl_heap_header`.
const ROW_HEADER: u8 = 5;
const ROW: Read = RedoneWith(ROW_HEADER, AFFIXES, 2);
/// Bytes of an index entry without columns, and of two of them.
const ENTRY: u8 = 8;
const TWO_ENTRIES: u8 = 16;
/// Bytes of a B-tree's metapage that each release reads at least.
const META: Read = Always(16);
/// The level of the page that is split.
const LEVEL: Number = whole(0);

/// What redo reads of the blocks of each type.
pub(super) static DATA: Table<Reads, 24> = Table::new([
    row(HEAP, heap::INSERT, &[Redone(ROW_HEADER)]),
    row(HEAP, heap::INSERT | INIT, &[Always(ROW_HEADER)]),
    row(HEAP, heap::UPDATE, &[ROW]),
    row(HEAP, heap::HOT_UPDATE, &[ROW]),
    // As many as the row has.
    row(HEAP, heap::INPLACE, &[Redone(1)]),
    row(BTREE, btree::INSERT_META, &[N, N, META]),
    // Left, the new entry and, from 12 on or where 11 says so, the high key, which up to 10 inner pages alone
    // have; right, all its entries.
    row(BTREE, btree::SPLIT_L, &[Redone(ENTRY), Always(ENTRY)]),
    since(Release::V12, row(BTREE, btree::SPLIT_L, &[Redone(TWO_ENTRIES), Always(ENTRY)])),
    row(BTREE, btree::SPLIT_R, &[RedoneIf(LEVEL, ENTRY), Always(ENTRY)]),
    since(Release::V11, row(BTREE, btree::SPLIT_R, &[N, Always(ENTRY)])),
    since(Release::V12, row(BTREE, btree::SPLIT_R, &[Redone(ENTRY), Always(ENTRY)])),
    row(BTREE, btree::SPLIT_L_OR_INSERT_POST, &[Redone(ENTRY), Always(ENTRY)]),
    since(Release::V13, row(BTREE, btree::SPLIT_L_OR_INSERT_POST, &[Redone(2 + ENTRY)])),
    row(BTREE, btree::SPLIT_R_OR_DEDUP, &[RedoneIf(LEVEL, ENTRY), Always(ENTRY)]),
    since(Release::V11, row(BTREE, btree::SPLIT_R_OR_DEDUP, &[Redone(ENTRY), Always(ENTRY)])),
    since(Release::V13, row(BTREE, btree::SPLIT_R_OR_DEDUP, &[])),
    row(BTREE, btree::UNLINK_PAGE_META, &[N, N, N, N, META]),
    row(BTREE, btree::NEWROOT, &[AlwaysIf(whole(4), ENTRY), N, META]),
    row(BTREE, btree::META_CLEANUP, &[META]),
    // A bucket; a bit of a bitmap; the metapage's number of the last bitmap.
    row(HASH, hash::ADD_OVFL_PAGE, &[Always(4), N, Redone(4), N, Redone(4)]),
    // The masks, and the number of overflow pages, where they change.
    row(HASH, hash::SPLIT_ALLOCATE_PAGE, &[N, N, RedoneWith(0, [bit(8, 0x01), bit(8, 0x02)], 8)]),
    row(HASH, hash::SQUEEZE_PAGE, &[N, N, N, N, N, Redone(4), Redone(4)]),
    row(GIN, gin::INSERT, &[Redone(2)]),
    row(GIN, gin::VACUUM_DATA_LEAF_PAGE, &[Redone(2)]),
]);

impl Reads {
    /// Whether the data of a block are fewer than redo reads.
    pub(super) fn is_short<'m>(
        &self,
        record: &Record<'_>,
        block: &BlockRef,
        main: impl Fn() -> Option<&'m [u8]>,
    ) -> bool {
        // Main data that are not at hand say nothing.
        let is_not_0 =
            |number: Number| main().and_then(|main| number.of(main)).is_some_and(|it| it != 0);
        let unless_0 = |number: Number, bytes: u8| if is_not_0(number) { bytes } else { 0 };
        let read = *self.0.get(usize::from(block.id)).unwrap_or(&N);
        let is_restored = !matches!(read, Always(_) | AlwaysIf(..)) && record.restores(block);
        let bytes = match read {
            _ if is_restored => 0,
            N => 0,
            Redone(bytes) | Always(bytes) => bytes,
            RedoneIf(number, bytes) | AlwaysIf(number, bytes) => unless_0(number, bytes),
            RedoneWith(bytes, numbers, more) => {
                numbers.iter().fold(bytes, |sum, number| sum + unless_0(*number, more))
            }
        };
        block.data_bytes < u16::from(bytes)
    }

    /// How many bytes the data of block 0 of a usual record of the type have at least, without an image and
    /// with one; `None`: it has to be looked at closer.
    pub(super) const fn usual(&self) -> Option<[u8; 2]> {
        match self.0 {
            [] | [N] => Some([0, 0]),
            [Redone(bytes)] => Some([*bytes, 0]),
            [RedoneWith(bytes, _, more)] => Some([*bytes + 2 * *more, 0]),
            [Always(bytes)] => Some([*bytes; 2]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_type_stand_by_release() {
        assert!(DATA.is_sorted());
    }
}
