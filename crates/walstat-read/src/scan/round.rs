//! A round over WAL of which most was read before: reads what is new or was changed, each segment by itself,
//! and has the result that reading all of it would have.

use super::alone::{Alone, Passed, segment_of};
use super::memory::Memory;
use super::observe::Observe;
use super::observer::Observer;
use super::outcome::Outcome;
use super::page_buffer::PageBuffer;
use super::partial::Partial;
use super::progress::Progress;
use super::read::read_passed;
use super::streamed::{self, Wanted};
use crate::input::discover::Found;
use crate::input::error::InputError;
use crate::input::known_files::KnownFile;
use crate::input::listed::look_into;
use crate::input::names::Standing;
use crate::input::piece::{Piece, geometry_of};
use crate::input::plan::{Plan, check_bounds};
use crate::input::stamp::{CLOCK_TICK, Stamp};
use crate::input::storage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_format::segment::SegmentName;

/// The share of what is known that is read again, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Recheck(pub f64);

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Round {
    /// Files that are as they were when they were read.
    pub known: usize,
    /// Files that are new or were changed.
    pub read: usize,
    /// Of those that are known, how many were read again.
    pub rechecked: usize,
    /// Bytes read of segments, uncompressed.
    pub read_bytes: u64,
}

/// What came of a round.
#[derive(Debug)]
pub struct RoundRead<O> {
    /// What was read.
    pub plan: Plan,
    /// What it says, with what was remembered.
    pub outcome: Outcome<O>,
    /// What the round did.
    pub round: Round,
}

/// What a round is about.
pub(crate) struct Reading<'a> {
    pub(crate) wanted: Wanted,
    pub(crate) threads: NonZeroUsize,
    pub(crate) progress: &'a Progress,
    pub(crate) memory: &'a Mutex<Memory>,
    pub(crate) recheck: Recheck,
}

/// A file that is to be read.
struct Task {
    piece: usize,
    path: String,
    file: KnownFile,
}

