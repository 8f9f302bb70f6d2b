//! Pages of extensions, logged by their differences (`applyPageRedo` and `computeDelta` in
//! `src/backend/access/transam/generic_xlog.c`; 9.6 and later).

use super::{DataBytes, Redo};
use crate::page::Page;
use std::ops::Range;
use walstat_format::cursor::Cursor;

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = before?;
    let mut cursor = Cursor::new(redo.data());
    while !cursor.rest().is_empty() {
        let (offset, len): (u16, u16) = cursor.field()?;
        page.put(offset.into(), cursor.take(len.into())?)?;
    }
    Some(page)
}

/// Offset and length of a fragment; a run of equal bytes that is no longer does not end one.
const FRAGMENT_HEADER_BYTES: usize = 4;
/// The page's LSN and checksum are not its content: they are put in when the record is written.
const STAMP_BYTES: usize = 10;

pub(crate) fn data_bytes(_: Redo<'_>, after: &Page, before: Option<&Page>) -> Option<DataBytes> {
    fragments(before?, after)
}

/// Bytes of the fragments by which a page differs from the page before it.
fn fragments(before: &Page, after: &Page) -> Option<DataBytes> {
    let lower = region(before, after, 0..after.lower(), 0..before.lower());
    let upper = region(before, after, after.upper()..after.size(), before.upper()..before.size());
    DataBytes::exact(lower + upper)
}

/// Bytes of the fragments in which a part of a page differs from the page before it; what does not lie in
/// the same part there differs.
fn region(before: &Page, after: &Page, part: Range<usize>, valid: Range<usize>) -> usize {
    let byte = |page: &Page, at: usize| page.bytes().get(at).copied();
    let is_same = |at: usize| {
        valid.contains(&at) && (at < STAMP_BYTES || byte(before, at) == byte(after, at))
    };
    let (mut bytes, mut open, mut equal, mut end) = (0, None, 0, 0);
    for at in part {
        if is_same(at) {
            equal += 1;
        } else {
            equal = 0;
            open.get_or_insert(at);
        }
        // Equal bytes that are worth a header end a fragment before them.
        if let Some(begin) = open.filter(|_| equal > FRAGMENT_HEADER_BYTES) {
            bytes += FRAGMENT_HEADER_BYTES + at + 1 - equal - begin;
            (open, equal) = (None, 0);
        }
        end = at + 1;
    }
    let rest = open.map_or(0, |begin| FRAGMENT_HEADER_BYTES + end - equal - begin);
    bytes + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with content in front of 100 and from 200 on, and some bytes of it.
    fn page(bytes: &[(usize, u8)]) -> Page {
        let mut page = Page::new(8192, 0).expect("a page");
        page.set_lower(100).expect("room");
        page.set_upper(200).expect("room");
        bytes.iter().for_each(|(at, byte)| page.put(*at, &[*byte]).expect("room"));
        page
    }

    #[test]
    fn fragments_are_those_that_the_server_makes() {
        let before = page(&[]);
        let bytes = |after: &[(usize, u8)]| fragments(&before, &page(after)).map(|data| data.bytes);
        assert_eq!(bytes(&[]), Some(0));
        assert_eq!(bytes(&[(0, 9), (9, 9)]), Some(0), "the stamp is not content");
        assert_eq!(bytes(&[(50, 1)]), Some(4 + 1));
        // Four equal bytes between are taken along, five are not.
        assert_eq!(bytes(&[(50, 1), (55, 1)]), Some(4 + 6));
        assert_eq!(bytes(&[(50, 1), (56, 1)]), Some(4 + 1 + 4 + 1));
        // In both parts, and at the very end; the hole is nothing.
        assert_eq!(bytes(&[(99, 1), (150, 1), (8191, 1)]), Some(4 + 1 + 4 + 1));
        // What was in the hole before is new.
        let mut longer = page(&[]);
        longer.set_lower(110).expect("room");
        let grown = fragments(&before, &longer).map(|data| data.bytes);
        assert_eq!(grown, Some(4 + 1 + 4 + 10), "pd_lower, and ten bytes");
    }
}
