//! Whether the folder that is followed is still the one that it was: it may go away, and another cluster's
//! WAL may lie there later.

use super::held::identity;
use super::shelf::Shelf;
use super::{Follower, Happening, Look};
use crate::input::probe::probe;
use crate::input::storage::Ahead;
use std::fs::{self, Metadata};

/// The folder, as it was when it was looked into last.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// What told it from others.
    known: Option<String>,
    is_gone: bool,
}

/// What tells a folder from one that was made later, which may have its number.
fn told_by(metadata: &Metadata) -> String {
    format!("{:?} {:?}", identity(metadata), metadata.created().ok())
}

impl Follower {
    /// Tells once that the folder is gone.
    pub(super) fn note_gone(&mut self, look: &mut Look) {
        if !std::mem::replace(&mut self.folder.is_gone, true) {
            look.happenings.push(Happening::Gone { at: self.position });
        }
    }

    /// Tells once that another cluster's WAL lies where the folder was.
    pub(super) fn note_other_cluster(&mut self, look: &mut Look) {
        let Ok(metadata) = fs::metadata(self.shelf.root()) else { return };
        let now = Some(told_by(&metadata));
        if self.folder.known.is_none() || (self.folder.known == now && !self.folder.is_gone) {
            self.folder.known = now;
            return;
        }
        // Until there is WAL again, nobody knows whose it is.
        let Some(found) = newest_cluster(&self.shelf) else { return };
        self.folder = Folder { known: now, is_gone: false };
        if found != self.scope.geometry.system_identifier {
            let at = self.position;
            look.happenings.push(Happening::OtherCluster { at, system_identifier: found });
        }
    }
}

/// The system identifier in the newest segment that has WAL, wherever it lies.
fn newest_cluster(shelf: &Shelf) -> Option<u64> {
    let all = shelf.all().ok()?;
    let mut newest_first = all.values().rev();
    newest_first.find_map(|file| {
        let probe = probe(&file.path, &mut Ahead::default()).ok()?;
        Some(probe.first_page.ok()?.long.system_identifier)
    })
}
