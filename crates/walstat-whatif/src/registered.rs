//! How the server registers each block of each record: whether an image is a matter of the redo
//! point, whether the page is stamped, whether an image may leave out the page's hole.
//!
//! Only part of it is in the WAL (`BKPBLOCK_WILL_INIT`); the rest are the flags with which
//! `XLogRegisterBuffer` is called for the record type, in `src/backend/access/`.

use super::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::cursor::at;
use walstat_format::lsn::Lsn;
use walstat_format::payload::brin;
use walstat_format::payload::gin::opcode as gin_opcode;
use walstat_format::payload::hash::opcode as hash_opcode;
use walstat_format::payload::heap::OPCODE_MASK as HEAP_OPCODE;
use walstat_format::payload::heap2::VISIBLE;
use walstat_format::payload::xlog::{FPI, FPI_FOR_HINT, FPI_MULTI};
use walstat_format::rmgr::{
    BRIN, BTREE, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, SEQUENCE, SPGIST, XLOG,
};
use walstat_format::version::PageHabits;

/// When a block reference comes with an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// If the page was not stamped since the redo point.
    Usual,
    /// Always (`REGBUF_FORCE_IMAGE`).
    Always,
    /// Never (`REGBUF_NO_IMAGE`, `REGBUF_WILL_INIT`).
    Never,
    /// [`Images::Usual`] where changes of hint bits are logged, else never and without a stamp.
    WithHints,
    /// As usual or always: the record does not tell.
    Unsaid,
    /// As [`Images::Usual`], but the page counts as never stamped, because it was made anew before it was
    /// registered.
    Reset,
}

/// How a block is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registered {
    /// When it comes with an image.
    pub(crate) images: Images,
    /// Whether the page is stamped with the record's end.
    pub(crate) stamps: bool,
    /// Whether an image leaves out the hole (`REGBUF_STANDARD`).
    pub(crate) standard: bool,
}

impl Registered {
    const USUAL: Registered = Registered { images: Images::Usual, stamps: true, standard: true };
    const INIT: Registered = Registered { images: Images::Never, ..Registered::USUAL };
    const FORCED: Registered = Registered { images: Images::Always, ..Registered::USUAL };
    const UNSAID: Registered = Registered { images: Images::Unsaid, ..Registered::USUAL };
    /// Registered for its lock alone.
    const LOCKED: Registered = Registered { stamps: false, ..Registered::INIT };
    const NOT_STANDARD: Registered = Registered { standard: false, ..Registered::USUAL };

    /// The same, corrected by what the image shows: an extension's page without an LSN was just made, so its
    /// image is always taken (`GENERIC_XLOG_FULL_IMAGE`).
    pub(crate) fn seen(self, record: &WholeRecord<'_>, page_lsn: Option<Lsn>) -> Registered {
        match (record.header.rmgr, page_lsn) {
            (GENERIC, Some(Lsn(0))) => Registered { images: Images::Always, ..self },
            _ => self,
        }
    }

    /// How `record` registers `block`.
    pub(crate) fn of(record: &WholeRecord<'_>, block: &BlockRef) -> Registered {
        if block.will_init {
            return Registered::INIT;
        }
        let info = record.info();
        match record.header.rmgr {
            // Pages of the visibility map have no line pointers. Minor releases of 2025 register
            // them with the row whose change clears a bit there.
            HEAP | HEAP2 if block.fork != 0 => Registered::NOT_STANDARD,
            XLOG => xlog(record, block),
            HEAP2 => heap2(record, block),
            HASH => hash(record, block),
            GIN => gin(info, block),
            BRIN => brin_block(info, block, &record.version.pages),
            HEAP | BTREE | GIST | SEQUENCE | SPGIST => Registered::USUAL,
            GENERIC => Registered::UNSAID,
            // An extension's own: its images show what it does.
            _ => Registered::UNSAID,
        }
    }
}

fn xlog(record: &WholeRecord<'_>, block: &BlockRef) -> Registered {
    // Whether such a page is standard is said by its image alone.
    match record.info() {
        FPI | FPI_MULTI => Registered::FORCED,
        FPI_FOR_HINT if record.version.pages.hint_images_forced => Registered::FORCED,
        FPI_FOR_HINT if block.fork != 0 => Registered::NOT_STANDARD,
        FPI_FOR_HINT => Registered::USUAL,
        _ => Registered::UNSAID,
    }
}

fn heap2(record: &WholeRecord<'_>, block: &BlockRef) -> Registered {
    match (record.info() & HEAP_OPCODE, block.id) {
        (VISIBLE, 1) if record.version.pages.visible_records => {
            Registered { images: Images::WithHints, ..Registered::USUAL }
        }
        _ => Registered::USUAL,
    }
}

fn hash(record: &WholeRecord<'_>, block: &BlockRef) -> Registered {
    match (record.info(), block.id) {
        (hash_opcode::SPLIT_PAGE, _) => Registered::FORCED,
        (hash_opcode::MOVE_PAGE_CONTENTS | hash_opcode::SQUEEZE_PAGE | hash_opcode::DELETE, 0) => {
            Registered::LOCKED
        }
        // The overflow page that becomes free.
        (hash_opcode::SQUEEZE_PAGE, 2) => Registered { images: Images::Reset, ..Registered::USUAL },
        (hash_opcode::SQUEEZE_PAGE, 1) if record.version.pages.unchanged_unstamped => {
            Registered { stamps: squeeze_changes_target(record.main_data()), ..Registered::USUAL }
        }
        _ => Registered::USUAL,
    }
}

/// Whether tuples are moved to the target, or the chain of pages changes there
/// (`xl_hash_squeeze_page`: `ntups`, `is_prev_bucket_same_wrt`).
fn squeeze_changes_target(main_data: &[u8]) -> bool {
    let moved: Option<u16> = at(main_data, 8);
    let is_previous: Option<bool> = at(main_data, 11);
    moved.is_none_or(|moved| moved > 0) || is_previous.unwrap_or(true)
}

fn gin(info: u8, block: &BlockRef) -> Registered {
    match (info, block.id) {
        (gin_opcode::SPLIT, 0..=2) | (gin_opcode::VACUUM_PAGE, _) => Registered::FORCED,
        // Pages of before 9.4 have no `pd_lower`.
        (gin_opcode::DELETE_PAGE, 0 | 2) => Registered::NOT_STANDARD,
        _ => Registered::USUAL,
    }
}

fn brin_block(info: u8, block: &BlockRef, habits: &PageHabits) -> Registered {
    match (info & brin::OPCODE_MASK, block.id) {
        (brin::opcode::REVMAP_EXTEND, 0) if !habits.brin_meta_standard => Registered::NOT_STANDARD,
        // Pages of the range map have no line pointers.
        (brin::opcode::INSERT | brin::opcode::UPDATE, 1) | (brin::opcode::DESUMMARIZE, 0) => {
            Registered::NOT_STANDARD
        }
        _ => Registered::USUAL,
    }
}
