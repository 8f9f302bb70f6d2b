//! A scan: what is read and how. It is configured once and can be run several times.

use crate::input::discover::{Found, discover_as};
use crate::input::error::InputError;
use crate::input::input_kind::InputKind;
use crate::input::plan::Plan;
use crate::scan::alone::Passed;
use crate::scan::memory::Memory;
use crate::scan::observe::Observe;
use crate::scan::observer::Observer;
use crate::scan::outcome::Outcome;
use crate::scan::progress::Progress;
use crate::scan::read::{read_found, read_passed};
use crate::scan::round::{self, Recheck, RoundRead};
use crate::scan::streamed::Wanted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A scan of WAL, to be configured and then run.
#[derive(Debug, Clone)]
#[must_use = "a scan does nothing until it is asked for something"]
pub struct Scan {
    /// Segments, directories of them, archives, tars, pipes; in any order.
    pub paths: Vec<PathBuf>,
    /// What the directories are to be taken for, where their names and contents do not tell.
    pub taken_for: Option<InputKind>,
    /// Which records are counted.
    pub wanted: Wanted,
    /// How many threads read; results do not depend on it.
    pub threads: NonZeroUsize,
    /// Shows progress while WAL is read.
    pub watch: Option<Arc<dyn Watch>>,
}

/// Shows how far reading is.
pub trait Watch: fmt::Debug + Send + Sync {
    /// Begins to show how many bytes of `total` are `read`; `None`: the total is not known. The display
    /// ends when what is returned is dropped.
    fn begin(&self, total: Option<u64>, read: Arc<Progress>) -> Box<dyn Any>;
}

impl Scan {
    /// A scan of all WAL at these paths, on one thread.
    pub fn paths<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Scan {
        Scan {
            paths: paths.into_iter().map(Into::into).collect(),
            taken_for: None,
            wanted: Wanted::default(),
            threads: NonZeroUsize::MIN,
            watch: None,
        }
    }

    /// The files that lie at the paths, without reading their records.
    ///
    /// # Errors
    ///
    /// When a path cannot be looked at.
    pub fn found(&self) -> Result<Found, InputError> {
        discover_as(&self.paths, self.taken_for)
    }

    /// Reads the WAL; each run of segments is counted by a copy of `prototype`, which is configured and
    /// empty.
    ///
    /// # Errors
    ///
    /// When there is nothing to count. What is wrong in the WAL itself is in the outcome's problems.
    pub fn count<O: Observe>(&self, prototype: &O) -> Result<(Plan, Outcome<O>), InputError> {
        self.count_found(self.found()?, prototype)
    }

    /// The same for files that [`Scan::found`] has found.
    ///
    /// # Errors
    ///
    /// As those of [`Scan::count`].
    pub fn count_found<O: Observe>(
        &self,
        found: Found,
        prototype: &O,
    ) -> Result<(Plan, Outcome<O>), InputError> {
        let (plan, outcome) = self.count_in(found, &Observer::new(prototype.clone()))?;
        Ok((plan, outcome.map(|seen| seen.into_inner().unwrap_or_else(|_| prototype.clone()))))
    }

    /// The same with a dimension whose type is not known here.
    ///
    /// # Errors
    ///
    /// As those of [`Scan::count`].
    pub fn count_in(
        &self,
        found: Found,
        prototype: &Observer,
    ) -> Result<(Plan, Outcome<Observer>), InputError> {
        let progress = Arc::new(Progress::default());
        let begin = |watch: &Arc<dyn Watch>| {
            watch.begin(found.bytes_in(&self.wanted.range), Arc::clone(&progress))
        };
        let _shown = self.watch.as_ref().map(begin);
        read_found(found, self.wanted.clone(), self.threads, &progress, prototype)
    }

    /// The same for segments that were read elsewhere: partial results.
    ///
    /// # Errors
    ///
    /// As those of [`Scan::count`].
    pub fn count_passed(
        &self,
        found: Found,
        passed: BTreeMap<usize, Passed>,
        prototype: &Observer,
    ) -> Result<(Plan, Outcome<Observer>), InputError> {
        let wanted = self.wanted.clone();
        let mut passed = Some(passed);
        let mut recall = |_: &Found| passed.take().unwrap_or_default();
        read_passed(found, &mut recall, wanted, self.threads, &Progress::default(), prototype)
    }

    /// The same for segments of which many were read before: those are remembered, and what is read now is
    /// remembered from then on. `found`: with the files of `memory` known. Whoever holds the memory
    /// meanwhile may do so for moments only.
    ///
    /// # Errors
    ///
    /// As those of [`Scan::count`], and when the memory is one of other WAL.
    pub fn count_round<O: Observe + Serialize + DeserializeOwned>(
        &self,
        found: Found,
        memory: &Mutex<Memory>,
        recheck: Recheck,
        prototype: &O,
    ) -> Result<RoundRead<O>, InputError> {
        let progress = Arc::new(Progress::default());
        let begin = |watch: &Arc<dyn Watch>| watch.begin(None, Arc::clone(&progress));
        let _shown = self.watch.as_ref().map(begin);
        let (wanted, threads) = (self.wanted.clone(), self.threads);
        let reading = round::Reading { wanted, threads, progress: &progress, memory, recheck };
        let RoundRead { plan, outcome, round } = reading.read(found, prototype)?;
        let counted = |seen: Observer| seen.into_inner().unwrap_or_else(|_| prototype.clone());
        Ok(RoundRead { plan, outcome: outcome.map(counted), round })
    }
}
