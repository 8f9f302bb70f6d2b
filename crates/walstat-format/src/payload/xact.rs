//! Transaction records: how a transaction ended, was prepared, or which subtransactions belong to
//! it (`xl_xact_*` in `src/include/access/xact.h`, `ParseCommitRecord` in `xactdesc.c`).
//!
//! Does not decide what became of a transaction: that takes all of its records.

use super::Time;
use super::invalidation::Invalidation;
use super::prepare;
use crate::cursor::{Cursor, List};
use crate::locator::RelFileLocator;
use crate::version::{Release, Version};

/// Bits of `xl_info` that hold the opcode.
pub const OPCODE_MASK: u8 = 0x70;
/// The bit of `xl_info` that says that an `xinfo` word follows the time.
pub const HAS_INFO: u8 = 0x80;
/// A transaction commits.
pub const COMMIT: u8 = 0x00;
/// A transaction is prepared.
pub const PREPARE: u8 = 0x10;
/// A transaction aborts.
pub const ABORT: u8 = 0x20;
/// A prepared transaction commits.
pub const COMMIT_PREPARED: u8 = 0x30;
/// A prepared transaction aborts.
pub const ABORT_PREPARED: u8 = 0x40;
/// Subtransactions are assigned to their top-level transaction.
pub const ASSIGNMENT: u8 = 0x50;

/// What caches have to forget, command by command, for logical decoding (14 and later).
pub const INVALIDATIONS: u8 = 0x60;
/// The bit of `xinfo` that says that a database follows.
pub const DBINFO: u32 = 0x001;
/// Bytes of `xinfo` (`xl_xact_xinfo`).
pub const XINFO_BYTES: usize = 4;
/// Bytes of a database and its tablespace (`xl_xact_dbinfo`).
pub const DBINFO_BYTES: usize = 8;

/// Bits of `xinfo`, which say what follows.
mod xinfo {
    pub(super) use super::DBINFO;
    pub(super) const SUBXACTS: u32 = 0x002;
    pub(super) const RELFILENODES: u32 = 0x004;
    pub(super) const INVALS: u32 = 0x008;
    pub(super) const TWOPHASE: u32 = 0x010;
    pub(super) const ORIGIN: u32 = 0x020;
    pub(super) const GID: u32 = 0x080;
    pub(super) const DROPPED_STATS: u32 = 0x100;
}

/// Where a replicated transaction came from: an LSN and a time.
const ORIGIN_BYTES: usize = 16;

/// When a transaction ended, from the main data of a record of one of the four types that end
/// one; `None` for the other types and for main data that is too short.
pub fn end_time(info: u8, main_data: &[u8]) -> Option<Time> {
    let mut cursor = Cursor::new(main_data);
    ends(info).then(|| cursor.field().map(Time::from_timestamptz)).flatten()
}

/// The time that a transaction record states: when one ended or was prepared. `None` for the other
/// types and for main data that is too short.
pub fn stated_time(info: u8, main_data: &[u8]) -> Option<Time> {
    match info & OPCODE_MASK {
        PREPARE => prepare::time(main_data),
        _ => end_time(info, main_data),
    }
}

/// Whether a transaction commits by a record of its resource manager, prepared before or not.
#[inline(always)]
pub fn commits(info: u8) -> bool {
    matches!(info & OPCODE_MASK, COMMIT | COMMIT_PREPARED)
}

fn ends(info: u8) -> bool {
    [COMMIT, ABORT, COMMIT_PREPARED, ABORT_PREPARED].contains(&(info & OPCODE_MASK))
}

/// The subtransactions that end with a transaction: they lie at the front of the main data, of which
/// the rest need not be there. `None` for other types and for main data that is too short.
pub fn ended_subxids(info: u8, main_data: &[u8]) -> Option<List<'_, u32>> {
    let mut cursor = Cursor::new(main_data);
    let _time: i64 = cursor.field().filter(|_| ends(info))?;
    let xinfo: u32 = if info & HAS_INFO != 0 { cursor.field()? } else { 0 };
    if xinfo & xinfo::DBINFO != 0 {
        let _database: (u32, u32) = cursor.field()?;
    }
    list_if(xinfo & xinfo::SUBXACTS != 0, &mut cursor)
}

/// A record that ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End<'a> {
    /// Whether it commits.
    pub commits: bool,
    /// When.
    pub time: Time,
    /// `xinfo`, 0 if there is none.
    pub xinfo: u32,
    /// Database and its tablespace, where invalidations need them or the level is logical.
    pub database: Option<(u32, u32)>,
    /// Its subtransactions that end with it.
    pub subxids: List<'a, u32>,
    /// Relation files that go away with it.
    pub dropped: List<'a, RelFileLocator>,
    /// What caches have to forget.
    pub invalidations: List<'a, Invalidation>,
    /// The transaction that ends, where it was prepared: not the one in the record's header.
    pub prepared_xid: Option<u32>,
}

