//! What archive_timeout leaves empty of segments.

use walstat_analyse::archive_timeout::{Closed, Seen, is_beside, timeout};
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
}

/// What a switch leaves empty, bytes.
pub(super) fn rest(switched: &Switched, server: &Server) -> u64 {
    let segment = server.segment_bytes.max(1);
    (segment - switched.end.0 % segment) % segment
}

/// What archive_timeout leaves empty, if it is set or shown.
pub(super) fn by_timeout(cycles: &Cycles, clock: &TimeMap, server: &Server) -> Option<Padding> {
    let beside: Vec<u64> = cycles.beside_switches.iter().map(|place| place.0).collect();
    let seen = |switched: &Switched| seen(switched, &beside, clock, server.segment_bytes.max(1));
    let closed = Closed::all(cycles.switches.iter().map(seen));
    let Some(timeout) = timeout(&closed, server.archive_timeout) else {
        // What is off leaves nothing empty.
        let none = Padding { timeout_seconds: 0, bytes: 0 };
        return server.archive_timeout.map(|_| none);
    };
    let by_clock = |one: &Closed| one.is_by_clock(Some(timeout)) == Some(true);
    let padded = closed.iter().zip(&cycles.switches).filter(|(one, _)| by_clock(one));
    Some(Padding {
        timeout_seconds: u64::try_from(timeout / SECOND).ok()?,
        bytes: padded.map(|(_, switched)| rest(switched, server)).sum(),
    })
}

/// A switch as the clock shows it.
fn seen(switched: &Switched, beside: &[u64], clock: &TimeMap, segment_bytes: u64) -> Seen {
    let segment = switched.end.0.saturating_sub(1) / segment_bytes;
    let (before, after) = clock.around(switched.end);
    let before = before.map(|anchor| anchor.time).or(switched.time);
    let first = clock.at(Lsn(segment * segment_bytes)).map(|time| (time.0, time.0));
    Seen {
        segment,
        first,
        closed: before.map(|before| (before.0, after.map(|anchor| anchor.time.0))),
        is_explained: is_beside(segment, beside, segment_bytes),
    }
}
