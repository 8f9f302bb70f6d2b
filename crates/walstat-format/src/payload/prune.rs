//! What pruning, vacuum and freezing do to a page (Heap2 in
//! `src/include/access/heapam_xlog.h`). The records were renumbered at 14 and made one at 17; here
//! they are one in all releases.

use super::heap::OPCODE_MASK;
use super::heap2::{PRUNE_ON_ACCESS, PRUNE_VACUUM_CLEANUP, PRUNE_VACUUM_SCAN, PRUNES};
use crate::cursor::{Cursor, Field, List, at};
use crate::version::{Release, Version};

/// Bits of the flags of 17 and later (`XLHP_*`).
pub(super) mod flag {
    pub(in crate::payload) const CLEANUP_LOCK: u16 = 0x04;
    pub(in crate::payload) const HAS_CONFLICT_HORIZON: u16 = 0x08;
    pub(in crate::payload) const HAS_FREEZE_PLANS: u16 = 0x10;
    pub(in crate::payload) const HAS_REDIRECTIONS: u16 = 0x20;
    pub(in crate::payload) const HAS_DEAD_ITEMS: u16 = 0x40;
    pub(in crate::payload) const HAS_NOW_UNUSED_ITEMS: u16 = 0x80;
    /// Any line pointer changes.
    pub(in crate::payload) const HAS_ITEMS: u16 =
        HAS_REDIRECTIONS | HAS_DEAD_ITEMS | HAS_NOW_UNUSED_ITEMS;
}

/// The newest xid that must be gone on a standby.
type ConflictXid = u32;

/// How rows are frozen that have the same header (`xlhp_freeze_plan`): 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreezePlan {
    /// Their new xmax.
    pub xmax: u32,
    /// Their new `t_infomask2`.
    pub infomask2: u16,
    /// Their new `t_infomask`.
    pub infomask: u16,
    /// How many rows.
    pub count: u16,
}

impl Field for FreezePlan {
    const BYTES: usize = 12;

    fn read(bytes: &[u8]) -> Option<FreezePlan> {
        Some(FreezePlan {
            xmax: at(bytes, 0)?,
            infomask2: at(bytes, 4)?,
            infomask: at(bytes, 6)?,
            count: at(bytes, 10)?,
        })
    }
}

/// How one row is frozen (`xl_heap_freeze_tuple`, up to 15): 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrozenTuple {
    /// Its new xmax.
    pub xmax: u32,
    /// Its line pointer.
    pub offset: u16,
    /// Its new `t_infomask`.
    pub infomask: u16,
}

impl Field for FrozenTuple {
    const BYTES: usize = 12;

    fn read(bytes: &[u8]) -> Option<FrozenTuple> {
        let tuple =
            FrozenTuple { xmax: at(bytes, 0)?, offset: at(bytes, 4)?, infomask: at(bytes, 8)? };
        (bytes.len() >= Self::BYTES).then_some(tuple)
    }
}

/// What one such record does to the page of block 0. The lists are empty where the record has an
/// image instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prune<'a> {
    /// Line pointers that lead to another: from, to.
    pub redirected: List<'a, (u16, u16)>,
    /// Line pointers whose rows are taken away, but which indexes still point to.
    pub dead: List<'a, u16>,
    /// Line pointers that are free again.
    pub unused: List<'a, u16>,
    /// How rows are frozen (16 and later).
    pub plans: List<'a, FreezePlan>,
    /// Line pointers of frozen rows, in the order of `plans`.
    pub frozen: List<'a, u16>,
    /// Frozen rows (up to 15).
    pub frozen_tuples: List<'a, FrozenTuple>,
}

impl<'a> Prune<'a> {
    /// Reads a record of Heap2 from its main data and the data of block 0, if it has any; `None`
    /// for other types, and where either is too short.
    pub fn parse(
        info: u8,
        main_data: &[u8],
        block_data: Option<&'a [u8]>,
        version: &Version,
    ) -> Option<Prune<'a>> {
        let main = Cursor::new(main_data);
        let opcode = info & OPCODE_MASK;
        if version.since(Release::V17) {
            let known = PRUNES.contains(&opcode);
            return known.then(|| prune_17(main, block_data, version)).flatten();
        }
        match (opcode, version.since(Release::V14)) {
            (PRUNE_ON_ACCESS, _) => prune(main, block_data),
            (PRUNE_VACUUM_SCAN, true) => vacuum(main, block_data),
            (PRUNE_VACUUM_CLEANUP, true) | (PRUNE_VACUUM_SCAN, false) => {
                freeze(main, block_data, version)
            }
            _ => None,
        }
    }
}

