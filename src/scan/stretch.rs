//! Runs put together in WAL order: neighbours are joined, and where segments are missing between two
//! runs a new stretch begins. What was counted goes on over the holes, so that a dimension is told of
//! them at their place and can hand on what is final.

use super::record::{Observe, Select};
use super::run::Run;
use super::scope::Scope;
use crate::wal::lsn::Lsn;

/// The stretches of a scan, of which the last one grows.
#[derive(Debug)]
pub struct Stretches<O> {
    /// All but the last are counted by empty dimensions.
    runs: Vec<Run<O>>,
    prototype: O,
    /// After the last record of the stretches before the last one.
    lost_from: Option<Lsn>,
}

impl<O: Observe> Stretches<O> {
    /// None yet; `prototype`: an empty dimension.
    pub fn new(prototype: O) -> Stretches<O> {
        Stretches { runs: Vec::new(), prototype, lost_from: None }
    }

    /// Adds the next run: to the last stretch, or as the beginning of a new one.
    pub fn push<S: Select>(&mut self, mut run: Run<O>, begins_stretch: bool, scope: &Scope<S>) {
        let before = self.runs.pop();
        let mut joined = match before {
            Some(mut before) if begins_stretch => {
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
    fn tell_of_hole(&mut self, observer: &mut O, first: Option<Lsn>) {
        if let Some(first) = first
            && let Some(from) = self.lost_from.take()
        {
            observer.lost(from..first);
        }
    }

    /// How many records were counted, where that is kept: under a limit.
    pub fn counted(&self) -> u64 {
        self.runs.iter().map(|run| run.counted).sum()
    }

    /// The same in the last stretch alone.
    pub fn counted_last(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.counted)
    }

    /// All of them.
    pub fn into_runs(self) -> Vec<Run<O>> {
        self.runs
    }
}
