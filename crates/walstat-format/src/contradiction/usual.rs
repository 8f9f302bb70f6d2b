//! What a usual record of each type is like, in which nothing can be wrong: a few comparisons tell it from
//! those that have to be looked at closer.

use super::OFFSET_MAX;
use super::blocks::BLOCKS;
use super::by_type::{Row, TYPES, type_index, without_flag};
use super::data::DATA;
use super::images::WANTED;
use super::lengths::LENGTHS;
use crate::block::{
    BLOCK_HEADER_BYTES, DATA_HEADER_SHORT_BYTES, HAS_IMAGE, ONE_IMAGE_HEAD_BYTES, USUAL_HEAD_BYTES,
    WILL_INIT,
};
use crate::image::IMAGE_HEADER_BYTES;
use crate::payload::brin::opcode as brin;
use crate::payload::btree::opcode as btree;
use crate::payload::gin::opcode as gin;
use crate::payload::gist::opcode as gist;
use crate::payload::hash::opcode as hash;
use crate::payload::heap2::{self, PRUNES};
use crate::payload::spgist::opcode as spgist;
use crate::payload::{heap, multixact, relmap, standby, xact, xlog};
use crate::record::Record;
use crate::record_header::{CHECK_CONSISTENCY, RECORD_HEADER_BYTES};
use crate::rmgr::{
    BRIN, BTREE, DATABASE, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, MULTIXACT, RELMAP, SPGIST,
    STANDBY, STORAGE, TABLESPACE, TRANSACTION, XLOG,
};

/// What of the main data of a type is looked at, beside how long they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing.
    Blocks,
    /// Offset numbers at these two places (`xl_heap_insert`, `xl_heap_update` and their like), the second one
    /// not before the first; twice the same where there is one.
    Offsets([Place; 2]),
    /// Lists, and structures of a length of their own.
    Lists,
    /// Lists that are read only of a page that is not restored from an image.
    ListsIfRedone,
}
use Look::{Lists, ListsIfRedone, Offsets};

/// Where in the main data an offset number lies, and the least and the most that it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub at: u8,
    pub least: u16,
    pub most: u16,
}

/// An offset number that is looked up.
const fn of(at: u8) -> Place {
    Place { at, least: 1, most: OFFSET_MAX }
}

/// One where something is put: with number 0, wherever there is room (`PageAddItemExtended`).
const fn put(at: u8) -> Place {
    Place { at, least: 0, most: OFFSET_MAX }
}

/// The same of an index, where nothing was compared before: what is no offset number is as 0.
const fn put_anywhere(at: u8) -> Place {
    Place { at, least: 0, most: u16::MAX }
}

/// The same on a page that is made anew.
const fn first(at: u8) -> Place {
    Place { at, least: 0, most: 1 }
}

