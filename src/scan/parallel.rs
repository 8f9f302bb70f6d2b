//! Segments over threads: each thread reads runs of consecutive segments, and the results are
//! joined in WAL order, so they do not depend on the number of threads.

use super::pages::{Pages, Progress};
use super::reader::{Flow, Reader};
use super::record::{Observe, Select};
use super::run::Run;
use super::scope::Scope;
use super::stretch::Stretches;
use crate::input::plan::Segment;
use crate::wal::lsn::Lsn;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A run is about that long, so that a thread is done with many of them.
const RUN_BYTES: u64 = 64 << 20;

/// A run of which all records are kept until those before are joined is shorter: memory that was used
/// before is used again. The first one keeps none; where one thread reads, it may as well be long.
const KEPT_RUN_BYTES: u64 = 4 << 20;

/// So many runs for each thread may wait for an earlier one: memory stays flat whatever a slow run
/// does.
const AHEAD: usize = 2;

/// Runs of single segments that were read before, by segment number.
pub type Ready<O> = BTreeMap<u64, Run<O>>;

/// Reads all of `segments`, ascending by number, on up to `threads` threads, but for those that are
/// ready. One result per stretch of segments without a missing one between.
pub fn scan<S: Select + Clone, O: Observe>(
    segments: &[Segment],
    ready: Ready<O>,
    scope: &Scope<S>,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &O,
) -> Vec<Run<O>> {
    let run_bytes = if O::KEEPS { (u64::MAX, KEPT_RUN_BYTES) } else { (RUN_BYTES, RUN_BYTES) };
    let tasks = divide(segments, &ready, scope, threads.get(), run_bytes);
    let ready = Mutex::new(ready);
    if let Some(limit) = scope.limit {
        return scan_limited(segments, &tasks, &ready, scope, limit, progress, prototype);
    }
    let workers = threads.get().min(tasks.len());
    let joiner = Joiner::new(scope, tasks.len(), workers, prototype.clone());
    let work = &|prototype: O| {
        let _watch = Watch(&joiner);
        let mut pages = Pages::new(scope, progress);
        while let Some(index) = joiner.next() {
            let Some(task) = tasks.get(index) else { break };
            let run = task.take(&ready);
            let read = || {
                let mut observer = prototype.clone();
                if index == 0 {
                    // Nothing comes before it, so what it sees is final.
                    observer.settle();
                }
                read_run(segments, task, scope, &mut pages, observer)
            };
            let run = run.unwrap_or_else(read);
            joiner.add(index, task.begins_stretch, run);
        }
    };
    std::thread::scope(|threads| {
        for _ in 1..workers {
            let prototype = prototype.clone();
            let worker = std::thread::Builder::new();
            if worker.spawn_scoped(threads, move || work(prototype)).is_err() {
                // The system has no more: those that there are do the work.
                break;
            }
        }
        work(prototype.clone());
    });
    joiner.into_stretches()
}

/// Reads stretch after stretch, each as one run, until `limit` records were counted.
fn scan_limited<S: Select + Clone, O: Observe>(
    segments: &[Segment],
    tasks: &[Task],
    ready: &Mutex<Ready<O>>,
    scope: &Scope<S>,
    limit: u64,
    progress: &Progress,
    prototype: &O,
) -> Vec<Run<O>> {
    let mut joined = Stretches::new(prototype.clone());
    for task in tasks {
        let left = limit.saturating_sub(joined.counted());
        if left == 0 {
            break;
        }
        let part = Scope { limit: Some(left), ..scope.clone() };
        let mut pages = Pages::new(&part, progress);
        let read = || read_run(segments, task, &part, &mut pages, prototype.clone());
        let run = task.take(ready).unwrap_or_else(read);
        // A record that goes on into the run counts in the stretch before.
        let stretch = Scope { limit: Some(left + joined.counted_last()), ..scope.clone() };
        joined.push(run, task.begins_stretch, &stretch);
    }
    joined.into_runs()
}

/// A run of segments, as indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    segments: Range<usize>,
    /// No segment lies directly before.
    begins_stretch: bool,
    /// The number of the segment, if its run is ready.
    ready: Option<u64>,
}

impl Task {
    /// The run, if it is ready.
    fn take<O>(&self, ready: &Mutex<Ready<O>>) -> Option<Run<O>> {
        let number = self.ready?;
        ready.lock().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }
}

