//! Records of the WAL itself that are no checkpoints (`src/include/access/xlog_internal.h`,
//! `src/include/catalog/pg_control.h`): settings, timelines, marks.

use super::Time;
use crate::wal::cursor::{Cursor, at};
use crate::wal::lsn::Lsn;
use crate::wal::version::{Release, Version};
use serde::{Deserialize, Serialize};

/// The next oid is told.
pub const NEXTOID: u8 = 0x30;
/// A base backup ends.
pub const BACKUP_END: u8 = 0x50;
/// A setting that standbys depend on changes.
pub const PARAMETER_CHANGE: u8 = 0x60;
/// A point with a name.
pub const RESTORE_POINT: u8 = 0x70;
/// full_page_writes changes.
pub const FPW_CHANGE: u8 = 0x80;
/// Recovery ends, often on a new timeline.
pub const END_OF_RECOVERY: u8 = 0x90;
/// An image for a change of hint bits.
pub const FPI_FOR_HINT: u8 = 0xA0;
/// Images of pages that are new or were copied.
pub const FPI: u8 = 0xB0;
/// The same, of several pages (up to 11).
pub const FPI_MULTI: u8 = 0xC0;
/// A torn record is replaced.
pub const OVERWRITE_CONTRECORD: u8 = 0xD0;
/// A checkpoint begins (17 and later).
pub const CHECKPOINT_REDO: u8 = 0xE0;

/// How much the WAL has to say (wal_level).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalLevel {
    /// Enough for crash recovery.
    Minimal,
    /// Enough for standbys and archives; 9.5 tells `archive` and `hot_standby` apart.
    Replica,
    /// Enough for logical decoding.
    Logical,
}

impl WalLevel {
    /// From the number in a record.
    pub fn of(number: u32, version: &Version) -> Option<WalLevel> {
        let levels: &[WalLevel] = match version.since(Release::V9_6) {
            true => &[WalLevel::Minimal, WalLevel::Replica, WalLevel::Logical],
            false => &[WalLevel::Minimal, WalLevel::Replica, WalLevel::Replica, WalLevel::Logical],
        };
        levels.get(usize::try_from(number).ok()?).copied()
    }
}

/// Settings that standbys depend on (`xl_parameter_change`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterChange {
    /// max_connections.
    pub max_connections: u32,
    /// max_worker_processes.
    pub max_worker_processes: u32,
    /// max_wal_senders (12 and later).
    pub max_wal_senders: Option<u32>,
    /// max_prepared_transactions.
    pub max_prepared_transactions: u32,
    /// max_locks_per_transaction.
    pub max_locks_per_transaction: u32,
    /// wal_level; `None` for a number that is none.
    pub wal_level: Option<WalLevel>,
    /// wal_log_hints.
    pub wal_log_hints: bool,
    /// track_commit_timestamp.
    pub track_commit_timestamp: bool,
}

impl ParameterChange {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8], version: &Version) -> Option<ParameterChange> {
        let mut cursor = Cursor::new(main_data);
        let (max_connections, max_worker_processes) = cursor.field()?;
        let max_wal_senders =
            if version.since(Release::V12) { Some(cursor.field()?) } else { None };
        let (max_prepared_transactions, max_locks_per_transaction) = cursor.field()?;
        let wal_level = WalLevel::of(cursor.field()?, version);
        let (wal_log_hints, track_commit_timestamp) = cursor.field()?;
        Some(ParameterChange {
            max_connections,
            max_worker_processes,
            max_wal_senders,
            max_prepared_transactions,
            max_locks_per_transaction,
            wal_level,
            wal_log_hints,
            track_commit_timestamp,
        })
    }
}

/// Recovery ends (`xl_end_of_recovery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfRecovery {
    /// When.
    pub time: Time,
    /// The timeline that goes on.
    pub timeline: u32,
    /// The timeline that was left.
    pub previous_timeline: u32,
}

impl EndOfRecovery {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<EndOfRecovery> {
        let mut cursor = Cursor::new(main_data);
        let time = Time::from_timestamptz(cursor.field()?);
        let (timeline, previous_timeline) = cursor.field()?;
        Some(EndOfRecovery { time, timeline, previous_timeline })
    }
}

/// A point with a name (`xl_restore_point`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestorePoint<'a> {
    /// When.
    pub time: Time,
    /// Its name.
    pub name: &'a [u8],
}

