//! From records to the trace: rolls pages forward, puts back the lengths of what images replaced,
//! and notes when each block was stamped. Sees every record once, in the order of the WAL.

use super::base::Base;
use super::blocks::{BEFORE, BlockNumber, Blocks, FIRST, ForkNumber, NEVER, Ordinal, Stamps};
use super::level;
use super::marks;
use super::page::Page;
use super::position::Geometry;
use super::redo;
use super::registered::{Images, Registered};
use super::roller::{Roller, Step};
use super::running::Running;
use super::sequence::{self, Finder};
use super::trace::{Entry, Mark, Ref, Trace, fact};
use super::whole::Whole;
use crate::wal::block::BlockRef;
use crate::wal::lsn::Lsn;
use crate::wal::version::Version;

/// Image header; a compressed image with a hole has 2 bytes more.
pub const IMAGE_HEADER_BYTES: u32 = 5;
/// Those 2 bytes.
pub const HOLE_HEADER_BYTES: u32 = 2;

/// Makes a trace.
pub struct Condenser {
    trace: Trace,
    blocks: Blocks,
    roller: Roller,
    running: Running,
    finder: Finder,
    /// The page that was pruned last, if it got an image.
    pruned: Option<BlockNumber>,
}

/// Lengths of one reference, and whether they are estimates.
struct Lengths {
    /// The page's LSN before the record, where an image says it.
    page_lsn: Option<Lsn>,
    data: u16,
    data_estimated: bool,
    /// Data at the other wal_level.
    data_elsewhere: Option<u16>,
    image: u16,
    image_estimated: bool,
    hole: bool,
}

impl Condenser {
    /// One that keeps pages within so many bytes.
    pub fn within(page_bytes: u64) -> Condenser {
        Condenser {
            trace: Trace::default(),
            blocks: Blocks::default(),
            roller: Roller::within(page_bytes),
            running: Running::default(),
            finder: Finder::default(),
            pruned: None,
        }
    }

    /// Takes the next record.
    pub fn push(&mut self, record: &Whole<'_>) {
        let ordinal = self.trace.entries.len() as Ordinal + FIRST;
        let mut fixed_bytes =
            record.header.total_bytes - record.parts.fpi_bytes - record.parts.block_data_bytes;
        for block in record.blocks {
            fixed_bytes -= image_header(record, block);
            let reference = self.reference(record, block, ordinal);
            self.trace.refs.push(reference);
        }
        let first = self.trace.refs.len() - record.blocks.len();
        let row = self.trace.refs.get(first).map_or(0, |reference| reference.data_bytes);
        self.trace.level.note(record, ordinal, row);
        self.trace.has_custom_rmgrs |= record.header.rmgr > record.version.rmgr_max;
        let rows = self.rows(record);
        let mark = self.mark(record);
        self.trace.marks.extend(mark.map(|mark| (ordinal, mark)));
        self.trace.entries.push(Entry {
            lsn: record.lsn,
            bytes: record.header.total_bytes,
            fixed_bytes,
            kind: record.record_type(),
            refs: record.blocks.len() as u8,
            marked: mark.is_some(),
            feeds: 0,
            rows,
        });
    }

    /// Records are missing here: what they did to pages is not known.
    pub fn gap(&mut self) {
        self.roller.forget();
    }

    /// Where the first record starts.
    pub fn first_lsn(&self) -> Option<Lsn> {
        self.trace.entries.first().map(|entry| entry.lsn)
    }

    /// The trace, and what the base looks like.
    pub fn finish(
        self,
        version: &'static Version,
        geometry: Geometry,
        range: (Lsn, Lsn),
    ) -> (Trace, Blocks, Base) {
        let Condenser { mut trace, blocks, roller, .. } = self;
        trace.page_bytes = roller.page_bytes();
        trace.given_up = roller.given_up();
        let base = Base::of(&trace, version, geometry, range);
        sequence::connect(&mut trace, &base, |trace, first_ref| {
            blocks.fork_number(trace.refs.get(first_ref)?.block)
        });
        (trace, blocks, base)
    }