const LOOKED_AT: [(u8, u8, Look); 70] = [
    (XLOG, xlog::CHECKPOINT_SHUTDOWN, Lists),
    (XLOG, xlog::CHECKPOINT_ONLINE, Lists),
    (XLOG, xlog::OVERWRITE_CONTRECORD, Lists),
    // Without it nothing but a time.
    (TRANSACTION, xact::COMMIT | xact::HAS_INFO, Lists),
    (TRANSACTION, xact::ABORT | xact::HAS_INFO, Lists),
    (TRANSACTION, xact::COMMIT_PREPARED, Lists),
    (TRANSACTION, xact::ABORT_PREPARED, Lists),
    (TRANSACTION, xact::PREPARE, Lists),
    (TRANSACTION, xact::ASSIGNMENT, Lists),
    (TRANSACTION, xact::INVALIDATIONS, Lists),
    (STORAGE, 0x10, Lists),
    (DATABASE, 0x10, Lists),
    (DATABASE, 0x20, Lists),
    (TABLESPACE, 0x00, Lists),
    (MULTIXACT, multixact::CREATE_ID, Lists),
    (RELMAP, relmap::UPDATE, Lists),
    (STANDBY, standby::LOCK, Lists),
    (STANDBY, standby::RUNNING_XACTS, Lists),
    (STANDBY, standby::INVALIDATIONS, Lists),
    (HEAP2, PRUNES[0], ListsIfRedone),
    (HEAP2, PRUNES[1], Lists),
    (HEAP2, PRUNES[2], Lists),
    (HEAP2, heap2::MULTI_INSERT, Lists),
    (HEAP2, heap2::LOCK_UPDATED, Offsets([of(4); 2])),
    (HEAP, heap::INSERT, Offsets([put(0); 2])),
    (HEAP, heap::INSERT | heap::INIT_PAGE, Offsets([first(0); 2])),
    (HEAP, heap::DELETE, Offsets([of(4); 2])),
    (HEAP, heap::UPDATE, Offsets([of(4), put(12)])),
    (HEAP, heap::HOT_UPDATE, Offsets([of(4), put(12)])),
    (HEAP, heap::CONFIRM, Offsets([of(0); 2])),
    (HEAP, heap::LOCK, Offsets([of(4); 2])),
    (HEAP, heap::INPLACE, Offsets([of(0); 2])),
    (BTREE, btree::INSERT_LEAF, Offsets([put_anywhere(0); 2])),
    (BTREE, btree::INSERT_UPPER, Offsets([put_anywhere(0); 2])),
    (BTREE, btree::INSERT_META, Offsets([put_anywhere(0); 2])),
    (BTREE, btree::NEWROOT, Lists),
    (BTREE, btree::SPLIT_L, Lists),
    (BTREE, btree::SPLIT_R, Lists),
    (BTREE, btree::SPLIT_L_OR_INSERT_POST, Lists),
    (BTREE, btree::SPLIT_R_OR_DEDUP, Lists),
    (BTREE, btree::MARK_PAGE_HALFDEAD, Offsets([put(0); 2])),
    (BTREE, btree::DELETE, Lists),
    (BTREE, btree::VACUUM, Lists),
    (GIN, gin::CREATE_PTREE, Lists),
    (GIN, gin::INSERT, Lists),
    (GIN, gin::UPDATE_META_PAGE, Lists),
    (GIN, gin::INSERT_LISTPAGE, Lists),
    (GIN, gin::VACUUM_DATA_LEAF_PAGE, Lists),
    (HASH, hash::INSERT, Offsets([put_anywhere(0); 2])),
    (HASH, hash::MOVE_PAGE_CONTENTS, Lists),
    (HASH, hash::SQUEEZE_PAGE, Lists),
    (HASH, hash::DELETE, Lists),
    (HASH, hash::VACUUM_ONE_PAGE, Lists),
    (GIST, gist::PAGE_UPDATE, Lists),
    (GIST, gist::DELETE, Lists),
    (GIST, gist::PAGE_SPLIT, Lists),
    (GIST, gist::PAGE_DELETE, Lists),
    (SPGIST, spgist::ADD_LEAF, Lists),
    (SPGIST, spgist::MOVE_LEAFS, Lists),
    (SPGIST, spgist::ADD_NODE, Lists),
    (SPGIST, spgist::SPLIT_TUPLE, Lists),
    (SPGIST, spgist::PICKSPLIT, Lists),
    (SPGIST, spgist::VACUUM_LEAF, Lists),
    (SPGIST, spgist::VACUUM_ROOT, Lists),
    (SPGIST, spgist::VACUUM_REDIRECT, Lists),
    (BRIN, brin::INSERT, Lists),
    (BRIN, brin::UPDATE, Lists),
    (BRIN, brin::SAMEPAGE_UPDATE, Lists),
    (BRIN, brin::DESUMMARIZE, Lists),
    (GENERIC, 0x00, Lists),
];

/// What of the main data of a type is looked at.
pub(super) fn look(rmgr: u8, info: u8) -> Look {
    LOOKS[type_index(rmgr, info)]
}

/// By type; a flag that redo does not look at makes no other one.
static LOOKS: [Look; TYPES] = {
    let mut looks = [Look::Blocks; TYPES];
    let mut row = 0;
    while row < LOOKED_AT.len() {
        let (rmgr, info, look) = LOOKED_AT[row];
        looks[type_index(rmgr, info)] = look;
        row += 1;
    }
    let mut at = 0;
    while at < TYPES {
        if let (Look::Blocks, Some(plain)) = (looks[at], without_flag(at)) {
            looks[at] = looks[plain];
        }
        at += 1;
    }
    looks
};

/// A usual record of a type: it has one block, of id 0, without an image or with one that is replayed and not
/// compressed.
#[derive(Clone, Copy)]
struct Usual {
    /// Of these bits of its id and flags, before the length of its data,
    mask: u32,
    /// it has these.
    bits: u32,
    /// The block's data are at least as long, without an image
    data_bytes: u8,
    /// and with one.
    data_bytes_beside_image: u8,
    /// The main data are at least as long.
    main_bytes: u8,
    /// There are offset numbers at these places of the main data; [`NO_PLACE`]: there are none.
    offsets: [u8; 2],
    closer: Closer,
}

