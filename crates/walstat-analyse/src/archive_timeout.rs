//! archive_timeout, as the distances between switches show it: `CheckArchiveTimeout` in
//! `src/backend/postmaster/checkpointer.c` closes a segment that long after the one before was closed.
//!
//! `base/switches.rs` of walstat-whatif judges more narrowly, by how long each segment was open at the least
//! and at the most: it has the time of every commit, and its verdict decides which switches a prediction
//! moves.

/// Fewer switches at one distance are no archive_timeout.
pub const SWITCHES: usize = 3;

/// Whether a distance is that of a timeout, but for the time until the next commit; both in seconds.
pub fn is_near(seconds: i64, timeout: i64) -> bool {
    (seconds - timeout).abs() <= (timeout / 20).max(1)
}

/// The distance in seconds that half of all switches are apart, three at least; `None` in `distances`: not
/// known.
pub fn of(distances: &[Option<i64>]) -> Option<i64> {
    let mut known: Vec<i64> = distances.iter().flatten().copied().filter(|&d| d > 0).collect();
    known.sort_unstable();
    let middle = *known.get(known.len() / 2)?;
    let count = known.iter().filter(|found| is_near(**found, middle)).count();
    (count >= SWITCHES && count * 2 >= distances.len()).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_now_and_then_are_no_timeout() {
        assert_eq!(of(&[Some(10), Some(60), Some(61), Some(900)]), None);
        assert_eq!(of(&[Some(60), None, Some(61), Some(60)]), Some(60));
        assert_eq!(of(&[]), None);
    }
}
