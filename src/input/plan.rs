//! What was found → what is read: the segments of one cluster and one history, each once, in
//! order; and what is wrong with the files themselves.

use super::discover::{Candidate, Found, file_name};
use super::duplicate;
use super::probe::{FirstPage, NotWal, Probe};
use super::problem::{Problem, ProblemKind};
use super::source::Source;
use super::timeline::{Lineage, newest_complete};
use crate::wal::lsn::Lsn;
use crate::wal::page::{Geometry, LongHeader};
use crate::wal::segment::{SegmentName, number_of};
use crate::wal::version::{Magic, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

/// One segment to be read.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Segment number: LSN divided by the segment size.
    pub number: u64,
    /// Timeline of the file.
    pub timeline: u32,
    /// Length of the file if it is not compressed, bytes.
    pub raw_bytes: Option<u64>,
    /// When the file was last written to, before the reading began.
    pub modified: Option<SystemTime>,
    /// SHA-1 of the uncompressed segment, if its name says it.
    pub sha1: Option<String>,
    /// Not yet whole when it was stored.
    pub partial: bool,
    /// Where its bytes are.
    pub source: Source,
}

/// What is to be read.
#[derive(Debug)]
pub struct Plan {
    /// Release, cluster and sizes.
    pub geometry: Geometry,
    /// The segments of one history, ascending by number, each number once.
    pub segments: Vec<Segment>,
    /// The timeline that is followed.
    pub timeline: u32,
    /// Timelines that the segments are of.
    pub timelines: Vec<u32>,
    /// Where a newer timeline branches off the one that is followed, if that is known.
    pub branch_point: Option<Lsn>,
    /// Files that are no segments of this history, by name.
    pub other_files: Vec<String>,
    /// Bytes of second copies of segments.
    pub duplicate_bytes: u64,
    /// What is wrong with the files themselves.
    pub problems: Vec<Problem>,
}

/// Why there is nothing to read. Each is one line; the exit code is 3.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The path cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path that is neither a file nor a directory.
    #[error("{}: is a {kind}, expected a WAL segment or a directory of segments", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A directory without segments.
    #[error("{}: no WAL segment in this directory (files named by 24 hexadecimal digits)", path.display())]
    NoSegments {
        /// The directory.
        path: PathBuf,
    },
    /// No file is WAL; the first reason.
    #[error("{}: {reason}", path.display())]
    NotWal {
        /// The file.
        path: PathBuf,
        /// Why it is not.
        reason: NotWal,
    },
    /// No segment of the timeline that was asked for.
    #[error("{}: no segment of timeline {wanted}; there is {}", path.display(), list(present))]
    Timeline {
        /// A file.
        path: PathBuf,
        /// Asked for.
        wanted: u32,
        /// Present.
        present: Vec<u32>,
    },
    /// The range lies outside the segments.
    #[error("{}: nothing in range: the segments hold {first} to {last}", path.display())]
    Range {
        /// The first file.
        path: PathBuf,
        /// First byte of the first segment.
        first: Lsn,
        /// Behind the last byte of the last segment.
        last: Lsn,
    },
    /// No record starts in the range.
    #[error("{}: nothing in range: no WAL record starts at {start} or behind it", path.display())]
    NothingInRange {
        /// The first file.
        path: PathBuf,
        /// Start of the range.
        start: Lsn,
    },
    /// Nothing but zeros and old content.
    #[error("{}: no WAL record found in {} to {}", path.display(), first, last)]
    NoRecord {
        /// The first file.
        path: PathBuf,
        /// First byte read.
        first: Lsn,
        /// Behind the last byte read.
        last: Lsn,
    },
}

fn list(timelines: &[u32]) -> String {
    let texts: Vec<String> = timelines.iter().map(u32::to_string).collect();
    format!("timeline {}", texts.join(", "))
}

/// Makes the plan for files; `timeline`: the one asked for.
pub fn plan(mut found: Found, timeline: Option<u32>) -> Result<Plan, InputError> {
    let geometry = geometry(&found.candidates)?;
    let mut plan = Plan::new(geometry);
    let mut placed: BTreeMap<u64, Vec<(u32, Candidate)>> = BTreeMap::new();
    let mut refused = Vec::new();
    for candidate in std::mem::take(&mut found.candidates) {
        match place(&candidate, &geometry) {
            Ok((number, timeline)) => {
                placed.entry(number).or_default().push((timeline, candidate));
            }
            Err(problem) => refused.push((candidate, problem)),
        }
    }
    plan.other_files = std::mem::take(&mut found.others);
    for (candidate, problem) in refused {
        match is_spare_copy(&candidate, &placed, &geometry) {
            true => plan.other_files.push(file_name(&candidate.path)),
            false => plan.problems.push(problem),
        }
    }
    let present = placed.values().flatten().map(|(timeline, _)| *timeline).collect();
    let lineage = plan.follow(timeline, present, &found)?;
    for (number, files) in placed {
        plan.choose_file(&lineage, number, files);
    }
    plan.timelines = plan.timelines_read();
    Ok(plan)
}

