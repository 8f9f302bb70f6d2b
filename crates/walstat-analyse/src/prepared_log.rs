//! Which transactions are prepared at any place of a segment in which a newer timeline begins: whether a
//! server opens at a place there depends on it ([`super::two_phase`]).
//!
//! Segments are of any size up to 1 GB, and what is asked for is known in the end only. So what is prepared
//! in the last 1 GB is remembered, and for good where a timeline begins.

use super::two_phase::{PREPARED_MAX, Prepared, Standing};
use std::collections::BTreeMap;
use walstat_format::lsn::Lsn;
use walstat_format::payload::prepare;
use walstat_format::payload::timeline::Switch;
use walstat_format::payload::xact::{self, End};
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr::{TRANSACTION, XLOG};
use walstat_read::scan::few::Few;
use walstat_read::scan::observe::Observe;

/// No segment is larger (`WalSegMaxSize` in `src/include/access/xlog_internal.h`).
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// From where to where a transaction is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    prepared: Prepared,
    /// The record that ended it.
    ended: Option<Lsn>,
}

/// Prepared transactions of the last 1 GB, and of the last 1 GB before each place where a timeline begins.
#[derive(Debug, Clone, Default)]
pub struct PreparedLog {
    /// By place.
    last: BTreeMap<Lsn, Span>,
    kept: BTreeMap<Lsn, Span>,
    /// Places of those that have not ended.
    open: BTreeMap<u32, Lsn>,
    /// Those that were prepared before all that was seen, and where they ended.
    ended: BTreeMap<u32, Lsn>,
    /// Records that say of which timeline they are, where that is another than before.
    timelines: Vec<(Lsn, u32)>,
    before: Few,
}

impl PreparedLog {
    /// How replay stands before a record at a place, of transactions that were prepared `since`.
    pub fn standing(&self, since: Lsn, place: Lsn) -> Standing {
        let is_open = |span: &&Span| span.ended.is_none_or(|at| at >= place);
        let last = |spans: &BTreeMap<Lsn, Span>| {
            let mut spans = spans.range(since.min(place)..place).rev().map(|(_, span)| *span);
            spans.find(|span| is_open(&span)).map(|span| span.prepared)
        };
        let mut timelines = self.timelines.iter().rev();
        let timeline = timelines.find(|(lsn, _)| *lsn < place).map(|(_, it)| *it);
        Standing { prepared: last(&self.last).or_else(|| last(&self.kept)), timeline }
    }

    fn add(&mut self, prepared: Prepared) {
        self.open.insert(prepared.xid, prepared.lsn);
        self.last.insert(prepared.lsn, Span { prepared, ended: None });
        self.forget();
    }

    fn end(&mut self, xid: u32, at: Lsn) {
        let Some(place) = self.open.remove(&xid) else {
            if self.ended.len() < PREPARED_MAX {
                self.ended.entry(xid).or_insert(at);
            }
            return;
        };
        let span = self.last.get_mut(&place).or_else(|| self.kept.get_mut(&place));
        if let Some(span) = span {
            span.ended = Some(at);
        }
    }

    /// A record says of which timeline it is.
    fn is_of(&mut self, timeline: u32, lsn: Lsn) {
        let is_new = self.timelines.last().is_none_or(|(_, before)| *before != timeline);
        if is_new && self.before.takes(lsn) {
            self.keep(lsn);
            self.timelines.push((lsn, timeline));
        }
    }

    /// Keeps what was prepared before a place where a timeline begins.
    fn keep(&mut self, begin: Lsn) {
        let near = self.last.iter().filter(|(_, span)| !is_far(span, begin));
        self.kept.extend(near.map(|(lsn, span)| (*lsn, *span)));
        self.last.retain(|lsn, _| !self.kept.contains_key(lsn));
        while self.kept.len() > PREPARED_MAX {
            self.kept.pop_first();
        }
    }

    /// Forgets what lies too far behind, and of more than there can be the first.
    fn forget(&mut self) {
        let Some((&now, _)) = self.last.last_key_value() else { return };
        while let Some((lsn, span)) = self.last.first_key_value().map(|(lsn, span)| (*lsn, *span))
            && (is_far(&span, now) || self.last.len() > PREPARED_MAX)
        {
            self.last.remove(&lsn);
            if self.open.get(&span.prepared.xid) == Some(&lsn) {
                self.open.remove(&span.prepared.xid);
            }
        }
    }
}

/// Whether it cannot be in the segment of a place, nor go on in it.
fn is_far(span: &Span, place: Lsn) -> bool {
    span.prepared.end.0.saturating_add(SEGMENT_BYTES_MAX) <= place.0
}

