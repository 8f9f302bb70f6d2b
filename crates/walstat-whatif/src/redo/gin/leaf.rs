//! Leaves of a GIN index's trees of rows: segments of compressed lists of rows, which a record
//! changes one by one (`ginRedoRecompress` in `src/backend/access/gin/ginxlog.c`,
//! `ginpostinglist.c`).

use crate::page::Page;
use crate::redo::DataBytes;
use walstat_format::cursor::{Cursor, at};
use walstat_format::data_page::gin_page::POSTING_LIST_HEADER_BYTES;
use walstat_format::data_page::{ITEM_POINTER_BYTES as TID_BYTES, PAGE_HEADER_BYTES};
use walstat_format::payload::gin::segment_action as action;

/// Segments begin behind the page's header and its upper bound.
pub(crate) const DATA_AT: usize = PAGE_HEADER_BYTES + 8;

/// Fills a new leaf.
pub(crate) fn set(page: &mut Page, segments: &[u8]) -> Option<()> {
    page.put(DATA_AT, segments)?;
    page.set_lower(u16::try_from(DATA_AT + segments.len()).ok()?)
}

/// Length of the segment at the start of `bytes`.
fn segment_bytes(bytes: &[u8]) -> Option<usize> {
    let packed: u16 = at(bytes, TID_BYTES)?;
    Some(POSTING_LIST_HEADER_BYTES + usize::from(packed).next_multiple_of(2))
}

/// Takes the next segment.
fn segment<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (segment, after) = rest.split_at_checked(segment_bytes(rest)?)?;
    *rest = after;
    Some(segment)
}

fn segments(page: &Page) -> Option<Vec<&[u8]>> {
    let mut rest = page.bytes().get(DATA_AT..page.lower())?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.push(segment(&mut rest)?);
    }
    Some(all)
}

/// Does what the record says to the segments.
pub(crate) fn recompress(page: &mut Page, data: &[u8]) -> Option<()> {
    let old: Vec<Vec<u8>> = segments(page)?.into_iter().map(<[u8]>::to_vec).collect();
    let mut new: Vec<Vec<u8>> = Vec::with_capacity(old.len());
    let mut next = 0usize;
    let mut cursor = Cursor::new(data);
    let count: u16 = cursor.field()?;
    for _ in 0..count {
        let (number, done): (u8, u8) = cursor.field()?;
        let number = usize::from(number);
        new.extend(old.get(next..number)?.iter().cloned());
        next = number;
        match done {
            action::DELETE => next += 1,
            action::INSERT => new.push(logged(&mut cursor)?),
            action::REPLACE => {
                new.push(logged(&mut cursor)?);
                next += 1;
            }
            action::ADD_ITEMS => {
                let count: u16 = cursor.field()?;
                let rows = cursor.take(usize::from(count) * TID_BYTES)?;
                new.push(merged(old.get(next)?, rows)?);
                next += 1;
            }
            _ => return None,
        }
    }
    new.extend(old.get(next..)?.iter().cloned());
    set(page, &new.concat())
}

fn logged(cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let bytes = segment_bytes(cursor.rest())?;
    cursor.take(bytes).map(<[u8]>::to_vec)
}

/// A row's place as one number: 11 bits are kept for the line pointer.
fn number_of(tid: &[u8]) -> Option<u64> {
    let (high, low): (u16, u16) = at(tid, 0)?;
    let offset: u16 = at(tid, 4)?;
    let block = u64::from(high) << 16 | u64::from(low);
    Some(block << 11 | u64::from(offset))
}

fn tid_of(number: u64) -> [u8; TID_BYTES] {
    let (block, offset) = (number >> 11, (number & 0x7FF) as u16);
    let parts = [(block >> 16) as u16, block as u16, offset].map(u16::to_le_bytes);
    let mut tid = [0; TID_BYTES];
    tid.copy_from_slice(parts.as_flattened());
    tid
}

