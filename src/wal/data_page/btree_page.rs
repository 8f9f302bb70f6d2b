//! What a B-tree's page says of its place in the tree: the access method's own part at its end
//! (`BTPageOpaqueData` in `src/include/access/nbtree.h`), the same in all releases from 9.5 on.

use crate::wal::cursor::at;

/// Bytes of that part.
pub const PLACE_BYTES: usize = 16;
/// `BTP_LEAF`, in the flags.
const LEAF: u16 = 0x0001;

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
        Some(PagePlace { right: at(last, start + 4)?, flags: at(last, start + 12)? })
    }

    /// Whether it is the leaf at the right end: that of the highest keys.
    pub fn is_rightmost_leaf(&self) -> bool {
        self.right == 0 && self.flags & LEAF != 0
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