impl<'a> End<'a> {
    /// Reads the main data of a commit or abort, prepared or not; `None` for other types and for
    /// main data that is too short.
    pub fn parse(info: u8, main_data: &'a [u8], version: &Version) -> Option<End<'a>> {
        let mut cursor = Cursor::new(main_data);
        let time = Time::from_timestamptz(cursor.field().filter(|_| ends(info))?);
        let xinfo = if info & HAS_INFO != 0 { cursor.field()? } else { 0 };
        let has = |bit| xinfo & bit != 0;
        let database = if has(xinfo::DBINFO) { Some(cursor.field()?) } else { None };
        let subxids = list_if(has(xinfo::SUBXACTS), &mut cursor)?;
        let dropped = list_if(has(xinfo::RELFILENODES), &mut cursor)?;
        if has(xinfo::DROPPED_STATS) {
            pass_dropped_stats(&mut cursor, version)?;
        }
        let invalidations = list_if(has(xinfo::INVALS), &mut cursor)?;
        let prepared_xid = if has(xinfo::TWOPHASE) { Some(cursor.field()?) } else { None };
        if has(xinfo::GID) {
            cursor.text()?;
        }
        if has(xinfo::ORIGIN) {
            cursor.take(ORIGIN_BYTES)?;
        }
        let commits = commits(info);
        Some(End { commits, time, xinfo, database, subxids, dropped, invalidations, prepared_xid })
    }
}

fn list_if<'a, T: crate::cursor::Field>(
    is_there: bool,
    cursor: &mut Cursor<'a>,
) -> Option<List<'a, T>> {
    if is_there { cursor.counted_list() } else { Some(List::default()) }
}

/// 15 to 17: kind, database, object; 18 and later: an object of 8 bytes.
fn pass_dropped_stats(cursor: &mut Cursor<'_>, version: &Version) -> Option<()> {
    let words = if version.since(Release::V18) { 4 } else { 3 };
    let count: u32 = cursor.field()?;
    cursor.list::<u32>(count.checked_mul(words)?).map(|_| ())
}

/// For a record that ends the transaction in its header and has only the time as main data: `Some(true)` for
/// a commit, `Some(false)` for an abort. `None` for every other record.
#[inline(always)]
pub fn ends_alone(info: u8) -> Option<bool> {
    match info {
        COMMIT => Some(true),
        ABORT => Some(false),
        _ => None,
    }
}

/// Subtransactions and their top-level transaction, written when a transaction has 64 of them
/// that were not yet told (`xl_xact_assignment`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The top-level transaction.
    pub top: u32,
    /// The subtransactions.
    pub subxids: List<'a, u32>,
}

impl<'a> Assignment<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<Assignment<'a>> {
        let mut cursor = Cursor::new(main_data);
        Some(Assignment { top: cursor.field()?, subxids: cursor.counted_list()? })
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
    fn times_count_from_2000() {
        assert_eq!(end_time(COMMIT | 0x80, &[0; 9]), Some(Time(946_684_800_000_000)));
        assert_eq!(end_time(COMMIT, &[0; 7]), None);
        assert_eq!(end_time(0x10, &[0; 8]), None);
    }

    #[test]
    fn a_plain_commit_has_a_time_only() {
        let end = End::parse(COMMIT, &[0; 8], &VERSIONS[7]).expect("a commit");
        assert!(end.commits && end.subxids.is_empty() && end.dropped.is_empty());
        assert_eq!((end.xinfo, end.database, end.prepared_xid), (0, None, None));
        assert_eq!(End::parse(ASSIGNMENT, &[0; 8], &VERSIONS[7]), None);
    }

    /// All parts at once, in the order in which they are written.
    #[test]
    fn parts_follow_the_bits_of_xinfo() {
        for (version, stats) in [(&VERSIONS[7], 3), (&VERSIONS[10], 4)] {
            let mut data = words(&[0, 0, 0x1BF, 5, 1663, 2, 101, 102, 1, 1663, 5, 16384]);
            data.extend(words(&[1]));
            data.extend(words(&vec![9; stats]));
            data.extend(words(&[1, 0xFE, 5, 16385, 0, 700]));
            data.extend(b"gid\0");
            data.extend(words(&[0x28, 0, 1, 0]));
            let end = End::parse(ABORT_PREPARED | 0x80, &data, version).expect("all parts");
            assert!(!end.commits);
            assert_eq!(end.database, Some((5, 1663)));
            assert_eq!(end.subxids.iter().collect::<Vec<_>>(), [101, 102]);
            let dropped = RelFileLocator { tablespace: 1663, database: 5, relfilenode: 16384 };
            assert_eq!(end.dropped.iter().collect::<Vec<_>>(), [dropped]);
            let relations: Vec<_> =
                end.invalidations.iter().map(|message| message.relation()).collect();
            assert_eq!(relations, [Some((5, 16385))]);
            assert_eq!(end.prepared_xid, Some(700));
            for length in 0..data.len() {
                assert_eq!(End::parse(ABORT_PREPARED | 0x80, &data[..length], version), None);
            }
        }
    }

    #[test]
    fn an_assignment_names_the_top_level() {
        let data = words(&[700, 2, 701, 702]);
        let assignment = Assignment::parse(&data).expect("two");
        assert_eq!((assignment.top, assignment.subxids.len()), (700, 2));
        assert_eq!(Assignment::parse(&data[..12]), None);
    }
}
