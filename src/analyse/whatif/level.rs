//! What records have more or less at the other wal_level: logical decoding wants whole new rows, old
//! keys, and to know which database and top-level transaction a record belongs to
//! (`XLogLogicalInfoActive` in `src/backend/access/`).
//!
//! From logical to replica that is all in the WAL. The other way it is not: keys of deleted rows are
//! taken for one integer, command ids and invalidations are counted as changes of catalogs need them, and
//! old rows of tables whose replica identity is FULL are a possibility.

use super::blocks::Ordinal;
use super::redo;
use super::whole::Whole;
use crate::wal::block::RelFileLocator;
use crate::wal::payload::checkpoint::FIRST_NORMAL_OID;
use crate::wal::payload::heap::{self, Delete, OPCODE_MASK, Update, delete_flag, update_flag};
use crate::wal::payload::heap2::{MULTI_INSERT, NEW_CID};
use crate::wal::payload::xact::{self, End};
use crate::wal::rmgr::{HEAP, HEAP2, TRANSACTION};
use hashbrown::HashMap;
use std::iter::Peekable;
use std::slice::Iter;

/// Bytes of the header of a record's main data, up to 255 bytes and above.
const MAIN_HEADER_BYTES: (i32, i32) = (2, 5);
/// Database and tablespace in the record of a commit; `xinfo`, which says so.
const DATABASE_BYTES: i32 = 8;
const XINFO_BYTES: i32 = 4;
/// The header of a block that is none: the top-level transaction.
const TOPLEVEL_XID_BYTES: i32 = 5;
/// An old key of one integer: header, bitmap of columns, value.
const KEY_BYTES: i32 = 5 + 1 + 4;
/// `Heap2/NEW_CID` for a row of a catalog, with its padding.
const NEW_CID_BYTES: i32 = 64;
/// A record of invalidations: its head, and a message.
const INVALIDATIONS_BYTES: i32 = 24 + 2 + 4;
const MESSAGE_BYTES: i32 = 16;
/// A row of a table that nothing was seen of.
const ROW_BYTES: u16 = 100;

/// What becomes of a record at the other level, blocks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// It is not written.
    Nothing,
    /// It has so many more bytes.
    More(i32),
    /// The same, and more where the other level is logical, as a guess.
    Guess {
        /// What is certain.
        more: i32,
        /// What is not.
        guess: i32,
    },
}

/// What differs at the other level, by ordinal; what is not listed does not differ.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// Records, blocks apart.
    pub records: Vec<(Ordinal, Other)>,
    /// Data of the first block, bytes.
    pub data: Vec<(Ordinal, u16)>,
    /// Old rows, which are logged where the replica identity is FULL: bytes.
    pub old_rows: Vec<(Ordinal, u16)>,
    /// The length of the last row that was seen, by table.
    rows: HashMap<RelFileLocator, u16>,
    /// Whether the level is logical: something is there that only logical decoding wants.
    pub is_logical: bool,
}

/// Whether rows of a relation are decoded.
pub fn is_decoded(relation: RelFileLocator) -> bool {
    relation.relfilenode >= FIRST_NORMAL_OID
}

impl Differences {
    /// Takes note of a record; `row`: data of its first block where no image is taken.
    pub fn note(&mut self, record: &Whole<'_>, ordinal: Ordinal, row: u16) {
        let main_bytes = record.main_data().len();
        let (bare, is_logical) = match record.header.rmgr {
            HEAP => self.row(record, main_bytes),
            HEAP2 if record.info() & OPCODE_MASK == NEW_CID => return self.only_logical(ordinal),
            TRANSACTION if is_invalidations(record) => return self.only_logical(ordinal),
            TRANSACTION => transaction(record),
            _ => (0, false),
        };
        let toplevel = if record.has_toplevel_xid() { -TOPLEVEL_XID_BYTES } else { 0 };
        self.is_logical |= is_logical || toplevel != 0;
        let guess = if self.is_logical { 0 } else { self.guess(record, ordinal, row) };
        let more = bare + toplevel;
        match (more, guess) {
            (0, 0) => {}
            (more, 0) => self.records.push((ordinal, Other::More(more))),
            (more, guess) => self.records.push((ordinal, Other::Guess { more, guess })),
        }
    }

