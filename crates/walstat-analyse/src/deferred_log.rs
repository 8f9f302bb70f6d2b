//! A compact log of the records that were read, kept until it can be judged: to which second and to
//! which checkpoint a record belongs is often told by records that come much later, or in another run.
//!
//! Each run writes its log record by record, in chunks of some thousand. The logs are put together in
//! WAL order and then followed chunk after chunk, so that what is found does not depend on how the WAL
//! was divided. A chunk has the sums of its records and is seldom looked into; each record takes about
//! two bytes of it, and each block twelve, once a chunk. Nothing is concluded here.

mod chunk;
mod event;
mod file_numbers;
mod open_transactions;
mod record_runs;

pub use chunk::{BlockTouch, Chunk, ChunkPart, RecordImages, StatedTime};
pub use event::{CheckpointSeen, Event, FilesChange, PlacedEvent, may_matter, stated_time};
pub use file_numbers::FileNumbers;
pub use open_transactions::OpenTransactions;
pub use record_runs::RecordRun;

use chunk::ChunkWriter;
use open_transactions::TransactionWatch;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Range};
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;

/// Sums over records; bytes where not said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Records.
    pub count: u64,
    /// Their lengths, images included.
    pub total_bytes: u64,
    /// Stored images.
    pub fpi_bytes: u64,
    /// How many images.
    pub fpi_count: u64,
}

impl AddAssign for Tally {
    #[inline]
    fn add_assign(&mut self, other: Tally) {
        self.count += other.count;
        self.total_bytes += other.total_bytes;
        self.fpi_bytes += other.fpi_bytes;
        self.fpi_count += other.fpi_count;
    }
}

/// What of the records is wanted; times, images, checkpoints and the like always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wants {
    /// How many, how long, where. Without: times are those of stretches of 16 kB.
    pub records: bool,
    /// Which blocks they touch.
    pub blocks: bool,
    /// Notes every time stated, not one for each stretch of 16 kB, also where records are not wanted; images
    /// are left out then.
    pub each_time: bool,
}

/// Bytes of WAL whose times are noted together where records are not wanted. Such stretches begin and
/// end at multiples of it.
const GRAIN: u64 = 16 << 10;

/// The chunks of one run. Blocks name their file by its place in `files`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Batch {
    /// In WAL order.
    pub chunks: Vec<Chunk>,
    /// The files that their touches name.
    pub files: FileNumbers,
    /// Whether records mark redo points.
    pub marks_redo: bool,
    /// What became of transactions since the last event that says it.
    pub transactions: Option<Box<OpenTransactions>>,
}

/// A log that is being written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeferredLog {
    wants: Wants,
    /// Where the first counted record begins, where records are not wanted: no chunk may begin with it.
    first: Option<Lsn>,
    /// What the runs before this one have left.
    done: Vec<Batch>,
    #[serde(skip)]
    batch: Batch,
    #[serde(skip)]
    writer: ChunkWriter,
    #[serde(skip)]
    transactions: TransactionWatch,
}

impl DeferredLog {
    /// An empty one.
    pub fn new(wants: Wants) -> DeferredLog {
        DeferredLog { wants, ..DeferredLog::default() }
    }

    /// Takes note of a record that is counted.
    #[inline(always)]
    pub fn add(&mut self, record: &Record<'_>) {
        if !self.wants.each_time {
            self.transactions.note(record);
        }
        if self.wants.records {
            if !self.writer.repeat(record) {
                // A copy: the record itself then stays in registers.
                let record = *record;
                self.add_other(&record);
            }
            return;
        }
        self.first.get_or_insert(record.lsn);
        if event::may_matter(record) || (record.parts.fpi_count > 0 && !self.wants.each_time) {
            let record = *record;
            self.note_only(&record);
        }
    }

    /// A call of its own: the loop over records that repeat each other keeps its registers.
    #[inline(never)]
    fn add_other(&mut self, record: &Record<'_>) {
        if event::may_matter(record) {
            self.note(record, true);
        }
        if self.writer.is_full(record.lsn) {
            self.end_chunk();
        }
        self.writer.add(record);
        if self.wants.blocks {
            self.writer.touch_all(record, &mut self.batch.files)
        } else {
            self.writer.pass_blocks(record)
        }
    }

