//! How the WAL ends. It has no end marker: it ends where no valid record follows, and what is there
//! instead tells why.

use super::damage::{Cause, Gap, PagesBehind};
use super::run::Run;
use walstat_format::lsn::Lsn;
use walstat_format::page::{Geometry, LONG_HEADER_BYTES, PageFault};
use walstat_format::payload::xlog;
use walstat_format::record_header::{HeaderFault, RECORD_HEADER_BYTES, RecordHeader};
use walstat_format::rmgr::XLOG;

named! {
    /// How the WAL ends: the names that reports use, in the words of README.md.
    pub enum EndingKind {
        Complete "complete" "Ends with the last record of the range";
        Shutdown "shutdown" "Ends with a shutdown checkpoint: the server stopped, or recovered from a crash";
        Zeroed "zeroed" "Ends with zeros after the last record, as a running server leaves it";
        Recycled "recycled" "Ends with the old content of a recycled segment after the last record";
        PartialPage "partial_page" "Ends with the file, before its segment is full";
        IncompleteRecord "incomplete_record" "Ends inside a record that is not whole yet";
        Switch "switch" "Ends with a segment that was closed early (XLOG_SWITCH)";
        Overwritten "overwritten" "Ends after a torn record that recovery replaced";
        TimelineSwitch "timeline_switch" "Ends where a newer timeline branches off";
        Damage "damage" "Ends in damage: what follows the last record is no normal end";
    }
}

/// How and where the WAL ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub kind: EndingKind,
    /// Where the next record would start.
    pub lsn: Lsn,
    /// Where it was seen that none does: there, or in a later file, where the record at `lsn` goes on.
    pub seen_at: Lsn,
}

impl Ending {
    /// One that is seen where it is.
    pub fn at(kind: EndingKind, lsn: Lsn) -> Ending {
        Ending { kind, lsn, seen_at: lsn }
    }
}

/// A disk writes a sector whole or not at all: only a record that lies in two of them can be torn.
const SECTOR_BYTES: u64 = 512;

/// How the WAL ends, with the last run that has records; `is_standbys`: whether a standby receives it.
pub fn name(run: &Run, geometry: &Geometry, is_standbys: bool) -> Ending {
    let next = run.last.map_or(run.start, |last| last.next);
    if let (Some(end), None) = (run.range_end, &run.gap) {
        // A limit is reached at a record's last byte; the next record would start after the padding.
        let lsn = if end.aligned() == next { next } else { end };
        return Ending::at(EndingKind::Complete, lsn.min(run.end));
    }
    let last = run.last.map(|last| last.header);
    let after = |kind| match last {
        Some(header) if header.is_switch() => EndingKind::Switch,
        _ if run.ends_overwritten => EndingKind::Overwritten,
        Some(header) if is_shutdown(&header) => EndingKind::Shutdown,
        _ => kind,
    };
    match &run.gap {
        None => Ending::at(after(EndingKind::Complete), next),
        Some(gap) => {
            let kind = match judge(gap, geometry, is_standbys) {
                clean @ (EndingKind::Zeroed | EndingKind::Recycled) => after(clean),
                EndingKind::PartialPage => after(EndingKind::PartialPage),
                other => other,
            };
            Ending { kind, lsn: gap.start, seen_at: gap.seen_at }
        }
    }
}

fn is_shutdown(header: &RecordHeader) -> bool {
    header.rmgr == XLOG && header.rmgr_info() == xlog::CHECKPOINT_SHUTDOWN
}

/// How the WAL ends in a gap with no valid record after it.
fn judge(gap: &Gap, geometry: &Geometry, is_standbys: bool) -> EndingKind {
    let in_record = gap.seen_at != gap.start;
    let clean = if gap.stale_follows { EndingKind::Recycled } else { EndingKind::Zeroed };
    match &gap.cause {
        _ if gap.record_follows => EndingKind::Damage,
        Cause::Header(HeaderFault::Overlap { .. }) => EndingKind::Damage,
        Cause::Page(fault) if is_leftover(fault, gap.seen_at, geometry) => match fault {
            _ if in_record => EndingKind::IncompleteRecord,
            PageFault::Zero => EndingKind::Zeroed,
            _ => EndingKind::Recycled,
        },
        Cause::Header(HeaderFault::Length { found: 0 }) => clean,
        Cause::Header(_) if may_be_old(gap.start, geometry) => EndingKind::Recycled,
        Cause::Header(_) if gap.is_old() && reaches_next_page(gap, geometry) => {
            EndingKind::Recycled
        }
        // What is left of the page may be anything: the middle of a record, and zeros behind it.
        Cause::Header(_) if is_standbys && gap.pages_behind == PagesBehind::Old => {
            EndingKind::Recycled
        }
        // Only the first sector of the record was written, with part of its header.
        Cause::Header(_) if crosses_sector(gap.start, RECORD_HEADER_BYTES as u64) => {
            EndingKind::IncompleteRecord
        }
        Cause::Checksum { .. } if spans_sectors(gap) => EndingKind::IncompleteRecord,
        Cause::Continuation { .. } => EndingKind::IncompleteRecord,
        Cause::Cut if in_record && gap.seen_at.0.is_multiple_of(u64::from(geometry.page_bytes)) => {
            EndingKind::IncompleteRecord
        }
        Cause::Cut => EndingKind::PartialPage,
        _ => EndingKind::Damage,
    }
}

/// What a page is that is not the one that belongs there: what a server has not overwritten yet, or not.
pub(super) fn what_is_left(fault: &PageFault, lsn: Lsn, geometry: &Geometry) -> PagesBehind {
    let segment = u64::from(geometry.segment_bytes);
    match *fault {
        PageFault::Zero | PageFault::Left { .. } => PagesBehind::Unwritten,
        PageFault::Address { found }
            if found < lsn && (lsn.0 - found.0).is_multiple_of(segment) =>
        {
            PagesBehind::Old
        }
        PageFault::Timeline { found, least, .. } if found < least => PagesBehind::Old,
        _ => PagesBehind::Other,
    }
}

/// Whether a page is what a server has not overwritten yet.
fn is_leftover(fault: &PageFault, lsn: Lsn, geometry: &Geometry) -> bool {
    what_is_left(fault, lsn, geometry) < PagesBehind::Other
}

/// Whether old content may begin here, whatever follows: at the head of a page or of a sector. Inside a page
/// a server that writes WAL leaves zeros after the last record. A standby writes what it receives, and leaves
/// what was there: then pages that follow show that it is old (`XLogWalRcvWrite` in
/// `src/backend/replication/walreceiver.c`).
fn may_be_old(lsn: Lsn, geometry: &Geometry) -> bool {
    let in_page = lsn.0 % u64::from(geometry.page_bytes);
    in_page <= LONG_HEADER_BYTES as u64 || lsn.0.is_multiple_of(SECTOR_BYTES)
}

fn reaches_next_page(gap: &Gap, geometry: &Geometry) -> bool {
    let page = u64::from(geometry.page_bytes);
    gap.counts.total() > page - gap.start.0 % page
}

/// Whether the record at the start of the gap lies in more than one sector.
fn spans_sectors(gap: &Gap) -> bool {
    gap.record_bytes.is_some_and(|bytes| crosses_sector(gap.start, u64::from(bytes)))
}

fn crosses_sector(start: Lsn, bytes: u64) -> bool {
    start.0 / SECTOR_BYTES != (start.0 + bytes).saturating_sub(1) / SECTOR_BYTES
}
