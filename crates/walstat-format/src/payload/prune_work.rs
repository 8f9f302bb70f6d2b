//! How a record of pruning, vacuum or freezing works on its page, and how long its block data are
//! where an image took their place: what [`super::prune`] reads, the other way round.

use super::heap::OPCODE_MASK;
use super::heap2::{PRUNE_ON_ACCESS, PRUNE_VACUUM_SCAN};
use super::prune::{FreezePlan, flag, flags};
use crate::cursor::{Field, at};
use crate::version::{Release, Version};

/// What is done to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Tuples go away and the others are packed.
    Prune,
    /// Line pointers are freed; no tuple moves.
    Vacuum,
    /// Rows are frozen only.
    Freeze,
}

/// A part of the block data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Line pointers that lead to another.
    Redirected,
    /// Line pointers whose tuple is gone.
    Dead,
    /// Free line pointers.
    Unused,
    /// Rows that are frozen.
    FrozenRows,
    /// Different ways in which they are.
    FreezePlans,
}

/// Bytes of a way of freezing; up to 15, of what is said of one row.
const FREEZE_BYTES: usize = FreezePlan::BYTES;
/// How many ways there are, from 17 on; a row's line pointer.
const FREEZE_HEADER_BYTES: usize = 4;
const ROW_BYTES: usize = 2;

/// What a record does to its page; `None` where the main data is too short.
pub fn work(info: u8, main_data: &[u8], version: &Version) -> Option<Work> {
    if version.since(Release::V17) {
        let flags = flags(main_data, version)?;
        return Some(match (flags & flag::HAS_ITEMS != 0, flags & flag::CLEANUP_LOCK != 0) {
            (true, true) => Work::Prune,
            (true, false) => Work::Vacuum,
            (false, _) => Work::Freeze,
        });
    }
    Some(match (info & OPCODE_MASK, version.since(Release::V14)) {
        (PRUNE_ON_ACCESS, _) => Work::Prune,
        (PRUNE_VACUUM_SCAN, true) => Work::Vacuum,
        _ => Work::Freeze,
    })
}

/// Whether it is vacuum that looked at the page's rows (17 and later).
pub fn is_scan(info: u8, version: &Version) -> bool {
    version.since(Release::V17) && info & OPCODE_MASK == PRUNE_VACUUM_SCAN
}

/// Whether rows are frozen, by a record that may do other work too (17 and later).
pub fn freezes(main_data: &[u8], version: &Version) -> bool {
    let does = |flags: u16| flags & flag::HAS_FREEZE_PLANS != 0;
    version.since(Release::V17) && flags(main_data, version).is_some_and(does)
}

/// Bytes of the block data that say which rows are frozen, and in which ways (17 and later).
pub fn freeze_bytes(plans: usize, rows: usize) -> usize {
    FREEZE_HEADER_BYTES + FREEZE_BYTES * plans + ROW_BYTES * rows
}

/// Whether rows are frozen beside other work: from 17 on one record does both.
pub fn freezes_beside(main_data: &[u8], version: &Version) -> bool {
    let both = |flags: u16| flags & flag::HAS_ITEMS != 0 && flags & flag::HAS_FREEZE_PLANS != 0;
    version.since(Release::V17) && flags(main_data, version).is_some_and(both)
}

/// Whether the main data alone tells how long the block data are.
pub fn is_counted(info: u8, version: &Version) -> bool {
    !version.since(Release::V17)
        && match (info & OPCODE_MASK, version.since(Release::V14)) {
            (PRUNE_ON_ACCESS, _) => false,
            (PRUNE_VACUUM_SCAN, true) => true,
            // From 16 on frozen rows are not counted, only the ways of freezing.
            _ => !version.since(Release::V16),
        }
}

/// How long the block data are. `count` says how much of a part was done, where the main data
/// does not.
pub fn data_bytes(
    info: u8,
    main_data: &[u8],
    version: &Version,
    count: impl Fn(Part) -> usize,
) -> Option<usize> {
    if version.since(Release::V17) {
        return Some(data_bytes_17(flags(main_data, version)?, count));
    }
    let number = |offset: usize| at::<u16>(main_data, offset).map(usize::from);
    match (info & OPCODE_MASK, version.since(Release::V14)) {
        (PRUNE_ON_ACCESS, _) => Some(4 * number(4)? + 2 * number(6)? + 2 * count(Part::Unused)),
        (PRUNE_VACUUM_SCAN, true) => Some(2 * number(0)?),
        _ if version.since(Release::V16) => {
            Some(FREEZE_BYTES * number(4)? + 2 * count(Part::FrozenRows))
        }
        _ => Some(FREEZE_BYTES * number(4)?),
    }
}

/// Rows are frozen beside the pruning because the page gets an image anyway: without one they are
/// not (`heap_page_prune_and_freeze`).
fn data_bytes_17(flags: u16, count: impl Fn(Part) -> usize) -> usize {
    let parts = [
        (flag::HAS_FREEZE_PLANS, FREEZE_HEADER_BYTES, FREEZE_BYTES, Part::FreezePlans),
        (flag::HAS_FREEZE_PLANS, 0, ROW_BYTES, Part::FrozenRows),
        (flag::HAS_REDIRECTIONS, 2, 4, Part::Redirected),
        (flag::HAS_DEAD_ITEMS, 2, 2, Part::Dead),
        (flag::HAS_NOW_UNUSED_ITEMS, 2, 2, Part::Unused),
    ];
    let flags = if flags & flag::HAS_ITEMS != 0 { flags & !flag::HAS_FREEZE_PLANS } else { flags };
    let there = parts.iter().filter(|(flag, ..)| flags & flag != 0);
    there.map(|(_, header, each, part)| header + each * count(*part)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    #[test]
    fn lengths_are_those_that_are_read() {
        let count = |part| match part {
            Part::Redirected => 1,
            Part::Dead => 2,
            Part::Unused => 1,
            Part::FrozenRows => 2,
            Part::FreezePlans => 1,
        };
        let main = [7, 0, 0, 0, 1, 0, 2, 0];
        let bytes =
            |info, main: &[u8], index: usize| data_bytes(info, main, &VERSIONS[index], count);
        assert_eq!(bytes(0x10, &main, 7), Some(4 + 4 + 2));
        assert_eq!(bytes(0x20, &[3, 0], 7), Some(6));
        assert_eq!(bytes(0x30, &main, 7), Some(12));
        assert_eq!(bytes(0x30, &main, 8), Some(12 + 4));
        assert_eq!(bytes(0x20, &main, 5), Some(12));
        let items = 6 + 6 + 4;
        assert_eq!(bytes(0x20, &[0, 0xF8], 9), Some(items));
        assert_eq!(bytes(0x20, &[0xF8, 0], 11), Some(items));
        assert_eq!(bytes(0x20, &[0, 0x18], 9), Some(16 + 4));
        assert_eq!(bytes(0x20, &[0, 0x08], 9), Some(0));
        assert_eq!(bytes(0x10, &main[..7], 7), None);
    }

    #[test]
    fn from_17_on_a_lock_tells_pruning_from_vacuum() {
        let work = |main: &[u8]| work(0x10, main, &VERSIONS[9]);
        assert_eq!(work(&[0, 0x44]), Some(Work::Prune));
        assert_eq!(work(&[0, 0x80]), Some(Work::Vacuum));
        assert_eq!(work(&[0, 0x14]), Some(Work::Freeze));
        assert_eq!(work(&[0]), None);
    }
}
