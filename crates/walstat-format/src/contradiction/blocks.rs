//! Which blocks redo of a type makes anew, and which it reads as they are: a server ends at a block that is
//! marked (`BKPBLOCK_WILL_INIT`) and read, and at one that is made anew and not marked, with an image or
//! without (`XLogReadBufferForRedoExtended` in `src/backend/access/transam/xlogutils.c`, the same from 9.5
//! to 19). The rows are those functions of redo that call it, and `XLogInitBufferForRedo`.
//!
//! A block that redo may leave alone, for a reason that does not stand here, is not judged.

use super::by_type::{Row, Table};
use super::number::{Number, bit, block, byte, half, whole};
use crate::block::BlockRef;
use crate::payload::brin::opcode as brin;
use crate::payload::btree::opcode as btree;
use crate::payload::gin::flag::{IS_LEAF, SPLIT_ROOT};
use crate::payload::gin::opcode as gin;
use crate::payload::gist::opcode as gist;
use crate::payload::hash::opcode as hash;
use crate::payload::heap2::{self, PRUNES};
use crate::payload::spgist::opcode as spgist;
use crate::payload::{heap, xlog};
use crate::record::Record;
use crate::rmgr::{BRIN, BTREE, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, SEQUENCE, SPGIST, XLOG};
use crate::version::Release;

/// What redo does with a block, if the record refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It is not said here.
    Unsaid,
    /// Read as it is.
    Read,
    /// Made anew.
    Made,
    /// Made anew where this is not 0, else read.
    MadeIf(Number),
    /// Read where this is not 0.
    ReadIf(Number),
    /// Read where one of these is not 0.
    ReadIfAny(&'static [Number]),
    /// Read where this is 0.
    ReadUnless(Number),
    /// Read where it is not block 0 of its fork, which stands for none (`P_NONE`).
    ReadIfSome,
    /// Made anew where its id is this or less.
    MadeUpTo(Number),
    /// Read where there is an image of it.
    ReadIfImage,
    /// Left alone where the first of them is not 0; else made anew where the second one is not, or read.
    MadeUnless(Number, Number),
    /// The new page of an update: made anew if that is to be, and the old row was on another page.
    NewPage,
    /// The page of the old row of an update: block 0 does for it if it is the same one.
    OldPage,
}

use Taken::{
    Made as M, MadeIf, MadeUnless, MadeUpTo, NewPage, OldPage, Read as R, ReadIf, ReadIfAny,
    ReadIfImage, ReadIfSome, ReadUnless, Unsaid as U,
};

/// The blocks of a type, in the order of their ids.
pub(super) struct Blocks {
    blocks: &'static [Taken],
    /// Those of higher ids.
    others: Taken,
}

const fn row(rmgr: u8, info: u8, blocks: &'static [Taken]) -> Row<Blocks> {
    Row { rmgr, info, since: None, what: Blocks { blocks, others: U } }
}

const fn since(release: Release, row: Row<Blocks>) -> Row<Blocks> {
    Row { since: Some(release), ..row }
}

const fn and_others(others: Taken, row: Row<Blocks>) -> Row<Blocks> {
    Row { what: Blocks { others, ..row.what }, ..row }
}

/// In `xl_info` of types of tables and BRIN indexes: redo makes the page anew.
const INIT: u8 = heap::INIT_PAGE;
/// `XLOG_SEQ_LOG`, and the only type of generic records.
const LOG: u8 = 0x00;

/// A split of a B-tree page: the left one, the right one, the one after it if there is one; the child below,
/// whose split this ends, at other levels than 0.
const SPLIT: &[Taken] = &[R, M, ReadIfSome, ReadIf(whole(0))];
/// The page itself, its left sibling if there is one, its right one; the leaf, the metapage.
const UNLINK: &[Taken] = &[M, ReadIf(whole(0)), R, M];
const UNLINK_META: &[Taken] = &[M, ReadIf(whole(0)), R, M, M];
/// What is freed of a hash index, from 17 on.
const SQUEEZE: &[Taken] = &[
    ReadUnless(byte(10)),
    ReadIfAny(&[byte(10), half(8), byte(11)]),
    R,
    ReadUnless(byte(11)),
    R,
    R,
    R,
];

