//! The bytes of a record, whatever pages they lie on: borrowed where what is asked for lies in one
//! piece, copied where a page header stands between.

use crate::page::SHORT_HEADER_BYTES;
use std::borrow::Cow;

/// The bytes of a record.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    /// The first piece: all bytes, or those on the page where the record starts.
    pub head: &'a [u8],
    /// The pages on which it goes on, each with its header; what follows the record too.
    pages: &'a [u8],
    page_bytes: usize,
}

impl<'a> Body<'a> {
    /// A record, or the beginning of one, in one piece.
    #[inline(always)]
    pub fn in_one_piece(head: &'a [u8]) -> Body<'a> {
        Body { head, pages: &[], page_bytes: 0 }
    }

    /// A record that begins with `head` and goes on after the headers of `pages`, each of
    /// `page_bytes`, none of them the first of a segment.
    #[inline(always)]
    pub fn over_pages(head: &'a [u8], pages: &'a [u8], page_bytes: usize) -> Body<'a> {
        Body { head, pages, page_bytes }
    }

    /// `length` bytes from byte `from` of the record on; `None` if they are not all there.
    #[inline(always)]
    pub fn get(&self, from: usize, length: usize) -> Option<Cow<'a, [u8]>> {
        match self.head.get(from..from.checked_add(length)?) {
            Some(piece) => Some(Cow::Borrowed(piece)),
            None => self.over_its_pages(from, length),
        }
    }

    #[inline(never)]
    fn over_its_pages(self, from: usize, length: usize) -> Option<Cow<'a, [u8]>> {
        let first = self.at(from, length)?;
        if first.len() == length {
            return Some(Cow::Borrowed(first));
        }
        let mut joined = Vec::with_capacity(length);
        self.join(from, length, &mut joined)?;
        Some(Cow::Owned(joined))
    }

    /// `length` bytes from the first one on: borrowed, or put together in `room`.
    #[inline(always)]
    pub fn first_in<'r>(&self, length: usize, room: &'r mut Vec<u8>) -> Option<&'r [u8]>
    where
        'a: 'r,
    {
        if let Some(piece) = self.head.get(..length) {
            return Some(piece);
        }
        room.clear();
        self.join(0, length, room)?;
        Some(room)
    }

    /// Adds `length` bytes from the first one on to `out`; `false`, and nothing added, if they are not all
    /// there.
    pub fn append_to(&self, length: usize, out: &mut Vec<u8>) -> bool {
        if let Some(piece) = self.head.get(..length) {
            out.extend_from_slice(piece);
            return true;
        }
        let start = out.len();
        while out.len() - start < length {
            let done = out.len() - start;
            let Some(piece) = self.at(done, length - done) else {
                out.truncate(start);
                return false;
            };
            out.extend_from_slice(piece);
        }
        true
    }

    #[inline(never)]
    fn join(&self, from: usize, length: usize, joined: &mut Vec<u8>) -> Option<()> {
        while joined.len() < length {
            let piece = self.at(from + joined.len(), length - joined.len())?;
            joined.extend_from_slice(piece);
        }
        Some(())
    }

    /// Up to `most` bytes in one piece from byte `from` on; `None` where there are none.
    fn at(&self, from: usize, most: usize) -> Option<&'a [u8]> {
        match self.head.get(from..).filter(|rest| !rest.is_empty()) {
            _ if most == 0 => Some(&[]),
            Some(rest) => rest.get(..most.min(rest.len())),
            None => self.piece(from - self.head.len(), most),
        }
    }

    /// Up to `most` bytes on one page, from byte `at` after the first piece on.
    fn piece(&self, at: usize, most: usize) -> Option<&'a [u8]> {
        let content = self.page_bytes.checked_sub(SHORT_HEADER_BYTES)?;
        let (page, offset) = (at.checked_div(content)?, at % content);
        let start = page * self.page_bytes + SHORT_HEADER_BYTES + offset;
        self.pages.get(start..start + most.min(content - offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 32 bytes: headers of 0xFF, then 8 bytes that count on.
    fn pages(count: u8) -> Vec<u8> {
        let page = |number: u8| {
            let content = (0..8).map(move |byte| 4 + number * 8 + byte);
            std::iter::repeat_n(0xFF, SHORT_HEADER_BYTES).chain(content)
        };
        (0..count).flat_map(page).collect()
    }

    #[test]
    fn any_part_of_a_record_over_pages_is_found() {
        let pages = pages(3);
        let body = Body::over_pages(&[0, 1, 2, 3], &pages, 32);
        let whole: Vec<u8> = (0..28).collect();
        for from in 0..=28 {
            for length in 0..=28 - from {
                let found = body.get(from, length);
                assert_eq!(found.as_deref(), whole.get(from..from + length), "{from}, {length}");
            }
        }
        assert!(matches!(body.get(1, 3), Some(Cow::Borrowed(_))));
        assert!(matches!(body.get(5, 6), Some(Cow::Borrowed(_))));
        assert!(matches!(body.get(3, 2), Some(Cow::Owned(_))));
    }

    #[test]
    fn what_is_not_there_is_not_invented() {
        assert_eq!(Body::in_one_piece(&[1, 2]).get(1, 2), None);
        assert_eq!(Body::over_pages(&[1], &pages(1), 32).get(0, 10), None);
        assert_eq!(Body::in_one_piece(&[1]).get(usize::MAX, 2), None);
    }
}
