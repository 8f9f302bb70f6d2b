//! What is known of one file that may be a segment, before its place is: on disk or in a stream,
//! it is the same.

use super::discover::file_name;
use super::names::{SegmentFile, Standing};
use super::probe::Probe;
use std::path::Path;

/// A file that may be a segment.
#[derive(Debug)]
pub struct Piece {
    /// What its name says, if it says that it is a segment.
    pub name: Option<SegmentFile>,
    /// What its first bytes say, and where they are.
    pub probe: Probe,
    /// Where it lies: an index in [`Directories`](super::taken_for::Directories).
    pub directory: usize,
    /// In a stream of segments without names, the piece before this one.
    pub after: Option<usize>,
}

impl Piece {
    /// The file; of what came through a stream, the stream and the member.
    pub fn path(&self) -> &Path {
        self.probe.source.path()
    }

    /// The file's name, for people.
    pub fn file(&self) -> String {
        file_name(self.path())
    }

    /// What its name promises.
    pub fn standing(&self) -> Standing {
        self.name.as_ref().map_or(Standing::Aside, |name| name.standing)
    }
}