/// What redo does with the blocks of each type.
pub(super) static BLOCKS: Table<Blocks, 87> = Table::new([
    row(XLOG, xlog::FPI_FOR_HINT, &[R]),
    since(Release::V15, and_others(ReadIfImage, row(XLOG, xlog::FPI_FOR_HINT, &[]))),
    row(XLOG, xlog::FPI, &[R]),
    since(Release::V12, and_others(R, row(XLOG, xlog::FPI, &[]))),
    and_others(R, row(XLOG, xlog::FPI_MULTI, &[])),
    since(Release::V12, row(XLOG, xlog::FPI_MULTI, &[])),
    row(HEAP2, PRUNES[0], &[R]),
    row(HEAP2, PRUNES[1], &[R]),
    // Before, it has no block (`XLOG_HEAP2_CLEANUP_INFO`).
    since(Release::V14, row(HEAP2, PRUNES[2], &[R])),
    row(HEAP2, heap2::VISIBLE, &[R, R]),
    row(HEAP2, heap2::MULTI_INSERT, &[R]),
    row(HEAP2, heap2::MULTI_INSERT | INIT, &[M]),
    row(HEAP2, heap2::LOCK_UPDATED, &[R]),
    row(HEAP, heap::INSERT, &[R]),
    row(HEAP, heap::INSERT | INIT, &[M]),
    row(HEAP, heap::DELETE, &[R]),
    row(HEAP, heap::UPDATE, &[R, OldPage]),
    row(HEAP, heap::UPDATE | INIT, &[NewPage, OldPage]),
    row(HEAP, heap::HOT_UPDATE, &[R, OldPage]),
    row(HEAP, heap::HOT_UPDATE | INIT, &[NewPage, OldPage]),
    row(HEAP, heap::CONFIRM, &[R]),
    row(HEAP, heap::LOCK, &[R]),
    row(HEAP, heap::INPLACE, &[R]),
    row(BTREE, btree::INSERT_LEAF, &[R]),
    row(BTREE, btree::INSERT_UPPER, &[R, R]),
    row(BTREE, btree::INSERT_META, &[R, R, M]),
    row(BTREE, btree::SPLIT_L, SPLIT),
    row(BTREE, btree::SPLIT_R, SPLIT),
    row(BTREE, btree::SPLIT_L_OR_INSERT_POST, SPLIT),
    since(Release::V13, row(BTREE, btree::SPLIT_L_OR_INSERT_POST, &[R])),
    row(BTREE, btree::SPLIT_R_OR_DEDUP, SPLIT),
    since(Release::V13, row(BTREE, btree::SPLIT_R_OR_DEDUP, &[R])),
    row(BTREE, btree::DELETE, &[R]),
    row(BTREE, btree::UNLINK_PAGE, UNLINK),
    row(BTREE, btree::UNLINK_PAGE_META, UNLINK_META),
    row(BTREE, btree::NEWROOT, &[M, ReadIf(whole(4)), M]),
    row(BTREE, btree::MARK_PAGE_HALFDEAD, &[M, R]),
    row(BTREE, btree::VACUUM, &[R]),
    row(BTREE, btree::META_CLEANUP, &[M]),
    row(HASH, hash::INIT_META_PAGE, &[M]),
    row(HASH, hash::INIT_BITMAP_PAGE, &[M, R]),
    row(HASH, hash::INSERT, &[R, R]),
    row(HASH, hash::ADD_OVFL_PAGE, &[M, R, R, M, R]),
    row(HASH, hash::SPLIT_ALLOCATE_PAGE, &[R, M, R]),
    row(HASH, hash::SPLIT_PAGE, &[R]),
    row(HASH, hash::SPLIT_COMPLETE, &[R, R]),
    // The bucket's first page, where that is another one than the one written to
    // (is_prim_bucket_same_wrt, is_primary_bucket_page).
    row(HASH, hash::MOVE_PAGE_CONTENTS, &[ReadUnless(byte(2)), R, R]),
    // From 17 on the page written to is left alone, where it is not the bucket's first one, no entries are
    // moved, and the freed page does not follow on it (is_prev_bucket_same_wrt).
    row(HASH, hash::SQUEEZE_PAGE, &[ReadUnless(byte(10)), R, R, ReadUnless(byte(11)), R, R, R]),
    since(Release::V17, row(HASH, hash::SQUEEZE_PAGE, SQUEEZE)),
    row(HASH, hash::DELETE, &[ReadUnless(byte(1)), R]),
    row(HASH, hash::SPLIT_CLEANUP, &[R]),
    row(HASH, hash::UPDATE_META_PAGE, &[R]),
    row(HASH, hash::VACUUM_ONE_PAGE, &[R, R]),
    row(GIN, gin::CREATE_INDEX, &[M, M]),
    row(GIN, gin::CREATE_PTREE, &[M]),
    row(GIN, gin::INSERT, &[R, ReadUnless(bit(0, IS_LEAF))]),
    row(GIN, gin::SPLIT, &[R, R, ReadIf(bit(24, SPLIT_ROOT)), ReadUnless(bit(24, IS_LEAF))]),
    row(GIN, gin::VACUUM_PAGE, &[R]),
    row(GIN, gin::DELETE_PAGE, &[R, R, R]),
    // The tail of the list is read if there are rows, or if there was another one before.
    row(GIN, gin::UPDATE_META_PAGE, &[M, ReadIfAny(&[whole(80), block(72)])]),
    row(GIN, gin::INSERT_LISTPAGE, &[M]),
    and_others(MadeUpTo(whole(56)), row(GIN, gin::DELETE_LISTPAGE, &[M])),
    row(GIN, gin::VACUUM_DATA_LEAF_PAGE, &[R]),
    row(GIST, gist::PAGE_UPDATE, &[R, R]),
    row(GIST, gist::DELETE, &[R]),
    and_others(MadeUpTo(half(18)), row(GIST, gist::PAGE_SPLIT, &[R])),
    row(GIST, gist::CREATE_INDEX, &[M]),
    row(GIST, gist::PAGE_DELETE, &[R, R]),
    row(SEQUENCE, LOG, &[M]),
    row(SPGIST, spgist::CREATE_INDEX, &[M, M, M]),
    // newPage; a parent's offset number that is not 0.
    row(SPGIST, spgist::ADD_LEAF, &[MadeIf(byte(0)), ReadIf(half(6))]),
    row(SPGIST, spgist::MOVE_LEAFS, &[R, MadeIf(byte(2)), R]),
    row(SPGIST, spgist::ADD_NODE, &[R, MadeIf(byte(4))]),
    row(SPGIST, spgist::SPLIT_TUPLE, &[R, MadeUnless(byte(5), byte(4))]),
    // isRootSplit, initSrc, initDest, initInner.
    row(
        SPGIST,
        spgist::PICKSPLIT,
        &[MadeUnless(byte(0), byte(6)), MadeIf(byte(7)), MadeIf(byte(10)), R],
    ),
    row(SPGIST, spgist::VACUUM_LEAF, &[R]),
    row(SPGIST, spgist::VACUUM_ROOT, &[R]),
    row(SPGIST, spgist::VACUUM_REDIRECT, &[R]),
    row(BRIN, brin::CREATE_INDEX, &[M]),
    row(BRIN, brin::INSERT, &[R, R]),
    row(BRIN, brin::INSERT | INIT, &[M, R]),
    row(BRIN, brin::UPDATE, &[R, R, R]),
    row(BRIN, brin::UPDATE | INIT, &[M, R, R]),
    row(BRIN, brin::SAMEPAGE_UPDATE, &[R]),
    row(BRIN, brin::REVMAP_EXTEND, &[R, M]),
    row(BRIN, brin::DESUMMARIZE, &[R, R]),
    and_others(R, row(GENERIC, LOG, &[])),
]);

