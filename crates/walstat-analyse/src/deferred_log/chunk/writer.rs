//! Records → a chunk.

use super::{BlockTouch, Chunk, HAS_IMAGE, ImagedAgain, RecordImages, StatedTime, Tail};
use crate::deferred_log::Tally;
use crate::deferred_log::event::PlacedEvent;
use crate::deferred_log::file_numbers::FileNumbers;
use crate::deferred_log::record_runs::RunWriter;
use crate::fork_table::ForkKey;
use walstat_format::block::BlockMark;
use walstat_format::lsn::{Lsn, padded};
use walstat_format::payload::Time;
use walstat_format::record::Record;
use walstat_format::scatter::scattered;

/// Records in a chunk, at most.
const RECORDS: u32 = 4096;
/// Touches in a chunk, more or less: a record may bring 33.
const TOUCHES: usize = 8192;
/// Slots of the table that finds a touch; a power of two.
const SLOTS: usize = 2 * TOUCHES;
/// No chunk goes beyond a multiple of this, with which runs begin and end: so where chunks end does
/// not depend on how the WAL was divided.
const BYTES: u64 = 1 << 20;

/// Writes a chunk.
///
/// Records of one form, one directly after the other, on one block, cost a comparison each: they are
/// counted in `repeats`, and noted down together when another record comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkWriter {
    /// Where the next record starts if it repeats the last one.
    next: u64,
    /// Length of the last record; 0: no record repeats it.
    length: u32,
    /// Its only block.
    place: Option<BlockMark>,
    /// How many have repeated it.
    repeats: u32,
    /// How many more records have room in the chunk; 0 if it is full of touches.
    room: u32,
    /// From here on records are those of another chunk.
    limit: u64,
    /// The event that it begins with.
    pub event: Option<PlacedEvent>,
    /// Whether records mark redo points.
    pub marks_redo: bool,
    start: Lsn,
    /// Whether anything is in it, but for the event.
    begun: bool,
    end: Lsn,
    tally: Tally,
    lengths: RunWriter,
    /// Whether the next record states its own time.
    has_time: bool,
    marks: Vec<StatedTime>,
    tail: Tail,
    images: Vec<RecordImages>,
    touches: Vec<BlockTouch>,
    again: Vec<ImagedAgain>,
    /// Places in `touches`, by a hash of the block; 0xFFFF is none.
    slots: Vec<u16>,
    /// Where in `touches` the only block of the last record is.
    last_touch: usize,
}

const NONE: u16 = u16::MAX;

