//! Changes of B-trees (`src/include/access/nbtxlog.h`): the main data, and what of the block data
//! has a layout of its own.

use super::rmgr_info;
use crate::cursor::{Cursor, List};
use crate::locator::RelFileLocator;
use crate::version::{Release, Version};

/// Opcodes, in `xl_info & 0xF0`.
pub mod opcode {
    /// An entry goes into a leaf.
    pub const INSERT_LEAF: u8 = 0x00;
    /// An entry goes into an inner page.
    pub const INSERT_UPPER: u8 = 0x10;
    /// The same, and the fast root changes.
    pub const INSERT_META: u8 = 0x20;
    /// A page is split, the new entry goes to the left half.
    pub const SPLIT_L: u8 = 0x30;
    /// A page is split, the new entry goes to the right half.
    pub const SPLIT_R: u8 = 0x40;
    /// Up to 10 `SPLIT_L_ROOT`, in 11 `SPLIT_L_HIGHKEY`: as `SPLIT_L`. From 13 on an entry goes
    /// into a leaf and splits a posting list (`INSERT_POST`).
    pub const SPLIT_L_OR_INSERT_POST: u8 = 0x50;
    /// Up to 10 `SPLIT_R_ROOT`, in 11 `SPLIT_R_HIGHKEY`: as `SPLIT_R`. From 13 on entries of a
    /// page are merged into posting lists (`DEDUP`).
    pub const SPLIT_R_OR_DEDUP: u8 = 0x60;
    /// Entries of dead rows are deleted.
    pub const DELETE: u8 = 0x70;
    /// A half-dead page leaves the tree.
    pub const UNLINK_PAGE: u8 = 0x80;
    /// The same, and the fast root changes.
    pub const UNLINK_PAGE_META: u8 = 0x90;
    /// A new root.
    pub const NEWROOT: u8 = 0xA0;
    /// A page is made half-dead.
    pub const MARK_PAGE_HALFDEAD: u8 = 0xB0;
    /// Vacuum deletes entries.
    pub const VACUUM: u8 = 0xC0;
    /// Vacuum notes in the metapage what it found (11 and later).
    pub const META_CLEANUP: u8 = 0xE0;
}

/// What a record does to leaves, as far as insertions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// An entry goes into an existing page of the leaf level.
    Leaf {
        /// Whether it splits a posting list (13 and later).
        splits_posting_list: bool,
    },
    /// An entry goes into an inner page.
    Inner,
    /// A page is split; its level is in the main data ([`Split`]).
    Split {
        /// Whether the new entry goes to the left half.
        new_entry_left: bool,
    },
}

impl Insertion {
    /// What the record's type says; `None` if it inserts nothing.
    pub fn of(info: u8, version: &Version) -> Option<Insertion> {
        let has_posting_lists = version.since(Release::V13);
        Some(match rmgr_info(info) {
            opcode::INSERT_LEAF => Insertion::Leaf { splits_posting_list: false },
            opcode::INSERT_UPPER | opcode::INSERT_META => Insertion::Inner,
            opcode::SPLIT_L => Insertion::Split { new_entry_left: true },
            opcode::SPLIT_R => Insertion::Split { new_entry_left: false },
            opcode::SPLIT_L_OR_INSERT_POST if has_posting_lists => {
                Insertion::Leaf { splits_posting_list: true }
            }
            opcode::SPLIT_L_OR_INSERT_POST => Insertion::Split { new_entry_left: true },
            opcode::SPLIT_R_OR_DEDUP if !has_posting_lists => {
                Insertion::Split { new_entry_left: false }
            }
            _ => return None,
        })
    }
}

/// An entry is inserted; it is the data of block 0, after 2 bytes of posting list offset if it
/// splits one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insert {
    /// Its line pointer.
    pub offset: u16,
}

impl Insert {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<Insert> {
        Cursor::new(main_data).field().map(|offset| Insert { offset })
    }
}

/// A page is split: block 0 keeps the left half, block 1 is the new right page with its entries
/// as data, block 2 the old right sibling if there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// 0 for leaves.
    pub level: u32,
    /// The first line pointer of the old page that goes right.
    pub first_right: u16,
    /// Where the new entry stands.
    pub new_item: u16,
    /// Where in a posting list the new entry stands, 0 if in none (13 and later).
    pub posting: u16,
}

