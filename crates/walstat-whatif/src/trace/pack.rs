//! Records of the trace in few bytes: numbers of two bytes, as differences from what is expected. A record
//! with a number that does not fit has four bytes for each.

use super::{Chunk, Entry, RecordDelta, TracedBlock, TracedRecord, WalLevelDelta};
use crate::blocks::{FIRST, Ordinal};
use crate::position::padded;
use walstat_format::cursor::Field;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr::RecordType;

/// What the first byte of a record says.
mod flag {
    /// How many references it has; this many: a number tells.
    pub(crate) const REFS: u8 = 0x03;
    /// It inserts rows.
    pub(crate) const ROWS: u8 = 0x04;
    /// It does not begin where the one before ends.
    pub(crate) const APART: u8 = 0x08;
    /// It is of another type than the one before.
    pub(crate) const KIND: u8 = 0x10;
    /// It differs at the other wal_level.
    pub(crate) const DELTA: u8 = 0x20;
    /// Its numbers have four bytes.
    pub(crate) const WIDE: u8 = 0x40;
    /// It has images. Without references: it stands for as many records as the bits between tell, which are
    /// like the one before.
    pub(crate) const IMAGES: u8 = 0x80;
}

/// One of the records that are like the one before, and most of them that one byte tells.
const ONE_ALIKE: u8 = 0x04;
const ALIKE_MAX: u8 = 31;

/// What the byte before [`WalLevelDelta`] says.
mod delta_flag {
    pub(crate) const NOTHING: u8 = 0x01;
    pub(crate) const MORE: u8 = 0x02;
    pub(crate) const DATA: u8 = 0x04;
    pub(crate) const OLD_ROW: u8 = 0x08;
}

/// In a reference's facts: both its stamps are told.
const TWO_STAMPS: u16 = 0x8000;

/// A distance in bytes that is told elsewhere.
const FAR: u8 = u8::MAX;

/// What the next record is compared with.
#[derive(Debug, Default)]
pub(crate) struct Before {
    end: u64,
    kind: RecordType,
    block: u32,
    /// The one before, if it was of the usual form.
    usual: Usual,
    /// How long an image was of the page of the last one that has one page only, and how much longer than
    /// that of the one before.
    image_bytes: u16,
    growth: u16,
    /// Where the byte is that tells of records like the one before; 0: nowhere.
    alike_at: usize,
}

/// A record with one reference and no image, as it is packed, but for how long an image would be. Never 0 if
/// there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usual {
    lengths: u64,
    inserted: u64,
    own: u64,
}

impl Before {
    /// Before a record at `first`.
    pub(crate) fn new(first: Lsn) -> Before {
        Before { end: first.0, ..Before::default() }
    }

    fn follow(&mut self, entry: &Entry) {
        self.end = entry.lsn.0.wrapping_add(padded(u64::from(entry.bytes)));
        self.kind = entry.kind;
    }

    /// Notes the reference of a record that has one only.
    #[inline(always)]
    fn note_image(&mut self, image_bytes: u16) {
        self.growth = image_bytes.wrapping_sub(self.image_bytes);
        self.image_bytes = image_bytes;
    }
}

/// Packs a record.
#[inline(always)]
pub(crate) fn pack(bytes: &mut Vec<u8>, before: &mut Before, traced: &TracedRecord<'_>) {
    if pack_usual(bytes, before, traced).is_none() {
        pack_any(bytes, before, traced);
    }
}

