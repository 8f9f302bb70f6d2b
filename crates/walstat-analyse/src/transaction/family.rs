//! Which parts are one transaction in the end: what belongs to what.

use super::part::Part;

/// What belongs to what in the end.
pub(super) struct Family {
    /// The place of what each part belongs to, its own if to nothing.
    pub tops: Vec<usize>,
    /// Whether it was rolled back, itself or with what it belongs to.
    pub is_lost: Vec<bool>,
}

impl Family {
    pub fn of(parts: &[Part]) -> Family {
        let parents: Vec<Option<usize>> = parts.iter().map(Part::belongs_to).collect();
        let cut = circles(&parents);
        let mut tops: Vec<Option<usize>> = vec![None; parts.len()];
        let mut is_lost: Vec<bool> = parts.iter().map(Part::is_rolled_back).collect();
        for place in 0..parts.len() {
            let (mut path, mut at) = (Vec::new(), place);
            let top = loop {
                if let Some(top) = tops[at] {
                    break top;
                }
                match parents[at].filter(|parent| !cut[at] && *parent < parts.len()) {
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
