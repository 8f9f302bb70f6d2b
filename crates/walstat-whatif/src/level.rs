//! What records have more or less at the other wal_level: logical decoding wants whole new rows, old
//! keys, and to know which database and top-level transaction a record belongs to
//! (`XLogLogicalInfoActive` in `src/backend/access/`).
//!
//! From logical to replica that is all in the WAL. The other way it is not: keys of deleted rows are
//! taken for one integer, command ids and invalidations are counted as changes of catalogs need them, and
//! old rows of tables whose replica identity is FULL are a possibility.

use super::redo;
use super::trace::{RecordDelta, WalLevelDelta};
use super::whole_record::{WholeRecord, main_header_bytes};
use hashbrown::HashMap;
use walstat_format::block::{DATA_HEADER_SHORT_BYTES, RelFileLocator, TOPLEVEL_XID_BYTES};
use walstat_format::cursor::at as field_at;
use walstat_format::payload::heap;
use walstat_format::payload::heap::{Delete, OPCODE_MASK, Update, delete_flag, update_flag};
use walstat_format::payload::heap2::{MULTI_INSERT, NEW_CID};
use walstat_format::payload::xact;
use walstat_format::payload::xact::End;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_format::rmgr::{HEAP, HEAP2, TRANSACTION};

/// Database and tablespace in the record of a commit; `xinfo`, which says so.
const DATABASE_BYTES: i32 = xact::DBINFO_BYTES as i32;
const XINFO_BYTES: i32 = xact::XINFO_BYTES as i32;
/// An old key of one integer: header, bitmap of columns, value.
const KEY_BYTES: i32 = 5 + 1 + 4;
/// `Heap2/NEW_CID` for a row of a catalog, with its padding.
const NEW_CID_BYTES: i32 = 64;
/// A record of invalidations: its head, and a message.
const INVALIDATIONS_BYTES: i32 = (RECORD_HEADER_BYTES + DATA_HEADER_SHORT_BYTES) as i32 + 4;
const MESSAGE_BYTES: i32 = 16;
/// A row of a table that nothing was seen of.
const ROW_BYTES: u16 = 100;

/// Says of one record after the other what differs at the other level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Differences {
    /// The length of the last row that was seen, by table.
    rows: HashMap<RelFileLocator, u16>,
    /// The table of the last one.
    last: Option<(RelFileLocator, u16)>,
    /// Whether the level is logical: something is there that only logical decoding wants.
    pub(crate) is_logical: bool,
}

impl Differences {
    /// What differs of a record; `row`: data of its first block where no image is taken, `elsewhere` the
    /// same at the other level where that differs.
    pub(crate) fn of(
        &mut self,
        record: &WholeRecord<'_>,
        row: u16,
        elsewhere: Option<u16>,
    ) -> WalLevelDelta {
        let main_bytes = record.main_data().len();
        let (bare, is_logical) = match record.header.rmgr {
            HEAP if record.info() & OPCODE_MASK == heap::TRUNCATE => return self.only_logical(),
            HEAP => self.row(record, main_bytes),
            HEAP2 if record.info() & OPCODE_MASK == NEW_CID => return self.only_logical(),
            TRANSACTION if is_invalidations(record) || names_toplevel(record) => {
                return self.only_logical();
            }
            TRANSACTION => transaction(record),
            _ => (0, false),
        };
        let toplevel = if record.has_toplevel_xid() { -(TOPLEVEL_XID_BYTES as i32) } else { 0 };
        self.is_logical |= is_logical || toplevel != 0;
        let length = elsewhere.or(Some(row).filter(|bytes| *bytes > 0));
        let (guess, old_row) = if self.is_logical { (0, 0) } else { self.guess(record, length) };
        let more = bare + toplevel;
        let differs = more != 0 || guess != 0;
        WalLevelDelta {
            record: differs.then_some(RecordDelta::More { more, guess }),
            data: elsewhere,
            old_row,
        }
    }

    fn is_of_catalog(&self, record: &WholeRecord<'_>) -> bool {
        record.blocks.first().is_some_and(|block| !redo::is_decoded(block.relation))
    }

