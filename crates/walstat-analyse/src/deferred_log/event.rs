//! Records that clock and checkpoints turn on: what they say, in the few words that are needed.

use super::open_transactions::OpenTransactions;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::dbase::DatabaseChange;
use walstat_format::payload::xact;
use walstat_format::payload::xlog;
use walstat_format::payload::xlog::{EndOfRecovery, OverwriteContrecord, RestorePoint};
use walstat_format::record::Record;
use walstat_format::rmgr::{DATABASE, TRANSACTION, XLOG};

/// A checkpoint's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSeen {
    /// Whether its type is the one for shutdowns.
    pub is_shutdown: bool,
    /// Where the record before it starts; 0 for the first record of a cluster.
    pub previous: Lsn,
    /// What it says.
    pub says: Checkpoint,
}

#[cfg(test)]
impl CheckpointSeen {
    /// Any one, for tests.
    pub fn sample() -> CheckpointSeen {
        let says = Checkpoint {
            redo: Lsn(0),
            timeline: 1,
            previous_timeline: 1,
            full_page_writes: true,
            wal_level: None,
            next_xid: 1000,
            next_oid: 20_000,
            next_multixact: (1, 0),
            oldest_xid: 700,
            oldest_multixact: 1,
            time: Time(0),
            oldest_active_xid: 0,
        };
        CheckpointSeen { is_shutdown: false, previous: Lsn(0), says }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// An online checkpoint begins here.
    Redo,
    /// A checkpoint ends.
    Checkpoint(Box<CheckpointSeen>),
    /// A base backup ends that began at this redo point.
    BackupEnd(Lsn),
    /// Recovery ends.
    EndOfRecovery(Box<EndOfRecovery>),
    /// A torn record is replaced, which a crash left.
    Overwrite(Time),
    /// A point with a name.
    RestorePoint(Time),
    /// No oid below this one is handed out twice.
    NextOid(u32),
    /// Files of a database are copied or go away, next to checkpoints that the server orders for
    /// it.
    Files(FilesChange),
    /// The rest of the segment holds nothing.
    Switch,
    /// Records are missing in the range.
    Lost,
    /// The WAL that is read begins, with a record that is not counted.
    Begin,
    /// Nothing was written in the range: the rest of a segment after a switch.
    Unused,
}

/// What the server orders a checkpoint for, beside who asks for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilesChange {
    /// A database was copied file by file: a checkpoint before it, and one after it.
    Copied,
    /// A database goes away: a checkpoint before it.
    Dropped,
}

/// An event, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedEvent {
    /// Start of its record.
    pub lsn: Lsn,
    /// The record's end.
    pub end: Lsn,
    /// What it says.
    pub event: Event,
    /// Set only on events that end all transactions: what became of them since the previous such event, or
    /// since the batch began.
    pub transactions: Option<Box<OpenTransactions>>,
}

impl PlacedEvent {
    /// An event of these places.
    pub fn new(places: Range<Lsn>, event: Event) -> PlacedEvent {
        PlacedEvent { lsn: places.start, end: places.end, event, transactions: None }
    }
}

/// Whether a record can have a time or be an event; few others are of these resource managers.
#[inline(always)]
pub fn may_matter(record: &Record<'_>) -> bool {
    record.header.rmgr <= DATABASE
}

/// The time that a transaction's record states, and whether it is a commit.
pub fn stated_time(record: &Record<'_>) -> Option<(Time, bool)> {
    if record.header.rmgr != TRANSACTION {
        return None;
    }
    let info = record.header.info;
    let time = xact::stated_time(info, record.main_data_start())?;
    Some((time, xact::commits(info)))
}

impl Event {
    /// Whether no transaction lives on after it: the server has stopped, or recovered.
    pub fn ends_all_transactions(&self) -> bool {
        match self {
            Event::Checkpoint(seen) => seen.is_shutdown,
            event => matches!(event, Event::EndOfRecovery(_)),
        }
    }

    /// The event that a record is, if it is one.
    pub fn of(record: &Record<'_>) -> Option<Event> {
        match record.header.rmgr {
            XLOG => Event::of_xlog(record),
            DATABASE => {
                let data = record.main_data_start();
                let change = DatabaseChange::parse(record.header.info, data, record.version)?;
                Event::of_database(&change)
            }
            _ => None,
        }
    }

    fn of_xlog(record: &Record<'_>) -> Option<Event> {
        let data = record.main_data_start();
        let info = record.header.rmgr_info();
        match info {
            xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN => {
                let says = Checkpoint::parse(data, record.version.checkpoint)?;
                let is_shutdown = info == xlog::CHECKPOINT_SHUTDOWN;
                let previous = record.header.previous;
                Some(Event::Checkpoint(Box::new(CheckpointSeen { is_shutdown, previous, says })))
            }
            xlog::CHECKPOINT_REDO if record.version.pacing.marks_redo => Some(Event::Redo),
            xlog::BACKUP_END => xlog::backup_start(data).map(Event::BackupEnd),
            xlog::END_OF_RECOVERY => {
                Some(Event::EndOfRecovery(Box::new(EndOfRecovery::parse(data)?)))
            }
            xlog::OVERWRITE_CONTRECORD => {
                Some(Event::Overwrite(OverwriteContrecord::parse(data)?.time))
            }
            xlog::RESTORE_POINT => Some(Event::RestorePoint(RestorePoint::parse(data)?.time)),
            xlog::NEXTOID => xlog::next_oid(data).map(Event::NextOid),
            xlog::SWITCH => Some(Event::Switch),
            _ => None,
        }
    }

    fn of_database(change: &DatabaseChange<'_>) -> Option<Event> {
        match change {
            DatabaseChange::Create { copied_from: Some(_), .. } => {
                Some(Event::Files(FilesChange::Copied))
            }
            DatabaseChange::Create { copied_from: None, .. } => None,
            DatabaseChange::Drop { .. } => Some(Event::Files(FilesChange::Dropped)),
        }
    }
}