/// Divides the segments into runs of so many bytes; with a limit each stretch is one. What is ready is a run
/// of its own, and one thread may take a first one of another length.
fn divide<S, O>(
    segments: &[Segment],
    ready: &Ready<O>,
    scope: &Scope<S>,
    threads: usize,
    (first_bytes, run_bytes): (u64, u64),
) -> Vec<Task> {
    let segment_bytes = u64::from(scope.geometry.segment_bytes);
    let total = segments.len() as u64 * segment_bytes;
    let in_segments = |bytes: u64| {
        usize::try_from(bytes.max(segment_bytes) / segment_bytes).unwrap_or(usize::MAX)
    };
    let share = (total / (threads as u64 * 4)).min(run_bytes);
    let (first, others) = match threads {
        _ if scope.limit.is_some() => (u64::MAX, u64::MAX),
        1 => (first_bytes, run_bytes),
        _ => (share, share),
    };
    let (first, others) = (in_segments(first), in_segments(others));
    let mut tasks: Vec<Task> = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let follows = index.checked_sub(1).and_then(|before| segments.get(before));
        let begins_stretch = follows.is_none_or(|before| before.number + 1 != segment.number);
        let ready = ready.contains_key(&segment.number).then_some(segment.number);
        let joins = |task: &Task| ready.is_none() && task.ready.is_none() && !begins_stretch;
        let most = if tasks.len() > 1 { others } else { first };
        match tasks.last_mut() {
            Some(task) if joins(task) && task.segments.len() < most => {
                task.segments.end += 1;
            }
            _ => tasks.push(Task { segments: index..index + 1, begins_stretch, ready }),
        }
    }
    tasks
}

/// Hands out runs to be read, and joins them in the order of the WAL as they come in.
struct Joiner<'s, S, O> {
    scope: &'s Scope<S>,
    /// How many runs there are.
    tasks: usize,
    /// How many may be under way or waiting.
    ahead: usize,
    state: Mutex<State<O>>,
    /// The front has moved, or a thread is lost.
    moved: Condvar,
}

struct State<O> {
    /// The next run to be read.
    next: usize,
    /// So many runs are joined.
    front: usize,
    /// Runs that wait for an earlier one, and whether a stretch begins with them.
    waiting: BTreeMap<usize, (bool, Run<O>)>,
    /// What is joined; `None` while a thread is joining, outside of the lock.
    joined: Option<Stretches<O>>,
    /// A thread has panicked: what it was reading never comes.
    broken: bool,
}

impl<'s, S: Select, O: Observe> Joiner<'s, S, O> {
    fn new(scope: &'s Scope<S>, tasks: usize, workers: usize, prototype: O) -> Self {
        let joined = Some(Stretches::new(prototype));
        let state = State { next: 0, front: 0, waiting: BTreeMap::new(), joined, broken: false };
        let ahead = workers.saturating_mul(AHEAD).max(1);
        Joiner { scope, tasks, ahead, state: Mutex::new(state), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run to be read, as soon as it is not too far ahead; `None`: there is no more.
    fn next(&self) -> Option<usize> {
        let too_early =
            |state: &mut State<O>| !state.broken && state.next >= state.front + self.ahead;
        let waited = self.moved.wait_while(self.lock(), too_early);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.broken || state.next >= self.tasks {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// Takes a run; joins what is next, unless another thread is doing so.
    fn add(&self, index: usize, begins_stretch: bool, run: Run<O>) {
        let mut state = self.lock();
        state.waiting.insert(index, (begins_stretch, run));
        while let Some(mut joined) = state.joined.take() {
            let front = state.front;
            let Some((begins_stretch, run)) = state.waiting.remove(&front) else {
                state.joined = Some(joined);
                break;
            };
            drop(state);
            joined.push(run, begins_stretch, self.scope);
            state = self.lock();
            state.joined = Some(joined);
            state.front += 1;
            self.moved.notify_all();
        }
    }

    fn into_stretches(self) -> Vec<Run<O>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.joined.map(Stretches::into_runs).unwrap_or_default()
    }
}

/// Tells the other threads if this one panics: they would wait for its run for ever.
struct Watch<'j, 's, S: Select, O: Observe>(&'j Joiner<'s, S, O>);

impl<S: Select, O: Observe> Drop for Watch<'_, '_, S, O> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().broken = true;
            self.0.moved.notify_all();
        }
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
