//! Segments that somebody has begun to write since the paths were looked at first.

use super::Found;
use std::collections::BTreeSet;
use walstat_format::segment::SegmentName;

impl Found {
    /// Leaves them out, and newer ones of their timelines: the archive as it was then does not have them.
    pub fn leave_out_begun(&mut self, begun: &BTreeSet<SegmentName>) {
        let is_newer = |name: SegmentName| {
            begun.iter().any(|first| first.timeline == name.timeline && *first <= name)
        };
        self.pieces.retain(|piece| piece.name.as_ref().is_none_or(|file| !is_newer(file.name)));
        self.listed.retain(|listed| !is_newer(listed.name.name));
        let note = |name| format!("{name}: not read: it was begun while the other files were read");
        self.notes.extend(begun.iter().map(note));
    }
}