    fn mark(&mut self, record: &Whole<'_>) -> Option<Mark> {
        if self.running.note(record.header.xid) {
            let ordinal = self.trace.entries.len() as Ordinal + FIRST;
            let (first, _) = self.trace.side_by_side.unwrap_or((ordinal, ordinal));
            self.trace.side_by_side = Some((first, ordinal));
        }
        let mut mark = marks::of(record, &mut self.running, &mut self.blocks)?;
        if let Mark::Sequence { fork, value, sequence } = &mut mark {
            let seen = (*fork, *value, record.header.total_bytes);
            *sequence = self.finder.logged(&mut self.trace.sequences, seen);
        }
        Some(mark)
    }

    /// Rows that a record inserts into a table.
    fn rows(&mut self, record: &Whole<'_>) -> u16 {
        let rows = redo::inserted_rows(record);
        if rows > 0
            && let Some(block) = record.blocks.first()
        {
            let fork = self.blocks.fork_of(block);
            self.finder.inserted(fork, rows);
        }
        rows
    }

    fn reference(&mut self, record: &Whole<'_>, block: &BlockRef, ordinal: Ordinal) -> Ref {
        let registered = Registered::of(record, block);
        let fork = self.blocks.fork_of(block);
        let number = self.blocks.number(fork, block.block);
        let lengths = self.roll(record, block, registered, (fork, number));
        let registered = registered.seen(record, lengths.page_lsn);
        let elsewhere = lengths.data_elsewhere.filter(|bytes| *bytes != lengths.data);
        self.trace.level.data.extend(elsewhere.map(|bytes| (ordinal, bytes)));
        let freezes = self.freezes_for_image(record, block, number);
        let stamps = self.as_seen(self.blocks.stamps(number), lengths.page_lsn);
        self.stamp(record, registered, number, (stamps, ordinal));
        let codec = block.image.and_then(|i| record.version.image_flags.compression(i.info));
        self.trace.compression = codec.or(self.trace.compression);
        // A page without an image that should have one was stamped before the first record.
        let known = |stamped| match registered.images {
            Images::Reset => NEVER,
            Images::Usual if stamped == NEVER && block.image.is_none() => BEFORE,
            _ => stamped,
        };
        Ref {
            block: number,
            stamped: known(stamps.with_hints),
            stamped_without_hints: known(stamps.without_hints),
            data_bytes: lengths.data,
            image_bytes: lengths.image,
            stored_bytes: block.image.map_or(0, |image| image.bytes),
            facts: facts(record, block, registered, &lengths)
                | if freezes { fact::FREEZES_FOR_IMAGE } else { 0 },
        }
    }

