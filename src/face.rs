//! The face for programs: paths in, a report or a dimension of one's own out.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_read::input::error::InputError;
use walstat_read::input::input_kind::InputKind;
use walstat_read::scan::observe::Observe;
use walstat_report::assemble::{Gathered, ReportOptions, assemble, whole, whole_request};
use walstat_report::build::Request;
use walstat_report::known::{Known, Sources};
use walstat_report::model::table::{Sort, Top};
use walstat_report::model::{CommandName, Report};
use walstat_report::who::By;

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
pub struct Scan(walstat_read::Scan);

impl Scan {
    /// A scan of segments, directories of them, archives and tars, in any order, on one thread.
    pub fn paths<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Scan {
        Scan(walstat_read::Scan::paths(paths))
    }

    /// Counts only records that start and end in this range.
    pub fn range(mut self, range: Range<Lsn>) -> Scan {
        self.0.wanted.range = range;
        self
    }

    /// Reads on up to so many threads; 0 is one for each core. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> Scan {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.0.threads = NonZeroUsize::new(threads).unwrap_or_else(cores);
        self
    }

    /// Follows this timeline rather than the newest whose history is complete.
    pub fn timeline(mut self, timeline: u32) -> Scan {
        self.0.wanted.timeline = Some(timeline);
        self
    }

    /// Stops after so many counted records; 0: no limit.
    pub fn limit(mut self, records: u64) -> Scan {
        self.0.wanted.limit = Some(records).filter(|&records| records > 0);
        self
    }

    /// Whether the records' checksums are verified; they are if nothing is said.
    pub fn verify_checksums(mut self, verifies: bool) -> Scan {
        self.0.wanted.crc = verifies.then(Crc32c::detect);
        self
    }

    /// What the paths are taken for, where it cannot be told.
    pub fn taken_for(mut self, taken_for: InputKind) -> Scan {
        self.0.taken_for = Some(taken_for);
        self
    }

    /// The report: what `walstat --format json` prints. Names are from the data directory that the WAL
    /// lies in, and else from the WAL itself.
    ///
    /// # Errors
    ///
    /// When there is nothing to report on. What is wrong in the WAL is in the report's problems.
    pub fn report(&self) -> Result<Report, InputError> {
        let wanted = &self.0.wanted;
        let request = Request {
            checksums_verified: wanted.crc.is_some(),
            start: Some(wanted.range.start).filter(|&start| start > Lsn(0)),
            ..whole_request(CommandName::Report)
        };
        let found = self.0.found()?;
        let known = Known::of(&Sources::default(), &found, &request.dimensions);
        let (plan, scanned) = self.0.count_found(found, &whole(&known))?;
        let paths = self.0.paths.iter().map(|path| path.display().to_string()).collect();
        let gathered = Gathered::of(paths, plan, scanned, known);
        let mut report =
            assemble(gathered, &request, &ReportOptions::by(By::Parent)).conclude().report;
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
        Ok(self.0.count(&dimension)?.1.observer)
    }
}

/// For what asks more of a scan, like a prediction.
impl From<Scan> for walstat_read::Scan {
    fn from(scan: Scan) -> walstat_read::Scan {
        scan.0
    }
}
