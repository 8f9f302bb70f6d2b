//! What is the same of a record in every simulated run: what lies before it, and its length where none of
//! its pages gets an image. Most records are written so by every run whose redo point is older than the
//! last change of their pages, so that many runs cost little more than one.

use super::base::Base;
use super::blocks::{FIRST, NEVER, Ordinal};
use super::position::{Geometry, padded};
use super::trace::{Entry, Mark, Noted, Ref, fact};
use crate::wal::lsn::Lsn;

/// A record in outline.
#[derive(Debug, Clone, Copy)]
pub struct Outline {
    /// Bytes between the record before and this one in the base, page headers not counted: damaged, missing,
    /// or replaced.
    pub gap: u64,
    /// Whether all that is said below holds, if no page of it was stamped before the redo point.
    pub is_plain: bool,
    /// The oldest stamp of its pages, but for those that it makes.
    pub oldest: Ordinal,
    /// Pages that it makes, and that were never stamped before.
    pub new_pages: u8,
    /// Its length without images, padded.
    pub bytes: u64,
    /// How much longer that is than in the base.
    pub more: i64,
    /// Images that it has in the base.
    pub base_images: i64,
    /// Whether rows of its first page were looked at before.
    pub looks_at: bool,
}

/// What is not the same in every run.
const UNUSUAL: u16 = fact::ALWAYS
    | fact::WITH_HINTS
    | fact::UNSAID
    | fact::CHECK_IMAGE
    | fact::DATA_ESTIMATED
    | fact::FREEZES_FOR_IMAGE;

impl Outline {
    /// That of a record which means nothing beyond its pages, and begins where the one before ends.
    pub fn of(entry: &Entry, refs: &[Ref]) -> Outline {
        let (mut oldest, mut new_pages) = (Ordinal::MAX, 0);
        let (mut data, mut base_images, mut facts) = (0, 0, 0);
        for reference in refs {
            facts |= reference.facts;
            data += u32::from(reference.data_bytes);
            base_images += i64::from(reference.is(fact::BASE_IMAGE));
            let is_new = !reference.is(fact::USUAL)
                && (reference.stamped, reference.stamped_without_hints) == (NEVER, NEVER);
            if is_new {
                new_pages += u8::from(reference.is(fact::STAMPS));
            } else {
                oldest = oldest.min(reference.stamped_without_hints);
            }
        }
        let bytes = padded(u64::from(entry.fixed_bytes.saturating_add(data)));
        Outline {
            gap: 0,
            is_plain: oldest >= FIRST && facts & UNUSUAL == 0,
            oldest,
            new_pages,
            bytes,
            more: bytes as i64 - padded(u64::from(entry.bytes)) as i64,
            base_images,
            looks_at: refs.first().is_some_and(|first| first.is(fact::LOOKED_AT)),
        }
    }
}

/// Outlines one record of the range after the other.
pub struct Outliner {
    geometry: Geometry,
    end: Lsn,
    /// Where the next record lies if nothing is between.
    usable: u64,
    /// The record before: where it lies, and that without page headers.
    before: Option<(Lsn, u64)>,
}

impl Outliner {
    /// At the start of the range.
    pub fn new(base: &Base) -> Outliner {
        let (geometry, end) = (base.geometry, base.end);
        let usable = geometry.usable(base.start);
        Outliner { geometry, end, usable, before: Some((base.start, usable)) }
    }

    /// The next record.
    pub fn next(&mut self, noted: &Noted<'_>) -> Outline {
        let gap = self.gap(noted);
        let outline = Outline::of(noted.entry, noted.refs);
        let is_plain = outline.is_plain && noted.mark.is_none();
        Outline { gap, is_plain, ..outline }
    }

    /// Goes on after records with so many bytes, padded, between which is nothing.
    pub fn pass(&mut self, bytes: u64) {
        self.usable += bytes;
        self.before = None;
    }

    fn gap(&mut self, noted: &Noted<'_>) -> u64 {
        let lsn = noted.entry.lsn;
        let page = |lsn: Lsn| lsn.0 / self.geometry.page;
        let near = self.before.filter(|(before, _)| page(lsn) == page(*before) && lsn >= *before);
        let here = near.map_or_else(
            || self.geometry.usable(lsn),
            |(before, usable)| usable + (lsn.0 - before.0),
        );
        let gap = here.saturating_sub(self.usable);
        self.before = Some((lsn, here));
        self.usable = here + padded(u64::from(noted.entry.bytes));
        if noted.mark == Some(Mark::Switch) {
            self.usable = self.geometry.next_segment(self.usable);
        }
        gap
    }

    /// What is left of the range after its last record.
    pub fn rest(&self) -> u64 {
        self.geometry.usable(self.end).saturating_sub(self.usable)
    }
}