    /// What the logical level adds that the record does not show: the old key of a change or what decoding
    /// has to know of catalogs, and the old row as a possibility (`ExtractReplicaIdentity`,
    /// `log_heap_new_cid`, `LogLogicalInvalidations`). `length`: the new row's.
    fn guess(&mut self, record: &WholeRecord<'_>, length: Option<u16>) -> (i32, u16) {
        let Some(block) = record.blocks.first() else { return (invalidations(record), 0) };
        if block.fork != 0 || ![HEAP, HEAP2].contains(&record.header.rmgr) {
            return (0, 0);
        }
        if self.is_of_catalog(record) {
            return (NEW_CID_BYTES * changed_rows(record), 0);
        }
        if record.header.rmgr != HEAP {
            return (0, 0);
        }
        match record.info() & OPCODE_MASK {
            heap::INSERT => {
                if let Some(length) = length {
                    self.saw(block.relation, length);
                }
                (0, 0)
            }
            heap::UPDATE | heap::HOT_UPDATE => {
                let known = self.known(block.relation);
                let length = length.unwrap_or(known).max(known);
                self.saw(block.relation, length);
                (0, length)
            }
            heap::DELETE => (KEY_BYTES, self.known(block.relation)),
            _ => (0, 0),
        }
    }

    /// The length of a row of a table.
    fn known(&self, table: RelFileLocator) -> u16 {
        match self.last {
            Some((last, length)) if last == table => length,
            _ => self.rows.get(&table).copied().unwrap_or(ROW_BYTES),
        }
    }

    fn saw(&mut self, table: RelFileLocator, length: u16) {
        match &mut self.last {
            Some((last, known)) if *last == table => *known = length,
            last => {
                if let Some((table, length)) = last.replace((table, length)) {
                    self.rows.insert(table, length);
                }
            }
        }
    }

    fn only_logical(&mut self) -> WalLevelDelta {
        self.is_logical = true;
        WalLevelDelta { record: Some(RecordDelta::NotWritten), ..WalLevelDelta::default() }
    }

    /// A change of a row: the old row or its key, in the main data.
    fn row(&self, record: &WholeRecord<'_>, main_bytes: usize) -> (i32, bool) {
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
fn changed_rows(record: &WholeRecord<'_>) -> i32 {
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
fn invalidations(record: &WholeRecord<'_>) -> i32 {
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
pub(crate) fn keeps_data_at_logical(record: &WholeRecord<'_>) -> bool {
    let opcode = record.info() & OPCODE_MASK;
    let writes_rows = match record.header.rmgr {
        HEAP => matches!(opcode, heap::INSERT | heap::UPDATE | heap::HOT_UPDATE),
        HEAP2 => opcode == MULTI_INSERT,
        _ => false,
    };
    writes_rows && record.blocks.first().is_some_and(|block| redo::is_decoded(block.relation))
}

fn main_length(bytes: usize) -> i32 {
    let header = main_header_bytes(bytes) as i32;
    header + i32::try_from(bytes).unwrap_or(i32::MAX - header)
}

/// Subtransactions that are assigned to their transaction at a time otherwise (`PGPROC_MAX_CACHED_SUBXIDS`).
const ASSIGNED: i32 = 64;

/// An assignment that is there only because the top-level transaction was not in the WAL before.
fn names_toplevel(record: &WholeRecord<'_>) -> bool {
    record.info() & xact::OPCODE_MASK == xact::ASSIGNMENT
        && field_at(record.main_data(), 4).is_some_and(|count: i32| count < ASSIGNED)
}

/// `XLOG_XACT_INVALIDATIONS` (14 and later).
fn is_invalidations(record: &WholeRecord<'_>) -> bool {
    record.info() & xact::OPCODE_MASK == xact::INVALIDATIONS
}

/// A commit says its database where caches have to forget something, and at level logical.
fn transaction(record: &WholeRecord<'_>) -> (i32, bool) {
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
pub(crate) struct AppliedDelta {
    /// It is not written.
    pub(crate) is_gone: bool,
    /// More bytes of it, blocks apart.
    pub(crate) more: i32,
    /// Data of its first block, where they are others.
    pub(crate) data: Option<u16>,
    /// Bytes of it that are a guess.
    pub(crate) guessed: u32,
    /// Bytes of the old row, where the replica identity is FULL.
    pub(crate) old_row: u16,
}

impl AppliedDelta {
    /// Nothing.
    pub(crate) const SAME: AppliedDelta =
        AppliedDelta { is_gone: false, more: 0, data: None, guessed: 0, old_row: 0 };
}

/// What the other level changes; `to_logical`: that is logical.
pub(crate) fn at(delta: WalLevelDelta, to_logical: bool) -> AppliedDelta {
    let (more, guess) = match delta.record {
        Some(RecordDelta::More { more, guess }) => (more, if to_logical { guess } else { 0 }),
        None | Some(RecordDelta::NotWritten) => (0, 0),
    };
    AppliedDelta {
        is_gone: delta.record == Some(RecordDelta::NotWritten),
        more: more + guess,
        data: delta.data,
        guessed: guess.unsigned_abs(),
        old_row: if to_logical { delta.old_row } else { 0 },
    }
}
