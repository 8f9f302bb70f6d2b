//! Sums by stretches of time of one width, those without a record left out.

use crate::deferred_log::Tally;
use std::collections::BTreeMap;
use walstat_format::lsn::Lsn;

/// Records of one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// Lowest start and highest end of its records; `None` without any.
    pub range: Option<(Lsn, Lsn)>,
    /// Its records.
    pub tally: Tally,
    /// Commits.
    pub commits: u64,
}

/// Buckets of one width, by the second in which they begin, from 1970: a multiple of the width.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buckets {
    width: i64,
    rows: BTreeMap<i64, Bucket>,
    /// The one that is added to.
    now: Option<(i64, Bucket)>,
}

impl Buckets {
    /// None yet; `width`: seconds, at least 1.
    pub fn new(width: i64) -> Buckets {
        Buckets { width: width.max(1), rows: BTreeMap::new(), now: None }
    }

    /// Seconds in a bucket.
    pub fn width(&self) -> i64 {
        self.width
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len() + usize::from(self.now.is_some())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bucket of a second.
    #[inline]
    pub fn at(&mut self, second: i64) -> &mut Bucket {
        let width = self.width;
        if self.now.is_none_or(|(now, _)| !(now..now + width).contains(&second)) {
            self.go_to(second);
        }
        &mut self.now.get_or_insert_default().1
    }

    #[inline(never)]
    fn go_to(&mut self, second: i64) {
        self.put_down();
        let begin = second - second.rem_euclid(self.width);
        let bucket = self.rows.remove(&begin).unwrap_or_default();
        self.now = Some((begin, bucket));
    }

    fn put_down(&mut self) {
        self.rows.extend(self.now.take());
    }

    /// Adds a bucket of a width that divides this one.
    pub fn add(&mut self, second: i64, bucket: &Bucket) {
        let row = self.at(second);
        row.tally += bucket.tally;
        row.commits += bucket.commits;
        if let Some((start, end)) = bucket.range {
            row.extend(start, end);
        }
    }

    /// The same in buckets so wide.
    pub fn widened(self, width: i64) -> Buckets {
        let mut wide = Buckets::new(width);
        self.into_rows().iter().for_each(|(second, row)| wide.add(*second, row));
        wide
    }

    /// Takes those away that begin in `[from, until)`; leaves the others.
    pub fn take_range(&mut self, from: i64, until: i64) -> BTreeMap<i64, Bucket> {
        self.put_down();
        let mut taken = self.rows.split_off(&from);
        let mut after = taken.split_off(&until);
        self.rows.append(&mut after);
        taken
    }

    /// All of them, ascending.
    pub fn into_rows(mut self) -> BTreeMap<i64, Bucket> {
        self.put_down();
        self.rows
    }
}

impl Bucket {
    /// Adds records: how many, and where the first starts and the last ends.
    #[inline]
    pub fn add_records(&mut self, count: u64, bytes: u64, start: u64, end: u64) {
        self.tally.count += count;
        self.tally.total_bytes += bytes;
        self.extend(Lsn(start), Lsn(end).aligned());
    }

    /// Adds images of records that are added besides.
    #[inline]
    pub fn add_images(&mut self, count: u64, bytes: u64) {
        self.tally.fpi_count += count;
        self.tally.fpi_bytes += bytes;
    }

    #[inline]
    fn extend(&mut self, start: Lsn, end: Lsn) {
        self.range = Some(match self.range {
            Some((first, last)) => (first.min(start), last.max(end)),
            None => (start, end),
        });
    }
}
