//! The simulator as a dimension of a scan: runs of segments keep their records as they are until
//! nothing earlier can come any more; then they go into the trace in the order of the WAL. The run with
//! which the scan begins need not keep any.

use super::condense::Condenser;
use super::whole::{Blocks, Whole};
use crate::scan::record::{Observe, Record};
use crate::wal::lsn::Lsn;
use crate::wal::version::Version;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    records: Vec<(Range<Lsn>, u32)>,
    version: Option<&'static Version>,
}

impl Kept {
    fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }
}

/// What all copies have in common.
struct Common<'m, S> {
    make: Box<dyn Fn() -> S + Send + Sync + 'm>,
    /// Memory of runs that are in the trace, for those that follow: so the system does not have to find
    /// and clear it each time.
    spare: Mutex<Vec<Kept>>,
}

/// Feeds a sink, which is made when it is known which run is the first.
pub struct Feed<'m, S> {
    common: Arc<Common<'m, S>>,
    sink: Option<S>,
    kept: Kept,
    blocks: Blocks,
    /// Where a record that lies on several pages is put together.
    room: Vec<u8>,
    /// After the last record.
    end: Option<Lsn>,
}

impl<S> Clone for Feed<'_, S> {
    /// A run's own: nothing of what was seen goes with it.
    fn clone(&self) -> Self {
        Feed::over(Arc::clone(&self.common))
    }
}

impl<'m, S> Feed<'m, S> {
    /// A prototype.
    pub fn new(make: impl Fn() -> S + Send + Sync + 'm) -> Feed<'m, S> {
        let spare = Mutex::new(Vec::new());
        Feed::over(Arc::new(Common { make: Box::new(make), spare }))
    }

    fn over(common: Arc<Common<'m, S>>) -> Feed<'m, S> {
        Feed {
            common,
            sink: None,
            kept: Kept::default(),
            blocks: Blocks::new(),
            room: Vec::new(),
            end: None,
        }
    }
}

fn spares<'c, S>(common: &'c Common<'_, S>) -> MutexGuard<'c, Vec<Kept>> {
    common.spare.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Sink> Feed<'_, S> {
    /// The sink with all that was seen, and the end of the last record.
    pub fn finish(mut self) -> (S, Option<Lsn>) {
        self.settle();
        let common = self.common;
        (self.sink.unwrap_or_else(|| (common.make)()), self.end)
    }

    fn drain(&mut self, mut kept: Kept) {
        let (Some(sink), Some(version)) = (self.sink.as_mut(), kept.version) else { return };
        let mut rest = kept.bytes.as_slice();
        for (place, bytes) in &kept.records {
            let Some((record, after)) = rest.split_at_checked(*bytes as usize) else { return };
            rest = after;
            if record.is_empty() {
                sink.gap();
                continue;
            }
            // The scan has walked over it before.
            let place = (place.start, place.end);
            if let Ok(whole) = Whole::parse(record, place, version, &mut self.blocks) {
                sink.push(&whole);
            }
        }
        kept.clear();
        spares(&self.common).push(kept);
    }
}

impl<S: Sink> Observe for Feed<'_, S> {
    const WHOLE: bool = true;
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        let length = record.header.total_bytes;
        let Some(bytes) = record.body.first_in(length as usize, &mut self.room) else { return };
        let place = (record.lsn, record.end.aligned());
        self.end = Some(place.1);
        if let Some(sink) = &mut self.sink {
            if let Ok(whole) = Whole::parse(bytes, place, record.version, &mut self.blocks) {
                sink.push(&whole);
            }
            return;
        }
        if self.kept.version.is_none() {
            let spare = spares(&self.common).pop();
            self.kept = spare.unwrap_or_default();
            self.kept.version = Some(record.version);
        }
        self.kept.bytes.extend_from_slice(bytes);
        self.kept.records.push((place.0..place.1, length));
    }

    fn lost(&mut self, range: Range<Lsn>) {
        match &mut self.sink {
            Some(sink) => sink.gap(),
            None => self.kept.records.push((range, 0)),
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
            self.sink = Some((self.common.make)());
            let kept = std::mem::take(&mut self.kept);
            self.drain(kept);
        }
    }
}