/// Whether it is a `CLEANUP_INFO` (up to 13), which changes no page.
pub(crate) fn is_cleanup_info(opcode: u8, version: &Version) -> bool {
    opcode == PRUNE_VACUUM_CLEANUP && !version.since(Release::V14)
}

/// `CLEAN` and `PRUNE`: counts in the main data, and the rest of the block data is unused.
fn prune<'a>(mut main: Cursor<'_>, block_data: Option<&'a [u8]>) -> Option<Prune<'a>> {
    main.field::<ConflictXid>()?;
    let (redirected, dead): (u16, u16) = main.field()?;
    let mut prune = Prune::default();
    if let Some(bytes) = block_data {
        let mut data = Cursor::new(bytes);
        prune.redirected = data.list(u32::from(redirected))?;
        prune.dead = data.list(u32::from(dead))?;
        prune.unused = List::over(data.rest());
    }
    Some(prune)
}

fn vacuum<'a>(mut main: Cursor<'_>, block_data: Option<&'a [u8]>) -> Option<Prune<'a>> {
    let count: u16 = main.field()?;
    let mut prune = Prune::default();
    if let Some(bytes) = block_data {
        prune.unused = Cursor::new(bytes).list(u32::from(count))?;
    }
    Some(prune)
}

fn freeze<'a>(
    mut main: Cursor<'_>,
    block_data: Option<&'a [u8]>,
    version: &Version,
) -> Option<Prune<'a>> {
    main.field::<ConflictXid>()?;
    let count = u32::from(main.field::<u16>()?);
    let mut prune = Prune::default();
    let Some(bytes) = block_data else { return Some(prune) };
    let mut data = Cursor::new(bytes);
    if version.since(Release::V16) {
        prune.plans = data.list(count)?;
        prune.frozen = data.list(frozen_rows(&prune.plans))?;
    } else {
        prune.frozen_tuples = data.list(count)?;
    }
    Some(prune)
}

fn frozen_rows(plans: &List<'_, FreezePlan>) -> u32 {
    plans.iter().map(|plan| u32::from(plan.count)).sum()
}

/// The flags at the start of the main data. 17 and 18: a reason and a byte of flags; later two bytes
/// of flags.
pub(super) fn flags(main_data: &[u8], version: &Version) -> Option<u16> {
    if version.since(Release::V19) {
        at(main_data, 0)
    } else {
        at::<u8>(main_data, 1).map(u16::from)
    }
}

/// One record for all (`xl_heap_prune` of 17 and later); each part says itself how long it is.
fn prune_17<'a>(
    mut main: Cursor<'_>,
    block_data: Option<&'a [u8]>,
    version: &Version,
) -> Option<Prune<'a>> {
    let flags = flags(main.take(2)?, version)?;
    let has = |bit| flags & bit != 0;
    let mut prune = Prune::default();
    if has(flag::HAS_CONFLICT_HORIZON) {
        main.field::<ConflictXid>()?;
    }
    let Some(bytes) = block_data else { return Some(prune) };
    let mut data = Cursor::new(bytes);
    if has(flag::HAS_FREEZE_PLANS) {
        // The count is padded to 4 bytes.
        let (count, _): (u16, u16) = data.field()?;
        prune.plans = data.list(u32::from(count))?;
    }
    prune.redirected = list_if(has(flag::HAS_REDIRECTIONS), &mut data)?;
    prune.dead = list_if(has(flag::HAS_DEAD_ITEMS), &mut data)?;
    prune.unused = list_if(has(flag::HAS_NOW_UNUSED_ITEMS), &mut data)?;
    prune.frozen = data.list(frozen_rows(&prune.plans))?;
    Some(prune)
}

