//! Places without a valid record.
//!
//! A [`Gap`] opens where the next record should be and is not. If a valid record follows, it
//! was damage; if nothing follows, it was the end (see [`super::ending`]).

use super::books::Books;
use crate::input::problem::{Elsewhere, Fetched, Problem, ProblemKind};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::block::BodyFault;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::{Lsn, MAXALIGN};
use walstat_format::page::{Geometry, PageFault};
use walstat_format::record_header::HeaderFault;
use walstat_format::version::Version;

/// Why there is no valid record at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The page is not the one that belongs there.
    Page(PageFault),
    /// The bytes cannot be a record header.
    Header(HeaderFault),
    /// The checksum is right, but the parts do not add up to the record's length.
    Body(BodyFault),
    /// The record's checksum fails.
    Checksum {
        /// As computed.
        found: u32,
        /// As the record says.
        expected: u32,
    },
    /// The page does not continue the record, or continues a record that did not begin before it.
    Continuation {
        /// `xlp_rem_len` of the page, if it says that it continues a record.
        found: Option<u32>,
        /// Bytes still to come of the record begun earlier.
        expected: Option<u32>,
    },
    /// The file ends inside a page or a record, or before the segment is full.
    Cut,
    /// The bytes cannot be read: an I/O error, a damaged compressed file.
    Unreadable(String),
}

/// What the pages behind a place without a valid record are, all together: the last one here that any of
/// them is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PagesBehind {
    /// None was seen.
    Unseen,
    /// Zeros, or copies of the page on which a timeline was left.
    Unwritten,
    /// Those of an older segment, which a server has not overwritten yet.
    Old,
    /// Others.
    Other,
}

/// A part of the WAL without a valid record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Where the record should be.
    pub start: Lsn,
    /// Where the reason was seen: the record itself, or a later page.
    pub seen_at: Lsn,
    /// The reason.
    pub cause: Cause,
    /// Length of the record at `start`, if its header is plausible.
    pub record_bytes: Option<u32>,
    /// What the bytes are, if the WAL ends here.
    pub counts: Books,
    /// Whether old content follows in the segment where the gap starts.
    pub stale_follows: bool,
    /// Whether the rest of the page where it starts is what a server has not overwritten yet, up to that
    /// page's end, as its content shows.
    pub rest_is_old: bool,
    /// What the pages after that one are.
    pub pages_behind: PagesBehind,
    /// Whether a valid record of this WAL lies in it, on a page whose header is wrong.
    pub record_follows: bool,
    /// The first place in each segment of which it is certain that something else belongs there.
    pub bad_places: Vec<BadPlace>,
}

/// A place in a gap where something else belongs: a page that is not the one that belongs there, or no valid
/// record where one has to begin, as the pages before it in the segment say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadPlace {
    /// Where it is.
    pub lsn: Lsn,
    /// What is wrong with it.
    pub cause: Cause,
    /// Length of the record there, if its header is plausible.
    pub record_bytes: Option<u32>,
    /// Bytes of the gap before it.
    pub bytes_before: u64,
}

/// The first valid record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where it says that the record before starts.
    pub previous: Lsn,
}

impl First {
    /// One after the range, of which only the place is known.
    pub fn beyond(lsn: Lsn) -> First {
        First { lsn, previous: Lsn(0) }
    }
}

/// The last record before a segment's first one, as far as the bytes before it tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preceding {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where the next one would start, if it is whole.
    pub next: Lsn,
    /// Whether it goes on in that segment.
    pub goes_on: bool,
    /// Whether it is a switch that another record in its page links to.
    pub is_followed: bool,
}

impl Preceding {
    /// Whether the records of two neighbouring segments do not link; `next`: the first of the later one. It
    /// has to say that the record before it lies in the earlier one: then it is no damage that hides
    /// records. Where a valid record lies in both they fit, and the link alone is wrong.
    pub(super) fn is_apart(self, next: First, geometry: &Geometry) -> Option<Elsewhere> {
        let Preceding { lsn: last, next: end, goes_on, is_followed } = self;
        let bytes = u64::from(geometry.segment_bytes);
        let begin = Lsn(next.lsn.0 - next.lsn.0 % bytes);
        let earlier = Lsn(begin.0.saturating_sub(bytes))..begin;
        let is_apart = next.previous != last
            && end <= begin
            && earlier.contains(&last)
            && earlier.contains(&next.previous)
            && next.previous.0.is_multiple_of(MAXALIGN as u64);
        is_apart.then_some(Elsewhere::Apart { last, goes_on, is_followed })
    }
}

