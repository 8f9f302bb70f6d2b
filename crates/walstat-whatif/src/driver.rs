//! A prediction from beginning to end: reads the WAL, replays it under its own and other settings, and
//! reads it again where images are compressed otherwise.

use super::base::Base;
use super::causes::{self, Causes};
use super::hand_over::{read_apart, read_here};
use super::outcome::RunOutcome;
use super::position::Geometry;
use super::predict::{self, PlannedRun, Prediction, Way};
use super::recode::{Means, Recoded, Recoder, Recoding, Share};
use super::scenario::{AskedSetting, Scenario};
use super::settings::{Change, Checkpoints, Settings};
use super::spooled::{SpoolError, Spooled};
use super::trace::{RECORDS_MAX, Trace};
use super::trace_builder::TraceBuilder;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use walstat_analyse::checkpoint::server::{KnownPace, Server};
use walstat_analyse::counters::Statistics;
use walstat_format::image::Compression;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_read::Scan;
use walstat_read::input::error::InputError;
use walstat_read::input::plan::Plan;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::outcome::Outcome;

/// Memory for pages where nothing else is said, bytes.
const USUAL_MEMORY_BYTES: u64 = 1 << 30;

/// A question about other settings, to be asked of the WAL that a scan reads.
#[derive(Debug, Clone)]
#[must_use = "nothing is predicted until it is run"]
pub struct WhatIf {
    scan: Scan,
    memory: u64,
    share: Option<Share>,
    server: Option<KnownServer>,
}

/// A server whose settings are known.
#[derive(Debug, Clone, Copy)]
pub struct KnownServer {
    /// The cluster.
    pub system_identifier: u64,
    /// When its settings begin checkpoints, if that is known.
    pub pace: Option<KnownPace>,
    /// Its archive_timeout in seconds, if that is known.
    pub archive_timeout: Option<u64>,
}

/// What came out.
#[derive(Debug)]
pub struct Predicted {
    /// What there was to read.
    pub plan: Plan,
    /// What every report says of the range.
    pub scanned: Outcome<Statistics>,
    /// The WAL as it is.
    pub base: Base,
    /// What each scenario comes to; the first is the WAL as it is, replayed.
    pub scenarios: Vec<(Scenario, Prediction)>,
    /// Whether a scenario compresses images.
    pub compresses: bool,
    /// Why no file could be written beside the memory: then more of it was used than was allowed.
    pub unfiled: Option<String>,
}

/// Why there is no prediction.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// The input cannot be read as WAL.
    #[error(transparent)]
    Input(#[from] InputError),
    /// What can be read only once could not be kept.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// What was noted of the records could not be read back.
    #[error("{}: what was noted of the records: {reason}", path.display())]
    Trace {
        /// Where temporary files lie.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There are more records than can be told apart, in the range or around it.
    #[error(
        "{}: more than {RECORDS_MAX} records, expected fewer, before and after the range too: give the paths \
         of fewer segments",
        path.display()
    )]
    TooMany {
        /// The first path.
        path: PathBuf,
    },
    /// The release that wrote the WAL has not got the codec.
    #[error("{value}: PostgreSQL {release} has pglz only")]
    Codec {
        /// What was asked for.
        value: String,
        /// The release.
        release: &'static str,
    },
    /// A server with this max_wal_size does not start.
    #[error(
        "{value}: PostgreSQL {release} does not start with less than two segments, expected {}MB or more",
        least >> 20
    )]
    MaxWalSize {
        /// What was asked for.
        value: String,
        /// The release.
        release: &'static str,
        /// Two segments, bytes.
        least: u64,
    },
    /// A redo point outside of the WAL.
    #[error("{place}: expected a place from {start} to {end}")]
    Place {
        /// The setting.
        option: &'static str,
        /// What was asked for.
        place: Lsn,
        /// First place that there is.
        start: Lsn,
        /// Last one.
        end: Lsn,
    },
    /// The scan stops after some records.
    #[error("a limit of records: a prediction is about a range")]
    Limit,
    /// The filter selects no record.
    #[error("no record is selected")]
    Nothing,
    /// One reading found other records than the one before.
    #[error("{}: the WAL changed while it was read", path.display())]
    Changed {
        /// The first path.
        path: PathBuf,
    },
}

