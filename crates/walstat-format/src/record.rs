//! The view of a record that everything that counts sees.

use crate::block::places::Places;
use crate::block::{BlockMark, BlockRef, Blocks, Image, Parts, walk};
use crate::body::Body;
use crate::data_page::{PAGE_HEADER_BYTES, is_page_size, stated_size};
use crate::image::HAS_HOLE;
use crate::lsn::Lsn;
use crate::record_header::RecordHeader;
use crate::rmgr::RecordType;
use crate::version::Version;
use std::borrow::Cow;

/// One valid record, borrowed from the window at hand.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where it starts.
    pub lsn: Lsn,
    /// After its last byte, not rounded up.
    pub end: Lsn,
    /// The 24 bytes before everything else.
    pub header: RecordHeader,
    /// Sums over its parts.
    pub parts: Parts,
    /// The release that wrote it.
    pub version: &'static Version,
    /// Its bytes.
    pub body: Body<'a>,
}

/// Where a valid record lies, which was read before.
#[derive(Debug, Clone, Copy)]
pub struct RecordPlace<'a> {
    lsn: Lsn,
    end: Lsn,
    version: &'static Version,
    body: Body<'a>,
}

impl<'a> RecordPlace<'a> {
    /// Reads it again; `None`, which cannot be: its bytes make no sense.
    #[inline(never)]
    pub fn read(self) -> Option<Record<'a>> {
        let RecordPlace { lsn, end, version, body } = self;
        let header = RecordHeader::parse(body.head.first_chunk()?);
        let parts = walk(body.head, header.total_bytes, version, |_| {}).ok()?;
        Some(Record { lsn, end, header, parts, version, body })
    }
}

/// A full page image as it is stored, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage<'a> {
    /// What its header says.
    pub header: Image,
    /// As stored: hole removed, compressed.
    pub bytes: Cow<'a, [u8]>,
}

/// What follows the headers is there for every record if the dimension asks for whole records
/// (`Observe::WHOLE`). Else it is `None` where a record goes on after the window at hand, but for
/// its first 1,024 bytes.
impl<'a> Record<'a> {
    /// Its type, as the release's own tool counts it.
    #[inline(always)]
    pub fn record_type(&self) -> RecordType {
        RecordType::of(self.header.rmgr, self.header.info, self.version)
    }

    /// Where it lies. A loop over all records reads those again at which it takes a closer look: then it
    /// keeps in registers what it needs itself, and lays down nothing in memory.
    #[inline(always)]
    pub fn place(&self) -> RecordPlace<'a> {
        let Record { lsn, end, version, body, .. } = *self;
        RecordPlace { lsn, end, version, body }
    }

    /// The blocks that it refers to, in the order of their ids.
    #[inline(always)]
    pub fn blocks(&self) -> Blocks<'a> {
        Blocks::of(self.body.head, self.parts.head_bytes, self.version)
    }

    /// The mark of its block, if it refers to one block, without an image, and has the commonest form.
    /// Costs next to nothing.
    #[inline(always)]
    pub fn block_mark(&self) -> Option<BlockMark> {
        BlockMark::of(self.body.head, &self.parts)
    }

    /// The places of the blocks that it refers to: less work than [`Record::blocks`].
    #[inline(always)]
    pub fn places(&self) -> Places<'a> {
        Places::of(self.body.head, self.parts.head_bytes, self.version)
    }

    /// The replication origin that it came from.
    pub fn origin(&self) -> Option<u16> {
        self.blocks().labels().origin
    }

    /// The top-level transaction of the one in its header, where it says so.
    pub fn toplevel_xid(&self) -> Option<u32> {
        self.blocks().labels().toplevel_xid
    }

    /// Its main data; empty if it has none.
    #[inline]
    pub fn main_data(&self) -> Option<Cow<'a, [u8]>> {
        let length = self.parts.main_data_bytes;
        self.body.get((self.header.total_bytes - length) as usize, length as usize)
    }

    /// The first bytes of its main data, which cost nothing, if it has no other payload: all of them,
    /// or of a record that crosses a page at least 1,000.
    #[inline(always)]
    pub fn main_data_start(&self) -> &'a [u8] {
        let from = self.header.total_bytes - self.parts.main_data_bytes;
        // If images or block data come first, how many bytes are available depends on how the record was
        // read.
        let start = self.body.head.get(from as usize..).filter(|_| from == self.parts.head_bytes);
        start.unwrap_or_default()
    }

    /// The data of one of its blocks; empty if it has none.
    pub fn block_data(&self, block: &BlockRef) -> Option<Cow<'a, [u8]>> {
        let image_bytes = block.image.map_or(0, |image| u32::from(image.bytes));
        let from = self.parts.head_bytes + block.payload_at + image_bytes;
        self.body.get(from as usize, usize::from(block.data_bytes))
    }

    /// The image of one of its blocks; `None` if it has none.
    pub fn image(&self, block: &BlockRef) -> Option<StoredImage<'a>> {
        let header = block.image?;
        let from = self.parts.head_bytes + block.payload_at;
        let bytes = self.body.get(from as usize, usize::from(header.bytes))?;
        Some(StoredImage { header, bytes })
    }

    /// Whether redo restores one of its blocks from an image, rather than to redo what was done to it.
    pub fn restores(&self, block: &BlockRef) -> bool {
        block.image.is_some_and(|image| self.version.image_flags.is_applied(image.info))
    }

    /// Bytes of the hole that was left out of the image of one of its blocks. An image that is not compressed
    /// does not say it: there it is what the page's own header says of its size, less what is stored. `None`
    /// without an image, and where that header cannot be read.
    pub fn hole_bytes(&self, block: &BlockRef) -> Option<u32> {
        let image = block.image?;
        if image.info & HAS_HOLE == 0 {
            return Some(0);
        }
        if self.version.image_flags.is_compressed(image.info) {
            return Some(image.hole_bytes.into());
        }
        let from = self.parts.head_bytes + block.payload_at;
        let header = self.body.get(from as usize, PAGE_HEADER_BYTES)?;
        let page = stated_size(&header).filter(|bytes| is_page_size(*bytes))?;
        u32::try_from(page).ok()?.checked_sub(image.bytes.into())
    }
}
