//! What lies in a record's payload and cannot be, so that redo ends at it or reads what is not there: offset
//! numbers that no page has, lists that are longer than the data, images that are missing or do not unpack to
//! a page, blocks that are marked to be made anew and are not.
//!
//! Not for block references ([`crate::block::needed`]), and not for what only the pages themselves could
//! tell.

mod init;
mod lengths;

use crate::block::BlockRef;
use crate::cursor::{Cursor, at};
use crate::image::unpacked::{Unpacked, unpacked};
use crate::page_size::is_page_size;
use crate::payload::btree::{self, Removal};
use crate::payload::checkpoint::Checkpoint;
use crate::payload::heap2::{self, MultiInsert, PRUNES};
use crate::payload::invalidation::Invalidation;
use crate::payload::multixact::{self, Create};
use crate::payload::prepare::Prepare;
use crate::payload::prune::{self, Prune};
use crate::payload::standby::{self, RunningXacts};
use crate::payload::xact::{self, Assignment, End};
use crate::payload::xlog::OverwriteContrecord;
use crate::payload::{gin, hash, heap, relmap, rmgr_info, xlog};
use crate::record::Record;
use crate::rmgr::{
    BTREE, DATABASE, GIN, HASH, HEAP, HEAP2, MULTIXACT, RELMAP, RecordType, STANDBY, TABLESPACE,
    TRANSACTION, XLOG,
};
use crate::version::{Release, Version};
use serde::{Deserialize, Serialize};
use std::cell::LazyCell;

/// No page of a table, B-tree or hash index has more line pointers, whatever its size: a page of 32 kB has
/// room for 1,637 (`MaxIndexTuplesPerPage`).
pub const OFFSET_MAX: u16 = 2048;

/// What a record contradicts itself in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contradiction {
    /// An offset number that no page has.
    Offset(u16),
    /// Its data are fewer than redo reads, or than its lists.
    TooShort,
    /// Redo wants an image of the block of this id, and there is none that is replayed.
    NoImage(u8),
    /// The compressed image of the block of this id does not unpack to a page, but to so many bytes, hole
    /// included; `None`: to nothing.
    Image(u8, Option<u32>),
    /// The hole of the compressed image of the block of this id goes beyond the page.
    Hole(u8),
    /// The block of this id is marked to be made anew (`BKPBLOCK_WILL_INIT`), or not, and redo does the
    /// other.
    WillInit(u8, bool),
}

/// Nothing is looked at but images.
const NOTHING: [u8; 2] = [0xFF; 2];
/// [`contradiction`] looks at the record itself.
const CLOSER: [u8; 2] = [0xFE; 2];
/// Redo reads a structure of a fixed length.
const FIXED: [u8; 2] = [0xFD; 2];
/// Places of offset numbers come before all of these.
const PLACES_END: u8 = 0x80;

