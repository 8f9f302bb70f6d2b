//! One pass over the trace under one setting: every decision of the server made anew, in the
//! simulated WAL's own positions.

use super::blocks::{BEFORE, FIRST, Ordinal};
use super::condense::{HOLE_HEADER_BYTES, IMAGE_HEADER_BYTES};
use super::position::{Geometry, padded};
use super::trace::{Entry, Mark, Ref, Trace, fact};
use crate::wal::lsn::Lsn;
use crate::wal::rmgr::RecordType;
use std::collections::BTreeMap;

/// Where checkpoints begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Checkpoints {
    /// At the same records as in the base.
    AsBase,
    /// Before these records; each completes at once.
    At(Vec<Ordinal>),
}

/// What is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Where checkpoints begin.
    pub checkpoints: Checkpoints,
    /// full_page_writes, if it is another than the base's.
    pub full_page_writes: Option<bool>,
    /// Whether changes of hint bits are logged, if it is another than in the base.
    pub hints: Option<bool>,
}

impl Scenario {
    /// The base's own settings.
    pub const BASE: Scenario =
        Scenario { checkpoints: Checkpoints::AsBase, full_page_writes: None, hints: None };
}

/// What the base was written with, and where it lies.
#[derive(Debug, Clone)]
pub struct Base {
    /// Sizes of pages and segments.
    pub geometry: Geometry,
    /// First byte of the range.
    pub start: Lsn,
    /// After its last byte.
    pub end: Lsn,
    /// full_page_writes.
    pub full_page_writes: bool,
    /// Whether changes of hint bits are logged.
    pub hints: bool,
    /// Redo points of the base with the ordinal of the first record after each.
    pub redo_points: Vec<(Lsn, Ordinal)>,
    /// Records that belong to an online checkpoint.
    pub of_checkpoints: Vec<Ordinal>,
    /// Bytes of a checkpoint's record.
    pub checkpoint_bytes: u32,
    /// Whether a redo point marks itself.
    pub marks_redo: bool,
}

/// Records of one type whose predicted length is not that of the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Records.
    pub records: u64,
    /// Predicted minus actual, bytes.
    pub bytes: i64,
    /// Images predicted minus actual.
    pub images: i64,
}

/// What comes out.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// LSN distance from start to end.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Images.
    pub images: u64,
    /// Their bytes as stored.
    pub image_bytes: u64,
    /// Bytes of the above that are estimates.
    pub estimated_bytes: u64,
    /// Bytes that no record explains.
    pub unknown_bytes: u64,
    /// Redo points in the base's positions.
    pub redo_points: Vec<Lsn>,
    /// The same in the simulated WAL's.
    pub simulated_redo_points: Vec<Lsn>,
    /// Where records differ from the base's.
    pub differences: BTreeMap<RecordType, Difference>,
}

struct Replay<'t> {
    trace: &'t Trace,
    base: &'t Base,
    hints: bool,
    full_page_writes: bool,
    redo: Ordinal,
    usable: u64,
    /// Where the next record begins in the base.
    base_usable: u64,
    outcome: Outcome,
}

/// Replays the trace.
pub fn replay(trace: &Trace, base: &Base, scenario: &Scenario) -> Outcome {
    let start = trace.ordinal_at(base.start);
    let before = base.redo_points.iter().filter(|(lsn, _)| *lsn <= base.start);
    let mut replay = Replay {
        trace,
        base,
        hints: scenario.hints.unwrap_or(base.hints),
        full_page_writes: scenario.full_page_writes.unwrap_or(base.full_page_writes),
        redo: before.map(|(_, ordinal)| *ordinal).max().unwrap_or(BEFORE),
        usable: base.geometry.usable(base.start),
        base_usable: base.geometry.usable(base.start),
        outcome: Outcome::default(),
    };
    let own = scenario.checkpoints == Checkpoints::AsBase;
    let planned: Vec<Ordinal> = match &scenario.checkpoints {
        Checkpoints::AsBase => base.redo_points.iter().map(|(_, ordinal)| *ordinal).collect(),
        Checkpoints::At(places) => places.clone(),
    };
    let mut planned = planned.into_iter().filter(|ordinal| *ordinal > start).peekable();
    let mut dropped = base.of_checkpoints.iter().copied().filter(|_| !own).peekable();
    let mut refs = trace.refs.as_slice();
    for (ordinal, entry) in (FIRST..).zip(&trace.entries) {
        let (own_refs, rest) = refs.split_at_checked(entry.refs.into()).unwrap_or_default();
        refs = rest;
        if entry.lsn < base.start {
            continue;
        }
        if entry.lsn >= base.end {
            break;
        }
        replay.follow(entry);
        while planned.next_if(|place| *place <= ordinal).is_some() {
            replay.begin_checkpoint(ordinal, entry.lsn, own);
        }
        while dropped.next_if(|place| *place < ordinal).is_some() {}
        if dropped.next_if_eq(&ordinal).is_some() {
            continue;
        }
        replay.record(ordinal, entry, own_refs);
    }
    replay.finish()
}

