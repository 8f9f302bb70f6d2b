//! Records → pages → segments: WAL of any release, page size and segment size, starting
//! anywhere, with every oddity that a server can leave in it. Writes what it is told to write;
//! what the reader makes of it is the tests' business.

use super::disk::Disk;
use super::record::Rec;
use std::collections::BTreeMap;
use walstat_format::lsn::Lsn;
use walstat_format::version::{VERSIONS, Version};

const CONTRECORD: u16 = 0x0001;
const LONG: u16 = 0x0002;

/// What all pages have in common.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// The release.
    pub version: &'static Version,
    /// Segment size, bytes.
    pub segment: u64,
    /// Page size, bytes.
    pub page: u64,
    /// Cluster.
    pub system: u64,
    /// Timeline.
    pub timeline: u32,
}

impl Form {
    /// Pages of 8 kB in segments of 1 MB.
    pub fn of(release: &str) -> Form {
        let version = VERSIONS.iter().find(|version| version.name == release);
        let version = version.unwrap_or_else(|| panic!("no release {release}"));
        Form { version, segment: 1 << 20, page: 8192, system: 4242, timeline: 1 }
    }

    /// The same with another page size.
    pub fn pages_of(self, page: u64) -> Form {
        Form { page, ..self }
    }

    /// Bytes of the header of the page at `lsn`.
    pub fn header(&self, lsn: u64) -> u64 {
        if lsn.is_multiple_of(self.segment) { 40 } else { 24 }
    }

    /// A page header.
    fn page_header(&self, lsn: u64, flags: u16, remaining: usize) -> Vec<u8> {
        let long = lsn.is_multiple_of(self.segment);
        let flags = if long { flags | LONG } else { flags };
        let mut header = Vec::with_capacity(40);
        header.extend(self.version.magic.to_le_bytes());
        header.extend(flags.to_le_bytes());
        header.extend(self.timeline.to_le_bytes());
        header.extend(lsn.to_le_bytes());
        header.extend((remaining as u32).to_le_bytes());
        header.extend([0; 4]);
        if long {
            header.extend(self.system.to_le_bytes());
            header.extend((self.segment as u32).to_le_bytes());
            header.extend((self.page as u32).to_le_bytes());
        }
        header
    }
}

/// WAL that is being written.
#[derive(Debug, Clone)]
pub struct Wal {
    /// Sizes and release.
    pub form: Form,
    /// Where every record was put, and its total length.
    pub records: Vec<(Lsn, usize)>,
    base: u64,
    bytes: Vec<u8>,
    previous: u64,
    torn: u64,
}

impl Wal {
    /// Begins at the first byte of segment `number`.
    pub fn new(form: Form, number: u64) -> Wal {
        let base = number * form.segment;
        Wal { form, records: Vec::new(), base, bytes: Vec::new(), previous: 0, torn: 0 }
    }