impl Reading<'_> {
    /// Reads what is new, and concludes as if all had been read.
    pub(crate) fn read<O: Observe + Serialize + DeserializeOwned>(
        self,
        mut found: Found,
        prototype: &O,
    ) -> Result<RoundRead<Observer>, InputError> {
        look_into(&mut found, &(Lsn(0)..Lsn::MAX));
        if let Some(geometry) = found.geometry() {
            check_bounds(&self.wanted.accepted_gaps, geometry.segment_bytes)?;
            self.memory().begin(&geometry)?;
        }
        let (tasks, mut round) = self.choose::<O>(&found);
        self.read_files(&found, &tasks, prototype);
        let files: BTreeSet<String> = found.pieces.iter().map(path_of).collect_set();
        let observer = Partial::observer(prototype);
        // Those in tars, too.
        let streamed = streamed::pass(&mut found, &self.wanted, self.progress, &observer).passed;
        round.read += streamed.len();
        let named = named(&found);
        let mut streamed = Some(streamed);
        let mut recall = |found: &Found| {
            let mut passed = streamed.take().unwrap_or_default();
            passed.extend(self.recall::<O>(found));
            passed
        };
        let Reading { wanted, threads, progress, .. } = &self;
        let (plan, mut outcome) =
            read_passed(found, &mut recall, wanted.clone(), *threads, progress, &observer)?;
        let mut memory = self.memory();
        memory.belongs_to(&plan.geometry)?;
        memory.retain(&files);
        let lost = memory.promise(&plan, &named, outcome.ending.lsn);
        let problems = outcome.holes.add_lost(&plan, &lost);
        outcome.add_problems(problems);
        round.read_bytes = self.progress.read_bytes();
        Ok(RoundRead { plan, outcome, round })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which files are read: those that are not known, and those that were not read for the longest time.
    fn choose<O: Observe + DeserializeOwned>(&self, found: &Found) -> (Vec<Task>, Round) {
        let memory = self.memory();
        let (mut tasks, mut known, mut others) = (Vec::new(), Vec::new(), 0);
        for (piece, looked_at) in found.pieces.iter().enumerate() {
            let path = path_of(looked_at);
            let Some(file) = KnownFile::of(&looked_at.probe) else {
                // Read each time: nothing tells which segment it is before all are known.
                others += usize::from(may_be_read(looked_at));
                continue;
            };
            let task = Task { piece, file, path };
            match memory.recall::<O>(&task.path, &task.file) {
                Some(_) => known.push((memory.round_of(&task.path, &task.file), task)),
                None => tasks.push(task),
            }
        }
        let share = (known.len() as f64 * self.recheck.0.clamp(0.0, 1.0)).ceil() as usize;
        let round = Round {
            known: known.len(),
            read: tasks.len() + others,
            rechecked: share,
            read_bytes: 0,
        };
        known
            .order_by(|(round, task), (other, next)| (round, &task.path).cmp(&(other, &next.path)));
        tasks.extend(known.into_iter().take(share).map(|(_, task)| task));
        (tasks, round)
    }

    /// Reads files, each by itself, and remembers them.
    fn read_files<O: Observe + Serialize>(&self, found: &Found, tasks: &[Task], prototype: &O) {
        // A file that is written to within one tick of the file system's clock looks the same after it.
        if tasks.iter().any(|task| task.file.stamp.is_younger_than(CLOCK_TICK)) {
            std::thread::sleep(CLOCK_TICK);
        }
        let next = AtomicUsize::new(0);
        let work = &|observer: Observer| {
            let mut window = PageBuffer::default();
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let passed = self.read_file(found, task, &observer, &mut window);
                let mut memory = self.memory();
                match passed {
                    Some(passed) => {
                        memory.remember::<O>(task.path.clone(), task.file.clone(), passed)
                    }
                    // It says nothing of the file, and ends the round.
                    None if self.is_lacking(found) => {}
                    None => memory.forget(&task.path),
                }
            }
        };
        std::thread::scope(|threads| {
            for _ in 1..self.threads.get().min(tasks.len()) {
                let observer = Partial::observer(prototype);
                let worker = std::thread::Builder::new();
                if worker.spawn_scoped(threads, move || work(observer)).is_err() {
                    // The system has no more: those that there are do the work.
                    break;
                }
            }
            work(Partial::observer(prototype));
        });
    }

    /// Whether the system, or the store, gives no more.
    fn is_lacking(&self, found: &Found) -> bool {
        self.progress.fail_if_lacking().is_err() || found.fail_if_given_up().is_err()
    }

    /// What a file gives; `None`: it could not be read to its end, or was changed meanwhile. Such a file is
    /// read with the others, and told of there.
    fn read_file(
        &self,
        found: &Found,
        task: &Task,
        observer: &Observer,
        window: &mut PageBuffer,
    ) -> Option<Passed> {
        let piece = found.pieces.get(task.piece)?;
        let geometry = geometry_of(piece.probe.first_page.as_ref().ok()?)?;
        let segment = segment_of(task.piece, piece, found.taken_for, &geometry)?;
        let scope = self.wanted.clone().scope(geometry);
        let alone = Alone { scope: &scope, progress: self.progress, prototype: observer };
        let mut bytes = piece.probe.source.open(0).ok()?.into_reader();
        let passed = alone.read(&segment, &mut bytes, window);
        let is_same =
            storage::metadata(piece.path()).is_ok_and(|now| Stamp::of(&now) == task.file.stamp);
        (is_same && passed.digest.whole).then_some(passed)
    }

    /// What is remembered of the files that were found.
    fn recall<O: Observe + DeserializeOwned>(&self, found: &Found) -> BTreeMap<usize, Passed> {
        let memory = self.memory();
        let recalled = found.pieces.iter().enumerate().filter_map(|(index, piece)| {
            let file = KnownFile::of(&piece.probe)?;
            Some((index, memory.recall::<O>(&path_of(piece), &file)?))
        });
        recalled.collect_map()
    }
}

/// The segments for which there are files, whatever is in them.
fn named(found: &Found) -> Vec<SegmentName> {
    let names = found.pieces.iter().filter_map(|piece| piece.name.as_ref());
    names.filter(|name| name.standing <= Standing::Unusual).map(|name| name.name).collect()
}

/// The path of a piece, as it is shown.
fn path_of(piece: &Piece) -> String {
    piece.path().to_string_lossy().into_owned()
}

/// Whether a file without a first page may be read all the same.
fn may_be_read(piece: &Piece) -> bool {
    let reason = piece.probe.first_page.as_ref().err();
    piece.probe.source.is_file() && reason.is_some_and(|reason| !reason.is_final())
}
