//! What the simulator keeps of the WAL: for each record its length without images and block data,
//! for each block reference what either would cost and when the block was stamped before.
//!
//! None of it depends on a setting. So any number of settings is simulated by reading the trace,
//! without a look at the WAL. It is read from front to back, so it is kept in packed chunks, about 15
//! bytes a record, beyond a limit in a file.

mod chunk;
mod pack;
mod reader;
mod store;
mod stretch;

pub use chunk::{Chunk, Noted};
pub use reader::{Cursor, Reader};
pub use store::{FileLike, NewFile, Store};
pub use stretch::Stretch;

use super::blocks::{BEFORE, BlockNumber, FIRST, ForkNumber, NEVER, Ordinal};
use crate::wal::image::Compression;
use crate::wal::lsn::Lsn;
use crate::wal::payload::Time;
use crate::wal::rmgr::RecordType;
use hashbrown::HashMap;

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
    /// Rows it inserts into a table.
    pub rows: u16,
    /// The fork of its first block, where it inserts rows.
    pub table: ForkNumber,
}

/// What differs of a record at the other wal_level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtOther {
    /// The record, blocks apart.
    pub record: Option<Other>,
    /// Data of its first block, bytes.
    pub data: Option<u16>,
    /// Bytes of the old row, which is logged where the replica identity is FULL.
    pub old_row: u16,
}

/// What becomes of a record at the other wal_level, blocks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// It is not written.
    Nothing,
    /// It has more bytes.
    More {
        /// What is certain.
        more: i32,
        /// More than that where the other level is logical, as a guess.
        guess: i32,
    },
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
        /// Its place in [`Trace::sequences`].
        sequence: u16,
    },
    /// A page is pruned that got an image for hint bits just before: what follows may freeze for that.
    PrunesAfterHint,
    /// Rows are frozen because their page got an image for hint bits just before.
    FreezesForHint {
        /// Block data without the freezing, bytes; `None`: there is no record then.
        data: Option<u16>,
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

/// A commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Its record.
    pub ordinal: Ordinal,
    /// Transactions and subtransactions that have an xid then and have not ended.
    pub running: u32,
    /// When.
    pub time: Time,
}

/// What is known of the WAL, in its order.
#[derive(Debug, Default)]
pub struct Trace {
    /// The records.
    pub records: Store,
    /// The marked records but for commits.
    pub marks: Vec<(Ordinal, Mark)>,
    /// The commits.
    pub commits: Vec<Commit>,
    /// Records that prune a page, and how long an image of the page is before that, bytes.
    pub unpruned: Vec<(Ordinal, u16)>,
    /// The sequences.
    pub sequences: Vec<Sequence>,
    /// The sequence that gives a table's rows a value each: its place in `sequences`.
    pub feeds: HashMap<ForkNumber, u16>,
    /// Whether wal_level is logical: something is there that only logical decoding wants.
    pub is_logical: bool,
    /// Whether an image is there that only changes of hint bits bring.
    pub logs_hints: bool,
    /// Whether images are there for checking only.
    pub checks_consistency: bool,
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
    /// How many values a record of it covers, where no table is known and each of its records is there for
    /// the redo point before it, or because the values of the one before were used up.
    pub period: Option<u32>,
}

impl Trace {
    /// Adds a record; `follows`: it begins where the one before ends.
    pub fn push(
        &mut self,
        (entry, refs): (&Entry, &[Ref]),
        (mark, other, follows): (Option<Mark>, Option<AtOther>, bool),
    ) {
        let ordinal = self.records.next_ordinal();
        match mark {
            Some(Mark::Commit { time, running }) => {
                self.commits.push(Commit { ordinal, running, time });
            }
            Some(mark) => self.marks.push((ordinal, mark)),
            None => {}
        }
        let facts = refs.iter().fold(0, |facts, reference| facts | reference.facts);
        self.checks_consistency |= facts & fact::CHECK_IMAGE != 0;
        self.logs_hints |= facts & fact::WITH_HINTS != 0
            && refs.iter().any(|reference| reference.is(fact::WITH_HINTS | fact::BASE_IMAGE));
        self.records.push((entry, refs), (mark, other, follows));
    }

    /// The records from the one with this ordinal on, or from some before it.
    pub fn read_from(&self, ordinal: Ordinal) -> Reader<'_> {
        Reader::new(self, ordinal)
    }

    /// All records.
    pub fn read(&self) -> Reader<'_> {
        self.read_from(FIRST)
    }

    /// A record.
    pub fn entry_of(&self, ordinal: Ordinal) -> Option<Entry> {
        let mut reader = self.read_from(ordinal);
        let mut stretch = reader.stretch()?;
        while stretch.end() <= ordinal {
            reader.pass(&stretch);
            stretch = reader.stretch()?;
        }
        let index = ordinal.checked_sub(stretch.first)?;
        reader.records(&stretch).entries.get(index as usize).copied()
    }

    /// The ordinal of the first record at or after `lsn`.
    pub fn ordinal_at(&self, lsn: Lsn) -> Ordinal {
        self.records.ordinal_at(lsn)
    }

    /// The ordinal of the first record after a redo point; [`BEFORE`] if that lies before them all.
    pub fn redo_at(&self, redo: Lsn) -> Ordinal {
        match self.records.first_lsn() {
            Some(first) if first <= redo => self.ordinal_at(redo),
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

    /// How long an image is of the page that a record prunes, before it is pruned; bytes.
    pub fn unpruned_bytes(&self, ordinal: Ordinal) -> Option<u16> {
        let place = self.unpruned.binary_search_by_key(&ordinal, |(pruned, _)| *pruned).ok()?;
        self.unpruned.get(place).map(|(_, bytes)| *bytes)
    }

    /// The first commit from a record on.
    pub fn commit_from(&self, ordinal: Ordinal) -> Option<&Commit> {
        self.commits.get(self.commits.partition_point(|commit| commit.ordinal < ordinal))
    }

    /// The last commit before a record.
    pub fn commit_before(&self, ordinal: Ordinal) -> Option<&Commit> {
        let after = self.commits.partition_point(|commit| commit.ordinal < ordinal);
        self.commits.get(after.checked_sub(1)?)
    }
}