/// Packs a record with one reference that is like the one before it, and has no image: most are so, and are
/// packed as [`pack_any`] does it, but with one store. `None`: it is of another form.
#[inline(always)]
fn pack_usual(bytes: &mut Vec<u8>, before: &mut Before, traced: &TracedRecord<'_>) -> Option<()> {
    let (entry, [reference]) = (traced.entry, traced.refs) else { return None };
    let distance = distance(before.block, reference.block);
    let (ago, head) = (ago(traced.ordinal, reference.stamped), head_bytes(entry));
    let is_usual = entry.bytes | head | distance | ago <= u32::from(u16::MAX)
        && (entry.lsn.0, entry.kind) == (before.end, before.kind)
        && reference.stamped == reference.stamped_without_hints
        && reference.stored_bytes == 0
        && !traced.has_delta();
    if !is_usual {
        return None;
    }
    let rows = if entry.rows > 0 { flag::ROWS } else { 0 };
    let lengths = u64::from(head) << 24 | u64::from(entry.bytes) << 8 | u64::from(1 | rows);
    let place = u64::from(ago) << 16 | u64::from(distance);
    let data = u64::from(reference.data_bytes) << 16 | u64::from(reference.facts);
    let inserted =
        if entry.rows > 0 { u64::from(entry.table) << 16 | u64::from(entry.rows) } else { 0 };
    let usual = Usual { lengths, inserted, own: data << 32 | place };
    let image_bytes = reference.image_bytes;
    if usual == before.usual && image_bytes.wrapping_sub(before.image_bytes) == before.growth {
        put_alike(bytes, before);
    } else {
        put_usual(bytes, &usual, image_bytes);
        (before.usual, before.alike_at) = (usual, 0);
    }
    before.note_image(image_bytes);
    before.follow(entry);
    before.block = reference.block;
    Some(())
}

/// Packs a record of the usual form that is like the one before it, and an image of whose page is as much
/// longer than before as that one's was: rows that come into a table one after the other.
#[inline(always)]
fn put_alike(bytes: &mut Vec<u8>, before: &mut Before) {
    let full = flag::IMAGES | (ALIKE_MAX * ONE_ALIKE);
    match bytes.get_mut(before.alike_at) {
        Some(alike) if before.alike_at > 0 && *alike < full => *alike += ONE_ALIKE,
        _ => {
            before.alike_at = bytes.len();
            bytes.push(flag::IMAGES | ONE_ALIKE);
        }
    }
}

#[inline(always)]
fn put_usual(bytes: &mut Vec<u8>, usual: &Usual, image_bytes: u16) {
    // Each number is written over what the one before has beyond its own bytes.
    if usual.inserted > 0 {
        let mut packed = [0; 21];
        put_at(&mut packed, 0, usual.lengths.to_le_bytes());
        put_at(&mut packed, 5, usual.inserted.to_le_bytes());
        put_at(&mut packed, 11, usual.own.to_le_bytes());
        put_at(&mut packed, 19, image_bytes.to_le_bytes());
        bytes.extend_from_slice(&packed);
    } else {
        let mut packed = [0; 15];
        put_at(&mut packed, 0, usual.lengths.to_le_bytes());
        put_at(&mut packed, 5, usual.own.to_le_bytes());
        put_at(&mut packed, 13, image_bytes.to_le_bytes());
        bytes.extend_from_slice(&packed);
    }
}

/// Writes a number at a place, where there is room for it.
#[inline(always)]
fn put_at<const N: usize>(packed: &mut [u8], at: usize, number: [u8; N]) {
    if let Some(place) = packed.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = number;
    }
}

#[inline(never)]
fn pack_any(bytes: &mut Vec<u8>, before: &mut Before, traced: &TracedRecord<'_>) {
    let TracedRecord { ordinal, entry, refs, .. } = *traced;
    let (mut all, mut images, mut block) = (entry.bytes | head_bytes(entry), 0, before.block);
    for reference in refs {
        all |= distance(block, reference.block) | ago(ordinal, reference.stamped);
        images |= reference.stored_bytes;
        block = reference.block;
    }
    let wide = if all > u32::from(u16::MAX) { flag::WIDE } else { 0 };
    let images = if images > 0 { flag::IMAGES } else { 0 };
    put_entry(bytes, before, traced, wide | images);
    for reference in refs {
        put_ref(bytes, before.block, ordinal, reference, wide | images);
        before.block = reference.block;
    }
    (before.usual, before.alike_at) = (Usual::default(), 0);
    if let [only] = refs {
        before.note_image(only.image_bytes);
    }
}

