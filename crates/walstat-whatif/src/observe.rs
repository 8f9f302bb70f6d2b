//! A dimension of a scan that gets the records in the order of the WAL: runs of segments keep theirs as they
//! are until nothing earlier can come any more; then they are handed to a taker. The run with which the scan
//! begins need not keep any. Takers are in `hand_over`.

use super::trace_builder::TraceBuilder;
use super::whole_record::{Blocks, WholeRecord};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_format::version::Version;
use walstat_read::scan::observe::Observe;

/// What is made of records in the order of the WAL.
pub(crate) trait Sink: Send {
    /// Takes the next record.
    fn push(&mut self, record: &WholeRecord<'_>);
    /// Records are missing here.
    fn gap(&mut self);
}

impl Sink for TraceBuilder {
    fn push(&mut self, record: &WholeRecord<'_>) {
        TraceBuilder::push(self, record);
    }

    fn gap(&mut self) {
        TraceBuilder::gap(self);
    }
}

/// What takes the records of a scan in the order of the WAL, where they are read.
pub(crate) trait Taker: Send + 'static {
    /// Takes the next record.
    fn take(&mut self, record: &Record<'_>);
    /// Takes note that records are missing.
    fn take_gap(&mut self, range: Range<Lsn>);
    /// Takes the next records, which were kept, and the memory that they are in.
    fn take_run(&mut self, run: RunRecords);
}

/// Records of a run, one after the other. One without bytes stands for those that are missing.
#[derive(Debug, Default)]
pub(crate) struct RunRecords {
    bytes: Vec<u8>,
    records: Vec<(Range<Lsn>, u32)>,
    version: Option<&'static Version>,
}

impl RunRecords {
    /// Adds a record.
    pub(crate) fn push(&mut self, record: &Record<'_>) {
        let length = record.header.total_bytes;
        if record.body.append_to(length as usize, &mut self.bytes) {
            self.version = Some(record.version);
            self.records.push((record.lsn..record.end.aligned(), length));
        }
    }

    /// Takes note that records are missing.
    pub(crate) fn push_gap(&mut self, range: Range<Lsn>) {
        self.records.push((range, 0));
    }

    fn append(&mut self, later: RunRecords) {
        self.version = self.version.or(later.version);
        self.bytes.extend_from_slice(&later.bytes);
        self.records.extend(later.records);
    }

    /// Bytes of all records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Hands all records to a sink, and forgets them.
    pub(crate) fn drain<S: Sink>(&mut self, sink: &mut S, blocks: &mut Blocks) {
        let mut rest = self.bytes.as_slice();
        for (place, bytes) in &self.records {
            let Some((record, after)) = rest.split_at_checked(*bytes as usize) else { break };
            rest = after;
            if record.is_empty() {
                sink.gap();
                continue;
            }
            // The scan has walked over it before.
            if let Some(version) = self.version
                && let Ok(whole) = WholeRecord::parse(record, place.clone(), version, blocks)
            {
                sink.push(&whole);
            }
        }
        self.bytes.clear();
        self.records.clear();
        self.version = None;
    }
}

/// Memory of records that were taken, for those that follow: so the system does not have to find and clear it
/// each time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<RunRecords>>>);

impl Spare {
    /// Some that is empty.
    pub(crate) fn get(&self) -> RunRecords {
        self.all().pop().unwrap_or_default()
    }

    /// Keeps what is empty.
    pub(crate) fn put(&self, kept: RunRecords) {
        self.all().push(kept);
    }

    fn all(&self) -> MutexGuard<'_, Vec<RunRecords>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much there is, bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.all().iter().map(|run| run.bytes.capacity()).sum()
    }
}

/// Hands records to a taker, which is made when it is known which run is the first.
pub(crate) struct InOrder<T> {
    make: Arc<dyn Fn() -> T + Send + Sync>,
    spare: Spare,
    /// Only what begins with the first record of the scan has one.
    taker: Option<T>,
    kept: RunRecords,
}

impl<T> Clone for InOrder<T> {
    /// A run's own: nothing of what was seen goes with it.
    fn clone(&self) -> Self {
        let (make, spare) = (Arc::clone(&self.make), self.spare.clone());
        InOrder { make, spare, taker: None, kept: RunRecords::default() }
    }
}

impl<T: Taker> InOrder<T> {
    /// A prototype.
    pub(crate) fn new(spare: Spare, make: impl Fn() -> T + Send + Sync + 'static) -> InOrder<T> {
        InOrder { make: Arc::new(make), spare, taker: None, kept: RunRecords::default() }
    }

    /// The taker, when all was seen.
    pub(crate) fn finish(mut self) -> T {
        self.settle();
        self.taker.unwrap_or_else(|| (self.make)())
    }
}

impl<T: Taker> Observe for InOrder<T> {
    const WHOLE: bool = true;
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        if let Some(taker) = &mut self.taker {
            return taker.take(record);
        }
        if self.kept.is_empty() {
            self.kept = self.spare.get();
        }
        self.kept.push(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        match &mut self.taker {
            Some(taker) => taker.take_gap(range),
            None => self.kept.push_gap(range),
        }
    }

    fn merge(&mut self, later: Self) {
        if later.taker.is_some() {
            // Nothing was seen before it.
            *self = later;
        } else if let Some(taker) = &mut self.taker {
            taker.take_run(later.kept);
        } else {
            self.kept.append(later.kept);
        }
    }

    fn settle(&mut self) {
        if self.taker.is_none() {
            let mut taker = (self.make)();
            taker.take_run(std::mem::take(&mut self.kept));
            self.taker = Some(taker);
        }
    }
}
