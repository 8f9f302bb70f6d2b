//! Segments over threads: each thread reads runs of consecutive segments, and the results are
//! joined in WAL order, so they do not depend on the number of threads.

use super::alone::Counted;
use super::joined_runs::JoinedRuns;
use super::observe::Observe;
use super::observer::Observer;
use super::pages::Pages;
use super::progress::Progress;
use super::reader::{Flow, Reader};
use super::run::Run;
use super::scope::Scope;
use crate::input::segment::Segment;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use walstat_format::lsn::Lsn;

/// A run is about that long, so that a thread is done with many of them.
const RUN_BYTES: u64 = 64 << 20;

/// A run is shorter where much is kept of it until the runs before it are joined, so that the same memory is
/// used again.
const KEPT_RUN_BYTES: u64 = 4 << 20;

/// So many runs for each thread may be under way or waiting for an earlier one: however long that one
/// takes, memory stays flat.
const AHEAD: usize = 2;

/// Runs of single segments that were read before, by segment number; with what was counted in them, where
/// that is not in the run.
pub(super) type Ready = BTreeMap<u64, (Run, Option<Counted>)>;

/// Reads all of `segments`, ascending by number, on up to `threads` threads; those in `ready` were read
/// before. Returns one run for each series of segments in which none is missing.
pub(super) fn scan(
    segments: &[Segment],
    ready: Ready,
    scope: &Scope,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &Observer,
) -> Vec<Run> {
    let run_bytes = if prototype.keeps() { KEPT_RUN_BYTES } else { RUN_BYTES };
    let tasks = divide(segments, &ready, scope, threads.get(), run_bytes);
    let ready = Mutex::new(ready);
    if let Some(limit) = scope.limit {
        return scan_limited(segments, &tasks, &ready, scope, limit, progress, prototype);
    }
    let mut prototype = prototype.clone();
    prototype.share();
    let workers = threads.get().min(tasks.len());
    let joiner = Joiner::new(scope, tasks.len(), workers, prototype.clone());
    let work = &|prototype: Observer| {
        let _guard = PanicGuard(&joiner);
        let mut pages = Pages::new(scope, progress);
        while let Some(index) = joiner.next() {
            let Some(task) = tasks.get(index) else { break };
            let run = task.take(&ready);
            let observer = || {
                let mut observer = prototype.clone();
                if index == 0 {
                    // Nothing comes before it, so what it sees is final.
                    observer.settle();
                }
                observer
            };
            let is_first = index == 0;
            let read = || read_run(segments, task, scope, &mut pages, is_first, observer);
            let run = run.unwrap_or_else(read);
            joiner.add(index, task.after_hole, run);
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
    joiner.into_runs()
}

/// Reads one series of segments after the other, each as one run, until `limit` records were counted.
fn scan_limited(
    segments: &[Segment],
    tasks: &[Task],
    ready: &Mutex<Ready>,
    scope: &Scope,
    limit: u64,
    progress: &Progress,
    prototype: &Observer,
) -> Vec<Run> {
    let mut joined = JoinedRuns::new(prototype.clone());
    for task in tasks {
        let left = limit.saturating_sub(joined.counted());
        if left == 0 {
            break;
        }
        let part = Scope { limit: Some(left), ..scope.clone() };
        let mut pages = Pages::new(&part, progress);
        let read = || read_run(segments, task, &part, &mut pages, false, || prototype.clone());
        let run = task.take(ready).unwrap_or_else(read);
        // A record that goes on into this run is counted in the one before.
        let joining = Scope { limit: Some(left + joined.counted_last()), ..scope.clone() };
        joined.push(run, task.after_hole, &joining);
    }
    joined.into_runs()
}

/// A run of segments, as indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    segments: Range<usize>,
    /// The segment before it is missing.
    after_hole: bool,
    /// The number of the segment, if its run is ready.
    ready: Option<u64>,
}

impl Task {
    /// The run, if it is ready and can be unpacked.
    fn take(&self, ready: &Mutex<Ready>) -> Option<Run> {
        let number = self.ready?;
        let taken = ready.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        match taken? {
            (run, None) => Some(run),
            (run, Some(counted)) => Some(Run { observer: counted.into_observer()?, ..run }),
        }
    }
}

/// Divides the segments into runs of up to `run_bytes`, but for the first where one thread reads; with a
/// limit, each series of segments without a hole is one. A segment that was read before is a run of its own.
fn divide(
    segments: &[Segment],
    ready: &Ready,
    scope: &Scope,
    threads: usize,
    run_bytes: u64,
) -> Vec<Task> {
    let segment_bytes = u64::from(scope.geometry.segment_bytes);
    let total = segments.len() as u64 * segment_bytes;
    let in_segments = |bytes: u64| {
        usize::try_from(bytes.max(segment_bytes) / segment_bytes).unwrap_or(usize::MAX)
    };
    let share = (total / (threads as u64).saturating_mul(4)).min(run_bytes);
    let (first, others) = match threads {
        _ if scope.limit.is_some() => (u64::MAX, u64::MAX),
        // What the first run sees is final at once, so that nothing is counted apart and merged.
        1 => (u64::MAX, run_bytes),
        _ => (share, share),
    };
    let (first, others) = (in_segments(first), in_segments(others));
    let mut tasks: Vec<Task> = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let follows = index.checked_sub(1).and_then(|before| segments.get(before));
        let after_hole = follows.is_none_or(|before| before.number + 1 != segment.number);
        let ready = ready.contains_key(&segment.number).then_some(segment.number);
        let joins = |task: &Task| ready.is_none() && task.ready.is_none() && !after_hole;
        let most = if tasks.len() > 1 { others } else { first };
        match tasks.last_mut() {
            Some(task) if joins(task) && task.segments.len() < most => {
                task.segments.end += 1;
            }
            _ => tasks.push(Task { segments: index..index + 1, after_hole, ready }),
        }
    }
    tasks
}

