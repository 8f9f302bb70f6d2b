//! Where consecutive records start and how long they are, in two bytes each: mostly one starts where
//! the one before ends. Records that repeat the one before cost four bytes together.

use walstat_format::lsn::padded;

/// Bits below the length.
const FLAGS: u32 = 3;
/// Something lies between the record and the one before: a page header, records that are not
/// counted. A distance follows.
const HAS_GAP: u16 = 1;
/// Page headers lie in it. A distance follows.
const HAS_HEADERS: u16 = 2;
/// It states its own time.
const HAS_TIME: u16 = 4;
/// A longer record has length 0, and its length follows in two words.
const LONGEST: u32 = u16::MAX as u32 >> FLAGS;
/// Instead of a record: the length of the one before repeats as often as the next word says. No
/// record has length 0 and no flag: a longer one has the flag of its headers.
const REPEATS: u16 = 0;
/// Distances are counted in units of 8 bytes; a longer one follows this word, in four.
const LONG_DISTANCE: u16 = u16::MAX;

/// Records of one form, one directly after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRun {
    /// Where the first one starts.
    pub lsn: u64,
    /// From one to the next.
    pub stride: u64,
    /// Length of each.
    pub total_bytes: u64,
    /// From the start of the last one to its end; page headers in it count.
    pub span: u64,
    /// How many.
    pub count: u64,
    /// Whether each states its own time.
    pub has_time: bool,
}

impl RecordRun {
    /// How many of them start before `lsn`.
    #[inline]
    pub fn before(&self, lsn: u64) -> u64 {
        match lsn.checked_sub(self.lsn) {
            None | Some(0) => 0,
            Some(distance) => distance.div_ceil(self.stride.max(1)).min(self.count),
        }
    }

    /// The first so many of them, and the others.
    pub fn split(self, count: u64) -> (RecordRun, RecordRun) {
        let first = RecordRun { count, ..self };
        let rest =
            RecordRun { lsn: self.lsn + count * self.stride, count: self.count - count, ..self };
        (first, rest)
    }

    /// Where the last one ends.
    pub fn end(&self) -> u64 {
        self.lsn + self.count.saturating_sub(1) * self.stride + self.span
    }
}

/// Writes lengths.
#[derive(Debug, Clone, Default)]
pub(super) struct RunWriter {
    words: Vec<u16>,
    /// Where the next record starts if nothing lies between.
    next: u64,
}

impl RunWriter {
    /// Begins anew at the first record.
    pub(super) fn begin(&mut self, lsn: u64) {
        self.words.clear();
        self.next = lsn;
    }

    /// Adds a record in `[lsn, end)` of so many bytes. Returns where the next one starts if nothing
    /// lies between.
    #[inline(always)]
    pub(super) fn push(&mut self, lsn: u64, end: u64, total_bytes: u32, has_time: bool) -> u64 {
        let gap = lsn.wrapping_sub(self.next);
        let headers = end.wrapping_sub(lsn + u64::from(total_bytes));
        let time = if has_time { HAS_TIME } else { 0 };
        if gap | headers == 0 && total_bytes <= LONGEST {
            self.words.push((total_bytes as u16) << FLAGS | time);
        } else {
            self.push_odd(gap, headers, total_bytes, time);
        }
        self.next = lsn + padded(u64::from(total_bytes));
        self.next
    }

    /// Adds a record after a gap, or over page headers, or a long one.
    #[inline(never)]
    fn push_odd(&mut self, gap: u64, headers: u64, total_bytes: u32, time: u16) {
        let is_long = total_bytes > LONGEST;
        let gap_flag = if gap != 0 { HAS_GAP } else { 0 };
        let headers_flag = if headers != 0 || is_long { HAS_HEADERS } else { 0 };
        let length = if is_long { 0 } else { total_bytes as u16 };
        self.words.push(length << FLAGS | gap_flag | headers_flag | time);
        if is_long {
            self.words.extend([total_bytes as u16, (total_bytes >> 16) as u16]);
        }
        if gap_flag != 0 {
            self.distance(gap);
        }
        if headers_flag != 0 {
            self.distance(headers);
        }
    }

    fn distance(&mut self, bytes: u64) {
        let units = bytes / 8;
        if units < u64::from(LONG_DISTANCE) {
            return self.words.push(units as u16);
        }
        let words = [0, 16, 32, 48].map(|shift| (units >> shift) as u16);
        self.words.push(LONG_DISTANCE);
        self.words.extend(words);
    }

    /// Adds so many records that are as long as the last one, each directly after the one before,
    /// without a time.
    pub(super) fn repeat(&mut self, count: u16, stride: u64) {
        self.words.extend([REPEATS, count]);
        self.next += u64::from(count) * stride;
    }

    /// From where to read the records to come: the place in what was written, and that of the next
    /// record if nothing lies between.
    pub(super) fn pause(&self) -> (usize, u64) {
        (self.words.len(), self.next)
    }

    /// What was written.
    pub(super) fn finish(&mut self) -> Box<[u16]> {
        let written = self.words.as_slice().into();
        self.words.clear();
        written
    }
}