impl Split {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8], version: &Version) -> Option<Split> {
        let mut cursor = Cursor::new(main_data);
        let level = cursor.field()?;
        let (first_right, new_item) = cursor.field()?;
        let posting = if version.since(Release::V13) { cursor.field()? } else { 0 };
        Some(Split { level, first_right, new_item, posting })
    }
}

/// Entries are merged into posting lists (13 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dedup<'a> {
    /// Runs of entries that become one: the first one's line pointer, and how many. Empty beside
    /// an image.
    pub intervals: List<'a, (u16, u16)>,
}

impl<'a> Dedup<'a> {
    /// Reads the main data and the data of block 0, if any; `None` if either is too short.
    pub fn parse(main_data: &[u8], block_data: Option<&'a [u8]>) -> Option<Dedup<'a>> {
        let count: u16 = Cursor::new(main_data).field()?;
        let intervals = match block_data {
            Some(bytes) => Cursor::new(bytes).list(u32::from(count))?,
            None => List::default(),
        };
        Some(Dedup { intervals })
    }
}

/// Entries are deleted, by vacuum or to make room. Lists are empty beside an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removal<'a> {
    /// Line pointers that are deleted.
    pub deleted: List<'a, u16>,
    /// Line pointers of posting lists that lose some of their rows (13 and later).
    pub updated: List<'a, u16>,
    /// How they lose them: for each a count and as many places in the list, all of 2 bytes.
    pub updates: &'a [u8],
}

impl<'a> Removal<'a> {
    /// Reads a `DELETE`; `None` if main data or block data are too short.
    pub fn delete(
        main_data: &'a [u8],
        block_data: Option<&'a [u8]>,
        version: &Version,
    ) -> Option<Removal<'a>> {
        let mut main = Cursor::new(main_data);
        if !version.since(Release::V12) {
            // The table, for conflicts.
            main.field::<RelFileLocator>()?;
            return Some(Removal { deleted: main.counted_list()?, ..Removal::default() });
        }
        // The newest xid that must be gone on a standby.
        main.field::<u32>()?;
        if !version.since(Release::V13) {
            return Some(Removal { deleted: main.counted_list()?, ..Removal::default() });
        }
        let (deleted, updated) = if version.since(Release::V14) {
            main.field::<(u16, u16)>()?
        } else {
            (u16::try_from(main.field::<u32>()?).ok()?, 0)
        };
        removed(deleted, updated, block_data)
    }

    /// Reads a `VACUUM`; `None` if main data or block data are too short.
    pub fn vacuum(
        main_data: &[u8],
        block_data: Option<&'a [u8]>,
        version: &Version,
    ) -> Option<Removal<'a>> {
        let mut main = Cursor::new(main_data);
        if version.since(Release::V13) {
            let (deleted, updated) = main.field()?;
            return removed(deleted, updated, block_data);
        }
        // The last block that was vacuumed.
        main.field::<u32>()?;
        let deleted = List::over(block_data.unwrap_or_default());
        Some(Removal { deleted, ..Removal::default() })
    }
}

fn removed(deleted: u16, updated: u16, block_data: Option<&[u8]>) -> Option<Removal<'_>> {
    let Some(bytes) = block_data else { return Some(Removal::default()) };
    let mut data = Cursor::new(bytes);
    Some(Removal {
        deleted: data.list(u32::from(deleted))?,
        updated: data.list(u32::from(updated))?,
        updates: data.rest(),
    })
}

/// A leaf is made half-dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkHalfDead {
    /// Line pointer in the parent, block 1.
    pub parent_offset: u16,
    /// The leaf, block 0.
    pub leaf: u32,
    /// Its left sibling, 0 if there is none.
    pub left: u32,
    /// Its right sibling.
    pub right: u32,
    /// The topmost page that goes away with it.
    pub top_parent: u32,
}