impl WhatIfError {
    /// Whether something else has to be asked; else something cannot be read.
    pub fn is_usage(&self) -> bool {
        match self {
            WhatIfError::TooMany { .. }
            | WhatIfError::Codec { .. }
            | WhatIfError::MaxWalSize { .. }
            | WhatIfError::Place { .. }
            | WhatIfError::Limit
            | WhatIfError::Nothing => true,
            WhatIfError::Input(_)
            | WhatIfError::Spool(_)
            | WhatIfError::Trace { .. }
            | WhatIfError::Changed { .. } => false,
        }
    }
}

impl WhatIf {
    /// About the WAL that `scan` reads: its range, or that of the records that its filter selects.
    pub fn new(scan: impl Into<Scan>) -> WhatIf {
        WhatIf { scan: scan.into(), memory: USUAL_MEMORY_BYTES, share: None, server: None }
    }

    /// With so many bytes of memory for pages.
    pub fn memory(self, bytes: u64) -> WhatIf {
        WhatIf { memory: bytes, ..self }
    }

    /// With what is known of a server's settings, if it is the one that wrote the WAL.
    pub fn server(self, server: Option<KnownServer>) -> WhatIf {
        WhatIf { server, ..self }
    }

    /// Compresses a share of the images only, and tells from them how long the others become.
    pub fn sample(self, share: Share) -> WhatIf {
        WhatIf { share: Some(share), ..self }
    }

    /// What these scenarios would have written; none: the usual ones.
    ///
    /// # Errors
    ///
    /// When there is nothing to read, or a scenario makes no sense for it.
    pub fn run(self, asked: Vec<Scenario>) -> Result<Predicted, WhatIfError> {
        if self.scan.wanted.limit.is_some() {
            return Err(WhatIfError::Limit);
        }
        let spooled = Spooled::of(&self.scan.paths)?;
        let scan = Scan { paths: spooled.paths.clone(), ..self.scan.clone() };
        let extent = extent(&scan)?;
        let question = WhatIf { scan: within(scan, extent.as_ref()), ..self };
        let (plan, scanned, trace, base) = question.replay_base(&asked)?;
        let is_there = |extent: &Range<Lsn>| {
            scanned.first == Some(extent.start) && scanned.ending.lsn >= extent.end
        };
        if !extent.as_ref().is_none_or(is_there) {
            return Err(question.changed());
        }
        let scenarios = scenarios(asked, &base, &plan)?;
        let runs = predict::runs(&base, &scenarios);
        let compresses = runs.iter().any(|run| run.codec.is_some());
        let predictions = question.predictions(&trace, &base, &scenarios, &runs)?;
        was_read_back(&trace)?;
        Ok(Predicted {
            plan,
            scanned,
            unfiled: trace.records.unfiled().map(|error| error.to_string()),
            base,
            scenarios: scenarios.into_iter().zip(predictions).collect(),
            compresses,
        })
    }

    /// What every report says of the range, and the trace: from one reading, or from two where the trace
    /// needs what lies around the range too.
    fn replay_base(
        &self,
        asked: &[Scenario],
    ) -> Result<(Plan, Outcome<Statistics>, Trace, Base), WhatIfError> {
        let mut changes = asked.iter().flat_map(|scenario| &scenario.asked);
        let asks_level = changes.any(|asked| matches!(asked.change, Change::Logical(_)));
        let memory = self.memory;
        let builder = move || {
            let plain = TraceBuilder::within(memory, || Ok(Box::new(tempfile::tempfile()?)));
            if asks_level { plain.with_levels() } else { plain }
        };
        let (plan, scanned, end, when, traced) = if self.scan.wanted.range == (Lsn(0)..Lsn::MAX) {
            let beside = (Statistics::default(), causes::observer());
            let (plan, both, traced) = trace(&self.scan, beside, builder)?;
            let (end, mut when) = (both.ending.lsn, causes::observer());
            let scanned = both.map(|(statistics, seen)| {
                when = seen;
                statistics
            });
            (plan, scanned, end, when, traced)
        } else {
            let (plan, scanned) = self.scan.count(&Statistics::default())?;
            let (_, all, traced) = trace(&self.all(), causes::observer(), builder)?;
            (plan, scanned, all.ending.lsn, all.observer, traced)
        };
        let geometry = Geometry {
            page: plan.geometry.page_bytes.into(),
            segment: plan.geometry.segment_bytes.into(),
        };
        let asked_start = Some(self.scan.wanted.range.start).filter(|&start| start > Lsn(0));
        let start = scanned.first.or(asked_start).unwrap_or(plan.bounds().start);
        let range = start..scanned.ending.lsn;
        if traced.is_full() {
            return Err(WhatIfError::TooMany { path: self.first_path() });
        }
        let (trace, base) = traced.finish(plan.version(), geometry, range);
        was_read_back(&trace)?;
        let (counted, _) = &scanned.observer;
        let noted = base.last.saturating_sub(base.first);
        if counted.sum(|_| true).count != u64::from(noted) {
            return Err(self.changed());
        }
        let is_its_server =
            |server: &&KnownServer| plan.geometry.system_identifier == server.system_identifier;
        let known = self.server.as_ref().filter(is_its_server);
        let server = Server {
            segment_bytes: geometry.segment,
            version: plan.version(),
            pace: known.and_then(|server| server.pace),
            archive_timeout: known.and_then(|server| server.archive_timeout),
        };
        let causes = Causes::of(when, end, &server);
        Ok((plan, scanned, trace, base.with_causes(&causes)))
    }

