//! Real WAL with fields of its records changed at random, and the checksums made right again: what no
//! server writes, and a reader must not trip over. A seed says which fields; a list of them can be
//! shortened by hand.

use super::builder::Form;
use super::disk::Disk;
use super::xorshift::Xorshift;
use std::ops::Range;
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr;
use walstat_format::version::Version;

/// Bytes of a record's header.
const HEADER: usize = 24;
/// Oids and first files of catalogs that names are made of.
const CATALOGS: [u32; 6] = [1259, 2610, 2611, 2615, 1262, 1213];
/// Transactions that are none, or far from all others.
const ODD_XIDS: [u32; 7] = [0, 1, 2, 3, 0x7FFF_FFFF, 0x8000_0000, u32::MAX];

/// Segments that follow each other, and the records that begin in them and are whole.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// The segments.
    pub disk: Disk,
    records: Vec<(Lsn, Vec<u8>)>,
}

/// Where the parts of a record are.
#[derive(Debug, Default)]
pub struct Places {
    /// Its blocks.
    pub blocks: Vec<BlockPlace>,
    /// The length of the main data, and how many bytes say it.
    main_length: Option<(usize, usize)>,
    /// The main data.
    pub main: Range<usize>,
}

/// Where the parts of a block reference are.
#[derive(Debug, Clone)]
pub struct BlockPlace {
    /// Its flags are at this place, its id before and its length behind them.
    pub flags: usize,
    /// The relation.
    pub relation: Option<usize>,
    /// The block number.
    pub number: usize,
    /// Its image, empty if it has none.
    pub image: Range<usize>,
    /// Its data.
    pub data: Range<usize>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + N)?;
    Some(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

impl Stretch {
    /// Up to `count` segments of a folder, from the one of this index on; `None` if no record begins
    /// in them.
    pub fn read(folder: &Path, release: &str, index: usize, count: usize) -> Option<Stretch> {
        let mut disk = Disk::read(folder, form_of(folder, release)?);
        let first = *disk.files.keys().nth(index)?;
        disk.files.retain(|number, _| (first..first + count as u64).contains(number));
        let records = records(&disk)?;
        (!records.is_empty()).then_some(Stretch { disk, records })
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The same with `count` changes, by the seed, and what they are.
    pub fn changed(&self, seed: u64, count: usize) -> (Disk, Vec<String>) {
        let mut random = Xorshift::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..20).for_each(|_| _ = random.next());
        let mut changed = self.clone();
        let told = (0..count).map(|_| changed.change(&mut random)).collect();
        (changed.disk, told)
    }

    /// The same with a change of one record, the first one that `change` takes, and where it lies.
    pub fn with(&self, change: impl Fn(&mut [u8], &Places) -> Option<()>) -> Option<(Disk, Lsn)> {
        (0..self.records.len()).find_map(|index| {
            let (lsn, mut bytes) = self.records[index].clone();
            let places = self.places(&bytes);
            change(&mut bytes, &places)?;
            let mut changed = self.clone();
            changed.write(index, bytes);
            Some((changed.disk, lsn))
        })
    }

    fn places(&self, bytes: &[u8]) -> Places {
        Places::of(bytes, self.disk.form.version)
    }

    /// One of the records; every other time one that others depend on.
    fn pick(&self, random: &mut Xorshift) -> usize {
        let index = random.below(self.records.len() as u64) as usize;
        if random.below(2) == 0 {
            return index;
        }
        let is_telling = |(_, bytes): &(Lsn, Vec<u8>)| {
            let relation = self.places(bytes).blocks.first().and_then(|block| block.relation);
            let file = relation.and_then(|at| number::<4>(bytes, at + 8));
            let is_catalog = file.is_some_and(|file| CATALOGS.contains(&(file as u32)));
            is_catalog || [rmgr::TRANSACTION, rmgr::STANDBY, rmgr::RELMAP].contains(&bytes[17])
        };
        let later = (index..self.records.len()).find(|index| is_telling(&self.records[*index]));
        later.unwrap_or(index)
    }

    fn xid(&self, random: &mut Xorshift) -> u32 {
        match random.below(6) {
            0 => ODD_XIDS[random.below(ODD_XIDS.len() as u64) as usize],
            1 => random.next() as u32,
            _ => number::<4>(&self.records[self.pick(random)].1, 4).unwrap_or(0) as u32,
        }
    }

    /// Changes a record, and says how.
    fn change(&mut self, random: &mut Xorshift) -> String {
        let index = self.pick(random);
        let (lsn, mut bytes) = self.records[index].clone();
        let places = self.places(&bytes);
        let told = match random.below(13) {
            0..=2 => {
                let xid = self.xid(random);
                put(&mut bytes, 4, xid);
                format!("xid {xid}")
            }
            3 => {
                bytes[16] ^= 1 << random.below(8);
                format!("info {:#04x}", bytes[16])
            }
            4 => {
                let other = &self.records[self.pick(random)].1;
                bytes[16..18].copy_from_slice(&other[16..18]);
                format!("info and resource manager {:#04x} {}", bytes[16], bytes[17])
            }
            5 | 6 => self.change_reference(&mut bytes, &places, random),
            7 | 8 => {
                let xid = self.xid(random);
                change_word(&mut bytes, places.main, xid, random)
            }
            9 => {
                let data = places.blocks.iter().map(|block| block.data.clone());
                let data = data.max_by_key(Range::len).unwrap_or_default();
                change_word(&mut bytes, data, random.next() as u32, random)
            }
            10 => move_bytes(&mut bytes, &places, random),
            _ => self.put_another(index, &mut bytes, random),
        };
        self.write(index, bytes);
        format!("{lsn}: {told}")
    }

    /// Another block, file or fork.
    fn change_reference(&self, bytes: &mut [u8], places: &Places, random: &mut Xorshift) -> String {
        if places.blocks.is_empty() {
            return "no block".to_owned();
        }
        let block = &places.blocks[random.below(places.blocks.len() as u64) as usize];
        let other = &self.records[self.pick(random)].1;
        let other_relation = self.places(other).blocks.first().and_then(|block| block.relation);
        match (random.below(5), block.relation, other_relation) {
            (0, Some(at), _) => {
                let file = CATALOGS[random.below(CATALOGS.len() as u64) as usize];
                put(bytes, at + 8, file);
                format!("file {file}")
            }
            (1 | 2, Some(at), Some(from)) => {
                bytes[at..at + 12].copy_from_slice(&other[from..from + 12]);
                format!("relation {:?}", &other[from..from + 12])
            }
            (3, ..) => {
                bytes[block.flags] ^= 1 << random.below(2);
                format!("fork flags {:#04x}", bytes[block.flags])
            }
            _ => {
                let blocks = [0, 1, 2, u32::MAX, random.next() as u32];
                let new = blocks[random.below(5) as usize];
                put(bytes, block.number, new);
                format!("block {new}")
            }
        }
    }

    /// The content of another record of the same length; every other time the blocks stay.
    fn put_another(&self, index: usize, bytes: &mut [u8], random: &mut Xorshift) -> String {
        let alike = |at: &&usize| self.records[**at].1.len() == bytes.len() && **at != index;
        let all: Vec<usize> = (0..self.records.len()).collect();
        let alike: Vec<&usize> = all.iter().filter(alike).collect();
        if alike.is_empty() {
            return "no record of this length".to_owned();
        }
        let (lsn, other) = &self.records[*alike[random.below(alike.len() as u64) as usize]];
        let (own, theirs) = (self.places(bytes), self.places(other));
        let own = own.blocks.first().and_then(|block| block.relation);
        let relation: Option<Vec<u8>> = own.map(|at| bytes[at..at + 12].to_vec());
        bytes[4..8].copy_from_slice(&other[4..8]);
        bytes[16..].copy_from_slice(&other[16..]);
        let place = theirs.blocks.first().and_then(|block| block.relation);
        if random.below(2) == 0
            && let (Some(relation), Some(at)) = (relation, place)
        {
            bytes[at..at + 12].copy_from_slice(&relation);
        }
        format!("as {lsn}")
    }

    /// Writes a record back, over page headers, with its checksum.
    fn write(&mut self, index: usize, mut bytes: Vec<u8>) {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[HEADER..]), &bytes[..20]);
        put(&mut bytes, 20, crc);
        let mut at = self.records[index].0.0;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let form = self.disk.form;
            if at.is_multiple_of(form.page) {
                at += form.header(at);
            }
            let here = rest.len().min((form.page - at % form.page) as usize);
            self.disk.at(Lsn(at), here).copy_from_slice(&rest[..here]);
            (at, rest) = (at + here as u64, &rest[here..]);
        }
        self.records[index].1 = bytes;
    }
}

