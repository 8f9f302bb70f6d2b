//! Which blocks redo asks a record for, and in which forks. Redo functions read blocks by their ids:
//! where a record has none of an id that is read, recovery ends (`failed to locate backup block with ID`,
//! `XLogReadBufferForRedoExtended` in `src/backend/access/transam/xlogutils.c`).
//!
//! Only what redo of a type reads whatever else the record says is asked for. The ids and forks of each type
//! stand in `rmgr-names.tsv`.

use super::{BlockRef, Parts, USUAL_HEAD_BYTES, one_image, usual, walk_any};
use crate::version::Version;
use serde::{Deserialize, Serialize};

/// Blocks of these ids are in the main fork: 0 to 7, a bit each. No redo function reads more whatever else
/// the record says.
const IN_MAIN: u16 = 0x00FF;
/// Blocks 0 and 1 are in the main fork or in that of unlogged relations, a bit each.
const IN_INIT: u16 = 0x0300;
/// The lowest bit of each.
const IN_FIRST: u64 = 0x0101;
/// Block 0 is one of the visibility map.
const MAP_0: u16 = 0x0400;
/// Each reference names a relation and a block.
const PLACES: u16 = 0x0800;
/// Nothing has it.
const NEVER: u16 = 0x8000;

/// The bit of an id among these; 0: there is none.
const fn bit(id: u8, among: u16) -> u16 {
    let first = among & among.wrapping_neg();
    match first.checked_shl(id as u32) {
        Some(bit) => bit & among,
        None => 0,
    }
}

/// The bits of an id in all forks.
const fn bits(id: u8) -> u16 {
    bit(id, IN_MAIN) | bit(id, IN_INIT) | bit(id, MAP_0)
}

/// The number of no block (`InvalidBlockNumber`).
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// What the references of a record are like, as far as redo asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Referred(u16);

impl Referred {
    /// A record without references.
    const NOTHING: Referred = Referred(PLACES);
    /// A record with a block 0 in the main fork, and no other.
    const FIRST: Referred = Referred(PLACES | bit(0, IN_MAIN) | bit(0, IN_INIT));

    /// Those to these blocks.
    pub fn to(blocks: impl Iterator<Item = BlockRef>) -> Referred {
        blocks.fold(Referred::NOTHING, |referred, block| referred.and(&block))
    }

    #[inline(always)]
    fn and(self, block: &BlockRef) -> Referred {
        let has = match block.fork {
            // The bits of both, at once.
            0 => (IN_FIRST << block.id) as u16 & (IN_MAIN | IN_INIT),
            2 => bit(block.id, MAP_0),
            3 => bit(block.id, IN_INIT),
            _ => 0,
        };
        let is_place = is_place(block.relation.relfilenode, block.block);
        Referred(if is_place { self.0 | has } else { (self.0 | has) & !PLACES })
    }
}

/// Whether a reference names a relation and a block.
#[inline(always)]
pub(super) fn is_place(relfilenode: u32, block: u32) -> bool {
    relfilenode != 0 && block != NO_BLOCK
}

/// What redo of a record type asks of the references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeededBlocks(u16);

/// What is wrong with the references of a record, so that recovery ends at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferenceFault {
    /// There is none of an id that redo reads.
    Missing(u8),
    /// The block of this id is in this fork, where redo expects another one.
    Fork(u8, u8),
    /// The block of this id has the number of no block.
    Block(u8),
    /// The block of this id is one of relation file 0.
    Relation(u8),
}

impl NeededBlocks {
    /// What no record has.
    pub const NEVER: NeededBlocks = NeededBlocks(NEVER);

    /// Reads what the data file says: ids with commas between them, or `-` for none; and a word where they
    /// are not all in the main fork. No ids at all: nothing is asked.
    pub(crate) fn parse(ids: &str, forks: &str) -> Option<NeededBlocks> {
        if ids.is_empty() {
            return Some(NeededBlocks::default());
        }
        let among = |id: u8| match forks {
            "" => Some(IN_MAIN),
            "init" => Some(IN_INIT),
            "map0" => Some(if id == 0 { MAP_0 } else { IN_MAIN }),
            _ => None,
        };
        let add = |sum: u16, id: &str| {
            let id = id.parse().ok()?;
            Some(bit(id, among(id)?)).filter(|bit| *bit != 0).map(|bit| sum | bit)
        };
        let ids = if ids == "-" { Some(0) } else { ids.split(',').try_fold(0, add) };
        ids.map(|ids| NeededBlocks(ids | PLACES))
    }

    /// Whether a block of this id is asked for.
    #[cfg(test)]
    pub(crate) fn asks_for(self, id: u8) -> bool {
        self.0 & bits(id) != 0
    }

    /// Whether a record has what is asked for.
    #[inline(always)]
    pub fn are_met_by(self, referred: Referred) -> bool {
        self.0 & !referred.0 == 0
    }

    /// What is wrong with these blocks; `None`: nothing.
    pub fn fault(self, blocks: impl Iterator<Item = BlockRef> + Clone) -> Option<ReferenceFault> {
        let unmet = self.0 & !Referred::to(blocks.clone()).0;
        if unmet == 0 {
            return None;
        }
        if let Some(id) = (0..8).find(|id| unmet & bits(*id) != 0) {
            let block = blocks.clone().find(|block| block.id == id);
            return Some(block.map_or(ReferenceFault::Missing(id), |block| {
                ReferenceFault::Fork(id, block.fork)
            }));
        }
        let mut blocks = blocks;
        blocks.find_map(|BlockRef { id, relation, block, .. }| {
            match (relation.relfilenode, block) {
                (_, NO_BLOCK) => Some(ReferenceFault::Block(id)),
                (0, _) => Some(ReferenceFault::Relation(id)),
                _ => None,
            }
        })
    }
}

