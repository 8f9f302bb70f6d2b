//! When checkpoints of a simulated run begin and end.

mod factor;
pub mod timed;

use super::base::Base;
use super::blocks::{NEVER, Ordinal};
use super::position::Geometry;
use super::settings::{Checkpoints, Settings};
use super::trace::Trace;
use timed::TimedPace;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// What happens before a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A checkpoint begins: a redo point.
    Begin {
        /// Whether it is complete at once.
        completes: bool,
    },
    /// The one that runs is complete.
    Complete,
}

/// When checkpoints begin and end.
pub enum Pace {
    /// Where the base's own began; their records stay.
    Base(Places),
    /// Before these records.
    At(Places),
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
    Timed(TimedPace),
}

/// Ordinals, ascending.
pub type Places = std::iter::Peekable<std::vec::IntoIter<Ordinal>>;

impl Pace {
    /// The pace that the settings ask for.
    pub fn new(trace: &Trace, base: &Base, settings: &Settings, geometry: Geometry) -> Pace {
        let at = |places: Vec<Ordinal>| Pace::At(places.into_iter().peekable());
        match &settings.checkpoints {
            Checkpoints::AsBase => {
                let places: Vec<_> = base.own_checkpoints().map(|c| c.first).collect();
                Pace::Base(places.into_iter().peekable())
            }
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
                Pace::Bytes { every: *every, last, due: false }
            }
            Checkpoints::Time(every) => {
                let last = base.checkpoint_before().map(|before| before.time);
                Pace::Time { every: *every, last, due: None }
            }
            Checkpoints::Timed(timed) => Pace::Timed(TimedPace::new(base, *timed, geometry)),
        }
    }

    /// Whether the base's own checkpoints stay.
    pub fn is_base(&self) -> bool {
        matches!(self, Pace::Base(_))
    }

    /// Whether commits tell when a checkpoint begins.
    pub fn heeds_commits(&self) -> bool {
        !matches!(self, Pace::Base(_) | Pace::At(_))
    }

    /// What happens next before a record that would begin at `usable`.
    pub fn next(&mut self, ordinal: Ordinal, usable: u64) -> Option<Event> {
        match self {
            Pace::Base(places) => {
                places.next_if(|place| *place <= ordinal)?;
                Some(Event::Begin { completes: false })
            }
            Pace::At(places) => {
                places.next_if(|place| *place <= ordinal)?;
                Some(Event::Begin { completes: true })
            }
            Pace::Bytes { due, .. } => {
                std::mem::take(due).then_some(Event::Begin { completes: true })
            }
            Pace::Time { last, due, .. } => {
                *last = Some(due.take()?);
                Some(Event::Begin { completes: true })
            }
            Pace::Timed(timed) => timed.next(usable),
        }
    }

    /// Up to which record, and to which position, nothing happens; until the next commit.
    pub fn quiet(&self) -> (Ordinal, u64) {
        match self {
            Pace::Base(places) | Pace::At(places) => {
                (places.clone().next().unwrap_or(Ordinal::MAX), u64::MAX)
            }
            Pace::Bytes { due: true, .. } | Pace::Time { due: Some(_), .. } => (NEVER, 0),
            Pace::Bytes { .. } | Pace::Time { .. } => (Ordinal::MAX, u64::MAX),
            Pace::Timed(timed) => (Ordinal::MAX, timed.quiet()),
        }
    }

    /// Whether something may happen before a record that begins at `usable` at most.
    pub fn is_due(&self, ordinal: Ordinal, usable: u64) -> bool {
        let is_reached =
            |places: &Places| places.clone().next().is_some_and(|place| place <= ordinal);
        match self {
            Pace::Base(places) | Pace::At(places) => is_reached(places),
            // Headers of pages make up less than the tolerance of two pages a segment.
            Pace::Bytes { every, last, due } => *due || usable + usable / 64 >= last.0 + every,
            Pace::Time { due, .. } => due.is_some(),
            Pace::Timed(timed) => timed.is_due(usable),
        }
    }

    /// A checkpoint began at `redo`, a position of the simulated WAL.
    pub fn began(&mut self, redo: Lsn) {
        match self {
            Pace::Bytes { last, .. } => *last = redo,
            Pace::Timed(timed) => timed.began(redo),
            _ => {}
        }
    }

    /// A commit was written, up to `end`.
    pub fn after_commit(&mut self, time: Time, end: Lsn) {
        match self {
            Pace::Bytes { every, last, due } => *due = end.0.saturating_sub(last.0) >= *every,
            Pace::Time { every, last, due } => {
                let since = last.get_or_insert(time);
                if time.0.saturating_sub(since.0) >= *every {
                    *due = Some(time);
                }
            }
            Pace::Timed(timed) => timed.after_commit(time, end),
            _ => {}
        }
    }
}
