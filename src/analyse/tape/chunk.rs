//! Some thousand records: their sums, and just enough to divide them at any place later.

use super::event::Placed;
use super::lengths::{self, Runs};
use super::relations::{File, Files};
use super::{Batch, Tally};
use crate::scan::record::Record;
use crate::wal::block::StoredPlace;
use crate::wal::lsn::Lsn;
use crate::wal::payload::Time;
use serde::{Deserialize, Serialize};

/// Records in a chunk, at most.
const RECORDS: u32 = 4096;
/// Touches in a chunk, more or less: a record may bring 33.
const TOUCHES: usize = 8192;
/// Slots of the table that finds a touch; a power of two.
const SLOTS: usize = 2 * TOUCHES;
/// Places in a chunk are counted from its start in units of 8 bytes, in 32 bits.
const BYTES: u64 = 1 << 35;

/// A record that states its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The time.
    pub time: Time,
    offset: u32,
    /// Commits that it stands for.
    commits: u16,
    is_counted: bool,
}

impl Mark {
    /// Whether its record is counted.
    pub fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// How many commits that are counted it stands for.
    pub fn commits(&self) -> u64 {
        if self.is_counted { u64::from(self.commits) } else { 0 }
    }
}

/// A record with images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    offset: u32,
    /// Bytes of its images.
    pub bytes: u32,
    /// How many they are.
    pub count: u32,
}

/// A block that records of the chunk refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// Number of its file, in the batch.
    pub file: u32,
    /// Block number.
    pub block: u32,
    /// Bit 15: the first record has an image of it; below: the first record of the chunk.
    first: u16,
    /// The last record of the chunk.
    last: u16,
}

const HAS_IMAGE: u16 = 1 << 15;

impl Touch {
    /// Whether the first record has an image of it.
    pub fn has_image(&self) -> bool {
        self.first & HAS_IMAGE != 0
    }

    fn first(&self) -> u16 {
        self.first & !HAS_IMAGE
    }
}

/// An image of a block that records of the chunk have touched before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Again {
    touch: u16,
    /// The record that touched it last.
    previous: u16,
    /// The record with the image.
    at: u16,
}

/// Some thousand records; an event is its beginning.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Chunk {
    /// What happened before its first record; mostly that record itself.
    pub event: Option<Box<Placed>>,
    /// Where its first record, or mark, starts.
    pub start: Lsn,
    /// Where its last record ends.
    pub end: Lsn,
    /// All its records.
    pub tally: Tally,
    /// The records that state their time.
    pub marks: Box<[Mark]>,
    lengths: Box<[u16]>,
    images: Box<[Image]>,
    touches: Box<[Touch]>,
    again: Box<[Again]>,
    tail: Tail,
}

/// The records from the last mark on, that mark's own included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tail {
    /// Where their lengths begin.
    at: usize,
    /// Where the first one starts if nothing lies between.
    lsn: u64,
    /// All records before them.
    before: Tally,
}

/// What of a chunk lies on one side of a place.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its records.
    pub tally: Tally,
    /// Where those with images start, and how many bytes the images have.
    pub images: Vec<(Lsn, u64)>,
    /// The blocks that they touch, and whether the first that does has an image.
    pub touches: Vec<(u32, u32, bool)>,
}

impl Chunk {
    fn place(&self, offset: u32) -> Lsn {
        Lsn(self.start.0 + u64::from(offset) * 8)
    }