impl MarkHalfDead {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<MarkHalfDead> {
        let mut cursor = Cursor::new(main_data);
        let parent_offset = cursor.field()?;
        cursor.take(2)?;
        let (leaf, left) = cursor.field()?;
        let (right, top_parent) = cursor.field()?;
        Some(MarkHalfDead { parent_offset, leaf, left, right, top_parent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn shorts(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn all(list: List<'_, u16>) -> Vec<u16> {
        list.iter().collect()
    }

    #[test]
    fn types_that_moved_are_told_apart() {
        let of = |info, index: usize| Insertion::of(info, &VERSIONS[index]);
        assert_eq!(of(0x00, 0), Some(Insertion::Leaf { splits_posting_list: false }));
        assert_eq!(of(0x50, 2), Some(Insertion::Split { new_entry_left: true }));
        assert_eq!(of(0x60, 3), Some(Insertion::Split { new_entry_left: false }));
        assert_eq!(of(0x50, 5), Some(Insertion::Leaf { splits_posting_list: true }));
        assert_eq!(of(0x60, 5), None);
        assert_eq!((of(0x20, 7), of(0xC0, 7)), (Some(Insertion::Inner), None));
    }

    #[test]
    fn splits_gained_a_field_with_13() {
        let data = [words(&[1]), shorts(&[5, 6, 7])].concat();
        let split = |posting| Some(Split { level: 1, first_right: 5, new_item: 6, posting });
        assert_eq!(Split::parse(&data[..8], &VERSIONS[4]), split(0));
        assert_eq!(Split::parse(&data, &VERSIONS[5]), split(7));
        assert_eq!(Split::parse(&data[..8], &VERSIONS[5]), None);
        assert_eq!(Insert::parse(&data[4..]), Some(Insert { offset: 5 }));
        assert_eq!(Insert::parse(&data[..1]), None);
    }

    #[test]
    fn deletions_are_read_in_each_layout() {
        let offsets = shorts(&[3, 4]);
        let old = [words(&[1663, 5, 9, 2]), offsets.clone()].concat();
        let delete = Removal::delete(&old, None, &VERSIONS[3]).expect("up to 11");
        assert_eq!(all(delete.deleted), [3, 4]);
        assert_eq!(Removal::delete(&old[..19], None, &VERSIONS[3]), None);
        let v12 = [words(&[7, 2]), offsets.clone()].concat();
        let delete = Removal::delete(&v12, None, &VERSIONS[4]).expect("12");
        assert_eq!(all(delete.deleted), [3, 4]);
        let v13 = words(&[7, 2]);
        let delete = Removal::delete(&v13, Some(&offsets), &VERSIONS[5]).expect("13");
        assert_eq!(all(delete.deleted), [3, 4]);
        let v14 = [words(&[7]), shorts(&[1, 1])].concat();
        let data = shorts(&[3, 4, 1, 0]);
        for index in [6, 8] {
            let delete =
                Removal::delete(&v14, Some(&data), &VERSIONS[index]).expect("14 and later");
            assert_eq!((all(delete.deleted), all(delete.updated)), (vec![3], vec![4]));
            assert_eq!(delete.updates, [1, 0, 0, 0]);
        }
        assert_eq!(Removal::delete(&v14, Some(&data[..3]), &VERSIONS[6]), None);
        let image = Removal::delete(&v14, None, &VERSIONS[6]).expect("an image instead");
        assert!(image.deleted.is_empty());
    }

    #[test]
    fn vacuum_is_read_in_both_layouts() {
        let data = shorts(&[3, 4]);
        let vacuum = Removal::vacuum(&words(&[100]), Some(&data), &VERSIONS[4]).expect("up to 12");
        assert_eq!(all(vacuum.deleted), [3, 4]);
        let vacuum = Removal::vacuum(&shorts(&[1, 1]), Some(&data), &VERSIONS[5]).expect("13");
        assert_eq!((all(vacuum.deleted), all(vacuum.updated)), (vec![3], vec![4]));
        assert_eq!(Removal::vacuum(&shorts(&[1, 2]), Some(&data), &VERSIONS[5]), None);
    }

    #[test]
    fn merged_entries_are_intervals() {
        let data = shorts(&[3, 4, 9, 2]);
        let dedup = Dedup::parse(&shorts(&[2]), Some(&data)).expect("two");
        assert_eq!(dedup.intervals.iter().collect::<Vec<_>>(), [(3, 4), (9, 2)]);
        assert_eq!(Dedup::parse(&shorts(&[3]), Some(&data)), None);
        assert!(Dedup::parse(&shorts(&[3]), None).is_some_and(|dedup| dedup.intervals.is_empty()));
    }

    #[test]
    fn a_half_dead_page_names_its_neighbours() {
        let half = [shorts(&[5, 0xEEEE]), words(&[1, 2, 3, 4])].concat();
        let want = MarkHalfDead { parent_offset: 5, leaf: 1, left: 2, right: 3, top_parent: 4 };
        assert_eq!(MarkHalfDead::parse(&half), Some(want));
        assert_eq!(MarkHalfDead::parse(&half[..19]), None);
    }
}
