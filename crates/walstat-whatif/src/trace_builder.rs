//! From records to the trace: rolls pages forward, puts back the lengths of what images replaced,
//! and notes when each block was stamped. Sees every record once, in the order of the WAL.
//! Most records go a short way (`plain`).

mod plain;

use super::base::Base;
use super::blocks::{BEFORE, BlockNumber, Blocks, FIRST, ForkNumber, NEVER, Ordinal, Stamps};
use super::free_space::FreeSpace;
use super::freezing::{FirstBlock, Freezing};
use super::level::{self, Differences};
use super::mean_block_data::MeanBlockData;
use super::page_replayer::PageReplayer;
use super::page_view::PageLength;
use super::position::Geometry;
use super::record_effect;
use super::redo;
use super::registered::{Images, Registered};
use super::running_transactions::RunningTransactions;
use super::sequence::{self, Finder};
use super::trace::{
    Entry, NewFile, RecordEffect, Store, Trace, TracedBlock, TracedRecord, entry_fact,
};
use super::whole_record::WholeRecord;
use std::ops::Range;
use walstat_format::block::BlockRef;
use walstat_format::image::{HOLE_HEADER_BYTES, IMAGE_HEADER_BYTES};
use walstat_format::lsn::Lsn;
use walstat_format::page::{LONG_HEADER_BYTES, SHORT_HEADER_BYTES};
use walstat_format::record_header::CHECK_CONSISTENCY;
use walstat_format::segment::PAGE_BYTES_MIN;
use walstat_format::version::Version;

/// So much of what is noted of records is kept in memory at most: reading it back from a file costs little.
const HELD_BYTES_MAX: u64 = 32 << 20;

/// Makes a trace.
pub(crate) struct TraceBuilder {
    trace: Trace,
    blocks: Blocks,
    replayer: PageReplayer,
    running: RunningTransactions,
    finder: Finder,
    freezing: Freezing,
    free_space: FreeSpace,
    /// What differs at the other wal_level, where that is asked for.
    level: Option<Differences>,
    usual: MeanBlockData,
    /// After the record before, if nothing is missing there.
    end: Option<Lsn>,
    /// The references of the record at hand, and the fork of the first one.
    refs: Vec<TracedBlock>,
    fork: ForkNumber,
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

impl TraceBuilder {
    /// One that keeps pages within so many bytes, and what it notes of records in half of that, or in
    /// [`HELD_BYTES_MAX`], and a file.
    pub(crate) fn within(page_bytes: u64, new_file: NewFile) -> TraceBuilder {
        let records = Store::within((page_bytes / 2).min(HELD_BYTES_MAX), new_file);
        TraceBuilder {
            trace: Trace { records, ..Trace::default() },
            blocks: Blocks::default(),
            replayer: PageReplayer::within(page_bytes).light(true),
            running: RunningTransactions::default(),
            finder: Finder::default(),
            freezing: Freezing::default(),
            free_space: FreeSpace::default(),
            level: None,
            usual: MeanBlockData::default(),
            end: None,
            refs: Vec::new(),
            fork: 0,
        }
    }

    /// One that notes what differs at the other wal_level, too: for that it looks at whole rows.
    pub(crate) fn with_levels(self) -> TraceBuilder {
        let replayer = self.replayer.light(false);
        TraceBuilder { level: Some(Differences::default()), replayer, ..self }
    }

    /// Takes the next record.
    pub(crate) fn push(&mut self, record: &WholeRecord<'_>) {
        match plain::block_of(record).filter(|_| self.level.is_none()) {
            Some(block) => self.push_plain(record, block),
            None => self.push_any(record),
        }
    }

