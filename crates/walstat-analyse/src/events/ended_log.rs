//! Transactions that have ended in a part of the WAL, in few bytes each: until what came before is known,
//! none can be left out, for any of them may have begun there.

use super::ended::Ended;

/// Transactions in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedLog(Vec<u8>);

impl EndedLog {
    /// Adds the next one.
    pub(super) fn push(&mut self, ended: &Ended) {
        let bytes = std::mem::take(&mut self.0);
        // Nothing in it is of a kind that cannot be written.
        self.0 = postcard::to_extend(ended, bytes).unwrap_or_default();
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Ended> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (ended, after) = postcard::take_from_bytes(rest).ok()?;
            rest = after;
            Some(ended)
        })
    }

    /// Frees what it does not need.
    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ended::{Before, End};
    use super::super::file_works::FileWorks;
    use super::*;
    use walstat_format::lsn::Lsn;
    use walstat_format::payload::Time;

    #[test]
    fn what_comes_out_is_what_went_in() {
        let mut log = EndedLog::default();
        for xid in 700..900 {
            log.push(&Ended {
                lsn: Lsn(u64::from(xid) << 20),
                end: End::Recorded {
                    commits: xid % 2 == 0,
                    time: Time(1_700_000_000_000_000),
                    was_prepared: false,
                },
                xid,
                subxids: [xid + 1000].into(),
                files: FileWorks::default(),
                in_catalogs: false,
                database_drop: None,
                dropped: Box::default(),
                before: Before::default(),
            });
        }
        let seen: Vec<(u32, u32)> = log.iter().map(|ended| (ended.xid, ended.subxids[0])).collect();
        assert_eq!(seen, (700..900).map(|xid| (xid, xid + 1000)).collect::<Vec<_>>());
        assert!(log.0.len() < 200 * 32, "{}", log.0.len());
    }
}
