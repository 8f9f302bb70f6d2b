//! Three segments in a row as they should be, of every release, made or real; and which of their
//! bytes anybody looks at. The bytes are taken for valid: no checksum is computed here.

use std::ops::Range;

use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, Rec};
use crate::common::xorshift::Xorshift;
use crate::support::fixtures::Sample;
use crate::support::pgbackrest::sha1_of;
use crate::support::wal::plain;

/// Bytes of a segment.
pub const SEGMENT: usize = 1 << 20;
/// Bytes of a page.
pub const PAGE: usize = 8192;
/// `MAXALIGN`.
const ALIGNMENT: usize = 8;

/// A record and where its bytes lie, in the segment in which it starts.
#[derive(Debug, Clone)]
pub struct Record {
    /// First byte.
    pub start: usize,
    /// Behind the last byte; more than a segment where it goes on in the next one.
    pub end: usize,
    /// Nothing follows in its segment.
    is_switch: bool,
}

/// One segment.
#[derive(Debug)]
pub struct Segment {
    /// Its file name.
    pub name: String,
    /// Its bytes.
    pub plain: Vec<u8>,
    /// For every byte, whether a reader of whole records looks at it.
    pub matters: Vec<bool>,
    /// Whole records that start here, ascending.
    pub records: Vec<Record>,
    /// SHA-1 of its bytes.
    pub sha1: String,
}

/// Segments in a row.
#[derive(Debug)]
pub struct Chain {
    /// For messages.
    pub name: String,
    /// The segments.
    pub segments: Vec<Segment>,
    /// The number of the first one.
    pub number: u64,
}

impl Chain {
    /// Three segments of a release. The last one ends with a switch, or (`flows`) in a record that
    /// goes on in a segment that is not there; then the first one begins inside of a record.
    pub fn made(release: &str, flows: bool) -> Chain {
        let mut wal = Wal::new(Form::of(release), 9);
        let mut random = Xorshift::new(release.bytes().fold(7, |h, b| h * 31 + u64::from(b)));
        let pattern = if flows { [true, true, false, true] } else { [true, true, true, false] };
        for is_filled in pattern {
            fill(&mut wal, &mut random, is_filled);
        }
        wal.add(&Rec::data(200));
        let files = wal.finish().files.into_values().skip(1).take(3);
        let form = if flows { "flowing" } else { "switched" };
        Chain::new(format!("made {release} {form}"), 10, files.collect())
    }

    /// Three segments as a running server has them: records end in the last one, and zeros follow. The
    /// last record lies in several sectors, its header in two of them.
    pub fn open(release: &str) -> Chain {
        let mut wal = Wal::new(Form::of(release), 9);
        let mut random = Xorshift::new(4711);
        (0..3).for_each(|_| fill(&mut wal, &mut random, true));
        while wal.next().0 % SEGMENT as u64 / (PAGE as u64) < 40 {
            wal.add(&Rec::data(random.below(700) as usize + 1));
        }
        while wal.next().0 % 512 != 496 || wal.next().0 % PAGE as u64 > 4096 {
            wal.add(&Rec::sized(40));
        }
        wal.add(&Rec::data(2500));
        let files = wal.finish().files.into_values().skip(1).take(3);
        Chain::new(format!("open {release}"), 10, files.collect())
    }

    /// Three segments of a sample, the first ones that are complete, if it has such.
    pub fn real(sample: &Sample) -> Option<Chain> {
        let names = sample.segments();
        let numbered: Vec<(u64, &String)> = names.iter().map(|name| (number(name), name)).collect();
        let in_a_row = |w: &&[(u64, &String)]| w[0].0 + 2 == w[2].0;
        let chains = numbered.windows(3).filter(in_a_row).map(|window| {
            let files = window.iter().map(|(_, name)| plain(sample, name)).collect();
            Chain::new(format!("real {}", sample.release), window[0].0, files)
        });
        let complete = |chain: &Chain| chain.segments.iter().all(Segment::is_complete);
        chains.into_iter().find(complete)
    }

