//! Which of two neighbouring segments is wrong whose records do not link (`xl_prev`), each of which may be
//! whole: one of them is of another server, that has the same system identifier and timeline.
//!
//! It is the one that fits its other neighbour less. Where both fit theirs, WAL goes on behind the later one
//! and all of that links, it is the earlier one: a clone has the segments of its origin up to the one in
//! which they part, and none after it. The same goes for an earlier one that ends with a false switch. Else
//! it may be either.

use crate::input::plan::Chain;
use crate::input::problem::{Elsewhere, Problem};
use std::collections::BTreeSet;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

/// Which of both is wrong.
enum Wrong {
    Earlier,
    Later,
    Either,
}

/// Says it of all problems of such neighbours; `last`: the last record of all.
pub(super) fn blame_one(problems: &mut [Problem], chain: &Chain<'_>, last: Lsn) {
    let bytes = u64::from(chain.geometry.segment_bytes);
    let after = |before: Lsn| Lsn((before.0 / bytes + 1).saturating_mul(bytes));
    let begin = |problem: &Problem| match problem.elsewhere {
        Some(Elsewhere::Apart { last, .. }) => Some(after(last)),
        _ => None,
    };
    let apart: BTreeSet<Lsn> = problems.iter().filter_map(begin).collect_set();
    for problem in problems {
        let Some(Elsewhere::Apart { last: before, is_followed, .. }) = problem.elsewhere else {
            continue;
        };
        let next = after(before);
        let at = problem.lsn.unwrap_or(next).max(next);
        match wrong(next, &apart, chain, last) {
            Wrong::Earlier => blame_earlier(problem, before, at),
            Wrong::Either if is_followed => blame_earlier(problem, before, at),
            Wrong::Later => problem.lsn = Some(at),
            Wrong::Either => {
                problem.lsn = Some(at);
                let earlier = chain.segment_name(before);
                let found = &problem.found;
                problem.found = format!("{found}, or {earlier} is wrong from {before} on");
            }
        }
    }
}

fn blame_earlier(problem: &mut Problem, before: Lsn, at: Lsn) {
    problem.lsn = Some(before);
    problem.elsewhere = Some(Elsewhere::SeenAt(at));
}

/// Which of the two segments is wrong between which `at` lies; `apart`: all such places.
fn wrong(at: Lsn, apart: &BTreeSet<Lsn>, chain: &Chain<'_>, last: Lsn) -> Wrong {
    let bytes = u64::from(chain.geometry.segment_bytes);
    let (before, after) = (Lsn(at.0.saturating_sub(bytes)), Lsn(at.0.saturating_add(bytes)));
    let timeline = |lsn: Lsn| chain.segment_at(lsn).map(|segment| segment.timeline);
    // Where a timeline begins, its history may be what is wrong.
    if timeline(before) != timeline(at) || apart.contains(&after) {
        return Wrong::Later;
    }
    let goes_on = last >= after && timeline(after).is_some();
    if apart.contains(&before) || goes_on && apart.range(after..).next().is_none() {
        Wrong::Earlier
    } else {
        Wrong::Either
    }
}