impl Observe for PreparedLog {
    // What was prepared is named behind lists that may be long.
    const WHOLE: bool = true;

    #[inline]
    fn observe(&mut self, record: &Record<'_>) {
        let (lsn, header) = (record.lsn, &record.header);
        match (header.rmgr, header.rmgr_info()) {
            (XLOG, xlog::CHECKPOINT_SHUTDOWN | xlog::END_OF_RECOVERY) => {
                let switch = record.main_data_start().first_chunk().copied().map(Switch::parse);
                switch.into_iter().for_each(|switch| self.is_of(switch.to, lsn));
            }
            (TRANSACTION, info) => match info & xact::OPCODE_MASK {
                xact::PREPARE => {
                    let xid = prepare::xid(record.main_data_start());
                    let end = record.end;
                    xid.into_iter().for_each(|xid| self.add(Prepared { xid, lsn, end }));
                }
                xact::COMMIT_PREPARED | xact::ABORT_PREPARED => {
                    let main_data = record.main_data().unwrap_or_default();
                    let end = End::parse(header.info, &main_data, record.version);
                    let xid = end.and_then(|end| end.prepared_xid);
                    xid.into_iter().for_each(|xid| self.end(xid, lsn));
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn passed_over(&mut self, record: &Record<'_>) {
        self.observe(record);
    }

    fn merge(&mut self, later: PreparedLog) {
        later.ended.into_iter().for_each(|(xid, at)| self.end(xid, at));
        let is_known = |(_, timeline): &(Lsn, u32)| {
            self.timelines.last().is_some_and(|(_, before)| before == timeline)
        };
        let known = usize::from(later.timelines.first().is_some_and(is_known));
        for (lsn, timeline) in later.timelines.into_iter().skip(known) {
            self.keep(lsn);
            self.timelines.push((lsn, timeline));
        }
        self.last.extend(later.last);
        self.kept.extend(later.kept);
        self.open.extend(later.open);
        self.before.merge(later.before);
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(xid: u32, lsn: u64) -> Prepared {
        Prepared { xid, lsn: Lsn(lsn), end: Lsn(lsn + 200) }
    }

    /// What was prepared since 0.
    fn xid(log: &PreparedLog, place: u64) -> Option<u32> {
        log.standing(Lsn(0), Lsn(place)).prepared.map(|it| it.xid)
    }

    #[test]
    fn a_transaction_is_prepared_up_to_the_record_that_ends_it() {
        let mut log = PreparedLog::default();
        log.is_of(1, Lsn(0x100));
        log.add(prepared(700, 0x1000));
        log.add(prepared(701, 0x2000));
        log.end(701, Lsn(0x3000));
        log.is_of(2, Lsn(0x4000));
        let xids = [0x1000, 0x1001, 0x2001, 0x3000, 0x3001].map(|place| xid(&log, place));
        assert_eq!(xids, [None, Some(700), Some(701), Some(701), Some(700)]);
        assert_eq!(log.standing(Lsn(0x1001), Lsn(0x3001)).prepared, None);
        let timelines = [0x100, 0x4000, 0x4001].map(|it| log.standing(Lsn(0), Lsn(it)).timeline);
        assert_eq!(timelines, [None, Some(1), Some(2)]);
    }

    /// However it was divided.
    #[test]
    fn what_was_prepared_before_a_timeline_began_is_remembered() {
        let far = 4 * SEGMENT_BYTES_MAX;
        let steps: [fn(&mut PreparedLog); 6] = [
            |log| log.is_of(1, Lsn(0x100)),
            |log| log.add(prepared(700, 0x1000)),
            |log| log.end(700, Lsn(0x2000)),
            |log| log.is_of(2, Lsn(0x3000)),
            |log| log.add(prepared(701, 4 * SEGMENT_BYTES_MAX - 0x9000)),
            |log| log.add(prepared(702, 8 * SEGMENT_BYTES_MAX)),
        ];
        for divided in 0..=steps.len() {
            let (before, after) = steps.split_at(divided);
            let of = |steps: &[fn(&mut PreparedLog)]| {
                let mut log = PreparedLog::default();
                steps.iter().for_each(|step| step(&mut log));
                log
            };
            let mut log = of(before);
            log.merge(of(after));
            assert_eq!([xid(&log, 0x1800), xid(&log, 0x2800)], [Some(700), None], "{divided}");
            assert_eq!([xid(&log, far), xid(&log, 9 * SEGMENT_BYTES_MAX)], [None, Some(702)]);
            assert_eq!(log.standing(Lsn(0), Lsn(far)).timeline, Some(2));
        }
    }
}
