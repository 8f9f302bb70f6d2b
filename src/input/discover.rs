//! Paths → a plan: which segments there are, which of them to read and in what order, and what
//! else lies beside them.

use super::history::{self, Ancestor};
use super::probe::{FirstPage, NotWal, Probe, probe};
use super::problem::Problem;
use super::source::Source;
use super::timeline::{Lineage, newest_complete};
use crate::wal::lsn::Lsn;
use crate::wal::page::{Geometry, LongHeader};
use crate::wal::segment::SegmentName;
use crate::wal::version::{Magic, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One segment to be read.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Segment number: LSN divided by the segment size.
    pub number: u64,
    /// Timeline of the file.
    pub timeline: u32,
    /// Length of the file if it is not compressed, bytes.
    pub raw_bytes: Option<u64>,
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
    #[error("no segment of timeline {wanted}; there is {}", list(present))]
    Timeline {
        /// Asked for.
        wanted: u32,
        /// Present.
        present: Vec<u32>,
    },
    /// The range lies outside the segments.
    #[error("nothing in range: the segments hold {} to {}", first, last)]
    Range {
        /// First byte of the first segment.
        first: Lsn,
        /// Behind the last byte of the last segment.
        last: Lsn,
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

/// A file that may be a segment, with what its name says.
struct Candidate {
    path: PathBuf,
    name: Option<SegmentName>,
    partial: bool,
    probe: Probe,
}

/// What the directories hold.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    histories: BTreeMap<u32, Vec<Ancestor>>,
    others: Vec<String>,
}

/// Makes the plan for `paths`; `timeline`: the one asked for.
pub fn discover(paths: &[PathBuf], timeline: Option<u32>) -> Result<Plan, InputError> {
    let mut found = Found::default();
    for path in paths {
        found.add_path(path)?;
    }
    found.plan(timeline)
}

/// The subdirectory of a data directory that holds the WAL: `pg_wal`, up to 9.6 `pg_xlog`.
fn wal_directory(path: &Path) -> PathBuf {
    let subdirectory = ["pg_wal", "pg_xlog"].map(|name| path.join(name));
    subdirectory.into_iter().find(|p| p.is_dir()).unwrap_or_else(|| path.to_owned())
}

/// The segment that a file name speaks of, and whether it says that the segment is partial:
/// `<24 hex>`, then `.partial` and a suffix of compression in either order.
pub fn name_of(file_name: &str) -> Option<(SegmentName, bool)> {
    let name = SegmentName::parse(file_name.get(..24)?)?;
    let mut partial = false;
    let mut rest = file_name.get(24..)?;
    while let Some(suffix) = rest.strip_prefix('.') {
        let (word, more) = suffix.split_at(suffix.find('.').unwrap_or(suffix.len()));
        match word {
            "partial" => partial = true,
            "gz" | "lz4" | "zst" | "bz2" | "xz" | "lzma" | "br" | "lz" => {}
            _ => return None,
        }
        rest = more;
    }
    rest.is_empty().then_some((name, partial))
}

impl Found {
    fn add_path(&mut self, path: &Path) -> Result<(), InputError> {
        let io = |source| InputError::Io { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            return self.add_directory(path);
        }
        if !metadata.is_file() {
            return Err(InputError::Kind { path: path.to_owned(), kind: kind_of(&metadata) });
        }
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if history::timeline_of(&file_name).is_some() {
            self.add_history(path, &file_name);
            return Ok(());
        }
        let probe = probe(path).map_err(io)?;
        let (name, partial) = name_of(&file_name).map_or((None, false), |(n, p)| (Some(n), p));
        self.candidates.push(Candidate { path: path.to_owned(), name, partial, probe });
        Ok(())
    }

    fn add_directory(&mut self, path: &Path) -> Result<(), InputError> {
        let path = wal_directory(path);
        let io = |source| InputError::Io { path: path.clone(), source };
        let before = self.candidates.len();
        let mut entries = fs::read_dir(&path)
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .map_err(io)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            // A live directory loses files while it is read: what is gone is passed over.
            let is_file = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_file());
            if is_file {
                self.add_entry(&entry.path(), &entry.file_name().to_string_lossy())?;
            }
        }
        if self.candidates.len() == before {
            return Err(InputError::NoSegments { path });
        }
        Ok(())
    }

    fn add_entry(&mut self, path: &Path, file_name: &str) -> Result<(), InputError> {
        if history::timeline_of(file_name).is_some() {
            self.add_history(path, file_name);
            return Ok(());
        }
        let Some((name, partial)) = name_of(file_name) else {
            self.others.push(file_name.to_owned());
            return Ok(());
        };
        match probe(path) {
            Ok(probe) => {
                self.candidates.push(Candidate {
                    path: path.to_owned(),
                    name: Some(name),
                    partial,
                    probe,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(InputError::Io { path: path.to_owned(), source }),
        }
        Ok(())
    }

    fn add_history(&mut self, path: &Path, file_name: &str) {
        let ancestors = fs::read_to_string(path).ok().and_then(|text| history::parse(&text));
        match (history::timeline_of(file_name), ancestors) {
            (Some(timeline), Some(ancestors)) => {
                self.histories.insert(timeline, ancestors);
            }
            _ => self.others.push(file_name.to_owned()),
        }
    }

    fn plan(mut self, timeline: Option<u32>) -> Result<Plan, InputError> {
        let geometry = self.geometry()?;
        let mut problems = Vec::new();
        let candidates = std::mem::take(&mut self.candidates);
        let mut placed: BTreeMap<u64, Vec<(u32, Candidate)>> = BTreeMap::new();
        for candidate in candidates {
            match place(&candidate, &geometry) {
                Ok((number, timeline)) => {
                    placed.entry(number).or_default().push((timeline, candidate));
                }
                Err(problem) => problems.push(problem),
            }
        }
        let timeline = self.choose_timeline(timeline, &placed)?;
        let mut plan = Plan {
            geometry,
            segments: Vec::new(),
            timeline,
            timelines: Vec::new(),
            branch_point: self.branch_point(timeline),
            other_files: Vec::new(),
            duplicate_bytes: 0,
            problems,
        };
        let lineage = Lineage::of(timeline, &self.histories);
        for (number, files) in placed {
            self.choose_file(&mut plan, &lineage, number, files);
        }
        plan.timelines =
            plan.segments.iter().map(|s| s.timeline).collect::<BTreeSet<_>>().into_iter().collect();
        plan.other_files = self.others;
        Ok(plan)
    }

    /// Release, cluster and sizes that most first pages agree on.
    fn geometry(&self) -> Result<Geometry, InputError> {
        let mut votes: BTreeMap<(u16, u64, u32, u32), usize> = BTreeMap::new();
        for page in self.candidates.iter().filter_map(|c| c.probe.first_page.as_ref().ok()) {
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
        let first = self.candidates.iter().find_map(unreadable);
        Err(first.unwrap_or(InputError::NoSegments { path: PathBuf::from(".") }))
    }

    fn choose_timeline(
        &self,
        wanted: Option<u32>,
        placed: &BTreeMap<u64, Vec<(u32, Candidate)>>,
    ) -> Result<u32, InputError> {
        let present: BTreeSet<u32> = placed.values().flatten().map(|(t, _)| *t).collect();
        match wanted {
            Some(wanted) if present.contains(&wanted) => Ok(wanted),
            Some(wanted) => {
                let present = present.into_iter().collect();
                Err(InputError::Timeline { wanted, present })
            }
            None => Ok(newest_complete(&present, &self.histories).unwrap_or(1)),
        }
    }

    /// Where a known newer timeline branches off `timeline`.
    fn branch_point(&self, timeline: u32) -> Option<Lsn> {
        let ends = self.histories.iter().filter(|(child, _)| **child > timeline);
        ends.flat_map(|(_, ancestors)| ancestors)
            .filter(|ancestor| ancestor.timeline == timeline)
            .map(|ancestor| ancestor.end)
            .max()
    }

    /// Of all files for one segment, takes the one to read.
    fn choose_file(
        &mut self,
        plan: &mut Plan,
        lineage: &Lineage,
        number: u64,
        mut files: Vec<(u32, Candidate)>,
    ) {
        let start = Lsn(number * u64::from(plan.geometry.segment_bytes));
        let best = lineage.files_for(start).find(|wanted| files.iter().any(|(t, _)| t == wanted));
        // Whole before partial, plain before compressed.
        files.sort_by_key(|(_, c)| (c.partial, matches!(c.probe.source, Source::Compressed(..))));
        let mut taken = false;
        for (timeline, candidate) in files {
            if Some(timeline) != best {
                self.others.push(file_name(&candidate.path));
            } else if taken {
                let whole = u64::from(plan.geometry.segment_bytes);
                plan.duplicate_bytes += candidate.probe.raw_bytes.unwrap_or(whole).min(whole);
            } else {
                taken = true;
                let Probe { source, raw_bytes, .. } = candidate.probe;
                plan.segments.push(Segment { number, timeline, raw_bytes, source });
            }
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn identity(page: &FirstPage) -> (u16, u64, u32, u32) {
    let LongHeader { system_identifier, segment_bytes, page_bytes } = page.long;
    (page.header.magic, system_identifier, segment_bytes, page_bytes)
}

/// Number and timeline of a candidate; a problem if it belongs to something else.
fn place(candidate: &Candidate, geometry: &Geometry) -> Result<(u64, u32), Problem> {
    let wrong = |kind, expected: String, found: String| Problem {
        kind,
        segment: file_name(&candidate.path),
        lsn: None,
        expected,
        found,
        skipped_bytes: 0,
    };
    let first = candidate.probe.first_page.as_ref();
    if let Ok(page) = first {
        let Geometry { version, .. } = geometry;
        if page.header.magic != version.magic {
            let release = match Magic::of(page.header.magic) {
                Magic::Known(version) => version.name,
                _ => "unknown",
            };
            let expected = format!("WAL of PostgreSQL {}", version.name);
            return Err(wrong("other_release", expected, format!("WAL of PostgreSQL {release}")));
        }
        let expected = geometry.long_header();
        if page.long != expected {
            let kind = match page.long.system_identifier == expected.system_identifier {
                true => "segment_size",
                false => "other_cluster",
            };
            return Err(wrong(kind, expected.to_string(), page.long.to_string()));
        }
    }
    let number = candidate.name.and_then(|name| name.number(geometry.segment_bytes));
    match (candidate.name, number, first) {
        (Some(name), Some(number), _) => Ok((number, name.timeline)),
        (None, _, Ok(page)) => {
            let number = page.header.address.0 / u64::from(geometry.segment_bytes);
            Ok((number, page.header.timeline))
        }
        (Some(_), None, _) => {
            let expected =
                format!("a name possible with segments of {} bytes", geometry.segment_bytes);
            Err(wrong("segment_name", expected, file_name(&candidate.path)))
        }
        (None, _, Err(reason)) => Err(wrong("not_wal", "a WAL segment".into(), reason.to_string())),
    }
}

#[cfg(unix)]
fn kind_of(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match () {
        () if kind.is_fifo() => "named pipe",
        () if kind.is_char_device() => "character device",
        () if kind.is_block_device() => "block device",
        () if kind.is_socket() => "socket",
        () => "special file",
    }
}

#[cfg(not(unix))]
fn kind_of(_: &fs::Metadata) -> &'static str {
    "special file"
}

impl Plan {
    /// Leaves only the segments that the range needs.
    pub fn clip(&mut self, start: Lsn, end: Lsn) -> Result<(), InputError> {
        let bytes = u64::from(self.geometry.segment_bytes);
        let bounds = |segments: &[Segment]| {
            let first = segments.first().map_or(0, |s| s.number * bytes);
            let last = segments.last().map_or(0, |s| (s.number + 1) * bytes);
            (Lsn(first), Lsn(last))
        };
        let (first, last) = bounds(&self.segments);
        self.segments.retain(|s| s.number * bytes < end.0 && (s.number + 1) * bytes > start.0);
        if self.segments.is_empty() {
            return Err(InputError::Range { first, last });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_the_suffixes_that_archivers_add() {
        let plain = "00000001000000000000000A";
        let read = |suffix: &str| name_of(&format!("{plain}{suffix}")).map(|(_, partial)| partial);
        for suffix in ["", ".gz", ".zst", ".lz4"] {
            assert_eq!(read(suffix), Some(false), "{suffix}");
        }
        for suffix in [".partial", ".gz.partial", ".partial.zst"] {
            assert_eq!(read(suffix), Some(true), "{suffix}");
        }
        for suffix in [".00000028.backup", ".json", ".", "x"] {
            assert_eq!(read(suffix), None, "{suffix}");
        }
    }
}