    fn is_of_catalog(&self, record: &Whole<'_>) -> bool {
        record.blocks.first().is_some_and(|block| !is_decoded(block.relation))
    }

    /// What the logical level adds that the record does not show: the old key or row of a change, and what
    /// decoding has to know of catalogs (`ExtractReplicaIdentity`, `log_heap_new_cid`,
    /// `LogLogicalInvalidations`).
    fn guess(&mut self, record: &Whole<'_>, ordinal: Ordinal, row: u16) -> i32 {
        let opcode = record.info() & OPCODE_MASK;
        let Some(block) = record.blocks.first() else { return invalidations(record) };
        if block.fork != 0 || ![HEAP, HEAP2].contains(&record.header.rmgr) {
            return 0;
        }
        if self.is_of_catalog(record) {
            return NEW_CID_BYTES * changed_rows(record);
        }
        if record.header.rmgr != HEAP {
            return 0;
        }
        let seen = self.data.last().filter(|(at, _)| *at == ordinal).map(|(_, bytes)| *bytes);
        let length = seen.or(Some(row).filter(|bytes| *bytes > 0));
        let known = self.rows.get(&block.relation).copied().unwrap_or(ROW_BYTES);
        match opcode {
            heap::INSERT => {
                self.rows.insert(block.relation, length.unwrap_or(known));
                0
            }
            heap::UPDATE | heap::HOT_UPDATE => {
                let length = length.unwrap_or(known).max(known);
                self.rows.insert(block.relation, length);
                self.old_rows.push((ordinal, length));
                0
            }
            heap::DELETE => {
                self.old_rows.push((ordinal, known));
                KEY_BYTES
            }
            _ => 0,
        }
    }

    fn only_logical(&mut self, ordinal: Ordinal) {
        self.is_logical = true;
        self.records.push((ordinal, Other::Nothing));
    }

    /// A change of a row: the old row or its key, in the main data.
    fn row(&self, record: &Whole<'_>, main_bytes: usize) -> (i32, bool) {
        let main = record.main_data();
        let opcode = record.info() & OPCODE_MASK;
        let (bare, old) = match opcode {
            heap::DELETE => {
                let flags = Delete::parse(main).map_or(0, |delete| delete.flags);
                let old = delete_flag::CONTAINS_OLD_TUPLE | delete_flag::CONTAINS_OLD_KEY;
                (Delete::BYTES, flags & old != 0)
            }
            heap::UPDATE | heap::HOT_UPDATE => {
                let flags = Update::parse(main).map_or(0, |update| update.flags);
                let old = update_flag::CONTAINS_OLD_TUPLE | update_flag::CONTAINS_OLD_KEY;
                (Update::BYTES, flags & old != 0)
            }
            _ => return (0, false),
        };
        if old {
            return (main_length(bare as usize) - main_length(main_bytes), true);
        }
        (0, false)
    }
}

/// Rows of a catalog whose command ids are logged.
fn changed_rows(record: &Whole<'_>) -> i32 {
    let opcode = record.info() & OPCODE_MASK;
    match record.header.rmgr {
        HEAP => match opcode {
            heap::INSERT | heap::DELETE => 1,
            heap::UPDATE | heap::HOT_UPDATE => 2,
            _ => 0,
        },
        _ => redo::inserted_rows(record).into(),
    }
}

/// The invalidations of a commit, which are logged with their commands, too (14 and later).
fn invalidations(record: &Whole<'_>) -> i32 {
    if record.header.rmgr != TRANSACTION || !record.version.pages.commands_log_invalidations {
        return 0;
    }
    let end = End::parse(record.header.info, record.main_data(), record.version);
    let messages = end.filter(|end| end.commits).map_or(0, |end| end.invalidations.len());
    match i32::try_from(messages) {
        Ok(messages @ 1..) => INVALIDATIONS_BYTES + MESSAGE_BYTES.saturating_mul(messages),
        _ => 0,
    }
}