impl<'a> RestorePoint<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<RestorePoint<'a>> {
        let mut cursor = Cursor::new(main_data);
        Some(RestorePoint { time: Time::from_timestamptz(cursor.field()?), name: cursor.text()? })
    }
}

/// A record that a crash tore is replaced (`xl_overwrite_contrecord`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverwriteContrecord {
    /// Where the torn one starts.
    pub overwritten: Lsn,
    /// When it was replaced.
    pub time: Time,
}

impl OverwriteContrecord {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<OverwriteContrecord> {
        let (overwritten, time) = at(main_data, 0)?;
        Some(OverwriteContrecord {
            overwritten: Lsn(overwritten),
            time: Time::from_timestamptz(time),
        })
    }
}

/// Where the backup began that a `BACKUP_END` record ends; `None` if the main data is too short.
pub fn backup_start(main_data: &[u8]) -> Option<Lsn> {
    at(main_data, 0).map(Lsn)
}

/// full_page_writes from an `FPW_CHANGE` record on; `None` if the main data is too short.
pub fn full_page_writes(main_data: &[u8]) -> Option<bool> {
    at(main_data, 0)
}

/// The next oid that a `NEXTOID` record tells; `None` if the main data is too short.
pub fn next_oid(main_data: &[u8]) -> Option<u32> {
    at(main_data, 0)
}

/// wal_level as a `CHECKPOINT_REDO` record tells it; `None` if the main data is too short, or for
/// a number that is none.
pub fn wal_level_at_redo(main_data: &[u8], version: &Version) -> Option<WalLevel> {
    WalLevel::of(at(main_data, 0)?, version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::version::VERSIONS;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn settings_gained_one_with_12() {
        let old = words(&[100, 8, 5, 64, 3, 0x0101]);
        let change = ParameterChange::parse(&old, &VERSIONS[0]).expect("24 bytes");
        assert_eq!((change.max_wal_senders, change.wal_level), (None, Some(WalLevel::Logical)));
        assert!(change.wal_log_hints && change.track_commit_timestamp);
        let new = words(&[100, 8, 10, 5, 64, 1, 1]);
        let change = ParameterChange::parse(&new, &VERSIONS[7]).expect("28 bytes");
        assert_eq!((change.max_wal_senders, change.max_prepared_transactions), (Some(10), 5));
        assert_eq!(change.wal_level, Some(WalLevel::Replica));
        assert!(change.wal_log_hints && !change.track_commit_timestamp);
        assert_eq!(ParameterChange::parse(&new[..25], &VERSIONS[7]), None);
    }

    #[test]
    fn levels_were_four_in_9_5() {
        let level = |number, index: usize| WalLevel::of(number, &VERSIONS[index]);
        assert_eq!(level(2, 0), Some(WalLevel::Replica));
        assert_eq!(level(2, 1), Some(WalLevel::Logical));
        assert_eq!((level(4, 0), level(3, 1)), (None, None));
    }

    #[test]
    fn a_new_timeline_names_the_one_it_left() {
        let data = words(&[0, 0, 2, 1]);
        let end = EndOfRecovery::parse(&data).expect("16 bytes");
        assert_eq!((end.timeline, end.previous_timeline), (2, 1));
        assert_eq!(EndOfRecovery::parse(&data[..15]), None);
    }

    #[test]
    fn marks_are_read() {
        let data = words(&[0x28, 0, 1, 0]);
        assert_eq!(OverwriteContrecord::parse(&data).map(|o| o.overwritten), Some(Lsn(0x28)));
        assert_eq!(OverwriteContrecord::parse(&data[..15]), None);
        assert_eq!(backup_start(&data), Some(Lsn(0x28)));
        assert_eq!((full_page_writes(&[1]), full_page_writes(&[])), (Some(true), None));
        assert_eq!(next_oid(&data), Some(0x28));
        assert_eq!(wal_level_at_redo(&[2, 0, 0, 0], &VERSIONS[9]), Some(WalLevel::Logical));
        let point = [&[0; 8][..], b"before\0\0"].concat();
        assert_eq!(RestorePoint::parse(&point).map(|p| p.name), Some(&b"before"[..]));
        assert_eq!(RestorePoint::parse(&point[..14]), None);
    }
}
