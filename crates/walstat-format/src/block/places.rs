//! The places that a record's blocks have, and whether there is an image: less work than all that its
//! block references say.

use super::{
    FORK_MASK, HAS_HOLE, HAS_IMAGE, ID_DATA_LONG, ID_ORIGIN, ID_TOPLEVEL_XID, MAX_BLOCK_ID,
    ORIGIN_BYTES, RelFileLocator, SAME_REL, TOPLEVEL_XID_BYTES,
};
use crate::record_header::RECORD_HEADER_BYTES;
use crate::version::Version;

/// A block reference as far as it names a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPlace {
    /// The relation.
    pub relation: RelFileLocator,
    /// The block number.
    pub block: u32,
    /// Fork.
    pub fork: u8,
    /// Id in the record.
    pub id: u8,
    /// Whether there is an image.
    pub has_image: bool,
}

/// The places in a record that was walked over before.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    rest: &'a [u8],
    relation: RelFileLocator,
    version: &'static Version,
    /// Whether the record names its top-level transaction, as far as it was looked at.
    pub names_toplevel: bool,
}

impl<'a> Places<'a> {
    /// Those of a record of which `head` holds at least the `head_bytes` before the payload.
    #[inline(always)]
    pub fn of(head: &'a [u8], head_bytes: u32, version: &'static Version) -> Places<'a> {
        let rest = head.get(RECORD_HEADER_BYTES..head_bytes as usize).unwrap_or_default();
        Places { rest, relation: RelFileLocator::default(), version, names_toplevel: false }
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(head)
    }
}

/// How long is what stands between blocks and main data.
#[cold]
fn label_bytes(id: u8) -> Option<usize> {
    match id {
        ID_ORIGIN => Some(ORIGIN_BYTES),
        ID_TOPLEVEL_XID => Some(TOPLEVEL_XID_BYTES),
        _ => None,
    }
}

impl Iterator for Places<'_> {
    type Item = StoredPlace;

    #[inline(always)]
    fn next(&mut self) -> Option<StoredPlace> {
        let mut id = *self.rest.first()?;
        while id > MAX_BLOCK_ID {
            if id >= ID_DATA_LONG {
                return None;
            }
            self.names_toplevel |= id == ID_TOPLEVEL_XID;
            self.rest = self.rest.get(label_bytes(id)?..)?;
            id = *self.rest.first()?;
        }
        let &[_, flags, _, _] = self.take()?;
        let has_image = flags & HAS_IMAGE != 0;
        if has_image {
            let &[_, _, _, _, info] = self.take()?;
            if info & HAS_HOLE != 0 && self.version.image_flags.is_compressed(info) {
                self.take::<2>()?;
            }
        }
        if flags & SAME_REL == 0 {
            self.relation = RelFileLocator::parse(self.take()?);
        }
        let block = u32::from_le_bytes(*self.take()?);
        let (relation, fork) = (self.relation, flags & FORK_MASK);
        Some(StoredPlace { relation, block, fork, id, has_image })
    }
}