/// What is looked at in a type: offset numbers at these places of the main data (`xl_heap_insert`,
/// `xl_heap_update` and their like), twice the same where there is one; or lists and images.
const LOOKED_AT: [(u8, u8, [u8; 2]); 41] = [
    (XLOG, xlog::CHECKPOINT_SHUTDOWN, CLOSER),
    (XLOG, xlog::CHECKPOINT_ONLINE, CLOSER),
    (XLOG, xlog::OVERWRITE_CONTRECORD, CLOSER),
    (XLOG, xlog::FPI, CLOSER),
    (XLOG, xlog::FPI_FOR_HINT, CLOSER),
    (XLOG, xlog::FPI_MULTI, CLOSER),
    (TRANSACTION, xact::HAS_INFO | xact::COMMIT, CLOSER),
    (TRANSACTION, xact::HAS_INFO | xact::ABORT, CLOSER),
    (TRANSACTION, xact::HAS_INFO | xact::COMMIT_PREPARED, CLOSER),
    (TRANSACTION, xact::HAS_INFO | xact::ABORT_PREPARED, CLOSER),
    (TRANSACTION, xact::PREPARE, CLOSER),
    (TRANSACTION, xact::ASSIGNMENT, CLOSER),
    (TRANSACTION, xact::INVALIDATIONS, CLOSER),
    (MULTIXACT, multixact::CREATE_ID, CLOSER),
    (RELMAP, relmap::UPDATE, CLOSER),
    (STANDBY, standby::LOCK, CLOSER),
    (STANDBY, standby::RUNNING_XACTS, CLOSER),
    (STANDBY, standby::INVALIDATIONS, CLOSER),
    (HEAP2, PRUNES[0], CLOSER),
    (HEAP2, PRUNES[1], CLOSER),
    (HEAP2, PRUNES[2], CLOSER),
    (HEAP2, heap2::MULTI_INSERT, CLOSER),
    (HEAP2, heap2::LOCK_UPDATED, [4, 4]),
    (HEAP, heap::INSERT, [0, 0]),
    (HEAP, heap::INSERT | heap::INIT_PAGE, [0, 0]),
    (HEAP, heap::DELETE, [4, 4]),
    (HEAP, heap::UPDATE, [4, 12]),
    (HEAP, heap::UPDATE | heap::INIT_PAGE, [4, 12]),
    (HEAP, heap::HOT_UPDATE, [4, 12]),
    (HEAP, heap::CONFIRM, [0, 0]),
    (HEAP, heap::LOCK, [4, 4]),
    (HEAP, heap::INPLACE, [0, 0]),
    (BTREE, btree::opcode::INSERT_LEAF, [0, 0]),
    (BTREE, btree::opcode::INSERT_UPPER, [0, 0]),
    (BTREE, btree::opcode::INSERT_META, [0, 0]),
    (BTREE, btree::opcode::DELETE, CLOSER),
    (BTREE, btree::opcode::VACUUM, CLOSER),
    (HASH, hash::opcode::SPLIT_PAGE, CLOSER),
    (GIN, gin::opcode::CREATE_PTREE, CLOSER),
    (GIN, gin::opcode::INSERT, CLOSER),
    (GIN, gin::opcode::VACUUM_PAGE, CLOSER),
];

/// The same by resource manager and the high half of `xl_info`.
static BY_TYPE: [[u8; 2]; 1 << 12] = {
    let mut by_type = [NOTHING; 1 << 12];
    let mut row = 0;
    while row < LOOKED_AT.len() {
        let (rmgr, info, looked_at) = LOOKED_AT[row];
        by_type[(rmgr as usize) << 4 | (info >> 4) as usize] = looked_at;
        row += 1;
    }
    let mut row = 0;
    while row < lengths::FIXED.len() {
        let fixed = &lengths::FIXED[row];
        by_type[(fixed.rmgr as usize) << 4 | (fixed.info >> 4) as usize] = FIXED;
        row += 1;
    }
    by_type
};

/// Whether data of a record of this type that are too few are fewer than a structure which redo reads, and no
/// list.
pub fn has_fixed_length(record: RecordType) -> bool {
    let parsed = [xlog::CHECKPOINT_SHUTDOWN, xlog::CHECKPOINT_ONLINE, xlog::OVERWRITE_CONTRECORD];
    let (rmgr, info) = (record.rmgr, record.info());
    rmgr == XLOG && parsed.contains(&info) || looked_at(rmgr, info) == FIXED
}

/// What is looked at in a type.
#[inline(always)]
fn looked_at(rmgr: u8, info: u8) -> [u8; 2] {
    BY_TYPE[usize::from(u16::from_le_bytes([info, rmgr]) >> 4)]
}

/// In `xl_info`: redo compares each block with an image of it (`XLR_CHECK_CONSISTENCY`, from 10 on).
const CHECK_CONSISTENCY: u8 = 0x02;

/// Whether a record has to be looked at by [`contradiction`]: each with an image or of which one is wanted,
/// with lists, or with several blocks.
#[inline(always)]
pub fn may_contradict(record: &Record<'_>) -> bool {
    let (header, parts) = (&record.header, &record.parts);
    if parts.fpi_count > 0 || header.info & CHECK_CONSISTENCY != 0 {
        return true;
    }
    let [first, second] = looked_at(header.rmgr, header.info);
    if init::may_be_wrong(record) {
        return true;
    }
    if first >= PLACES_END {
        return first != NOTHING[0];
    }
    let main_at = header.total_bytes.saturating_sub(parts.main_data_bytes) as usize;
    let main = record.body.head.get(main_at..).unwrap_or_default();
    // The second place is never before the first one.
    let Some(to_second) = main.get(..usize::from(second) + 2) else { return true };
    let first = to_second.get(usize::from(first)..).and_then(<[u8]>::first_chunk);
    let (Some(first), Some(second)) = (first, to_second.last_chunk()) else { return true };
    let (first, second) = (u16::from_le_bytes(*first), u16::from_le_bytes(*second));
    // Numbers count from 1, and their most is a power of two.
    (first.wrapping_sub(1) | second.wrapping_sub(1)) >= OFFSET_MAX
}