/// Unpacks `count` records, the first of which has the ordinal `first`, and adds them to `chunk`.
pub(crate) fn unpack(
    bytes: &[u8],
    mut before: Before,
    first: Ordinal,
    count: usize,
    chunk: &mut Chunk,
) {
    let (mut from, mut alike) = (bytes, 0u8);
    for ordinal in (first..).take(count) {
        if alike == 0 {
            let flags = take(&mut from);
            if flags & (flag::IMAGES | flag::REFS) != flag::IMAGES {
                unpack_one(&mut from, &mut before, ordinal, flags, chunk);
                continue;
            }
            alike = (flags & !flag::IMAGES) / ONE_ALIKE;
        }
        alike = alike.saturating_sub(1);
        push_alike(chunk, &mut before);
    }
}

#[inline]
fn unpack_one(
    from: &mut &[u8],
    before: &mut Before,
    ordinal: Ordinal,
    flags: u8,
    chunk: &mut Chunk,
) {
    let (entry, delta) = take_entry(from, before, flags);
    chunk.deltas.extend(delta.map(|delta| (ordinal, delta)));
    for _ in 0..entry.refs {
        let reference = take_ref(from, before.block, ordinal, flags);
        before.block = reference.block;
        chunk.refs.push(reference);
    }
    if entry.refs == 1
        && let Some(only) = chunk.refs.last()
    {
        before.note_image(only.image_bytes);
    }
    chunk.entries.push(entry);
}

/// Adds a record like the one before, if there is one.
fn push_alike(chunk: &mut Chunk, before: &mut Before) {
    let Some((entry, reference)) = chunk.entries.last().zip(chunk.refs.last()) else { return };
    let entry = Entry { lsn: Lsn(before.end), ..*entry };
    let later = |stamped: Ordinal| stamped.wrapping_add(u32::from(stamped >= FIRST));
    let reference = TracedBlock {
        stamped: later(reference.stamped),
        stamped_without_hints: later(reference.stamped_without_hints),
        image_bytes: reference.image_bytes.wrapping_add(before.growth),
        ..*reference
    };
    before.follow(&entry);
    chunk.entries.push(entry);
    chunk.refs.push(reference);
}

/// The next number; 0 where there is none.
#[inline]
fn take<T: Field + Default>(from: &mut &[u8]) -> T {
    let Some((own, rest)) = from.split_at_checked(T::BYTES) else { return T::default() };
    *from = rest;
    T::read(own).unwrap_or_default()
}

/// A number of two bytes or four.
#[inline]
fn take_number(from: &mut &[u8], flags: u8) -> u32 {
    if flags & flag::WIDE != 0 { take(from) } else { take::<u16>(from).into() }
}

/// Two numbers of two bytes or four.
#[inline]
fn put_numbers(bytes: &mut Vec<u8>, numbers: [u32; 2], flags: u8) {
    let [low, high] = numbers;
    match flags & flag::WIDE {
        0 => bytes.extend_from_slice(&(high << 16 | low).to_le_bytes()),
        _ => bytes.extend_from_slice(&(u64::from(high) << 32 | u64::from(low)).to_le_bytes()),
    }
}

/// Images with their headers, and block data.
fn head_bytes(entry: &Entry) -> u32 {
    entry.bytes.wrapping_sub(entry.fixed_bytes)
}

fn put_entry(bytes: &mut Vec<u8>, before: &mut Before, traced: &TracedRecord<'_>, flags: u8) {
    let TracedRecord { entry, delta, .. } = traced;
    let set = |holds: bool, bit: u8| if holds { bit } else { 0 };
    let apart = entry.lsn.0.wrapping_sub(before.end);
    let flags = flags
        | entry.refs.min(flag::REFS)
        | set(entry.rows > 0, flag::ROWS)
        | set(apart != 0, flag::APART)
        | set(entry.kind != before.kind, flag::KIND)
        | set(traced.has_delta(), flag::DELTA);
    bytes.push(flags);
    put_numbers(bytes, [entry.bytes, head_bytes(entry)], flags);
    if flags & flag::REFS == flag::REFS {
        bytes.push(entry.refs);
    }
    if flags & flag::KIND != 0 {
        bytes.extend_from_slice(&[entry.kind.rmgr, entry.kind.slot]);
    }
    if flags & flag::APART != 0 {
        let near = u8::try_from(apart).ok().filter(|near| *near != FAR);
        bytes.push(near.unwrap_or(FAR));
        if near.is_none() {
            bytes.extend_from_slice(&apart.to_le_bytes());
        }
    }
    if flags & flag::ROWS != 0 {
        bytes.extend_from_slice(&entry.rows.to_le_bytes());
        bytes.extend_from_slice(&entry.table.to_le_bytes());
    }
    if traced.has_delta() {
        put_delta(bytes, delta);
    }
    before.follow(entry);
}

