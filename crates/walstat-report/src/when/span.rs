//! Cycles of a span of time: what lies around it tells why they began, and is not shown.

use std::borrow::Cow;
use walstat_analyse::checkpoint::cause::Verdict;
use walstat_analyse::checkpoint::{Cycle, Cycles, Replay};
use walstat_analyse::time_map::TimeMap;
use walstat_analyse::when::WhenFound;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// The span that was asked for, by the clock of the WAL.
struct Span<'f> {
    since: Time,
    until: Time,
    clock: &'f TimeMap,
}

impl Span<'_> {
    /// Whether a stretch of WAL has a part in it.
    fn meets(&self, start: Lsn, end: Lsn) -> bool {
        let time = |lsn| self.clock.at(lsn);
        time(start).is_some_and(|time| time < self.until)
            && time(end).is_some_and(|time| time >= self.since)
    }

    /// Whether a cycle began in it; a checkpoint states whole seconds.
    fn began(&self, cycle: &Cycle) -> bool {
        let stated = cycle.checkpoint.as_ref().map(|ended| ended.seen.says.time);
        let time = stated.or_else(|| cycle.redo.and_then(|redo| self.clock.at(redo)));
        time.is_some_and(|time| time.second() >= self.since.second())
    }
}

/// The cycles of what was asked for, each with why it began.
pub(crate) fn asked_for<'f>(
    found: &'f WhenFound,
    cycles: &'f Cycles,
    verdicts: &[Option<Verdict>],
) -> (Cow<'f, Cycles>, Vec<Option<Verdict>>) {
    let Some((since, until)) = found.times else {
        return (Cow::Borrowed(cycles), verdicts.to_vec());
    };
    let span = Span { since, until, clock: &found.clock };
    let met = cycles.cycles.iter().cloned().zip(verdicts.iter().copied());
    let is_met = |cycle: &Cycle| cycle.tally.count > 0 || span.meets(cycle.start, cycle.end);
    let met = met.filter(|(cycle, _)| is_met(cycle));
    let (met, verdicts): (Vec<Cycle>, Vec<_>) = met
        .map(
            |(cycle, verdict)| {
                if span.began(&cycle) { (cycle, verdict) } else { (cycle.begun_before(), None) }
            },
        )
        .unzip();
    let switched = |time: Option<Time>| time.is_some_and(|time| (since..until).contains(&time));
    let cut = Cycles {
        checkpoints: met.iter().filter(|cycle| cycle.checkpoint.is_some()).count() as u64,
        cycles: met,
        replays: replays(cycles, &span),
        switches: cycles.switches.iter().copied().filter(|s| switched(s.time)).collect(),
        other_switches: cycles.other_switches.clone(),
        holes: cycles.holes.clone(),
        unused: cycles.unused.clone(),
        // Stops are not counted by span, so none are told.
        stopped: 0,
        is_rough: cycles.is_rough,
    };
    (Cow::Owned(cut), verdicts)
}

fn replays(cycles: &Cycles, span: &Span<'_>) -> Vec<Replay> {
    let met = cycles.replays.iter().copied();
    met.filter(|replay| span.meets(replay.from, replay.to)).collect()
}
