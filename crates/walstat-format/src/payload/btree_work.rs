//! What the main data of B-tree records says of block data that an image replaced: what
//! [`super::btree`] reads, the other way round.

use super::btree::{Removal, Split, opcode};
use super::rmgr_info;
use crate::cursor::at;
use crate::version::{Release, Version};

impl Split {
    /// Whether the left page's upper bound is logged: always from 12 on, in 11 where the type says
    /// so, and on inner levels before; elsewhere it is the right page's first entry.
    pub fn logs_bound(&self, info: u8, version: &Version) -> bool {
        let says_so =
            [opcode::SPLIT_L_OR_INSERT_POST, opcode::SPLIT_R_OR_DEDUP].contains(&rmgr_info(info));
        self.level > 0 || version.since(Release::V12) || says_so && version.since(Release::V11)
    }
}

impl Removal<'_> {
    /// Of a `VACUUM`: entries deleted, and posting lists that lose rows; `None` where the main
    /// data does not say (up to 12).
    pub fn vacuum_counts(main_data: &[u8], version: &Version) -> Option<(u16, u16)> {
        version.since(Release::V13).then(|| at(main_data, 0))?
    }

    /// The same of a `DELETE`. Up to 12 the entries stand in the main data, and no block data is
    /// missing.
    pub fn delete_counts(main_data: &[u8], version: &Version) -> Option<(u16, u16)> {
        if version.since(Release::V14) {
            return at(main_data, 4);
        }
        if version.since(Release::V13) {
            return Some((u16::try_from(at::<u32>(main_data, 4)?).ok()?, 0));
        }
        Some((0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    #[test]
    fn counts_are_where_the_release_has_them() {
        let main = [7, 0, 0, 0, 3, 0, 1, 0];
        let delete = |index: usize| Removal::delete_counts(&main, &VERSIONS[index]);
        assert_eq!((delete(6), delete(3)), (Some((3, 1)), Some((0, 0))));
        assert_eq!(Removal::delete_counts(&[7, 0, 0, 0, 3, 0, 0, 0], &VERSIONS[5]), Some((3, 0)));
        assert_eq!(Removal::vacuum_counts(&main[4..], &VERSIONS[5]), Some((3, 1)));
        assert_eq!(Removal::vacuum_counts(&main[4..], &VERSIONS[4]), None);
    }

    #[test]
    fn the_upper_bound_is_logged_since_12() {
        let split = |level, info, index: usize| {
            Split { level, first_right: 1, new_item: 1, posting: 0 }
                .logs_bound(info, &VERSIONS[index])
        };
        assert!(split(0, 0x30, 4) && split(1, 0x30, 0) && split(0, 0x50, 3));
        assert!(!split(0, 0x30, 3) && !split(0, 0x50, 2));
    }
}
