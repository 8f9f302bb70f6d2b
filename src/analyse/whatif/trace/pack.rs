//! A chunk of the trace in few bytes: numbers of as many bytes as they need, as differences from what is
//! expected.

use super::{AtOther, Chunk, Entry, Other, Ref};
use crate::analyse::whatif::blocks::{FIRST, Ordinal};
use crate::analyse::whatif::position::padded;
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

/// What the next record is compared with.
struct Before {
    end: u64,
    kind: RecordType,
    block: u32,
}

impl Before {
    fn new(first: Lsn) -> Before {
        Before { end: first.0, kind: RecordType { rmgr: 0, slot: 0 }, block: 0 }
    }

    fn follow(&mut self, entry: &Entry) {
        self.end = entry.lsn.0.wrapping_add(padded(u64::from(entry.bytes)));
        self.kind = entry.kind;
    }
}

/// Packs the records of `chunk`, the first of which lies at `first`; its marks are kept elsewhere.
pub fn pack(chunk: &Chunk, first: Lsn, bytes: &mut Vec<u8>) {
    let mut before = Before::new(first);
    let mut refs = chunk.refs.as_slice();
    let mut others = chunk.others.iter().peekable();
    for (ordinal, entry) in (chunk.first..).zip(&chunk.entries) {
        let other = others.next_if(|(at, _)| *at == ordinal).map(|(_, other)| other);
        put_entry(bytes, &mut before, entry, other);
        let (own, rest) = refs.split_at_checked(entry.refs.into()).unwrap_or_default();
        refs = rest;
        own.iter().for_each(|reference| put_ref(bytes, &mut before, ordinal, reference));
    }
}

/// Unpacks `count` records into `chunk`, whose first ordinal is set.
pub fn unpack(mut bytes: &[u8], (first, count): (Lsn, usize), chunk: &mut Chunk) {
    let mut before = Before::new(first);
    let from = &mut bytes;
    for ordinal in (chunk.first..).take(count) {
        let (entry, other) = take_entry(from, &mut before);
        chunk.others.extend(other.map(|other| (ordinal, other)));
        for _ in 0..entry.refs {
            chunk.refs.push(take_ref(from, &mut before, ordinal));
        }
        chunk.entries.push(entry);
    }
}

fn put_entry(bytes: &mut Vec<u8>, before: &mut Before, entry: &Entry, other: Option<&AtOther>) {
    let set = |holds: bool, bit: u8| if holds { bit } else { 0 };
    let flags = entry.refs.min(flag::REFS)
        | set(entry.rows > 0, flag::ROWS)
        | set(entry.lsn.0 != before.end, flag::APART)
        | set(entry.kind != before.kind, flag::KIND)
        | set(other.is_some(), flag::OTHER);
    bytes.push(flags);
    if flags & flag::REFS == flag::REFS {
        bytes.push(entry.refs);
    }
    if flags & flag::KIND != 0 {
        bytes.extend([entry.kind.rmgr, entry.kind.slot]);
    }
    if flags & flag::APART != 0 {
        put_signed(bytes, entry.lsn.0.wrapping_sub(before.end).cast_signed());
    }
    put(bytes, entry.bytes.into());
    put_signed(bytes, i64::from(entry.bytes) - i64::from(entry.fixed_bytes));
    if flags & flag::ROWS != 0 {
        put(bytes, entry.rows.into());
        put(bytes, entry.table.into());
    }
    if let Some(other) = other {
        put_other(bytes, other);
    }
    before.follow(entry);
}

fn take_entry(bytes: &mut &[u8], before: &mut Before) -> (Entry, Option<AtOther>) {
    let flags = take_byte(bytes);
    let has = |bit: u8| flags & bit != 0;
    let refs = flags & flag::REFS;
    let refs = if refs == flag::REFS { take_byte(bytes) } else { refs };
    let kind = match has(flag::KIND) {
        true => RecordType { rmgr: take_byte(bytes), slot: take_byte(bytes) },
        false => before.kind,
    };
    let apart = if has(flag::APART) { take_signed(bytes) } else { 0 };
    let length = take(bytes) as u32;
    let fixed_bytes = (i64::from(length) - take_signed(bytes)) as u32;
    let (rows, table) = match has(flag::ROWS) {
        true => (take(bytes) as u16, take(bytes) as u32),
        false => (0, 0),
    };
    let other = has(flag::OTHER).then(|| take_other(bytes));
    let lsn = Lsn(before.end.wrapping_add_signed(apart));
    let entry = Entry { lsn, bytes: length, fixed_bytes, kind, refs, rows, table };
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
    bytes.push(record | data | old_row);
    if let Some(Other::More { more, guess }) = other.record {
        put_signed(bytes, more.into());
        put_signed(bytes, guess.into());
    }
    if let Some(data) = other.data {
        put(bytes, data.into());
    }
    if other.old_row > 0 {
        put(bytes, other.old_row.into());
    }
}