    /// What lies before and after the range too: when blocks were touched before it, and the records of
    /// checkpoints that began in it.
    fn all(&self) -> Scan {
        let mut scan = self.scan.clone();
        scan.wanted.range = Lsn(0)..Lsn::MAX;
        scan
    }

    fn predictions(
        &self,
        trace: &Trace,
        base: &Base,
        scenarios: &[Scenario],
        runs: &[PlannedRun],
    ) -> Result<Vec<Prediction>, WhatIfError> {
        let mut recoded = self.recoded(trace, base, runs)?.into_iter();
        let plain: Vec<Settings> =
            runs.iter().filter(|run| run.codec.is_none()).map(|run| run.settings.clone()).collect();
        let threads = self.scan.threads;
        let mut replayed = predict::replay_all(trace, base, &plain, threads).into_iter();
        let mut ways: Vec<Vec<(Way, Recoded)>> = vec![Vec::new(); scenarios.len()];
        for run in runs {
            let plain = |outcome: RunOutcome| Recoded { outcome, ..Recoded::default() };
            let result = match run.codec {
                Some(_) => recoded.next(),
                None => replayed.next().map(plain),
            };
            if let Some(ways) = ways.get_mut(run.scenario) {
                ways.extend(result.map(|result| (run.way, result)));
            }
        }
        let page_bytes = trace.page_bytes as u64;
        let ways = scenarios.iter().zip(&ways);
        Ok(ways.map(|(asked, ways)| predict::predict(page_bytes, base, asked, ways)).collect())
    }

    /// The runs with another codec.
    fn recoded(
        &self,
        trace: &Trace,
        base: &Base,
        runs: &[PlannedRun],
    ) -> Result<Vec<Recoded>, WhatIfError> {
        let with_codec = runs.iter().filter_map(|run| Some((run.settings.clone(), run.codec?)));
        let runs: Vec<(Settings, Recoding)> = with_codec.collect();
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let share = self.share.unwrap_or(Share::ALL);
        let means = Means { threads: self.scan.threads.get(), page_bytes: self.memory, share };
        let make = || Recoder::new(trace, base, &runs, means);
        let (_, _, mut recoder) = read_apart(&self.all(), (), make)?;
        if recoder.saw_the_base() { Ok(recoder.finish()) } else { Err(self.changed()) }
    }

    /// One reading found other records than the one before.
    fn changed(&self) -> WhatIfError {
        WhatIfError::Changed { path: self.first_path() }
    }

    fn first_path(&self) -> PathBuf {
        self.scan.paths.first().cloned().unwrap_or_default()
    }
}

/// Reads what `scan` says, and gives its records to a builder; `beside` counts them too. On several threads
/// one builds, and the others read and check ahead of it.
fn trace<O: Observe>(
    scan: &Scan,
    beside: O,
    builder: impl Fn() -> TraceBuilder + Send + Sync + 'static,
) -> Result<(Plan, Outcome<O>, TraceBuilder), InputError> {
    match NonZeroUsize::new(scan.threads.get() - 1) {
        Some(threads) => read_apart(&Scan { threads, ..scan.clone() }, beside, builder),
        None => read_here(scan, beside, builder),
    }
}

