//! The commit log (`pg_xact`, `pg_clog` before 10; `clog.c`): two bits a transaction.

use super::slru::Slru;
use super::warning;
use crate::catalog::xid_status::XidStatus;
use std::path::Path;
use walstat_format::record_header::FIRST_NORMAL_XID;
use walstat_format::version::Version;
use walstat_input::control::Control;

const XIDS_PER_BYTE: u32 = 4;
/// `%04X`.
const NAME_DIGITS: usize = 4;

/// The commit log of a data directory.
pub(super) struct CommitLog {
    slru: Slru,
    oldest: u32,
    /// The next xid when the last checkpoint began.
    next: u32,
    is_warned: bool,
}

impl CommitLog {
    pub(super) fn new(directory: &Path, version: &Version, control: &Control) -> CommitLog {
        let path = directory.join(version.commit_log);
        let slru = Slru::new(path, control.page_bytes, control.slru_pages, NAME_DIGITS);
        let next = control.checkpoint.next_xid as u32;
        CommitLog { slru, oldest: control.checkpoint.oldest_xid, next, is_warned: false }
    }

    /// What became of a transaction. One that the log does not have is unknown; where it should
    /// have it, that is said once.
    pub(super) fn status(&mut self, xid: u32, warnings: &mut Vec<String>) -> XidStatus {
        if xid < FIRST_NORMAL_XID {
            return if xid == 0 { XidStatus::Unknown } else { XidStatus::Committed };
        }
        let page_xids = self.slru.page_bytes() * XIDS_PER_BYTE;
        let (page, place) = (u64::from(xid / page_xids), xid % page_xids);
        let byte = self.slru.bytes(page, (place / XIDS_PER_BYTE) as usize, 1);
        let bits =
            byte.and_then(|byte| byte.first()).map(|byte| byte >> (place % XIDS_PER_BYTE * 2) & 3);
        match bits {
            Some(1) => XidStatus::Committed,
            Some(2) => XidStatus::Aborted,
            // Running, or a subtransaction whose top-level transaction is.
            Some(_) => XidStatus::InProgress,
            // Begun after the last checkpoint: its page need not have been written.
            None if is_before(self.next, xid) || xid == self.next => XidStatus::InProgress,
            None => {
                self.warn(page, xid, warnings);
                XidStatus::Unknown
            }
        }
    }

    fn warn(&mut self, page: u64, xid: u32, warnings: &mut Vec<String>) {
        if !is_before(xid, self.oldest) && !self.is_warned {
            let text = format!("does not say what became of transaction {xid}");
            warnings.push(warning(&self.slru.path(page), text));
            self.is_warned = true;
        }
    }
}

/// Xids turn over: half of them are before any one.
fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}
