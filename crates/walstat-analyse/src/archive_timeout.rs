//! archive_timeout, as the switches to the next segment show it: `CheckArchiveTimeout` in
//! `src/backend/postmaster/checkpointer.c` closes a segment that long after the one before was closed. The
//! report and walstat-whatif ask here; how a server is simulated that closes segments is in the latter.
//!
//! Base backups, shutdowns and `pg_switch_wal()` close segments, too. So only equal spacing is evidence, of
//! several switches one after another; and where the server's setting is known, nothing else counts.

use std::collections::BTreeSet;
use walstat_format::lsn::Lsn;
use walstat_format::payload::SECOND;

/// Fewer switches one after another are no archive_timeout.
pub const SWITCHES: usize = 3;
/// So many of them have to be open as long as each other for certain.
const AGREE: usize = 2;
/// The server counts whole seconds, and looks some tenths late.
const SLACK: i64 = SECOND + SECOND / 2;
/// A shorter one cannot be told from anything that happens, with that slack.
const SHORTEST: i64 = 3 * SECOND;
/// No segment is taken to be open longer, a thousand years: times of commits may be anything.
const LONGEST: i64 = 1000 * 366 * 24 * 3600 * SECOND;

/// The earliest and the latest time at which something may have happened, microseconds.
pub type Between = (i64, i64);

/// A switch, as the WAL has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The number of the segment that it closes.
    pub segment: u64,
    /// When that segment was opened: the commits before and after its first record. A server that starts may
    /// have had it open long before anybody commits.
    pub opened: Option<(Option<i64>, i64)>,
    /// When it was closed: the commits before and after it. Nothing need be committed after it.
    pub closed: Option<(i64, Option<i64>)>,
    /// Whether something beside it closes segments: see [`OtherReasons`].
    pub is_explained: bool,
}

/// What closes segments beside archive_timeout, by where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherReasons {
    begin: BTreeSet<u64>,
    end: BTreeSet<u64>,
}

impl OtherReasons {
    /// A base backup starts here, or a server stopped: each begins a segment if it can, so that the one
    /// before is closed for it. Its own segment stays open.
    pub fn begins_segment(&mut self, place: Lsn) {
        self.begin.insert(place.0);
    }

    /// A base backup ends here, or here is a restore point, around which people call `pg_switch_wal()`.
    pub fn ends_segment(&mut self, place: Lsn) {
        self.end.insert(place.0);
    }

    /// Whether one of them explains that this segment was closed.
    pub fn explain(&self, segment: u64, segment_bytes: u64) -> bool {
        let start = |segment: u64| segment.saturating_mul(segment_bytes);
        let after_next = start(segment.saturating_add(2));
        let has_any = |places: &BTreeSet<u64>, from: u64| {
            from < after_next && places.range(from..after_next).next().is_some()
        };
        has_any(&self.begin, start(segment.saturating_add(1))) || has_any(&self.end, start(segment))
    }
}

/// A switch, and how long its segment had been open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// At the least and at the most, microseconds.
    open: Option<Between>,
    is_explained: bool,
}

impl Closed {
    /// All switches of a range, in the order of the WAL.
    pub fn all(seen: impl IntoIterator<Item = Seen>) -> Vec<Closed> {
        // When the segment after the last switch was opened.
        let mut opened: Option<(u64, Between)> = None;
        let one = |seen: Seen| {
            let begun = match opened {
                Some((next, between)) if next == seen.segment => Some(between),
                _ => seen.opened.map(|(before, after)| (before.unwrap_or(i64::MIN), after)),
            };
            let between = |from: i64, to: i64| to.saturating_sub(from).clamp(-LONGEST, LONGEST);
            let open = begun.zip(seen.closed).map(|((earliest, latest), (before, after))| {
                (between(latest, before), between(earliest, after.unwrap_or(i64::MAX)))
            });
            opened = seen
                .closed
                .map(|(before, after)| (seen.segment + 1, (before, after.unwrap_or(before))));
            Closed { open, is_explained: seen.is_explained }
        };
        seen.into_iter().map(one).collect()
    }

    /// How long it was open, if that is known well.
    fn known(&self) -> Option<i64> {
        let (least, most) = self.open?;
        (most - least <= SLACK).then_some(least.midpoint(most))
    }

    fn is_open_for(&self, timeout: i64) -> bool {
        !self.is_explained && self.known().is_some_and(|open| (open - timeout).abs() <= SLACK)
    }

