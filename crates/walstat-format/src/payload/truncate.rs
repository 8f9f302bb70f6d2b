//! A relation is cut off (`xl_smgr_truncate` in `src/include/catalog/storage_xlog.h`).

use crate::cursor::Cursor;
use crate::locator::RelFileLocator;
use crate::map_page::{blocks_per_free_space_page, blocks_per_visibility_page};
use crate::version::Version;

/// Opcode of the record (`XLOG_SMGR_TRUNCATE`).
pub const TRUNCATE: u8 = 0x20;

/// Which forks are cut: `SMGR_TRUNCATE_VM`, `SMGR_TRUNCATE_FSM`.
const VISIBILITY_MAP: u32 = 2;
const FREE_SPACE_MAP: u32 = 4;

/// The record's main data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncate {
    /// The relation.
    pub relation: RelFileLocator,
    /// Blocks of it that are left.
    pub blocks: u32,
    /// `SMGR_TRUNCATE_*`.
    flags: u32,
}

impl Truncate {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<Truncate> {
        let mut from = Cursor::new(main_data);
        let (blocks, relation) = (from.field()?, from.field()?);
        // 9.5 has no flags: all forks are cut.
        let flags = from.field().unwrap_or(u32::MAX);
        Some(Truncate { relation, blocks, flags })
    }

    /// How many pages of the free space map remain if it is truncated, upper levels included. A page that
    /// still covers remaining blocks is kept (`FreeSpaceMapPrepareTruncateRel`).
    pub fn free_space_pages(&self, page_bytes: u32) -> Option<u32> {
        let each = blocks_per_free_space_page(page_bytes);
        let (page, rest) = (self.blocks / each, self.blocks % each);
        let place = page + page / each + 2;
        (self.flags & FREE_SPACE_MAP != 0).then_some(place + u32::from(rest > 0))
    }

    /// The same of the visibility map (`visibilitymap_prepare_truncate`).
    pub fn visibility_pages(&self, page_bytes: u32, version: &Version) -> Option<u32> {
        let each = blocks_per_visibility_page(page_bytes, version);
        (self.flags & VISIBILITY_MAP != 0).then_some(self.blocks.div_ceil(each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn truncate(blocks: u32, flags: &[u8]) -> Truncate {
        let relation = [1u32, 2, 3].map(u32::to_le_bytes).concat();
        let data = [&blocks.to_le_bytes()[..], &relation, flags].concat();
        Truncate::parse(&data).expect("whole")
    }

    #[test]
    fn pages_of_the_maps_are_cut_with_the_table() {
        let all = [7, 0, 0, 0];
        let version = VERSIONS.last().expect("a release");
        let left = |blocks| {
            let cut = truncate(blocks, &all);
            (cut.free_space_pages(8192), cut.visibility_pages(8192, version))
        };
        assert_eq!(left(0), (Some(2), Some(0)));
        assert_eq!(left(1), (Some(3), Some(1)));
        assert_eq!(left(4069), (Some(3), Some(1)));
        assert_eq!(left(32_673), (Some(11), Some(2)));
        assert_eq!(truncate(0, &[1, 0, 0, 0]).free_space_pages(8192), None);
        assert_eq!(truncate(0, &[]).visibility_pages(8192, version), Some(0));
        assert_eq!(Truncate::parse(&[0; 15]), None);
    }
}
