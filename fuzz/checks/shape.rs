//! Bytes of the fuzzer → segments that are nearly WAL, so that what lies behind the first checks
//! is reached: a few control bytes say which release and sizes, whether page headers are made to
//! fit, whether the content becomes records with links and checksums, and what is spoiled
//! afterwards. Not for judging what a reader makes of them.

use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::page::{FIRST_IS_CONTRECORD, Geometry, LONG_HEADER, PageHeader};
use walstat_format::record_header::{CRC_OFFSET, RECORD_HEADER_BYTES};
use walstat_format::version::{VERSIONS, Version};

/// Most segments of a shape.
pub const SEGMENTS: usize = 3;
const SYSTEM_IDENTIFIER: u64 = 7_000_000_000_000_000_001;

/// Bits of the flags.
mod flag {
    pub const PAGES_FIT: u8 = 0x01;
    pub const RECORDS: u8 = 0x02;
    pub const UNCHECKED: u8 = 0x04;
    pub const RANGE: u8 = 0x08;
    pub const FILTER: u8 = 0x10;
    pub const PLACE_AS_SAID: u8 = 0x20;
    pub const LIMIT: u8 = 0x40;
}

/// Reads forward through the fuzzer's bytes; behind their end there are zeros.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let found = self.up_to(N);
        bytes[..found.len()].copy_from_slice(found);
        bytes
    }

    fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn up_to(&mut self, bytes: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        head
    }
}

/// Segments, and how to read them.
pub struct Shape {
    /// Release and sizes.
    pub geometry: Geometry,
    /// Timeline of the files.
    pub timeline: u32,
    /// Number of the first segment.
    pub first: u64,
    /// The segments; one that is missing is `None`, the last one may be cut.
    pub segments: Vec<Option<Vec<u8>>>,
    /// Whether checksums are verified.
    pub checked: bool,
    /// The range.
    pub range: (Lsn, Lsn),
    /// Whether half of the resource managers are filtered out.
    pub filter: bool,
    /// Stop after that many records.
    pub limit: Option<u64>,
}

impl Shape {
    /// Makes segments of the fuzzer's bytes. `segment_bytes`: the size, else one of few pages.
    pub fn of(data: &[u8], segment_bytes: Option<u32>) -> Shape {
        let mut input = Input(data);
        let version = &VERSIONS[usize::from(input.byte()) % VERSIONS.len()];
        let page_bytes = 1024u32 << (input.byte() % 5);
        let layout = input.byte();
        let flags = input.byte();
        let (start, end) = (u64::from(input.u16()), u64::from(input.u16()));
        let cut = usize::from(input.u16());
        let (_, timeline, limit) = (input.byte(), input.byte(), input.byte());
        let spoilers = input.byte() % 9;
        let place = u64::from(input.u16());
        let spoilers: Vec<[u8; 5]> = (0..spoilers).map(|_| input.take()).collect();

        let segment_bytes = segment_bytes.unwrap_or(page_bytes << (1 + (layout & 3)));
        let size = u64::from(segment_bytes);
        let said = PageHeader::parse(input.0).map_or(0, |header| header.address.0 / size);
        let first = if flags & flag::PLACE_AS_SAID != 0 { said } else { place + 1 };
        let geometry =
            Geometry { version, system_identifier: SYSTEM_IDENTIFIER, segment_bytes, page_bytes };
        let mut wal = Wal { geometry, timeline: 1 + u32::from(timeline % 4), first, bytes: vec![] };
        wal.fill(&mut input, flags & flag::RECORDS != 0, flags & flag::PAGES_FIT != 0);
        spoilers.iter().for_each(|spoiler| wal.spoil(spoiler));
        let base = first.saturating_mul(size);
        let range = match flags & flag::RANGE {
            0 => (Lsn(0), Lsn::MAX),
            _ => (Lsn(base.saturating_add(start)), Lsn(base.saturating_add(start + 1 + end))),
        };
        Shape {
            geometry,
            timeline: wal.timeline,
            first,
            segments: wal.segments(layout >> 2 & 7, cut),
            checked: flags & flag::UNCHECKED == 0,
            range,
            filter: flags & flag::FILTER != 0,
            limit: (flags & flag::LIMIT != 0).then_some(u64::from(limit) + 1),
        }
    }
}