/// Whether a record's first block keeps its data beside an image at level logical.
pub fn keeps_data(record: &Whole<'_>) -> bool {
    let opcode = record.info() & OPCODE_MASK;
    let writes_rows = match record.header.rmgr {
        HEAP => [heap::INSERT, heap::UPDATE, heap::HOT_UPDATE].contains(&opcode),
        HEAP2 => opcode == MULTI_INSERT,
        _ => false,
    };
    writes_rows && record.blocks.first().is_some_and(|block| is_decoded(block.relation))
}

fn main_length(bytes: usize) -> i32 {
    let header = if bytes > 255 { MAIN_HEADER_BYTES.1 } else { MAIN_HEADER_BYTES.0 };
    header + i32::try_from(bytes).unwrap_or(i32::MAX - header)
}

/// `XLOG_XACT_INVALIDATIONS` (14 and later).
fn is_invalidations(record: &Whole<'_>) -> bool {
    record.info() & xact::OPCODE_MASK == xact::INVALIDATIONS
}

/// A commit says its database where caches have to forget something, and at level logical.
fn transaction(record: &Whole<'_>) -> (i32, bool) {
    let end = End::parse(record.header.info, record.main_data(), record.version);
    let Some(end) = end.filter(|end| end.commits) else { return (0, false) };
    match (end.database, end.xinfo) {
        (None, 0) => (DATABASE_BYTES + XINFO_BYTES, false),
        (None, _) => (DATABASE_BYTES, false),
        (Some(_), _) if !end.invalidations.is_empty() => (0, false),
        (Some(_), xact::DBINFO) => (-DATABASE_BYTES - XINFO_BYTES, true),
        (Some(_), _) => (-DATABASE_BYTES, true),
    }
}

/// What the other level changes of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtLevel {
    /// It is not written.
    pub is_gone: bool,
    /// More bytes of it, blocks apart.
    pub more: i32,
    /// Data of its first block, where they are others.
    pub data: Option<u16>,
    /// Bytes of it that are a guess.
    pub guessed: u32,
    /// Bytes of the old row, where the replica identity is FULL.
    pub old_row: u16,
}

impl AtLevel {
    /// Nothing.
    pub const SAME: AtLevel =
        AtLevel { is_gone: false, more: 0, data: None, guessed: 0, old_row: 0 };
}

/// The differences, one record after the other.
pub struct LevelChange<'t> {
    records: Peekable<Iter<'t, (Ordinal, Other)>>,
    data: Peekable<Iter<'t, (Ordinal, u16)>>,
    old_rows: Peekable<Iter<'t, (Ordinal, u16)>>,
    /// Whether the other level is logical.
    to_logical: bool,
}

impl<'t> LevelChange<'t> {
    /// From the first record on; `to_logical`: the other level is that one.
    pub fn new(differences: &'t Differences, to_logical: bool) -> LevelChange<'t> {
        let Differences { records, data, old_rows, .. } = differences;
        LevelChange {
            records: records.iter().peekable(),
            data: data.iter().peekable(),
            old_rows: old_rows.iter().peekable(),
            to_logical,
        }
    }

    /// Those of a record; ordinals ascend.
    pub fn at(&mut self, ordinal: Ordinal) -> AtLevel {
        let other = of(&mut self.records, ordinal);
        let (more, guess) = match other {
            Some(Other::More(more)) => (more, 0),
            Some(Other::Guess { more, guess }) if self.to_logical => (more, guess),
            Some(Other::Guess { more, .. }) => (more, 0),
            None | Some(Other::Nothing) => (0, 0),
        };
        let old_row = of(&mut self.old_rows, ordinal).filter(|_| self.to_logical);
        AtLevel {
            is_gone: other == Some(Other::Nothing),
            more: more + guess,
            data: of(&mut self.data, ordinal),
            guessed: guess.unsigned_abs(),
            old_row: old_row.unwrap_or(0),
        }
    }
}

fn of<T: Copy>(list: &mut Peekable<Iter<'_, (Ordinal, T)>>, ordinal: Ordinal) -> Option<T> {
    while list.next_if(|(at, _)| *at < ordinal).is_some() {}
    list.next_if(|(at, _)| *at == ordinal).map(|(_, value)| *value)
}