    fn push_any(&mut self, record: &WholeRecord<'_>) {
        let ordinal = self.trace.records.next_ordinal();
        let mut fixed_bytes =
            record.header.total_bytes - record.parts.fpi_bytes - record.parts.block_data_bytes;
        let mut elsewhere = None;
        self.refs.clear();
        for block in record.blocks {
            fixed_bytes -= image_header(record, block);
            let (reference, data) = self.reference(record, block, ordinal);
            elsewhere = elsewhere.or(data);
            self.refs.push(reference);
        }
        let freeze = self.freeze(record);
        let row = self.refs.first().map_or(0, |reference| reference.data_bytes);
        let delta = self.level.as_mut().map(|level| level.of(record, row, elsewhere));
        let follows = self.end.is_some_and(|end| is_next(end, record.lsn));
        self.end = Some(record.end);
        self.trace.has_custom_rmgrs |= record.header.rmgr > record.version.rmgr_max;
        let (rows, table) = self.rows(record);
        let effect = self.effect(record, ordinal).or(freeze);
        let effect = effect.or_else(|| {
            let page_bytes = self.replayer.page_bytes();
            self.free_space.of(record, self.fork, ordinal, page_bytes)
        });
        let entry = Entry {
            lsn: record.lsn,
            bytes: record.header.total_bytes,
            fixed_bytes,
            kind: record.record_type(),
            refs: record.blocks.len() as u8,
            rows,
            table,
        };
        let delta = delta.unwrap_or_default();
        let refs = &self.refs;
        let traced = TracedRecord { ordinal, entry: &entry, refs, effect, delta };
        self.trace.push(&traced, follows);
    }

    /// Whether more records came than a trace can have.
    pub(crate) fn is_full(&self) -> bool {
        self.trace.records.is_full()
    }

    /// Records are missing here: what they did to pages is not known.
    pub(crate) fn gap(&mut self) {
        self.replayer.forget();
        self.end = None;
    }

    /// The trace, and what the base looks like.
    pub(crate) fn finish(
        self,
        version: &'static Version,
        geometry: Geometry,
        range: Range<Lsn>,
    ) -> (Trace, Base) {
        let TraceBuilder { mut trace, replayer, level, .. } = self;
        trace.records.close();
        trace.is_logical = level.is_some_and(|level| level.is_logical);
        trace.page_bytes = replayer.page_bytes();
        trace.given_up = replayer.given_up();
        let base = Base::of(&trace, version, geometry, range);
        sequence::connect(&mut trace, &base);
        (trace, base)
    }

    /// Whether the record freezes rows for an image's sake.
    fn freeze(&mut self, record: &WholeRecord<'_>) -> Option<RecordEffect> {
        let (block, reference) = record.blocks.first().zip(self.refs.first_mut())?;
        let freeze = self.freezing.of(
            record,
            block,
            FirstBlock { fork: self.fork, number: reference.block },
        );
        if freeze.is_for_image {
            reference.facts |= entry_fact::FREEZES_FOR_IMAGE;
        }
        freeze.effect
    }

    fn effect(&mut self, record: &WholeRecord<'_>, ordinal: Ordinal) -> Option<RecordEffect> {
        self.note_running(record, ordinal);
        let mut effect = {
            let page_bytes = self.replayer.page_bytes();
            record_effect::of(record, &mut self.running, &mut self.blocks, page_bytes)?
        };
        if let RecordEffect::Sequence { fork, value, sequence } = &mut effect {
            let bytes = record.header.total_bytes;
            *sequence = self.finder.logged(&mut self.trace.sequences, *fork, *value, bytes);
        }
        Some(effect)
    }

    /// Notes what goes on beside a transaction.
    fn note_running(&mut self, record: &WholeRecord<'_>, ordinal: Ordinal) {
        let xid = record.header.xid;
        self.note_beside(xid, ordinal);
        if xid == 0 && redo::vacuumed(record).is_some() {
            self.running.note_vacuum();
        }
    }

    /// The same of a record that no vacuum writes.
    #[inline]
    fn note_beside(&mut self, xid: u32, ordinal: Ordinal) {
        let beside = self.running.note(xid);
        let extend = |places: &mut Option<(Ordinal, Ordinal)>| {
            let (first, _) = places.unwrap_or((ordinal, ordinal));
            *places = Some((first, ordinal));
        };
        if beside.transaction {
            extend(&mut self.trace.side_by_side);
        }
        if beside.vacuum {
            extend(&mut self.trace.beside_vacuum);
        }
    }

    /// Rows that a record inserts, and into which table.
    fn rows(&mut self, record: &WholeRecord<'_>) -> (u16, ForkNumber) {
        match redo::inserted_rows(record) {
            rows @ 1.. if !self.refs.is_empty() => {
                self.finder.inserted(self.fork, rows);
                (rows, self.fork)
            }
            _ => (0, 0),
        }
    }

