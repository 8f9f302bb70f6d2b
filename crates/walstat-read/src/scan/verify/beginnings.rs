//! Where timelines begin, as their records say, and which files are of none.

use super::Verifier;
use crate::input::history::{Ancestor, Histories};
use crate::input::input_kind::InputKind;
use crate::input::plan::Plan;
use crate::input::segment::Segment;
use crate::input::timeline::Lineage;
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

/// Timelines of which there is nothing but files of older ones under their names.
pub(in crate::scan) fn strays_alone(plan: &Plan, verifier: &Verifier<'_>) -> BTreeSet<u32> {
    let all = plan.other_lineages.iter().chain([&plan.lineage]);
    let all = all.filter(|lineage| lineage.parent().is_some());
    let all = all.filter(|it| !(plan.is_timeline_asked && it.timeline() == plan.timeline));
    let is_of_others = |lineage: &&Lineage| {
        let timeline = lineage.timeline();
        let own = plan.files.range((timeline, 0)..=(timeline, u64::MAX));
        let own: Vec<&Segment> = own.flat_map(|(_, files)| files).collect();
        let is_older = |file: &&Segment| {
            file.first_page.as_ref().is_ok_and(|page| page.header.timeline < timeline)
        };
        own.iter().all(is_older) && own.iter().all(|file| is_stray(file, lineage, verifier))
    };
    all.filter(is_of_others).map(Lineage::timeline).collect()
}

/// Whether a file that begins with a page of an older timeline has none of its own: it is that of another
/// segment, or it was read to its end and comes to no other page. Not where its timeline is to begin in it:
/// a server reads it as that one's.
fn is_stray(file: &Segment, lineage: &Lineage, verifier: &Verifier<'_>) -> bool {
    let bytes = u64::from(verifier.scope.geometry.segment_bytes);
    let end = file.number.saturating_add(1).saturating_mul(bytes);
    let Ok(page) = &file.first_page else { return false };
    let Lsn(begin) = page.header.address;
    if file.taken_for == InputKind::PgWal {
        return false;
    }
    if begin / bytes != file.number {
        return begin.is_multiple_of(bytes);
    }
    if lineage.begin().0 / bytes == file.number {
        return false;
    }
    let alone = verifier.read(std::slice::from_ref(file), lineage);
    let is_closed = alone.last.is_some_and(|last| last.header.is_switch());
    let page = u64::from(verifier.scope.geometry.page_bytes);
    let begins = alone.observer.begin_of(file.timeline).is_some();
    alone.last_page.filter(|_| !begins).is_some_and(|(last, timeline)| {
        timeline < file.timeline && (is_closed || last.0 + page == end)
    })
}

/// Whether a file has pages of older timelines alone, and its own does not begin in it.
pub(super) fn is_of_older_timelines(
    plan: &Plan,
    file: &Segment,
    lineage: &Lineage,
    verifier: &Verifier<'_>,
) -> bool {
    let alone = verifier.read(std::slice::from_ref(file), lineage);
    let first = file.first_page.as_ref().ok().map(|page| page.header.timeline);
    let last = alone.last_page.map(|(_, timeline)| timeline).or(first);
    let next = super::file(plan, file.timeline, file.number + 1);
    let files: Vec<Segment> = std::iter::once(file.clone()).chain(next).collect();
    last.is_some_and(|last| last < file.timeline) && begin_in(&files, lineage, verifier).is_none()
}

/// Where a timeline begins, as the records say.
pub(in crate::scan) struct Beginning {
    /// Of which segment its first file is.
    number: u64,
    /// Where its history says that it begins.
    told: Lsn,
    /// Whether it leaves another timeline than its history has it leave.
    leaves_another: bool,
    /// The timeline that it leaves, and where. Named as its history names it, if the place agrees: recovery
    /// may have had a target timeline of which it reached no record.
    pub end: Ancestor,
}

/// Where timelines begin that have left another one.
pub(in crate::scan) fn beginnings(
    plan: &Plan,
    histories: &Histories,
    verifier: &Verifier<'_>,
) -> BTreeMap<u32, Beginning> {
    let all = plan.other_lineages.iter().chain([&plan.lineage]);
    let begins = |lineage: &Lineage| {
        let timeline = lineage.timeline();
        let own = plan.files.range((timeline, 0)..=(timeline, u64::MAX));
        let own: Vec<&Segment> = own.filter_map(|(_, files)| files.first()).collect();
        let parent = lineage.parent()?;
        let mut begins = (0..own.len()).map_while(|index| {
            let first: Vec<Segment> = own.iter().skip(index).take(2).copied().cloned().collect();
            let file = first.first()?;
            let end = begin_in(&first, lineage, verifier);
            // What is of another one under its name hides no place where it begins.
            let goes_on = end.is_some() || is_stray(file, lineage, verifier);
            goes_on.then_some(end.map(|end| (file.number, end)))
        });
        let (number, end) =
            as_told(&own, lineage, verifier).or_else(|| begins.find_map(|it| it))?;
        let told = lineage.begin();
        let leaves_another = parent != end.timeline;
        let named = histories.ancestors(timeline).and_then(<[Ancestor]>::last);
        let named = named.filter(|_| !leaves_another).map_or(end.timeline, |it| it.timeline);
        let end = Ancestor { timeline: named, ..end };
        Some((timeline, Beginning { number, told, leaves_another, end }))
    };
    all.filter_map(begins).collect()
}

