//! Damages of a segment's plain bytes. Whether one does harm is not said here: the oracle compares.

use super::chain::{Chain, PAGE, SEGMENT, Segment};
use crate::common::xorshift::Xorshift;

/// A segment to be damaged, with its neighbours.
pub struct Target<'c> {
    /// Where it belongs.
    pub chain: &'c Chain,
    /// Which of the three it is.
    pub index: usize,
    /// For places.
    pub random: Xorshift,
}

/// Makes the damaged bytes; none where it makes no sense here.
type Make = fn(&mut Target<'_>) -> Option<Vec<u8>>;

/// The same with parameters bound.
type MakeBound = Box<dyn Fn(&mut Target<'_>) -> Option<Vec<u8>> + Send + Sync>;

/// A damage by name.
pub struct Damage {
    /// For messages; the name of a group.
    pub name: String,
    /// Does it.
    pub make: MakeBound,
}

impl<'c> Target<'c> {
    /// The segment.
    pub fn segment(&self) -> &'c Segment {
        &self.chain.segments[self.index]
    }

    fn bytes(&self) -> Vec<u8> {
        self.segment().plain.clone()
    }

    /// A page with records, not the first one.
    fn page(&mut self) -> usize {
        let pages = (self.segment().end() / PAGE).max(2) as u64;
        (1 + self.random.below(pages - 1)) as usize * PAGE
    }

    /// Bytes up to `end`.
    fn cut(&self, end: usize) -> Option<Vec<u8>> {
        Some(self.segment().plain[..end].to_vec())
    }

    /// Zeros from `start` on.
    fn zeros_from(&self, start: usize) -> Option<Vec<u8>> {
        let mut bytes = self.bytes();
        bytes[start..].fill(0);
        Some(bytes)
    }

    /// One bit turned over.
    fn turn(&mut self, at: usize) -> Option<Vec<u8>> {
        let mut bytes = self.bytes();
        bytes[at] ^= 1 << self.random.below(8);
        Some(bytes)
    }
}

/// Damages of stretches of a segment.
const STRETCHES: [(&str, Make); 26] = [
    ("cut at the end of a page", |t| {
        let page = t.page();
        t.cut(page)
    }),
    ("cut inside of a page", |t| {
        let page = t.page();
        t.cut(page + 1000)
    }),
    ("cut inside of a record's header", |t| t.cut(t.segment().record(2).start + 10)),
    ("cut in the first page's header", |t| t.cut(20)),
    ("one byte short", |t| t.cut(SEGMENT - 1)),
    ("no bytes", |t| t.cut(0)),
    ("zeros from a page on", |t| {
        let page = t.page();
        t.zeros_from(page)
    }),
    ("zeros from a record on", |t| t.zeros_from(t.segment().record(3).start)),
    ("zeros from the last record on", |t| t.zeros_from(t.segment().last_record().start)),
    ("zeros from inside the last record on", |t| {
        let last = t.segment().last_record();
        t.zeros_from((last.start + last.end) / 2)
    }),
    ("all zeros", |t| t.zeros_from(0)),
    ("a page of zeros", |t| {
        let (page, mut bytes) = (t.page(), t.bytes());
        bytes[page..page + PAGE].fill(0);
        Some(bytes)
    }),
    ("a sector of zeros", |t| {
        let (sector, mut bytes) = (t.page() + 512 * (1 + t.random.below(15) as usize), t.bytes());
        bytes[sector..sector + 512].fill(0);
        Some(bytes)
    }),
    ("a sector of noise", |t| {
        let (sector, mut bytes) = (t.page() + 512 * (1 + t.random.below(15) as usize), t.bytes());
        bytes[sector..sector + 512].fill_with(|| t.random.next() as u8);
        Some(bytes)
    }),
    ("a record of zeros", |t| {
        let (record, mut bytes) = (t.segment().record(2).clone(), t.bytes());
        bytes[record.start..record.end.min(SEGMENT)].fill(0);
        Some(bytes)
    }),
    ("the content of the segment before", |t| {
        Some(t.chain.segments.get(t.index.checked_sub(1)?)?.plain.clone())
    }),
    ("the content of the segment after", |t| {
        Some(t.chain.segments.get(t.index + 1)?.plain.clone())
    }),
    ("older content from a page on", |t| {
        let older = &t.chain.segments.get(t.index.checked_sub(1)?)?.plain;
        let (page, mut bytes) = (t.page(), t.bytes());
        bytes[page..].copy_from_slice(&older[page..]);
        Some(bytes)
    }),
    ("the cluster of another server", |t| {
        let mut bytes = t.bytes();
        bytes[24..32].copy_from_slice(&77_u64.to_le_bytes());
        Some(bytes)
    }),
    ("the magic of another release", |t| {
        let mut bytes = t.bytes();
        let magic = if bytes[0] == 0x10 { [0x06, 0xD1] } else { [0x10, 0xD1] };
        bytes.chunks_mut(PAGE).for_each(|page| page[..2].copy_from_slice(&magic));
        Some(bytes)
    }),
    ("pages of another timeline", |t| {
        let mut bytes = t.bytes();
        bytes.chunks_mut(PAGE).for_each(|page| page[4] = 3);
        Some(bytes)
    }),
    ("a page twice", |t| {
        let (page, mut bytes) = (t.page(), t.bytes());
        bytes.copy_within(page - PAGE..page, page);
        Some(bytes)
    }),
    ("text", |t| Some(b"no WAL\n".repeat(t.random.below(200_000) as usize))),
    ("one byte more", |t| Some([&t.bytes()[..], b"x"].concat())),
    ("a page of zeros more", |t| Some([&t.bytes()[..], &[0; PAGE]].concat())),
    ("a segment more", |t| Some([t.bytes(), t.bytes()].concat())),
];

/// Bytes of a page header in which a bit is turned over; the last three of the segment's first.
const PAGE_FIELDS: [(&str, usize); 8] = [
    ("magic", 0),
    ("unknown flag", 3),
    ("timeline", 5),
    ("address", 9),
    ("high address", 13),
    ("cluster", 26),
    ("segment size", 33),
    ("page size", 36),
];

/// Bytes of a record's header in which a bit is turned over.
const RECORD_FIELDS: [(&str, usize); 9] = [
    ("length", 0),
    ("high length", 2),
    ("xid", 5),
    ("link", 9),
    ("info", 16),
    ("resource manager", 17),
    ("checksum", 21),
    ("first byte of data", 24),
    ("second byte of data", 25),
];

fn in_page_header(name: &str, offset: usize, place: usize) -> Damage {
    let places = ["first", "a middle", "the last"];
    let make = move |t: &mut Target<'_>| {
        let last = (t.segment().end() - 1) / PAGE;
        t.turn([0, last / 2, last][place] * PAGE + offset)
    };
    Damage { name: format!("{name} of {} page", places[place]), make: Box::new(make) }
}

