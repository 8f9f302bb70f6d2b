//! Records whose time is not known yet, because no later time was stated so far: by place, each
//! for itself while they are few, then those of a stretch of WAL together.

use std::ops::Range;

/// So many stretches are kept; then each takes twice as much WAL.
const RUNGS: usize = 1 << 15;
/// Places are multiples of 8 bytes.
const FINEST: u32 = 3;

/// Records that start in one stretch of WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// Where the first one starts.
    pub lsn: u64,
    /// Where the last one ends.
    pub end: u64,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Rung {
    /// Adds records of the same stretch.
    fn take_in(&mut self, later: &Rung) {
        self.end = self.end.max(later.end);
        self.count += later.count;
        self.bytes += later.bytes;
    }
}

/// Stretches of WAL, all of one length, each with records in it. The length depends on the records
/// alone, and is 8 bytes for up to 32,768 of them: then each is known by itself.
#[derive(Debug, Clone)]
pub struct Ladder {
    rungs: Vec<Rung>,
    shift: u32,
}

impl Default for Ladder {
    fn default() -> Ladder {
        Ladder { rungs: Vec::new(), shift: FINEST }
    }
}

impl Ladder {
    /// Where the stretch ends in which a place lies.
    #[inline]
    pub fn stretch_end(&self, lsn: u64) -> u64 {
        ((lsn >> self.shift) + 1) << self.shift
    }

    /// Adds records that start in one stretch, after all others.
    #[inline]
    pub fn add(&mut self, rung: Rung) {
        let shift = self.shift;
        match self.rungs.last_mut() {
            Some(last) if last.lsn >> shift == rung.lsn >> shift => last.take_in(&rung),
            _ => self.push(rung),
        }
    }

    fn push(&mut self, rung: Rung) {
        self.rungs.push(rung);
        while self.rungs.len() > RUNGS {
            self.shift += 1;
            let shift = self.shift;
            // In place: new memory costs more than the sums.
            self.rungs.dedup_by(|rung, last| {
                let is_same = last.lsn >> shift == rung.lsn >> shift;
                if is_same {
                    last.take_in(rung);
                }
                is_same
            });
        }
    }

    /// Takes those that start before `lsn` away. What is left is as coarse as before.
    pub fn drain_before(&mut self, lsn: u64) -> std::vec::Drain<'_, Rung> {
        let count = self.rungs.partition_point(|rung| rung.lsn < lsn);
        let all: Range<usize> = 0..count;
        if count == self.rungs.len() {
            self.shift = FINEST;
        }
        self.rungs.drain(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(lsn: u64) -> Rung {
        Rung { lsn, end: lsn + 30, count: 1, bytes: 30 }
    }

    #[test]
    fn few_records_are_known_each() {
        let mut ladder = Ladder::default();
        (0..1000).for_each(|i| ladder.add(rung(i * 32)));
        assert_eq!(
            ladder.drain_before(320).map(|rung| rung.lsn / 32).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
        assert_eq!(ladder.drain_before(u64::MAX).count(), 990);
    }

    #[test]
    fn many_records_share_stretches_and_none_is_lost() {
        let mut ladder = Ladder::default();
        (0..200_000).for_each(|i| ladder.add(rung(i * 32)));
        let end = ladder.stretch_end(0);
        assert!(end > 32);
        let rungs: Vec<Rung> = ladder.drain_before(u64::MAX).collect();
        assert!((RUNGS / 2..=RUNGS).contains(&rungs.len()), "{}", rungs.len());
        assert_eq!(rungs.iter().map(|rung| rung.count).sum::<u64>(), 200_000);
        assert_eq!(rungs.iter().map(|rung| rung.bytes).sum::<u64>(), 6_000_000);
        assert!(rungs.windows(2).all(|pair| pair[0].lsn < pair[1].lsn));
    }
}
