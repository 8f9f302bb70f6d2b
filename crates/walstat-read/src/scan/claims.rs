//! What whole records say that may be impossible, to be judged when all is read: that they are of another
//! timeline, or replace another record, or are of a type that the release does not have, or refer to other
//! blocks than those that redo reads, or switch to the next segment and have data.

use super::few::Few;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_format::block::needed::ReferenceFault;
use walstat_format::lsn::Lsn;
use walstat_format::payload::timeline::Switch;
use walstat_format::payload::xlog::{self, OverwriteContrecord};
use walstat_format::record::Record;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_format::rmgr::{XLOG, is_replayed, needed_blocks};

/// What records say, in the order of the WAL: of those that are noted one by one, few of each stretch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Claims {
    /// Records that say of which timeline they are, and which one was before.
    pub(super) timelines: Vec<(Lsn, Switch)>,
    timelines_before: Few,
    /// Records that replace torn ones.
    pub(super) replacing: Vec<Replacing>,
    replacing_before: Few,
    /// Where the first record lies of each resource manager and `xl_info` that redo does not know.
    pub(super) unknown: BTreeMap<(u8, u8), Lsn>,
    /// The same of those whose references are not what redo asks for, and what is wrong with them.
    pub(super) wrong_references: BTreeMap<(u8, u8), (Lsn, ReferenceFault)>,
    /// Where the first `XLOG_SWITCH` lies that has data.
    pub(super) long_switch: Option<Lsn>,
}

/// A record that replaces one that a crash tore (`XLOG_OVERWRITE_CONTRECORD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacing {
    /// Where it lies.
    pub lsn: Lsn,
    /// Where the torn one began, as it says.
    pub says: Lsn,
    /// Where it did begin: where the record before it ended. `None`: that one was not read.
    pub torn: Option<Lsn>,
}

impl Replacing {
    /// Whether it names another record than the torn one: a server stops there
    /// (`VerifyOverwriteContrecord` in `src/backend/access/transam/xlogrecovery.c`). Where a page begins,
    /// its header comes first.
    pub fn is_mismatched(&self, page_bytes: u32) -> bool {
        let first = |torn: Lsn| torn.0.is_multiple_of(u64::from(page_bytes));
        self.torn.is_some_and(|torn| {
            let header = self.says.0.checked_sub(torn.0);
            let header = header.filter(|bytes| PAGE_HEADERS.contains(bytes) && first(torn));
            self.says != torn && header.is_none()
        })
    }
}

/// Bytes of page headers, within a segment and at its beginning.
const PAGE_HEADERS: [u64; 2] = [24, 40];

impl Claims {
    /// Takes note of a record of an unusual type, or with unusual references; `torn`: where the next record
    /// after the one before was to begin.
    pub(super) fn note(&mut self, record: &Record<'_>, torn: Option<Lsn>) {
        let (lsn, header) = (record.lsn, &record.header);
        let (rmgr, info) = (header.rmgr, header.rmgr_info());
        if !is_replayed(rmgr, info, record.version) {
            self.unknown.entry((rmgr, info)).or_insert(lsn);
            return;
        }
        let is_switch = (rmgr, info) == (XLOG, xlog::SWITCH);
        if is_switch && header.total_bytes as usize > RECORD_HEADER_BYTES {
            self.long_switch.get_or_insert(lsn);
            return;
        }
        if let Some(fault) = needed_blocks(rmgr, info, record.version).fault(record.blocks()) {
            self.wrong_references.entry((rmgr, info)).or_insert((lsn, fault));
        }
        if rmgr != XLOG {
            return;
        }
        match info {
            xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN | xlog::END_OF_RECOVERY => {
                let switch = record.main_data().and_then(|data| data.first_chunk().copied());
                let switch = switch.filter(|_| self.timelines_before.takes(lsn));
                self.timelines.extend(switch.map(|switch| (lsn, Switch::parse(switch))));
            }
            xlog::OVERWRITE_CONTRECORD => {
                let says = OverwriteContrecord::parse(record.main_data_start());
                let replacing =
                    |it: OverwriteContrecord| Replacing { lsn, says: it.overwritten, torn };
                let says = says.filter(|_| self.replacing_before.takes(lsn));
                self.replacing.extend(says.map(replacing));
            }
            _ => {}
        }
    }

    /// Adds what later records say; `torn`: where the first of them was to begin, if nothing is missing
    /// before it.
    pub(super) fn append(&mut self, later: Claims, torn: Option<Lsn>) {
        self.timelines.extend(later.timelines);
        self.timelines_before.merge(later.timelines_before);
        self.replacing_before.merge(later.replacing_before);
        let joined = |it: Replacing| Replacing { torn: it.torn.or(torn), ..it };
        self.replacing.extend(later.replacing.into_iter().map(joined));
        self.long_switch = self.long_switch.or(later.long_switch);
        for (kind, lsn) in later.unknown {
            self.unknown.entry(kind).or_insert(lsn);
        }
        for (kind, fault) in later.wrong_references {
            self.wrong_references.entry(kind).or_insert(fault);
        }
    }

    /// Records that replace torn ones, ascending.
    pub fn replacing(&self) -> &[Replacing] {
        &self.replacing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_replaces_the_one_that_began_where_the_last_one_ended() {
        let replacing = |says, torn: Option<u64>| Replacing {
            lsn: Lsn(0x10_4018),
            says: Lsn(says),
            torn: torn.map(Lsn),
        };
        assert!(!replacing(0x10_3FF0, Some(0x10_3FF0)).is_mismatched(8192));
        assert!(!replacing(0x10_2018, Some(0x10_2000)).is_mismatched(8192));
        assert!(!replacing(0x10_3FF0, None).is_mismatched(8192));
        assert!(replacing(0x10_3FE8, Some(0x10_3FF0)).is_mismatched(8192));
        assert!(replacing(0x10_3FF0 + 24, Some(0x10_3FF0)).is_mismatched(8192));
        let mut all = Claims::default();
        let later = vec![replacing(0x10_0108, None)];
        let later = Claims { replacing: later, ..Claims::default() };
        all.append(later, Some(Lsn(0x10_0100)));
        assert!(all.replacing().iter().all(|it| it.is_mismatched(8192)));
    }
}