impl Blocks {
    fn taken(&self, id: u8) -> Taken {
        *self.blocks.get(usize::from(id)).unwrap_or(&self.others)
    }

    /// What redo does with a block: makes it anew, or reads it; `None`: neither, or it cannot be said.
    fn is_made<'m>(
        &self,
        record: &Record<'_>,
        block: &BlockRef,
        main: impl Fn() -> Option<&'m [u8]>,
    ) -> Option<bool> {
        let is_not_0 = |number: Number| Some(number.of(main()?)? != 0);
        let number_of = |id: u8| record.blocks().find(|it| it.id == id).map(|it| it.block);
        let other_page = || Some(number_of(0)? != number_of(1)?);
        match self.taken(block.id) {
            U => None,
            R => Some(false),
            M => Some(true),
            MadeIf(number) => is_not_0(number),
            ReadIf(number) => is_not_0(number)?.then_some(false),
            ReadIfAny(numbers) => {
                numbers.iter().any(|it| is_not_0(*it) == Some(true)).then_some(false)
            }
            ReadIfSome => (block.block != 0).then_some(false),
            ReadUnless(number) => (!is_not_0(number)?).then_some(false),
            MadeUpTo(number) => {
                let count = number.of(main()?)?.cast_signed();
                (i32::from(block.id) <= count).then_some(true)
            }
            ReadIfImage => block.image.map(|_| false),
            MadeUnless(left, number) => is_not_0(number).filter(|_| is_not_0(left) == Some(false)),
            NewPage => Some(other_page().unwrap_or(false)),
            OldPage => other_page()?.then_some(false),
        }
    }

    /// Whether a block is marked otherwise than redo takes it.
    pub(super) fn is_wrong<'m>(
        &self,
        record: &Record<'_>,
        block: &BlockRef,
        main: impl Fn() -> Option<&'m [u8]>,
    ) -> bool {
        self.is_made(record, block, main).is_some_and(|is_made| is_made != block.will_init)
    }

    /// Whether redo takes a block: makes it anew, or reads it.
    pub(super) fn is_taken<'m>(
        &self,
        record: &Record<'_>,
        block: &BlockRef,
        main: impl Fn() -> Option<&'m [u8]>,
    ) -> bool {
        self.is_made(record, block, main).is_some()
    }

    /// The ids of blocks that redo takes for what the main data say.
    pub(super) fn asked_for<'m>(
        &self,
        main: impl Fn() -> Option<&'m [u8]>,
    ) -> impl Iterator<Item = u8> {
        let number_of = move |number: Number| number.of(main()?);
        let last = match self.others {
            // No record has as many blocks as this number has values.
            MadeUpTo(number) => number_of(number).map_or(0, |it| it.cast_signed().clamp(0, 40)),
            _ => 0,
        };
        let others = (1..=last as u8).skip(self.blocks.len().saturating_sub(1));
        let is_asked = move |taken: &Taken| match *taken {
            ReadIf(number) => number_of(number).is_some_and(|it| it != 0),
            ReadIfAny(numbers) => numbers.iter().any(|it| number_of(*it).is_some_and(|it| it != 0)),
            ReadUnless(number) | MadeUnless(number, _) => number_of(number) == Some(0),
            _ => false,
        };
        let listed = (0..).zip(self.blocks).filter(move |(_, taken)| is_asked(taken));
        listed.map(|(id, _)| id).chain(others)
    }

    /// The mark of block 0 in a usual record of the type; `None`: it has to be looked at closer.
    pub(super) const fn usual_mark(&self) -> Option<bool> {
        let mut id = 0;
        while id < self.blocks.len() {
            if let ReadIf(_) | ReadIfAny(_) | ReadUnless(_) | MadeUnless(..) = self.blocks[id] {
                return None;
            }
            id += 1;
        }
        match (self.blocks, self.others) {
            (_, MadeUpTo(_)) => None,
            ([R, ..], _) | ([], R) => Some(false),
            ([M, ..], _) => Some(true),
            // Without an image it is looked at closer.
            ([], ReadIfImage) => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::{is_replayed, needed_blocks};
    use crate::version::{VERSIONS, Version};

    fn taken(rmgr: u8, info: u8, id: u8, version: &Version) -> Taken {
        BLOCKS.find(rmgr, info, version).map_or(U, |blocks| blocks.taken(id))
    }

    #[test]
    fn rows_of_a_type_stand_by_release() {
        assert!(BLOCKS.is_sorted());
    }

    /// What `rmgr-names.tsv` says that redo reads of each type, redo takes in some way, and of no type blocks
    /// that it has not.
    #[test]
    fn each_block_that_redo_asks_for_is_judged() {
        for version in &VERSIONS {
            let types =
                (0..=u16::from(GENERIC) << 4 | 0x0F).map(|it| ((it >> 4) as u8, (it << 4) as u8));
            for (rmgr, info) in types.filter(|(rmgr, info)| is_replayed(*rmgr, *info, version)) {
                let needed = needed_blocks(rmgr, info, version);
                for id in 0..8 {
                    let is_judged = taken(rmgr, info, id, version) != U;
                    let is_needed = needed.asks_for(id);
                    let name = (version.name, rmgr, info, id);
                    assert!(is_judged || !is_needed, "{name:?}");
                }
            }
        }
    }

    #[test]
    fn a_bit_that_redo_does_not_look_at_says_nothing() {
        let v15 = &VERSIONS[7];
        let of = |rmgr, info| taken(rmgr, info, 0, v15);
        assert_eq!((of(HEAP, heap::DELETE | INIT), of(HEAP, heap::INSERT | INIT)), (R, M));
        assert_eq!((of(BRIN, brin::CREATE_INDEX | INIT), of(BTREE, 0xF0)), (M, U));
    }

    #[test]
    fn types_that_changed_are_judged_by_release() {
        let of = |release: &str, rmgr, info, id| {
            let version = VERSIONS.iter().find(|version| version.name == release);
            taken(rmgr, info, id, version.expect("a release"))
        };
        let split = btree::SPLIT_L_OR_INSERT_POST;
        assert_eq!((of("11", BTREE, split, 1), of("13", BTREE, split, 1)), (M, U));
        assert_eq!((of("13", HEAP2, PRUNES[2], 0), of("14", HEAP2, PRUNES[2], 0)), (U, R));
        assert_eq!((of("11", XLOG, xlog::FPI, 3), of("12", XLOG, xlog::FPI, 3)), (U, R));
        assert_eq!(of("14", XLOG, xlog::FPI_FOR_HINT, 0), R);
        assert_eq!(of("15", XLOG, xlog::FPI_FOR_HINT, 0), ReadIfImage);
    }
}