fn take_entry(from: &mut &[u8], before: &mut Before, flags: u8) -> (Entry, Option<WalLevelDelta>) {
    let has = |bit: u8| flags & bit != 0;
    let bytes = take_number(from, flags);
    let fixed_bytes = bytes.wrapping_sub(take_number(from, flags));
    let refs = flags & flag::REFS;
    let refs = if refs == flag::REFS { take(from) } else { refs };
    let kind = if has(flag::KIND) {
        RecordType { rmgr: take(from), slot: take(from) }
    } else {
        before.kind
    };
    let apart = match has(flag::APART).then(|| take::<u8>(from)) {
        None => 0,
        Some(FAR) => take(from),
        Some(near) => near.into(),
    };
    let (rows, table) = if has(flag::ROWS) { (take(from), take(from)) } else { (0, 0) };
    let delta = has(flag::DELTA).then(|| take_delta(from));
    let lsn = Lsn(before.end.wrapping_add(apart));
    let entry = Entry { lsn, bytes, fixed_bytes, kind, refs, rows, table };
    before.follow(&entry);
    (entry, delta)
}

fn put_delta(bytes: &mut Vec<u8>, delta: &WalLevelDelta) {
    let record = match delta.record {
        None => 0,
        Some(RecordDelta::NotWritten) => delta_flag::NOTHING,
        Some(RecordDelta::More { .. }) => delta_flag::MORE,
    };
    let data = if delta.data.is_some() { delta_flag::DATA } else { 0 };
    let old_row = if delta.old_row > 0 { delta_flag::OLD_ROW } else { 0 };
    bytes.push(record | data | old_row);
    if let Some(RecordDelta::More { more, guess }) = delta.record {
        bytes.extend_from_slice(&more.to_le_bytes());
        bytes.extend_from_slice(&guess.to_le_bytes());
    }
    if let Some(data) = delta.data {
        bytes.extend_from_slice(&data.to_le_bytes());
    }
    if delta.old_row > 0 {
        bytes.extend_from_slice(&delta.old_row.to_le_bytes());
    }
}

fn take_delta(from: &mut &[u8]) -> WalLevelDelta {
    let flags: u8 = take(from);
    let has = |bit: u8| flags & bit != 0;
    let record = match (has(delta_flag::NOTHING), has(delta_flag::MORE)) {
        (true, _) => Some(RecordDelta::NotWritten),
        (_, true) => Some(RecordDelta::More { more: take(from), guess: take(from) }),
        _ => None,
    };
    let data = has(delta_flag::DATA).then(|| take(from));
    let old_row = if has(delta_flag::OLD_ROW) { take(from) } else { 0 };
    WalLevelDelta { record, data, old_row }
}

fn put_ref(bytes: &mut Vec<u8>, block: u32, ordinal: Ordinal, reference: &TracedBlock, flags: u8) {
    let two = reference.stamped != reference.stamped_without_hints;
    let facts = reference.facts | if two { TWO_STAMPS } else { 0 };
    let numbers = [distance(block, reference.block), ago(ordinal, reference.stamped)];
    put_numbers(bytes, numbers, flags);
    let [a, b] = facts.to_le_bytes();
    let [c, d] = reference.data_bytes.to_le_bytes();
    let [e, f] = reference.image_bytes.to_le_bytes();
    bytes.extend_from_slice(&[a, b, c, d, e, f]);
    if flags & flag::IMAGES != 0 {
        bytes.extend_from_slice(&reference.stored_bytes.to_le_bytes());
    }
    if two {
        bytes.extend_from_slice(&ago(ordinal, reference.stamped_without_hints).to_le_bytes());
    }
}

