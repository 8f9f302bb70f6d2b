//! A segment whose SHA-1 matches its name is as it was archived. So where a record begins in it and goes on
//! in a broken file, the broken file is to blame.

use super::unfetched::file_at;
use crate::input::plan::Chain;
use crate::input::problem::{Elsewhere, Problem};
use std::collections::BTreeSet;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

/// Moves problems of records that begin in such a verified segment to the broken segment after it.
pub(super) fn blame_the_next(problems: &mut [Problem], chain: &Chain<'_>) {
    let of_files = problems.iter().filter(|problem| problem.kind.is_of_file());
    let broken: BTreeSet<String> = of_files.map(|problem| problem.segment.clone()).collect_set();
    let begins = |problem: &Problem| {
        let lsn = problem.lsn.filter(|_| problem.kind.is_of_records())?;
        let own = chain.segment_at(lsn)?;
        let is_verified = own.sha1.is_some() && !broken.contains(&own.file());
        let next = chain.span(own).end;
        let reaches = problem.skipped().is_some_and(|skipped| skipped.end >= next);
        let is_next_broken =
            || chain.segment_at(next).is_some_and(|it| broken.contains(&it.file()));
        (is_verified && reaches && is_next_broken()).then_some((lsn, next))
    };
    let moved: Vec<Option<(Lsn, Lsn)>> = problems.iter().map(begins).collect();
    for (problem, (lsn, next)) in problems.iter_mut().zip(moved).filter_map(|(p, m)| Some((p, m?)))
    {
        problem.elsewhere = Some(Elsewhere::Begins { at: lsn, may_be_wrong: false });
        problem.lsn = Some(next);
        problem.segment = file_at(chain, next);
    }
}
