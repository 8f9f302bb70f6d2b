//! Files that are named for one timeline and have the pages of an older one from the first on, as where a
//! segment was stored under another's name: `unexpected timeline ID 1 in WAL segment`. Their records follow
//! on each other, so that the files around them would be blamed as well: no page of them is read.

use super::books::Heading;
use super::damage::Cause;
use super::observer::Observer;
use super::parallel::Ready;
use super::run::Run;
use super::scope::Scope;
use crate::input::input_kind::InputKind;
use crate::input::plan::Plan;
use crate::input::segment::Segment;
use crate::input::timeline::Lineage;
use walstat_format::lsn::Lsn;
use walstat_format::page::PageFault;

/// Puts the runs of such files among those that are ready.
pub(super) fn set_aside(
    ready: &mut Ready,
    plan: &Plan,
    segments: &[Segment],
    lineage: &Lineage,
    scope: &Scope,
    prototype: &Observer,
) {
    for segment in segments {
        if let Some(fault) = fault(plan, segment, lineage) {
            let run = unread(segment, fault, scope, prototype);
            ready.insert(segment.number, (run, None));
        }
    }
}

/// What is wrong with the first page of such a file. The file in which a timeline begins has the older one's
/// pages before; where that is, a wrong history does not tell.
fn fault(plan: &Plan, segment: &Segment, lineage: &Lineage) -> Option<PageFault> {
    let page = segment.first_page.as_ref().ok()?;
    let start = Lsn(segment.number * u64::from(plan.geometry.segment_bytes));
    let (found, least) = (page.header.timeline, lineage.of_page(start));
    let mut before = plan.files.range((segment.timeline, 0)..(segment.timeline, segment.number));
    let is_older = found < least && least == segment.timeline && page.header.address == start;
    let is_first = before.next().is_none();
    (is_older && !is_first).then_some(PageFault::Timeline { found, least, most: least })
}

/// A run of which nothing was read but that.
fn unread(segment: &Segment, fault: PageFault, scope: &Scope, prototype: &Observer) -> Run {
    let bytes = u64::from(scope.geometry.segment_bytes);
    let (start, end) = (Lsn(segment.number * bytes), Lsn((segment.number + 1) * bytes));
    let there = segment.raw_bytes.map_or(bytes, |found| found.min(bytes));
    let mut run = Run::new(start, end, prototype.clone());
    run.input_bytes = scope.clip(start, Lsn(start.0 + there));
    run.fail(start, start, Cause::Page(fault), None);
    if let Some(gap) = &mut run.gap {
        gap.counts.add(Heading::Stale, run.input_bytes);
        gap.record_follows = segment.taken_for != InputKind::PgWal;
    }
    run
}
