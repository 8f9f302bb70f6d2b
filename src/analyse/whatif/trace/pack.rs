//! Records of the trace in few bytes: numbers of as many bytes as they need, as differences from what is
//! expected. How many bytes each has stands before several of them, so that nothing depends on the bytes
//! themselves.

use super::{AtOther, Chunk, Entry, Other, Ref};
use crate::analyse::whatif::blocks::{FIRST, Ordinal};
use crate::analyse::whatif::position::padded;
use crate::wal::cursor::at as number_at;
use crate::wal::lsn::Lsn;
use crate::wal::rmgr::RecordType;

/// What the first byte of a record says.
mod flag {
    /// How many references it has; this many: a number tells.
    pub const REFS: u8 = 0x03;
    /// It inserts rows.
    pub const ROWS: u8 = 0x04;
    /// It does not begin where the one before ends.
    pub const APART: u8 = 0x08;
    /// It is of another type than the one before.
    pub const KIND: u8 = 0x10;
    /// It differs at the other wal_level.
    pub const OTHER: u8 = 0x20;
}

/// What the byte before [`AtOther`] says.
mod at_other {
    pub const NOTHING: u8 = 0x01;
    pub const MORE: u8 = 0x02;
    pub const DATA: u8 = 0x04;
    pub const OLD_ROW: u8 = 0x08;
}

/// In a reference's facts: both its stamps are told.
const TWO_STAMPS: u16 = 0x8000;

/// After what is packed, so that a number is read as four bytes wherever it lies.
const PADDING: [u8; 4] = [0; 4];

/// What the next record is compared with.
#[derive(Debug, Default)]
pub struct Before {
    end: u64,
    kind: RecordType,
    block: u32,
}

impl Before {
    /// Before a record at `first`.
    pub fn new(first: Lsn) -> Before {
        Before { end: first.0, ..Before::default() }
    }

    fn follow(&mut self, entry: &Entry) {
        self.end = entry.lsn.0.wrapping_add(padded(u64::from(entry.bytes)));
        self.kind = entry.kind;
    }
}

/// Packs a record.
pub fn pack(
    bytes: &mut Vec<u8>,
    before: &mut Before,
    (ordinal, entry): (Ordinal, &Entry),
    (refs, other): (&[Ref], Option<&AtOther>),
) {
    put_entry(bytes, before, entry, other);
    for reference in refs {
        put_ref(bytes, before, ordinal, reference);
    }
}

/// Ends what is packed.
pub fn end(bytes: &mut Vec<u8>) {
    bytes.extend(PADDING);
}

/// Unpacks `count` records, the first of which has the ordinal `first`, and adds them to `chunk`.
pub fn unpack(
    bytes: &[u8],
    mut before: Before,
    (first, count): (Ordinal, usize),
    chunk: &mut Chunk,
) {
    let mut from = Input { bytes, at: 0 };
    for ordinal in (first..).take(count) {
        let (entry, other) = take_entry(&mut from, &mut before);
        chunk.others.extend(other.map(|other| (ordinal, other)));
        for _ in 0..entry.refs {
            chunk.refs.push(take_ref(&mut from, &mut before, ordinal));
        }
        chunk.entries.push(entry);
    }
}

/// How a number is written: in no byte, or in so many that 2 to that power are twice as many.
fn width(number: u32) -> u8 {
    u8::from(number > 0) + u8::from(number > 0xFF) + u8::from(number > 0xFFFF)
}

fn width_bytes(width: u8) -> usize {
    (1 << (width & 3)) >> 1
}

/// Bytes that are put together before they are added.
struct Output {
    bytes: [u8; Output::MOST],
    at: usize,
}

impl Output {
    /// More than a record's own bytes, or those of one of its references.
    const MOST: usize = 32;

    fn new() -> Output {
        Output { bytes: [0; Output::MOST], at: 0 }
    }

