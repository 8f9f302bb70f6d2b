//! Where reading goes on after something that is no record, in the same page. A record says where the
//! one before it starts (`xl_prev`), so a valid one shows that the WAL goes on here, and that what lies
//! before it is damage. Old content of a recycled segment does not count: it links to places at least a
//! segment before.

use super::page_buffer::Page;
use super::scope::{Head, Scope};
use walstat_format::lsn::{Lsn, MAXALIGN};
use walstat_format::record_header::{PREVIOUS_OFFSET, RECORD_HEADER_BYTES, RecordHeader};

/// Bytes of `xl_prev`.
const LINK_BYTES: usize = 8;

/// A record that lies within another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// It lies in the page and is valid: so the length of the other one is wrong.
    Whole(usize),
    /// It goes on after the page, so it cannot be verified: the bytes may be an LSN in a page image
    /// that happens to fit. If the other record turns out not to be valid, this one is why.
    GoesOn(usize),
}

impl Scope {
    /// The first offset from `from` on where a record of this WAL may start, if only zeros lie before
    /// `zeros_to`. One that goes on after the page is assumed to be valid, until it was followed.
    pub fn next_record(&self, page: Page<'_>, from: usize, zeros_to: usize) -> Option<usize> {
        let mut places = self.places(page, zeros_to).skip_while(|&at| at < from);
        places.find(|&at| self.is_record(page, at).unwrap_or(true))
    }

    /// Whether a whole record of this WAL lies in a page whose header is wrong, if only zeros lie
    /// before `zeros_to`.
    pub fn holds_record(&self, page: Page<'_>, zeros_to: usize) -> bool {
        self.places(page, zeros_to).any(|at| self.is_record(page, at) == Some(true))
    }

    /// Whether what lies in a page from an offset on is the content of an older segment: it has a whole
    /// record of that, or goes on to the page's end, where a server that writes WAL leaves zeros.
    pub fn holds_old_content(&self, page: Page<'_>, from: usize) -> bool {
        let rest = page.bytes.get(from..).unwrap_or_default();
        let zeros = rest.iter().rev().take_while(|byte| **byte == 0).count();
        zeros < RECORD_HEADER_BYTES
            || self.headers(page, from).any(|(at, header)| {
                !self.is_near(page, at, &header) && self.is_record(page, at) == Some(true)
            })
    }

    /// Another record that lies within the one at `offset`, which by its length goes on after the page,
    /// and that links to it.
    pub fn linked_record(&self, page: Page<'_>, offset: usize) -> Option<Linked> {
        let lsn = page.lsn.0 + offset as u64;
        let from = offset + RECORD_HEADER_BYTES;
        let (links, _) = page.bytes.get(from + PREVIOUS_OFFSET..)?.as_chunks::<LINK_BYTES>();
        // Called for every record on several pages: so only bytes with a fitting link are looked at
        // further.
        let linked = links.iter().enumerate().filter(|(_, link)| u64::from_le_bytes(**link) == lsn);
        let mut may_be = None;
        for at in linked.map(|(index, _)| from + index * MAXALIGN) {
            match self.is_linked(page, at) {
                Some(true) => return Some(Linked::Whole(at)),
                Some(false) => {}
                None => may_be = may_be.or(Some(Linked::GoesOn(at))),
            }
        }
        may_be
    }

    /// Whether a whole record is at an offset where the link fits; `None` if it goes on after the page.
    fn is_linked(&self, page: Page<'_>, at: usize) -> Option<bool> {
        let place = Lsn(page.lsn.0 + at as u64);
        match header_at(page, at)?.check(self.geometry.version, place, None) {
            Ok(()) => self.is_record(page, at),
            Err(_) => Some(false),
        }
    }

    /// The offsets at which a header is that could be one of this WAL: none begins with 4 zeros.
    fn places<'p>(&'p self, page: Page<'p>, zeros_to: usize) -> impl Iterator<Item = usize> + 'p {
        let headers = self.headers(page, zeros_to);
        headers.filter(move |(at, header)| self.is_near(page, *at, header)).map(|(at, _)| at)
    }

    /// The headers in a page from an offset on that could be those of any WAL, each with its offset.
    fn headers<'p>(
        &'p self,
        page: Page<'p>,
        from: usize,
    ) -> impl Iterator<Item = (usize, RecordHeader)> + 'p {
        let from = from / MAXALIGN * MAXALIGN;
        let last = page.bytes.len().saturating_sub(RECORD_HEADER_BYTES);
        (from..=last).step_by(MAXALIGN).filter_map(move |at| {
            let lsn = Lsn(page.lsn.0 + at as u64);
            let header = header_at(page, at)?;
            header.check(self.geometry.version, lsn, None).ok().map(|()| (at, header))
        })
    }

    /// Whether a record says that the one before it lies less than a segment before.
    fn is_near(&self, page: Page<'_>, at: usize, header: &RecordHeader) -> bool {
        let segment = u64::from(self.geometry.segment_bytes);
        header.previous.0.saturating_add(segment) > page.lsn.0 + at as u64
    }

    /// Whether the record at an offset is valid; `None` if it goes on after the page.
    fn is_record(&self, page: Page<'_>, at: usize) -> Option<bool> {
        let total = header_at(page, at)?.total_bytes as usize;
        let bytes = page.bytes.get(at..at.checked_add(total)?)?;
        let lsn = Lsn(page.lsn.0 + at as u64);
        let head = Head { bytes, crc: self.body_crc(bytes) };
        Some(self.decode(lsn..Lsn(lsn.0 + total as u64), head, None).is_ok())
    }
}

/// Where the record before begins, as the one at an offset says.
pub(super) fn links_to(page: Page<'_>, at: usize) -> Option<Lsn> {
    header_at(page, at).map(|header| header.previous)
}

fn header_at(page: Page<'_>, at: usize) -> Option<RecordHeader> {
    page.bytes.get(at..)?.first_chunk().map(RecordHeader::parse)
}
