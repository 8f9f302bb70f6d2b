//! What a B-tree's page says of its place in the tree: the access method's own part at its end
//! (`BTPageOpaqueData` in `src/include/access/nbtree.h`), the same in all releases from 9.5 on.

use crate::cursor::at;

/// Bytes of that part.
pub const PLACE_BYTES: usize = 16;

/// Where the fields of that part lie in it.
pub mod field {
    /// `btpo_prev`: the page to the left.
    pub const PREV: usize = 0;
    /// `btpo_next`: the page to the right.
    pub const NEXT: usize = 4;
    /// `btpo_level`: 0 for leaves.
    pub const LEVEL: usize = 8;
    /// `btpo_flags`.
    pub const FLAGS: usize = 12;
}

/// A leaf; in the flags, as all below.
pub const BTP_LEAF: u16 = 0x0001;
/// The root.
pub const BTP_ROOT: u16 = 0x0002;
/// The page has left the tree.
pub const BTP_DELETED: u16 = 0x0004;
/// The page is empty, and about to leave the tree.
pub const BTP_HALF_DEAD: u16 = 0x0010;
/// Some entries are known to be dead.
pub const BTP_HAS_GARBAGE: u16 = 0x0040;
/// The parent has no entry for the right half of a split yet.
pub const BTP_INCOMPLETE_SPLIT: u16 = 0x0080;

/// A page's place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePlace {
    /// The page to its right, 0 if there is none.
    pub right: u32,
    /// `btpo_flags`.
    pub flags: u16,
}

impl PagePlace {
    /// Reads the last bytes of a page; `None` if they are too few.
    pub fn parse(last: &[u8]) -> Option<PagePlace> {
        let start = last.len().checked_sub(PLACE_BYTES)?;
        Some(PagePlace {
            right: at(last, start + field::NEXT)?,
            flags: at(last, start + field::FLAGS)?,
        })
    }

    /// Whether it is the leaf at the right end: that of the highest keys.
    pub fn is_rightmost_leaf(&self) -> bool {
        self.right == 0 && self.flags & BTP_LEAF != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_leaf_has_no_right_sibling() {
        let mut page = [0u8; 40];
        page[36] = 1;
        let place = PagePlace::parse(&page).expect("long enough");
        assert!(place.is_rightmost_leaf());
        page[28] = 9;
        assert_eq!(PagePlace::parse(&page), Some(PagePlace { right: 9, flags: 1 }));
        assert!(!PagePlace { right: 9, flags: 1 }.is_rightmost_leaf());
        assert!(!PagePlace { right: 0, flags: 2 }.is_rightmost_leaf());
        assert_eq!(PagePlace::parse(&page[..15]), None);
    }
}