fn in_record(name: &str, offset: usize, place: usize) -> Damage {
    let places = ["an early", "a middle", "a late", "the last"];
    let make = move |t: &mut Target<'_>| {
        let segment = t.segment();
        let record = match place {
            3 => segment.last_record(),
            place => segment.record(place * 2),
        };
        // A header that goes on in the next page is left to other records.
        let in_page = record.start / PAGE == (record.start + offset) / PAGE;
        if in_page && record.start + offset < record.end {
            t.turn(record.start + offset)
        } else {
            None
        }
    };
    Damage { name: format!("{name} of {} record", places[place]), make: Box::new(make) }
}

/// All of them.
pub fn all() -> Vec<Damage> {
    let stretches = STRETCHES
        .into_iter()
        .map(|(name, make)| Damage { name: name.to_owned(), make: Box::new(make) });
    let mut all: Vec<Damage> = stretches.collect();
    for (name, offset) in PAGE_FIELDS {
        let places = if offset < 24 { 0..3 } else { 0..1 };
        all.extend(places.map(|place| in_page_header(name, offset, place)));
    }
    for (name, offset) in RECORD_FIELDS {
        all.extend((0..4).map(|place| in_record(name, offset, place)));
    }
    all
}

/// Changes stored bytes.
pub type Spoil = fn(&mut Vec<u8>);

/// Damages of stored bytes: compressed files, tars.
pub const STORED: [(&str, Spoil); 21] = [
    ("a quarter is there", |b| b.truncate(b.len() / 4)),
    ("half is there", |b| b.truncate(b.len() / 2)),
    ("three quarters are there", |b| b.truncate(b.len() / 4 * 3)),
    ("a tenth of a percent is missing", |b| b.truncate(b.len() - b.len() / 1000 - 1)),
    ("one byte is missing", |b| b.truncate(b.len() - 1)),
    ("four bytes are missing", |b| b.truncate(b.len() - 4)),
    ("eight bytes are missing", |b| b.truncate(b.len() - 8)),
    ("ten bytes are there", |b| b.truncate(10)),
    ("one byte is there", |b| b.truncate(1)),
    ("nothing is there", |b| b.clear()),
    ("bit of the first byte", |b| turn(b, |_| 0, 1)),
    ("bit of the fifth byte", |b| turn(b, |_| 4, 8)),
    ("bit at a quarter", |b| turn(b, |n| n / 4, 4)),
    ("bit at the half", |b| turn(b, |n| n / 2, 1)),
    ("bit at three quarters", |b| turn(b, |n| n / 4 * 3, 0x40)),
    ("bit of the last byte", |b| turn(b, |n| n - 1, 1)),
    ("bit of the last but four", |b| turn(b, |n| n - 5, 2)),
    ("bit of the last but eleven", |b| turn(b, |n| n - 12, 0x10)),
    ("text behind", |b| b.extend(b"and something else\n")),
    ("zeros behind", |b| b.extend([0; 512])),
    ("the same again behind", |b| b.extend_from_within(..)),
];

/// Turns a bit over; `at`: where, of so many bytes.
fn turn(bytes: &mut [u8], at: fn(usize) -> usize, bit: u8) {
    let at = at(bytes.len());
    bytes[at] ^= bit;
}