fn list_if<'a, T: Field>(is_there: bool, data: &mut Cursor<'a>) -> Option<List<'a, T>> {
    if !is_there {
        return Some(List::default());
    }
    let count: u16 = data.field()?;
    data.list(u32::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn shorts(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn all<T: Field>(list: List<'_, T>) -> Vec<T> {
        list.iter().collect()
    }

    #[test]
    fn up_to_16_the_main_data_count() {
        let main = shorts(&[7, 0, 1, 2]);
        let block = shorts(&[1, 2, 3, 4, 5, 6]);
        for index in [0, 5, 7, 8] {
            let prune = Prune::parse(0x10, &main, Some(&block), &VERSIONS[index]).expect("prune");
            assert_eq!(all(prune.redirected), [(1, 2)]);
            assert_eq!((all(prune.dead), all(prune.unused)), (vec![3, 4], vec![5, 6]));
        }
        assert_eq!(Prune::parse(0x10, &main[..7], Some(&block), &VERSIONS[7]), None);
        assert_eq!(Prune::parse(0x10, &main, Some(&block[..6]), &VERSIONS[7]), None);
        let image = Prune::parse(0x10, &main, None, &VERSIONS[7]).expect("an image instead");
        assert!(image.dead.is_empty());
    }

    #[test]
    fn vacuum_came_with_14() {
        let (main, block) = (shorts(&[2]), shorts(&[8, 9]));
        let prune = Prune::parse(0x20, &main, Some(&block), &VERSIONS[6]).expect("vacuum");
        assert_eq!(all(prune.unused), [8, 9]);
        // Before, the number was that of freezing, whose main data are longer.
        assert_eq!(Prune::parse(0x20, &main, Some(&block), &VERSIONS[5]), None);
        // And 0x30 was about no page.
        assert_eq!(Prune::parse(0x30, &[0; 16], None, &VERSIONS[5]), None);
    }

    #[test]
    fn rows_are_frozen_singly_up_to_15_and_by_plans_since() {
        let main = shorts(&[7, 0, 1]);
        let single = shorts(&[9, 0, 5, 30, 0x900, 0]);
        for (index, info) in [(3, 0x20), (7, 0x30)] {
            let prune = Prune::parse(info, &main, Some(&single), &VERSIONS[index]).expect("freeze");
            let want = FrozenTuple { xmax: 9, offset: 5, infomask: 0x900 };
            assert_eq!(all(prune.frozen_tuples), [want]);
        }
        let plans = shorts(&[9, 0, 30, 0x900, 0, 2, 5, 6]);
        let prune = Prune::parse(0x30, &main, Some(&plans), &VERSIONS[8]).expect("freeze");
        assert_eq!(all(prune.frozen), [5, 6]);
        assert_eq!(prune.plans.iter().map(|plan| plan.infomask).collect::<Vec<_>>(), [0x900]);
        assert_eq!(Prune::parse(0x30, &main, Some(&plans[..14]), &VERSIONS[8]), None);
    }

    #[test]
    fn from_17_on_flags_say_which_parts_there_are() {
        let block = [
            shorts(&[1, 0xEEEE, 9, 0, 30, 0x900, 0, 2]),
            shorts(&[1, 1, 2]),
            shorts(&[2, 3, 4]),
            shorts(&[1, 5]),
            shorts(&[6, 7]),
        ]
        .concat();
        let mains = [(9, vec![0, 0xF8, 7, 0, 0, 0]), (11, vec![0xF8, 0x03, 7, 0, 0, 0])];
        for (index, main) in mains {
            let parse = |main: &[u8], length: usize| {
                Prune::parse(0x20, main, Some(&block[..length]), &VERSIONS[index]).is_some()
            };
            let prune = Prune::parse(0x20, &main, Some(&block), &VERSIONS[index]).expect("all");
            assert_eq!(all(prune.redirected), [(1, 2)]);
            assert_eq!((all(prune.dead), all(prune.unused)), (vec![3, 4], vec![5]));
            assert_eq!(all(prune.frozen), [6, 7]);
            assert!(!parse(&main[..5], block.len()));
            assert!((0..block.len()).all(|length| !parse(&main, length)));
        }
    }
}