    /// Its records, those alike together.
    pub fn runs(&self) -> Runs<'_> {
        Runs::new(&self.lengths, self.start.0)
    }

    /// Its records from the last mark on, that mark's own included.
    pub fn tail(&self) -> Runs<'_> {
        Runs::new(self.lengths.get(self.tail.at..).unwrap_or_default(), self.tail.lsn)
    }

    /// Sums over the records before those, and where the last of them ends at the latest.
    pub fn before_tail(&self) -> (Tally, Lsn) {
        (self.tail.before, Lsn(self.tail.lsn))
    }

    /// Its records with images, and where they start.
    pub fn images(&self) -> impl Iterator<Item = (Lsn, &Image)> {
        self.images.iter().map(|image| (self.place(image.offset), image))
    }

    /// Where its records start that state their time.
    pub fn mark_lsn(&self, mark: &Mark) -> Lsn {
        self.place(mark.offset)
    }

    /// The blocks that its records touch.
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// Whether a block was imaged that had been touched in the chunk before: what a redo point in
    /// it looks like.
    pub fn images_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// How much memory it takes, about.
    pub fn bytes(&self) -> usize {
        size_of::<Chunk>()
            + size_of_val(&*self.lengths)
            + size_of_val(&*self.marks)
            + size_of_val(&*self.images)
            + size_of_val(&*self.touches)
            + size_of_val(&*self.again)
    }

    /// Forgets the times, when they are known to whoever follows the tape.
    pub fn drop_marks(&mut self) {
        self.marks = Box::default();
    }

    /// The records that start before `lsn`, and the others.
    pub fn divide(&self, lsn: Lsn) -> (Part, Part) {
        let index = self.index_of(lsn);
        let mut before = Part { tally: self.tally_before(lsn), ..Part::default() };
        let mut after = Part::default();
        for (place, image) in self.images() {
            let part = if place < lsn { &mut before } else { &mut after };
            part.images.push((place, u64::from(image.bytes)));
        }
        let imaged = self.imaged_again_at(index);
        for (touch, imaged) in self.touches.iter().zip(imaged) {
            let (file, block, has_image) = (touch.file, touch.block, touch.has_image());
            if touch.first() < index {
                before.touches.push((file, block, has_image));
            }
            if touch.first() >= index {
                after.touches.push((file, block, has_image));
            } else if touch.last >= index {
                after.touches.push((file, block, imaged));
            }
        }
        after.tally = Tally {
            count: self.tally.count - before.tally.count,
            total_bytes: self.tally.total_bytes - before.tally.total_bytes,
            fpi_bytes: self.tally.fpi_bytes - before.tally.fpi_bytes,
            fpi_count: self.tally.fpi_count - before.tally.fpi_count,
        };
        (before, after)
    }

    /// How many records start before `lsn`.
    fn index_of(&self, lsn: Lsn) -> u16 {
        self.runs().map(|run| run.before(lsn.0)).sum::<u64>() as u16
    }

    fn tally_before(&self, lsn: Lsn) -> Tally {
        let mut tally = Tally::default();
        for run in self.runs() {
            let count = run.before(lsn.0);
            tally.count += count;
            tally.total_bytes += count * run.total_bytes;
        }
        for (_, image) in self.images().filter(|(place, _)| *place < lsn) {
            tally.fpi_bytes += u64::from(image.bytes);
            tally.fpi_count += u64::from(image.count);
        }
        tally
    }

    /// For each block: whether the first record from `index` on that touches it has an image of it,
    /// and another record before `index` has touched it.
    fn imaged_again_at(&self, index: u16) -> Vec<bool> {
        let mut imaged = vec![false; self.touches.len()];
        for again in &self.again {
            if again.previous < index
                && again.at >= index
                && let Some(imaged) = imaged.get_mut(usize::from(again.touch))
            {
                *imaged = true;
            }
        }
        imaged
    }

    /// Numbers the files of its touches anew.
    pub fn renumber(&mut self, numbers: &[u32]) {
        for touch in &mut self.touches {
            touch.file = numbers.get(touch.file as usize).copied().unwrap_or(touch.file);
        }
    }
}

/// Writes a chunk.
///
/// Records of one form, one directly after the other, on one block, cost a comparison each: they are
/// counted in `repeats`, and noted down together when another record comes.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    /// Where the next record starts if it repeats the last one.
    next: u64,
    /// Length of the last record; 0: no record repeats it.
    length: u32,
    /// Its only block.
    place: Option<StoredPlace>,
    /// How many have repeated it.
    repeats: u32,
    /// How many more may.
    room: u32,
    /// The event that it begins with.
    pub event: Option<Placed>,
    /// Whether records mark redo points.
    pub marks_redo: bool,
    start: Lsn,
    /// Whether anything is in it, but for the event.
    begun: bool,
    end: Lsn,
    tally: Tally,
    lengths: lengths::Writer,
    /// Whether the next record states its own time.
    has_time: bool,
    marks: Vec<Mark>,
    tail: Tail,
    images: Vec<Image>,
    touches: Vec<Touch>,
    again: Vec<Again>,
    /// Places in `touches`, by a hash of the block; 0xFFFF is none.
    slots: Vec<u16>,
    /// Where in `touches` the only block of the last record is.
    last_touch: usize,
}

const NONE: u16 = u16::MAX;

