//! Runs put together in WAL order: runs that lie next to each other become one, and after missing
//! segments the next one begins. What was counted is carried over such holes, so that a dimension is
//! told of each hole at its place and can hand on what is final.

use super::observe::Observe;
use super::observer::Observer;
use super::run::Run;
use super::scope::Scope;
use walstat_format::lsn::Lsn;

/// The runs of a scan so far, with missing segments between any two of them; the last one grows.
#[derive(Debug)]
pub(super) struct JoinedRuns {
    /// All but the last are counted by empty dimensions.
    runs: Vec<Run>,
    prototype: Observer,
    /// Where records are missing from: after the last record before the last hole.
    lost_from: Option<Lsn>,
}

impl JoinedRuns {
    /// None yet; `prototype`: an empty dimension.
    pub(super) fn new(prototype: Observer) -> JoinedRuns {
        JoinedRuns { runs: Vec::new(), prototype, lost_from: None }
    }

    /// Adds the next run. If it is `after_hole`, segments are missing before it, and it is kept apart;
    /// else it is joined with the last one.
    pub(super) fn push(&mut self, mut run: Run, after_hole: bool, scope: &Scope) {
        let before = self.runs.pop();
        let mut joined = match before {
            Some(mut before) if after_hole => {
                let counted = std::mem::replace(&mut before.observer, self.prototype.clone());
                let later = std::mem::replace(&mut run.observer, counted);
                self.lost_from = before.last.map(|last| last.next).or(self.lost_from);
                self.tell_of_hole(&mut run.observer, run.first.map(|first| first.lsn));
                run.observer.merge(later);
                self.runs.push(before);
                run
            }
            Some(mut before) => {
                if before.first.is_none() {
                    let first = run.first.map(|first| first.lsn);
                    self.tell_of_hole(&mut before.observer, first);
                }
                before.join(run, scope)
            }
            None => run,
        };
        joined.observer.settle();
        self.runs.push(joined);
    }

    /// Tells a dimension of the hole that its next record, at `first`, lies after.
    fn tell_of_hole(&mut self, observer: &mut Observer, first: Option<Lsn>) {
        if let Some(first) = first
            && let Some(from) = self.lost_from.take()
        {
            observer.lost(from..first);
        }
    }

    /// How many records were counted, where that is kept: under a limit.
    pub(super) fn counted(&self) -> u64 {
        self.runs.iter().map(|run| run.counted).sum()
    }

    /// The same in the last run alone.
    pub(super) fn counted_last(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.counted)
    }

    /// All of them, in WAL order.
    pub(super) fn into_runs(self) -> Vec<Run> {
        self.runs
    }
}
