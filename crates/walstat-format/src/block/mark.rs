//! To tell fast whether two records refer to the same block.

use super::{FORK_MASK, ID_DATA_SHORT, MAX_BLOCK_ID, Parts, RelFileLocator, USUAL_HEAD_BYTES};
use crate::record_header::RECORD_HEADER_BYTES;
use serde::{Deserialize, Serialize};

/// What a record of the most usual form says of its one block, as it stands: to tell fast whether
/// two records refer to the same one. Numbers rather than bytes, which a compiler moves one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "MarkBytes", into = "MarkBytes")]
pub struct BlockMark {
    id_and_flags: u16,
    /// Tablespace and database.
    outer: u64,
    /// Relation's file and block.
    inner: u64,
}

/// A mark as its record has it.
#[derive(Serialize, Deserialize)]
struct MarkBytes {
    id_and_flags: [u8; 2],
    relation_and_block: [u8; 16],
}

impl From<MarkBytes> for BlockMark {
    #[inline(always)]
    fn from(bytes: MarkBytes) -> BlockMark {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes.relation_and_block;
        BlockMark {
            id_and_flags: u16::from_le_bytes(bytes.id_and_flags),
            outer: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            inner: u64::from_le_bytes([i, j, k, l, m, n, o, p]),
        }
    }
}

impl From<BlockMark> for MarkBytes {
    fn from(mark: BlockMark) -> MarkBytes {
        let both = u128::from(mark.inner) << u64::BITS | u128::from(mark.outer);
        MarkBytes {
            id_and_flags: mark.id_and_flags.to_le_bytes(),
            relation_and_block: both.to_le_bytes(),
        }
    }
}

impl BlockMark {
    /// The mark of a record that was walked over before; `None` if it is not of that form: one
    /// block without an image, and short main data.
    #[inline(always)]
    pub fn of(head: &[u8], parts: &Parts) -> Option<BlockMark> {
        let start: &[u8; USUAL_HEAD_BYTES] = head.first_chunk()?;
        let (_, body) = start.split_at(RECORD_HEADER_BYTES);
        let (&[id, flags, _, _], rest) = body.split_first_chunk()?;
        let (relation_and_block, rest) = rest.split_first_chunk()?;
        let is_usual = parts.head_bytes as usize == start.len()
            && parts.fpi_count == 0
            && id <= MAX_BLOCK_ID
            && rest.first() == Some(&ID_DATA_SHORT);
        let (id_and_flags, relation_and_block) = ([id, flags], *relation_and_block);
        is_usual.then(|| BlockMark::from(MarkBytes { id_and_flags, relation_and_block }))
    }

    /// Its relation.
    #[inline(always)]
    pub fn relation(&self) -> RelFileLocator {
        RelFileLocator {
            tablespace: self.outer as u32,
            database: (self.outer >> u32::BITS) as u32,
            relfilenode: self.inner as u32,
        }
    }

    /// Its fork.
    #[inline(always)]
    pub fn fork(&self) -> u8 {
        self.id_and_flags.to_le_bytes()[1] & FORK_MASK
    }

    /// Its block number.
    #[inline(always)]
    pub fn block(&self) -> u32 {
        (self.inner >> u32::BITS) as u32
    }
}