impl ChunkWriter {
    /// Takes a record that is as the last one and directly after it, on the same block; `false`:
    /// it is not, and was not taken.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, record: &Record<'_>) -> bool {
        let is_next = record.lsn.0 == self.next
            && record.header.total_bytes == self.length
            && self.room > 0
            && self.next < self.limit
            && record.end.0 - record.lsn.0 == u64::from(self.length);
        // Records with times and events have no block: they are never taken here.
        if !is_next || self.place.is_none() || record.block_mark() != self.place {
            return false;
        }
        self.next += padded(u64::from(self.length));
        self.room -= 1;
        self.repeats += 1;
        true
    }

    /// Notes down the records that repeated the last one.
    #[inline(always)]
    fn end_repeats(&mut self) {
        if self.repeats > 0 {
            self.note_repeats();
        }
    }

    #[inline(never)]
    fn note_repeats(&mut self) {
        let count = u64::from(std::mem::take(&mut self.repeats));
        let (length, stride) = (u64::from(self.length), padded(u64::from(self.length)));
        // A chunk has no more records than that.
        self.lengths.repeat(count as u16, stride);
        self.tally.count += count;
        self.tally.total_bytes += count * length;
        self.end = Lsn(self.next - stride + length);
        let at = self.last_index();
        if let Some(touch) = self.touches.get_mut(self.last_touch) {
            touch.last = at;
        }
    }

    fn last_index(&self) -> u16 {
        self.tally.count.saturating_sub(1) as u16
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        !self.begun && self.event.is_none()
    }

    /// Whether another record at `lsn` has no room in it.
    pub(crate) fn is_full(&self, lsn: Lsn) -> bool {
        (self.room == 0 || lsn.0 >= self.limit) && self.begun
    }

    /// Whether a time, or images without their record, have no room in it.
    pub(crate) fn has_all_notes(&self) -> bool {
        self.marks.len().max(self.images.len()) >= RECORDS as usize
    }

    fn offset(&self, lsn: Lsn) -> u32 {
        (lsn.0.saturating_sub(self.start.0) / 8) as u32
    }

    #[cold]
    fn begin(&mut self, record: &Record<'_>) {
        self.begun = true;
        self.room = RECORDS;
        self.limit = (record.lsn.0 | (BYTES - 1)).saturating_add(1);
        self.marks_redo = record.version.pacing.marks_redo;
        self.start = record.lsn;
        self.lengths.begin(record.lsn.0);
        self.tail = Tail { at: 0, lsn: record.lsn.0, before: Tally::default() };
    }

    /// Adds any record.
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        self.end_repeats();
        if !self.begun {
            self.begin(record);
        }
        let total_bytes = record.header.total_bytes;
        let has_time = std::mem::take(&mut self.has_time);
        self.next = self.lengths.push(record.lsn.0, record.end.0, total_bytes, has_time);
        (self.length, self.place) = (total_bytes, None);
        self.end = record.end;
        self.tally.total_bytes += u64::from(total_bytes);
        if record.parts.fpi_count > 0 {
            self.add_images(record.lsn, record.parts.fpi_bytes, record.parts.fpi_count);
        }
        self.tally.count += 1;
        self.room -= 1;
    }

    fn add_images(&mut self, lsn: Lsn, bytes: u32, count: u32) {
        self.tally.fpi_bytes += u64::from(bytes);
        self.tally.fpi_count += u64::from(count);
        let offset = self.offset(lsn);
        self.images.push(RecordImages { offset, bytes, count });
    }

    /// Whether a time or an image of the same grain was noted last.
    pub(crate) fn goes_on(&self, lsn: Lsn, grain: u64) -> bool {
        let mark = self.marks.last().map(|mark| mark.offset);
        let last = mark.max(self.images.last().map(|image| image.offset));
        last.is_some_and(|offset| (self.start.0 + u64::from(offset) * 8) / grain == lsn.0 / grain)
    }

    /// Takes note of the images of a record that is not counted otherwise.
    pub(crate) fn note_images(&mut self, record: &Record<'_>) {
        if !self.begun {
            self.begin(record);
        }
        self.end = record.end;
        self.add_images(record.lsn, record.parts.fpi_bytes, record.parts.fpi_count);
    }

    /// Takes note of a time; the record itself is added next, if it is counted.
    pub(crate) fn mark(
        &mut self,
        record: &Record<'_>,
        time: Time,
        is_commit: bool,
        is_counted: bool,
    ) {
        self.end_repeats();
        if !self.begun {
            self.begin(record);
        }
        self.end = record.end;
        let offset = self.offset(record.lsn);
        self.has_time = is_counted;
        self.marks.push(StatedTime { time, offset, commits: u16::from(is_commit), is_counted });
        let (at, lsn) = self.lengths.pause();
        self.tail = Tail { at, lsn, before: self.tally };
    }

    /// Takes note of a time: of those of a grain that lie in one second, the latest stands for all.
    pub(crate) fn note_time(
        &mut self,
        record: &Record<'_>,
        time: Time,
        is_commit: bool,
        is_counted: bool,
        grain: u64,
    ) {
        let cell = record.lsn.0 / grain;
        let start = self.start.0;
        match self.marks.last_mut() {
            Some(last)
                if (start + u64::from(last.offset) * 8) / grain == cell
                    && last.is_counted == is_counted
                    && last.time.second() == time.second()
                    && last.commits < u16::MAX =>
            {
                last.commits += u16::from(is_commit);
                if time > last.time {
                    last.time = time;
                    last.offset = ((record.lsn.0 - start) / 8) as u32;
                }
            }
            _ => self.mark(record, time, is_commit, is_counted),
        }
    }

    /// Lets others repeat the record added last, whose blocks are not noted down.
    pub(crate) fn pass_blocks(&mut self, record: &Record<'_>) {
        self.place = record.block_mark();
    }

    /// Takes note of the blocks of the record added last.
    #[inline(always)]
    pub(crate) fn touch_all(&mut self, record: &Record<'_>, files: &mut FileNumbers) {
        self.place = record.block_mark();
        match &self.place {
            // The commonest form needs no walk.
            Some(mark) => {
                let (relation, fork, block) = (mark.relation(), mark.fork(), mark.block());
                self.touch(files.number(ForkKey { relation, fork }), block, false);
            }
            None => record.places().for_each(|place| {
                self.touch(files.number(ForkKey::of_place(&place)), place.block, place.has_image);
            }),
        }
        if self.touches.len() >= TOUCHES {
            self.room = 0;
        }
    }

    #[inline(always)]
    fn touch(&mut self, file: u32, block: u32, has_image: bool) {
        let at = self.last_index();
        let found = self.find(file, block, at, has_image);
        self.last_touch = found;
        if let Some(touch) = self.touches.get_mut(found) {
            let previous = std::mem::replace(&mut touch.last, at);
            if has_image && previous != at {
                self.again.push(ImagedAgain { touch: found as u16, previous, at });
            }
        }
    }

    /// The place of a block in `touches`; a new one is touched by record `at` first.
    #[inline]
    fn find(&mut self, file: u32, block: u32, at: u16, has_image: bool) -> usize {
        let mut slot = hash(file, block);
        loop {
            let Some(place) = self.slots.get(slot) else {
                self.slots = vec![NONE; SLOTS];
                continue;
            };
            match self.touches.get(usize::from(*place)) {
                Some(touch) if touch.block == block && touch.file == file => {
                    return usize::from(*place);
                }
                Some(_) => slot = (slot + 1) % SLOTS,
                None => break,
            }
        }
        let place = self.touches.len();
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = place as u16;
        }
        let first = at | if has_image { HAS_IMAGE } else { 0 };
        self.touches.push(BlockTouch { file, block, first, last: at });
        place
    }

    /// The chunk, if anything is in it; the writer is empty afterwards.
    pub(crate) fn finish(&mut self) -> Option<Chunk> {
        self.end_repeats();
        (self.length, self.place) = (0, None);
        let event = self.event.take().map(Box::new);
        if !self.begun && event.is_none() {
            return None;
        }
        let begun = std::mem::take(&mut self.begun);
        Some(Chunk {
            start: match &event {
                Some(event) if !begun => event.lsn,
                _ => self.start,
            },
            end: std::mem::take(&mut self.end),
            event,
            tally: std::mem::take(&mut self.tally),
            marks: taken(&mut self.marks),
            tail: std::mem::take(&mut self.tail),
            lengths: self.lengths.finish(),
            images: taken(&mut self.images),
            again: taken(&mut self.again),
            touches: self.take_touches(),
        })
    }

    /// The touches; the table that finds them is empty afterwards.
    fn take_touches(&mut self) -> Box<[BlockTouch]> {
        if !self.touches.is_empty() {
            self.slots.fill(NONE);
        }
        taken(&mut self.touches)
    }
}

/// A copy of just the size; the vector keeps its memory for the next chunk.
fn taken<T: Copy>(values: &mut Vec<T>) -> Box<[T]> {
    let taken = values.as_slice().into();
    values.clear();
    taken
}

#[inline(always)]
fn hash(file: u32, block: u32) -> usize {
    let key = u64::from(file) << 32 | u64::from(block);
    (scattered(key) >> (64 - SLOTS.trailing_zeros())) as usize
}