/// Where a timeline begins if that is where its history says. Then earlier files under its name are those of
/// another server that was promoted to a timeline of the same number, and no server fetches them.
fn as_told(
    own: &[&Segment],
    lineage: &Lineage,
    verifier: &Verifier<'_>,
) -> Option<(u64, Ancestor)> {
    let number = lineage.begin().0 / u64::from(verifier.scope.geometry.segment_bytes);
    if own.first().is_none_or(|first| first.number >= number) {
        return None;
    }
    let files = own.iter().filter(|file| (number..=number + 1).contains(&file.number));
    let files: Vec<Segment> = files.copied().cloned().collect();
    let end = begin_in(&files, lineage, verifier)?;
    (Some(end.timeline) == lineage.parent() && end.end == lineage.begin()).then_some((number, end))
}

/// Timelines that begin elsewhere than their histories say, each with the one that it leaves, and where: its
/// first file is not of the segment that the history names, or it leaves another timeline.
pub(in crate::scan) fn beginning_elsewhere(
    plan: &Plan,
    beginnings: &BTreeMap<u32, Beginning>,
) -> Vec<(u32, Ancestor)> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let is_elsewhere = |it: &Beginning| it.number != it.told.0 / bytes || it.leaves_another;
    let elsewhere = beginnings.iter().filter(|(_, it)| is_elsewhere(it));
    elsewhere.map(|(timeline, it)| (*timeline, it.end)).collect()
}

/// Which timeline is left in the first of some files, and where its own begins. The record that says so may
/// go on in the second one: then all pages of the first are still of the older timeline.
fn begin_in(files: &[Segment], lineage: &Lineage, verifier: &Verifier<'_>) -> Option<Ancestor> {
    let (file, next) = files.split_first()?;
    let alone = verifier.read(std::slice::from_ref(file), lineage);
    let goes_on = || {
        let is_next = next.first().is_some_and(|next| next.number == file.number + 1);
        let (_, last) = alone.last_page.filter(|_| is_next)?;
        let both = (last < file.timeline).then(|| verifier.read(files, lineage))?;
        let bytes = u64::from(verifier.scope.geometry.segment_bytes);
        both.observer.begin_of(file.timeline).filter(|(_, end)| end.0 / bytes == file.number)
    };
    let (timeline, end) = alone.observer.begin_of(file.timeline).or_else(goes_on)?;
    // The first record of a page may be said to begin where the page does.
    let geometry = &verifier.scope.geometry;
    let page = Lsn(end.0 - end.0 % u64::from(geometry.page_bytes));
    let end = if geometry.first_byte(page) == end { page } else { end };
    Some(Ancestor { timeline, end })
}

/// Which timeline another one leaves, where the records of its beginning are damaged: its first file begins
/// with a page of an older one than the history has there.
fn left_by_page(plan: &Plan, lineage: &Lineage) -> Option<Ancestor> {
    let timeline = lineage.timeline();
    let mut own = plan.files.range((timeline, 0)..=(timeline, u64::MAX));
    let first = own.next()?.1.first()?.first_page.as_ref().ok()?.header;
    let end = lineage.parent().map(|_| lineage.begin()).filter(|begin| first.address < *begin)?;
    (first.timeline < lineage.of_page(first.address))
        .then_some(Ancestor { timeline: first.timeline, end })
}

/// Takes no place for timelines without segments where a newer one has left the timeline before.
pub(in crate::scan) fn pass_over(
    plan: &Plan,
    histories: &mut Histories,
    beginnings: &BTreeMap<u32, Beginning>,
) -> bool {
    let begins = beginnings.iter().filter(|(_, it)| it.leaves_another);
    let begins = begins.map(|(timeline, it)| (*timeline, it.end));
    let lineages = plan.other_lineages.iter().chain([&plan.lineage]);
    let unknown = lineages.filter(|lineage| !beginnings.contains_key(&lineage.timeline()));
    let by_page = unknown.filter_map(|it| Some((it.timeline(), left_by_page(plan, it)?)));
    let begins: BTreeMap<u32, Ancestor> = begins.chain(by_page).collect_map();
    let is_there = |timeline: u32| {
        let mut files = plan.files.range((timeline, 0)..=(timeline, u64::MAX));
        files.any(|(_, files)| files.iter().any(Segment::is_asked_for))
    };
    histories.pass_over(&begins, is_there)
}

/// Where timelines begin of which a history names another place that leads to the same files: in the same
/// segment, or earlier. A server takes the older timeline's segments where the newer one has none.
pub(in crate::scan) fn settle_beginnings(
    plan: &Plan,
    histories: &mut Histories,
    beginnings: &BTreeMap<u32, Beginning>,
) -> bool {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let begins = beginnings.iter().filter(|(_, it)| it.told.0 / bytes <= it.number);
    let begins: BTreeMap<u32, Ancestor> =
        begins.map(|(timeline, it)| (*timeline, it.end)).collect_map();
    // No backup has its checkpoint before that, so none would be restored.
    let oldest = plan.files.keys().map(|(_, number)| number.saturating_mul(bytes)).min();
    let is_unnoticed = |told: Lsn, begins: Lsn| {
        told.0 / bytes == begins.0 / bytes || told < begins && oldest < Some(told.0)
    };
    histories.settle_begins(&begins, is_unnoticed)
}
