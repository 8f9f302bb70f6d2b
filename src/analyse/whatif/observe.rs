//! The simulator as a dimension of a scan: runs of segments keep their records as they are until
//! nothing earlier can come any more; then they go into the trace in the order of the WAL.

use super::condense::Condenser;
use super::whole::{Blocks, Whole};
use crate::scan::record::{Observe, Record};
use crate::wal::lsn::Lsn;
use crate::wal::version::Version;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// What is made of records in the order of the WAL.
pub trait Sink: Send {
    /// Takes the next record.
    fn push(&mut self, record: &Whole<'_>);
    /// Records are missing here.
    fn gap(&mut self);
}

impl Sink for Condenser {
    fn push(&mut self, record: &Whole<'_>) {
        Condenser::push(self, record);
    }

    fn gap(&mut self) {
        Condenser::gap(self);
    }
}

/// Records of a run, one after the other. One without bytes stands for those that are missing.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    records: Vec<(Lsn, u32)>,
    version: Option<&'static Version>,
}

/// Feeds a sink, which lies ready for the run that turns out to be the first.
pub struct Feed<S> {
    ready: Arc<Mutex<Option<S>>>,
    sink: Option<S>,
    kept: Kept,
    blocks: Blocks,
    /// After the last record.
    end: Option<Lsn>,
}

impl<S> Clone for Feed<S> {
    /// A run's own: nothing of what was seen goes with it.
    fn clone(&self) -> Feed<S> {
        Feed::over(Arc::clone(&self.ready))
    }
}

impl<S> Feed<S> {
    /// A prototype.
    pub fn new(sink: S) -> Feed<S> {
        Feed::over(Arc::new(Mutex::new(Some(sink))))
    }

    fn over(ready: Arc<Mutex<Option<S>>>) -> Feed<S> {
        Feed { ready, sink: None, kept: Kept::default(), blocks: Blocks::new(), end: None }
    }
}

impl<S: Sink> Feed<S> {
    /// The sink with all that was seen, and the end of the last record; `None` where another
    /// copy has it.
    pub fn finish(mut self) -> Option<(S, Option<Lsn>)> {
        self.settle();
        Some((self.sink?, self.end))
    }

    fn drain(&mut self, kept: Kept) {
        let (Some(sink), Some(version)) = (self.sink.as_mut(), kept.version) else { return };
        let mut rest = kept.bytes.as_slice();
        for (lsn, bytes) in kept.records {
            let Some((record, after)) = rest.split_at_checked(bytes as usize) else { return };
            rest = after;
            if record.is_empty() {
                sink.gap();
                continue;
            }
            // The scan has walked over it before.
            if let Ok(whole) = Whole::parse(record, lsn, version, &mut self.blocks) {
                sink.push(&whole);
            }
        }
    }
}

impl<S: Sink> Observe for Feed<S> {
    const WHOLE: bool = true;
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        let length = record.header.total_bytes;
        let Some(bytes) = record.body.get(0, length as usize) else { return };
        self.end = Some(record.end.aligned());
        if let Some(sink) = &mut self.sink {
            if let Ok(whole) = Whole::parse(&bytes, record.lsn, record.version, &mut self.blocks) {
                sink.push(&whole);
            }
            return;
        }
        self.kept.version = Some(record.version);
        self.kept.bytes.extend_from_slice(&bytes);
        self.kept.records.push((record.lsn, length));
    }

    fn lost(&mut self, range: Range<Lsn>) {
        match &mut self.sink {
            Some(sink) => sink.gap(),
            None => self.kept.records.push((range.start, 0)),
        }
    }

    fn merge(&mut self, later: Self) {
        self.end = later.end.or(self.end);
        if later.sink.is_some() {
            // Only what begins with the first record has one: nothing was seen before it.
            (self.sink, self.kept) = (later.sink, later.kept);
            return;
        }
        if self.sink.is_some() {
            return self.drain(later.kept);
        }
        self.kept.version = self.kept.version.or(later.kept.version);
        self.kept.bytes.extend_from_slice(&later.kept.bytes);
        self.kept.records.extend(later.kept.records);
    }

    fn settle(&mut self) {
        if self.sink.is_none() {
            self.sink = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
            let kept = std::mem::take(&mut self.kept);
            self.drain(kept);
        }
    }
}
