//! What every byte of the input is, as in bookkeeping: each is counted ("booked") under exactly one
//! heading, so that their sum is that of the input.
//!
//! The bytes of counted records are not here: dimensions count them.

use serde::{Deserialize, Serialize};

/// What a byte is, if it is not part of a counted record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Heading {
    /// A record that the filters left out.
    Filtered,
    /// Alignment after a record.
    Padding,
    /// A page header.
    PageHeader,
    /// The tail of a record that began before the range.
    Continuation,
    /// The rest of a segment after an `XLOG_SWITCH`.
    Switch,
    /// A torn record that recovery replaced.
    Overwritten,
    /// A record at the end of the WAL, which is not complete.
    Incomplete,
    /// Old content of a recycled segment.
    Stale,
    /// Never written.
    Zero,
    /// A second copy of a segment.
    Duplicate,
    /// Skipped because something is wrong there.
    Damaged,
}

/// How many headings there are.
const HEADINGS: usize = Heading::Damaged as usize + 1;

/// Bytes by heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Books([u64; HEADINGS]);

impl Books {
    /// Bytes under `heading`.
    pub fn get(&self, heading: Heading) -> u64 {
        self.0[heading as usize]
    }

    /// Adds `bytes` under `heading`.
    pub fn add(&mut self, heading: Heading, bytes: u64) {
        self.0[heading as usize] += bytes;
    }

    /// Takes up to `bytes` out of `heading`, and returns how many were taken.
    pub fn take(&mut self, heading: Heading, bytes: u64) -> u64 {
        let taken = bytes.min(self.get(heading));
        self.0[heading as usize] -= taken;
        taken
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Books) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, bytes)| *sum += bytes);
    }

    /// All bytes under all headings.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
