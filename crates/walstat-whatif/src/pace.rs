//! When checkpoints of a simulated run begin and end: those of the base that no setting moves, and those
//! that the settings place.

mod as_in_base;
mod factor;
pub(crate) mod shown;
mod staying;
pub(crate) mod timed;

use super::base::Base;
use super::blocks::{NEVER, Ordinal};
use super::position::Geometry;
use super::settings::{Checkpoints, Settings};
use super::trace::Trace;
use staying::Staying;
use std::collections::VecDeque;
use timed::TimedPace;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

pub(crate) use staying::moved_records;

/// What happens before a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A checkpoint begins: a redo point.
    Begin(Begin),
    /// The one that runs is complete, and its record is written.
    Complete,
}

/// How a checkpoint begins, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It is one of the base's: its records are there.
    AsInBase,
    /// It is complete at once.
    AtOnce,
    /// It takes its time.
    Paced,
}

/// When checkpoints begin and end.
pub(crate) struct Pace<'b> {
    /// Those of the base that stay, ascending.
    staying: VecDeque<Staying>,
    rule: Rule<'b>,
}

/// When those begin that the settings place.
enum Rule<'b> {
    /// There are none but those of the base.
    AsBase,
    /// Before these records, ascending.
    At(VecDeque<Ordinal>),
    /// At the first commit after so many bytes.
    Bytes {
        /// How many.
        every: u64,
        /// The last redo point.
        last: Lsn,
        /// Whether there are as many.
        due: bool,
    },
    /// At the first commit after so many microseconds.
    Time {
        /// How many.
        every: i64,
        /// When the last one began.
        last: Option<Time>,
        /// Whether it is that late.
        due: Option<Time>,
    },
    /// As the server does it.
    Timed(Box<TimedPace<'b>>),
}

impl<'b> Rule<'b> {
    fn of(trace: &Trace, base: &'b Base, settings: &Settings, geometry: Geometry) -> Rule<'b> {
        let at = |places: Vec<Ordinal>| Rule::At(places.into());
        match &settings.checkpoints {
            Checkpoints::AsBase => Rule::AsBase,
            Checkpoints::Never => at(Vec::new()),
            Checkpoints::At(lsns) => {
                let mut places: Vec<_> = lsns.iter().map(|lsn| trace.ordinal_at(*lsn)).collect();
                places.retain(|&ordinal| ordinal >= base.first);
                places.sort_unstable();
                places.dedup();
                at(places)
            }
            Checkpoints::Factor(factor) => at(factor::places(trace, base, *factor)),
            Checkpoints::Bytes(every) => {
                let last = base.checkpoint_before().map_or(base.start, |before| before.redo);
                Rule::Bytes { every: *every, last, due: false }
            }
            Checkpoints::Time(every) => {
                let last = base.checkpoint_before().map(|before| before.time);
                Rule::Time { every: *every, last, due: None }
            }
            Checkpoints::Timed(timed) => {
                Rule::Timed(Box::new(TimedPace::new(base, *timed, geometry)))
            }
        }
    }

    fn next(&mut self, ordinal: Ordinal, usable: u64) -> Option<Event> {
        let at_once = Some(Event::Begin(Begin::AtOnce));
        match self {
            Rule::At(places) if is_reached(places, ordinal) => {
                places.pop_front();
                at_once
            }
            Rule::AsBase | Rule::At(_) => None,
            Rule::Bytes { due, .. } => at_once.filter(|_| std::mem::take(due)),
            Rule::Time { last, due, .. } => {
                *last = Some(due.take()?);
                at_once
            }
            Rule::Timed(timed) => timed.next(ordinal, usable),
        }
    }
}

/// Whether the first of those places is before a record.
fn is_reached(places: &VecDeque<Ordinal>, ordinal: Ordinal) -> bool {
    places.front().is_some_and(|place| *place <= ordinal)
}

impl<'b> Pace<'b> {
    /// The pace that the settings ask for.
    pub(crate) fn new(
        trace: &Trace,
        base: &'b Base,
        settings: &Settings,
        geometry: Geometry,
    ) -> Pace<'b> {
        Pace {
            staying: staying::of(base, &settings.checkpoints).into(),
            rule: Rule::of(trace, base, settings, geometry),
        }
    }