    fn new(name: String, number: u64, files: Vec<Vec<u8>>) -> Chain {
        let mut walk = Walk::new(&files);
        walk.run();
        let Walk { matters, records, .. } = walk;
        let segments = files.into_iter().zip(0..).map(|(plain, index)| {
            let base = index * SEGMENT;
            let here = records.iter().filter(|r| r.start / SEGMENT == index);
            Segment {
                name: format!("{:08X}{:08X}{:08X}", 1, 0, number + index as u64),
                matters: matters[base..base + SEGMENT].to_vec(),
                records: here
                    .map(|r| Record { start: r.start - base, end: r.end - base, ..*r })
                    .collect(),
                sha1: sha1_of(&plain),
                plain,
            }
        });
        Chain { name, segments: segments.collect(), number }
    }

    /// The name of the segment so many after the last one.
    pub fn name_after(&self, steps: u64) -> String {
        format!("{:08X}{:08X}{:08X}", 1, 0, self.number + 2 + steps)
    }
}

/// The number in a segment's name; the upper half is 0 in everything read here.
fn number(name: &str) -> u64 {
    u64::from_str_radix(&name[8..16], 16).expect("hex") * 4096
        + u64::from_str_radix(&name[16..], 16).expect("hex")
}

/// Records up to the segment's end and over it, or over some pages with a switch behind them.
fn fill(wal: &mut Wal, random: &mut Xorshift, whole: bool) {
    let begin = wal.next().0 / SEGMENT as u64;
    let enough = |wal: &Wal| {
        if whole {
            wal.next().0 / SEGMENT as u64 > begin
        } else {
            wal.next().0 % SEGMENT as u64 > 40 * PAGE as u64
        }
    };
    while !enough(wal) {
        let mut record = match random.below(8) {
            0 => Rec::data(random.below(9000) as usize + 1),
            // A row has a header of 5 bytes.
            1 => Rec::insert(12).block(Block::new(0).data((random.below(300) as u16 + 1).max(5))),
            _ => Rec::data(random.below(400) as usize + 1),
        };
        // Of runs of one byte every codec makes short work.
        record.main.fill(random.below(255) as u8 + 1);
        if !record.blocks.is_empty() {
            // The offset number of an inserted row.
            record.main[..2].copy_from_slice(&[1, 0]);
        }
        wal.add(&record);
    }
    if !whole {
        wal.switch();
    }
}

impl Segment {
    /// Whether `found` holds all of this segment's WAL.
    pub fn is_held_by(&self, found: &[u8]) -> bool {
        let pages = self.plain.chunks(PAGE).zip(found.chunks(PAGE)).zip(self.matters.chunks(PAGE));
        let same = |((ours, theirs), matters): ((&[u8], &[u8]), &[bool])| {
            ours == theirs || ours.iter().zip(theirs).zip(matters).all(|((a, b), m)| a == b || !m)
        };
        found.len() == self.plain.len() && pages.into_iter().all(same)
    }

    /// Whether it is full of records, or closed early.
    fn is_complete(&self) -> bool {
        let many = self.records.len() > 12;
        many && (self.end() > SEGMENT - PAGE || self.records.iter().any(|r| r.is_switch))
    }

    /// Behind the last byte that matters.
    pub fn end(&self) -> usize {
        self.matters.iter().rposition(|matters| *matters).map_or(0, |last| last + 1)
    }

    /// A record with others before and behind it: `place` of 4 of the way through.
    pub fn record(&self, place: usize) -> &Record {
        let inner = self.records.len() - 3;
        &self.records[1 + inner * place / 4]
    }

    /// The last whole record.
    pub fn last_record(&self) -> &Record {
        self.records.iter().rfind(|r| r.end <= SEGMENT).expect("a whole record")
    }
}

/// Goes from record to record over the bytes of all segments.
struct Walk {
    bytes: Vec<u8>,
    matters: Vec<bool>,
    records: Vec<Record>,
}

