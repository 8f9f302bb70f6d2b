//! What a later run has seen is put where it belongs.

use super::super::finished::Finished;
use super::super::part::{Before, Part};
use super::{Generations, Last, covers};

impl Generations {
    /// Adds what a later run has seen, in which relations have the numbers `files`.
    pub(in super::super) fn merge(
        &mut self,
        later: Generations,
        files: &[u32],
        finished: &mut Finished,
    ) {
        let Generations { parts, ended, oldest_running, known, .. } = later;
        if self.known.is_empty() {
            self.known = known;
        }
        let has_same_files = files.iter().zip(0..).all(|(ours, theirs)| *ours == theirs);
        let renumber = |part: &mut Part| {
            if !has_same_files {
                part.renumber(files);
            }
        };
        let unclaimed: Vec<(u32, u32)> = self.unclaimed_places().collect();
        // Each is the first part of its xid there.
        for mut part in ended.iter() {
            renumber(&mut part);
            self.merge_ended(part, finished);
        }
        // A parent may stand behind what belongs to it: all places first.
        let places: Vec<Option<Place>> = parts.iter().map(|part| self.place_for(part)).collect();
        let moved = |old: u32| places.get(old as usize)?.as_ref().and_then(Place::of_part);
        for (part, place) in parts.iter().zip(&places) {
            if let Some(Place { before: Earlier::At(before), .. }) = place
                && self.unclaimed.contains(&part.xid)
                && let Some(ours) = self.parts.get_mut(*before as usize)
            {
                ours.after = part.before.first.and_then(|claim| claim.moved(moved));
            }
        }
        for (xid, place) in unclaimed {
            let is_last = self.by_xid.get(&xid) == Some(&place);
            if let Some(part) = self.parts.get_mut(place as usize) {
                part.is_sealed |= !is_last || covers(&oldest_running, xid);
            }
        }
        for (mut part, place) in parts.into_iter().zip(&places) {
            let Some(place) = place else { continue };
            part.move_claims(moved);
            renumber(&mut part);
            self.join(part, place);
        }
        if !self.is_first {
            self.oldest_running.extend(oldest_running);
        }
        self.find_unclaimed();
    }

    /// Adds a part that has ended in a later run, and that nothing belongs to.
    fn merge_ended(&mut self, part: Part, finished: &mut Finished) {
        if matches!(self.last(part.xid), Last::Unknown) {
            self.ended.xids.insert(part.xid);
            self.ended.take(&part, self.is_first.then_some(finished));
        } else if let Some(place) = self.place_for(&part) {
            self.join(part, &place);
        }
    }

    /// Puts a part of a later run where it belongs.
    fn join(&mut self, mut part: Part, place: &Place) {
        let Place { part: Some(ours), before, is_new } = place else { return };
        if *before != Earlier::Unknown {
            part.before = Before::default();
        } else if covers(&self.oldest_running, part.xid) {
            part.before.first = None;
        }
        let is_first = self.is_first;
        let Some(ours) = self.part(*ours) else { return };
        if *is_new && is_first {
            // Nothing of it is here yet, nor can be said of it before.
            part.begin();
            *ours = part;
        } else {
            ours.join(part);
        }
    }

    /// Where a part of a later run belongs.
    fn place_for(&mut self, part: &Part) -> Option<Place> {
        let xid = part.xid;
        if !part.is_before {
            let part = Some(self.push_empty(xid, false));
            return Some(Place { part, before: Earlier::Unknown, is_new: true });
        }
        let (before, is_new) = match self.last(xid) {
            Last::Open(place) => {
                return Some(Place { part: Some(place), before: Earlier::Unknown, is_new: false });
            }
            Last::Ended(place) => (Earlier::At(place), part.is_alive),
            Last::HandedOn => (Earlier::HandedOn, part.is_alive && self.ended.xids.remove(xid)),
            Last::Unknown => (Earlier::Unknown, true),
        };
        let is_before = before == Earlier::Unknown && !self.is_first;
        let part = is_new.then(|| self.push_empty(xid, is_before));
        Some(Place { part, before, is_new })
    }
}

/// Where a part of a later run belongs.
struct Place {
    /// Its part: one that goes on, or a new one; `None` where it only says something of the one before.
    part: Option<u32>,
    before: Earlier,
    /// Nothing of its part was here before.
    is_new: bool,
}

impl Place {
    fn of_part(&self) -> Option<u32> {
        self.part
    }
}

/// The part before one of the same xid, which has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// It is at this place.
    At(u32),
    /// It is not among the parts any more.
    HandedOn,
    /// None is known, or the part is the same.
    Unknown,
}
