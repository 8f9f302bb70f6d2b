//! Transactions that have written something and not ended yet. A server that stops ends all of them
//! first; one that crashed leaves them as they were.

use crate::xid_set::XidSet;
use hashbrown::HashSet;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::xact;
use walstat_format::record::Record;
use walstat_format::record_header::FIRST_NORMAL_XID;
use walstat_format::rmgr::TRANSACTION;

/// Slots for transactions seen lately; a power of two.
const SLOTS: usize = 64;
/// So many subtransactions are within the bytes of a record that are always at hand.
const KNOWN_XIDS: usize = 128;

/// What became of transactions in a stretch of WAL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTransactions {
    /// Those that wrote something in it and did not end, ascending.
    pub open: Vec<u32>,
    /// Those that ended in it, ascending: the first of some in a row, and the last. They may have begun
    /// before it.
    pub ended: Vec<(u32, u32)>,
    /// Whether others may have ended too.
    pub is_unsure: bool,
}

/// Follows transactions from record to record.
#[derive(Debug, Clone)]
pub(super) struct TransactionWatch {
    /// Open ones, by the lowest bits of their xid; 0 is none.
    recent: [u32; SLOTS],
    /// Open ones that had to make room there.
    open: HashSet<u32>,
    ended: XidSet,
    is_unsure: bool,
}

impl Default for TransactionWatch {
    fn default() -> TransactionWatch {
        TransactionWatch {
            recent: [0; SLOTS],
            open: HashSet::new(),
            ended: XidSet::default(),
            is_unsure: false,
        }
    }
}

impl TransactionWatch {
    /// Takes note of a record.
    #[inline(always)]
    pub(super) fn note(&mut self, record: &Record<'_>) {
        let xid = record.header.xid;
        if record.header.rmgr == TRANSACTION {
            // A copy: the record itself then stays in registers.
            let record = *record;
            self.note_transaction(&record);
        } else if xid >= FIRST_NORMAL_XID && *self.slot(xid) != xid {
            self.begin(xid);
        }
    }

    #[inline(always)]
    fn slot(&mut self, xid: u32) -> &mut u32 {
        &mut self.recent[xid as usize % SLOTS]
    }

    #[inline(never)]
    fn begin(&mut self, xid: u32) {
        let before = std::mem::replace(self.slot(xid), xid);
        self.open.remove(&xid);
        if before != 0 {
            self.open.insert(before);
        }
    }

    #[inline(never)]
    fn note_transaction(&mut self, record: &Record<'_>) {
        let (xid, info) = (record.header.xid, record.header.info);
        let ends =
            [xact::COMMIT, xact::ABORT, xact::PREPARE, xact::COMMIT_PREPARED, xact::ABORT_PREPARED];
        if !ends.contains(&(info & xact::OPCODE_MASK)) {
            return;
        }
        self.end(xid);
        if xact::ends_alone(info).is_none() && self.end_all(record).is_none() {
            self.is_unsure = true;
        }
    }

    /// Ends all transactions that a record names; `None` where it cannot be told which. One that was
    /// prepared has ended by then.
    fn end_all(&mut self, record: &Record<'_>) -> Option<()> {
        let (info, main_data) = (record.header.info, record.main_data_start());
        let subxids = if info & xact::OPCODE_MASK == xact::PREPARE {
            let prepare = Prepare::parse(main_data, record.version)?;
            self.end(prepare.xid);
            prepare.subxids
        } else {
            xact::ended_subxids(info, main_data)?
        };
        let subxids: Vec<u32> = subxids.iter().take(KNOWN_XIDS + 1).collect();
        // How many more are at hand depends on the way of reading.
        if subxids.len() > KNOWN_XIDS {
            return None;
        }
        subxids.into_iter().for_each(|xid| self.end(xid));
        Some(())
    }

    fn end(&mut self, xid: u32) {
        if xid < FIRST_NORMAL_XID {
            return;
        }
        if *self.slot(xid) == xid {
            *self.slot(xid) = 0;
        } else {
            self.open.remove(&xid);
        }
        self.ended.insert(xid);
    }

    /// What became of them so far; begins anew. `None` if nothing is known.
    pub(super) fn take(&mut self) -> Option<Box<OpenTransactions>> {
        let TransactionWatch { recent, open, mut ended, is_unsure } = std::mem::take(self);
        let recent = recent.into_iter().filter(|xid| *xid != 0);
        let mut open: Vec<u32> = open.into_iter().chain(recent).collect();
        open.sort_unstable();
        let found = OpenTransactions { open, ended: in_rows(ended.bitmap()), is_unsure };
        (found != OpenTransactions::default()).then(|| Box::new(found))
    }
}

/// The numbers of a set that follow each other, together.
fn in_rows(set: &RoaringBitmap) -> Vec<(u32, u32)> {
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for number in set {
        match rows.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => rows.push((number, number)),
        }
    }
    rows
}

impl OpenTransactions {
    fn has_ended(&self, xid: u32) -> bool {
        let after = self.ended.partition_point(|(first, _)| *first <= xid);
        let row = after.checked_sub(1).and_then(|row| self.ended.get(row));
        row.is_some_and(|(_, last)| xid <= *last)
    }

    /// Adds what became of them in the stretch after this one.
    pub fn append(&mut self, later: &OpenTransactions) {
        self.open.retain(|xid| !later.has_ended(*xid));
        self.open.extend(&later.open);
        self.open.sort_unstable();
        self.open.dedup();
        self.is_unsure |= later.is_unsure;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_in_a_later_stretch_is_not_open() {
        let mut watch = TransactionWatch::default();
        for xid in [700, 764, 701, 700, 764] {
            if *watch.slot(xid) != xid {
                watch.begin(xid);
            }
        }
        watch.end(701);
        watch.end(690);
        let mut first = *watch.take().expect("transactions");
        assert_eq!((&*first.open, &*first.ended), (&[700, 764][..], &[(690, 690), (701, 701)][..]));
        assert_eq!(watch.take(), None);
        watch.begin(800);
        // It goes on to write, and then ends.
        watch.begin(764);
        watch.end(764);
        watch.end(765);
        first.append(&watch.take().expect("transactions"));
        assert_eq!(first.open, [700, 800]);
    }
}