    /// Whether the base's own checkpoints stay, and there are no others.
    pub(crate) fn is_base(&self) -> bool {
        matches!(self.rule, Rule::AsBase)
    }

    /// Whether commits tell when a checkpoint begins.
    pub(crate) fn heeds_commits(&self) -> bool {
        !matches!(self.rule, Rule::AsBase | Rule::At(_))
    }

    /// What happens next before a record that would begin at `usable`.
    pub(crate) fn next(&mut self, ordinal: Ordinal, usable: u64) -> Option<Event> {
        let Some(staying) = self.staying.front().copied().filter(|stays| stays.first <= ordinal)
        else {
            return self.rule.next(ordinal, usable);
        };
        if let Rule::Timed(timed) = &mut self.rule
            && let Some(event) = timed.make_way(&staying)
        {
            return Some(event);
        }
        if let Rule::Time { last, .. } = &mut self.rule {
            *last = Some(staying.time);
        }
        self.staying.pop_front();
        Some(Event::Begin(Begin::AsInBase))
    }

    /// Up to which record, and to which position, nothing happens; until the next commit.
    pub(crate) fn quiet(&self) -> (Ordinal, u64) {
        let staying = self.staying.front().map_or(Ordinal::MAX, |staying| staying.first);
        match &self.rule {
            Rule::At(places) => {
                (places.front().map_or(staying, |place| staying.min(*place)), u64::MAX)
            }
            Rule::Bytes { due: true, .. } | Rule::Time { due: Some(_), .. } => (NEVER, 0),
            Rule::AsBase | Rule::Bytes { .. } | Rule::Time { .. } => (staying, u64::MAX),
            Rule::Timed(timed) => (staying.min(timed.next_as_in_base()), timed.quiet()),
        }
    }

    /// Whether something may happen before a record that begins at `usable` at most.
    pub(crate) fn is_due(&self, ordinal: Ordinal, usable: u64) -> bool {
        let stays = self.staying.front().is_some_and(|staying| staying.first <= ordinal);
        stays
            || match &self.rule {
                Rule::AsBase => false,
                Rule::At(places) => is_reached(places, ordinal),
                // Headers of pages make up less than the tolerance of two pages a segment.
                Rule::Bytes { every, last, due } => {
                    *due || usable + usable / 64 >= last.0.saturating_add(*every)
                }
                Rule::Time { due, .. } => due.is_some(),
                Rule::Timed(timed) => timed.is_due(ordinal, usable),
            }
    }

    /// A checkpoint began at `redo`, a position of the simulated WAL.
    pub(crate) fn began(&mut self, redo: Lsn) {
        match &mut self.rule {
            Rule::Bytes { last, .. } => *last = redo,
            Rule::Timed(timed) => timed.began(redo),
            _ => {}
        }
    }

    /// The record of a checkpoint of the base was written.
    pub(crate) fn base_completed(&mut self) {
        if let Rule::Timed(timed) = &mut self.rule {
            timed.base_completed();
        }
    }

    /// A commit was written, up to `end`.
    pub(crate) fn after_commit(&mut self, time: Time, end: Lsn) {
        match &mut self.rule {
            Rule::Bytes { every, last, due } => *due = end.0.saturating_sub(last.0) >= *every,
            Rule::Time { every, last, due } => {
                let since = last.get_or_insert(time);
                if time.0.saturating_sub(since.0) >= *every {
                    *due = Some(time);
                }
            }
            Rule::Timed(timed) => timed.after_commit(time, end),
            _ => {}
        }
    }
}