/// Four bytes of a range, or eight that may be a time.
fn change_word(bytes: &mut [u8], range: Range<usize>, xid: u32, random: &mut Xorshift) -> String {
    if range.len() < 4 {
        return "nothing there".to_owned();
    }
    // The beginning matters most.
    let span = if random.below(2) == 0 { range.len().min(32) } else { range.len() };
    let at = range.start + random.below((span - 3) as u64) as usize / 2 * 2;
    match random.below(6) {
        0 => {
            bytes[at] ^= 1 << random.below(8);
            format!("a bit of byte {}", at - range.start)
        }
        1 if range.len() >= 8 => {
            let shift = random.below(64);
            let byte = &mut bytes[range.start + (shift / 8) as usize];
            *byte ^= 1 << (shift % 8);
            format!("bit {shift} of the first eight bytes")
        }
        2 => {
            let value = random.next() as u32;
            put(bytes, at, value);
            format!("{value} at byte {}", at - range.start)
        }
        _ => {
            put(bytes, at, xid);
            format!("{xid} at byte {}", at - range.start)
        }
    }
}

/// Moves some bytes between the data of the last block and the main data.
fn move_bytes(bytes: &mut [u8], places: &Places, random: &mut Xorshift) -> String {
    let (Some(block), Some((at, size))) = (places.blocks.last(), places.main_length) else {
        return "nothing to move".to_owned();
    };
    let sum = block.data.len() + places.main.len();
    let most = if size == 1 { 255 } else { usize::MAX };
    // A block says whether it has data: one byte stays.
    let (low, high) = (sum.saturating_sub(usize::from(u16::MAX)), most.min(sum.saturating_sub(1)));
    if block.data.is_empty() || low > high {
        return "nothing to move".to_owned();
    }
    let main = low + random.below((high - low + 1) as u64) as usize;
    bytes[at..at + size].copy_from_slice(&(main as u32).to_le_bytes()[..size]);
    let data = ((sum - main) as u16).to_le_bytes();
    bytes[block.flags + 1..block.flags + 3].copy_from_slice(&data);
    format!("{main} bytes of main data")
}

