//! Records, put together piece by piece as a server does (`XLogRecordAssemble` in
//! `src/backend/access/transam/xloginsert.c`). Knows nothing of pages.

use walstat_format::version::Version;

/// Resource manager `XLOG`.
pub const XLOG: u8 = 0;
/// Resource manager `Transaction`.
pub const TRANSACTION: u8 = 1;
/// Resource manager `Heap2`.
pub const HEAP2: u8 = 9;
/// Resource manager `Heap`.
pub const HEAP: u8 = 10;

/// A full page image, as it is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Stored bytes.
    pub bytes: u16,
    /// Offset and length of the hole; the length is stored for compressed images only.
    pub hole: Option<(u16, u16)>,
    /// Compressed, by pglz.
    pub compressed: bool,
    /// To be replayed; where the release has no such bit, every image is.
    pub apply: bool,
}

/// A block reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// 0 to 32 in valid records.
    pub id: u8,
    /// Main, fsm, vm, init.
    pub fork: u8,
    /// Tablespace, database, file number; `None`: the relation of the block before.
    pub relation: Option<[u32; 3]>,
    /// Block number.
    pub number: u32,
    /// Redo makes the page anew.
    pub will_init: bool,
    /// Bytes of block data.
    pub data: u16,
    /// The image, if any.
    pub image: Option<Image>,
}

impl Block {
    /// A reference and nothing else.
    pub fn new(id: u8) -> Block {
        let relation = Some([1663, 5, 16384]);
        Block { id, fork: 0, relation, number: 7, will_init: false, data: 0, image: None }
    }

    /// With so many bytes of block data.
    pub fn data(self, data: u16) -> Block {
        Block { data, ..self }
    }

    /// With an image.
    pub fn image(self, image: Image) -> Block {
        Block { image: Some(image), ..self }
    }

    /// Of the relation of the block before.
    pub fn same_rel(self) -> Block {
        Block { relation: None, ..self }
    }

    fn header(&self, version: &Version, out: &mut Vec<u8>) {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.image.is_some(), 0x10)
            | flag(self.data > 0, 0x20)
            | flag(self.will_init, 0x40)
            | flag(self.relation.is_none(), 0x80);
        out.extend([self.id, self.fork | flags]);
        out.extend(self.data.to_le_bytes());
        if let Some(image) = &self.image {
            image.header(version, out);
        }
        for part in self.relation.iter().flatten() {
            out.extend(part.to_le_bytes());
        }
        out.extend(self.number.to_le_bytes());
    }
}

impl Image {
    /// A whole page of 8 kB, stored as it is.
    pub const WHOLE: Image = Image { bytes: 8192, hole: None, compressed: false, apply: true };

    /// The bits of `bimg_info`: three generations, 9.5, 10 and 15.
    fn info(&self, version: &Version) -> u8 {
        let (compressed, apply) = match version.magic {
            ..0xD097 => (0x02, 0x00),
            0xD097..0xD110 => (0x02, 0x04),
            _ => (0x04, 0x02),
        };
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        flag(self.hole.is_some(), 0x01)
            | flag(self.compressed, compressed)
            | flag(self.apply, apply)
    }

    fn header(&self, version: &Version, out: &mut Vec<u8>) {
        let (offset, length) = self.hole.unwrap_or((0, 0));
        out.extend(self.bytes.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.push(self.info(version));
        if self.compressed && self.hole.is_some() {
            out.extend(length.to_le_bytes());
        }
    }
}

/// A record, before it has a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rec {
    /// `xl_rmid`.
    pub rmgr: u8,
    /// `xl_info`.
    pub info: u8,
    /// `xl_xid`.
    pub xid: u32,
    /// Block references, in the order of their ids.
    pub blocks: Vec<Block>,
    /// Replication origin.
    pub origin: Option<u16>,
    /// Xid of the top-level transaction.
    pub toplevel_xid: Option<u32>,
    /// Main data.
    pub main: Vec<u8>,
    /// The four-byte length even for main data of up to 255 bytes.
    pub long_length: bool,
    /// The bytes of all images and block data; a pattern where it is empty.
    pub payload: Vec<u8>,
}

