//! Which transaction a subtransaction belongs to, as far as the data directory knows it
//! (`pg_subtrans`; `subtrans.c`): four bytes a transaction, the parent's xid or 0.

use super::slru::Slru;
use super::warning;
use crate::input::control;
use crate::wal::catalog::fate::FIRST_NORMAL_XID;
use std::path::Path;

const PARENT_BYTES: u32 = 4;
/// More subtransactions in each other than anyone has; garbage may go round in a circle.
const LEVELS_MAX: usize = 1 << 16;
/// `%04X`.
const NAME_DIGITS: usize = 4;

/// The subtransactions of a data directory.
pub struct Subtransactions {
    slru: Slru,
    /// The cluster that they are of.
    pub system_identifier: u64,
}

impl Subtransactions {
    /// Those of a data directory. `None` where it is none: `warnings` says why.
    pub fn of(directory: &Path, warnings: &mut Vec<String>) -> Option<Subtransactions> {
        let control = control::read(directory)
            .map_err(|error| warnings.push(warning(&control::path(directory), error)))
            .ok()?;
        let path = directory.join("pg_subtrans");
        let slru = Slru::new(path, control.page_bytes, control.slru_pages, NAME_DIGITS);
        Some(Subtransactions { slru, system_identifier: control.system_identifier })
    }

    /// The top-level transaction of which `xid` is a part.
    pub fn top(&mut self, xid: u32) -> Option<u32> {
        let parent = self.parent(xid)?;
        let chain = std::iter::successors(Some(parent), |xid| self.parent(*xid));
        Some(chain.take(LEVELS_MAX).last().unwrap_or(parent))
    }

    /// The transaction that `xid` is a direct part of. A parent has its xid before its children:
    /// anything else is what was left of other pages.
    fn parent(&mut self, xid: u32) -> Option<u32> {
        let page_xids = self.slru.page_bytes() / PARENT_BYTES;
        let (page, place) = (xid.checked_div(page_xids)?, xid.checked_rem(page_xids)?);
        let bytes = self.slru.bytes(page.into(), (place * PARENT_BYTES) as usize, 4)?;
        let parent = u32::from_le_bytes(bytes.try_into().ok()?);
        let is_before = parent.wrapping_sub(xid).cast_signed() < 0;
        (parent >= FIRST_NORMAL_XID && is_before).then_some(parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_before_their_children() {
        let root = tempfile::tempdir().expect("a directory");
        let parents = [0_u32, 0, 0, 0, 3, 9, 4, 2];
        let bytes: Vec<u8> = parents.into_iter().flat_map(u32::to_le_bytes).collect();
        std::fs::write(root.path().join("0000"), bytes).expect("a file");
        let slru = Slru::new(root.path().to_owned(), 16, 32, NAME_DIGITS);
        let mut known = Subtransactions { slru, system_identifier: 1 };
        let found: Vec<Option<u32>> = (3..9).map(|xid| known.top(xid)).collect();
        assert_eq!(found, [None, Some(3), None, Some(3), None, None]);
    }
}
