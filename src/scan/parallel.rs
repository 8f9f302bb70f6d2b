//! Segments over threads: each thread reads runs of consecutive segments, and the results are
//! joined in WAL order, so they do not depend on the number of threads.

use super::pages::{Pages, Progress};
use super::reader::{Flow, Reader};
use super::record::{Observe, Select};
use super::run::Run;
use super::scope::Scope;
use crate::input::plan::Segment;
use crate::wal::lsn::Lsn;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A run is about that long, so that a thread is done with many of them.
const RUN_BYTES: u64 = 64 << 20;

/// Reads all of `segments`, ascending by number, on up to `threads` threads. One result per
/// stretch of segments without a missing one between.
pub fn scan<S: Select + Clone, O: Observe>(
    segments: &[Segment],
    scope: &Scope<S>,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &O,
) -> Vec<Run<O>> {
    let runs = divide(segments, scope, threads.get());
    if let Some(limit) = scope.limit {
        return scan_limited(segments, &runs, scope, limit, progress, prototype);
    }
    let joiner = Joiner::new(scope);
    let next = AtomicUsize::new(0);
    let work = &|prototype: O| {
        let mut pages = Pages::new(scope, progress);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = runs.get(index) else { break };
            let run = read_run(segments, task, scope, &mut pages, prototype.clone());
            joiner.add(index, task.begins_stretch, run);
        }
    };
    let workers = threads.get().min(runs.len());
    std::thread::scope(|threads| {
        for _ in 1..workers {
            let prototype = prototype.clone();
            threads.spawn(move || work(prototype));
        }
        work(prototype.clone());
    });
    joiner.into_stretches()
}

/// Reads stretch after stretch, each as one run, until `limit` records were counted.
fn scan_limited<S: Select + Clone, O: Observe>(
    segments: &[Segment],
    stretches: &[Task],
    scope: &Scope<S>,
    limit: u64,
    progress: &Progress,
    prototype: &O,
) -> Vec<Run<O>> {
    let mut runs: Vec<Run<O>> = Vec::new();
    let mut left = limit;
    for task in stretches {
        let part = Scope { limit: Some(left), ..scope.clone() };
        let mut pages = Pages::new(&part, progress);
        let run = read_run(segments, task, &part, &mut pages, prototype.clone());
        left = left.saturating_sub(run.counted);
        runs.push(run);
        if left == 0 {
            break;
        }
    }
    runs
}

/// A run of segments, as indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    segments: Range<usize>,
    /// No segment lies directly before.
    begins_stretch: bool,
}

/// Divides the segments into runs; a single thread reads each stretch as one.
fn divide<S>(segments: &[Segment], scope: &Scope<S>, threads: usize) -> Vec<Task> {
    let segment_bytes = u64::from(scope.geometry.segment_bytes);
    let total = segments.len() as u64 * segment_bytes;
    let per_run = match threads {
        1 => u64::MAX,
        _ if scope.limit.is_some() => u64::MAX,
        _ => (total / (threads as u64 * 4)).min(RUN_BYTES).max(segment_bytes),
    };
    let per_run = usize::try_from(per_run / segment_bytes).unwrap_or(usize::MAX).max(1);
    let mut tasks: Vec<Task> = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let follows = index.checked_sub(1).and_then(|before| segments.get(before));
        let begins_stretch = follows.is_none_or(|before| before.number + 1 != segment.number);
        match tasks.last_mut() {
            Some(task) if !begins_stretch && task.segments.len() < per_run => {
                task.segments.end += 1;
            }
            _ => tasks.push(Task { segments: index..index + 1, begins_stretch }),
        }
    }
    tasks
}

/// Joins runs in the order of the WAL as they come in.
struct Joiner<'s, S, O> {
    scope: &'s Scope<S>,
    state: Mutex<Joined<O>>,
}

struct Joined<O> {
    next: usize,
    waiting: BTreeMap<usize, (bool, Run<O>)>,
    stretches: Vec<Run<O>>,
}

impl<'s, S: Select, O: Observe> Joiner<'s, S, O> {
    fn new(scope: &'s Scope<S>) -> Self {
        let state = Joined { next: 0, waiting: BTreeMap::new(), stretches: Vec::new() };
        Joiner { scope, state: Mutex::new(state) }
    }

    fn add(&self, index: usize, begins_stretch: bool, run: Run<O>) {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        state.waiting.insert(index, (begins_stretch, run));
        while let Some((begins_stretch, run)) = state.waiting.remove(&state.next) {
            state.next += 1;
            let before = if begins_stretch { None } else { state.stretches.pop() };
            state.stretches.push(match before {
                Some(before) => before.join(run, self.scope),
                None => run,
            });
        }
    }

    fn into_stretches(self) -> Vec<Run<O>> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).stretches
    }
}

/// Reads one run.
fn read_run<S: Select, O: Observe>(
    segments: &[Segment],
    task: &Task,
    scope: &Scope<S>,
    pages: &mut Pages<'_, S>,
    observer: O,
) -> Run<O> {
    let segments = segments.get(task.segments.clone()).unwrap_or_default();
    let segment_bytes = u64::from(scope.geometry.segment_bytes);
    let start = Lsn(segments.first().map_or(0, |s| s.number * segment_bytes));
    let end = Lsn(start.0 + segments.len() as u64 * segment_bytes);
    let mut reader = Reader::new(scope, start, end, observer);
    for segment in segments {
        if pages.push_segment(segment, &mut reader) == Flow::Done {
            break;
        }
    }
    reader.finish()
}