/// WAL being made.
struct Wal {
    geometry: Geometry,
    timeline: u32,
    first: u64,
    bytes: Vec<u8>,
}

impl Wal {
    fn base(&self) -> u64 {
        self.first.wrapping_mul(u64::from(self.geometry.segment_bytes))
    }

    /// Fills pages with what is left of the input.
    fn fill(&mut self, input: &mut Input<'_>, records: bool, pages_fit: bool) {
        let most = SEGMENTS * self.geometry.segment_bytes as usize;
        if !records {
            self.bytes = input.up_to(most).to_vec();
            let page_bytes = self.geometry.page_bytes as usize;
            for at in (0..self.bytes.len()).step_by(page_bytes).filter(|_| pages_fit) {
                self.fit_page(at);
            }
            return;
        }
        let mut previous = self.base().saturating_sub(48);
        while !input.0.is_empty() && self.bytes.len() < most {
            let lsn = self.next_place();
            let record = record(input, previous, self.geometry.version);
            self.append(&record);
            previous = lsn;
            if record.len() == RECORD_HEADER_BYTES {
                let segment = self.geometry.segment_bytes as usize;
                self.bytes.resize(self.bytes.len().next_multiple_of(segment), 0);
            }
        }
        self.bytes.truncate(most);
    }

    /// Overwrites what the header of a page must have, and leaves its flags for continued
    /// content as they are.
    fn fit_page(&mut self, at: usize) {
        let header = self.header(at, 0);
        let flags = if is_first(at, &self.geometry) { LONG_HEADER as u8 } else { 0 };
        let page = &mut self.bytes[at..];
        let length = page.len().min(header.len());
        let continued = page.get(2).map_or(0, |info| info & FIRST_IS_CONTRECORD as u8);
        let remaining = page.get(16..20).map(<[u8]>::to_vec);
        page[..length].copy_from_slice(&header[..length]);
        if let (Some(remaining), Some(info)) = (remaining, page.get_mut(2)) {
            *info = flags | continued;
            page[16..20].copy_from_slice(&remaining);
        }
    }

    fn header(&self, at: usize, remaining: u32) -> Vec<u8> {
        let first = is_first(at, &self.geometry);
        let continued = if remaining > 0 { FIRST_IS_CONTRECORD } else { 0 };
        let info = if first { LONG_HEADER | continued } else { continued };
        let mut header = self.geometry.version.magic.to_le_bytes().to_vec();
        header.extend(info.to_le_bytes());
        header.extend(self.timeline.to_le_bytes());
        header.extend(self.base().wrapping_add(at as u64).to_le_bytes());
        header.extend(u64::from(remaining).to_le_bytes());
        if first {
            header.extend(SYSTEM_IDENTIFIER.to_le_bytes());
            header.extend(self.geometry.segment_bytes.to_le_bytes());
            header.extend(self.geometry.page_bytes.to_le_bytes());
        }
        header
    }