    #[inline]
    fn put(&mut self, number: u32, width: u8) {
        let room = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut());
        if let Some(room) = room {
            *room = number.to_le_bytes();
        }
        self.at += width_bytes(width);
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.put(byte.into(), 1);
    }

    /// All at once is faster than as many as there are.
    fn add_to(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len() + self.at;
        bytes.extend_from_slice(&self.bytes);
        bytes.truncate(length);
    }
}

/// Bytes from front to back; what is not there is 0.
struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Input<'_> {
    #[inline]
    fn take(&mut self, width: u8) -> u32 {
        let number: u32 = number_at(self.bytes, self.at).unwrap_or_default();
        let bytes = width_bytes(width);
        self.at += bytes;
        let mask = (1u64 << (8 * bytes)) - 1;
        number & mask as u32
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        self.take(1) as u8
    }
}

/// The second byte of a record, with how its numbers are written.
fn widths(entry: &Entry, apart: u32) -> [u8; 4] {
    [
        width(entry.bytes),
        width(entry.bytes.wrapping_sub(entry.fixed_bytes)),
        width(entry.table),
        width(apart),
    ]
}

fn put_entry(bytes: &mut Vec<u8>, before: &mut Before, entry: &Entry, other: Option<&AtOther>) {
    let set = |holds: bool, bit: u8| if holds { bit } else { 0 };
    let distance = entry.lsn.0.wrapping_sub(before.end);
    // One that does not fit is told whole.
    let apart = u32::try_from(distance).ok().filter(|apart| *apart != u32::MAX).unwrap_or(u32::MAX);
    let flags = entry.refs.min(flag::REFS)
        | set(entry.rows > 0, flag::ROWS)
        | set(apart != 0, flag::APART)
        | set(entry.kind != before.kind, flag::KIND)
        | set(other.is_some(), flag::OTHER);
    let [length, head, table, far] = widths(entry, apart);
    let mut out = Output::new();
    out.byte(flags);
    out.byte(length | head << 2 | table << 4 | far << 6);
    out.put(entry.bytes, length);
    out.put(entry.bytes.wrapping_sub(entry.fixed_bytes), head);
    if flags & flag::REFS == flag::REFS {
        out.byte(entry.refs);
    }
    if flags & flag::KIND != 0 {
        out.byte(entry.kind.rmgr);
        out.byte(entry.kind.slot);
    }
    if flags & flag::APART != 0 {
        out.put(apart, far);
    }
    if flags & flag::ROWS != 0 {
        out.put(entry.rows.into(), 2);
        out.put(entry.table, table);
    }
    out.add_to(bytes);
    if apart == u32::MAX {
        bytes.extend(distance.to_le_bytes());
    }
    if let Some(other) = other {
        put_other(bytes, other);
    }
    before.follow(entry);
}

fn take_entry(from: &mut Input<'_>, before: &mut Before) -> (Entry, Option<AtOther>) {
    let (flags, widths) = (from.byte(), from.byte());
    let has = |bit: u8| flags & bit != 0;
    let bytes = from.take(widths);
    let fixed_bytes = bytes.wrapping_sub(from.take(widths >> 2));
    let refs = flags & flag::REFS;
    let refs = if refs == flag::REFS { from.byte() } else { refs };
    let kind = match has(flag::KIND) {
        true => RecordType { rmgr: from.byte(), slot: from.byte() },
        false => before.kind,
    };
    let apart = if has(flag::APART) { from.take(widths >> 6) } else { 0 };
    let (rows, table) = match has(flag::ROWS) {
        true => (from.take(2) as u16, from.take(widths >> 4)),
        false => (0, 0),
    };
    let distance = match apart {
        u32::MAX => u64::from(from.take(3)) | u64::from(from.take(3)) << 32,
        near => near.into(),
    };
    let other = has(flag::OTHER).then(|| take_other(from));
    let lsn = Lsn(before.end.wrapping_add(distance));
    let entry = Entry { lsn, bytes, fixed_bytes, kind, refs, rows, table };
    before.follow(&entry);
    (entry, other)
}

