//! The part of a record that is the same in every simulated run: the bytes before it, and its length if none
//! of its pages gets an image. Most records are written so by every run whose redo point is older than the
//! last change of their pages, so that many runs cost little more than one.

use super::{Entry, TracedBlock, entry_fact};
use crate::blocks::{FIRST, NEVER, Ordinal};
use crate::position::padded;

/// How long a record is where none of its pages gets an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainLength {
    /// Bytes between the record before and this one in the base, page headers not counted: damaged, missing,
    /// or replaced.
    pub(crate) gap: u64,
    /// Whether a run writes the record so, if none of its pages was last stamped before the redo point.
    pub(crate) is_plain: bool,
    /// The oldest stamp of its pages, but for those that it makes.
    pub(crate) oldest: Ordinal,
    /// Pages that it makes, and that were never stamped before.
    pub(crate) new_pages: u8,
    /// Its length without images, padded.
    pub(crate) bytes: u64,
    /// How much longer that is than in the base.
    pub(crate) more: i64,
    /// Images that it has in the base.
    pub(crate) base_images: i64,
    /// Whether rows of its first page were looked at before.
    pub(crate) looks_at: bool,
}

/// What is not the same in every run.
const UNUSUAL: u16 = entry_fact::ALWAYS
    | entry_fact::WITH_HINTS
    | entry_fact::UNSAID
    | entry_fact::CHECK_IMAGE
    | entry_fact::DATA_ESTIMATED
    | entry_fact::FREEZES_FOR_IMAGE;

impl PlainLength {
    /// That of a record which means nothing beyond its pages, and begins where the one before ends.
    #[inline]
    pub(crate) fn of(entry: &Entry, refs: &[TracedBlock]) -> PlainLength {
        let (mut oldest, mut new_pages) = (Ordinal::MAX, 0);
        let (mut data, mut base_images, mut facts) = (0, 0, 0);
        for reference in refs {
            facts |= reference.facts;
            data += u32::from(reference.data_bytes);
            base_images += i64::from(reference.is(entry_fact::BASE_IMAGE));
            let is_new = !reference.is(entry_fact::USUAL)
                && (reference.stamped, reference.stamped_without_hints) == (NEVER, NEVER);
            if is_new {
                new_pages += u8::from(reference.is(entry_fact::STAMPS));
            } else {
                oldest = oldest.min(reference.stamped_without_hints);
            }
        }
        let bytes = padded(u64::from(entry.fixed_bytes.saturating_add(data)));
        PlainLength {
            gap: 0,
            is_plain: oldest >= FIRST && facts & UNUSUAL == 0,
            oldest,
            new_pages,
            bytes,
            more: bytes as i64 - padded(u64::from(entry.bytes)) as i64,
            base_images,
            looks_at: refs.first().is_some_and(|first| first.is(entry_fact::LOOKED_AT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::lsn::Lsn;
    use walstat_format::rmgr::RecordType;

    const USUAL: TracedBlock = TracedBlock {
        block: 1,
        stamped: 9,
        stamped_without_hints: 9,
        data_bytes: 20,
        image_bytes: 2000,
        stored_bytes: 0,
        facts: entry_fact::USUAL | entry_fact::STAMPS,
    };

    fn plain(blocks: &[TracedBlock]) -> PlainLength {
        let (kind, refs) = (RecordType { rmgr: 10, slot: 0 }, blocks.len() as u8);
        let entry =
            Entry { lsn: Lsn(0), bytes: 2050, fixed_bytes: 30, kind, refs, rows: 0, table: 0 };
        PlainLength::of(&entry, blocks)
    }

    #[test]
    fn it_is_that_of_the_record_with_its_data_and_without_images() {
        let imaged = TracedBlock { facts: USUAL.facts | entry_fact::BASE_IMAGE, ..USUAL };
        let both = plain(&[imaged, TracedBlock { stamped_without_hints: 7, ..USUAL }]);
        assert_eq!((both.bytes, both.more), (72, 72 - 2056));
        assert_eq!((both.oldest, both.base_images, both.is_plain), (7, 1, true));
    }

    #[test]
    fn new_pages_have_no_stamp_that_counts() {
        let new = TracedBlock {
            stamped: NEVER,
            stamped_without_hints: NEVER,
            facts: entry_fact::STAMPS,
            ..USUAL
        };
        assert_eq!((plain(&[new]).new_pages, plain(&[new]).oldest), (1, Ordinal::MAX));
        assert!(plain(&[new]).is_plain);
    }

    #[test]
    fn what_depends_on_the_run_is_not_plain() {
        for facts in [
            entry_fact::ALWAYS,
            entry_fact::WITH_HINTS,
            entry_fact::UNSAID,
            entry_fact::CHECK_IMAGE,
        ] {
            assert!(!plain(&[TracedBlock { facts: USUAL.facts | facts, ..USUAL }]).is_plain);
        }
        let unseen = TracedBlock { stamped_without_hints: NEVER, ..USUAL };
        assert!(
            !plain(&[unseen]).is_plain,
            "it may have been changed before the WAL that is there"
        );
    }
}
