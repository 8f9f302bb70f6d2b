//! Histories of timelines without segments that newer ones contradict.

use super::{Ancestor, Histories, name_of, told};
use crate::problem::{Problem, ProblemKind};
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::lsn::Lsn;

impl Histories {
    /// Reports a history that newer ones contradict, of a timeline without segments, so that no records tell
    /// which is right. What newer ones say is taken in its place if two of them agree, or if by the only one
    /// the timeline began and ended in one segment, as one without segments did. A server that restores to
    /// the newest timeline does not read the others. `present`: timelines with segments.
    pub fn mend_outvoted(&mut self, present: &BTreeSet<u32>, segment_bytes: u64) {
        let mut votes: BTreeMap<u32, Vec<Vote<'_>>> = BTreeMap::new();
        let mut backed = BTreeSet::new();
        for (_, ancestors) in self.all() {
            for (count, ancestor) in ancestors.iter().enumerate() {
                let before = ancestors.get(..count).unwrap_or_default();
                let own = self.ancestors(ancestor.timeline).filter(|own| !own.is_empty());
                match own.filter(|_| !present.contains(&ancestor.timeline)) {
                    Some(own) if own.last() == before.last() => {
                        _ = backed.insert(ancestor.timeline)
                    }
                    Some(_) => {
                        let vote = Vote { before, end: ancestor.end };
                        votes.entry(ancestor.timeline).or_default().push(vote);
                    }
                    None => {}
                }
            }
        }
        votes.retain(|timeline, votes| {
            !backed.contains(timeline) && Vote::decide(votes, segment_bytes)
        });
        let outvoted = votes.iter().map(|(timeline, votes)| (*timeline, votes[0].before.to_vec()));
        let outvoted: Vec<(u32, Vec<Ancestor>)> = outvoted.collect();
        for (timeline, ancestors) in outvoted {
            let expected =
                format!("{}, as in the history of a newer timeline", told(ancestors.last()));
            let found = told(self.ancestors(timeline).and_then(<[Ancestor]>::last));
            let name = name_of(timeline);
            self.complain(Problem::of_file(ProblemKind::History, &name, expected, found));
            self.replace(timeline, ancestors);
        }
    }
}

/// What a newer history says of a timeline that has no segments.
struct Vote<'h> {
    /// Its ancestors.
    before: &'h [Ancestor],
    /// Where it ends.
    end: Lsn,
}

impl Vote<'_> {
    /// Whether the newer ones are right: several that agree, or one by which the timeline began in the
    /// segment in which it ended.
    fn decide(votes: &[Vote<'_>], segment_bytes: u64) -> bool {
        match votes {
            [] => false,
            [Vote { before, end }] => before.last().is_some_and(|begin| {
                begin.end <= *end && begin.end.0 / segment_bytes == end.0 / segment_bytes
            }),
            [first, rest @ ..] => rest.iter().all(|other| other.before == first.before),
        }
    }
}
