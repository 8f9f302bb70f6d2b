//! Timelines that a history names, and of which there are no segments: a server that follows the history
//! reads those of the timeline before in their place, to the end (`XLogFileReadAnyTLI` in
//! `src/backend/access/transam/xlogrecovery.c`). So it is where a server died after it had recovered to a
//! place, before it archived anything but the history, and another one recovered to a later place.

use super::{Ancestor, Histories};
use std::collections::BTreeMap;
use std::fmt;
use walstat_format::lsn::Lsn;

/// Such a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// The timeline.
    pub timeline: u32,
    /// The one whose segments are read in its place.
    pub read: u32,
    /// Where it begins.
    pub from: Lsn,
    /// Where a newer timeline leaves the one that is read.
    pub to: Lsn,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PassedOver { timeline, read, from, to } = self;
        write!(
            f,
            "no segment of timeline {timeline}, which begins at {from}: a server reads those of timeline \
             {read} in its place, to {to}, and restores no backup with its checkpoint between the two, nor \
             opens with a transaction prepared there"
        )
    }
}

impl Histories {
    /// Takes no place for those of such timelines, where the records of a newer one show that it has left the
    /// one before them; whether there was one. `begins`: where timelines begin, as their records say;
    /// `is_there`: whether there are segments of a timeline.
    pub fn pass_over(
        &mut self,
        begins: &BTreeMap<u32, Ancestor>,
        is_there: impl Fn(u32) -> bool,
    ) -> bool {
        let before = self.passed_over.len();
        let single = self.sound.iter().filter(|(_, rivals)| rivals.len() == 1);
        let lists =
            single.filter_map(|(history, rivals)| Some((*history, rivals.first()?.clone())));
        let lists: Vec<(u32, Vec<Ancestor>)> = lists.collect();
        for (history, said) in lists {
            let mut ancestors = said.clone();
            let children = said.iter().skip(1).map(|it| it.timeline).chain([history]);
            for (index, child) in children.enumerate() {
                let Some(begin) = begins.get(&child) else { continue };
                let until = ancestors.get_mut(..=index).unwrap_or_default();
                let Some(left) = left(until, *begin, &is_there) else { continue };
                let empty = until.get_mut(left..).unwrap_or_default();
                self.passed_over.extend(without_place(empty));
            }
            if ancestors != said {
                self.replace(history, ancestors);
            }
        }
        self.passed_over.len() > before
    }

    /// Timelines without segments in whose place a server reads those of another one. Not those that begin
    /// behind the place where the newer one left that: nothing is read for them.
    pub(crate) fn passed_over(&self) -> impl Iterator<Item = &PassedOver> {
        self.passed_over.iter().filter(|it| it.from < it.to)
    }

    /// The ancestors as the history has them where a timeline before the last one is passed over.
    pub(super) fn said(&self, timeline: u32) -> Option<&[Ancestor]> {
        let own = self.ancestors(timeline)?;
        let is_passed_over = |it: &Ancestor| {
            self.passed_over.iter().any(|passed_over| passed_over.timeline == it.timeline)
        };
        let is_empty =
            matches!(own, [.., before, last] if before.end == last.end && is_passed_over(last));
        self.corrected(timeline).filter(|_| is_empty).or(Some(own))
    }
}

/// Which of the ancestors a timeline has left, if that is not the last one and there are no segments of those
/// after it. `begin`: where the timeline begins, and what it has left, as its records say.
fn left(ancestors: &[Ancestor], begin: Ancestor, is_there: impl Fn(u32) -> bool) -> Option<usize> {
    let (last, before) = ancestors.split_last()?;
    let left = before.iter().position(|it| it.timeline == begin.timeline)?;
    let mut after = ancestors.iter().skip(left + 1);
    // Those in between may have recovered to any places.
    let is_elsewhere = |it: &Ancestor| it.end != last.end;
    let is_it = last.end == begin.end && before.iter().skip(left).any(is_elsewhere);
    (is_it && !after.any(|it| is_there(it.timeline))).then_some(left)
}

/// Lets the first of some ancestors end where the last one does, and the others begin and end there.
fn without_place(ancestors: &mut [Ancestor]) -> Vec<PassedOver> {
    let [first, .., last] = *ancestors else { return Vec::new() };
    let mut from = first.end;
    let mut passed_over = Vec::new();
    for ancestor in ancestors.iter_mut() {
        if ancestor.timeline != first.timeline {
            let (timeline, read, to) = (ancestor.timeline, first.timeline, last.end);
            passed_over.push(PassedOver { timeline, read, from, to });
        }
        from = std::mem::replace(&mut ancestor.end, last.end);
    }
    passed_over
}