impl Places {
    /// Those of a record; what cannot be understood is left out.
    fn of(bytes: &[u8], version: &Version) -> Places {
        Places::parse(bytes, version).unwrap_or_default()
    }

    fn parse(bytes: &[u8], version: &Version) -> Option<Places> {
        let mut places = Places::default();
        let (mut at, mut payload) = (HEADER, 0);
        let mut lengths = Vec::new();
        while bytes.len().checked_sub(at)? > payload {
            match *bytes.get(at)? {
                id @ 254..=255 => {
                    let size = if id == 255 { 1 } else { 4 };
                    let main = number::<4>(&[&bytes[at + 1..at + 1 + size], &[0; 3]].concat(), 0)?;
                    places.main_length = Some((at + 1, size));
                    (at, payload) = (at + 1 + size, payload + main as usize);
                }
                253 => at += 3,
                252 => at += 5,
                _ => {
                    let (block, image, end) = Places::block(bytes, at, version)?;
                    payload += image + block.data.len();
                    lengths.push(image);
                    places.blocks.push(block);
                    at = end;
                }
            }
        }
        let mut data = at;
        for (block, image) in places.blocks.iter_mut().zip(lengths) {
            block.image = data..data + image;
            data += image;
            block.data = data..data + block.data.len();
            data = block.data.end;
        }
        places.main = data..bytes.len();
        (data <= bytes.len()).then_some(places)
    }

