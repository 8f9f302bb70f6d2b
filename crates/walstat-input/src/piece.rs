//! A piece: a file on disk or a member of a stream that may be a segment, before it is decided which
//! one it is. Once that is known, it is a [`Segment`](super::segment::Segment).

use super::names::{SegmentFile, file_name};
use super::probe::{FirstPage, NotWal, Probe};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use walstat_format::page::{Geometry, LongHeader};
use walstat_format::version::Magic;

/// A file on disk, or a member of a stream, that may be a segment.
#[derive(Debug, Clone)]
pub struct Piece {
    /// What its name says, if it says that it is a segment.
    pub name: Option<SegmentFile>,
    /// What its first bytes say, and where they are.
    pub probe: Probe,
    /// Where it lies: an index in [`Directories`](super::input_kind::Directories).
    pub directory: usize,
    /// In a stream of segments without names: the index of the piece before this one.
    pub after: Option<usize>,
}

/// A file that was listed under a segment's name, and not looked into yet.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Which of the paths asked for it lies in.
    pub root: usize,
    /// The file.
    pub path: PathBuf,
    /// What its name says.
    pub name: SegmentFile,
    /// How long it is.
    pub bytes: u64,
    /// When it was written.
    pub modified: Option<SystemTime>,
}

impl Piece {
    /// The path of the file; for a member of a stream, the path of the stream with that of the member.
    pub fn path(&self) -> &Path {
        self.probe.source.path()
    }

    /// The file's name, to be shown.
    pub fn file(&self) -> String {
        file_name(self.path())
    }
}

/// What all segments of an archive have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    /// The release.
    magic: u16,
    system_identifier: u64,
    segment_bytes: u32,
    page_bytes: u32,
}

pub(super) fn identity(page: &FirstPage) -> Identity {
    let LongHeader { system_identifier, segment_bytes, page_bytes } = page.long;
    Identity { magic: page.header.magic, system_identifier, segment_bytes, page_bytes }
}

/// Release, cluster and sizes, as a first page says.
pub fn geometry_of(page: &FirstPage) -> Option<Geometry> {
    let Magic::Known(version) = Magic::of(page.header.magic) else { return None };
    let LongHeader { system_identifier, segment_bytes, page_bytes } = page.long;
    Some(Geometry { version, system_identifier, segment_bytes, page_bytes })
}

/// Release, cluster and sizes that most first pages agree on, and how many they are; among equals the newest
/// release.
pub fn majority<'p>(
    pages: impl IntoIterator<Item = &'p Result<FirstPage, NotWal>>,
) -> Option<(usize, Geometry)> {
    let mut votes: BTreeMap<Identity, (usize, Geometry)> = BTreeMap::new();
    for page in pages.into_iter().filter_map(|page| page.as_ref().ok()) {
        let Some(geometry) = geometry_of(page) else { continue };
        votes.entry(identity(page)).or_insert((0, geometry)).0 += 1;
    }
    // Among equals `max_by_key` keeps the last one.
    votes.into_values().max_by_key(|&(count, _)| count)
}