    /// A reference, and its data at the other wal_level where they differ.
    fn reference(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        ordinal: Ordinal,
    ) -> (TracedBlock, Option<u16>) {
        let registered = Registered::of(record, block);
        let (fork, number) = self.blocks.numbers(block);
        if self.refs.is_empty() {
            self.fork = fork;
        }
        let unpruned = self.unpruned_bytes(record, number);
        let lengths = self.roll(record, block, registered, fork, number);
        if let Some(bytes) = unpruned.filter(|bytes| *bytes != lengths.image) {
            self.trace.unpruned.push((ordinal, bytes));
        }
        let registered = registered.seen(record, lengths.page_lsn);
        let elsewhere = lengths.data_elsewhere.filter(|bytes| *bytes != lengths.data);
        let stamps = self.as_seen(self.blocks.stamps(number), lengths.page_lsn);
        self.stamp(record, registered, number, stamps, ordinal);
        let codec = block.image.and_then(|i| record.version.image_flags.compression(i.info));
        if block.image.is_some() {
            self.trace.images_seen.add(codec, self.trace.compression);
        }
        self.trace.compression = codec.or(self.trace.compression);
        // A page without an image that should have one was stamped before the first record.
        let known = |stamped| match registered.images {
            Images::Reset => NEVER,
            Images::Usual if stamped == NEVER && block.image.is_none() => BEFORE,
            _ => stamped,
        };
        let reference = TracedBlock {
            block: number,
            stamped: known(stamps.with_hints),
            stamped_without_hints: known(stamps.without_hints),
            data_bytes: lengths.data,
            image_bytes: lengths.image,
            stored_bytes: block.image.map_or(0, |image| image.bytes),
            facts: facts(record, block, registered, &lengths),
        };
        (reference, elsewhere)
    }

    /// How long an image is that is taken for hint bits before the page is pruned.
    fn unpruned_bytes(&self, record: &WholeRecord<'_>, number: BlockNumber) -> Option<u16> {
        redo::prunes(record).filter(|prunes| *prunes)?;
        u16::try_from(self.replayer.length(number)?.without_hole()).ok()
    }

    fn stamp(
        &mut self,
        record: &WholeRecord<'_>,
        registered: Registered,
        number: BlockNumber,
        before: Stamps,
        ordinal: Ordinal,
    ) {
        let only_with_hints =
            registered.images == Images::WithHints || record_effect::is_hint(record);
        if !registered.stamps {
            return self.blocks.stamp(number, before);
        }
        let without_hints = if only_with_hints { before.without_hints } else { ordinal };
        self.blocks.stamp(number, Stamps { with_hints: ordinal, without_hints, at: record.lsn });
    }

    /// A stamp that the page itself does not have was none: some index builds write pages before
    /// they log them. One that pages have only where hint bits are logged may be missing for that.
    fn as_seen(&self, stamps: Stamps, page_lsn: Option<Lsn>) -> Stamps {
        let is_in_any_case = stamps.with_hints == stamps.without_hints;
        let is_missing = |lsn: &Lsn| stamps.with_hints >= FIRST && *lsn <= stamps.at;
        let Some(page_lsn) = page_lsn.filter(|lsn| is_in_any_case && is_missing(lsn)) else {
            return stamps;
        };
        let last = self.trace.last_before(page_lsn);
        let seen = |stamped: Ordinal| if stamped < FIRST { stamped } else { stamped.min(last) };
        let (with_hints, without_hints) = (seen(stamps.with_hints), seen(stamps.without_hints));
        Stamps { with_hints, without_hints, at: page_lsn }
    }

    /// Rolls the page forward over the record and measures it.
    fn roll(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        registered: Registered,
        fork: ForkNumber,
        number: BlockNumber,
    ) -> Lengths {
        let is_imaged = block.image.is_some();
        let mut lengths = Lengths {
            page_lsn: None,
            data: block.data_bytes,
            data_estimated: false,
            data_elsewhere: None,
            image: 0,
            image_estimated: false,
            hole: false,
        };
        let is_replaced = is_imaged && block.data_bytes == 0;
        let (mut put_back, mut is_compared) = (None, false);
        let page = self.replayer.roll(record, block, number, |image, before| {
            lengths.page_lsn = image.view.lsn();
            is_compared = before.is_some();
            if is_replaced {
                put_back = redo::data_bytes(record, block, image, before);
            }
        });
        if is_replaced {
            let usual = || self.usual.mean(record.record_type(), block.id);
            lengths.data = match put_back {
                // Of what was done to the page only a part is seen, without the page before.
                Some(data) if data.estimated && !is_compared => data.bytes.max(usual()),
                Some(data) => data.bytes,
                None => usual(),
            };
            lengths.data_estimated = put_back.is_none_or(|data| data.estimated);
        }
        if !is_imaged {
            self.usual.note(record.record_type(), block);
        }
        if self.level.is_some() {
            let page = self.replayer.page(number);
            lengths.data_elsewhere =
                page.and_then(|page| redo::data_at_other_level(record, block, page));
        }
        self.measure(block, registered, fork, page, &mut lengths);
        lengths
    }

