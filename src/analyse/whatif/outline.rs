//! What is the same of a record in every simulated run: what lies before it, and its length where none of
//! its pages gets an image. Most records are written so by every run whose redo point is older than the
//! last change of their pages, so that many runs cost little more than one.

use super::base::Base;
use super::blocks::{FIRST, Ordinal};
use super::position::{Geometry, padded};
use super::trace::{Mark, Noted, Ref, fact};
use crate::wal::lsn::Lsn;

/// A record in outline.
#[derive(Debug, Clone, Copy)]
pub struct Outline {
    /// Bytes between the record before and this one in the base, page headers not counted: damaged, missing,
    /// or replaced.
    pub gap: u64,
    /// Whether all that is said below holds, if no page of it was stamped before the redo point.
    pub is_plain: bool,
    /// The oldest stamp of its pages.
    pub oldest: Ordinal,
    /// Its length without images, padded.
    pub bytes: u64,
    /// How much longer that is than in the base.
    pub more: i64,
    /// Images that it has in the base.
    pub base_images: i64,
    /// Whether rows of its first page were looked at before.
    pub looks_at: bool,
}

/// Outlines one record of the range after the other.
pub struct Outliner {
    geometry: Geometry,
    end: Lsn,
    /// Where the next record lies if nothing is between.
    usable: u64,
    /// The record before: where it lies, and that without page headers.
    before: (Lsn, u64),
}

impl Outliner {
    /// At the start of the range.
    pub fn new(base: &Base) -> Outliner {
        let (geometry, end) = (base.geometry, base.end);
        let usable = geometry.usable(base.start);
        Outliner { geometry, end, usable, before: (base.start, usable) }
    }

    /// The next record.
    pub fn next(&mut self, noted: &Noted<'_>) -> Outline {
        let gap = self.gap(noted);
        let flags = |facts: u16| noted.refs.iter().any(|reference| reference.facts & facts != 0);
        let unusual = fact::ALWAYS
            | fact::WITH_HINTS
            | fact::UNSAID
            | fact::CHECK_IMAGE
            | fact::DATA_ESTIMATED
            | fact::FREEZES_FOR_IMAGE;
        let stamps = noted.refs.iter().map(|reference| reference.stamped_without_hints);
        let oldest = stamps.min().unwrap_or(Ordinal::MAX);
        let data: u32 = noted.refs.iter().map(|reference| u32::from(reference.data_bytes)).sum();
        let bytes = padded(u64::from(noted.entry.fixed_bytes + data));
        let base_images = noted.refs.iter().filter(|r| r.is(fact::BASE_IMAGE)).count();
        Outline {
            gap,
            is_plain: noted.mark.is_none() && oldest >= FIRST && !flags(unusual),
            oldest,
            bytes,
            more: bytes as i64 - padded(u64::from(noted.entry.bytes)) as i64,
            base_images: base_images as i64,
            looks_at: noted.refs.first().is_some_and(|first: &Ref| first.is(fact::LOOKED_AT)),
        }
    }

    fn gap(&mut self, noted: &Noted<'_>) -> u64 {
        let (lsn, (before, usable)) = (noted.entry.lsn, self.before);
        let page = |lsn: Lsn| lsn.0 / self.geometry.page;
        let here = match lsn.0.checked_sub(before.0) {
            Some(distance) if page(lsn) == page(before) => usable + distance,
            _ => self.geometry.usable(lsn),
        };
        let gap = here.saturating_sub(self.usable);
        self.before = (lsn, here);
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
