//! Multixacts (`src/include/access/multixact.h`): several transactions that stand in one xmax.

use crate::cursor::{Cursor, List};
use crate::version::{Release, Version};

/// A multixact is made.
pub const CREATE_ID: u8 = 0x20;
/// Members from this status on update or delete the row; below they only lock it.
const FIRST_UPDATE_STATUS: u32 = 4;

/// Whether a member of this status (`MultiXactStatus`) updates or deletes the row.
pub fn is_update(status: u32) -> bool {
    status >= FIRST_UPDATE_STATUS
}

/// A multixact is made (`xl_multixact_create`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Create<'a> {
    /// Its id.
    pub multixact: u32,
    /// Its members: xid and status.
    pub members: List<'a, (u32, u32)>,
}

impl<'a> Create<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8], version: &Version) -> Option<Create<'a>> {
        let mut cursor = Cursor::new(main_data);
        let multixact = cursor.field()?;
        // The offset of the members: 4 bytes, 8 aligned ones from 19 on.
        cursor.take(if version.since(Release::V19) { 12 } else { 4 })?;
        Some(Create { multixact, members: cursor.counted_list()? })
    }

    /// The member that updates or deletes the row, if one does; there is never more than one.
    pub fn updater(&self) -> Option<u32> {
        self.members.iter().find(|(_, status)| is_update(*status)).map(|(xid, _)| xid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn at_most_one_member_updates() {
        let old = words(&[7, 1, 2, 700, 0, 701, 4]);
        let create = Create::parse(&old, &VERSIONS[10]).expect("two members");
        assert_eq!((create.multixact, create.updater()), (7, Some(701)));
        assert_eq!(Create::parse(&old[..27], &VERSIONS[10]), None);
        let new = words(&[7, 0xEEEE, 1, 0, 1, 700, 3]);
        let create = Create::parse(&new, &VERSIONS[11]).expect("one member");
        assert_eq!((create.members.len(), create.updater()), (1, None));
    }
}