/// What a record contradicts itself in; `None`: in nothing, or in what is not at hand.
#[inline(never)]
pub fn contradiction(record: &Record<'_>) -> Option<Contradiction> {
    let header = &record.header;
    let (rmgr, info) = (header.rmgr, header.rmgr_info());
    // Few records have to be asked for more than their blocks.
    let main = LazyCell::new(|| record.main_data());
    let wrong = |block: BlockRef| {
        // A server looks at the mark first.
        let is_wrong = init::is_wrong(record, &block, || main.as_deref());
        let wrong = is_wrong.then_some(Contradiction::WillInit(block.id, block.will_init));
        wrong.or_else(|| wrong_image(record, &block))
    };
    if let Some(found) = record.blocks().find_map(wrong) {
        return Some(found);
    }
    let main = main.as_deref()?;
    let looked_at = looked_at(rmgr, info);
    if looked_at == FIXED && main.len() < lengths::read_at_least(rmgr, info, record.version) {
        return Some(Contradiction::TooShort);
    }
    if looked_at[0] < PLACES_END {
        let number = |place: u8| at::<u16>(main, place.into());
        return match looked_at.map(number) {
            // Beside an image redo does not look at them.
            _ if record.parts.fpi_count > 0 => None,
            [Some(first), Some(second)] => {
                // Redo puts a row of number 0 wherever there is room (`PageAddItemExtended`).
                let is_inserted = rmgr == HEAP && info & heap::OPCODE_MASK == heap::INSERT;
                let numbers = u16::from(!is_inserted)..=OFFSET_MAX;
                let wrong = [first, second].into_iter().find(|it| !numbers.contains(it));
                wrong.map(Contradiction::Offset)
            }
            _ => Some(Contradiction::TooShort),
        };
    }
    let first = record.blocks().find(|block| block.id == 0 && block.data_bytes > 0);
    let data = match &first {
        Some(block) => Some(record.block_data(block)?),
        None => None,
    };
    let has_all = has_its_lists(rmgr, header.info, main, data.as_deref(), record.version);
    (!has_all).then_some(Contradiction::TooShort)
}

/// An image that is missing, or does not unpack to a page (`RestoreBlockImage` in
/// `src/backend/access/transam/xlogreader.c`).
fn wrong_image(record: &Record<'_>, block: &BlockRef) -> Option<Contradiction> {
    let (id, flags) = (block.id, record.version.image_flags);
    let Some(image) = block.image.filter(|image| flags.is_applied(image.info)) else {
        let is_compared = record.header.info & CHECK_CONSISTENCY != 0 && block.image.is_none();
        let is_wanted = is_compared && record.version.since(Release::V10);
        return (is_wanted || wants_image(record, id)).then_some(Contradiction::NoImage(id));
    };
    let compression = flags.compression(image.info)?;
    let hole_bytes = usize::from(image.hole_bytes);
    let (least, most) = match unpacked(compression, &record.image(block)?.bytes) {
        Unpacked::Bytes(bytes) => (bytes, bytes),
        // Up to 11, one that goes on after the page is refused.
        Unpacked::Room(least, most) if record.version.since(Release::V12) => (least, most),
        Unpacked::Room(_, most) => (most, most),
        Unpacked::Unknown => return None,
        Unpacked::Nothing => return Some(Contradiction::Image(id, None)),
    };
    let (least, most) = (least.saturating_add(hole_bytes), most.saturating_add(hole_bytes));
    let page = least.checked_next_power_of_two();
    let Some(page) = page.filter(|page| *page <= most && is_page_size(*page)) else {
        return Some(Contradiction::Image(id, u32::try_from(most).ok()));
    };
    // The server copies what is behind the hole without a look at how much that is.
    let hole_end = usize::from(image.hole_offset) + hole_bytes;
    (hole_end > page).then_some(Contradiction::Hole(id))
}

