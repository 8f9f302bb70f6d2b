//! What is noted of one record: its lengths, its block references, what it means beyond them, and what
//! would be different at the other wal_level.

use crate::blocks::{BlockNumber, ForkNumber, Ordinal};
use crate::redo::Unfrozen;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::rmgr::RecordType;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it starts in the base.
    pub(crate) lsn: Lsn,
    /// Its length in the base.
    pub(crate) bytes: u32,
    /// Its length without images, their headers, and block data.
    pub(crate) fixed_bytes: u32,
    /// Its type.
    pub(crate) kind: RecordType,
    /// How many references follow.
    pub(crate) refs: u8,
    /// Rows it inserts into a table.
    pub(crate) rows: u16,
    /// The fork of its first block, where it inserts rows.
    pub(crate) table: ForkNumber,
}

/// What differs of a record at the other wal_level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WalLevelDelta {
    /// The record, blocks apart.
    pub(crate) record: Option<RecordDelta>,
    /// Data of its first block, bytes.
    pub(crate) data: Option<u16>,
    /// Bytes of the old row, which is logged where the replica identity is FULL.
    pub(crate) old_row: u16,
}

/// What becomes of a record at the other wal_level, blocks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordDelta {
    /// It is none: it is not written.
    NotWritten,
    /// It has more bytes.
    More {
        /// What is certain.
        more: i32,
        /// More than that where the other level is logical, as a guess.
        guess: i32,
    },
}

/// Facts of a block reference, as bits.
pub(crate) mod entry_fact {
    /// The base has an image that is replayed.
    pub(crate) const BASE_IMAGE: u16 = 0x0001;
    /// That image is compressed.
    pub(crate) const BASE_COMPRESSED: u16 = 0x0002;
    /// An image is there in any case, for checking only: it replaces nothing.
    pub(crate) const CHECK_IMAGE: u16 = 0x0004;
    /// Block data stay beside an image.
    pub(crate) const KEEPS_DATA: u16 = 0x0008;
    /// An image is taken if the page was not stamped since the redo point.
    pub(crate) const USUAL: u16 = 0x0010;
    /// An image is always taken.
    pub(crate) const ALWAYS: u16 = 0x0020;
    /// An image is taken, and the page stamped, only where hint bits are logged.
    pub(crate) const WITH_HINTS: u16 = 0x0040;
    /// The record does not say whether an image is forced.
    pub(crate) const UNSAID: u16 = 0x0080;
    /// An image leaves out a hole.
    pub(crate) const HOLE: u16 = 0x0100;
    /// The length of an image is an estimate.
    pub(crate) const IMAGE_ESTIMATED: u16 = 0x0200;
    /// The length of the block data is an estimate.
    pub(crate) const DATA_ESTIMATED: u16 = 0x0400;
    /// The page is stamped.
    pub(crate) const STAMPS: u16 = 0x0800;
    /// Rows of the page were looked at before, which sets their hint bits.
    pub(crate) const LOOKED_AT: u16 = 0x1000;
    /// Block data stay beside an image at level logical.
    pub(crate) const KEPT_AT_LOGICAL: u16 = 0x2000;
    /// Rows are frozen because the page got an image when it was pruned just before (16).
    pub(crate) const FREEZES_FOR_IMAGE: u16 = 0x4000;
}

/// A block reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TracedBlock {
    /// The block.
    pub(crate) block: BlockNumber,
    /// When it was stamped before, where changes of hint bits are logged.
    pub(crate) stamped: Ordinal,
    /// The same where they are not.
    pub(crate) stamped_without_hints: Ordinal,
    /// Block data where no image is taken, bytes.
    pub(crate) data_bytes: u16,
    /// An image that is not compressed, bytes.
    pub(crate) image_bytes: u16,
    /// The base's image as it is stored, bytes.
    pub(crate) stored_bytes: u16,
    /// [`entry_fact`].
    pub(crate) facts: u16,
}

impl TracedBlock {
    /// Whether all of these facts hold.
    pub(crate) fn is(&self, facts: u16) -> bool {
        self.facts & facts == facts
    }
}

/// A record that means something to the simulation beyond its blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RecordEffect {
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
    RunningXacts,
    /// The rest of the segment is left empty.
    Switch,
    /// A hint bit is changed.
    Hint {
        /// Whether in a row or an entry, and not in a map.
        is_main: bool,
    },
    /// Values of a sequence are logged.
    Sequence {
        /// The sequence's fork.
        fork: ForkNumber,
        /// The value up to which it is logged.
        value: i64,
        /// Its place in [`super::Trace::sequences`].
        sequence: u32,
    },
    /// A page is pruned that got an image for hint bits just before: what follows may freeze for that.
    PrunesAfterHint,
    /// Rows are frozen because their page got an image for hint bits just before.
    FreezesForHint {
        /// What is left of the record without the freezing.
        unfrozen: Unfrozen,
    },
    /// A page of a map whose table is truncated: logged where changes of hint bits are.
    MapTruncated,
    /// Vacuum changes the free space map.
    FreeSpace {
        /// When it changed the same page of it before.
        page: Ordinal,
        /// When it changed the pages above that.
        above: Ordinal,
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