const NO_PLACE: u8 = u8::MAX;

/// Which records of a type are looked at closer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closer {
    /// Unusual ones with images.
    WithImages,
    /// Unusual ones.
    Unusual,
    /// All.
    All,
}

impl Usual {
    /// What is true of all types.
    const NONE: Usual = Usual {
        mask: ID_MASK,
        bits: 0,
        data_bytes: 0,
        data_bytes_beside_image: 0,
        main_bytes: 0,
        offsets: [NO_PLACE; 2],
        closer: Closer::WithImages,
    };

    /// With what another release, or the first one, says of the block's mark.
    const fn marked(self, is_made: Option<bool>) -> Usual {
        let mask = in_start(WILL_INIT);
        let bits = match is_made {
            Some(true) => mask,
            _ => 0,
        };
        let is_agreed = self.mask & mask == 0 || self.bits & mask == bits;
        let is_usual = is_made.is_some() && is_agreed && !matches!(self.closer, Closer::All);
        let closer = if is_usual { Closer::Unusual } else { Closer::All };
        Usual { mask: self.mask | mask, bits: self.bits | bits, closer, ..self }
    }

    const fn with_image(self) -> Usual {
        let image = in_start(HAS_IMAGE);
        Usual { mask: self.mask | image, bits: self.bits | image, ..self }
    }

    /// The same with so many bytes of data, without an image and with one.
    const fn with_data(self, bytes: Option<[u8; 2]>) -> Usual {
        match bytes {
            Some([without, beside]) => Usual {
                data_bytes: larger(self.data_bytes, without),
                data_bytes_beside_image: larger(self.data_bytes_beside_image, beside),
                ..self
            },
            None => Usual { closer: Closer::All, ..self },
        }
    }

    const fn with_main(self, bytes: u32) -> Usual {
        Usual { main_bytes: larger(self.main_bytes, bytes as u8), ..self }
    }

    const fn looked_at(self, look: Look) -> Usual {
        match look {
            Look::Blocks => self,
            Look::Offsets([first, second]) if first.most >= OFFSET_MAX => {
                Usual { offsets: [first.at, second.at], ..self }
            }
            Look::ListsIfRedone => Usual { closer: Closer::Unusual, ..self.with_image() },
            Look::Offsets(_) | Look::Lists => Usual { closer: Closer::All, ..self },
        }
    }

    /// Where all are looked at closer, no block is a usual one.
    const fn finished(self) -> Usual {
        match self.closer {
            Closer::All => Usual { mask: 0, bits: 1, ..self },
            _ => self,
        }
    }
}

/// All bits of the id of a block, in the first four bytes of its header.
const ID_MASK: u32 = 0xFF;

/// A flag of a block in the first four bytes of its header.
const fn in_start(flag: u8) -> u32 {
    (flag as u32) << 8
}

const fn larger(a: u8, b: u8) -> u8 {
    if a > b { a } else { b }
}

/// By type; what holds in all releases.
static USUAL: [Usual; TYPES] = {
    let mut usual = [Usual::NONE; TYPES];
    let mut row = 0;
    while row < BLOCKS.rows.len() {
        let Row { rmgr, info, what, .. } = &BLOCKS.rows[row];
        let at = type_index(*rmgr, *info);
        usual[at] = usual[at].marked(what.usual_mark());
        row += 1;
    }
    row = 0;
    while row < WANTED.len() {
        let at = type_index(WANTED[row].rmgr, WANTED[row].info);
        usual[at] = usual[at].with_image();
        row += 1;
    }
    row = 0;
    while row < DATA.rows.len() {
        let Row { rmgr, info, what, .. } = &DATA.rows[row];
        usual[type_index(*rmgr, *info)] = usual[type_index(*rmgr, *info)].with_data(what.usual());
        row += 1;
    }
    row = 0;
    while row < LENGTHS.rows.len() {
        let Row { rmgr, info, what, .. } = &LENGTHS.rows[row];
        usual[type_index(*rmgr, *info)] = usual[type_index(*rmgr, *info)].with_main(*what);
        row += 1;
    }
    let mut at = 0;
    while at < TYPES {
        if let (ID_MASK, Some(plain)) = (usual[at].mask, without_flag(at)) {
            usual[at] = usual[plain];
        }
        at += 1;
    }
    at = 0;
    while at < TYPES {
        usual[at] = usual[at].looked_at(LOOKS[at]).finished();
        at += 1;
    }
    usual
};