/// Whether redo ends where there is no image of the block of this id (`xlog_redo`, `ginRedoSplit`,
/// `ginRedoVacuumPage`, `hash_xlog_split_page`).
fn wants_image(record: &Record<'_>, id: u8) -> bool {
    let (header, version) = (&record.header, record.version);
    match (header.rmgr, header.rmgr_info()) {
        (XLOG, xlog::FPI) => true,
        (XLOG, xlog::FPI_FOR_HINT) => !version.since(Release::V15),
        (XLOG, xlog::FPI_MULTI) => !version.since(Release::V12),
        (GIN, gin::opcode::SPLIT) => id < 2,
        (GIN, gin::opcode::VACUUM_PAGE) | (HASH, hash::opcode::SPLIT_PAGE) => id == 0,
        _ => false,
    }
}

/// Whether main data and data of block 0 are as long as the lists in them, or as what redo reads of them.
fn has_its_lists(rmgr: u8, info: u8, main: &[u8], data: Option<&[u8]>, version: &Version) -> bool {
    let mut cursor = Cursor::new(main);
    match (rmgr, rmgr_info(info)) {
        (XLOG, xlog::CHECKPOINT_SHUTDOWN | xlog::CHECKPOINT_ONLINE) => {
            Checkpoint::parse(main, version.checkpoint).is_some()
        }
        (XLOG, xlog::OVERWRITE_CONTRECORD) => OverwriteContrecord::parse(main).is_some(),
        (TRANSACTION, xact::PREPARE) => Prepare::parse(main, version).is_some(),
        (TRANSACTION, xact::ASSIGNMENT) => Assignment::parse(main).is_some(),
        (TRANSACTION, xact::INVALIDATIONS) => cursor.counted_list::<Invalidation>().is_some(),
        (TRANSACTION, _) => End::parse(info, main, version).is_some(),
        (DATABASE, opcode) if database_drop(version) == Some(opcode) => {
            cursor.take(4).and_then(|_| cursor.counted_list::<u32>()).is_some()
        }
        (TABLESPACE, TABLESPACE_CREATE) => cursor.take(4).and_then(|_| cursor.text()).is_some(),
        (MULTIXACT, multixact::CREATE_ID) => Create::parse(main, version).is_some(),
        (RELMAP, relmap::UPDATE) => relmap::has_map(main),
        (STANDBY, standby::LOCK) => standby::has_locks(main),
        (STANDBY, standby::RUNNING_XACTS) => RunningXacts::parse(main).is_some(),
        (STANDBY, standby::INVALIDATIONS) => standby::has_invalidations(main),
        (HEAP2, heap2::MULTI_INSERT) => MultiInsert::parse(info, main).is_some(),
        (HEAP2, opcode) if PRUNES.contains(&opcode) => {
            let is_none = prune::is_cleanup_info(opcode, version);
            is_none || Prune::parse(info, main, data, version).is_some()
        }
        (BTREE, btree::opcode::DELETE) => Removal::delete(main, data, version).is_some(),
        (BTREE, btree::opcode::VACUUM) => Removal::vacuum(main, data, version).is_some(),
        (GIN, gin::opcode::CREATE_PTREE) => {
            cursor.field::<u32>().and_then(|bytes| cursor.take(bytes as usize)).is_some()
        }
        // Two blocks of children, after the flags.
        (GIN, gin::opcode::INSERT) => {
            gin::Insert::parse(main).is_some_and(|insert| insert.is_leaf || main.len() >= 10)
        }
        _ => true,
    }
}

/// `XLOG_TBLSPC_CREATE`.
const TABLESPACE_CREATE: u8 = 0x00;

/// `XLOG_DBASE_DROP` with a list of tablespaces (`xl_dbase_drop_rec`), from 13 on.
fn database_drop(version: &Version) -> Option<u8> {
    let has_list = version.since(Release::V13);
    has_list.then_some(if version.since(Release::V15) { 0x20 } else { 0x10 })
}
