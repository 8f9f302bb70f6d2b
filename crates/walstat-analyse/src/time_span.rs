//! A span of time by the WAL's own clock: which records lie in it, and where.
//!
//! A record that states its own time is in the span if that time is. Any other is if the clock shows
//! such a time at its place ([`super::time_map`]); so the places have to be known before records are
//! selected.

use super::deferred_log::{self, DeferredLog, Event, Wants};
use super::time_map::{Anchor, ClockBuilder, Interval, Tick, extend_span};
use std::ops::Range;
use std::sync::Arc;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::record::Record;
use walstat_read::scan::observe::Observe;

/// From a time on, up to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    /// Times that lie in it.
    pub times: Range<Time>,
    /// Places at which the clock shows one of them, in WAL order.
    pub places: Arc<[Range<Lsn>]>,
}

impl TimeSpan {
    /// Whether a record lies in it.
    pub fn holds(&self, record: &Record<'_>) -> bool {
        match deferred_log::stated_time(record) {
            Some((time, _)) => self.times.contains(&time),
            None => {
                let place = self.places.partition_point(|places| places.end <= record.lsn);
                self.places.get(place).is_some_and(|places| places.start <= record.lsn)
            }
        }
    }
}

/// The times that records state, in WAL order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// The first that a transaction states, and where its record ends.
    pub first: Option<Anchor>,
    /// The latest of all.
    pub latest: Option<Time>,
}

impl Observe for Stamps {
    fn observe(&mut self, record: &Record<'_>) {
        if !deferred_log::may_matter(record) {
            return;
        }
        if let Some((time, _)) = deferred_log::stated_time(record) {
            self.first.get_or_insert(Anchor { lsn: record.end, time });
            self.latest = self.latest.max(Some(time));
        } else if let Some(Event::Checkpoint(seen)) = Event::of(record) {
            self.latest = self.latest.max(Some(seen.says.time));
        }
    }

    fn merge(&mut self, later: Stamps) {
        self.first = self.first.or(later.first);
        self.latest = self.latest.max(later.latest);
    }
}

/// Finds the places at which the clock shows times of a span.
#[derive(Debug, Clone)]
pub struct Places {
    times: Range<Time>,
    log: DeferredLog,
    found: Option<Box<PlaceFinder>>,
    /// From the first to the last record that states one of the times.
    stated: Option<(Lsn, Lsn)>,
}

/// What [`Places`] has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacesFound {
    /// Places at which the clock shows one of the times, in WAL order.
    pub places: Vec<Range<Lsn>>,
    /// The first and the last time of any record.
    pub span: Option<(Time, Time)>,
    /// The first and the last record that states one of the times itself.
    pub stated: Option<(Lsn, Lsn)>,
    /// Whether the clock was set back.
    pub is_set_back: bool,
}

#[derive(Debug, Clone, Default)]
struct PlaceFinder {
    clock: ClockBuilder,
    last: Option<Anchor>,
    places: Vec<Range<Lsn>>,
}

impl Places {
    /// None yet.
    pub fn of(times: Range<Time>) -> Places {
        let wants = Wants { each_time: true, ..Wants::default() };
        Places { times, log: DeferredLog::new(wants), found: None, stated: None }
    }

    /// What was found.
    pub fn finish(mut self) -> PlacesFound {
        self.settle();
        let Some(mut found) = self.found else { return PlacesFound::default() };
        let ticks = found.clock.last_ticks();
        ticks.iter().for_each(|tick| found.tick(tick, &self.times));
        if let Some(last) = found.last.filter(|last| self.times.contains(&last.time)) {
            found.add(last.lsn..Lsn::MAX);
        }
        PlacesFound {
            places: found.places,
            span: found.clock.span(),
            stated: self.stated,
            is_set_back: found.clock.set_back > 0,
        }
    }
}

impl PlaceFinder {
    fn tick(&mut self, tick: &Tick, times: &Range<Time>) {
        let from = self.last.replace(tick.to);
        let to = (!tick.is_set_back).then_some(tick.to);
        let begin = from.map_or(Lsn(0), |from| from.lsn);
        match Interval::new(from, to).places(times) {
            Some(places) => self.add(places.start.max(begin)..places.end.min(tick.to.lsn)),
            // The clock stands still.
            None => {
                let shown = from.map_or(tick.to.time, |from| from.time);
                if times.contains(&shown) {
                    self.add(begin..tick.to.lsn);
                }
            }
        }
    }

    fn add(&mut self, places: Range<Lsn>) {
        match self.places.last_mut() {
            _ if places.is_empty() => {}
            Some(last) if last.end == places.start => last.end = places.end,
            _ => self.places.push(places),
        }
    }
}

impl Observe for Places {
    fn observe(&mut self, record: &Record<'_>) {
        self.log.add(record);
        if deferred_log::may_matter(record)
            && let Some((time, _)) = deferred_log::stated_time(record)
            && self.times.contains(&time)
        {
            extend_span(&mut self.stated, record.lsn);
        }
    }

    fn merge(&mut self, later: Places) {
        let stated = self.stated.into_iter().chain(later.stated);
        let stated: Vec<Lsn> = stated.flat_map(|(first, last)| [first, last]).collect();
        if later.found.is_some() {
            *self = later
        } else {
            self.log.append(later.log)
        }
        stated.into_iter().for_each(|lsn| extend_span(&mut self.stated, lsn));
    }

    fn settle(&mut self) {
        let found = self.found.get_or_insert_default();
        for batch in self.log.take() {
            for chunk in &batch.chunks {
                if let Some(placed) = &chunk.event {
                    found.clock.event(placed);
                }
                let ticks = found.clock.ticks(chunk);
                ticks.iter().for_each(|tick| found.tick(tick, &self.times));
            }
        }
    }

    fn shrink(&mut self) {
        self.log.shrink();
    }
}
