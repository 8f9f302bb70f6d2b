//! Segments that lie elsewhere by the time they are read: a server removes one once it is archived, and what
//! compresses an archive puts `F.gz` in the place of `F`. Reading a large archive takes longer than a segment
//! stays where it was.

use super::input_kind::Directories;
use super::names::{FileName, Standing};
use super::probe::{Probe, probe};
use super::segment::Segment;
use super::storage::{self, Ahead};
use super::suffixes;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::segment::{GROUP_DIGITS, SegmentName};

/// The directories in which a segment may lie that is gone from its own.
#[derive(Debug, Clone, Default)]
pub struct SegmentDirectories(Arc<[OneDirectory]>);

#[derive(Debug)]
struct OneDirectory {
    path: PathBuf,
    /// Only segments whose names begin with this one's lie there, under names that go on after them.
    is_group: bool,
}

impl SegmentDirectories {
    /// All directories on disk in which segments were found.
    pub fn of(directories: &Directories) -> SegmentDirectories {
        let all = directories.all().filter(|(_, path)| !storage::is_elsewhere(path));
        let directory = |(index, path): (usize, &Path)| OneDirectory {
            path: path.to_owned(),
            is_group: directories.is_group(index),
        };
        SegmentDirectories(all.map(directory).collect())
    }

    /// Their paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|directory| &*directory.path)
    }

    /// The file of a segment that is not any more where it was found.
    pub fn find(&self, segment: &Segment, geometry: &Geometry) -> Option<Probe> {
        let number = segment.number;
        let name = SegmentName::new(segment.timeline, number, geometry.segment_bytes);
        let begin = Lsn(number * u64::from(geometry.segment_bytes));
        let candidates =
            self.0.iter().flat_map(|directory| directory.candidates(&name.to_string()));
        let mut probes = candidates.filter_map(|path| probe(&path, &mut Ahead::default()).ok());
        probes.find(|probe| {
            probe.first_page.as_ref().is_ok_and(|page| {
                page.long == geometry.long_header()
                    && page.header.magic == geometry.version.magic
                    && page.header.address == begin
            })
        })
    }
}

impl OneDirectory {
    /// Files that may be the segment of this name.
    fn candidates(&self, name: &str) -> Vec<PathBuf> {
        if !self.is_group {
            return suffixes::usual_names(name).map(|file| self.path.join(file)).collect();
        }
        let group = name.get(..GROUP_DIGITS).unwrap_or_default();
        if !self.path.ends_with(group) {
            return Vec::new();
        }
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let is_of_it = |path: &PathBuf| {
            let file = path.file_name().map(|file| FileName::parse(&file.to_string_lossy()));
            matches!(file, Some(FileName::Segment(file))
                if file.name.to_string() == name && file.standing <= Standing::Unusual)
        };
        entries.map(|entry| entry.path()).filter(is_of_it).collect()
    }
}