impl Gap {
    /// One in which nothing was seen yet.
    pub fn new(start: Lsn, seen_at: Lsn, cause: Cause, record_bytes: Option<u32>) -> Gap {
        Gap {
            start,
            seen_at,
            cause,
            record_bytes,
            counts: Books::default(),
            stale_follows: false,
            rest_is_old: false,
            pages_behind: PagesBehind::Unseen,
            record_follows: false,
            bad_places: Vec::new(),
        }
    }

    /// Whether all of it is what a server has not overwritten yet, as far as it was seen.
    pub(super) fn is_old(&self) -> bool {
        self.rest_is_old && self.pages_behind < PagesBehind::Other
    }

    /// Takes note of a place where something else belongs, if it is the first one in its segment.
    pub(super) fn note_bad_place(
        &mut self,
        geometry: &Geometry,
        lsn: Lsn,
        cause: Cause,
        record_bytes: Option<u32>,
    ) {
        if self.bad_places.last().is_none_or(|last| !geometry.are_in_one_segment(last.lsn, lsn)) {
            let bytes_before = self.counts.total();
            self.bad_places.push(BadPlace { lsn, cause, record_bytes, bytes_before });
        }
    }

    /// The pages among the bad places.
    pub(super) fn bad_pages(&self) -> impl Iterator<Item = Lsn> {
        let pages = self.bad_places.iter().filter(|it| matches!(it.cause, Cause::Page(_)));
        pages.map(|it| it.lsn)
    }

    /// Whether what is said of its pages can be, if it lies in one segment, `of`.
    pub(super) fn is_sound(&self, of: &Range<Lsn>) -> bool {
        let is_within =
            |it: &BadPlace| of.contains(&it.lsn) && it.bytes_before <= self.counts.total();
        self.bad_places.len() <= 1 && self.bad_places.iter().all(is_within)
    }

    /// Takes over the gap with which the next run begins.
    pub(super) fn go_on(&mut self, next: Gap) {
        let before = self.counts.total();
        let places = next.bad_places.into_iter();
        self.bad_places
            .extend(places.map(|it| BadPlace { bytes_before: before + it.bytes_before, ..it }));
        self.counts.merge(&next.counts);
        self.record_follows |= next.record_follows;
    }

    /// The record that this gap is in the place of, or the one before it, `last`, if the gap begins with a
    /// segment: what the first record of that segment, `next`, has to link to.
    pub(super) fn preceding(
        &self,
        last: Option<Preceding>,
        next: First,
        geometry: &Geometry,
    ) -> Option<Preceding> {
        let begin = Lsn(next.lsn.0 - next.lsn.0 % u64::from(geometry.segment_bytes));
        match self.cause {
            Cause::Continuation { .. } if self.start == begin => last,
            Cause::Continuation { .. } | Cause::Checksum { .. }
                if self.start < begin && self.end(geometry) > begin =>
            {
                let lsn = self.start;
                Some(Preceding { lsn, next: lsn, goes_on: true, is_followed: false })
            }
            _ => None,
        }
    }

    /// The problems to report for this gap, if a record follows it; `next`: the first one, if it is known.
    /// Its own comes first. Where something in other segments is certain to be wrong as well, each has one.
    pub(super) fn problems(&self, next: Option<First>, geometry: &Geometry) -> Vec<Problem> {
        let first = self.problem(next, geometry);
        let blamed = first.lsn.unwrap_or(self.start);
        let is_apart = |at: Lsn, place: &&BadPlace| !geometry.are_in_one_segment(place.lsn, at);
        let others = self.bad_places.iter().filter(|it| is_apart(blamed, it));
        let others = others.filter(|it| is_apart(self.start, it));
        let mut end = self.counts.total();
        let own = |place: &BadPlace| {
            let skipped_bytes = end - place.bytes_before;
            end = place.bytes_before;
            place.problem(skipped_bytes, geometry)
        };
        let mut problems: Vec<Problem> = others.rev().map(own).collect();
        problems.push(Problem { skipped_bytes: end, ..first });
        problems.reverse();
        problems
    }