    fn freezes_for_image(
        &mut self,
        record: &Whole<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> bool {
        if !record.version.pages.freezes_after_image {
            return false;
        }
        match redo::prunes(record) {
            Some(true) => self.pruned = block.image.map(|_| number),
            Some(false) => return self.pruned == Some(number),
            None => {}
        }
        false
    }

    fn stamp(
        &mut self,
        record: &Whole<'_>,
        registered: Registered,
        number: BlockNumber,
        (before, ordinal): (Stamps, Ordinal),
    ) {
        let only_with_hints = registered.images == Images::WithHints || marks::is_hint(record);
        let with_hints = if registered.stamps { ordinal } else { before.with_hints };
        let without_hints = match registered.stamps && !only_with_hints {
            true => ordinal,
            false => before.without_hints,
        };
        self.blocks.stamp(number, Stamps { with_hints, without_hints });
    }

    /// A stamp that the page itself does not have was none: some index builds write pages before
    /// they log them.
    fn as_seen(&self, stamps: Stamps, page_lsn: Option<Lsn>) -> Stamps {
        let Some(page_lsn) = page_lsn else { return stamps };
        let seen = |stamped: Ordinal| {
            let index = stamped.checked_sub(FIRST);
            let entry = index.and_then(|index| self.trace.entries.get(index as usize));
            match entry {
                Some(entry) if page_lsn <= entry.lsn => self.trace.last_before(page_lsn),
                _ => stamped,
            }
        };
        Stamps { with_hints: seen(stamps.with_hints), without_hints: seen(stamps.without_hints) }
    }

    /// Rolls the page forward over the record and measures it.
    fn roll(
        &mut self,
        record: &Whole<'_>,
        block: &BlockRef,
        registered: Registered,
        (fork, number): (ForkNumber, BlockNumber),
    ) -> Lengths {
        let imaged = block.image.is_some();
        let Step { before, after } = self.roller.roll(record, block, number);
        let mut lengths = Lengths {
            page_lsn: after.as_ref().filter(|_| imaged).and_then(Page::lsn),
            data: block.data_bytes,
            data_estimated: false,
            data_elsewhere: None,
            image: 0,
            image_estimated: false,
            hole: false,
        };
        if imaged && block.data_bytes == 0 {
            let put_back = after
                .as_ref()
                .and_then(|after| redo::data_bytes(record, block, after, before.as_ref()));
            lengths.data = put_back.map_or(0, |data| data.bytes);
            lengths.data_estimated = put_back.is_none_or(|data| data.estimated);
        }
        let page = after.as_ref();
        lengths.data_elsewhere = page.and_then(|page| redo::data_elsewhere(record, block, page));
        self.measure(block, registered, (fork, page), &mut lengths);
        self.roller.keep(number, after);
        lengths
    }

    fn measure(
        &mut self,
        block: &BlockRef,
        registered: Registered,
        (fork, after): (ForkNumber, Option<&Page>),
        lengths: &mut Lengths,
    ) {
        let page_bytes = self.roller.page_bytes();
        let mean = |blocks: &Blocks| {
            let seen = blocks.fork(fork).filter(|fork| fork.images > 0);
            seen.map_or(page_bytes, |fork| (fork.image_bytes / fork.images) as usize)
        };
        let bytes = match (block.image, after) {
            (Some(image), Some(page)) => {
                lengths.hole = image.hole_offset > 0;
                if lengths.hole { page.size() - page.hole().len() } else { page.size() }
            }
            (None, Some(page)) if registered.standard => {
                lengths.hole = !page.hole().is_empty();
                page.size() - page.hole().len()
            }
            (None, Some(page)) => page.size(),
            (None, None) if !registered.standard => page_bytes,
            (_, None) => {
                lengths.image_estimated = true;
                mean(&self.blocks)
            }
        };
        lengths.image = u16::try_from(bytes).unwrap_or(u16::MAX);
        if block.image.is_some()
            && let Some(fork) = self.blocks.fork_mut(fork)
        {
            fork.images += 1;
            fork.image_bytes += bytes as u64;
        }
    }
}

/// Bytes of the image's header.
fn image_header(record: &Whole<'_>, block: &BlockRef) -> u32 {
    let Some(image) = block.image else { return 0 };
    let compressed = record.version.image_flags.is_compressed(image.info);
    let with_hole = compressed && image.info & crate::wal::image::HAS_HOLE != 0;
    IMAGE_HEADER_BYTES + if with_hole { HOLE_HEADER_BYTES } else { 0 }
}

fn facts(record: &Whole<'_>, block: &BlockRef, registered: Registered, lengths: &Lengths) -> u16 {
    let flags = record.version.image_flags;
    let image = block.image;
    let applied = image.is_some_and(|image| flags.is_applied(image.info));
    let checks = record.header.info & CHECK_CONSISTENCY != 0;
    let images = match registered.images {
        Images::Usual | Images::Reset => fact::USUAL,
        Images::Always => fact::ALWAYS,
        Images::Never => 0,
        Images::WithHints => fact::WITH_HINTS,
        Images::Unsaid => fact::UNSAID,
    };
    let set = |holds: bool, bit: u16| if holds { bit } else { 0 };
    images
        | set(applied, fact::BASE_IMAGE)
        | set(image.is_some_and(|i| flags.is_compressed(i.info)), fact::BASE_COMPRESSED)
        | set(checks && image.is_some(), fact::CHECK_IMAGE)
        | set(keeps_data(record, block), fact::KEEPS_DATA)
        | set(lengths.hole, fact::HOLE)
        | set(lengths.image_estimated, fact::IMAGE_ESTIMATED)
        | set(lengths.data_estimated, fact::DATA_ESTIMATED)
        | set(registered.stamps, fact::STAMPS)
        | set(redo::looks_at(record, block), fact::LOOKED_AT)
        | set(block.id == 0 && level::keeps_data(record), fact::KEPT_AT_LOGICAL)
}

/// `XLR_CHECK_CONSISTENCY` of `xl_info` (10 and later).
const CHECK_CONSISTENCY: u8 = 0x02;

/// Whether block data stay beside an image (`REGBUF_KEEP_DATA`).
fn keeps_data(record: &Whole<'_>, block: &BlockRef) -> bool {
    let applied = block.image.is_some_and(|i| record.version.image_flags.is_applied(i.info));
    (applied && block.data_bytes > 0) || redo::keeps_data(record, block)
}