/// The rows of a segment: differences in groups of 7 bits, the lowest first.
fn decode(segment: &[u8]) -> Option<Vec<u64>> {
    let mut value = number_of(segment)?;
    let packed: u16 = at(segment, TID_BYTES)?;
    let mut rows = vec![value];
    let (mut delta, mut shift) = (0u64, 0u32);
    for byte in segment.get(POSTING_LIST_HEADER_BYTES..)?.get(..packed.into())? {
        delta |= u64::from(byte & 0x7F).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            value = value.checked_add(delta)?;
            rows.push(value);
            (delta, shift) = (0, 0);
        }
    }
    Some(rows)
}

fn encode(rows: &[u64]) -> Option<Vec<u8>> {
    let (&first, rest) = rows.split_first()?;
    let mut packed = Vec::new();
    let mut before = first;
    for &row in rest {
        let mut delta = row.checked_sub(before)?;
        while delta > 0x7F {
            packed.push(0x80 | (delta & 0x7F) as u8);
            delta >>= 7;
        }
        packed.push(delta as u8);
        before = row;
    }
    let mut segment = tid_of(first).to_vec();
    segment.extend(u16::try_from(packed.len()).ok()?.to_le_bytes());
    segment.extend(&packed);
    segment.resize(segment.len().next_multiple_of(2), 0);
    Some(segment)
}

fn merged(segment: &[u8], rows: &[u8]) -> Option<Vec<u8>> {
    let mut all = decode(segment)?;
    for tid in rows.chunks_exact(TID_BYTES) {
        all.push(number_of(tid)?);
    }
    all.sort_unstable();
    all.dedup();
    encode(&all)
}

/// Number and kind before what is done to a segment; their count before all.
const ACTION_BYTES: usize = 2;
const COUNT_BYTES: usize = 2;

/// What a record would have said to make `after` of `before` (`computeLeafRecompressWALData`).
pub(crate) fn data_bytes(after: &Page, before: Option<&Page>) -> Option<DataBytes> {
    let new = segments(after)?;
    let Some(old) = before.and_then(segments) else {
        return DataBytes::estimated(COUNT_BYTES + ACTION_BYTES + 2 + TID_BYTES);
    };
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(same..)?, new.get(same..)?);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let tail = pairs.take_while(|(old, new)| old == new).count();
    let old = old.get(..old.len() - tail)?;
    let new = new.get(..new.len() - tail)?;
    let mut bytes = COUNT_BYTES;
    let pairs = old.len().min(new.len());
    for (old, new) in old.iter().zip(new) {
        bytes += if old == new { 0 } else { ACTION_BYTES + replaced_bytes(old, new)? };
    }
    bytes += new.iter().skip(pairs).map(|new| ACTION_BYTES + new.len()).sum::<usize>();
    bytes += ACTION_BYTES * (old.len() - pairs);
    if old.len() == new.len() {
        DataBytes::exact(bytes)
    } else {
        // Which segments were made of which is not to be seen.
        DataBytes::estimated(bytes)
    }
}

/// Rows are added one by one if that is shorter than the segment.
fn replaced_bytes(old: &[u8], new: &[u8]) -> Option<usize> {
    let (was, is) = (decode(old)?, decode(new)?);
    let added = is.len().checked_sub(was.len()).filter(|_| was.iter().all(|row| is.contains(row)));
    Some(match added {
        Some(added) if added * TID_BYTES <= new.len() => 2 + added * TID_BYTES,
        _ => new.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packed_and_unpacked() {
        let rows = [5, 6, 300, 70_000, 1 << 42];
        let segment = encode(&rows).expect("rows");
        assert_eq!(decode(&segment).as_deref(), Some(&rows[..]));
        assert_eq!(segment_bytes(&segment), Some(segment.len()));
        let more = [tid_of(7), tid_of(301)].concat();
        let merged = merged(&segment, &more).expect("rows");
        assert_eq!(decode(&merged), Some(vec![5, 6, 7, 300, 301, 70_000, 1 << 42]));
        assert_eq!(replaced_bytes(&segment, &merged), Some(2 + 12));
        assert_eq!(replaced_bytes(&merged, &segment), Some(segment.len()));
    }
}