/// Bytes before the payload of a record with one image, which is not compressed, and no main data.
const BARE_IMAGE_HEAD_BYTES: usize = ONE_IMAGE_HEAD_BYTES - DATA_HEADER_SHORT_BYTES;

/// Where the byte `bimg_info` of such an image lies, the last one of its header.
const IMAGE_INFO_AT: usize =
    RECORD_HEADER_BYTES + BLOCK_HEADER_BYTES + IMAGE_HEADER_BYTES as usize - 1;

/// Whether a record is a usual one of its type, with nothing wrong in it.
#[inline(always)]
pub(super) fn is_usual(record: &Record<'_>) -> bool {
    let (header, parts) = (&record.header, &record.parts);
    let usual = &USUAL[usize::from(u16::from_le_bytes([header.info, header.rmgr]) >> 4)];
    if header.info & CHECK_CONSISTENCY != 0 || parts.main_data_bytes < u32::from(usual.main_bytes) {
        return false;
    }
    let head = record.body.head;
    let is_block = |least: u8| {
        let start = head.get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + 4);
        start.and_then(<[u8]>::first_chunk).is_some_and(|start| {
            let start = u32::from_le_bytes(*start);
            start & usual.mask == usual.bits && start >> 16 >= u32::from(least)
        })
    };
    match parts.head_bytes as usize {
        USUAL_HEAD_BYTES => is_block(usual.data_bytes) && has_offsets(record, usual.offsets),
        ONE_IMAGE_HEAD_BYTES | BARE_IMAGE_HEAD_BYTES if parts.fpi_count == 1 => {
            has_plain_image(record) && is_block(usual.data_bytes_beside_image)
        }
        _ => usual.closer == Closer::WithImages && parts.fpi_count == 0,
    }
}

/// Whether the image of a record of such a form is replayed and not compressed.
#[inline(always)]
fn has_plain_image(record: &Record<'_>) -> bool {
    let flags = record.version.image_flags;
    let info = record.body.head.get(IMAGE_INFO_AT);
    info.is_some_and(|info| flags.is_applied(*info) && !flags.is_compressed(*info))
}

/// Whether the offset numbers at these places are possible, if there are any.
#[inline(always)]
fn has_offsets(record: &Record<'_>, [first, second]: [u8; 2]) -> bool {
    if first == NO_PLACE {
        return true;
    }
    let main_at = record.header.total_bytes.wrapping_sub(record.parts.main_data_bytes) as usize;
    // Numbers count from 1.
    let is_possible = |place: u8| {
        let at = main_at + usize::from(place);
        let number = record.body.head.get(at..at + 2).and_then(<[u8]>::first_chunk);
        number.is_some_and(|number| u16::from_le_bytes(*number).wrapping_sub(1) < OFFSET_MAX)
    };
    is_possible(first) && (first == second || is_possible(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(rmgr: u8, info: u8) -> Usual {
        USUAL[type_index(rmgr, info)]
    }

    #[test]
    fn a_flag_that_redo_does_not_look_at_makes_no_other_type() {
        let closer = |info| usual(HEAP, info).closer;
        assert!(closer(heap::DELETE | heap::INIT_PAGE) == Closer::Unusual);
        assert!(closer(heap::INSERT | heap::INIT_PAGE) == Closer::All);
        assert!(usual(HEAP2, heap2::MULTI_INSERT | heap::INIT_PAGE).closer == Closer::All);
    }

    #[test]
    fn what_releases_disagree_on_is_looked_at_closer() {
        assert!(usual(BTREE, btree::SPLIT_R_OR_DEDUP).closer == Closer::All);
        assert!(usual(HEAP, heap::INSERT).closer == Closer::Unusual);
        assert!(usual(XLOG, xlog::NEXTOID).closer == Closer::WithImages);
    }

    #[test]
    fn a_length_that_is_compared_is_the_longest_of_all_releases() {
        assert_eq!(usual(XLOG, xlog::PARAMETER_CHANGE).main_bytes, 28);
        assert!(LENGTHS.rows.iter().all(|row| row.what < 256));
    }
}