    /// Whether an archive_timeout of so many microseconds closed it; `None`: it may have.
    fn is_by_clock(&self, timeout: i64) -> Option<bool> {
        if self.is_explained {
            return Some(false);
        }
        let (least, most) = self.open.filter(|_| timeout > 0)?;
        // While nothing is written, the server looks once each timeout.
        let looks = (most + SLACK).div_euclid(timeout);
        let may_be = looks > 0 && looks * timeout >= least - SLACK;
        let is_known = most - least <= SLACK;
        (is_known || !may_be).then_some(may_be)
    }
}

/// Which switches archive_timeout made, microseconds; `None`: that is not known. One that is set closes each
/// segment when it is time. So where it may have closed all that nothing else explains, it closed them,
/// however long before and after nobody committed.
pub fn by_clock(closed: &[Closed], timeout: Option<i64>, is_set: bool) -> Vec<Option<bool>> {
    let told = |one: &Closed| match timeout {
        Some(timeout) => one.is_by_clock(timeout),
        None => one.is_explained.then_some(false),
    };
    let mut all: Vec<Option<bool>> = closed.iter().map(told).collect();
    let is_other =
        |(one, told): (&Closed, &Option<bool>)| !one.is_explained && *told == Some(false);
    if is_set && timeout.is_some() && !closed.iter().zip(&all).any(is_other) {
        all.iter_mut().for_each(|told| *told = told.or(Some(true)));
    }
    all
}

/// archive_timeout in microseconds: what the server's settings say, seconds, if they are known (0 is none),
/// else what the switches show.
pub fn timeout(closed: &[Closed], set: Option<u64>) -> Option<i64> {
    if let Some(seconds) = set {
        let micros = i64::try_from(seconds).ok()?.checked_mul(SECOND)?;
        return Some(micros).filter(|micros| *micros > 0);
    }
    let open = closed.iter().filter(|one| !one.is_explained).filter_map(Closed::known);
    let seconds = open.map(|micros| (micros + SECOND / 2).div_euclid(SECOND) * SECOND);
    let agree = |timeout: i64| closed.iter().filter(|one| one.is_open_for(timeout)).count();
    let tried = seconds.filter(|timeout| *timeout > SHORTEST && *timeout < LONGEST / 2);
    let best = tried.max_by_key(|timeout| (agree(*timeout), std::cmp::Reverse(*timeout)))?;
    // While somebody writes, no segment stays open longer.
    let is_longer = |one: &Closed| one.known().is_some_and(|open| open > best + SLACK);
    let is_shown = agree(best) >= AGREE
        && longest_run(closed, best) >= SWITCHES
        && !closed.iter().any(|one| !one.is_explained && is_longer(one));
    is_shown.then_some(best)
}