    fn measure(
        &mut self,
        block: &BlockRef,
        registered: Registered,
        fork: ForkNumber,
        after: Option<PageLength>,
        lengths: &mut Lengths,
    ) {
        let bytes = match (block.image, after) {
            (Some(image), Some(length)) => {
                lengths.hole = image.hole_offset > 0;
                if lengths.hole { length.without_hole() } else { length.page }
            }
            (None, Some(length)) if registered.standard => {
                lengths.hole = length.hole > 0;
                length.without_hole()
            }
            (None, Some(length)) => length.page,
            (None, None) if !registered.standard => self.replayer.page_bytes(),
            (_, None) => {
                lengths.image_estimated = true;
                self.mean_image(fork)
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

    /// How long images of a fork's pages are on average, as far as some were seen.
    fn mean_image(&self, fork: ForkNumber) -> usize {
        let seen = self.blocks.fork(fork).filter(|fork| fork.images > 0);
        let mean = seen.map(|fork| (fork.image_bytes / fork.images) as usize);
        mean.unwrap_or_else(|| self.replayer.page_bytes())
    }
}

/// Whether a record at `lsn` is the next one after `end`: behind a page's header, if one is there.
fn is_next(end: Lsn, lsn: Lsn) -> bool {
    let between = lsn.0.wrapping_sub(end.0);
    let headers = [SHORT_HEADER_BYTES as u64, LONG_HEADER_BYTES as u64];
    between == 0 || end.0.is_multiple_of(PAGE_BYTES_MIN) && headers.contains(&between)
}

/// Bytes of the image's header.
fn image_header(record: &WholeRecord<'_>, block: &BlockRef) -> u32 {
    let Some(image) = block.image else { return 0 };
    let compressed = record.version.image_flags.is_compressed(image.info);
    let with_hole = compressed && image.info & walstat_format::image::HAS_HOLE != 0;
    IMAGE_HEADER_BYTES + if with_hole { HOLE_HEADER_BYTES } else { 0 }
}

fn facts(
    record: &WholeRecord<'_>,
    block: &BlockRef,
    registered: Registered,
    lengths: &Lengths,
) -> u16 {
    let flags = record.version.image_flags;
    let image = block.image;
    let applied = image.is_some_and(|image| flags.is_applied(image.info));
    let checks = record.header.info & CHECK_CONSISTENCY != 0;
    let images = match registered.images {
        Images::Usual | Images::Reset => entry_fact::USUAL,
        Images::Always => entry_fact::ALWAYS,
        Images::Never => 0,
        Images::WithHints => entry_fact::WITH_HINTS,
        Images::Unsaid => entry_fact::UNSAID,
    };
    let set = |holds: bool, bit: u16| if holds { bit } else { 0 };
    images
        | set(applied, entry_fact::BASE_IMAGE)
        | set(image.is_some_and(|i| flags.is_compressed(i.info)), entry_fact::BASE_COMPRESSED)
        | set(checks && image.is_some(), entry_fact::CHECK_IMAGE)
        | set(keeps_data(record, block), entry_fact::KEEPS_DATA)
        | set(lengths.hole, entry_fact::HOLE)
        | set(lengths.image_estimated, entry_fact::IMAGE_ESTIMATED)
        | set(lengths.data_estimated, entry_fact::DATA_ESTIMATED)
        | set(registered.stamps, entry_fact::STAMPS)
        | set(redo::looks_at(record, block), entry_fact::LOOKED_AT)
        | set(block.id == 0 && level::keeps_data_at_logical(record), entry_fact::KEPT_AT_LOGICAL)
}

/// Whether block data stay beside an image (`REGBUF_KEEP_DATA`).
fn keeps_data(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    let applied = block.image.is_some_and(|i| record.version.image_flags.is_applied(i.info));
    (applied && block.data_bytes > 0) || redo::keeps_data(record, block)
}

#[cfg(test)]
mod tests;
