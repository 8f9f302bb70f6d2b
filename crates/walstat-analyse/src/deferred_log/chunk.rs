//! Some thousand records: their sums, and just enough to divide them at any place later.

mod writer;

pub(super) use writer::ChunkWriter;

use super::event::PlacedEvent;
use super::record_runs::RecordRuns;
use super::{Batch, Tally};
use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// A record that states its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedTime {
    /// The time.
    pub time: Time,
    offset: u32,
    /// Commits that it stands for.
    commits: u16,
    is_counted: bool,
}

impl StatedTime {
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
pub struct RecordImages {
    offset: u32,
    /// Bytes of its images.
    pub bytes: u32,
    /// How many they are.
    pub count: u32,
}

/// A block that records of the chunk refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTouch {
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

impl BlockTouch {
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
struct ImagedAgain {
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
    pub event: Option<Box<PlacedEvent>>,
    /// Where its first record, or mark, starts.
    pub start: Lsn,
    /// Where its last record ends.
    pub end: Lsn,
    /// All its records.
    pub tally: Tally,
    /// The records that state their time.
    pub marks: Box<[StatedTime]>,
    lengths: Box<[u16]>,
    images: Box<[RecordImages]>,
    touches: Box<[BlockTouch]>,
    again: Box<[ImagedAgain]>,
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

/// The records of a chunk on one side of a place.
#[derive(Debug, Clone, Default)]
pub struct ChunkPart {
    /// Its records.
    pub tally: Tally,
    /// Where those with images start, and how many bytes the images have.
    pub images: Vec<(Lsn, u64)>,
    /// The blocks that they touch, and whether the first that does has an image.
    pub touches: Vec<(u32, u32, bool)>,
}

impl Chunk {
    /// Where it begins: with its event, or its first record.
    pub fn begin(&self) -> Lsn {
        self.event.as_ref().map_or(self.start, |event| event.lsn.min(self.start))
    }

    /// Whether no record is in it.
    pub fn has_no_records(&self) -> bool {
        self.tally.count == 0 && self.images.is_empty()
    }

    fn place(&self, offset: u32) -> Lsn {
        Lsn(self.start.0 + u64::from(offset) * 8)
    }

    /// Its records, those alike together.
    pub fn runs(&self) -> RecordRuns<'_> {
        RecordRuns::new(&self.lengths, self.start.0)
    }

    /// Its records from the last mark on, that mark's own included.
    pub fn tail(&self) -> RecordRuns<'_> {
        RecordRuns::new(self.lengths.get(self.tail.at..).unwrap_or_default(), self.tail.lsn)
    }

    /// Sums over the records before those, and where the last of them ends at the latest.
    pub fn before_tail(&self) -> (Tally, Lsn) {
        (self.tail.before, Lsn(self.tail.lsn))
    }

    /// Its records with images, and where they start.
    pub fn images(&self) -> impl Iterator<Item = (Lsn, &RecordImages)> {
        self.images.iter().map(|image| (self.place(image.offset), image))
    }

    /// Where its records start that state their time.
    pub fn mark_lsn(&self, mark: &StatedTime) -> Lsn {
        self.place(mark.offset)
    }

    /// The blocks that its records touch.
    pub fn touches(&self) -> &[BlockTouch] {
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

    /// Forgets the times, when they are known to whoever follows the log.
    pub fn drop_marks(&mut self) {
        self.marks = Box::default();
    }

    /// The records that start before `lsn`, and the others.
    pub fn divide(&self, lsn: Lsn) -> (ChunkPart, ChunkPart) {
        let index = self.index_of(lsn);
        let mut before = ChunkPart { tally: self.tally_before(lsn), ..ChunkPart::default() };
        let mut after = ChunkPart::default();
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

impl Batch {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.transactions.is_none()
    }
}
