//! Why segments of the base were closed early: by archive_timeout, which closes others under other settings,
//! or because somebody asked for it (`pg_switch_wal()`, a base backup, a shutdown), which stays. What
//! archive_timeout is, `archive_timeout.rs` of walstat-analyse says.

use super::Base;
use crate::blocks::Ordinal;
use crate::trace::{RecordEffect, Trace};
use std::ops::Range;
use walstat_analyse::archive_timeout::{Closed, OtherReasons, Seen, by_clock, timeout};
use walstat_format::lsn::Lsn;

/// The switches of a base.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    /// archive_timeout, microseconds, if they show it or it is known.
    pub timeout: Option<i64>,
    /// Whether the settings of the server say what it is.
    pub is_set: bool,
    all: Vec<(Ordinal, Closed)>,
    /// Of each whether archive_timeout made it; `None`: that is not known.
    by_clock: Vec<Option<bool>>,
    /// Of each whether it lies elsewhere among the records of others each time: a backup made it, beside
    /// which they went on to write.
    moves: Vec<bool>,
}

impl Switches {
    /// Those of the range.
    pub(crate) fn of(trace: &Trace, base: &Base) -> Switches {
        let (ordinals, seen): (Vec<Ordinal>, Vec<Seen>) = seen(trace, base).into_iter().unzip();
        let lsn_of = |ordinal: Ordinal| trace.entry_of(ordinal).map(|entry| entry.lsn);
        let moving = of_backups(base.backups_beside_work.iter(), lsn_of);
        let bytes = base.geometry.segment;
        let moves = seen.iter().map(|seen| moving.explain(seen.segment, bytes)).collect();
        let all = ordinals.into_iter().zip(Closed::all(seen)).collect();
        Switches { all, moves, ..Switches::default() }.of_server(None)
    }

    /// Those of a server with this archive_timeout in seconds, if it is known.
    pub(crate) fn of_server(mut self, set: Option<u64>) -> Switches {
        let closed: Vec<Closed> = self.all.iter().map(|(_, closed)| *closed).collect();
        self.timeout = timeout(&closed, set);
        self.is_set = set.is_some();
        self.by_clock = by_clock(&closed, self.timeout, self.is_set);
        self
    }

    /// Whether there is none.
    pub(crate) fn is_none(&self) -> bool {
        self.all.is_empty()
    }

    /// How many there are that archive_timeout may have made.
    pub(crate) fn unexplained(&self) -> usize {
        self.by_clock.iter().filter(|told| **told != Some(false)).count()
    }

    /// Whether somebody asked for this one, for certain.
    pub(crate) fn is_asked(&self, ordinal: Ordinal) -> bool {
        self.is_by_clock(ordinal) == Some(Some(false))
    }

    /// Whether it is not known why this one was made.
    pub(crate) fn is_unknown(&self, ordinal: Ordinal) -> bool {
        self.is_by_clock(ordinal) == Some(None)
    }

    /// Whether it lies elsewhere each time.
    pub(crate) fn moves(&self, ordinal: Ordinal) -> bool {
        self.place(ordinal).and_then(|place| self.moves.get(place)) == Some(&true)
    }

    fn is_by_clock(&self, ordinal: Ordinal) -> Option<Option<bool>> {
        self.by_clock.get(self.place(ordinal)?).copied()
    }

    fn place(&self, ordinal: Ordinal) -> Option<usize> {
        self.all.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal).ok()
    }
}

fn seen(trace: &Trace, base: &Base) -> Vec<(Ordinal, Seen)> {
    let bytes = base.geometry.segment;
    let time_before = |ordinal| trace.commit_before(ordinal).map(|commit| commit.time.0);
    let time_from = |ordinal| trace.commit_from(ordinal).map(|commit| commit.time.0);
    let lsn_of = |ordinal: Ordinal| trace.entry_of(ordinal).map(|entry| entry.lsn);
    let others = others(base, lsn_of);
    let switches = trace.effects.iter().filter(|(_, effect)| *effect == RecordEffect::Switch);
    let own = switches.filter(|(ordinal, _)| base.contains(*ordinal));
    let one = |(ordinal, _): &(Ordinal, RecordEffect)| {
        let segment = lsn_of(*ordinal)?.0 / bytes;
        let first = trace.ordinal_at(Lsn(segment * bytes));
        let seen = Seen {
            segment,
            opened: time_from(first).map(|time| (time_before(first), time)),
            closed: time_before(*ordinal).map(|before| (before, time_from(*ordinal))),
            is_explained: others.explain(segment, bytes),
        };
        Some((*ordinal, seen))
    };
    own.filter_map(one).collect()
}

/// Why backups closed segments.
fn of_backups<'b>(
    backups: impl Iterator<Item = &'b Range<Ordinal>>,
    lsn_of: impl Fn(Ordinal) -> Option<Lsn>,
) -> OtherReasons {
    let mut reasons = OtherReasons::default();
    for backup in backups {
        lsn_of(backup.start).into_iter().for_each(|place| reasons.begins_segment(place));
        lsn_of(backup.end).into_iter().for_each(|place| reasons.ends_segment(place));
    }
    reasons
}

/// Why others closed segments.
fn others(base: &Base, lsn_of: impl Fn(Ordinal) -> Option<Lsn>) -> OtherReasons {
    let mut others = of_backups(base.backups.iter(), lsn_of);
    for stopped in base.checkpoints.iter().filter(|own| !own.online) {
        others.begins_segment(stopped.redo);
    }
    others
}
