//! The reader's twin: slow, and plain enough to be seen to be right. One loop over records, one
//! label for every byte of the input, a bitwise checksum, a hash map of sums. It shares no code
//! with the library but the record's names and the shape of the books. It reads one stretch of
//! segments and stops at the first thing that is not a record: damage is not its business.

use super::disk::Disk;
use std::collections::HashMap;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_report::model::Books;

/// What a byte is. Kept as `u8`, of which the standard library fills, searches and compares many at once even
/// where nothing is optimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Label {
    Unknown,
    Record,
    Padding,
    PageHeader,
    Continuation,
    Switch,
    Overwritten,
    Incomplete,
    Stale,
    Zero,
}

/// So many labels are looked at together: most are as their neighbours.
const PIECE: usize = 128;

/// Sums over the records of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Records.
    pub count: u64,
    /// Bytes without images.
    pub record_bytes: u64,
    /// Stored images.
    pub fpi_bytes: u64,
    /// Main data.
    pub main_data_bytes: u64,
    /// Block data.
    pub block_data_bytes: u64,
    /// Images.
    pub fpi_count: u64,
    /// Records with an image.
    pub fpi_records: u64,
    /// Images for checking.
    pub fpi_check_count: u64,
    /// Compressed images.
    pub compressed_count: u64,
    /// Bytes of the others.
    pub raw_bytes: u64,
    /// Holes of the compressed ones.
    pub hole_bytes: u64,
}

/// What the twin makes of the input.
#[derive(Debug)]
pub struct Naive {
    /// Sums by resource manager and type, the type as it stands in `xl_info`.
    pub rows: HashMap<(u8, u8), Sums>,
    /// Every byte under one heading.
    pub books: Books,
    /// How it ends.
    pub kind: &'static str,
    /// Where it ends.
    pub end: Lsn,
    /// Start and end of every record seen, counted or not.
    pub records: Vec<(Lsn, Lsn)>,
    /// The bytes of every counted record, without page headers.
    pub contents: Vec<Vec<u8>>,
    /// Size of data pages, as the images tell it.
    pub data_page: u64,
}

/// Why there is no record.
enum Stop {
    /// Only zeros, where a page or a record should be.
    Zeros,
    /// The page is another one.
    OtherPage,
    /// A record that is none, or not linked.
    OtherRecord,
    /// The file ends.
    FileEnds,
    /// Recovery replaced the record: where it goes on.
    Overwritten(u64),
    /// The page does not go on with the record.
    NotContinued,
    /// The page lies behind the range.
    RangeEnds,
}

struct Twin<'d> {
    disk: &'d Disk,
    lo: u64,
    hi: u64,
    range_end: u64,
    labels: Vec<u8>,
    out: Naive,
}

/// Bytes of a record, page headers left out, and the places where they lie.
#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    places: Vec<Range<u64>>,
}

/// Reads `disk` from `start` to `end`, or to the record with number `limit`. `None` if there is
/// no record at all.
pub fn read(
    disk: &Disk,
    start: Option<Lsn>,
    end: Option<Lsn>,
    limit: Option<u64>,
) -> Option<Naive> {
    let (&last, file) = disk.files.last_key_value()?;
    let last_byte = last * disk.form.segment + file.len() as u64;
    let lo = start.map_or(0, |lsn| lsn.0).max(disk.start().0);
    let hi = end.map_or(u64::MAX, |lsn| lsn.0).min(last_byte);
    let out = Naive {
        rows: HashMap::new(),
        books: Books::default(),
        kind: "complete",
        end: Lsn(0),
        records: Vec::new(),
        contents: Vec::new(),
        data_page: 0,
    };
    let labels = vec![Label::Unknown as u8; (hi - lo) as usize];
    let range_end = end.map_or(u64::MAX, |lsn| lsn.0);
    let mut twin = Twin { disk, lo, hi, range_end, labels, out };
    twin.walk(limit.unwrap_or(u64::MAX));
    twin.close();
    (!twin.out.records.is_empty()).then_some(twin.out)
}

/// CRC-32C of a record: of what follows its header, then of the header up to the checksum itself.
fn crc(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[24..]), &record[..20])
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

fn up(value: u64, unit: u64) -> u64 {
    value.div_ceil(unit) * unit
}

