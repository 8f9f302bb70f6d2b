//! Prepared transactions: the state that a `PREPARE` record carries (`TwoPhaseFileHeader` in
//! `src/backend/access/transam/twophase.c`, `ParsePrepareRecord` in `xactdesc.c`).

use super::Time;
use super::xact::Origin;
use crate::wal::block::RelFileLocator;
use crate::wal::cursor::{Cursor, Field, List, at};
use crate::wal::lsn::Lsn;
use crate::wal::version::{Release, Version};

/// Every part of the state is padded to that.
const ALIGNMENT: usize = 8;
/// Longest name, with its zero byte; 9.5 keeps all of it.
const GID_BYTES: usize = 200;
/// Where the time lies, in every release.
const TIME: usize = 16;
/// Where the count of the subtransactions lies; those of the files follow it.
const COUNTS: usize = 28;

/// A prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// The transaction.
    pub xid: u32,
    /// Its database.
    pub database: u32,
    /// When it was prepared.
    pub time: Time,
    /// The role that did it.
    pub owner: u32,
    /// Its name.
    pub gid: &'a [u8],
    /// Its subtransactions.
    pub subxids: List<'a, u32>,
    /// Relation files that go away if it commits.
    pub dropped_at_commit: List<'a, RelFileLocator>,
    /// Relation files that go away if it aborts.
    pub dropped_at_abort: List<'a, RelFileLocator>,
    /// Where it came from (11 and later).
    pub origin: Option<Origin>,
}

/// Where the fields lie that moved.
struct Layout {
    /// The name in the header itself, or its length and the name after the header.
    gid: Result<usize, usize>,
    origin: Option<usize>,
    header_bytes: usize,
}

fn layout(version: &Version) -> Layout {
    if version.since(Release::V15) {
        Layout { gid: Err(54), origin: Some(56), header_bytes: 72 }
    } else if version.since(Release::V11) {
        Layout { gid: Err(46), origin: Some(48), header_bytes: 64 }
    } else if version.since(Release::V9_6) {
        Layout { gid: Err(46), origin: None, header_bytes: 48 }
    } else {
        Layout { gid: Ok(45), origin: None, header_bytes: 248 }
    }
}

/// When it was prepared, from the first bytes of the main data; `None` if they are too few.
pub fn time(main_data: &[u8]) -> Option<Time> {
    at(main_data, TIME).map(Time::from_timestamptz)
}

impl<'a> Prepare<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8], version: &Version) -> Option<Prepare<'a>> {
        let layout = layout(version);
        let mut cursor = Cursor::new(main_data);
        let header = cursor.take(layout.header_bytes)?;
        let gid = match layout.gid {
            Ok(offset) => header.get(offset..offset + GID_BYTES)?,
            Err(length) => padded(&mut cursor, usize::from(at::<u16>(header, length)?))?,
        };
        let count = |index: usize| at::<u32>(header, COUNTS + 4 * index);
        Some(Prepare {
            xid: at(header, 8)?,
            database: at(header, 12)?,
            time: time(header)?,
            owner: at(header, 24)?,
            gid: Cursor::new(gid).text()?,
            subxids: list(&mut cursor, count(0)?)?,
            dropped_at_commit: list(&mut cursor, count(1)?)?,
            dropped_at_abort: list(&mut cursor, count(2)?)?,
            origin: layout.origin.and_then(|offset| origin(header, offset)),
        })
    }
}

fn list<'a, T: Field>(cursor: &mut Cursor<'a>, count: u32) -> Option<List<'a, T>> {
    let bytes = usize::try_from(count).ok()?.checked_mul(T::BYTES)?;
    padded(cursor, bytes).map(List::over)
}

fn padded<'a>(cursor: &mut Cursor<'a>, bytes: usize) -> Option<&'a [u8]> {
    let taken = cursor.take(bytes)?;
    cursor.take(bytes.next_multiple_of(ALIGNMENT) - bytes)?;
    Some(taken)
}

/// Zero stands for "from nowhere else".
fn origin(header: &[u8], offset: usize) -> Option<Origin> {
    let (lsn, time) = at::<(u64, i64)>(header, offset)?;
    (lsn != 0).then(|| Origin { lsn: Lsn(lsn), time: Time::from_timestamptz(time) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::version::VERSIONS;

    /// The state of transaction 700 named "gid", with a subtransaction and two files.
    fn state(version: &Version) -> Vec<u8> {
        let layout = layout(version);
        let mut data = vec![0u8; layout.header_bytes];
        for (at, value) in [(8, 700u32), (12, 5), (24, 10), (28, 1), (32, 1), (36, 1)] {
            data[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        match layout.gid {
            Ok(at) => data[at..at + 3].copy_from_slice(b"gid"),
            Err(at) => {
                data[at] = 4;
                data.extend(b"gid\0\0\0\0\0");
            }
        }
        data.extend([189, 2, 0, 0, 0, 0, 0, 0]);
        for relfilenode in [1u32, 2] {
            data.extend([1663u32, 5, relfilenode, 0].iter().flat_map(|word| word.to_le_bytes()));
        }
        data
    }

    #[test]
    fn the_state_is_read_in_each_layout() {
        for version in [&VERSIONS[0], &VERSIONS[1], &VERSIONS[3], &VERSIONS[7]] {
            let data = state(version);
            let prepare = Prepare::parse(&data, version).expect(version.name);
            assert_eq!((prepare.xid, prepare.database, prepare.owner), (700, 5, 10));
            assert_eq!((prepare.gid, prepare.origin), (&b"gid"[..], None));
            assert_eq!(prepare.subxids.iter().collect::<Vec<_>>(), [701]);
            let nodes = |list: List<'_, RelFileLocator>| {
                list.iter().map(|file| file.relfilenode).collect::<Vec<_>>()
            };
            assert_eq!(nodes(prepare.dropped_at_commit), [1]);
            assert_eq!(nodes(prepare.dropped_at_abort), [2]);
            for length in 0..data.len() {
                assert_eq!(Prepare::parse(&data[..length], version), None);
            }
        }
    }
}