/// Hands out runs to be read, and joins them in the order of the WAL as they come in.
struct Joiner<'s> {
    scope: &'s Scope,
    /// How many runs there are.
    tasks: usize,
    /// How many may be under way or waiting.
    ahead: usize,
    state: Mutex<State>,
    /// The front has moved, or a thread is lost.
    moved: Condvar,
}

struct State {
    /// The next run to be read.
    next: usize,
    /// So many runs are joined.
    front: usize,
    /// Runs that wait for an earlier one, and whether segments are missing before them.
    waiting: BTreeMap<usize, (bool, Run)>,
    /// What is joined; `None` while a thread is joining, outside of the lock.
    joined: Option<JoinedRuns>,
    /// A thread has panicked: what it was reading never comes.
    broken: bool,
}

impl<'s> Joiner<'s> {
    fn new(scope: &'s Scope, tasks: usize, workers: usize, prototype: Observer) -> Self {
        let joined = Some(JoinedRuns::new(prototype));
        let state = State { next: 0, front: 0, waiting: BTreeMap::new(), joined, broken: false };
        let ahead = workers.saturating_mul(AHEAD).max(1);
        Joiner { scope, tasks, ahead, state: Mutex::new(state), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run to be read, as soon as it is not too far ahead; `None`: there is no more.
    fn next(&self) -> Option<usize> {
        let too_early = |state: &mut State| !state.broken && state.next >= state.front + self.ahead;
        let waited = self.moved.wait_while(self.lock(), too_early);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.broken || state.next >= self.tasks {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// Takes a run; joins what is next, unless another thread is doing so.
    fn add(&self, index: usize, after_hole: bool, run: Run) {
        let mut state = self.lock();
        state.waiting.insert(index, (after_hole, run));
        while let Some(mut joined) = state.joined.take() {
            let front = state.front;
            let Some((after_hole, run)) = state.waiting.remove(&front) else {
                state.joined = Some(joined);
                break;
            };
            drop(state);
            joined.push(run, after_hole, self.scope);
            state = self.lock();
            state.joined = Some(joined);
            state.front += 1;
            self.moved.notify_all();
        }
    }

    fn into_runs(self) -> Vec<Run> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.joined.map(JoinedRuns::into_runs).unwrap_or_default()
    }
}

/// Tells the other threads if this one panics: they would wait for its run for ever.
struct PanicGuard<'j, 's>(&'j Joiner<'s>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().broken = true;
            self.0.moved.notify_all();
        }
    }
}

/// Reads one run, counted by what `observer` makes: again from the start where a mapped file is lost.
/// `is_first`: nothing comes before it, so that it hands on what is final as often as if it were several.
fn read_run(
    segments: &[Segment],
    task: &Task,
    scope: &Scope,
    pages: &mut Pages<'_>,
    is_first: bool,
    observer: impl Fn() -> Observer,
) -> Run {
    let segments = segments.get(task.segments.clone()).unwrap_or_default();
    let segment_bytes = u64::from(scope.geometry.segment_bytes);
    let start = Lsn(segments.first().map_or(0, |s| s.number * segment_bytes));
    let end = Lsn(start.0 + segments.len() as u64 * segment_bytes);
    pages.announce(segments);
    loop {
        let mut reader = Reader::new(scope, start, end, observer());
        let mut unsettled = 0;
        for segment in segments {
            if pages.push_segment(segment, &mut reader) == Flow::Done {
                break;
            }
            unsettled += segment_bytes;
            if is_first && unsettled >= RUN_BYTES {
                reader.settle();
                unsettled = 0;
            }
        }
        if !pages.are_lost() {
            return reader.finish();
        }
    }
}
