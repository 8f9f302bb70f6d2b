//! What follows from itself: less WAL brings fewer checkpoints by volume, and these less WAL again.

/// A share or a ratio this close to the one of the round before changes no figure that is shown.
const CLOSE: f64 = 1e-5;
/// One that goes back and forth is left where it is after so many rounds.
const ROUNDS_MAX: usize = 32;

/// Where `next` of a share or a ratio is that share or ratio, from `first` on.
pub(crate) fn settled(first: f64, next: impl Fn(f64) -> f64) -> f64 {
    let mut now = first;
    for _ in 0..ROUNDS_MAX {
        let before = now;
        now = next(before);
        if (now - before).abs() <= CLOSE {
            break;
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_ends_where_nothing_changes_and_does_not_go_on_for_ever() {
        let rounds = Cell::new(0);
        let counted = |next: f64| {
            rounds.set(rounds.get() + 1);
            next
        };
        let half = settled(0.0, |share| counted(0.25 + share / 2.0));
        assert!((half - 0.5).abs() < 2.0 * CLOSE, "{half}");
        assert!(rounds.take() < ROUNDS_MAX);
        assert_eq!(settled(1.0, |_| counted(2.0)), 2.0);
        assert_eq!(rounds.take(), 2);
        settled(1.0, |share| counted(-share));
        assert_eq!(rounds.take(), ROUNDS_MAX);
    }
}
