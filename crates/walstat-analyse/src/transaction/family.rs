//! Which parts are one transaction in the end: what belongs to what.

use super::part::Part;

/// What becomes of a part that belongs to another one, or that another one belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays, for a part of its transaction does.
    Stays,
    /// It is a whole transaction now.
    HandedOn,
    /// What it belongs to has it.
    Folded,
}

/// Adds what belongs to other parts to these, but for transactions of which a part stays. Returns the places
/// of all parts that are not alone, ascending, and what becomes of them.
pub(super) fn fold(parts: &mut [Part], stays: impl Fn(&Part) -> bool) -> Vec<(u32, Fate)> {
    let members = members(parts);
    if members.is_empty() {
        return Vec::new();
    }
    let Family { tops, is_lost } = Family::of(parts, &members);
    let mut has_to_stay = vec![false; members.len()];
    for (place, top) in members.iter().zip(&tops) {
        has_to_stay[*top] |= stays(&parts[*place]);
    }
    let mut fates = Vec::with_capacity(members.len());
    for (member, (place, top)) in members.iter().zip(&tops).enumerate() {
        let fate = if has_to_stay[*top] {
            Fate::Stays
        } else if member == *top {
            Fate::HandedOn
        } else {
            let part = &mut parts[*place];
            let gone = Part::new(part.xid, part.start);
            let sub = std::mem::replace(part, gone);
            parts[members[*top]].take_in(sub, is_lost[member]);
            Fate::Folded
        };
        fates.push((*place as u32, fate));
    }
    fates
}

/// The places of parts that belong to another one, and of these, ascending.
fn members(parts: &[Part]) -> Vec<usize> {
    let mut members = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        if let Some(parent) = part.belongs_to().filter(|parent| *parent < parts.len()) {
            members.extend([place, parent]);
        }
    }
    members.sort_unstable();
    members.dedup();
    members
}

/// What belongs to what in the end, of those parts that are not alone.
struct Family {
    /// Which of them each belongs to, itself if to nothing.
    tops: Vec<usize>,
    /// Whether it was rolled back, itself or with what it belongs to.
    is_lost: Vec<bool>,
}

impl Family {
    fn of(parts: &[Part], members: &[usize]) -> Family {
        let parent = |place: &usize| members.binary_search(&parts[*place].belongs_to()?).ok();
        let parents: Vec<Option<usize>> = members.iter().map(parent).collect();
        let is_lost = members.iter().map(|place| parts[*place].is_rolled_back()).collect();
        Family::among(&parents, is_lost)
    }

    /// `is_lost`: whether each was rolled back itself.
    fn among(parents: &[Option<usize>], mut is_lost: Vec<bool>) -> Family {
        let cut = circles(parents);
        let mut tops: Vec<Option<usize>> = vec![None; parents.len()];
        for place in 0..parents.len() {
            let (mut path, mut at) = (Vec::new(), place);
            let top = loop {
                if let Some(top) = tops[at] {
                    break top;
                }
                match parents[at].filter(|parent| !cut[at] && *parent < parents.len()) {
                    Some(parent) => path.push(std::mem::replace(&mut at, parent)),
                    None => break at,
                }
            };
            tops[at] = Some(top);
            let mut is_above_lost = is_lost[at];
            for below in path.into_iter().rev() {
                is_above_lost |= is_lost[below];
                is_lost[below] = is_above_lost;
                tops[below] = Some(top);
            }
        }
        let tops = tops.into_iter().zip(0..).map(|(top, place)| top.unwrap_or(place)).collect();
        Family { tops, is_lost }
    }
}

/// Where a part belongs to itself in the end: the first one of each such circle, which then belongs to
/// nothing. No server writes that.
fn circles(parents: &[Option<usize>]) -> Vec<bool> {
    let mut cut = vec![false; parents.len()];
    // The walk in which each was met.
    let mut met = vec![usize::MAX; parents.len()];
    for walk in 0..parents.len() {
        let mut at = Some(walk);
        while let Some(place) = at.filter(|place| met.get(*place) == Some(&usize::MAX)) {
            met[place] = walk;
            at = parents[place];
        }
        let Some(begin) = at.filter(|place| met.get(*place) == Some(&walk)) else { continue };
        let next = |place: &usize| parents[*place].filter(|next| *next != begin);
        let circle = std::iter::successors(Some(begin), next);
        cut[circle.min().unwrap_or(begin)] = true;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_cut_at_its_first_part() {
        assert_eq!(circles(&[Some(1), Some(2), Some(1), None]), [false, true, false, false]);
        assert_eq!(circles(&[Some(0), Some(9)]), [true, false]);
    }
}
