//! What the simulator keeps of the WAL: for each record its length without images and block data,
//! for each block reference what either would cost and when the block was stamped before.
//!
//! None of it depends on a setting. So any number of settings is simulated by reading the trace,
//! without a look at the WAL.

use super::blocks::{BEFORE, BlockNumber, FIRST, ForkNumber, NEVER, Ordinal};
use super::level::Differences;
use crate::wal::image::Compression;
use crate::wal::lsn::Lsn;
use crate::wal::payload::Time;
use crate::wal::rmgr::RecordType;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where it starts in the base.
    pub lsn: Lsn,
    /// Its length in the base.
    pub bytes: u32,
    /// Its length without images, their headers, and block data.
    pub fixed_bytes: u32,
    /// Its type.
    pub kind: RecordType,
    /// How many references follow.
    pub refs: u8,
    /// Whether a [`Mark`] belongs to it.
    pub marked: bool,
    /// The sequence that gives its rows a value each: its place in [`Trace::sequences`], from 1; 0
    /// if none does.
    pub feeds: u16,
    /// Rows it inserts into a table.
    pub rows: u16,
}

/// Facts of a block reference, as bits.
pub mod fact {
    /// The base has an image that is replayed.
    pub const BASE_IMAGE: u16 = 0x0001;
    /// That image is compressed.
    pub const BASE_COMPRESSED: u16 = 0x0002;
    /// An image is there in any case, for checking only: it replaces nothing.
    pub const CHECK_IMAGE: u16 = 0x0004;
    /// Block data stay beside an image.
    pub const KEEPS_DATA: u16 = 0x0008;
    /// An image is taken if the page was not stamped since the redo point.
    pub const USUAL: u16 = 0x0010;
    /// An image is always taken.
    pub const ALWAYS: u16 = 0x0020;
    /// An image is taken, and the page stamped, only where hint bits are logged.
    pub const WITH_HINTS: u16 = 0x0040;
    /// The record does not say whether an image is forced.
    pub const UNSAID: u16 = 0x0080;
    /// An image leaves out a hole.
    pub const HOLE: u16 = 0x0100;
    /// The length of an image is an estimate.
    pub const IMAGE_ESTIMATED: u16 = 0x0200;
    /// The length of the block data is an estimate.
    pub const DATA_ESTIMATED: u16 = 0x0400;
    /// The page is stamped.
    pub const STAMPS: u16 = 0x0800;
    /// Rows of the page were looked at before, which sets their hint bits.
    pub const LOOKED_AT: u16 = 0x1000;
    /// Block data stay beside an image at level logical.
    pub const KEPT_AT_LOGICAL: u16 = 0x2000;
    /// Rows are frozen because the page got an image when it was pruned just before (16).
    pub const FREEZES_FOR_IMAGE: u16 = 0x4000;
}

/// A block reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ref {
    /// The block.
    pub block: BlockNumber,
    /// When it was stamped before, where changes of hint bits are logged.
    pub stamped: Ordinal,
    /// The same where they are not.
    pub stamped_without_hints: Ordinal,
    /// Block data where no image is taken, bytes.
    pub data_bytes: u16,
    /// An image that is not compressed, bytes.
    pub image_bytes: u16,
    /// The base's image as it is stored, bytes.
    pub stored_bytes: u16,
    /// [`fact`].
    pub facts: u16,
}

impl Ref {
    /// Whether all of these facts hold.
    pub fn is(&self, facts: u16) -> bool {
        self.facts & facts == facts
    }
}

/// A record that means something to the simulation beyond its blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// A transaction commits; how many others with an xid run on.
    Commit {
        /// When.
        time: Time,
        /// Transactions and subtransactions that have an xid and have not ended.
        running: u32,
    },
    /// A checkpoint ends, or the server is shut down.
    Checkpoint {
        /// Where it began.
        redo: Lsn,
        /// Whether it is one of a running server.
        online: bool,
        /// Whether images were asked for when it began.
        full_page_writes: bool,
        /// When it began.
        time: Time,
    },
    /// A redo point marks itself (17 and later).
    Redo,
    /// A snapshot of running transactions.
    Running,
    /// The rest of the segment is left empty.
    Switch,
    /// A hint bit is changed.
    Hint,
    /// Values of a sequence are logged.
    Sequence {
        /// The sequence's fork.
        fork: ForkNumber,
        /// The value up to which it is logged.
        value: i64,
        /// Its place in [`Trace::sequences`].
        sequence: u16,
    },
    /// full_page_writes changes.
    FullPageWrites(bool),
    /// A base backup ends, during which images were forced.
    BackupEnd {
        /// Where it began.
        start: Lsn,
    },
    /// Settings that standbys must know change.
    Parameters {
        /// wal_log_hints.
        log_hints: bool,
    },
}

/// What is known of the WAL, in its order.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// All records.
    pub entries: Vec<Entry>,
    /// Their block references, one record's after the other's.
    pub refs: Vec<Ref>,
    /// The marked records, by ordinal.
    pub marks: Vec<(Ordinal, Mark)>,
    /// The sequences.
    pub sequences: Vec<Sequence>,
    /// What differs at the other wal_level.
    pub level: Differences,
    /// How the newest compressed image is compressed.
    pub compression: Option<Compression>,
    /// `BLCKSZ`.
    pub page_bytes: usize,
    /// Pages that were given up for want of memory.
    pub given_up: u64,
    /// The first and the last record of a transaction during which another one committed: a range between
    /// the two need not have one.
    pub side_by_side: Option<(Ordinal, Ordinal)>,
    /// Whether a resource manager of an extension has records.
    pub has_custom_rmgrs: bool,
}

/// A sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// Its fork.
    pub fork: ForkNumber,
    /// Bytes of a record that logs its values.
    pub bytes: u32,
    /// The table whose rows get its values, where that is known.
    pub table: Option<ForkNumber>,
}

impl Trace {
    /// What a record means beyond its blocks.
    pub fn mark(&self, ordinal: Ordinal, entry: &Entry) -> Option<Mark> {
        entry.marked.then_some(())?;
        let index = self.marks.binary_search_by_key(&ordinal, |(at, _)| *at).ok()?;
        self.marks.get(index).map(|(_, mark)| *mark)
    }

    /// The ordinal of the first record at or after `lsn`.
    pub fn ordinal_at(&self, lsn: Lsn) -> Ordinal {
        self.entries.partition_point(|entry| entry.lsn < lsn) as Ordinal + FIRST
    }

    /// The ordinal of the first record after a redo point; [`BEFORE`] if that lies before them all.
    pub fn redo_at(&self, redo: Lsn) -> Ordinal {
        match self.entries.first() {
            Some(entry) if entry.lsn <= redo => self.ordinal_at(redo),
            _ => BEFORE,
        }
    }

    /// The ordinal of the last record before `lsn`.
    pub fn last_before(&self, lsn: Lsn) -> Ordinal {
        match self.ordinal_at(lsn) {
            FIRST => NEVER,
            ordinal => ordinal - 1,
        }
    }
}
