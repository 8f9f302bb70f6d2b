//! Which blocks redo of a type makes anew, and which it reads as they are: a server ends at a block that is
//! marked (`BKPBLOCK_WILL_INIT`) and read, and at one that is made anew and not marked, with an image or
//! without (`XLogReadBufferForRedoExtended` in `src/backend/access/transam/xlogutils.c`, the same from 9.5
//! to 19). The rows are those functions of redo that call it, and `XLogInitBufferForRedo`.
//!
//! A block that redo may leave alone, for a reason that does not stand here, is not judged.

use crate::block::{BlockRef, usual_mark};
use crate::payload::brin::opcode as brin;
use crate::payload::btree::opcode as btree;
use crate::payload::gin::opcode as gin;
use crate::payload::gist::opcode as gist;
use crate::payload::hash::opcode as hash;
use crate::payload::heap2::{self, PRUNES};
use crate::payload::spgist::opcode as spgist;
use crate::payload::{heap, xlog};
use crate::record::Record;
use crate::rmgr::{
    BRIN, BTREE, FLAGGED, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, SEQUENCE, SPGIST, XLOG,
};
use crate::version::{Release, Version};

/// A number of one, two or four bytes at a place of the main data, or bits of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number {
    at: u8,
    mask: u32,
}

/// A `bool` or a number that is 0 or not.
const fn byte(at: u8) -> Number {
    Number { at, mask: 0xFF }
}

const fn bit(at: u8, mask: u8) -> Number {
    Number { at, mask: mask as u32 }
}

const fn half(at: u8) -> Number {
    Number { at, mask: 0xFFFF }
}

const fn whole(at: u8) -> Number {
    Number { at, mask: u32::MAX }
}

impl Number {
    /// What it is; `None`: the data end before it.
    fn of(self, main: &[u8]) -> Option<u32> {
        let bytes = (u32::BITS - self.mask.leading_zeros()).div_ceil(u8::BITS) as usize;
        let at = usize::from(self.at);
        let mut number = [0; 4];
        number.get_mut(..bytes)?.copy_from_slice(main.get(at..at + bytes)?);
        Some(u32::from_le_bytes(number) & self.mask)
    }
}

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
    /// Read where this is 0.
    ReadUnless(Number),
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
    Made as M, MadeIf, MadeUnless, MadeUpTo, NewPage, OldPage, Read as R, ReadIf, ReadIfImage,
    ReadUnless, Unsaid as U,
};

/// The blocks of a type, in the order of their ids.
struct Row {
    rmgr: u8,
    info: u8,
    /// `None`: 9.5. Up to the next row of its type.
    since: Option<Release>,
    blocks: &'static [Taken],
    /// Those of higher ids.
    others: Taken,
}

const fn row(rmgr: u8, info: u8, blocks: &'static [Taken]) -> Row {
    Row { rmgr, info, since: None, blocks, others: U }
}

const fn since(release: Release, row: Row) -> Row {
    Row { since: Some(release), ..row }
}

const fn and_others(others: Taken, row: Row) -> Row {
    Row { others, ..row }
}

/// In `xl_info` of types of tables and BRIN indexes: redo makes the page anew.
const INIT: u8 = heap::INIT_PAGE;
/// `XLOG_SEQ_LOG`, and the only type of generic records.
const LOG: u8 = 0x00;
/// `XLOG_HASH_SPLIT_CLEANUP`
const SPLIT_CLEANUP: u8 = 0xA0;
/// `GIN_INSERT_ISLEAF` and `GIN_SPLIT_ROOT`
const IS_LEAF: u8 = 0x02;
const IS_ROOT: u8 = 0x04;
/// A split of a B-tree page: the left one, the right one, the one after it; the child below, whose split this
/// ends, at other levels than 0.
const SPLIT: &[Taken] = &[R, M, R, ReadIf(whole(0))];
/// The page itself, its left sibling if there is one, its right one; the leaf, the metapage.
const UNLINK: &[Taken] = &[M, ReadIf(whole(0)), R, M];
const UNLINK_META: &[Taken] = &[M, ReadIf(whole(0)), R, M, M];

/// Rows of one type stand together, by release.
static ROWS: [Row; 86] = [
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
    // From 17 on the page written to may be left alone, where it is not the bucket's first one.
    row(
        HASH,
        hash::SQUEEZE_PAGE,
        &[ReadUnless(byte(10)), ReadIf(byte(10)), R, ReadUnless(byte(11)), R, R, R],
    ),
    row(HASH, hash::DELETE, &[ReadUnless(byte(1)), R]),
    row(HASH, SPLIT_CLEANUP, &[R]),
    row(HASH, hash::UPDATE_META_PAGE, &[R]),
    row(HASH, hash::VACUUM_ONE_PAGE, &[R, R]),
    row(GIN, gin::CREATE_INDEX, &[M, M]),
    row(GIN, gin::CREATE_PTREE, &[M]),
    row(GIN, gin::INSERT, &[R, ReadUnless(bit(0, IS_LEAF))]),
    row(GIN, gin::SPLIT, &[R, R, ReadIf(bit(24, IS_ROOT)), ReadUnless(bit(24, IS_LEAF))]),
    row(GIN, gin::VACUUM_PAGE, &[R]),
    row(GIN, gin::DELETE_PAGE, &[R, R, R]),
    // The tail of the list is read if there are rows, or if there was another one before.
    row(GIN, gin::UPDATE_META_PAGE, &[M, ReadIf(whole(80))]),
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
];

/// Whether there is a row of a type; that the one block of its usual records is read, or made anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usual {
    NotJudged,
    Read,
    Made,
    Closer,
}