impl Walk {
    fn new(files: &[Vec<u8>]) -> Walk {
        let bytes = files.concat();
        Walk { matters: vec![false; bytes.len()], bytes, records: Vec::new() }
    }

    fn run(&mut self) {
        let lead = self.u32_at(16) as usize;
        let Some(mut at) = self.behind(0, lead) else { return };
        while let Some(start) = self.next_start(at) {
            let length = self.u32_at(start) as usize;
            let ranges = self.pieces(start, length);
            let Some((ranges, end)) = ranges.filter(|_| length >= 24) else {
                self.header_of_open_record(start, length);
                break;
            };
            let header: Vec<u8> =
                ranges.iter().flat_map(|r| &self.bytes[r.clone()]).take(18).copied().collect();
            ranges.into_iter().for_each(|range| self.matters[range].fill(true));
            let is_switch = header[17] == 0 && header[16] & 0xF0 == 0x40;
            self.records.push(Record { start, end, is_switch });
            at = if is_switch { end.next_multiple_of(SEGMENT) } else { end };
        }
        self.page_headers();
    }

    fn u32_at(&self, at: usize) -> u32 {
        self.bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four")))
    }

    fn header_bytes(at: usize) -> usize {
        if at.is_multiple_of(SEGMENT) { 40 } else { 24 }
    }

    /// Where the next record starts, at `at` or after its page's header.
    fn next_start(&self, at: usize) -> Option<usize> {
        let at = at.next_multiple_of(ALIGNMENT);
        let start = if at.is_multiple_of(PAGE) { at + Self::header_bytes(at) } else { at };
        (start < self.bytes.len()).then_some(start)
    }

    /// The ranges of `length` bytes from `at` on, page headers left out, and where they end.
    fn pieces(&self, mut at: usize, mut length: usize) -> Option<(Vec<Range<usize>>, usize)> {
        let mut ranges = Vec::new();
        while length > 0 {
            if at.is_multiple_of(PAGE) {
                at += Self::header_bytes(at);
            }
            let piece = length.min((at + 1).next_multiple_of(PAGE) - at);
            ranges.push(at..at + piece);
            (at, length) = (at + piece, length - piece);
        }
        (at <= self.bytes.len()).then_some((ranges, at))
    }

    fn behind(&self, at: usize, length: usize) -> Option<usize> {
        let at = at + Self::header_bytes(at);
        Some(self.pieces(at, length)?.1.max(at))
    }

    /// Of a record that goes on behind the last segment, no checksum can be computed; its length, link
    /// and resource manager can be looked at.
    fn header_of_open_record(&mut self, start: usize, length: usize) {
        if length < 24 {
            return;
        }
        let in_page = (start + 1).next_multiple_of(PAGE);
        for field in [0..4, 8..16, 17..18] {
            let range = start + field.start..(start + field.end).min(in_page);
            range.into_iter().for_each(|at| self.matters[at] = true);
        }
        // The pages that it fills are there for it alone.
        let last = self.bytes.len() - PAGE;
        self.mark_page_header(last.max(start / PAGE * PAGE));
    }

    /// The headers of all pages up to a segment's last record, as far as servers look at them.
    fn page_headers(&mut self) {
        for base in (0..self.bytes.len()).step_by(SEGMENT) {
            let matters = &self.matters[base..base + SEGMENT];
            let end = matters.iter().rposition(|matters| *matters).map_or(0, |last| last + 1);
            (base..base + end).step_by(PAGE).for_each(|page| self.mark_page_header(page));
        }
    }

    fn mark_page_header(&mut self, page: usize) {
        let goes_on = self.bytes[page + 2] & 1 == 1 && page > 0;
        let fields = [0..16, 16..if goes_on { 20 } else { 16 }, 24..Self::header_bytes(page)];
        fields.into_iter().for_each(|f| self.matters[page + f.start..page + f.end].fill(true));
    }
}