    /// The problem to report for this gap, if a record follows it; `next`: the first one, if it is
    /// known. A record in two files is told of the file that is wrong, at the place where it is.
    pub fn problem(&self, next: Option<First>, geometry: &Geometry) -> Problem {
        let (expected, found) = self.cause.texts(self.seen_at, geometry.version);
        let blamed = Some(self.blamed(next, geometry))
            .filter(|at| !geometry.are_in_one_segment(*at, self.start));
        let elsewhere = match blamed {
            None if self.may_be_wrong_later(geometry) => Some(Elsewhere::GoesOn {
                segments: u32::try_from(self.segments_after(geometry)).unwrap_or(u32::MAX),
                to: self.end(geometry),
            }),
            Some(_) => {
                let may_be_wrong = self.ends_alike(geometry);
                Some(Elsewhere::Begins { at: self.start, may_be_wrong })
            }
            None => (self.seen_at != self.start).then_some(Elsewhere::SeenAt(self.seen_at)),
        };
        Problem {
            lsn: blamed.or(Some(self.start)),
            elsewhere,
            fetched: (self.cause == Cause::Cut).then_some(Fetched::InAnotherSize),
            skipped_bytes: self.counts.total(),
            ..Problem::of_file(self.cause.kind(), "", expected, found)
        }
    }

    /// Where the bytes are wrong, as far as that can be told.
    fn blamed(&self, next: Option<First>, geometry: &Geometry) -> Lsn {
        match self.cause {
            Cause::Checksum { found, expected } => {
                self.wrong_byte(found ^ expected, geometry).unwrap_or(self.start)
            }
            Cause::Continuation { found: Some(left), .. }
                if self.is_continued_by(left, next, geometry) && !self.ends_alike(geometry) =>
            {
                self.start
            }
            _ => self.seen_at,
        }
    }

    /// Whether nothing tells which of the segments that a record lies in is wrong.
    fn may_be_wrong_later(&self, geometry: &Geometry) -> bool {
        let Cause::Checksum { found, expected } = self.cause else { return false };
        self.segments_after(geometry) > 0 && self.wrong_byte(found ^ expected, geometry).is_none()
    }

    /// In how many segments after its first one the record lies.
    fn segments_after(&self, geometry: &Geometry) -> u64 {
        let segment = |lsn: Lsn| lsn.0 / u64::from(geometry.segment_bytes);
        segment(Lsn(self.end(geometry).0 - 1)).saturating_sub(segment(self.start))
    }

    /// Where the record ends, by its length.
    fn end(&self, geometry: &Geometry) -> Lsn {
        geometry.advance(self.start, u64::from(self.record_bytes.unwrap_or(0)).max(1))
    }

    /// The place of the one byte that makes the checksum fail.
    fn wrong_byte(&self, difference: u32, geometry: &Geometry) -> Option<Lsn> {
        let offset = Crc32c::wrong_byte(difference, self.record_bytes? as usize)?;
        // The byte itself, which may be the first one on a page.
        let after = geometry.advance(self.start, offset as u64 + 1);
        Some(Lsn(after.0 - 1))
    }

    /// Whether what the record announces and what the page announces end at the same place, since records
    /// begin at multiples of 8 bytes: then the next record does not tell which of both is right.
    fn ends_alike(&self, geometry: &Geometry) -> bool {
        let Cause::Continuation { found: Some(found), expected: Some(expected) } = self.cause
        else {
            return false;
        };
        let end = |left: u32| geometry.advance(self.seen_at, u64::from(left)).aligned();
        end(found) == end(expected)
    }

    /// Whether the page is right in what it continues: the next record follows the bytes that it
    /// announces, and links to this one. Then this one's length is wrong.
    fn is_continued_by(&self, left: u32, next: Option<First>, geometry: &Geometry) -> bool {
        let end = geometry.advance(self.seen_at, u64::from(left)).aligned();
        next.is_some_and(|next| next.previous == self.start && next.lsn == geometry.first_byte(end))
    }
}

impl BadPlace {
    fn problem(&self, skipped_bytes: u64, geometry: &Geometry) -> Problem {
        let alone = Gap::new(self.lsn, self.lsn, self.cause.clone(), self.record_bytes);
        Problem { skipped_bytes, ..alone.problem(None, geometry) }
    }
}