/// Release, cluster and sizes that most first pages agree on.
fn geometry(candidates: &[Candidate]) -> Result<Geometry, InputError> {
    let mut votes: BTreeMap<(u16, u64, u32, u32), usize> = BTreeMap::new();
    for page in candidates.iter().filter_map(|c| c.probe.first_page.as_ref().ok()) {
        *votes.entry(identity(page)).or_default() += 1;
    }
    // Among equals the newest release: `max_by_key` keeps the last one.
    let winner = votes.into_iter().max_by_key(|&(_, count)| count).map(|(key, _)| key);
    if let Some((magic, system_identifier, segment_bytes, page_bytes)) = winner
        && let Magic::Known(version) = Magic::of(magic)
    {
        return Ok(Geometry { version, system_identifier, segment_bytes, page_bytes });
    }
    let unreadable = |candidate: &Candidate| {
        let reason = candidate.probe.first_page.clone().err()?;
        Some(InputError::NotWal { path: candidate.path.clone(), reason })
    };
    let first = candidates.iter().find_map(unreadable);
    Err(first.unwrap_or(InputError::NoSegments { path: PathBuf::from(".") }))
}

fn identity(page: &FirstPage) -> (u16, u64, u32, u32) {
    let LongHeader { system_identifier, segment_bytes, page_bytes } = page.long;
    (page.header.magic, system_identifier, segment_bytes, page_bytes)
}

/// Number and timeline of a candidate; a problem if it belongs to something else.
fn place(candidate: &Candidate, geometry: &Geometry) -> Result<(u64, u32), Problem> {
    let file = file_name(&candidate.path);
    let first = candidate.probe.first_page.as_ref();
    if let Ok(page) = first {
        belongs(page, geometry, &file)?;
    }
    let name = candidate.name.as_ref().map(|file| file.name);
    match (name, first) {
        (_, Err(reason)) if reason.is_final() => Err(Problem::of_file(
            ProblemKind::NotWal,
            &file,
            "a WAL segment".into(),
            reason.to_string(),
        )),
        (Some(name), _) => match name.number(geometry.segment_bytes) {
            Some(number) => Ok((number, name.timeline)),
            None => {
                let bytes = geometry.segment_bytes;
                let expected = format!("a name that is possible with segments of {bytes} bytes");
                Err(Problem::of_file(ProblemKind::SegmentName, &file, expected, file.clone()))
            }
        },
        (None, Ok(page)) => match number_of(page.header.address, geometry.segment_bytes) {
            Some(number) => Ok((number, page.header.timeline)),
            None => {
                let found = format!("page address {}", page.header.address);
                Err(Problem::of_file(
                    ProblemKind::PageAddress,
                    &file,
                    "an address with an end".into(),
                    found,
                ))
            }
        },
        (None, Err(reason)) => Err(Problem::of_file(
            ProblemKind::NotWal,
            &file,
            "a WAL segment".into(),
            reason.to_string(),
        )),
    }
}

/// Whether a file is an encrypted copy, or one in a format that is not read, of a segment that is
/// there in the clear as well.
fn is_spare_copy(
    candidate: &Candidate,
    placed: &BTreeMap<u64, Vec<(u32, Candidate)>>,
    geometry: &Geometry,
) -> bool {
    let refused = candidate.probe.first_page.as_ref().err();
    let name = candidate.name.as_ref().map(|file| file.name);
    name.filter(|_| refused.is_some_and(NotWal::may_be_a_copy)).is_some_and(|name| {
        let number = name.number(geometry.segment_bytes);
        let files = number.and_then(|number| placed.get(&number));
        files.is_some_and(|files| files.iter().any(|(timeline, _)| *timeline == name.timeline))
    })
}

/// Whether a first page is of this release, cluster and sizes; a problem if not.
pub fn belongs(page: &FirstPage, geometry: &Geometry, file: &str) -> Result<(), Problem> {
    let version = geometry.version;
    if page.header.magic != version.magic {
        let release = match Magic::of(page.header.magic) {
            Magic::Known(version) => version.name,
            _ => "unknown",
        };
        let expected = format!("WAL of PostgreSQL {}", version.name);
        let found = format!("WAL of PostgreSQL {release}");
        return Err(Problem::of_file(ProblemKind::OtherRelease, file, expected, found));
    }
    let expected = geometry.long_header();
    if page.long == expected {
        return Ok(());
    }
    let kind = match page.long.system_identifier == expected.system_identifier {
        true => ProblemKind::SegmentSize,
        false => ProblemKind::OtherCluster,
    };
    Err(Problem::of_file(kind, file, expected.to_string(), page.long.to_string()))
}

impl Plan {
    /// A plan of nothing yet.
    pub fn new(geometry: Geometry) -> Plan {
        Plan {
            geometry,
            segments: Vec::new(),
            timeline: 0,
            timelines: Vec::new(),
            branch_point: None,
            other_files: Vec::new(),
            duplicate_bytes: 0,
            problems: Vec::new(),
        }
    }

