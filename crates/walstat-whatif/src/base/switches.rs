//! Why segments of the base were closed early: by archive_timeout, which closes others under other settings,
//! or because somebody asked for it (`pg_switch_wal()`, a base backup, a shutdown), which stays. What
//! archive_timeout is, `archive_timeout.rs` of walstat-analyse says.

use super::Base;
use crate::blocks::Ordinal;
use crate::trace::{RecordEffect, Trace};
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
}

impl Switches {
    /// Those of the range.
    pub(crate) fn of(trace: &Trace, base: &Base) -> Switches {
        let (ordinals, seen): (Vec<Ordinal>, Vec<Seen>) = seen(trace, base).into_iter().unzip();
        let all = ordinals.into_iter().zip(Closed::all(seen)).collect();
        Switches { all, ..Switches::default() }.of_server(None)
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

    /// Whether somebody asked for this one, for certain.
    pub(crate) fn is_asked(&self, ordinal: Ordinal) -> bool {
        self.is_by_clock(ordinal) == Some(Some(false))
    }

    /// Whether it is not known why this one was made.
    pub(crate) fn is_unknown(&self, ordinal: Ordinal) -> bool {
        self.is_by_clock(ordinal) == Some(None)
    }

    fn is_by_clock(&self, ordinal: Ordinal) -> Option<Option<bool>> {
        let place = self.all.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal).ok()?;
        self.by_clock.get(place).copied()
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

/// Why others closed segments.
fn others(base: &Base, lsn_of: impl Fn(Ordinal) -> Option<Lsn>) -> OtherReasons {
    let mut others = OtherReasons::default();
    for backup in &base.backups {
        lsn_of(backup.start).into_iter().for_each(|place| others.begins_segment(place));
        lsn_of(backup.end).into_iter().for_each(|place| others.ends_segment(place));
    }
    for stopped in base.checkpoints.iter().filter(|own| !own.online) {
        others.begins_segment(stopped.redo);
    }
    others
}