impl Twin<'_> {
    /// What there is of `count` bytes at `lsn`, all of them in one page.
    fn some(&self, lsn: u64, count: u64) -> &[u8] {
        let offset = (lsn % self.disk.form.segment) as usize;
        let file = self.disk.files.get(&(lsn / self.disk.form.segment));
        let rest = file.and_then(|file| file.get(offset..)).unwrap_or_default();
        &rest[..rest.len().min(count as usize)]
    }

    fn bytes(&self, lsn: u64, count: u64) -> Option<&[u8]> {
        Some(self.some(lsn, count)).filter(|bytes| bytes.len() as u64 == count)
    }

    fn label(&mut self, from: u64, to: u64, label: Label) {
        let (from, to) = (from.max(self.lo), to.min(self.hi));
        if from < to {
            self.labels[(from - self.lo) as usize..(to - self.lo) as usize].fill(label as u8);
        }
    }

    /// Flags and `xlp_rem_len` of the page at `lsn`, if it is the page that should be there.
    fn page(&self, lsn: u64) -> Result<(u64, u64), Stop> {
        let form = &self.disk.form;
        let header = self.bytes(lsn, form.header(lsn)).ok_or(Stop::FileEnds)?;
        if header[..24].iter().all(|&byte| byte == 0) {
            return Err(Stop::Zeros);
        }
        let magic_and_address = (number(&header[..2]), number(&header[8..16]));
        if magic_and_address != (form.version.magic.into(), lsn) {
            return Err(Stop::OtherPage);
        }
        Ok((number(&header[2..4]), number(&header[16..20])))
    }

    /// The content of `count` bytes from `lsn` on, which the page headers must go on with.
    fn content(&mut self, lsn: u64, count: u64) -> (Content, Result<(), Stop>) {
        let mut content = Content::default();
        let mut at = lsn;
        while (content.bytes.len() as u64) < count {
            let missing = count - content.bytes.len() as u64;
            if at.is_multiple_of(self.disk.form.page) {
                match self.page(at) {
                    _ if at >= self.range_end => return (content, Err(Stop::RangeEnds)),
                    Ok((flags, left)) if flags & 1 == 1 && left == missing => {}
                    Ok((flags, _)) if flags & 1 == 0 && flags & self.overwrite_flag() != 0 => {
                        return (content, Err(Stop::Overwritten(at)));
                    }
                    Ok(_) => return (content, Err(Stop::NotContinued)),
                    Err(stop) => return (content, Err(stop)),
                }
                let header = self.disk.form.header(at);
                self.label(at, at + header, Label::PageHeader);
                at += header;
            }
            let page_end = up(at + 1, self.disk.form.page);
            let wanted = missing.min(page_end - at);
            let piece = self.some(at, wanted);
            content.bytes.extend(piece);
            content.places.push(at..at + piece.len() as u64);
            if (piece.len() as u64) < wanted {
                return (content, Err(Stop::FileEnds));
            }
            at = page_end;
        }
        (content, Ok(()))
    }

    fn overwrite_flag(&self) -> u64 {
        if self.disk.form.version.name == "19" { 4 } else { 8 }
    }

    /// Skips what goes on at the head of the first page.
    fn first_record(&mut self) -> Result<u64, Stop> {
        let form = self.disk.form;
        let mut at = self.lo / form.page * form.page;
        loop {
            let (flags, left) = self.page(at)?;
            let content = at + form.header(at);
            let page_end = at + form.page;
            self.label(at, content, Label::PageHeader);
            if flags & 1 == 0 {
                return Ok(content);
            }
            let end = (content + left).min(page_end);
            self.label(content, end, Label::Continuation);
            self.label(end, up(end, 8), Label::Padding);
            if up(content + left, 8) < page_end {
                return Ok(up(end, 8));
            }
            at = page_end;
            if content + left <= page_end {
                return Ok(at);
            }
        }
    }

    fn walk(&mut self, limit: u64) {
        let range_end = self.range_end;
        let (mut at, mut previous, mut counted) = match self.first_record() {
            Ok(at) => (at, None, 0),
            Err(stop) => {
                return self.stop(self.lo / self.disk.form.page * self.disk.form.page, stop, None);
            }
        };
        let mut last = None;
        loop {
            if at >= range_end {
                return self.ends("complete", range_end);
            }
            let lsn = match self.begin(at) {
                Ok(lsn) => lsn,
                Err(stop) => return self.stop(at, stop, last),
            };
            if lsn >= range_end {
                return self.ends("complete", range_end);
            }
            let (content, result) = self.record(lsn, previous);
            match result {
                Ok(()) => {}
                Err(Stop::Overwritten(page)) => {
                    self.label_all(&content, Label::Overwritten);
                    at = page;
                    continue;
                }
                Err(Stop::RangeEnds) => {
                    self.label_all(&content, Label::Incomplete);
                    return self.ends("complete", range_end);
                }
                Err(stop) => {
                    self.label_all(&content, Label::Incomplete);
                    return self.stop(lsn, stop, last);
                }
            }
            let end = content.places.last().map_or(lsn, |place| place.end);
            if end > range_end {
                self.label_all(&content, Label::Incomplete);
                return self.ends("complete", range_end);
            }
            let bytes = &content.bytes;
            self.out.records.push((Lsn(lsn), Lsn(end)));
            if lsn < self.lo {
                self.label_all(&content, Label::Continuation);
            } else {
                self.label_all(&content, Label::Record);
                self.count(bytes);
                self.out.contents.push(bytes.clone());
                counted += 1;
            }
            if counted == limit {
                self.hi = end;
                return self.ends("complete", up(end, 8));
            }
            previous = Some(lsn);
            at = up(end, 8);
            self.label(end, at, Label::Padding);
            let kind = (bytes.len() == 24, bytes[17], bytes[16] & 0xF0);
            last = Some(kind);
            if kind == (true, 0, 0x40) {
                let segment_end = up(end, self.disk.form.segment);
                self.label(end, segment_end, Label::Switch);
                at = segment_end;
            }
        }
    }

    /// Where the record at `at` starts: behind the page header, if there is one.
    fn begin(&mut self, at: u64) -> Result<u64, Stop> {
        if !at.is_multiple_of(self.disk.form.page) {
            return Ok(at);
        }
        let (flags, _) = self.page(at)?;
        if flags & 1 == 1 {
            return Err(Stop::NotContinued);
        }
        let content = at + self.disk.form.header(at);
        self.label(at, content, Label::PageHeader);
        Ok(content)
    }

    /// The bytes of the record at `lsn`, or as many as there are.
    fn record(&mut self, lsn: u64, previous: Option<u64>) -> (Content, Result<(), Stop>) {
        let none = |stop| (Content::default(), Err(stop));
        let Some(length) = self.bytes(lsn, 4) else { return none(Stop::FileEnds) };
        let length = number(length);
        if length == 0 {
            return none(Stop::Zeros);
        }
        if length < 24 {
            return none(Stop::OtherRecord);
        }
        let (content, result) = self.content(lsn, length);
        if result.is_err() {
            return (content, result);
        }
        let bytes = &content.bytes;
        let link = number(&bytes[8..16]);
        let linked = previous.map_or(link < lsn, |previous| link == previous);
        let sum = crc(bytes);
        if !linked || u64::from(sum) != number(&bytes[20..24]) {
            return none(Stop::OtherRecord);
        }
        (content, Ok(()))
    }

    fn label_all(&mut self, content: &Content, label: Label) {
        content.places.iter().for_each(|place| self.label(place.start, place.end, label));
    }

    /// There is no record at `at`: names the end and labels what lies behind it.
    fn stop(&mut self, at: u64, stop: Stop, last: Option<(bool, u8, u8)>) {
        let in_record = self.labels.contains(&(Label::Incomplete as u8));
        let file_end = self.hi;
        let page = self.disk.form.page;
        let segment_end = up(at + 1, self.disk.form.segment);
        let rest = self.some(at, segment_end - at);
        let stale = *rest != *vec![0; rest.len()];
        let kind = match stop {
            Stop::FileEnds if file_end.is_multiple_of(self.disk.form.segment) && !in_record => {
                "complete"
            }
            // A piece of a page's header holds nothing of the record.
            Stop::FileEnds if in_record && file_end % page < self.disk.form.header(file_end) => {
                "incomplete_record"
            }
            Stop::FileEnds => "partial_page",
            _ if in_record => "incomplete_record",
            Stop::Zeros if at.is_multiple_of(self.disk.form.page) => "zeroed",
            Stop::Zeros if stale => "recycled",
            Stop::Zeros => "zeroed",
            _ => "recycled",
        };
        let kind = match last {
            _ if kind == "incomplete_record" => kind,
            Some((true, 0, 0x40)) => "switch",
            Some((false, 0, 0x00)) => "shutdown",
            _ => kind,
        };
        self.ends(kind, at.min(self.hi));
        self.label_rest(at);
    }

    fn ends(&mut self, kind: &'static str, lsn: u64) {
        (self.out.kind, self.out.end) = (kind, Lsn(lsn));
    }

    /// In each page behind the end: zeros, and what follows them.
    fn label_rest(&mut self, at: u64) {
        let mut from = at.max(self.lo);
        while from < self.hi {
            let page_end = up(from + 1, self.disk.form.page);
            let bytes = self.some(from, page_end - from).to_vec();
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
            let labels = &mut self.labels[(from - self.lo) as usize..];
            for (index, label) in labels.iter_mut().take(bytes.len()).enumerate() {
                if *label == Label::Unknown as u8 {
                    *label = if index < zeros { Label::Zero } else { Label::Stale } as u8;
                }
            }
            from = page_end;
        }
    }

    /// Counts a record: takes it apart by position.
    fn count(&mut self, record: &[u8]) {
        let version = self.disk.form.version;
        let (compressed_bits, apply_bit) = match version.name {
            "9.5" | "9.6" => (0x02, 0x00),
            "10" | "11" | "12" | "13" | "14" => (0x02, 0x04),
            _ => (0x1C, 0x02),
        };
        let info = match (record[17], version.name) {
            (1, "9.5") => record[16] & 0xF0,
            (1, _) => record[16] & 0x70,
            _ => record[16] & 0xF0,
        };
        let mut sums = Sums { count: 1, ..Sums::default() };
        let (mut position, mut payload, mut images) = (24, 0, Vec::new());
        while position + payload < record.len() {
            match record[position] {
                255 => {
                    sums.main_data_bytes = record[position + 1].into();
                    break;
                }
                254 => {
                    sums.main_data_bytes = number(&record[position + 1..position + 5]);
                    break;
                }
                253 => position += 3,
                252 => position += 5,
                _ => {
                    let flags = record[position + 1];
                    let data = number(&record[position + 2..position + 4]);
                    sums.block_data_bytes += data;
                    position += 4;
                    if flags & 0x10 != 0 {
                        let length = number(&record[position..position + 2]);
                        let bits = record[position + 4];
                        position += 5;
                        images.push(length);
                        sums.fpi_count += 1;
                        sums.fpi_check_count += u64::from(bits & apply_bit != apply_bit);
                        payload += length as usize;
                        if bits & compressed_bits != 0 {
                            sums.compressed_count += 1;
                            if bits & 1 != 0 {
                                sums.hole_bytes += number(&record[position..position + 2]);
                                position += 2;
                            }
                        } else {
                            sums.raw_bytes += length;
                            if bits & 1 == 0 {
                                self.out.data_page = self.out.data_page.max(length);
                            }
                        }
                    }
                    payload += data as usize;
                    position += if flags & 0x80 == 0 { 16 } else { 4 };
                }
            }
        }
        sums.fpi_bytes = images.iter().sum();
        sums.fpi_records = u64::from(!images.is_empty());
        sums.record_bytes = record.len() as u64 - sums.fpi_bytes;
        self.out.rows.entry((record[17], info)).or_default().add(&sums);
    }

    /// Adds up the labels.
    fn close(&mut self) {
        let hi = (self.hi - self.lo) as usize;
        let mut counts = [0; Label::Zero as usize + 1];
        for labels in self.labels[..hi].chunks(PIECE) {
            if *labels == [labels[0]; PIECE][..labels.len()] {
                counts[usize::from(labels[0])] += labels.len() as u64;
            } else {
                labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
            }
        }
        let fpi_bytes = self.out.rows.values().map(|sums| sums.fpi_bytes).sum();
        let get = |label: Label| counts[label as usize];
        self.out.books = Books {
            input_bytes: hi as u64,
            record_bytes: get(Label::Record) - fpi_bytes,
            fpi_bytes,
            padding_bytes: get(Label::Padding),
            page_header_bytes: get(Label::PageHeader),
            continuation_bytes: get(Label::Continuation),
            switch_bytes: get(Label::Switch),
            overwritten_bytes: get(Label::Overwritten),
            incomplete_bytes: get(Label::Incomplete),
            stale_bytes: get(Label::Stale),
            zero_bytes: get(Label::Zero),
            unaccounted_bytes: get(Label::Unknown) as i64,
            ..Books::default()
        };
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.count += other.count;
        self.record_bytes += other.record_bytes;
        self.fpi_bytes += other.fpi_bytes;
        self.main_data_bytes += other.main_data_bytes;
        self.block_data_bytes += other.block_data_bytes;
        self.fpi_count += other.fpi_count;
        self.fpi_records += other.fpi_records;
        self.fpi_check_count += other.fpi_check_count;
        self.compressed_count += other.compressed_count;
        self.raw_bytes += other.raw_bytes;
        self.hole_bytes += other.hole_bytes;
    }
}