    /// Decides which history is followed.
    pub fn follow(
        &mut self,
        wanted: Option<u32>,
        present: BTreeSet<u32>,
        found: &Found,
    ) -> Result<Lineage, InputError> {
        let timeline = match wanted {
            Some(wanted) if present.contains(&wanted) => wanted,
            Some(wanted) => {
                let present = present.into_iter().collect();
                let path = found.paths.first().cloned().unwrap_or_default();
                return Err(InputError::Timeline { path, wanted, present });
            }
            None => newest_complete(&present, &found.histories).unwrap_or(1),
        };
        let newer = found.histories.iter().filter(|(child, _)| **child > timeline);
        let ends = newer.flat_map(|(_, ancestors)| ancestors);
        let ends = ends.filter(|ancestor| ancestor.timeline == timeline);
        self.branch_point = ends.map(|ancestor| ancestor.end).max();
        self.timeline = timeline;
        Ok(Lineage::of(timeline, &found.histories))
    }

    /// Of all files for one segment, takes the one to read.
    fn choose_file(&mut self, lineage: &Lineage, number: u64, files: Vec<(u32, Candidate)>) {
        let start = Lsn(number * u64::from(self.geometry.segment_bytes));
        let best = lineage.files_for(start).find(|wanted| files.iter().any(|(t, _)| t == wanted));
        let (ours, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(t, _)| Some(*t) == best);
        self.other_files.extend(others.iter().map(|(_, candidate)| file_name(&candidate.path)));
        let mut ours: Vec<Candidate> = ours.into_iter().map(|(_, candidate)| candidate).collect();
        // Whole before partial, plain before compressed.
        ours.sort_by_key(|c| (c.is_partial(), matches!(c.probe.source, Source::Compressed(..))));
        if ours.len() > 1 {
            let verdict = duplicate::compare(&ours, start, &self.geometry);
            self.duplicate_bytes += verdict.duplicate_bytes;
            self.problems.extend(verdict.problems);
            ours.swap(0, verdict.best);
        }
        if let (Some(timeline), Some(candidate)) = (best, ours.into_iter().next()) {
            let partial = candidate.is_partial();
            let sha1 = candidate.name.and_then(|file| file.sha1);
            let Probe { source, raw_bytes, modified, .. } = candidate.probe;
            self.segments.push(Segment {
                number,
                timeline,
                raw_bytes,
                modified,
                sha1,
                partial,
                source,
            });
        }
    }

    /// Whether this segment is read from a file of this timeline.
    pub fn reads(&self, number: u64, timeline: u32) -> bool {
        let index = self.segments.binary_search_by_key(&number, |segment| segment.number);
        let segment = index.ok().and_then(|index| self.segments.get(index));
        segment.is_some_and(|segment| segment.timeline == timeline)
    }

    /// The timelines of the segments, each once.
    pub fn timelines_read(&self) -> Vec<u32> {
        let timelines: BTreeSet<u32> = self.segments.iter().map(|s| s.timeline).collect();
        timelines.into_iter().collect()
    }

    /// Leaves only the segments that the range needs.
    pub fn clip(&mut self, start: Lsn, end: Lsn) -> Result<(), InputError> {
        let bytes = u64::from(self.geometry.segment_bytes);
        let (first, last) = self.bounds();
        let path = self.segments.first().map(|s| s.source.path().clone()).unwrap_or_default();
        self.segments.retain(|s| s.number * bytes < end.0 && (s.number + 1) * bytes > start.0);
        self.problems.retain(|problem| {
            let name = problem.segment.get(..24).and_then(SegmentName::parse);
            let place = name.and_then(|name| name.start(self.geometry.segment_bytes));
            place.is_none_or(|lsn| lsn < end && lsn.0 + bytes > start.0)
        });
        if self.segments.is_empty() {
            return Err(InputError::Range { path, first, last });
        }
        Ok(())
    }

    /// The first byte of the first segment, and the byte behind the last one.
    pub fn bounds(&self) -> (Lsn, Lsn) {
        let bytes = u64::from(self.geometry.segment_bytes);
        let first = self.segments.first().map_or(0, |s| s.number * bytes);
        let last = self.segments.last().map_or(0, |s| (s.number + 1) * bytes);
        (Lsn(first), Lsn(last))
    }

    /// The name of the segment in which `lsn` lies.
    pub fn segment_name(&self, lsn: Lsn) -> String {
        let number = lsn.0 / u64::from(self.geometry.segment_bytes);
        let segment = self.segments.binary_search_by_key(&number, |s| s.number).ok();
        let timeline = segment.and_then(|index| self.segments.get(index)).map(|s| s.timeline);
        let timeline = timeline.unwrap_or(self.timeline);
        SegmentName::new(timeline, number, self.geometry.segment_bytes).to_string()
    }

    /// The release that wrote the WAL.
    pub fn version(&self) -> &'static Version {
        self.geometry.version
    }
}

impl Candidate {
    /// Whether its name says that it is not whole.
    pub fn is_partial(&self) -> bool {
        self.name.as_ref().is_some_and(|file| file.partial)
    }
}
