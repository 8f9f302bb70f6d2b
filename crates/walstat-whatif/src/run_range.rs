//! Least and most that one simulated run can come to: what is not certain of it, across the switches that
//! leave the rest of their segments empty.

use super::outcome::{RunOutcome, Switch};
use super::uncertainty::{Circumstances, Tally, Uncertainty, UncertaintyKind};

/// Bytes fewer and more.
type Sides = (u64, u64);

/// What is not certain of a run, or of it up to a switch.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    /// What comes at a known place: a switch after it takes it up.
    in_place: Sides,
    /// What comes somewhere, before a switch or after it.
    anywhere: Sides,
}

/// The range of a run, beside what is only about whole segments. What is not certain before a switch goes
/// into what that leaves empty, as far as there is room; then it brings a segment more, or takes one away.
pub(crate) fn range_of_run(
    outcome: &RunOutcome,
    of_servers: &[Uncertainty],
    of: &Circumstances,
    segment: u64,
) -> Sides {
    let all = Open::of(&outcome.uncertain, of_servers, of, |_| 1.0);
    let (mut passed, mut open, mut segments) = (Open::default(), Open::default(), (0, 0));
    for switch in &outcome.left_empty {
        let before = before(switch, outcome, of_servers, of).at_most(all);
        open.add(before.minus(passed));
        passed = before;
        let used = segment.saturating_sub(switch.left);
        if switch.moves {
            // It may leave anything of its segment.
            add(&mut segments, (switch.left, used));
            continue;
        }
        // With less before it, what begins after a switch stays in its segment.
        if !switch.is_own {
            let room = used.saturating_sub(1);
            segments.0 += crossed(room, open.in_place.0, &mut open.anywhere.0, segment);
        }
        segments.1 += crossed(switch.left, open.in_place.1, &mut open.anywhere.1, segment);
        open.in_place = (0, 0);
    }
    open.add(all.minus(passed));
    let mut sides = segments;
    add(&mut sides, open.in_place);
    add(&mut sides, open.anywhere);
    (outcome.bytes.saturating_sub(sides.0), outcome.bytes + sides.1)
}

/// Bytes of the segments that a switch comes to lie farther, where there is so much room up to its end. What
/// may come anywhere is as much less afterwards as it takes for that.
fn crossed(room: u64, in_place: u64, anywhere: &mut u64, segment: u64) -> u64 {
    let sure = in_place.saturating_sub(room).div_ceil(segment.max(1));
    let left = (room + sure * segment).saturating_sub(in_place);
    if *anywhere <= left {
        return sure * segment;
    }
    *anywhere -= left;
    (sure + 1) * segment
}

fn add(to: &mut Sides, more: Sides) {
    *to = (to.0 + more.0, to.1 + more.1);
}

fn each(one: Sides, other: Sides, of: fn(u64, u64) -> u64) -> Sides {
    (of(one.0, other.0), of(one.1, other.1))
}

impl Open {
    /// Of each kind the part that `part` says.
    fn of(
        tally: &Tally,
        of_servers: &[Uncertainty],
        of: &Circumstances,
        part: impl Fn(&UncertaintyKind) -> f64,
    ) -> Open {
        let mut open = Open::default();
        for one in tally.uncertainties(of).iter().chain(of_servers) {
            let part = part(&one.kind);
            let of_side = |bytes: u64| (bytes as f64 * part).ceil() as u64;
            let sides = (of_side(one.low), of_side(one.high));
            add(
                if one.kind.is_in_place() { &mut open.in_place } else { &mut open.anywhere },
                sides,
            );
        }
        open
    }

    fn both(self, other: Open, of: fn(u64, u64) -> u64) -> Open {
        Open {
            in_place: each(self.in_place, other.in_place, of),
            anywhere: each(self.anywhere, other.anywhere, of),
        }
    }

    fn at_most(self, all: Open) -> Open {
        self.both(all, u64::min)
    }

    fn minus(self, less: Open) -> Open {
        self.both(less, u64::saturating_sub)
    }

    fn add(&mut self, more: Open) {
        *self = self.both(more, u64::saturating_add);
    }
}