fn take_other(bytes: &mut &[u8]) -> AtOther {
    let flags = take_byte(bytes);
    let has = |bit: u8| flags & bit != 0;
    let signed = |bytes: &mut &[u8]| take_signed(bytes) as i32;
    let record = match (has(at_other::NOTHING), has(at_other::MORE)) {
        (true, _) => Some(Other::Nothing),
        (_, true) => Some(Other::More { more: signed(bytes), guess: signed(bytes) }),
        _ => None,
    };
    let data = has(at_other::DATA).then(|| take(bytes) as u16);
    let old_row = if has(at_other::OLD_ROW) { take(bytes) as u16 } else { 0 };
    AtOther { record, data, old_row }
}

fn put_ref(bytes: &mut Vec<u8>, before: &mut Before, ordinal: Ordinal, reference: &Ref) {
    let two = reference.stamped != reference.stamped_without_hints;
    let facts = reference.facts | if two { TWO_STAMPS } else { 0 };
    bytes.extend(facts.to_le_bytes());
    put_signed(bytes, i64::from(reference.block) - i64::from(before.block));
    put(bytes, ago(ordinal, reference.stamped));
    if two {
        put(bytes, ago(ordinal, reference.stamped_without_hints));
    }
    put(bytes, reference.data_bytes.into());
    put(bytes, reference.image_bytes.into());
    put(bytes, reference.stored_bytes.into());
    before.block = reference.block;
}

fn take_ref(bytes: &mut &[u8], before: &mut Before, ordinal: Ordinal) -> Ref {
    let facts = u16::from_le_bytes([take_byte(bytes), take_byte(bytes)]);
    let block = (i64::from(before.block) + take_signed(bytes)) as u32;
    before.block = block;
    let stamped = at(ordinal, take(bytes));
    let two = facts & TWO_STAMPS != 0;
    let stamped_without_hints = if two { at(ordinal, take(bytes)) } else { stamped };
    Ref {
        block,
        stamped,
        stamped_without_hints,
        data_bytes: take(bytes) as u16,
        image_bytes: take(bytes) as u16,
        stored_bytes: take(bytes) as u16,
        facts: facts & !TWO_STAMPS,
    }
}

/// How long before a record another one was; those before the first have numbers of their own.
fn ago(ordinal: Ordinal, stamped: Ordinal) -> u64 {
    match stamped < FIRST {
        true => stamped.into(),
        false => u64::from(ordinal.wrapping_sub(stamped)) + u64::from(FIRST),
    }
}

fn at(ordinal: Ordinal, ago: u64) -> Ordinal {
    match ago.checked_sub(u64::from(FIRST)) {
        None => ago as Ordinal,
        Some(ago) => ordinal.wrapping_sub(ago as Ordinal),
    }
}

/// Seven bits a byte, the low ones first; the high bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    if value < 0x80 {
        return bytes.push(value as u8);
    }
    let (mut digits, mut count) = ([0; 10], 0);
    for digit in &mut digits {
        *digit = value as u8 | 0x80;
        value >>= 7;
        count += 1;
        if value == 0 {
            *digit &= 0x7F;
            break;
        }
    }
    bytes.extend_from_slice(digits.get(..count).unwrap_or_default());
}

fn take(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(bytes);
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Small numbers of either sign are small.
fn put_signed(bytes: &mut Vec<u8>, value: i64) {
    put(bytes, (value << 1 ^ value >> 63).cast_unsigned());
}

fn take_signed(bytes: &mut &[u8]) -> i64 {
    let value = take(bytes);
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

fn take_byte(bytes: &mut &[u8]) -> u8 {
    let Some((first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    *first
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
            let mut bytes = Vec::new();
            pack(&chunk, begin, &mut bytes);
            let mut again = Chunk { first, ..Chunk::default() };
            unpack(&bytes, (begin, chunk.entries.len()), &mut again);
            prop_assert_eq!(again, chunk);
        }
    }

    #[test]
    fn bytes_that_end_early_do_no_harm() {
        let mut chunk = Chunk { first: FIRST, ..Chunk::default() };
        unpack(&[0xFF; 3], (Lsn(0), 2), &mut chunk);
        assert_eq!(chunk.entries.len(), 2);
    }
}
