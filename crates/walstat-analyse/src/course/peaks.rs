//! The busiest second, ten seconds and minute, wherever they begin.

use std::collections::VecDeque;

/// A stretch of time with the most WAL of all that are as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// The first second with WAL in it.
    pub second: i64,
    /// Bytes of the records in it.
    pub total_bytes: u64,
}

/// The sum over the last so many seconds, and the highest it has been.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SlidingSum {
    width: i64,
    /// The seconds of the stretch at hand, and their sum.
    seconds: VecDeque<(i64, u64)>,
    sum: u64,
    best: Option<Peak>,
}

impl SlidingSum {
    fn add(&mut self, second: i64, total_bytes: u64) {
        let in_reach = |other: i64| (0..self.width).contains(&second.saturating_sub(other));
        while let Some((_, bytes)) = self.seconds.front().filter(|(other, _)| !in_reach(*other)) {
            self.sum -= bytes;
            self.seconds.pop_front();
        }
        self.seconds.push_back((second, total_bytes));
        self.sum += total_bytes;
        if let Some((first, _)) = self.seconds.front()
            && self.best.is_none_or(|best| self.sum > best.total_bytes)
        {
            self.best = Some(Peak { second: *first, total_bytes: self.sum });
        }
    }
}

/// The busiest stretches of time; the first of equals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peaks {
    sums: [SlidingSum; 3],
}

impl Default for Peaks {
    fn default() -> Peaks {
        let sum = |width| SlidingSum { width, seconds: VecDeque::new(), sum: 0, best: None };
        Peaks { sums: [1, 10, 60].map(sum) }
    }
}

impl Peaks {
    /// Adds a second that has WAL, after those before it.
    pub fn add(&mut self, second: i64, total_bytes: u64) {
        for sum in &mut self.sums {
            sum.add(second, total_bytes);
        }
    }

    /// The busiest second.
    pub fn second(&self) -> Option<Peak> {
        self.sums[0].best
    }

    /// The busiest ten seconds.
    pub fn ten_seconds(&self) -> Option<Peak> {
        self.sums[1].best
    }

    /// The busiest minute.
    pub fn minute(&self) -> Option<Peak> {
        self.sums[2].best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_begins_anywhere() {
        let mut peaks = Peaks::default();
        let seconds: [(i64, u64); 6] = [(0, 5), (8, 10), (11, 20), (17, 30), (18, 1), (75, 40)];
        seconds.iter().for_each(|(second, bytes)| peaks.add(*second, *bytes));
        let found = [peaks.second(), peaks.ten_seconds(), peaks.minute()];
        let found = found.map(|peak| peak.map(|peak| (peak.second, peak.total_bytes)));
        assert_eq!(found, [Some((75, 40)), Some((8, 60)), Some((17, 71))]);
    }

    #[test]
    fn a_clock_set_back_begins_anew() {
        let mut peaks = Peaks::default();
        [(100, 5), (101, 5), (40, 7), (41, 2)].iter().for_each(|(s, b)| peaks.add(*s, *b));
        assert_eq!(peaks.ten_seconds().map(|peak| peak.total_bytes), Some(10));
    }
}