impl Rec {
    /// A record with so many bytes of main data and nothing else.
    pub fn new(rmgr: u8, info: u8, main_bytes: usize) -> Rec {
        Rec { rmgr, info, xid: 700, main: pattern(main_bytes), ..Rec::default() }
    }

    /// `Heap2/NEW_CID` with so many bytes of main data: of all releases, and it refers to no block.
    pub fn data(main_bytes: usize) -> Rec {
        Rec::new(HEAP2, 0x70, main_bytes)
    }

    /// `Heap/INSERT` with so many bytes of main data, to which its block is added.
    pub fn insert(main_bytes: usize) -> Rec {
        Rec::new(HEAP, 0x00, main_bytes)
    }

    /// `XLOG/SWITCH`.
    pub fn switch() -> Rec {
        Rec { xid: 0, ..Rec::new(XLOG, 0x40, 0) }
    }

    /// `XLOG/CHECKPOINT_SHUTDOWN` of timeline 1.
    pub fn shutdown() -> Rec {
        Rec::begins(1, 1)
    }

    /// The same with which a timeline begins.
    pub fn begins(timeline: u32, before: u32) -> Rec {
        let mut record = Rec { xid: 0, ..Rec::new(XLOG, 0x00, 88) };
        record.main[8..12].copy_from_slice(&timeline.to_le_bytes());
        record.main[12..16].copy_from_slice(&before.to_le_bytes());
        record
    }

    /// [`Rec::data`] of `total` bytes in all: 27 to 281, or 285 and more.
    pub fn sized(total: usize) -> Rec {
        match total {
            27..=281 => Rec::data(total - 26),
            285.. => Rec::data(total - 29),
            _ => panic!("no record with main data alone has {total} bytes"),
        }
    }

    /// With one more block reference.
    pub fn block(mut self, block: Block) -> Rec {
        self.blocks.push(block);
        self
    }

    /// `xl_tot_len`.
    pub fn total(&self, version: &Version) -> usize {
        self.encode(version, 0).len()
    }

    /// The record's bytes, its checksum over what is there, right or wrong.
    pub fn encode(&self, version: &Version, previous: u64) -> Vec<u8> {
        let body = self.body(version);
        let mut record = Vec::with_capacity(24 + body.len());
        record.extend((24 + body.len() as u32).to_le_bytes());
        record.extend(self.xid.to_le_bytes());
        record.extend(previous.to_le_bytes());
        record.extend([self.info, self.rmgr, 0, 0]);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&body), &record);
        record.extend(crc.to_le_bytes());
        record.extend(body);
        record
    }

    fn body(&self, version: &Version) -> Vec<u8> {
        let mut body = Vec::new();
        self.blocks.iter().for_each(|block| block.header(version, &mut body));
        if let Some(origin) = self.origin {
            body.push(253);
            body.extend(origin.to_le_bytes());
        }
        if let Some(xid) = self.toplevel_xid {
            body.push(252);
            body.extend(xid.to_le_bytes());
        }
        match self.main.len() {
            0 => {}
            short @ 1..=255 if !self.long_length => body.extend([255, short as u8]),
            long => {
                body.push(254);
                body.extend((long as u32).to_le_bytes());
            }
        }
        for block in self.blocks.iter().filter(|_| self.payload.is_empty()) {
            body.extend(pattern(block.image.map_or(0, |image| image.bytes.into())));
            body.extend(pattern(block.data.into()));
        }
        body.extend(&self.payload);
        body.extend(&self.main);
        body
    }
}

/// Bytes that are not zero and differ from their neighbours.
fn pattern(bytes: usize) -> Vec<u8> {
    let cycle: Vec<u8> = (1..=251).collect();
    let mut pattern = cycle.repeat(bytes.div_ceil(cycle.len()));
    pattern.truncate(bytes);
    pattern
}
