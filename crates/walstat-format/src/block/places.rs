//! The places that a record's blocks have, and whether there is an image: less work than all that its
//! block references say.

use super::{FORK_MASK, HAS_HOLE, HAS_IMAGE, MAX_BLOCK_ID, RelFileLocator, SAME_REL};
use crate::record_header::RECORD_HEADER_BYTES;
use crate::version::Version;

/// A block reference as far as it names a place: relation and block number as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPlace {
    /// Tablespace, database, file number and block number.
    pub bytes: [u8; 16],
    /// Fork.
    pub fork: u8,
}

impl StoredPlace {
    /// The relation.
    #[inline(always)]
    pub fn relation(&self) -> RelFileLocator {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.bytes;
        RelFileLocator::parse(&[a, b, c, d, e, f, g, h, i, j, k, l])
    }

    /// The block number.
    #[inline(always)]
    pub fn block(&self) -> u32 {
        let [.., a, b, c, d] = self.bytes;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Calls `visit` with every place in a record that was walked over before, and whether it has an
/// image.
#[inline(always)]
pub fn places(
    head: &[u8],
    head_bytes: u32,
    version: &Version,
    mut visit: impl FnMut(&StoredPlace, bool),
) {
    let mut rest = head.get(RECORD_HEADER_BYTES..head_bytes as usize).unwrap_or_default();
    let mut place = StoredPlace { bytes: [0; 16], fork: 0 };
    while let Some((&[id, flags, _, _], after)) = rest.split_first_chunk()
        && id <= MAX_BLOCK_ID
    {
        rest = after;
        let has_image = flags & HAS_IMAGE != 0;
        if has_image {
            let Some((&[_, _, _, _, info], after)) = rest.split_first_chunk() else { return };
            let has_hole_length = info & HAS_HOLE != 0 && version.image_flags.is_compressed(info);
            let length = if has_hole_length { 2 } else { 0 };
            let Some(after) = after.get(length..) else { return };
            rest = after;
        }
        if flags & SAME_REL == 0 {
            let Some((relation, after)) = rest.split_first_chunk::<12>() else { return };
            rest = after;
            place.bytes[..12].copy_from_slice(relation);
        }
        let Some((block, after)) = rest.split_first_chunk::<4>() else { return };
        rest = after;
        place.bytes[12..].copy_from_slice(block);
        place.fork = flags & FORK_MASK;
        visit(&place, has_image);
    }
}