    /// A block, bytes of its image, and where its header ends.
    fn block(bytes: &[u8], at: usize, version: &Version) -> Option<(BlockPlace, usize, usize)> {
        let flags = *bytes.get(at + 1)?;
        let data = number::<2>(bytes, at + 2)? as usize;
        let (mut end, mut image) = (at + 4, 0);
        if flags & 0x10 != 0 {
            image = number::<2>(bytes, end)? as usize;
            let info = *bytes.get(end + 4)?;
            let is_compressed = version.image_flags.is_compressed(info);
            end += if is_compressed && info & 1 != 0 { 7 } else { 5 };
        }
        let relation = (flags & 0x80 == 0).then_some(end);
        end += if relation.is_some() { 12 } else { 0 };
        let block = BlockPlace { flags: at + 1, relation, number: end, image: 0..0, data: 0..data };
        (end + 4 <= bytes.len()).then_some((block, image, end + 4))
    }
}

/// Sizes and timeline, as the first page of a segment says them.
fn form_of(folder: &Path, release: &str) -> Option<Form> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let pages = paths.iter().filter_map(|path| std::fs::read(path).ok());
    let first = pages.into_iter().find(|page| page.len() >= 40 && page[2] & 2 != 0)?;
    Some(Form {
        segment: number::<4>(&first, 32)?,
        page: number::<4>(&first, 36)?,
        timeline: number::<4>(&first, 4)? as u32,
        ..Form::of(release)
    })
}

/// All records that begin in the segments and end there, until one is none.
fn records(disk: &Disk) -> Option<Vec<(Lsn, Vec<u8>)>> {
    let form = disk.form;
    let mut disk = disk.clone();
    let end = disk.end().0;
    let mut at = disk.start().0;
    let rest = number::<4>(disk.at(Lsn(at), 40), 16)? as usize;
    at = read(&mut disk, at, rest, end)?.1;
    let mut records = Vec::new();
    loop {
        at = at.next_multiple_of(8);
        if at.is_multiple_of(form.page) {
            at += form.header(at);
        }
        let Some((head, _)) = read(&mut disk, at, 4, end) else { break };
        let length = number::<4>(&head, 0)? as usize;
        let Some((bytes, after)) = read(&mut disk, at, length, end) else { break };
        if length < HEADER {
            break;
        }
        // The rest of a segment after a switch is not used.
        let is_switch = bytes[17] == rmgr::XLOG && bytes[16] & 0xF0 == 0x40;
        records.push((Lsn(at), bytes));
        at = if is_switch { after.next_multiple_of(form.segment) } else { after };
    }
    Some(records)
}

/// `count` bytes from `at` on, page headers left out, and where they end.
fn read(disk: &mut Disk, mut at: u64, count: usize, end: u64) -> Option<(Vec<u8>, u64)> {
    let form = disk.form;
    let mut bytes = Vec::new();
    while bytes.len() < count {
        if at.is_multiple_of(form.page) {
            at += form.header(at);
        }
        if at >= end {
            return None;
        }
        let here = (count - bytes.len()).min((form.page - at % form.page) as usize);
        bytes.extend_from_slice(disk.from(Lsn(at)).get(..here)?);
        at += here as u64;
    }
    Some((bytes, at))
}
