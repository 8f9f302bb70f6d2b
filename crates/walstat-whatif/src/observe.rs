//! The simulator as a dimension of a scan: runs of segments keep their records as they are until
//! nothing earlier can come any more; then they go into the trace in the order of the WAL. The run with
//! which the scan begins need not keep any.

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

    /// Adds what comes after it.
    pub(crate) fn append(&mut self, later: RunRecords) {
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

    fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.version = None;
    }
}

/// Hands the records of a run to a sink, and forgets them.
pub(crate) fn drain<S: Sink>(kept: &mut RunRecords, sink: &mut S, blocks: &mut Blocks) {
    let mut rest = kept.bytes.as_slice();
    for (place, bytes) in &kept.records {
        let Some((record, after)) = rest.split_at_checked(*bytes as usize) else { break };
        rest = after;
        if record.is_empty() {
            sink.gap();
            continue;
        }
        // The scan has walked over it before.
        if let Some(version) = kept.version
            && let Ok(whole) = WholeRecord::parse(record, place.clone(), version, blocks)
        {
            sink.push(&whole);
        }
    }
    kept.clear();
}

/// What all copies have in common.
struct Common<S> {
    make: Box<dyn Fn() -> S + Send + Sync>,
    /// Memory of runs that are in the trace, for those that follow: so the system does not have to find
    /// and clear it each time.
    spare: Mutex<Vec<RunRecords>>,
}

/// Feeds a sink, which is made when it is known which run is the first.
pub(crate) struct Feed<S> {
    common: Arc<Common<S>>,
    sink: Option<S>,
    kept: RunRecords,
    blocks: Blocks,
    /// Where a record that lies on several pages is put together.
    room: Vec<u8>,
}

impl<S> Clone for Feed<S> {
    /// A run's own: nothing of what was seen goes with it.
    fn clone(&self) -> Self {
        Feed::over(Arc::clone(&self.common))
    }
}

impl<S> Feed<S> {
    /// A prototype.
    pub(crate) fn new(make: impl Fn() -> S + Send + Sync + 'static) -> Feed<S> {
        let spare = Mutex::new(Vec::new());
        Feed::over(Arc::new(Common { make: Box::new(make), spare }))
    }

    fn over(common: Arc<Common<S>>) -> Feed<S> {
        Feed {
            common,
            sink: None,
            kept: RunRecords::default(),
            blocks: Blocks::new(),
            room: Vec::new(),
        }
    }
}

fn spares<S>(common: &Common<S>) -> MutexGuard<'_, Vec<RunRecords>> {
    common.spare.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Sink + 'static> Feed<S> {
    /// The sink with all that was seen.
    pub(crate) fn finish(mut self) -> S {
        self.settle();
        let common = self.common;
        self.sink.unwrap_or_else(|| (common.make)())
    }

    fn drain(&mut self, mut kept: RunRecords) {
        let Some(sink) = self.sink.as_mut() else { return };
        drain(&mut kept, sink, &mut self.blocks);
        spares(&self.common).push(kept);
    }
}

impl<S: Sink + 'static> Observe for Feed<S> {
    const WHOLE: bool = true;
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        let Some(sink) = &mut self.sink else {
            if self.kept.is_empty() {
                self.kept = spares(&self.common).pop().unwrap_or_default();
            }
            self.kept.push(record);
            return;
        };
        let length = record.header.total_bytes as usize;
        let Some(bytes) = record.body.first_in(length, &mut self.room) else { return };
        sink.push(&WholeRecord::of(record, bytes, &mut self.blocks));
    }

    fn lost(&mut self, range: Range<Lsn>) {
        match &mut self.sink {
            Some(sink) => sink.gap(),
            None => self.kept.push_gap(range),
        }
    }

    fn merge(&mut self, later: Self) {
        if later.sink.is_some() {
            // Only what begins with the first record has one: nothing was seen before it.
            (self.sink, self.kept) = (later.sink, later.kept);
            return;
        }
        if self.sink.is_some() {
            return self.drain(later.kept);
        }
        self.kept.append(later.kept);
    }

    fn settle(&mut self) {
        if self.sink.is_none() {
            self.sink = Some((self.common.make)());
            let kept = std::mem::take(&mut self.kept);
            self.drain(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;
    use walstat_read::Scan;

    const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pg15-mixed");

    struct Counting(usize);

    impl Sink for Counting {
        fn push(&mut self, _: &WholeRecord<'_>) {
            self.0 += 1;
        }

        fn gap(&mut self) {}
    }

    #[test]
    fn what_one_thread_reads_is_handed_on_at_once_and_not_kept() {
        let feed = Feed::new(|| Counting(0));
        let scan = Scan { threads: NonZeroUsize::MIN, ..Scan::paths([FIXTURE]) };
        let (_, outcome) = scan.count(&feed).expect("WAL");
        let kept = |runs: &[RunRecords]| runs.iter().map(|run| run.bytes.capacity()).sum::<usize>();
        assert_eq!(kept(&spares(&feed.common)), 0);
        assert_eq!(outcome.observer.finish().0, 72_170);
    }
}