    /// Where the next record starts: behind the header of a page that is begun for it.
    fn next_place(&mut self) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        if self.bytes.len().is_multiple_of(self.geometry.page_bytes as usize) {
            let header = self.header(self.bytes.len(), 0);
            self.bytes.extend(header);
        }
        self.base().wrapping_add(self.bytes.len() as u64)
    }

    fn append(&mut self, record: &[u8]) {
        let page_bytes = self.geometry.page_bytes as usize;
        let mut rest = record;
        while !rest.is_empty() {
            let at = self.bytes.len();
            if at.is_multiple_of(page_bytes) {
                let header = self.header(at, rest.len() as u32);
                self.bytes.extend(header);
            }
            let room = page_bytes - self.bytes.len() % page_bytes;
            let (piece, more) = rest.split_at(room.min(rest.len()));
            self.bytes.extend_from_slice(piece);
            rest = more;
        }
    }

    /// Changes something: a byte, a page of zeros, old content, a page that replaces a record.
    fn spoil(&mut self, &[low, high, kind, value, _]: &[u8; 5]) {
        let page_bytes = self.geometry.page_bytes as usize;
        let (pages, pair) = (self.bytes.len() / page_bytes, u16::from_le_bytes([low, high]));
        let page = usize::from(pair) % pages.max(1) * page_bytes;
        let at = (usize::from(pair) + (usize::from(kind >> 4) << 16)) % self.bytes.len().max(1);
        if self.bytes.len() < page + page_bytes || self.bytes.len() < page_bytes {
            return;
        }
        match kind & 7 {
            0..=2 => self.bytes[at] ^= value,
            3 => self.bytes[page..page + page_bytes].fill(0),
            4 => self.bytes[at..].fill(value & 0x80),
            5 => {
                let old = usize::from(value) % pages * page_bytes;
                self.bytes.copy_within(old..old + page_bytes, page);
            }
            6 => {
                let flag = self.geometry.version.overwrite_flag as u8;
                self.bytes[page + 2] = self.bytes[page + 2] & LONG_HEADER as u8 | flag;
            }
            _ => self.bytes[page + 8 + usize::from(value % 8)] ^= low | 1,
        }
    }

    /// The segments for which there is a bit in `mask`, all if there is none. What holds the
    /// last bytes is cut there; others are filled with zeros.
    fn segments(self, mask: u8, cut: usize) -> Vec<Option<Vec<u8>>> {
        let segment_bytes = self.geometry.segment_bytes as usize;
        let mut segments: Vec<Option<Vec<u8>>> =
            self.bytes.chunks(segment_bytes).map(|chunk| Some(chunk.to_vec())).collect();
        if let Some(Some(last)) = segments.last_mut() {
            let length = if cut > 0 { last.len().max(cut) } else { segment_bytes };
            last.resize(length.min(segment_bytes), 0);
        }
        let missing =
            segments.iter_mut().enumerate().filter(|(i, _)| mask != 0 && mask >> i & 1 == 0);
        missing.for_each(|(_, segment)| *segment = None);
        segments
    }
}

fn is_first(at: usize, geometry: &Geometry) -> bool {
    at.is_multiple_of(geometry.segment_bytes as usize)
}

/// A record of a kind, a length and content from the input, with a right checksum.
fn record(input: &mut Input<'_>, previous: u64, version: &Version) -> Vec<u8> {
    let [kind, info, xid] = input.take();
    let length = usize::from(input.u16()) % 6000;
    let content = input.up_to(length);
    let body = match kind >> 5 {
        // An XLOG_SWITCH.
        0 if info & 0xF0 == 0x40 => Vec::new(),
        0 => content.to_vec(),
        // Longer than the input: over pages, and over segments.
        1 => {
            let bytes = length * 64;
            let mut body = [&[254][..], &(bytes as u32).to_le_bytes(), content].concat();
            body.resize(5 + bytes, 0);
            body
        }
        2..=4 if content.len() < 256 => [&[255, content.len() as u8], content].concat(),
        _ => [&[254][..], &(content.len() as u32).to_le_bytes(), content].concat(),
    };
    let rmgr = if body.is_empty() { 0 } else { (kind & 31) % (version.rmgr_max + 1) };
    let mut record = ((RECORD_HEADER_BYTES + body.len()) as u32).to_le_bytes().to_vec();
    record.extend(u32::from(xid).to_le_bytes());
    record.extend(previous.to_le_bytes());
    record.extend([info, rmgr, 0, 0, 0, 0, 0, 0]);
    record.extend(body);
    let checksum = Crc32c::portable().record(&record);
    record[CRC_OFFSET..RECORD_HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    record
}
