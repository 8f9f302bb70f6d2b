//! Prepared transactions: the state that a `PREPARE` record carries (`TwoPhaseFileHeader` in
//! `src/backend/access/transam/twophase.c`, `ParsePrepareRecord` in `xactdesc.c`).
//!
//! Of the state only what ties transactions together is read: the xid, its subtransactions and
//! the time. Files to drop and invalidations, which follow, stand again in the record that ends the
//! transaction.

use super::Time;
use crate::cursor::{Cursor, List, at};
use crate::lsn::MAXALIGN;
use crate::version::{Release, Version};

/// Where the xid lies, in every release.
const XID: usize = 8;
/// Where the time lies, in every release.
const TIME: usize = 16;
/// Where the count of the subtransactions lies, in every release.
const SUBXIDS: usize = 28;

/// A prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// The transaction.
    pub xid: u32,
    /// Its subtransactions.
    pub subxids: List<'a, u32>,
}

/// What of the header moved between releases.
struct Layout {
    /// Where the length of the name lies; the name follows the header. `None`: the name is in the
    /// header itself.
    gid_length: Option<usize>,
    header_bytes: usize,
}

fn layout(version: &Version) -> Layout {
    if version.since(Release::V15) {
        Layout { gid_length: Some(54), header_bytes: 72 }
    } else if version.since(Release::V11) {
        Layout { gid_length: Some(46), header_bytes: 64 }
    } else if version.since(Release::V9_6) {
        Layout { gid_length: Some(46), header_bytes: 48 }
    } else {
        Layout { gid_length: None, header_bytes: 248 }
    }
}

/// When it was prepared, from the first bytes of the main data; `None` if they are too few.
pub(super) fn time(main_data: &[u8]) -> Option<Time> {
    at(main_data, TIME).map(Time::from_timestamptz)
}

/// The transaction, from the first bytes of the main data; `None` if they are too few.
pub fn xid(main_data: &[u8]) -> Option<u32> {
    at(main_data, XID)
}

impl<'a> Prepare<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8], version: &Version) -> Option<Prepare<'a>> {
        let layout = layout(version);
        let mut cursor = Cursor::new(main_data);
        let header = cursor.take(layout.header_bytes)?;
        if let Some(offset) = layout.gid_length {
            let bytes: u16 = at(header, offset)?;
            // Every part of the state is padded.
            cursor.take(usize::from(bytes).next_multiple_of(MAXALIGN))?;
        }
        Some(Prepare { xid: at(header, XID)?, subxids: cursor.list(at(header, SUBXIDS)?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    /// The state of transaction 700 named "gid", with a subtransaction.
    fn state(version: &Version) -> Vec<u8> {
        let layout = layout(version);
        let mut data = vec![0u8; layout.header_bytes];
        for (at, value) in [(XID, 700u32), (SUBXIDS, 1)] {
            data[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        if let Some(at) = layout.gid_length {
            data[at] = 4;
            data.extend(b"gid\0\0\0\0\0");
        }
        data.extend([189, 2, 0, 0]);
        data
    }

    #[test]
    fn the_state_is_read_in_each_layout() {
        for version in [&VERSIONS[0], &VERSIONS[1], &VERSIONS[3], &VERSIONS[7]] {
            let data = state(version);
            let prepare = Prepare::parse(&data, version).expect(version.name);
            assert_eq!(prepare.xid, 700);
            assert_eq!(prepare.subxids.iter().collect::<Vec<_>>(), [701]);
            for length in 0..data.len() {
                assert_eq!(Prepare::parse(&data[..length], version), None);
            }
        }
    }
}
