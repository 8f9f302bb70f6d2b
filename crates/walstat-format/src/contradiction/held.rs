//! Which blocks redo of a type holds at the same time: it locks one while it has not released another yet. If
//! both are the same page, the server waits for itself for ever, or ends (`incorrect local pin count`), with
//! images or without. The rows are those functions of redo, by the order in which they read and release.
//!
//! What redo releases before it reads the next one may be the same page, and no row says that it may not.

use super::blocks::Blocks;
use super::by_type::{Row, Table};
use crate::block::BlockRef;
use crate::payload::brin::opcode as brin;
use crate::payload::btree::opcode as btree;
use crate::payload::gin::opcode as gin;
use crate::payload::gist::opcode as gist;
use crate::payload::hash::opcode as hash;
use crate::payload::spgist::opcode as spgist;
use crate::record::Record;
use crate::rmgr::{BRIN, BTREE, GENERIC, GIN, GIST, HASH, SPGIST};
use crate::version::Release;
use Held::{All, Each, With};

/// Blocks that are held at the same time, by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Any two of these.
    Each(&'static [u8]),
    /// This one and any other.
    With(u8),
    /// Any two.
    All,
}

const fn row(rmgr: u8, info: u8, held: &'static [Held]) -> Row<&'static [Held]> {
    Row { rmgr, info, since: None, what: held }
}

const fn since(release: Release, row: Row<&'static [Held]>) -> Row<&'static [Held]> {
    Row { since: Some(release), ..row }
}

/// The only type of generic records.
const LOG: u8 = 0x00;
const TWO: &[Held] = &[Each(&[0, 1])];
const THREE: &[Held] = &[Each(&[0, 1, 2])];

/// What redo of each type holds.
static HELD: Table<&[Held], 28> = Table::new([
    // From 14 on a page's neighbours are locked as on the primary; before, one after the other.
    row(BTREE, btree::SPLIT_L, TWO),
    since(Release::V14, row(BTREE, btree::SPLIT_L, THREE)),
    row(BTREE, btree::SPLIT_R, TWO),
    since(Release::V14, row(BTREE, btree::SPLIT_R, THREE)),
    row(BTREE, btree::SPLIT_L_OR_INSERT_POST, TWO),
    since(Release::V13, row(BTREE, btree::SPLIT_L_OR_INSERT_POST, &[])),
    row(BTREE, btree::SPLIT_R_OR_DEDUP, TWO),
    since(Release::V13, row(BTREE, btree::SPLIT_R_OR_DEDUP, &[])),
    since(Release::V14, row(BTREE, btree::UNLINK_PAGE, THREE)),
    since(Release::V14, row(BTREE, btree::UNLINK_PAGE_META, THREE)),
    row(BTREE, btree::NEWROOT, TWO),
    row(HASH, hash::ADD_OVFL_PAGE, TWO),
    row(HASH, hash::SPLIT_ALLOCATE_PAGE, TWO),
    row(HASH, hash::MOVE_PAGE_CONTENTS, THREE),
    // The bucket and the page written to, and one after the other what is freed, the one before and the one
    // after it.
    row(HASH, hash::SQUEEZE_PAGE, &[Each(&[0, 1, 2]), Each(&[0, 1, 3]), Each(&[0, 1, 4])]),
    row(HASH, hash::DELETE, TWO),
    row(GIN, gin::CREATE_INDEX, TWO),
    row(GIN, gin::SPLIT, THREE),
    row(GIN, gin::DELETE_PAGE, THREE),
    row(GIN, gin::UPDATE_META_PAGE, TWO),
    row(GIN, gin::DELETE_LISTPAGE, &[With(0)]),
    row(GIST, gist::PAGE_UPDATE, TWO),
    // The first of the new pages.
    row(GIST, gist::PAGE_SPLIT, &[With(1)]),
    row(GIST, gist::PAGE_DELETE, TWO),
    row(SPGIST, spgist::PICKSPLIT, THREE),
    // The page of the old entry, while the new one's and the one of the range map are read.
    row(BRIN, brin::UPDATE, &[With(2)]),
    row(BRIN, brin::REVMAP_EXTEND, TWO),
    row(GENERIC, LOG, &[All]),
]);

impl Held {
    fn has(self, one: u8, other: u8) -> bool {
        match self {
            Each(ids) => ids.contains(&one) && ids.contains(&other),
            With(id) => id == one || id == other,
            All => true,
        }
    }
}

/// The id of an earlier block of a record that is the same page as this one, and that redo holds at the same
/// time.
pub(super) fn same_page<'m>(
    record: &Record<'_>,
    block: &BlockRef,
    taken: &Blocks,
    main: impl Fn() -> Option<&'m [u8]>,
) -> Option<u8> {
    let held = *HELD.find(record.header.rmgr, record.header.rmgr_info(), record.version)?;
    let page = |block: &BlockRef| (block.relation, block.fork, block.block);
    let earlier = record.blocks().take_while(|other| other.id < block.id);
    let mut same = earlier.filter(|other| {
        page(other) == page(block) && held.iter().any(|held| held.has(other.id, block.id))
    });
    let is_taken = |block: &BlockRef| taken.is_taken(record, block, &main);
    same.find(|other| is_taken(other) && is_taken(block)).map(|other| other.id)
}

#[cfg(test)]
mod tests {
    use super::super::blocks::BLOCKS;
    use super::*;
    use crate::version::{VERSIONS, Version};

    fn held(release: &str, rmgr: u8, info: u8, one: u8, other: u8) -> bool {
        let version: Option<&Version> = VERSIONS.iter().find(|version| version.name == release);
        let held = HELD.find(rmgr, info, version.expect("a release"));
        held.is_some_and(|held| held.iter().any(|held| held.has(one, other)))
    }

    #[test]
    fn rows_of_a_type_stand_by_release() {
        assert!(HELD.is_sorted());
    }

    /// So all records of them with more than one block are looked at.
    #[test]
    fn types_whose_blocks_are_held_have_them_taken() {
        assert!(HELD.rows.iter().all(|row| BLOCKS.has(row.rmgr, row.info)));
    }

    #[test]
    fn what_is_released_before_is_not_held() {
        let split = btree::SPLIT_R;
        assert!(held("13", BTREE, split, 0, 1) && !held("13", BTREE, split, 1, 2));
        assert!(held("14", BTREE, split, 1, 2) && !held("14", BTREE, split, 1, 3));
        let squeeze = |one, other| held("17", HASH, hash::SQUEEZE_PAGE, one, other);
        assert!(squeeze(1, 4) && !squeeze(2, 3) && !squeeze(1, 5));
        let of_gist = |one, other| held("12", GIST, gist::PAGE_SPLIT, one, other);
        assert!(of_gist(0, 1) && of_gist(1, 3) && !of_gist(2, 3));
        let update = |one, other| held("15", BRIN, brin::UPDATE | 0x80, one, other);
        assert!(update(0, 2) && update(1, 2) && !update(0, 1));
    }
}
