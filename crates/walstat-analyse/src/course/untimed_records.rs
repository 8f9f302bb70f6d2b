//! Records whose time is not known yet, because no later record has stated a time so far. They are kept
//! by their place in the WAL: one by one while they are few, else in groups of neighbours.

use std::ops::Range;

/// So many groups are kept; then each covers twice as much WAL.
const GROUPS: usize = 1 << 15;
/// Places are multiples of 8 bytes.
const FINEST: u32 = 3;

/// Records that start within one piece of WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UntimedGroup {
    /// Where the first one starts.
    pub lsn: u64,
    /// Where the last one ends.
    pub end: u64,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl UntimedGroup {
    /// Adds records of the same group.
    fn take_in(&mut self, later: &UntimedGroup) {
        self.end = self.end.max(later.end);
        self.count += later.count;
        self.bytes += later.bytes;
    }
}

/// Groups of records, each of the same length of WAL. That length depends on the records alone: up to
/// 32,768 of them it is 8 bytes, so that each record is a group of its own.
#[derive(Debug, Clone)]
pub(super) struct UntimedRecords {
    groups: Vec<UntimedGroup>,
    shift: u32,
}

impl Default for UntimedRecords {
    fn default() -> UntimedRecords {
        UntimedRecords { groups: Vec::new(), shift: FINEST }
    }
}

impl UntimedRecords {
    /// Where the group ends that a place belongs to.
    #[inline]
    pub(super) fn group_end(&self, lsn: u64) -> u64 {
        ((lsn >> self.shift) + 1) << self.shift
    }

    /// Adds records of one group, after all others.
    #[inline]
    pub(super) fn add(&mut self, group: UntimedGroup) {
        let shift = self.shift;
        match self.groups.last_mut() {
            Some(last) if last.lsn >> shift == group.lsn >> shift => last.take_in(&group),
            _ => self.push(group),
        }
    }

    fn push(&mut self, group: UntimedGroup) {
        self.groups.push(group);
        while self.groups.len() > GROUPS {
            self.shift += 1;
            let shift = self.shift;
            // In place: new memory costs more than the sums.
            self.groups.dedup_by(|group, last| {
                let is_same = last.lsn >> shift == group.lsn >> shift;
                if is_same {
                    last.take_in(group);
                }
                is_same
            });
        }
    }

    /// Takes those that start before `lsn` away. What is left is as coarse as before.
    pub(super) fn drain_before(&mut self, lsn: u64) -> std::vec::Drain<'_, UntimedGroup> {
        let count = self.groups.partition_point(|group| group.lsn < lsn);
        let all: Range<usize> = 0..count;
        if count == self.groups.len() {
            self.shift = FINEST;
        }
        self.groups.drain(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(lsn: u64) -> UntimedGroup {
        UntimedGroup { lsn, end: lsn + 30, count: 1, bytes: 30 }
    }

    #[test]
    fn few_records_are_known_each() {
        let mut records = UntimedRecords::default();
        (0..1000).for_each(|i| records.add(group(i * 32)));
        assert_eq!(
            records.drain_before(320).map(|group| group.lsn / 32).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
        assert_eq!(records.drain_before(u64::MAX).count(), 990);
    }

    #[test]
    fn many_records_share_stretches_and_none_is_lost() {
        let mut records = UntimedRecords::default();
        (0..200_000).for_each(|i| records.add(group(i * 32)));
        let end = records.group_end(0);
        assert!(end > 32);
        let groups: Vec<UntimedGroup> = records.drain_before(u64::MAX).collect();
        assert!((GROUPS / 2..=GROUPS).contains(&groups.len()), "{}", groups.len());
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), 200_000);
        assert_eq!(groups.iter().map(|group| group.bytes).sum::<u64>(), 6_000_000);
        assert!(groups.windows(2).all(|pair| pair[0].lsn < pair[1].lsn));
    }
}
