//! Records of the WAL itself (`src/include/access/xlog_internal.h`,
//! `src/include/catalog/pg_control.h`): settings, timelines, marks. The contents of checkpoints are
//! in [`super::checkpoint`].
//!
//! Opcodes, in `xl_info & 0xF0`, have their names from `pg_control.h`, without `XLOG_`.

use super::Time;
use crate::cursor::{Cursor, at};
use crate::lsn::Lsn;
use crate::version::{Release, Version};
use serde::{Deserialize, Serialize};

/// A checkpoint of a server that shuts down.
pub const CHECKPOINT_SHUTDOWN: u8 = 0x00;
/// A checkpoint of a server that runs.
pub const CHECKPOINT_ONLINE: u8 = 0x10;
/// The next oid is told.
pub const NEXTOID: u8 = 0x30;
/// The rest of the segment stays empty.
pub const SWITCH: u8 = 0x40;
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
/// The same, of several pages (up to 11). What 19 writes under this number has no images.
pub const FPI_MULTI: u8 = 0xC0;
/// A torn record is replaced.
pub const OVERWRITE_CONTRECORD: u8 = 0xD0;
/// A checkpoint begins (17 and later).
pub const CHECKPOINT_REDO: u8 = 0xE0;

/// A change of settings that standbys depend on (`xl_parameter_change`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterChange {
    /// wal_level, as the release numbers it.
    pub wal_level: u32,
    /// wal_log_hints.
    pub wal_log_hints: bool,
    /// What a hot standby needs as much of.
    pub limits: Limits,
}

/// Settings of which a hot standby needs as much as the server that wrote the WAL
/// (`CheckRequiredParameterValues` in `src/backend/access/transam/xlogrecovery.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// max_connections.
    pub max_connections: u32,
    /// max_worker_processes.
    pub max_worker_processes: u32,
    /// max_wal_senders; 0 before 12, which do not say.
    pub max_wal_senders: u32,
    /// max_prepared_transactions.
    pub max_prepared_transactions: u32,
    /// max_locks_per_transaction.
    pub max_locks_per_transaction: u32,
}

/// wal_level minimal, the lowest of all in every release (`WalLevel` in `src/include/access/xlog.h`).
const WAL_LEVEL_MINIMAL: u32 = 0;

impl ParameterChange {
    /// Reads the main data; `None` if it is too short. Numbers of 4 bytes come first, the last of
    /// them wal_level; 12 put max_wal_senders between them.
    pub fn parse(main_data: &[u8], version: &Version) -> Option<ParameterChange> {
        let has_senders = version.since(Release::V12);
        let numbers = if has_senders { 6 } else { 5 };
        let wal_level = at(main_data, 4 * (numbers - 1))?;
        // track_commit_timestamp ends the record.
        let (wal_log_hints, _): (bool, bool) = at(main_data, 4 * numbers)?;
        let (max_connections, max_worker_processes) = at(main_data, 0)?;
        let max_wal_senders = if has_senders { at(main_data, 8)? } else { 0 };
        let (max_prepared_transactions, max_locks_per_transaction) =
            at(main_data, 4 * (numbers - 3))?;
        let limits = Limits {
            max_connections,
            max_worker_processes,
            max_wal_senders,
            max_prepared_transactions,
            max_locks_per_transaction,
        };
        Some(ParameterChange { wal_level, wal_log_hints, limits })
    }

    /// Whether changes of tables may be missing from the WAL from here on.
    pub fn is_minimal(&self) -> bool {
        self.wal_level == WAL_LEVEL_MINIMAL
    }

    /// The name of wal_level in this release; `None`: it has no such level.
    pub fn wal_level_name(&self, version: &Version) -> Option<&'static str> {
        version.wal_levels.get(usize::try_from(self.wal_level).ok()?).copied()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn settings_gained_one_with_12() {
        let hints = |data: &[u8], index: usize| {
            ParameterChange::parse(data, &VERSIONS[index]).map(|change| change.wal_log_hints)
        };
        let old = words(&[100, 8, 5, 64, 3, 0x0001]);
        assert_eq!((hints(&old, 0), hints(&old[..21], 0)), (Some(true), None));
        let new = words(&[100, 8, 10, 5, 64, 1, 0x0100]);
        assert_eq!((hints(&new, 7), hints(&new[..25], 7)), (Some(false), None));
    }

    #[test]
    fn limits_are_read_in_both_layouts() {
        let limits = |data: &[u32], index: usize| {
            let change = ParameterChange::parse(&words(data), &VERSIONS[index]).expect("all of it");
            let Limits { max_connections, max_worker_processes, max_wal_senders, .. } =
                change.limits;
            let Limits { max_prepared_transactions, max_locks_per_transaction, .. } = change.limits;
            let first = [max_connections, max_worker_processes, max_wal_senders];
            (first, max_prepared_transactions, max_locks_per_transaction)
        };
        assert_eq!(limits(&[100, 8, 5, 64, 3, 1], 0), ([100, 8, 0], 5, 64));
        assert_eq!(limits(&[100, 8, 10, 5, 64, 1, 0], 7), ([100, 8, 10], 5, 64));
    }

    #[test]
    fn levels_lost_one_with_9_6() {
        let level = |index: usize, number: u32| {
            let version = &VERSIONS[index];
            let (old, new) = ([9, 9, 9, 9, number, 0], [9, 9, 9, 9, 9, number, 0]);
            let data = if index < 4 { words(&old) } else { words(&new) };
            let change = ParameterChange::parse(&data, version).expect("all of it");
            (change.is_minimal(), change.wal_level_name(version))
        };
        assert_eq!(level(0, 2), (false, Some("hot_standby")));
        for index in [0, 1, 3, 4, 11] {
            assert_eq!(level(index, 0), (true, Some("minimal")), "{index}");
        }
        assert_eq!(
            (level(1, 2), level(11, 1)),
            ((false, Some("logical")), (false, Some("replica")))
        );
        assert_eq!(level(7, 3), (false, None));
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
        let point = [&[0; 8][..], b"before\0\0"].concat();
        assert_eq!(RestorePoint::parse(&point).map(|p| p.name), Some(&b"before"[..]));
        assert_eq!(RestorePoint::parse(&point[..14]), None);
    }
}