/// What of all that may come before a switch.
fn before(
    switch: &Switch,
    outcome: &RunOutcome,
    of_servers: &[Uncertainty],
    of: &Circumstances,
) -> Open {
    let whole = &outcome.uncertain;
    let Tally { sampled_bytes, .. } = switch.uncertain;
    // Some of it is only known at the end.
    let tally = Tally {
        sample_error: (whole.sample_error as f64 * ratio(sampled_bytes, whole.sampled_bytes))
            as u64,
        open_sequence_bytes: whole.open_sequence_bytes,
        ..switch.uncertain
    };
    let late = redo_part(switch, outcome);
    let part = |kind: &UncertaintyKind| if *kind == UncertaintyKind::Lateness { late } else { 1.0 };
    Open::of(&tally, of_servers, of, part)
}

/// The part of the redo points that lies before a switch: what comes late around them, comes with them.
fn redo_part(switch: &Switch, outcome: &RunOutcome) -> f64 {
    let placed = ratio(switch.placed, outcome.placed);
    placed.max(ratio(switch.redo_points, outcome.redo_points.len() as u64))
}

fn ratio(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const SEGMENT: u64 = 16 * MB;

    fn megabytes((low, high): Sides) -> Sides {
        assert_eq!((low % MB, high % MB), (0, 0));
        (low / MB, high / MB)
    }

    fn unseen(bytes: u64) -> Tally {
        Tally { unseen_bytes: bytes, ..Tally::default() }
    }

    /// Guessed images: so many bytes fewer, and none more.
    fn range(switches: &[Switch], all: Tally, clock: u64) -> Sides {
        let outcome = RunOutcome {
            bytes: 64 * MB,
            left_empty: switches.to_vec(),
            uncertain: all,
            ..RunOutcome::default()
        };
        let by_clock = Uncertainty { kind: UncertaintyKind::Clock, low: clock, high: clock };
        megabytes(range_of_run(&outcome, &[by_clock], &Circumstances::default(), SEGMENT))
    }

    /// It leaves 4 MB empty.
    fn switch() -> Switch {
        Switch {
            left: 4 * MB,
            redo_points: 0,
            placed: 0,
            is_own: false,
            moves: false,
            uncertain: Tally::default(),
        }
    }

    #[test]
    fn what_is_left_empty_takes_up_more_and_then_a_segment_comes_on_top() {
        let of = |clock| range(&[switch()], Tally::default(), clock);
        assert_eq!(of(MB), (63, 65));
        // 4 MB of the 5 go into what was empty.
        assert_eq!(of(5 * MB), (59, 64 + 1 + 16));
        assert_eq!(of(11 * MB), (64 - 11, 64 + 7 + 16));
    }

    #[test]
    fn what_is_not_certain_after_a_switch_does_not_move_it() {
        let of = |uncertain| range(&[Switch { uncertain, ..switch() }], unseen(13 * MB), 0);
        assert_eq!(of(Tally::default()), (64 - 13, 64));
        assert_eq!(of(unseen(13 * MB)), (64 - 16, 64));
        assert_eq!(of(unseen(11 * MB)), (64 - 2, 64), "the rest comes after it");
    }

    #[test]
    fn what_went_into_one_segment_is_not_left_for_the_next() {
        let uncertain = unseen(13 * MB);
        let both = [Switch { uncertain, ..switch() }; 2];
        assert_eq!(range(&both, uncertain, 0), (64 - 16, 64));
        let own = both.map(|switch| Switch { is_own: true, ..switch });
        assert_eq!(range(&own, uncertain, 0), (64, 64));
        // Of what may come anywhere, four go before the first one, and one before the second.
        assert_eq!(range(&both, Tally::default(), 5 * MB), (59, 64 + 16 + 1));
    }

    #[test]
    fn a_switch_that_lies_elsewhere_each_time_may_leave_anything_of_its_segment() {
        let moving = Switch { moves: true, ..switch() };
        assert_eq!(range(&[moving], Tally::default(), MB), (63 - 4, 65 + 12));
    }

    #[test]
    fn what_comes_late_comes_with_the_redo_points() {
        let late = Uncertainty { kind: UncertaintyKind::Lateness, low: 0, high: 8 * MB };
        let outcome = RunOutcome { bytes: 64 * MB, placed: 4, ..RunOutcome::default() };
        let range = |placed| {
            let left_empty = vec![Switch { placed, ..switch() }];
            let outcome = RunOutcome { left_empty, ..outcome.clone() };
            let late = [late.clone()];
            megabytes(range_of_run(&outcome, &late, &Circumstances::default(), SEGMENT))
        };
        assert_eq!([0, 2, 3].map(range), [(64, 72), (64, 64 + 4), (64, 64 + 2 + 16)]);
    }
}
