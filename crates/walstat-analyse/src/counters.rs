//! Everything that can be counted of WAL, as far as it was asked for.

use super::clock::Clock;
use super::kind_sample::KindSample;
use super::large_transactions::LargeTransactions;
use super::restore_input::RestoreInput;
use super::sample::Sample;
use super::totals::RecordTable;
use super::when::When;
use super::who::Who;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_read::scan::observe::{Observe, Shown};
use walstat_read::scan::observer::Observer;

/// What is counted for every command: by record type, and the WAL's clock.
pub type Statistics = (RecordTable, Clock);

/// What advice is made of: some of the images, large transactions, and what some transactions did.
pub type AdviceInput = (Sample, (LargeTransactions, KindSample));

/// The statistics and what is next to nothing a record beside them.
type Overview = (Statistics, (Option<When>, Option<RestoreInput>));

/// What `check` counts, with a loop of its own.
type Restorable = (Statistics, Option<RestoreInput>);

/// Everything that can be counted; what nobody asked for is `None`, and costs nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counters {
    /// By record type, and the clock.
    pub statistics: Statistics,
    /// Who wrote it.
    pub who: Who,
    /// When it was written.
    pub when: Option<When>,
    /// What advice is made of.
    pub advice: Option<AdviceInput>,
    /// What a restore needs to know.
    pub restore: Option<RestoreInput>,
}

impl Counters {
    /// These counters as a dimension of a scan: where little is done with a record, each is counted at once.
    pub fn observer(&self) -> Observer {
        let Counters { statistics, who, when, advice, restore } = self;
        if !who.is_nothing() || advice.is_some() {
            return Observer::new(self.clone());
        }
        let statistics = statistics.clone();
        match (when, restore) {
            (None, None) => Observer::at_once(statistics),
            (None, restore) => Observer::at_once((statistics, restore.clone())),
            (when, restore) => Observer::at_once((statistics, (when.clone(), restore.clone()))),
        }
    }

    /// What such a dimension has counted.
    pub fn of(seen: Observer) -> Counters {
        let seen = match seen.into_inner::<Counters>() {
            Ok(counters) => return counters,
            Err(seen) => seen,
        };
        let seen = match seen.into_inner::<Overview>() {
            Ok((statistics, (when, restore))) => {
                return Counters { statistics, when, restore, ..Counters::default() };
            }
            Err(seen) => seen,
        };
        match seen.into_inner::<Restorable>() {
            Ok((statistics, restore)) => Counters { statistics, restore, ..Counters::default() },
            Err(seen) => {
                let statistics = seen.into_inner::<Statistics>().unwrap_or_default();
                Counters { statistics, ..Counters::default() }
            }
        }
    }
}

/// Does something with each part: one that is added is not forgotten.
macro_rules! each_part {
    ($counters:expr, $part:ident => $does:expr) => {{
        let Counters { statistics, who, when, advice, restore } = $counters;
        let $part = statistics;
        $does;
        let $part = who;
        $does;
        let $part = when;
        $does;
        let $part = advice;
        $does;
        let $part = restore;
        $does;
    }};
}

impl Observe for Counters {
    fn observe(&mut self, record: &Record<'_>) {
        self.observe_all(&[Shown { record: *record, selected: true }]);
    }

    fn passed_over(&mut self, record: &Record<'_>) {
        self.observe_all(&[Shown { record: *record, selected: false }]);
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        each_part!(self, part => part.observe_all(records));
    }

    fn needs_whole(&self) -> bool {
        let mut needs_whole = false;
        each_part!(self, part => needs_whole |= part.needs_whole());
        needs_whole
    }

    fn keeps(&self) -> bool {
        self.who.keeps()
    }

    fn share(&mut self) {
        each_part!(self, part => part.share());
    }

    fn lost(&mut self, range: Range<Lsn>) {
        each_part!(self, part => part.lost(range.clone()));
    }

    fn unused(&mut self, range: Range<Lsn>) {
        each_part!(self, part => part.unused(range.clone()));
    }

    fn merge(&mut self, later: Counters) {
        let Counters { statistics, who, when, advice, restore } = later;
        self.statistics.merge(statistics);
        self.who.merge(who);
        self.when.merge(when);
        self.advice.merge(advice);
        self.restore.merge(restore);
    }

    fn settle(&mut self) {
        each_part!(self, part => part.settle());
    }

    fn shrink(&mut self) {
        each_part!(self, part => part.shrink());
    }
}