/// Reads what a [`RunWriter`] wrote for records from `next` on.
#[derive(Debug, Clone)]
pub struct RecordRuns<'a> {
    rest: &'a [u16],
    next: u64,
    last: u64,
}

impl<'a> RecordRuns<'a> {
    /// From the first record on, which starts at `lsn`.
    pub fn new(words: &'a [u16], lsn: u64) -> RecordRuns<'a> {
        RecordRuns { rest: words, next: lsn, last: 0 }
    }

    #[inline(always)]
    fn word(&mut self) -> Option<u16> {
        let (word, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*word)
    }

    /// The flags, gap, headers and length of a record that is not plain.
    #[inline(never)]
    fn odd(&mut self, word: u16) -> Option<(u64, u64, u64)> {
        let mut total_bytes = u64::from(word >> FLAGS);
        if total_bytes == 0 {
            total_bytes = u64::from(self.word()?) | u64::from(self.word()?) << 16;
        }
        let gap = if word & HAS_GAP != 0 { self.distance()? } else { 0 };
        let headers = if word & HAS_HEADERS != 0 { self.distance()? } else { 0 };
        Some((gap, headers, total_bytes))
    }

    fn distance(&mut self) -> Option<u64> {
        let mut units = u64::from(self.word()?);
        if units == u64::from(LONG_DISTANCE) {
            units = 0;
            for shift in [0, 16, 32, 48] {
                units |= u64::from(self.word()?) << shift;
            }
        }
        Some(units * 8)
    }
}

impl Iterator for RecordRuns<'_> {
    type Item = RecordRun;

    #[inline]
    fn next(&mut self) -> Option<RecordRun> {
        let word = self.word()?;
        let has_time = word & HAS_TIME != 0;
        let (mut gap, mut headers, mut total_bytes, mut count) = (0, 0, self.last, 1);
        if word == REPEATS {
            count = u64::from(self.word()?);
        } else if word & (HAS_GAP | HAS_HEADERS) == 0 {
            total_bytes = u64::from(word >> FLAGS);
        } else {
            (gap, headers, total_bytes) = self.odd(word)?;
        }
        let lsn = self.next.wrapping_add(gap);
        let stride = padded(total_bytes);
        self.last = total_bytes;
        self.next = lsn.wrapping_add(count * stride);
        Some(RecordRun { lsn, stride, total_bytes, span: total_bytes + headers, count, has_time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Start, end, length, whether it states its time.
    type One = (u64, u64, u32, bool);

    fn written(records: &[One]) -> Box<[u16]> {
        let mut writer = RunWriter::default();
        writer.begin(records.first().map_or(0, |record| record.0));
        let (mut next, mut length) = (0, 0);
        for &(lsn, end, total, has_time) in records {
            if (lsn, total) == (next, length) && end == lsn + u64::from(total) && !has_time {
                writer.repeat(1, padded(u64::from(total)));
                next += padded(u64::from(total));
            } else {
                next = writer.push(lsn, end, total, has_time);
            }
            length = total;
        }
        writer.finish()
    }

    fn read(words: &[u16], lsn: u64) -> Vec<One> {
        let mut records = Vec::new();
        for run in RecordRuns::new(words, lsn) {
            let mut rest = run;
            while rest.count > 0 {
                let (one, others) = rest.split(1);
                records.push((one.lsn, one.end(), one.total_bytes as u32, one.has_time));
                rest = others;
            }
        }
        records
    }

    #[test]
    fn records_of_one_length_take_next_to_nothing() {
        let records: Vec<One> =
            (0..4000).map(|i| (40 + i * 64, 40 + i * 64 + 59, 59, false)).collect();
        let mut writer = RunWriter::default();
        writer.begin(40);
        writer.push(40, 99, 59, false);
        writer.repeat(3999, 64);
        let words = writer.finish();
        assert_eq!(words.len(), 3);
        assert_eq!(read(&words, 40), records);
    }

    #[test]
    fn a_run_says_how_many_start_before_a_place() {
        let run =
            RecordRun { lsn: 100, stride: 8, total_bytes: 8, span: 8, count: 3, has_time: false };
        let before = [99, 100, 101, 108, 109, 117, 1000].map(|lsn| run.before(lsn));
        assert_eq!(before, [0, 0, 1, 1, 2, 3, 3]);
        assert_eq!(run.end(), 124);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            parts in proptest::collection::vec(
                (prop_oneof![Just(59u32), Just(64), 24..9000u32, 24..1u32 << 29],
                 prop_oneof![4 => Just(0u64), 1 => 0..9u64, 1 => 0..1u64 << 34],
                 prop_oneof![4 => Just(0u64), 1 => 0..9u64],
                 prop_oneof![4 => Just(false), 1 => any::<bool>()]),
                1..60),
        ) {
            let mut at = 0x100_0028u64;
            let mut records = Vec::new();
            for (total, gap, headers, has_time) in parts {
                let lsn = at + gap * 8;
                let end = lsn + u64::from(total) + headers * 8;
                records.push((lsn, end, total, has_time));
                at = (end + 7) & !7;
            }
            let first = records[0].0;
            prop_assert_eq!(read(&written(&records), first), records);
        }
    }
}
