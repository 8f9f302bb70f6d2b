//! What records have more or less at the other wal_level: logical decoding wants whole new rows, old
//! keys, and to know which database and top-level transaction a record belongs to
//! (`XLogLogicalInfoActive` in `src/backend/access/`).
//!
//! From logical to replica that is all in the WAL. The other way it is not: keys of deleted rows are
//! taken for one integer, and what changes of catalogs log beside themselves is left out.

use super::blocks::Ordinal;
use super::whole::Whole;
use crate::wal::block::RelFileLocator;
use crate::wal::payload::heap::{self, Delete, OPCODE_MASK, Update, delete_flag, update_flag};
use crate::wal::payload::heap2::{MULTI_INSERT, NEW_CID};
use crate::wal::payload::xact::{self, End};
use crate::wal::rmgr::{HEAP, HEAP2, TRANSACTION};
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
/// Relations of users: catalogs are not decoded (`FirstNormalObjectId`).
const FIRST_USER_FILE: u32 = 16384;

/// What becomes of a record at the other level, blocks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// It is not written.
    Nothing,
    /// It has so many more bytes.
    More(i32),
}

/// What differs at the other level, by ordinal; what is not listed does not differ.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// Records, blocks apart.
    pub records: Vec<(Ordinal, Other)>,
    /// Data of the first block, bytes.
    pub data: Vec<(Ordinal, u16)>,
    /// Whether the level is logical: something is there that only logical decoding wants.
    pub is_logical: bool,
}

/// Whether rows of a relation are decoded.
pub fn is_decoded(relation: RelFileLocator) -> bool {
    relation.relfilenode >= FIRST_USER_FILE
}

impl Differences {
    /// Takes note of a record.
    pub fn note(&mut self, record: &Whole<'_>, ordinal: Ordinal) {
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
        let more = bare + toplevel;
        if more != 0 {
            self.records.push((ordinal, Other::More(more)));
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
        let decoded = record.blocks.first().is_some_and(|block| is_decoded(block.relation));
        let deletes = opcode == heap::DELETE && decoded && !self.is_logical;
        (if deletes { KEY_BYTES } else { 0 }, false)
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
}

impl AtLevel {
    /// Nothing.
    pub const SAME: AtLevel = AtLevel { is_gone: false, more: 0, data: None };
}

/// The differences, one record after the other.
pub struct LevelChange<'t> {
    records: Peekable<Iter<'t, (Ordinal, Other)>>,
    data: Peekable<Iter<'t, (Ordinal, u16)>>,
}

impl<'t> LevelChange<'t> {
    /// From the first record on.
    pub fn new(differences: &'t Differences) -> LevelChange<'t> {
        let Differences { records, data, .. } = differences;
        LevelChange { records: records.iter().peekable(), data: data.iter().peekable() }
    }

    /// Those of a record; ordinals ascend.
    pub fn at(&mut self, ordinal: Ordinal) -> AtLevel {
        let other = of(&mut self.records, ordinal);
        AtLevel {
            is_gone: other == Some(Other::Nothing),
            more: if let Some(Other::More(more)) = other { more } else { 0 },
            data: of(&mut self.data, ordinal),
        }
    }
}

fn of<T: Copy>(list: &mut Peekable<Iter<'_, (Ordinal, T)>>, ordinal: Ordinal) -> Option<T> {
    while list.next_if(|(at, _)| *at < ordinal).is_some() {}
    list.next_if(|(at, _)| *at == ordinal).map(|(_, value)| *value)
}