impl Writer {
    /// Takes a record that is as the last one and directly after it, on the same block; `false`:
    /// it is not, and was not taken.
    #[inline(always)]
    pub fn repeat(&mut self, record: &Record<'_>) -> bool {
        let is_next = record.lsn.0 == self.next
            && record.header.total_bytes == self.length
            && self.room > 0
            && record.end.0 - record.lsn.0 == u64::from(self.length);
        // Records with times and events have no block: they are never taken here.
        if !is_next || self.place.is_none() || record.one_place() != self.place {
            return false;
        }
        self.next += lengths::stride(u64::from(self.length));
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
        let (length, stride) = (u64::from(self.length), lengths::stride(u64::from(self.length)));
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

    /// Whether another record at `lsn` has no room in it.
    pub fn is_full(&self, lsn: Lsn) -> bool {
        self.begun
            && (self.room == 0
                || self.touches.len() >= TOUCHES
                || lsn.0.saturating_sub(self.start.0) >= BYTES)
    }

    /// Whether a time, or images without their record, have no room in it.
    pub fn has_all_notes(&self) -> bool {
        self.marks.len().max(self.images.len()) >= RECORDS as usize
    }

    fn offset(&self, lsn: Lsn) -> u32 {
        (lsn.0.saturating_sub(self.start.0) / 8) as u32
    }

    #[cold]
    fn begin(&mut self, record: &Record<'_>) {
        self.begun = true;
        self.room = RECORDS;
        self.marks_redo = record.version.redo_records;
        self.start = record.lsn;
        self.lengths.begin(record.lsn.0);
        self.tail = Tail { at: 0, lsn: record.lsn.0, before: Tally::default() };
    }

    /// Adds any record.
    pub fn add(&mut self, record: &Record<'_>) {
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
        self.images.push(Image { offset, bytes, count });
    }

    /// Whether a time or an image of the same grain was noted last.
    pub fn goes_on(&self, lsn: Lsn, grain: u64) -> bool {
        let mark = self.marks.last().map(|mark| mark.offset);
        let last = mark.max(self.images.last().map(|image| image.offset));
        last.is_some_and(|offset| (self.start.0 + u64::from(offset) * 8) / grain == lsn.0 / grain)
    }

    /// Takes note of the images of a record that is not counted otherwise: those of a grain
    /// together.
    pub fn note_images(&mut self, record: &Record<'_>, grain: u64) {
        if !self.begun {
            self.begin(record);
        }
        let (lsn, parts) = (record.lsn.0, &record.parts);
        match self.images.last_mut() {
            Some(last) if (self.start.0 + u64::from(last.offset) * 8) / grain == lsn / grain => {
                last.bytes = last.bytes.saturating_add(parts.fpi_bytes);
                last.count += parts.fpi_count;
                self.tally.fpi_bytes += u64::from(parts.fpi_bytes);
                self.tally.fpi_count += u64::from(parts.fpi_count);
            }
            _ => self.add_images(record.lsn, parts.fpi_bytes, parts.fpi_count),
        }
    }

    /// Takes note of a time; the record itself is added next, if it is counted.
    pub fn mark(&mut self, record: &Record<'_>, time: Time, is_commit: bool, is_counted: bool) {
        self.end_repeats();
        if !self.begun {
            self.begin(record);
        }
        let offset = self.offset(record.lsn);
        self.has_time = is_counted;
        self.marks.push(Mark { time, offset, commits: u16::from(is_commit), is_counted });
        let (at, lsn) = self.lengths.pause();
        self.tail = Tail { at, lsn, before: self.tally };
    }

    /// Takes note of a time: of those of a grain, the latest stands for all.
    pub fn note_time(
        &mut self,
        record: &Record<'_>,
        time: Time,
        (is_commit, is_counted): (bool, bool),
        grain: u64,
    ) {
        let cell = record.lsn.0 / grain;
        let start = self.start.0;
        match self.marks.last_mut() {
            Some(last)
                if (start + u64::from(last.offset) * 8) / grain == cell
                    && last.is_counted == is_counted
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
    pub fn pass_blocks(&mut self, record: &Record<'_>) {
        self.place = record.one_place();
    }

    /// Takes note of the blocks of the record added last.
    #[inline(always)]
    pub fn touch_all(&mut self, record: &Record<'_>, files: &mut Files) {
        let mut count = 0;
        record.for_each_place(|place, has_image| {
            self.touch(place, has_image, files);
            count += 1;
        });
        if count == 1 {
            self.place = record.one_place();
        }
    }

    #[inline(always)]
    fn touch(&mut self, place: &StoredPlace, has_image: bool, files: &mut Files) {
        let at = self.last_index();
        let found = self.find(files.number(File::of(place)), place.block(), at, has_image);
        self.last_touch = found;
        if let Some(touch) = self.touches.get_mut(found) {
            let previous = std::mem::replace(&mut touch.last, at);
            if has_image && previous != at {
                self.again.push(Again { touch: found as u16, previous, at });
            }
        }
    }

    /// The place of a block in `touches`; a new one is touched by record `at` first.
    #[inline]
    fn find(&mut self, file: u32, block: u32, at: u16, has_image: bool) -> usize {
        if self.slots.is_empty() {
            self.slots = vec![NONE; SLOTS];
        }
        let mut slot = hash(file, block);
        loop {
            let place = usize::from(self.slots[slot]);
            match self.touches.get(place) {
                Some(touch) if touch.block == block && touch.file == file => return place,
                Some(_) => slot = (slot + 1) % SLOTS,
                None => break,
            }
        }
        let place = self.touches.len();
        self.slots[slot] = place as u16;
        let first = at | if has_image { HAS_IMAGE } else { 0 };
        self.touches.push(Touch { file, block, first, last: at });
        place
    }

    /// The chunk, if anything is in it; the writer is empty afterwards.
    pub fn finish(&mut self) -> Option<Chunk> {
        self.end_repeats();
        (self.length, self.place) = (0, None);
        let event = self.event.take().map(Box::new);
        if !self.begun && event.is_none() {
            return None;
        }
        self.begun = false;
        Some(Chunk {
            start: match &event {
                Some(event) if self.tally.count == 0 && self.marks.is_empty() => event.lsn,
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
    fn take_touches(&mut self) -> Box<[Touch]> {
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
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let key = u64::from(file) << 32 | u64::from(block);
    (key.wrapping_mul(PRIME) >> (64 - SLOTS.trailing_zeros())) as usize
}

impl Batch {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}