impl Replay<'_> {
    fn begin_checkpoint(&mut self, ordinal: Ordinal, lsn: Lsn, own: bool) {
        self.redo = ordinal;
        self.outcome.redo_points.push(lsn);
        self.outcome.simulated_redo_points.push(self.base.geometry.start(self.usable));
        if !own {
            if self.base.marks_redo {
                self.advance(CHECKPOINT_REDO_BYTES);
            }
            self.advance(RUNNING_XACTS_BYTES);
            self.advance(self.base.checkpoint_bytes);
        }
    }

    /// Leaves out what lies between the record before and this one in the base: what is damaged,
    /// missing, or was replaced.
    fn follow(&mut self, entry: &Entry) {
        let here = self.base.geometry.usable(entry.lsn);
        let gap = here.saturating_sub(self.base_usable);
        self.usable += gap;
        self.outcome.unknown_bytes += gap;
        self.base_usable = here + padded(u64::from(entry.bytes));
    }

    fn advance(&mut self, bytes: u32) {
        self.usable += padded(u64::from(bytes));
        self.outcome.records += 1;
    }

    fn record(&mut self, ordinal: Ordinal, entry: &Entry, refs: &[Ref]) {
        let mark = self.mark(ordinal, entry);
        if mark == Some(Mark::Hint) && !self.writes_hint(refs) {
            return self.differ(entry, 0, -(refs.iter().filter(|r| r.is(fact::BASE_IMAGE)).count() as i64));
        }
        let mut bytes = entry.fixed_bytes;
        let mut images = 0;
        for reference in refs {
            let image = self.takes_image(reference);
            let there = image || reference.is(fact::CHECK_IMAGE);
            if there {
                let header = match reference.is(fact::BASE_COMPRESSED | fact::HOLE) {
                    true => IMAGE_HEADER_BYTES + HOLE_HEADER_BYTES,
                    false => IMAGE_HEADER_BYTES,
                };
                let stored = match reference.is(fact::BASE_COMPRESSED) {
                    true => reference.stored_bytes,
                    false => reference.image_bytes,
                };
                bytes += header + u32::from(stored);
                self.outcome.images += 1;
                self.outcome.image_bytes += u64::from(stored);
                if reference.is(fact::IMAGE_ESTIMATED) {
                    self.outcome.estimated_bytes += u64::from(stored);
                }
            }
            if !image || reference.is(fact::KEEPS_DATA) {
                bytes += u32::from(reference.data_bytes);
                if reference.is(fact::DATA_ESTIMATED) {
                    self.outcome.estimated_bytes += u64::from(reference.data_bytes);
                }
            }
            let was = reference.is(fact::BASE_IMAGE) || reference.is(fact::CHECK_IMAGE);
            images += i64::from(there) - i64::from(was);
        }
        self.advance(bytes);
        self.differ(entry, bytes, images);
        if mark == Some(Mark::Switch) {
            self.usable = self.base.geometry.next_segment(self.usable);
            self.base_usable = self.base.geometry.next_segment(self.base_usable);
        }
    }

    fn differ(&mut self, entry: &Entry, bytes: u32, images: i64) {
        if bytes != entry.bytes || images != 0 {
            let row = self.outcome.differences.entry(entry.kind).or_default();
            row.records += 1;
            row.images += images;
            let as_padded = |bytes: u32| padded(u64::from(bytes)) as i64;
            row.bytes += as_padded(bytes) - as_padded(entry.bytes);
        }
    }

    fn mark(&self, ordinal: Ordinal, entry: &Entry) -> Option<Mark> {
        entry.marked.then_some(())?;
        let index = self.trace.marks.binary_search_by_key(&ordinal, |(at, _)| *at).ok()?;
        self.trace.marks.get(index).map(|(_, mark)| *mark)
    }

    fn is_stale(&self, reference: &Ref) -> bool {
        let stamped =
            if self.hints { reference.stamped } else { reference.stamped_without_hints };
        // Where no images were taken, a page without one tells nothing.
        stamped < self.redo || stamped == BEFORE && !self.base.full_page_writes
    }

    fn writes_hint(&self, refs: &[Ref]) -> bool {
        self.hints && refs.iter().all(|reference| self.is_stale(reference))
    }

    fn takes_image(&self, reference: &Ref) -> bool {
        let usual = self.full_page_writes && self.is_stale(reference);
        if reference.is(fact::USUAL) {
            usual
        } else if reference.is(fact::WITH_HINTS) {
            self.hints && usual
        } else if reference.is(fact::UNSAID) {
            usual || reference.is(fact::BASE_IMAGE)
        } else {
            reference.is(fact::ALWAYS)
        }
    }

    fn finish(mut self) -> Outcome {
        let end = self.base.geometry.start(self.usable);
        self.outcome.bytes = end.0.saturating_sub(self.base.start.0);
        self.outcome
    }
}

/// A redo point that marks itself.
const CHECKPOINT_REDO_BYTES: u32 = 24 + 2 + 4;
/// A snapshot without running transactions.
const RUNNING_XACTS_BYTES: u32 = 24 + 2 + 24;

impl Base {
    /// What the trace shows of how the base was written.
    pub fn of(
        trace: &Trace,
        geometry: Geometry,
        (start, end): (Lsn, Lsn),
        checkpoint_bytes: u32,
    ) -> Base {
        let mut base = Base {
            geometry,
            start,
            end,
            full_page_writes: true,
            hints: false,
            redo_points: Vec::new(),
            of_checkpoints: Vec::new(),
            checkpoint_bytes,
            marks_redo: false,
        };
        let (mut running, mut redo_mark) = (None, None);
        for (ordinal, mark) in &trace.marks {
            match mark {
                Mark::Checkpoint { redo, online, full_page_writes } => {
                    base.redo_points.push((*redo, trace.ordinal_at(*redo)));
                    base.full_page_writes = *full_page_writes;
                    if *online {
                        base.of_checkpoints.extend(redo_mark.take());
                        base.of_checkpoints.extend(running.take());
                        base.of_checkpoints.push(*ordinal);
                    }
                }
                Mark::Running => running = Some(*ordinal),
                Mark::Redo => {
                    redo_mark = Some(*ordinal);
                    base.marks_redo = true;
                }
                Mark::Hint => base.hints = true,
                _ => {}
            }
        }
        base.hints |= trace.refs.iter().any(|r| r.is(fact::WITH_HINTS | fact::BASE_IMAGE));
        base
    }
}