    /// Times, events and images alone.
    #[inline(never)]
    fn note_only(&mut self, record: &Record<'_>) {
        if event::may_matter(record) {
            self.note(record, true);
        }
        if record.parts.fpi_count > 0 && !self.wants.each_time {
            self.make_room_for_notes(record.lsn);
            self.writer.note_images(record);
        }
    }

    fn make_room(&mut self, lsn: Lsn) {
        if self.writer.is_full(lsn) || self.writer.has_all_notes() {
            self.end_chunk();
        }
    }

    /// The same between two grains only, or a run's beginning would show in where one is divided.
    fn make_room_for_notes(&mut self, lsn: Lsn) {
        if !self.writer.goes_on(lsn, GRAIN) {
            self.make_room(lsn);
        }
    }

    /// Takes note of a record that is not counted: the clock and the checkpoints are those of all.
    pub fn passed_over(&mut self, record: &Record<'_>) {
        if self.is_empty() {
            self.begin_chunk(PlacedEvent::new(record.lsn..record.end, Event::Begin));
        }
        if !self.wants.each_time {
            self.transactions.note(record);
        }
        if event::may_matter(record) {
            self.note(record, false);
        }
    }

    /// Takes note that records are missing in `range`.
    pub fn lost(&mut self, range: Range<Lsn>) {
        self.begin_chunk(PlacedEvent::new(range, Event::Lost));
    }

    /// Takes note that nothing was written in `range`.
    pub fn unused(&mut self, range: Range<Lsn>) {
        self.begin_chunk(PlacedEvent::new(range, Event::Unused));
    }

    fn note(&mut self, record: &Record<'_>, is_counted: bool) {
        // A run may have nothing but events.
        self.batch.marks_redo |= record.version.pacing.marks_redo;
        if let Some((time, is_commit)) = event::stated_time(record) {
            if self.wants.records || self.wants.each_time {
                self.make_room(record.lsn);
                self.writer.mark(record, time, is_commit, is_counted);
            } else {
                self.make_room_for_notes(record.lsn);
                self.writer.note_time(record, time, is_commit, is_counted, GRAIN);
            }
        } else if let Some(event) = Event::of(record) {
            let mut placed = PlacedEvent::new(record.lsn..record.end, event);
            if placed.event.ends_all_transactions() {
                placed.transactions = self.transactions.take();
            }
            self.begin_chunk(placed);
        }
    }

    /// Where the first counted record begins, where no chunk may say it.
    pub fn first(&self) -> Option<Lsn> {
        self.first
    }

    fn is_empty(&self) -> bool {
        self.done.is_empty() && self.batch.is_empty() && self.writer.is_empty()
    }

    fn begin_chunk(&mut self, event: PlacedEvent) {
        self.end_chunk();
        self.writer.event = Some(event);
    }

    fn end_chunk(&mut self) {
        if let Some(chunk) = self.writer.finish() {
            self.batch.marks_redo |= self.writer.marks_redo;
            self.batch.chunks.push(chunk);
        }
    }

    /// Adds the log of the run after this one.
    pub fn append(&mut self, mut later: DeferredLog) {
        self.end_batch();
        later.end_batch();
        self.first = self.first.or(later.first);
        self.done.append(&mut later.done);
    }

    fn end_batch(&mut self) {
        self.end_chunk();
        self.batch.transactions = self.transactions.take();
        if !self.batch.is_empty() {
            self.done.push(std::mem::take(&mut self.batch));
        }
    }

    /// Takes what was written so far away.
    pub fn take(&mut self) -> Vec<Batch> {
        self.end_batch();
        std::mem::take(&mut self.done)
    }

    /// Gives back memory that only writing needs.
    pub fn shrink(&mut self) {
        self.end_batch();
        self.writer = ChunkWriter::default();
    }
}