fn take_ref(from: &mut &[u8], block: u32, ordinal: Ordinal, flags: u8) -> TracedBlock {
    let block = after(block, take_number(from, flags));
    let stamped = at(ordinal, take_number(from, flags));
    let (facts, data_bytes, image_bytes): (u16, u16, u16) = (take(from), take(from), take(from));
    let stored_bytes = if flags & flag::IMAGES != 0 { take(from) } else { 0 };
    let two = facts & TWO_STAMPS != 0;
    let stamped_without_hints = if two { at(ordinal, take(from)) } else { stamped };
    let facts = facts & !TWO_STAMPS;
    TracedBlock {
        block,
        stamped,
        stamped_without_hints,
        data_bytes,
        image_bytes,
        stored_bytes,
        facts,
    }
}

/// How long before a record another one was; those before the first have numbers of their own.
fn ago(ordinal: Ordinal, stamped: Ordinal) -> u32 {
    if stamped < FIRST { stamped } else { ordinal.wrapping_sub(stamped).wrapping_add(FIRST) }
}

fn at(ordinal: Ordinal, ago: u32) -> Ordinal {
    match ago.checked_sub(FIRST) {
        None => ago,
        Some(ago) => ordinal.wrapping_sub(ago),
    }
}

/// From one block to another: small numbers of either sign are small.
fn distance(from: u32, to: u32) -> u32 {
    let distance = to.wrapping_sub(from).cast_signed();
    (distance << 1 ^ distance >> 31).cast_unsigned()
}

