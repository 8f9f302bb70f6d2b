//! Where consecutive records start and how long they are, in a byte or two each: mostly one starts
//! where the one before ends. Records of one length cost nothing but the first.

/// Says that the record before repeats, so many times.
const REPEATS: u64 = 0;

/// Bits below the length.
const FLAGS: u32 = 3;
/// Something lies between the record and the one before: a page header, records that are not
/// counted.
const HAS_GAP: u64 = 1;
/// Page headers lie in it.
const HAS_HEADERS: u64 = 2;
/// It states its own time.
const HAS_TIME: u64 = 4;

/// Records of one form, one directly after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
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

impl Run {
    /// How many of them start before `lsn`.
    #[inline]
    pub fn before(&self, lsn: u64) -> u64 {
        match lsn.checked_sub(self.lsn) {
            None | Some(0) => 0,
            Some(distance) => distance.div_ceil(self.stride.max(1)).min(self.count),
        }
    }

    /// The first so many of them, and the others.
    pub fn split(self, count: u64) -> (Run, Run) {
        let first = Run { count, ..self };
        let rest = Run { lsn: self.lsn + count * self.stride, count: self.count - count, ..self };
        (first, rest)
    }

    /// Where the last one ends.
    pub fn end(&self) -> u64 {
        self.lsn + self.count.saturating_sub(1) * self.stride + self.span
    }
}

/// Writes lengths.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Where the next record starts if nothing lies between.
    next: u64,
}

impl Writer {
    /// Begins anew at the first record.
    pub fn begin(&mut self, lsn: u64) {
        self.bytes.clear();
        self.next = lsn;
    }

    /// Adds a record in `[lsn, end)` of so many bytes. Returns where the next one starts if nothing
    /// lies between.
    #[inline]
    pub fn push(&mut self, lsn: u64, end: u64, total_bytes: u32, has_time: bool) -> u64 {
        let gap = lsn.wrapping_sub(self.next);
        let headers = end.wrapping_sub(lsn + u64::from(total_bytes));
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let flags = flag(gap != 0, HAS_GAP) | flag(headers != 0, HAS_HEADERS);
        self.number(u64::from(total_bytes) << FLAGS | flags | flag(has_time, HAS_TIME));
        for more in [gap, headers] {
            if more != 0 {
                self.number(more / 8);
            }
        }
        self.next = lsn + stride(u64::from(total_bytes));
        self.next
    }

    /// Adds so many records that are as long as the last one, each directly after the one before,
    /// without a time.
    pub fn repeat(&mut self, count: u64, stride: u64) {
        self.number(REPEATS);
        self.number(count);
        self.next += count * stride;
    }

    /// Seven bits a byte, the low ones first; the highest bit says that more follow.
    #[inline]
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// From where to read the records to come, if the next one is pushed: the place in what was
    /// written, and that of the next record if nothing lies between.
    pub fn pause(&self) -> (usize, u64) {
        (self.bytes.len(), self.next)
    }

    /// What was written.
    pub fn finish(&mut self) -> Box<[u8]> {
        let written = self.bytes.as_slice().into();
        self.bytes.clear();
        written
    }
}

/// From the start of a record to the next, page headers left out.
#[inline(always)]
pub fn stride(total_bytes: u64) -> u64 {
    (total_bytes + 7) & !7
}

/// Reads what a [`Writer`] wrote for records from `next` on.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    rest: &'a [u8],
    next: u64,
    last: u64,
}

impl<'a> Runs<'a> {
    /// From the first record on, which starts at `lsn`.
    pub fn new(bytes: &'a [u8], lsn: u64) -> Runs<'a> {
        Runs { rest: bytes, next: lsn, last: 0 }
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        let mut value = self.number()?;
        let mut count = 1;
        if value == REPEATS {
            count = self.number()?;
            // Only the length repeats.
            value = self.last >> FLAGS << FLAGS;
        }
        let gap = if value & HAS_GAP != 0 { self.number()? * 8 } else { 0 };
        let headers = if value & HAS_HEADERS != 0 { self.number()? * 8 } else { 0 };
        let total_bytes = value >> FLAGS;
        let lsn = self.next.wrapping_add(gap);
        let stride = stride(total_bytes);
        self.last = value;
        self.next = lsn.wrapping_add(count * stride);
        let span = total_bytes + headers;
        let has_time = value & HAS_TIME != 0;
        Some(Run { lsn, stride, total_bytes, span, count, has_time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Start, end, length, whether it states its time.
    type One = (u64, u64, u32, bool);

    fn written(records: &[One]) -> Box<[u8]> {
        let mut writer = Writer::default();
        writer.begin(records.first().map_or(0, |record| record.0));
        let (mut next, mut length) = (0, 0);
        for &(lsn, end, total, has_time) in records {
            if (lsn, total) == (next, length) && end == lsn + u64::from(total) && !has_time {
                writer.repeat(1, stride(u64::from(total)));
                next += stride(u64::from(total));
            } else {
                next = writer.push(lsn, end, total, has_time);
            }
            length = total;
        }
        writer.finish()
    }

    fn read(bytes: &[u8], lsn: u64) -> Vec<One> {
        let mut records = Vec::new();
        for run in Runs::new(bytes, lsn) {
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
        let mut writer = Writer::default();
        writer.begin(40);
        writer.push(40, 99, 59, false);
        writer.repeat(3999, 64);
        let bytes = writer.finish();
        assert!(bytes.len() <= 6, "{bytes:?}");
        assert_eq!(read(&bytes, 40), records);
    }

    #[test]
    fn a_run_says_how_many_start_before_a_place() {
        let run = Run { lsn: 100, stride: 8, total_bytes: 8, span: 8, count: 3, has_time: false };
        let before = [99, 100, 101, 108, 109, 117, 1000].map(|lsn| run.before(lsn));
        assert_eq!(before, [0, 0, 1, 1, 2, 3, 3]);
        assert_eq!(run.end(), 124);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            parts in proptest::collection::vec(
                (prop_oneof![Just(59u32), Just(64), 24..9000u32, 24..1u32 << 29],
                 prop_oneof![4 => Just(0u64), 1 => 0..1u64 << 34],
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