/// Whether all of the trace could be read, where a part of it is in a file.
fn was_read_back(trace: &Trace) -> Result<(), WhatIfError> {
    let failed = |error: &std::io::Error| {
        let (path, reason) = (std::env::temp_dir(), error.to_string());
        Err(WhatIfError::Trace { path, reason })
    };
    trace.records.failure().map_or(Ok(()), failed)
}

/// The base itself, and what was asked for.
fn scenarios(asked: Vec<Scenario>, base: &Base, plan: &Plan) -> Result<Vec<Scenario>, WhatIfError> {
    let flags = plan.version().image_flags;
    let newer = |change: &Change| {
        matches!(change, Change::Compression(Some(Compression::Lz4 | Compression::Zstd)))
    };
    for setting in asked.iter().flat_map(|scenario| &scenario.asked) {
        if newer(&setting.change) && !flags.has_lz4() {
            let (value, release) = (setting.value.clone(), plan.version().name);
            return Err(WhatIfError::Codec { value, release });
        }
    }
    for setting in asked.iter().flat_map(|scenario| &scenario.asked) {
        check_places(setting, base)?;
    }
    asked.iter().try_for_each(|scenario| check_max_wal_size(scenario, base))?;
    let mut scenarios = vec![Scenario::default()];
    if asked.is_empty() {
        scenarios.extend(Scenario::usual(flags, base.compression));
    } else {
        scenarios.extend(asked);
    }
    Ok(scenarios)
}

/// A server wants room for two segments. The base's own max_wal_size is not held against segments of another
/// size: whoever makes a cluster anew sets it anew. Where it is too small for them, checkpoints begin as with
/// the least that a server takes, one segment apart.
fn check_max_wal_size(scenario: &Scenario, base: &Base) -> Result<(), WhatIfError> {
    let least = 2 * scenario.settings().segment_bytes.unwrap_or(base.geometry.segment);
    let is_refused =
        |change: &Change| matches!(change, Change::MaxWalSize(bytes) if *bytes < least);
    let refused = scenario.asked.iter().find(|asked| is_refused(&asked.change));
    match refused.filter(|_| base.version.pacing.wants_two_segments) {
        Some(AskedSetting { value, .. }) => {
            let (value, release) = (value.clone(), base.version.name);
            Err(WhatIfError::MaxWalSize { value, release, least })
        }
        None => Ok(()),
    }
}

/// Redo points have to lie in the range.
fn check_places(setting: &AskedSetting, base: &Base) -> Result<(), WhatIfError> {
    let Change::Checkpoints(Checkpoints::At(places)) = &setting.change else { return Ok(()) };
    let (start, end) = (base.start, base.end);
    match places.iter().find(|place| **place < start || **place > end) {
        Some(&place) => Err(WhatIfError::Place { option: setting.option, place, start, end }),
        None => Ok(()),
    }
}

/// From where to where the records lie that a filter selects.
fn extent(scan: &Scan) -> Result<Option<Range<Lsn>>, WhatIfError> {
    if scan.wanted.select.is_none() {
        return Ok(None);
    }
    let (_, scanned) = scan.count(&Extent::default())?;
    let (start, end) = scanned.observer.0.ok_or(WhatIfError::Nothing)?;
    Ok(Some(start..end))
}

/// The same scan with that as its range in place of the filter: a server writes what lies between the
/// records, too.
fn within(mut scan: Scan, extent: Option<&Range<Lsn>>) -> Scan {
    if let Some(extent) = extent {
        (scan.wanted.range, scan.wanted.select) = (extent.clone(), None);
    }
    scan
}

/// From the first record's start to the last one's end.
#[derive(Debug, Clone, Default)]
struct Extent(Option<(Lsn, Lsn)>);

impl Observe for Extent {
    fn observe(&mut self, record: &Record<'_>) {
        let start = self.0.map_or(record.lsn, |(start, _)| start);
        self.0 = Some((start, record.end.aligned()));
    }

    fn merge(&mut self, later: Extent) {
        self.0 = match (self.0, later.0) {
            (Some((start, _)), Some((_, end))) => Some((start, end)),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

#[cfg(test)]
mod tests;