fn put_other(bytes: &mut Vec<u8>, other: &AtOther) {
    let record = match other.record {
        None => 0,
        Some(Other::Nothing) => at_other::NOTHING,
        Some(Other::More { .. }) => at_other::MORE,
    };
    let data = if other.data.is_some() { at_other::DATA } else { 0 };
    let old_row = if other.old_row > 0 { at_other::OLD_ROW } else { 0 };
    let mut out = Output::new();
    out.byte(record | data | old_row);
    if let Some(Other::More { more, guess }) = other.record {
        let (more, guess) = (folded(more), folded(guess));
        out.byte(width(more) | width(guess) << 2);
        out.put(more, width(more));
        out.put(guess, width(guess));
    }
    if let Some(data) = other.data {
        out.put(data.into(), 2);
    }
    if other.old_row > 0 {
        out.put(other.old_row.into(), 2);
    }
    out.add_to(bytes);
}

fn take_other(from: &mut Input<'_>) -> AtOther {
    let flags = from.byte();
    let has = |bit: u8| flags & bit != 0;
    let record = match (has(at_other::NOTHING), has(at_other::MORE)) {
        (true, _) => Some(Other::Nothing),
        (_, true) => {
            let widths = from.byte();
            let (more, guess) = (from.take(widths), from.take(widths >> 2));
            Some(Other::More { more: unfolded(more), guess: unfolded(guess) })
        }
        _ => None,
    };
    let data = has(at_other::DATA).then(|| from.take(2) as u16);
    let old_row = if has(at_other::OLD_ROW) { from.take(2) as u16 } else { 0 };
    AtOther { record, data, old_row }
}

fn put_ref(bytes: &mut Vec<u8>, before: &mut Before, ordinal: Ordinal, reference: &Ref) {
    let two = reference.stamped != reference.stamped_without_hints;
    let facts = reference.facts | if two { TWO_STAMPS } else { 0 };
    let block = folded(reference.block.wrapping_sub(before.block).cast_signed());
    let stamped = ago(ordinal, reference.stamped);
    let data = width(reference.data_bytes.into());
    let (image, stored) = (reference.image_bytes > 0, reference.stored_bytes > 0);
    let mut out = Output::new();
    out.put(facts.into(), 2);
    out.byte(
        width(block)
            | width(stamped) << 2
            | data << 4
            | u8::from(image) << 6
            | u8::from(stored) << 7,
    );
    out.put(block, width(block));
    out.put(stamped, width(stamped));
    out.put(reference.data_bytes.into(), data);
    out.put(reference.image_bytes.into(), short(image));
    out.put(reference.stored_bytes.into(), short(stored));
    if two {
        out.put(ago(ordinal, reference.stamped_without_hints), 3);
    }
    out.add_to(bytes);
    before.block = reference.block;
}

fn take_ref(from: &mut Input<'_>, before: &mut Before, ordinal: Ordinal) -> Ref {
    let facts = from.take(2) as u16;
    let widths = from.byte();
    let block = before.block.wrapping_add(unfolded(from.take(widths)).cast_unsigned());
    before.block = block;
    let stamped = at(ordinal, from.take(widths >> 2));
    let data_bytes = from.take(widths >> 4) as u16;
    let image_bytes = from.take(short(widths & 0x40 != 0)) as u16;
    let stored_bytes = from.take(short(widths & 0x80 != 0)) as u16;
    let two = facts & TWO_STAMPS != 0;
    let stamped_without_hints = if two { at(ordinal, from.take(3)) } else { stamped };
    Ref {
        block,
        stamped,
        stamped_without_hints,
        data_bytes,
        image_bytes,
        stored_bytes,
        facts: facts & !TWO_STAMPS,
    }
}

/// How a number of two bytes is written.
fn short(is_there: bool) -> u8 {
    if is_there { 2 } else { 0 }
}