/// How many switches one after another it explains, at the most.
fn longest_run(closed: &[Closed], timeout: i64) -> usize {
    let (mut longest, mut run) = (0, 0);
    for one in closed {
        run = if one.is_by_clock(timeout) == Some(false) { 0 } else { run + 1 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(seconds: &[(f64, f64)]) -> Vec<Closed> {
        let micros = |seconds: f64| (seconds * SECOND as f64) as i64;
        let of = |&(least, most): &(f64, f64)| Closed {
            open: Some((micros(least), micros(most))),
            is_explained: false,
        };
        seconds.iter().map(of).collect()
    }

    /// As PostgreSQL 15 did it with archive_timeout = 5s: the second and the last one were asked for, the
    /// third and the fourth came while nobody wrote.
    #[test]
    fn requests_are_told_from_what_the_clock_closed() {
        let closed =
            closed(&[(5.0, 5.1), (3.0, 3.0), (3.0, 10.0), (4.0, 11.0), (5.0, 5.0), (3.0, 3.1)]);
        assert_eq!(timeout(&closed, None), Some(5 * SECOND));
        let told = |is_set| by_clock(&closed, Some(5 * SECOND), is_set);
        let (asked, clock) = (Some(false), Some(true));
        assert_eq!(told(false), [clock, asked, None, None, clock, asked]);
        assert_eq!(told(true), told(false), "somebody asked for some of them");
    }

    #[test]
    fn switches_at_all_distances_are_no_timeout() {
        let found = |seconds: &[(f64, f64)]| timeout(&closed(seconds), None);
        assert_eq!(found(&[(5.0, 5.1), (9.0, 9.1), (2.0, 2.0), (14.0, 14.0)]), None);
        assert_eq!(found(&[(10.0, 10.0), (60.0, 60.0), (61.0, 61.0), (900.0, 900.0)]), None);
        assert_eq!(
            found(&[(60.0, 60.0), (61.0, 61.0), (60.0, 60.4), (10.0, 10.0)]),
            Some(60 * SECOND)
        );
        assert_eq!(found(&[]), None);
    }

    /// A backup switches when it starts and when it ends, a shutdown once: a second or two apart.
    #[test]
    fn switches_of_a_backup_and_a_restart_are_no_timeout() {
        let short = closed(&[(1.4, 1.5), (0.6, 0.8), (1.1, 1.3), (0.0, 2.0)]);
        assert_eq!(timeout(&short, None), None);
        let mut longer = closed(&[(5.0, 5.1), (5.2, 5.3), (4.9, 5.0)]);
        assert_eq!(timeout(&longer, None), Some(5 * SECOND));
        longer[1].is_explained = true;
        assert_eq!(timeout(&longer, None), None);
        assert_eq!(longer[1].is_by_clock(5 * SECOND), Some(false));
    }

    #[test]
    fn a_setting_that_is_known_rules() {
        let closed = closed(&[(5.0, 5.1), (5.2, 5.3), (4.9, 5.0)]);
        assert_eq!(timeout(&closed, Some(0)), None);
        assert_eq!(timeout(&closed, Some(60)), Some(60 * SECOND));
        assert_eq!(closed[0].is_by_clock(60 * SECOND), Some(false));
    }

    /// As PostgreSQL 15 did it with archive_timeout = 3s and 1.7 commits a second.
    #[test]
    fn a_timeout_that_is_set_closed_all_that_it_may_have_closed() {
        let mut closed = closed(&[(0.4, 3.4), (2.2, 3.8), (2.0, 4.4), (2.9, 3.1), (1.7, 3.6)]);
        let told = |closed: &[Closed], is_set| by_clock(closed, Some(3 * SECOND), is_set);
        let clock = Some(true);
        assert_eq!(told(&closed, true), [clock; 5]);
        assert_eq!(told(&closed, false), [None, None, None, clock, None]);
        closed[0].is_explained = true;
        assert_eq!(told(&closed, true), [Some(false), clock, clock, clock, clock]);
        assert_eq!(by_clock(&closed, None, true), [Some(false), None, None, None, None]);
    }

    #[test]
    fn a_backup_closes_its_last_segment_and_the_one_before_it_and_a_shutdown_the_latter() {
        let explained = |place: fn(&mut OtherReasons, Lsn)| {
            let mut reasons = OtherReasons::default();
            [0x45, 0x91].into_iter().for_each(|at| place(&mut reasons, Lsn(at)));
            (0..12).filter(|segment| reasons.explain(*segment, 0x10)).collect::<Vec<u64>>()
        };
        assert_eq!(explained(OtherReasons::begins_segment), [3, 8]);
        assert_eq!(explained(OtherReasons::ends_segment), [3, 4, 8, 9]);
        assert!(!OtherReasons::default().explain(u64::MAX, u64::MAX));
    }

    /// A server starts with a segment that its shutdown began, and nobody commits for two seconds.
    #[test]
    fn a_segment_may_be_open_long_before_anybody_commits() {
        let first = Seen {
            segment: 2,
            opened: Some((None, 2 * SECOND)),
            closed: Some((2 * SECOND, Some(4 * SECOND))),
            is_explained: false,
        };
        let closed = Closed::all([first]);
        assert_eq!(by_clock(&closed, Some(3 * SECOND), false), [None]);
        assert_eq!(by_clock(&closed, Some(3 * SECOND), true), [Some(true)]);
    }

    #[test]
    fn a_segment_is_open_from_the_switch_before_it() {
        let seen = |segment, first: i64, before: i64, after| Seen {
            segment,
            opened: Some((Some(first * SECOND), first * SECOND)),
            closed: Some((before * SECOND, after)),
            is_explained: false,
        };
        let found = Closed::all([
            seen(4, 0, 5, Some(6 * SECOND)),
            seen(5, 6, 11, Some(11 * SECOND)),
            seen(7, 20, 25, None),
        ]);
        let open: Vec<_> = found.iter().filter_map(|one| one.open).collect();
        assert_eq!(open[..2], [(5 * SECOND, 6 * SECOND), (5 * SECOND, 6 * SECOND)]);
        assert_eq!(open[2].0, 5 * SECOND);
    }
}
