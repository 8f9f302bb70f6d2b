//! Main data of the records that an analyser looks into; one file a resource manager.
//!
//! What a record type is called stands in `rmgr-names.tsv`, and whether a type is one of vacuum, of a commit
//! or of new rows in [`super::rmgr`]. What its main data say is told here; what it does to a page, in the
//! folder `redo` of `walstat-whatif`.
//!
//! Payloads are not aligned in the record and, being read from WAL, may be shorter than they
//! should be: every reader returns `None` rather than guess.

use serde::{Deserialize, Serialize};

pub mod brin;
pub mod btree;
mod btree_work;
pub mod checkpoint;
pub mod dbase;
pub mod gin;
pub mod gist;
pub mod hash;
pub mod heap;
pub mod heap2;
pub mod invalidation;
pub mod multixact;
pub mod prepare;
pub mod prune;
pub mod prune_work;
pub mod relmap;
pub mod seq;
pub mod spgist;
pub mod standby;
pub mod tablespace;
pub mod timeline;
pub mod truncate;
pub mod xact;
pub mod xlog;

/// What of `xl_info` belongs to the resource manager (`XLR_RMGR_INFO_MASK`): the type of the record, and of
/// Heap, Heap2 and transactions a flag beside it, for which their payloads have masks of their own.
#[inline(always)]
pub const fn rmgr_info(info: u8) -> u8 {
    info & 0xF0
}

/// Seconds between 1970-01-01 and 2000-01-01, the epoch of `TimestampTz`.
const POSTGRES_EPOCH_SECONDS: i64 = 946_684_800;

/// A second in microseconds.
pub const SECOND: i64 = 1_000_000;

/// A moment in microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Time(pub i64);

impl Time {
    /// From a `TimestampTz`: microseconds since 2000-01-01 UTC.
    pub(crate) fn from_timestamptz(microseconds: i64) -> Time {
        Time(microseconds.saturating_add(POSTGRES_EPOCH_SECONDS * SECOND))
    }

    /// From a `pg_time_t`: seconds since 1970-01-01 UTC.
    pub(crate) fn from_pg_time(seconds: i64) -> Time {
        Time(seconds.saturating_mul(SECOND))
    }

    /// The second in which it lies, counted from 1970.
    #[inline]
    pub fn second(self) -> i64 {
        self.0.div_euclid(SECOND)
    }
}
