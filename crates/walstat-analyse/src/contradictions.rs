//! Records whose payload contradicts itself: recovery ends at them, or reads what is not there. Of each kind
//! the first one is noted.
//!
//! Of a record that goes on after the window at hand only the first bytes are looked at, so a compressed
//! image in it is not.

use super::unassigned_xids::{NewestXid, Unassigned};
use serde::{Deserialize, Serialize};
use std::mem::{Discriminant, discriminant};
use walstat_format::contradiction::{BlockFault, Contradiction, contradiction, may_contradict};
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_format::rmgr::RecordType;
use walstat_read::scan::observe::Observe;

/// A record that contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradicting {
    /// Where it lies.
    pub lsn: Lsn,
    /// Of which type it is.
    pub record: RecordType,
    /// In what.
    pub what: Contradiction,
}

/// The first such record of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contradictions {
    /// In the order in which they were found.
    pub first: Vec<Contradicting>,
    newest_xid: NewestXid,
}

impl Contradictions {
    /// Takes note of a record that nothing can be wrong with, and that tells nothing of others but its own
    /// id; of another one it does not, and says `false`.
    #[inline(always)]
    pub(super) fn is_usual(&mut self, record: &Record<'_>) -> bool {
        self.newest_xid.see(record);
        !may_contradict(record)
    }

    fn look_into(&mut self, record: &Record<'_>) {
        if let Some(what) = contradiction(record) {
            self.add(Contradicting { lsn: record.lsn, record: record.record_type(), what });
        }
        let found = self.newest_xid.look_into(record);
        self.add_unassigned(found);
    }

    fn add_unassigned(&mut self, found: Option<Unassigned>) {
        if let Some(Unassigned { lsn, record, xid, next }) = found {
            let what = Contradiction::UnassignedXid { xid, next };
            self.add(Contradicting { lsn, record, what });
        }
    }

    fn add(&mut self, found: Contradicting) {
        let kind = kind(&found);
        if self.first.iter().all(|known| self::kind(known) != kind) {
            self.first.push(found);
        }
    }
}

/// Of which kind it is: of blocks, in what.
fn kind(found: &Contradicting) -> (Discriminant<Contradiction>, Option<Discriminant<BlockFault>>) {
    let fault = match &found.what {
        Contradiction::Block(_, fault) => Some(discriminant(fault)),
        _ => None,
    };
    (discriminant(&found.what), fault)
}

impl Observe for Contradictions {
    fn observe(&mut self, record: &Record<'_>) {
        if !self.is_usual(record) {
            self.look_into(record);
        }
    }

    /// Whatever is counted, recovery reads all of it.
    fn passed_over(&mut self, record: &Record<'_>) {
        self.observe(record);
    }

    fn merge(&mut self, later: Contradictions) {
        let between = self.newest_xid.merge(later.newest_xid);
        self.add_unassigned(between);
        later.first.into_iter().for_each(|found| self.add(found));
    }
}
