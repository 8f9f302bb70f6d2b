//! The face for programs: paths in, a report or a dimension of one's own out.

use crate::analyse::select::Filters;
use crate::input::discover::{Found, discover_as};
use crate::input::error::InputError;
use crate::input::plan::Plan;
use crate::input::taken_for::TakenFor;
use crate::report::build::Request;
use crate::report::known::{Known, Sources};
use crate::report::model::table::{Sort, Top};
use crate::report::model::{CommandName, Report};
use crate::report::whole;
use crate::scan::outcome::Outcome;
use crate::scan::pages::Progress;
use crate::scan::read::read_found;
use crate::scan::record::{Everything, Observe};
use crate::scan::streamed::Wanted;
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

/// A scan of WAL, to be configured and then run.
///
/// ```
/// use walstat::{Lsn, Scan};
///
/// # fn main() -> Result<(), walstat::Error> {
/// let scan = Scan::paths(["tests/fixtures/pg15-mixed"]).range(Lsn(0x700028)..Lsn(0x1754570));
/// let report = scan.threads(2).report()?;
/// assert_eq!(report.totals.count, 72_088);
/// assert!(report.problems.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a scan does nothing until it is asked for its report"]
pub struct Scan {
    paths: Vec<PathBuf>,
    range: Range<Lsn>,
    threads: NonZeroUsize,
    timeline: Option<u32>,
    limit: Option<u64>,
    verifies: bool,
    taken_for: Option<TakenFor>,
}

impl Scan {
    /// A scan of segments, directories of them, archives and tars, in any order, on one thread.
    pub fn paths<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Scan {
        Scan {
            paths: paths.into_iter().map(Into::into).collect(),
            range: Lsn(0)..Lsn::MAX,
            threads: NonZeroUsize::MIN,
            timeline: None,
            limit: None,
            verifies: true,
            taken_for: None,
        }
    }

    /// Counts only records that start and end in this range.
    pub fn range(self, range: Range<Lsn>) -> Scan {
        Scan { range, ..self }
    }

    /// Reads on up to so many threads; 0 is one for each core. Results do not depend on it.
    pub fn threads(self, threads: usize) -> Scan {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Scan { threads: NonZeroUsize::new(threads).unwrap_or_else(cores), ..self }
    }

    /// Follows this timeline rather than the newest whose history is complete.
    pub fn timeline(self, timeline: u32) -> Scan {
        Scan { timeline: Some(timeline), ..self }
    }

    /// Stops after so many counted records.
    pub fn limit(self, records: u64) -> Scan {
        Scan { limit: Some(records), ..self }
    }

    /// Whether the records' checksums are verified; they are if nothing is said.
    pub fn verify_checksums(self, verifies: bool) -> Scan {
        Scan { verifies, ..self }
    }

    /// What the paths are taken for, where it cannot be told.
    pub fn taken_for(self, taken_for: TakenFor) -> Scan {
        Scan { taken_for: Some(taken_for), ..self }
    }

    /// The report: what `walstat --format json` prints. Names are from the data directory that the WAL
    /// lies in, and else from the WAL itself.
    ///
    /// # Errors
    ///
    /// When there is nothing to report on. What is wrong in the WAL is in the report's problems.
    pub fn report(&self) -> Result<Report, InputError> {
        let request = Request {
            command: CommandName::Report,
            dimensions: whole::dimensions(),
            checksums_verified: self.verifies,
            start: Some(self.range.start).filter(|&start| start > Lsn(0)),
            filters: Filters::default(),
        };
        let found = discover_as(&self.paths, self.taken_for)?;
        let known = Known::of(&Sources::default(), &found, &request.dimensions);
        let (plan, outcome) = self.read(found, &whole::prototype(&known))?;
        let paths = self.paths.iter().map(|path| path.display().to_string()).collect();
        let draft = whole::draft(paths, &plan, outcome, known, &request);
        let mut report = draft.conclude().report;
        report.arrange(Sort::Bytes, Top::default());
        Ok(report)
    }

    /// Counts in copies of `dimension`, which is configured and empty, and returns what they come
    /// to.
    ///
    /// ```
    /// use walstat::{Observe, Record, Scan};
    ///
    /// /// The longest record.
    /// #[derive(Clone, Default)]
    /// struct Longest(u32);
    ///
    /// impl Observe for Longest {
    ///     fn observe(&mut self, record: &Record<'_>) {
    ///         self.0 = self.0.max(record.header.total_bytes);
    ///     }
    ///     fn merge(&mut self, later: Longest) {
    ///         self.0 = self.0.max(later.0);
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), walstat::Error> {
    /// let longest = Scan::paths(["tests/fixtures/pg15-mixed"]).observe(Longest::default())?;
    /// assert_eq!(longest.0, 2_600_057);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As those of [`Scan::report`].
    pub fn observe<O: Observe>(&self, dimension: O) -> Result<O, InputError> {
        let found = discover_as(&self.paths, self.taken_for)?;
        Ok(self.read(found, &dimension)?.1.observer)
    }

    fn read<O: Observe>(
        &self,
        found: Found,
        prototype: &O,
    ) -> Result<(Plan, Outcome<O>), InputError> {
        let wanted = Wanted {
            crc: self.verifies.then(Crc32c::detect),
            range: (self.range.start, self.range.end),
            limit: self.limit,
            timeline: self.timeline,
            select: Everything,
        };
        read_found(found, wanted, self.threads, &Progress::default(), prototype)
    }
}