impl Cause {
    /// Whether it is told of a record of which all bytes are there.
    pub(super) fn is_of_record(&self) -> bool {
        matches!(self, Cause::Header(_) | Cause::Body(_) | Cause::Checksum { .. })
    }

    /// The kind of problem.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Cause::Page(PageFault::Zero) => ProblemKind::ZeroPage,
            Cause::Page(PageFault::Magic { .. }) => ProblemKind::PageMagic,
            Cause::Page(PageFault::Flags { .. }) => ProblemKind::PageFlags,
            Cause::Page(PageFault::Foreign { .. }) => ProblemKind::ForeignSegment,
            Cause::Page(PageFault::Address { .. } | PageFault::Left { .. }) => {
                ProblemKind::PageAddress
            }
            Cause::Page(PageFault::Timeline { .. }) => ProblemKind::PageTimeline,
            Cause::Header(HeaderFault::Length { found: 0 }) => ProblemKind::ZeroHole,
            Cause::Header(HeaderFault::Length { .. } | HeaderFault::Overlap { .. }) => {
                ProblemKind::RecordLength
            }
            Cause::Header(HeaderFault::Rmgr { .. }) => ProblemKind::Rmgr,
            Cause::Header(HeaderFault::Previous { .. }) => ProblemKind::PrevLink,
            Cause::Body(_) => ProblemKind::RecordBody,
            Cause::Checksum { .. } => ProblemKind::Checksum,
            Cause::Continuation { .. } => ProblemKind::Continuation,
            Cause::Cut => ProblemKind::Truncated,
            Cause::Unreadable(_) => ProblemKind::Unreadable,
        }
    }

    /// The problem of a file whose first page, at `lsn`, is wrong.
    pub(super) fn problem_of(&self, file: &str, lsn: Lsn, geometry: &Geometry) -> Problem {
        let (expected, found) = self.texts(lsn, geometry.version);
        Problem { lsn: Some(lsn), ..Problem::of_file(self.kind(), file, expected, found) }
    }

    /// What was expected and what was found at `lsn`.
    fn texts(&self, lsn: Lsn, version: &Version) -> (String, String) {
        match self {
            Cause::Page(fault) => (fault.expected(lsn), fault.found()),
            Cause::Header(fault) => (fault.expected(version), fault.found()),
            Cause::Body(fault) => ("parts that add up to the record".into(), fault.to_string()),
            Cause::Checksum { found, expected } => {
                (format!("checksum 0x{expected:08X}"), format!("checksum 0x{found:08X}"))
            }
            Cause::Continuation { found, expected } => {
                let text = |left: &Option<u32>| match left {
                    Some(bytes) => format!("a page that continues a record by {bytes} bytes"),
                    None => "a page that continues no record".into(),
                };
                (text(expected), text(found))
            }
            Cause::Cut => ("the rest of the segment".into(), "end of file".into()),
            Cause::Unreadable(text) => ("readable bytes".into(), text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::books::Heading;
    use super::*;

    #[test]
    fn what_others_say_of_a_bad_page_has_to_fit_its_gap() {
        let span = Lsn(0x10_0000)..Lsn(0x20_0000);
        let mut gap = Gap::new(span.start, span.start, Cause::Cut, None);
        gap.counts.add(Heading::Zero, 8192);
        assert!(gap.is_sound(&span));
        let cause = Cause::Page(PageFault::Zero);
        let page = |lsn, bytes_before| BadPlace {
            lsn,
            cause: cause.clone(),
            record_bytes: None,
            bytes_before,
        };
        gap.bad_places = vec![page(Lsn(0x10_2000), 8192)];
        assert!(gap.is_sound(&span));
        for wrong in [page(Lsn(0x10_2000), 8193), page(span.end, 0), page(Lsn(0), u64::MAX)] {
            gap.bad_places = vec![wrong.clone()];
            assert!(!gap.is_sound(&span), "{wrong:?}");
        }
        gap.bad_places = vec![page(Lsn(0x10_2000), 0), page(Lsn(0x10_4000), 8192)];
        assert!(!gap.is_sound(&span), "one a segment");
    }
}
