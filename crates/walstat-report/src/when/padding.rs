//! What archive_timeout leaves empty of segments.

use walstat_analyse::archive_timeout::{Closed, OtherReasons, Seen, by_clock, timeout};
use walstat_analyse::checkpoint::server::Server;
use walstat_analyse::checkpoint::{Cycles, Switched};
use walstat_analyse::time_map::TimeMap;
use walstat_format::lsn::Lsn;
use walstat_format::payload::SECOND;

/// That of a range.
pub(super) struct Padding {
    /// archive_timeout.
    pub(super) timeout_seconds: u64,
    /// What it left empty.
    pub(super) bytes: u64,
    /// What it may have left empty, that included.
    pub(super) most_bytes: u64,
}

/// What a switch leaves empty, bytes.
pub(super) fn rest(switched: &Switched, server: &Server) -> u64 {
    let segment = server.segment_bytes.max(1);
    (segment - switched.end.0 % segment) % segment
}

/// What archive_timeout leaves empty, if it is set or shown.
pub(super) fn by_timeout(cycles: &Cycles, clock: &TimeMap, server: &Server) -> Option<Padding> {
    let segment = server.segment_bytes.max(1);
    let seen = |switched: &Switched| seen(switched, &cycles.other_switches, clock, segment);
    let closed = Closed::all(cycles.switches.iter().map(seen));
    let Some(timeout) = timeout(&closed, server.archive_timeout) else {
        // What is off leaves nothing empty.
        let none = Padding { timeout_seconds: 0, bytes: 0, most_bytes: 0 };
        return server.archive_timeout.map(|_| none);
    };
    let told = by_clock(&closed, Some(timeout), server.archive_timeout.is_some());
    let left_by = |is_meant: fn(Option<bool>) -> bool| {
        let meant = told.iter().zip(&cycles.switches).filter(|(told, _)| is_meant(**told));
        meant.map(|(_, switched)| rest(switched, server)).sum()
    };
    Some(Padding {
        timeout_seconds: u64::try_from(timeout / SECOND).ok()?,
        bytes: left_by(|told| told == Some(true)),
        most_bytes: left_by(|told| told != Some(false)),
    })
}

/// A switch as the clock shows it.
fn seen(switched: &Switched, others: &OtherReasons, clock: &TimeMap, segment_bytes: u64) -> Seen {
    let segment = switched.end.0.saturating_sub(1) / segment_bytes;
    let (before, after) = clock.around(switched.end);
    let before = before.map(|anchor| anchor.time).or(switched.time);
    let (earlier, first) = clock.around(Lsn(segment * segment_bytes));
    let earlier = earlier.map(|anchor| anchor.time.0);
    Seen {
        segment,
        opened: first.map(|first| (earlier, first.time.0)),
        closed: before.map(|before| (before.0, after.map(|anchor| anchor.time.0))),
        is_explained: others.explain(segment, segment_bytes),
    }
}