/// Walks over the parts of a record as [`super::walk`] does; `None`: they make no sense, or its references
/// are not what is needed. The usual forms refer to nothing, or to a block 0 in the main fork.
#[inline(always)]
pub fn walk_needed(
    head: &[u8],
    total_bytes: u32,
    version: &Version,
    needed: NeededBlocks,
) -> Option<Parts> {
    if let Some((parts, _)) = usual(head, total_bytes) {
        // To ask the reference itself whether it is there has it built in memory.
        let has_block = parts.head_bytes as usize == USUAL_HEAD_BYTES;
        let referred = if has_block { Referred::FIRST } else { Referred::NOTHING };
        return needed.are_met_by(referred).then_some(parts);
    }
    if let Some((parts, _)) = one_image(head, total_bytes, version) {
        return needed.are_met_by(Referred::FIRST).then_some(parts);
    }
    // Field by field: whole, it would lie in memory, for the usual forms too.
    let Parts { main_data_bytes, block_data_bytes, fpi_bytes, fpi_count, head_bytes } =
        walk_any_needed(head, total_bytes, version, needed)?;
    Some(Parts { main_data_bytes, block_data_bytes, fpi_bytes, fpi_count, head_bytes })
}

/// The same of a record of any form.
#[inline(never)]
fn walk_any_needed(
    head: &[u8],
    total_bytes: u32,
    version: &Version,
    needed: NeededBlocks,
) -> Option<Parts> {
    let mut referred = Referred::NOTHING;
    let note = |block: &BlockRef| referred = referred.and(block);
    let parts = walk_any(head, total_bytes, version, note).ok()?;
    needed.are_met_by(referred).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::RelFileLocator;
    use super::*;

    fn block(id: u8, fork: u8) -> BlockRef {
        let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode: 16_384 };
        BlockRef {
            id,
            fork,
            will_init: false,
            relation,
            block: 7,
            data_bytes: 0,
            payload_at: 0,
            image: None,
        }
    }

    fn fault(ids: &str, forks: &str, blocks: &[BlockRef]) -> Option<ReferenceFault> {
        let needed = NeededBlocks::parse(ids, forks).expect("a rule");
        let fault = needed.fault(blocks.iter().copied());
        let is_met = needed.are_met_by(Referred::to(blocks.iter().copied()));
        assert_eq!(is_met, fault.is_none(), "{ids} {forks} {blocks:?}");
        fault
    }

    #[test]
    fn ids_that_redo_reads_have_to_be_there() {
        assert_eq!(fault("0", "", &[]), Some(ReferenceFault::Missing(0)));
        assert_eq!(fault("0", "", &[block(5, 0)]), Some(ReferenceFault::Missing(0)));
        assert_eq!(fault("0,2", "", &[block(0, 0)]), Some(ReferenceFault::Missing(2)));
        assert_eq!(fault("0,2", "", &[block(0, 0), block(2, 0), block(32, 0)]), None);
        assert_eq!(fault("-", "", &[]), None);
        assert_eq!(fault("", "", &[block(1, 2)]), None);
    }

    #[test]
    fn blocks_that_redo_reads_lie_in_the_forks_that_it_expects() {
        use ReferenceFault::{Fork, Missing};
        assert_eq!(fault("0", "", &[block(0, 2)]), Some(Fork(0, 2)));
        // Some minor releases name a page of the visibility map beside the table's.
        assert_eq!(fault("0", "", &[block(0, 0), block(1, 2), block(9, 1)]), None);
        assert_eq!(fault("0,1", "map0", &[block(0, 2), block(1, 0)]), None);
        assert_eq!(fault("0,1", "map0", &[block(0, 0), block(1, 0)]), Some(Fork(0, 0)));
        assert_eq!(fault("0,1", "map0", &[block(0, 2), block(1, 2)]), Some(Fork(1, 2)));
        assert_eq!(fault("0,1", "map0", &[block(0, 2)]), Some(Missing(1)));
        assert_eq!(fault("0,1", "init", &[block(0, 3), block(1, 0)]), None);
        assert_eq!(fault("0,1", "init", &[block(0, 3)]), Some(Missing(1)));
        assert_eq!(fault("0", "init", &[block(0, 1)]), Some(Fork(0, 1)));
        assert_eq!(fault("-", "", &[block(0, 1), block(1, 2), block(2, 3)]), None);
    }

    #[test]
    fn a_reference_names_a_relation_and_a_block() {
        let no_block = BlockRef { block: NO_BLOCK, ..block(0, 0) };
        assert_eq!(fault("0", "", &[no_block]), Some(ReferenceFault::Block(0)));
        let mut no_relation = block(1, 0);
        no_relation.relation.relfilenode = 0;
        let blocks = [block(0, 0), no_relation];
        assert_eq!(fault("-", "", &blocks), Some(ReferenceFault::Relation(1)));
    }

    #[test]
    fn the_usual_forms_are_those_of_one_block_or_none() {
        assert_eq!(Referred::FIRST, Referred::to([block(0, 0)].into_iter()));
        assert!(NeededBlocks::default().are_met_by(Referred::NOTHING));
        assert!(!NeededBlocks::NEVER.are_met_by(Referred::FIRST));
    }
}