    /// Behind the last byte that is written.
    pub fn at(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Where the next record starts: behind the page header, if a page is to be begun.
    pub fn next(&self) -> Lsn {
        let at = self.at();
        let header = if at.is_multiple_of(self.form.page) { self.form.header(at) } else { 0 };
        Lsn(at + header)
    }

    /// Adds a record, and says where it starts.
    pub fn add(&mut self, record: &Rec) -> Lsn {
        let lsn = self.next();
        let bytes = record.encode(self.form.version, self.previous);
        self.records.push((lsn, bytes.len()));
        self.previous = lsn.0;
        self.write(&bytes, 0);
        self.align();
        lsn
    }

    /// Adds small records until the next one would start `room` bytes before the end of a page;
    /// 0: until a record ends with the last byte of a page.
    pub fn leave(&mut self, room: u64) {
        self.leave_before(self.form.page, room);
    }

    /// The same for the end of a segment.
    pub fn leave_in_segment(&mut self, room: u64) {
        let edge = self.next().0.next_multiple_of(self.form.segment);
        while self.at() + self.form.page < edge {
            let page_end = (self.next().0 + 1).next_multiple_of(self.form.page);
            let most = page_end - self.next().0;
            self.add(&Rec::sized(most.clamp(32, 30_000) as usize));
        }
        self.leave_before(self.form.segment, room);
    }

    fn leave_before(&mut self, unit: u64, room: u64) {
        assert!(room.is_multiple_of(8), "records start at multiples of 8");
        let is_there = |at: u64| (at + room).is_multiple_of(unit);
        while self.bytes.is_empty() || !is_there(self.at()) && !is_there(self.next().0) {
            let next = self.next().0;
            let target = (next + 1).next_multiple_of(unit) - room;
            let page_end = (next + 1).next_multiple_of(self.form.page);
            let fits = target.saturating_sub(next).min(page_end - next);
            match fits {
                ..32 => self.add(&Rec::sized(40)),
                _ if page_end > target || fits < 64 => self.add(&Rec::sized(fits as usize)),
                _ => self.add(&Rec::sized(fits.min(4096) as usize - 32)),
            };
        }
    }

    /// Adds a switch; the next record goes into the next segment. The pages between are zeros,
    /// with headers up to 10.
    pub fn switch(&mut self) -> Lsn {
        let lsn = self.add(&Rec::switch());
        let end = self.at().next_multiple_of(self.form.segment);
        self.zeros_to(self.at().next_multiple_of(self.form.page));
        while self.at() < end {
            if self.form.version.magic < 0xD098 {
                let header = self.form.page_header(self.at(), 0, 0);
                self.bytes.extend(header);
            }
            self.zeros_to((self.at() + 1).next_multiple_of(self.form.page));
        }
        lsn
    }

    /// Begins a record and leaves it at the end of the page on which so many pages of it are
    /// written. It crosses at least that many page ends.
    pub fn tear(&mut self, record: &Rec, pages: u64) -> Lsn {
        let lsn = self.next();
        let bytes = record.encode(self.form.version, self.previous);
        let end = lsn.0 / self.form.page * self.form.page + pages * self.form.page;
        self.write(&bytes, 0);
        assert!(self.at() > end, "the record is over before it is torn");
        self.bytes.truncate((end - self.base) as usize);
        self.torn = lsn.0;
        lsn
    }

    /// Has the record that replaces a torn one name another place.
    pub fn misname_torn(&mut self) {
        self.torn -= 8;
    }

    /// Goes on behind a torn record as recovery does: a page with the flag, and the record that
    /// names the torn one.
    pub fn overwrite(&mut self) -> Lsn {
        let flag = if self.form.version.magic >= 0xD122 { 0x0004 } else { 0x0008 };
        let mut record = Rec::new(super::record::XLOG, 0xD0, 16);
        record.xid = 0;
        record.main[..8].copy_from_slice(&self.torn.to_le_bytes());
        let lsn = self.next();
        let bytes = record.encode(self.form.version, self.previous);
        self.records.push((lsn, bytes.len()));
        self.previous = lsn.0;
        self.write(&bytes, flag);
        self.align();
        lsn
    }

    /// Segments by number; the last one ends with zeros.
    pub fn finish(mut self) -> Disk {
        let (form, first) = (self.form, self.base / self.form.segment);
        self.zeros_to(self.at().next_multiple_of(form.segment));
        let segments = self.bytes.chunks(form.segment as usize).map(<[u8]>::to_vec);
        let files: BTreeMap<u64, Vec<u8>> = (first..).zip(segments).collect();
        Disk { form, files }
    }

    fn write(&mut self, mut rest: &[u8], first_flags: u16) {
        let mut flags = first_flags;
        let mut remaining = 0;
        while !rest.is_empty() {
            if self.at().is_multiple_of(self.form.page) {
                let header = self.form.page_header(self.at(), flags, remaining);
                self.bytes.extend(header);
            }
            let room = (self.at() + 1).next_multiple_of(self.form.page) - self.at();
            let (piece, later) = rest.split_at(rest.len().min(room as usize));
            self.bytes.extend(piece);
            rest = later;
            (flags, remaining) = (CONTRECORD, rest.len());
        }
    }

    fn align(&mut self) {
        self.zeros_to(self.at().next_multiple_of(8));
    }

    fn zeros_to(&mut self, lsn: u64) {
        self.bytes.resize((lsn - self.base) as usize, 0);
    }
}