/// The same by resource manager and the high half of `xl_info`.
static USUAL: [Usual; 1 << 12] = {
    let mut usual = [Usual::NotJudged; 1 << 12];
    let mut row = 0;
    while row < ROWS.len() {
        let Row { rmgr, info, blocks, .. } = &ROWS[row];
        let of_type = &mut usual[type_index(*rmgr, *info)];
        *of_type = match (*of_type, blocks) {
            (Usual::NotJudged | Usual::Read, [R, ..]) => Usual::Read,
            (Usual::NotJudged, [M, ..]) => Usual::Made,
            _ => Usual::Closer,
        };
        row += 1;
    }
    let mut flagged = 0;
    while flagged < FLAGGED.len() * 8 {
        let plain = ((FLAGGED[flagged / 8] as usize) << 4) | (flagged % 8);
        if let Usual::NotJudged = usual[plain | 8] {
            usual[plain | 8] = usual[plain];
        }
        flagged += 1;
    }
    usual
};

/// A type by its resource manager and the high half of `xl_info`.
const fn type_index(rmgr: u8, info: u8) -> usize {
    (rmgr as usize) << 4 | (info >> 4) as usize
}

/// Where the rows of a type end; 0: it has none.
static ROWS_END: [u8; 1 << 12] = {
    let mut ends = [0; 1 << 12];
    let mut row = 0;
    while row < ROWS.len() {
        ends[type_index(ROWS[row].rmgr, ROWS[row].info)] = row as u8 + 1;
        row += 1;
    }
    ends
};

/// Whether the blocks of a record have to be looked at by [`is_wrong`].
#[inline(always)]
pub(super) fn may_be_wrong(record: &Record<'_>) -> bool {
    let header = &record.header;
    let usual = USUAL[usize::from(u16::from_le_bytes([header.info, header.rmgr]) >> 4)];
    if usual == Usual::NotJudged {
        return false;
    }
    // All others are looked at.
    usual_mark(record.body.head, record.parts.head_bytes).is_none_or(|(id, will_init)| {
        let is_so = if will_init { Usual::Made } else { Usual::Read };
        id != 0 || usual != is_so
    })
}

/// What redo does with a block: makes it anew, or reads it; `None`: neither, or it cannot be said.
fn is_made<'m>(
    record: &Record<'_>,
    block: &BlockRef,
    main: impl Fn() -> Option<&'m [u8]>,
) -> Option<bool> {
    let (rmgr, info) = (record.header.rmgr, record.header.rmgr_info());
    let is_not_0 = |number: Number| Some(number.of(main()?)? != 0);
    let number_of = |id: u8| record.blocks().find(|it| it.id == id).map(|it| it.block);
    let other_page = || Some(number_of(0)? != number_of(1)?);
    match taken(rmgr, info, block.id, record.version) {
        U => None,
        R => Some(false),
        M => Some(true),
        MadeIf(number) => is_not_0(number),
        ReadIf(number) => is_not_0(number)?.then_some(false),
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

fn taken(rmgr: u8, info: u8, id: u8, version: &Version) -> Taken {
    let row_of = |info: u8| {
        let rows = ROWS.get(..usize::from(ROWS_END[type_index(rmgr, info)]))?;
        let mut of_type = rows.iter().rev().take_while(|row| (row.rmgr, row.info) == (rmgr, info));
        of_type.find(|row| row.since.is_none_or(|since| version.since(since)))
    };
    // Where the bit says nothing, redo does not look at it.
    let plain = || row_of(info & !INIT).filter(|_| FLAGGED.contains(&rmgr));
    let row = row_of(info).or_else(plain);
    row.map_or(U, |row| *row.blocks.get(usize::from(id)).unwrap_or(&row.others))
}

/// Whether a block is marked otherwise than redo takes it.
pub(super) fn is_wrong<'m>(
    record: &Record<'_>,
    block: &BlockRef,
    main: impl Fn() -> Option<&'m [u8]>,
) -> bool {
    is_made(record, block, main).is_some_and(|is_made| is_made != block.will_init)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::{is_replayed, needed_blocks};
    use crate::version::VERSIONS;

    #[test]
    fn rows_of_a_type_stand_by_release() {
        for (earlier, later) in ROWS.iter().zip(&ROWS[1..]) {
            let [earlier, later] = [earlier, later].map(|it| ((it.rmgr, it.info), it.since));
            assert!(earlier.0 != later.0 || earlier.1 < later.1, "{later:?}");
        }
        let types: Vec<_> = ROWS.iter().map(|row| (row.rmgr, row.info)).collect();
        let mut once = types.clone();
        once.dedup();
        once.sort_unstable();
        assert!(once.windows(2).all(|pair| pair[0] != pair[1]));
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
        let usual = |rmgr: u8, info: u8| USUAL[usize::from(rmgr) << 4 | usize::from(info >> 4)];
        assert!(usual(HEAP, heap::DELETE | INIT) == Usual::Read);
        assert!(usual(HEAP, heap::INSERT | INIT) == Usual::Made);
    }

    #[test]
    fn a_number_has_as_many_bytes_as_its_mask() {
        let main = [1, 2, 3, 4, 0xFF];
        assert_eq!(byte(1).of(&main), Some(2));
        assert_eq!(bit(4, 0x04).of(&main), Some(4));
        assert_eq!(half(3).of(&main), Some(0xFF04));
        assert_eq!(whole(0).of(&main), Some(0x0403_0201));
        assert_eq!((whole(2).of(&main), half(4).of(&main), byte(5).of(&main)), (None, None, None));
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
