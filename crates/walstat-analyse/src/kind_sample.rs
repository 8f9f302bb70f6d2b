//! Kinds of transactions for every report: of a sample of the transactions, one in 64, since what all of them
//! did takes more room than a report's partial result has. Which ones are in it depends on their xids alone,
//! so it does not depend on how the WAL was divided. Four with xids in a row are in it together: with them
//! are most of their subtransactions.

use super::finished_transactions::FinishedRows;
use super::kind::FoundKinds;
use super::transaction::Transactions;
use serde::{Deserialize, Serialize};
use walstat_format::record::Record;
use walstat_format::rmgr::STANDBY;
use walstat_read::scan::observe::Observe;

/// So many xids in a row, as a power of two, are in the sample together.
const GROUP_SHIFT: u32 = 2;
/// Of so many groups, as a power of two, one is in the sample.
const ONE_IN_SHIFT: u32 = 6;
/// 2³² divided by the golden ratio: multiples of it are spread evenly.
const GOLDEN: u32 = 0x9E37_79B1;

/// Transactions of the sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KindSample(Transactions);

impl Default for KindSample {
    fn default() -> KindSample {
        KindSample(Transactions::new(FinishedRows::unwanted(), true))
    }
}

impl KindSample {
    /// The kinds of the transactions of the sample.
    pub fn finish(self) -> FoundKinds {
        self.0.finish().kinds.unwrap_or_default()
    }
}

/// Whether a record belongs to a transaction of the sample. The end of one that was prepared has another
/// xid, and is not needed to tell what it did.
#[inline(always)]
fn is_in(record: &Record<'_>) -> bool {
    let xid = record.header.xid;
    let place = (xid >> GROUP_SHIFT).wrapping_mul(GOLDEN) >> (u32::BITS - ONE_IN_SHIFT);
    place == 0 && xid != 0 && record.header.rmgr != STANDBY
}

impl Observe for KindSample {
    // Lists of subtransactions may be long.
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if is_in(record) {
            self.0.take(record, record.block_mark());
        }
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if is_in(record) {
            self.0.passed_over(record);
        }
    }

    fn merge(&mut self, later: KindSample) {
        self.0.merge(later.0);
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn shrink(&mut self) {
        self.0.shrink();
    }
}