fn after(block: u32, distance: u32) -> u32 {
    let distance = (distance >> 1).cast_signed() ^ -((distance & 1).cast_signed());
    block.wrapping_add(distance.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference() -> impl Strategy<Value = TracedBlock> {
        let stamps = (0u32..5000, 0u32..5000, any::<bool>());
        let lengths = (any::<u16>(), any::<u16>(), any::<u16>());
        (any::<u32>(), stamps, lengths, 0u16..0x8000).prop_map(
            |(block, (stamped, delta, same), (data_bytes, image_bytes, stored_bytes), facts)| {
                TracedBlock {
                    block,
                    stamped,
                    stamped_without_hints: if same { stamped } else { delta },
                    data_bytes,
                    image_bytes,
                    stored_bytes,
                    facts,
                }
            },
        )
    }

    fn delta() -> impl Strategy<Value = WalLevelDelta> {
        let more = (any::<i32>(), any::<i32>())
            .prop_map(|(more, guess)| RecordDelta::More { more, guess });
        let record =
            prop_oneof![Just(None), Just(Some(RecordDelta::NotWritten)), more.prop_map(Some)];
        (record, any::<Option<u16>>(), any::<u16>())
            .prop_map(|(record, data, old_row)| WalLevelDelta { record, data, old_row })
    }

    fn record() -> impl Strategy<Value = (Entry, Vec<TracedBlock>, WalLevelDelta)> {
        let head = (any::<u64>(), any::<u32>(), any::<u32>(), any::<(u8, u8)>());
        let rows = prop_oneof![Just((0, 0)), (1u16.., any::<u32>())];
        let refs = proptest::collection::vec(reference(), 0..5);
        (head, rows, refs, delta()).prop_map(|(head, (rows, table), refs, delta)| {
            let (lsn, bytes, fixed_bytes, (rmgr, slot)) = head;
            let kind = RecordType { rmgr, slot };
            let count = refs.len() as u8;
            (
                Entry { lsn: Lsn(lsn), bytes, fixed_bytes, kind, refs: count, rows, table },
                refs,
                delta,
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
            for (ordinal, (entry, refs, delta)) in (first..u32::MAX).zip(&records) {
                chunk.entries.push(*entry);
                chunk.refs.extend(refs);
                if *delta != WalLevelDelta::default() {
                    chunk.deltas.push((ordinal, *delta));
                }
            }
            let begin = chunk.entries.first().map_or(Lsn(0), |entry| entry.lsn);
            let (mut bytes, mut before) = (Vec::new(), Before::new(begin));
            for (ordinal, (entry, refs, delta)) in (first..u32::MAX).zip(&records) {
                let traced =
                    TracedRecord { ordinal, entry, refs, effect: None, delta: *delta };
                pack(&mut bytes, &mut before, &traced);
            }
            let mut again = Chunk { first, ..Chunk::default() };
            unpack(&bytes, Before::new(begin), first, chunk.entries.len(), &mut again);
            prop_assert_eq!(again, chunk);
        }
    }

    /// Rows that come into a table, one after the other.
    fn inserted(first: Ordinal, count: u32) -> Chunk {
        let mut chunk = Chunk { first, ..Chunk::default() };
        for ordinal in first..first + count {
            let lsn = Lsn(64 * u64::from(ordinal));
            let kind = RecordType { rmgr: 10, slot: 0 };
            let entry = Entry { lsn, bytes: 59, fixed_bytes: 30, kind, refs: 1, rows: 1, table: 3 };
            let reference = TracedBlock {
                block: 5,
                stamped: ordinal - 1,
                stamped_without_hints: ordinal - 1,
                data_bytes: 29,
                image_bytes: 36 * (ordinal - first) as u16,
                ..TracedBlock::default()
            };
            chunk.entries.push(entry);
            chunk.refs.push(reference);
        }
        chunk
    }

    fn packed(chunk: &Chunk) -> Vec<u8> {
        let (mut bytes, mut before) = (Vec::new(), Before::new(chunk.entries[0].lsn));
        chunk.records().for_each(|traced| pack(&mut bytes, &mut before, &traced));
        bytes
    }

    #[test]
    fn records_that_are_alike_are_told_by_a_byte() {
        let mut chunk = inserted(6000, 40);
        assert!(packed(&chunk).len() < 80, "{}", packed(&chunk).len());
        // Another page, another step, and one that is no row.
        chunk.refs[20].block = 6;
        chunk.refs[30].image_bytes += 1;
        chunk.entries[35].rows = 0;
        chunk.entries[35].table = 0;
        let mut again = Chunk { first: 6000, ..Chunk::default() };
        unpack(&packed(&chunk), Before::new(chunk.entries[0].lsn), 6000, 40, &mut again);
        assert_eq!(again, chunk);
    }

    #[test]
    fn records_of_the_usual_form_are_packed_as_any() {
        let (mut usual, mut any) =
            ((Vec::new(), Before::default()), (Vec::new(), Before::default()));
        for (ordinal, (block, rows)) in
            (7..).zip([(0, 0), (3, 1), (1, 2), (70_000, 1), (70_001, 0)])
        {
            let lsn = Lsn(usual.1.end);
            let kind = RecordType { rmgr: 10, slot: 0 };
            let table = if rows > 0 { 0x0102_0304 } else { 0 };
            let entry = Entry { lsn, bytes: 259, fixed_bytes: 51, kind, refs: 1, rows, table };
            let reference = TracedBlock {
                block,
                stamped: ordinal - 2,
                stamped_without_hints: ordinal - 2,
                data_bytes: 0x0506,
                image_bytes: 0x0708,
                stored_bytes: 0,
                facts: 0x090A,
            };
            let delta = WalLevelDelta::default();
            let refs = &[reference];
            let traced = TracedRecord { ordinal, entry: &entry, refs, effect: None, delta };
            // The first is of another type than the one before, one block is far away.
            let is_usual = pack_usual(&mut usual.0, &mut usual.1, &traced).is_some();
            assert_eq!(is_usual, ordinal != 7 && block != 70_000);
            if !is_usual {
                pack_any(&mut usual.0, &mut usual.1, &traced);
            }
            pack_any(&mut any.0, &mut any.1, &traced);
            assert_eq!(usual.0, any.0);
        }
    }

    #[test]
    fn bytes_that_end_early_do_no_harm() {
        let mut chunk = Chunk { first: FIRST, ..Chunk::default() };
        unpack(&[0xFF; 3], Before::default(), FIRST, 2, &mut chunk);
        assert_eq!(chunk.entries.len(), 2);
    }
}