/// How long before a record another one was; those before the first have numbers of their own.
fn ago(ordinal: Ordinal, stamped: Ordinal) -> u32 {
    match stamped < FIRST {
        true => stamped,
        false => ordinal.wrapping_sub(stamped).wrapping_add(FIRST),
    }
}

fn at(ordinal: Ordinal, ago: u32) -> Ordinal {
    match ago.checked_sub(FIRST) {
        None => ago,
        Some(ago) => ordinal.wrapping_sub(ago),
    }
}

/// Small numbers of either sign are small.
fn folded(number: i32) -> u32 {
    (number << 1 ^ number >> 31).cast_unsigned()
}

fn unfolded(number: u32) -> i32 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference() -> impl Strategy<Value = Ref> {
        let stamps = (0u32..5000, 0u32..5000, any::<bool>());
        let lengths = (any::<u16>(), any::<u16>(), any::<u16>());
        (any::<u32>(), stamps, lengths, 0u16..0x8000).prop_map(
            |(block, (stamped, other, same), (data_bytes, image_bytes, stored_bytes), facts)| Ref {
                block,
                stamped,
                stamped_without_hints: if same { stamped } else { other },
                data_bytes,
                image_bytes,
                stored_bytes,
                facts,
            },
        )
    }

    fn other() -> impl Strategy<Value = AtOther> {
        let more =
            (any::<i32>(), any::<i32>()).prop_map(|(more, guess)| Other::More { more, guess });
        let record = prop_oneof![Just(None), Just(Some(Other::Nothing)), more.prop_map(Some)];
        (record, any::<Option<u16>>(), any::<u16>()).prop_map(|(record, data, old_row)| AtOther {
            record,
            data,
            old_row,
        })
    }

    fn record() -> impl Strategy<Value = (Entry, Vec<Ref>, AtOther)> {
        let head = (any::<u64>(), any::<u32>(), any::<u32>(), any::<(u8, u8)>());
        let rows = prop_oneof![Just((0, 0)), (1u16.., any::<u32>())];
        let refs = proptest::collection::vec(reference(), 0..5);
        (head, rows, refs, other()).prop_map(|(head, (rows, table), refs, other)| {
            let (lsn, bytes, fixed_bytes, (rmgr, slot)) = head;
            let kind = RecordType { rmgr, slot };
            let count = refs.len() as u8;
            (
                Entry { lsn: Lsn(lsn), bytes, fixed_bytes, kind, refs: count, rows, table },
                refs,
                other,
            )
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_as_it_was(
            first in 6000u32..,
            records in proptest::collection::vec(record(), 0..40),
        ) {
            let mut chunk = Chunk { first, ..Chunk::default() };
            for (ordinal, (entry, refs, other)) in (first..u32::MAX).zip(&records) {
                chunk.entries.push(*entry);
                chunk.refs.extend(refs);
                if *other != AtOther::default() {
                    chunk.others.push((ordinal, *other));
                }
            }
            let begin = chunk.entries.first().map_or(Lsn(0), |entry| entry.lsn);
            let (mut bytes, mut before) = (Vec::new(), Before::new(begin));
            for (ordinal, (entry, refs, other)) in (first..u32::MAX).zip(&records) {
                let other = Some(other).filter(|other| **other != AtOther::default());
                pack(&mut bytes, &mut before, (ordinal, entry), (refs, other));
            }
            end(&mut bytes);
            let mut again = Chunk { first, ..Chunk::default() };
            unpack(&bytes, Before::new(begin), (first, chunk.entries.len()), &mut again);
            prop_assert_eq!(again, chunk);
        }
    }

    #[test]
    fn bytes_that_end_early_do_no_harm() {
        let mut chunk = Chunk { first: FIRST, ..Chunk::default() };
        unpack(&[0xFF; 3], Before::default(), (FIRST, 2), &mut chunk);
        assert_eq!(chunk.entries.len(), 2);
    }
}
