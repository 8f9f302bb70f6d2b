//! Why segments of the base were closed early: by archive_timeout, which closes others under other settings,
//! or because somebody asked for it (`pg_switch_wal()`, the end of a base backup), which stays.
//!
//! `archive_timeout.rs` of walstat-analyse, for the report, has only the distances between switches and is
//! content with half of them. Here each switch is judged by itself, since predictions depend on it.

use super::Base;
use crate::blocks::Ordinal;
use crate::trace::{RecordEffect, Trace};
use walstat_analyse::archive_timeout;
use walstat_format::payload::SECOND;

/// The server counts whole seconds, and looks some tenths late.
const SLACK: i64 = SECOND + SECOND / 2;

/// No segment is taken to be open longer, a thousand years: times of commits may be anything.
const LONGEST: i64 = 1000 * 366 * 24 * 3600 * SECOND;

/// So many have to be open as long as each other.
const AGREE: usize = 2;

/// So many records after its end a base backup switches, at most.
const AFTER_BACKUP: Ordinal = 4;

/// The switches of a base.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    /// archive_timeout, microseconds, if they show it.
    pub timeout: Option<i64>,
    /// Those that somebody asked for, ascending.
    asked: Vec<Ordinal>,
    /// Those of which it is not known why, ascending.
    unknown: Vec<Ordinal>,
}

/// A switch, and how long its segment had been open, microseconds.
struct Closed {
    ordinal: Ordinal,
    /// At the last commit before it and at the first one after it.
    open: Option<(i64, i64)>,
    ends_backup: bool,
}

impl Switches {
    /// Those of the range.
    pub(crate) fn of(trace: &Trace, base: &Base) -> Switches {
        let closed = closed(trace, base);
        let timeout = timeout(&closed);
        let mut switches = Switches { timeout, ..Switches::default() };
        for one in closed {
            match one.is_by_clock(timeout) {
                _ if one.ends_backup => switches.asked.push(one.ordinal),
                Some(true) => {}
                Some(false) => switches.asked.push(one.ordinal),
                None => switches.unknown.push(one.ordinal),
            }
        }
        switches
    }

    /// Whether somebody asked for this one, for certain.
    pub(crate) fn is_asked(&self, ordinal: Ordinal) -> bool {
        self.asked.binary_search(&ordinal).is_ok()
    }

    /// Whether it is not known why this one was made.
    pub(crate) fn is_unknown(&self, ordinal: Ordinal) -> bool {
        self.unknown.binary_search(&ordinal).is_ok()
    }
}

/// archive_timeout, microseconds, as these show it: no segment stays open longer while somebody writes, and
/// those that the clock closed were open as long.
fn timeout(closed: &[Closed]) -> Option<i64> {
    let known = closed.iter().filter_map(Closed::known);
    let seconds = known.max().map(|micros| (micros + SECOND / 2) / SECOND).filter(|s| *s > 0)?;
    let timeout = seconds * SECOND;
    let as_long =
        closed.iter().filter_map(Closed::known).filter(|open| (open - timeout).abs() <= SLACK);
    let explained =
        closed.iter().filter(|one| one.is_by_clock(Some(timeout)) != Some(false)).count();
    let is_shown = as_long.count() >= AGREE && explained >= archive_timeout::SWITCHES;
    is_shown.then_some(timeout)
}

impl Closed {
    /// How long it was open, if that is known well.
    fn known(&self) -> Option<i64> {
        let (least, most) = self.open?;
        (most - least <= SLACK).then_some(least.midpoint(most))
    }

    /// Whether archive_timeout closed it; `None`: it may have.
    fn is_by_clock(&self, timeout: Option<i64>) -> Option<bool> {
        let ((least, most), timeout) = self.open.zip(timeout)?;
        // While nothing is written, the server looks once each timeout.
        let looks = (most + SLACK).div_euclid(timeout);
        let may_be = looks > 0 && looks * timeout >= least - SLACK;
        let is_known = most - least <= SLACK;
        (is_known || !may_be).then_some(may_be)
    }
}

fn closed(trace: &Trace, base: &Base) -> Vec<Closed> {
    let segment = base.geometry.segment;
    let time_before = |ordinal| trace.commit_before(ordinal).map(|commit| commit.time.0);
    let time_from = |ordinal| trace.commit_from(ordinal).map(|commit| commit.time.0);
    let mut found: Vec<Closed> = Vec::new();
    // When the segment after the last switch was opened, at the earliest and at the latest.
    let mut opened: Option<(u64, i64, i64)> = None;
    for (ordinal, effect) in &trace.effects {
        if *effect != RecordEffect::Switch || !base.contains(*ordinal) {
            continue;
        }
        let Some(entry) = trace.entry_of(*ordinal) else { continue };
        let number = entry.lsn.0 / segment;
        let first = trace.ordinal_at(walstat_format::lsn::Lsn(number * segment));
        let begun = match opened {
            Some((next, earliest, latest)) if next == number => Some((earliest, latest)),
            _ => time_from(first).map(|time| (time, time)),
        };
        let (before, after) = (time_before(*ordinal), time_from(*ordinal));
        let ends_backup = base
            .backups
            .iter()
            .any(|backup| (backup.end..=backup.end + AFTER_BACKUP).contains(ordinal));
        let open = begun.zip(before).map(|((earliest, latest), before)| {
            let after = after.unwrap_or(i64::MAX);
            let between = |from: i64, to: i64| to.saturating_sub(from).clamp(-LONGEST, LONGEST);
            (between(latest, before), between(earliest, after))
        });
        found.push(Closed { ordinal: *ordinal, open, ends_backup });
        opened = before.map(|before| (number + 1, before, after.unwrap_or(before)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(seconds: &[(f64, f64)]) -> Vec<Closed> {
        let micros = |seconds: f64| (seconds * SECOND as f64) as i64;
        let of = |(ordinal, &(least, most)): (Ordinal, &(f64, f64))| Closed {
            ordinal,
            open: Some((micros(least), micros(most))),
            ends_backup: false,
        };
        (1..).zip(seconds).map(of).collect()
    }

    /// As PostgreSQL 15 did it with archive_timeout = 5s: the second and the last one were asked for, the
    /// third and the fourth came while nobody wrote.
    #[test]
    fn requests_are_told_from_what_the_clock_closed() {
        let closed =
            closed(&[(5.0, 5.1), (3.0, 3.0), (3.0, 10.0), (4.0, 11.0), (5.0, 5.0), (3.0, 3.1)]);
        assert_eq!(timeout(&closed), Some(5 * SECOND));
        let told: Vec<_> = closed.iter().map(|one| one.is_by_clock(timeout(&closed))).collect();
        let (asked, clock) = (Some(false), Some(true));
        assert_eq!(told, [clock, asked, None, None, clock, asked]);
    }

    #[test]
    fn switches_at_all_distances_are_no_timeout() {
        assert_eq!(timeout(&closed(&[(5.0, 5.1), (9.0, 9.1), (2.0, 2.0), (14.0, 14.0)])), None);
        assert_eq!(timeout(&[]), None);
    }
}
