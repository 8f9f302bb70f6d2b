//! Whether the folder that is followed is still the one that it was: it may go away or be closed, and another
//! cluster's WAL may lie there later.

use super::held::Identity;
use super::shelf::Shelf;
use super::{Follower, Happening, Look};
use crate::input::error::InputError;
use crate::input::probe::probe;
use crate::input::storage::Ahead;
use std::io;
use std::path::Path;

/// The folder, as it was when it was looked into last.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// What told it from others.
    known: Option<Identity>,
    state: State,
    /// A segment was taken away or replaced, and nobody knows yet whose the others are.
    is_doubtful: bool,
    is_unreadable: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// It holds the WAL that is followed.
    #[default]
    There,
    Gone,
    /// Another cluster's WAL lies there.
    Other,
}

impl Folder {
    /// This folder, as it is when following begins.
    pub(super) fn new(root: &Path) -> Folder {
        Folder { known: Identity::at(root), ..Folder::default() }
    }

    pub(super) fn is_there(&self) -> bool {
        self.state == State::There && !self.is_unreadable
    }

    pub(super) fn is_of_another_cluster(&self) -> bool {
        self.state == State::Other
    }
}

impl Follower {
    /// Lists what is there from segment `first` on, if it has changed; whether it was listed.
    pub(super) fn list(&mut self, first: u64, look: &mut Look) -> Result<bool, InputError> {
        let root = self.files.shelf.root().to_owned();
        let listed = match self.files.shelf.refresh(first) {
            // Where a server is built anew its folder is away for a while.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.files.shelf.forget();
                if std::mem::replace(&mut self.folder.state, State::Gone) != State::Gone {
                    look.happenings.push(Happening::Gone { at: self.progress.position });
                }
                return Ok(false);
            }
            listed => listed.map_err(|error| InputError::io(&root, error))?,
        };
        self.folder.is_doubtful |= listed && self.is_replaced();
        self.note_cluster(look);
        Ok(listed)
    }

    /// Tells once that the folder, or a file in it, may not be read; any other error ends the look.
    pub(super) fn note_unreadable(&mut self, error: InputError, look: &mut Look) {
        let is_denied = matches!(
            &error,
            InputError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied
        );
        if !is_denied {
            look.error = Some(error);
            return;
        }
        if !std::mem::replace(&mut self.folder.is_unreadable, true) {
            let (at, error) = (self.progress.position, error.to_string());
            look.happenings.push(Happening::Unreadable { at, error });
        }
        look.is_at_end = true;
    }

    /// Tells that the folder can be read again.
    pub(super) fn note_readable(&mut self, look: &mut Look) {
        if std::mem::take(&mut self.folder.is_unreadable) {
            look.happenings.push(Happening::Back { at: self.progress.position });
        }
    }

    /// Whether a segment that is held open is not in the folder any more.
    fn is_replaced(&self) -> bool {
        self.folder.state != State::There
            || self.files.held.iter().any(|(key, held)| {
                let there = self.files.shelf.segments.get(key);
                there.is_none_or(|copy| held.is_other_than(&copy.path))
            })
    }

    /// Tells once that another cluster's WAL lies where the folder was, or that the folder is there again.
    fn note_cluster(&mut self, look: &mut Look) {
        let Some(now) = Identity::at(self.files.shelf.root()) else { return };
        let now = Some(now);
        if !self.folder.is_doubtful && self.folder.known == now {
            return;
        }
        self.folder.is_doubtful = true;
        let ours = self.scope.geometry.system_identifier;
        // Until there is WAL again, nobody knows whose it is.
        let Some(found) = cluster_of(&self.files.shelf, ours) else { return };
        let state = if found == ours { State::There } else { State::Other };
        (self.folder.known, self.folder.is_doubtful) = (now, false);
        let before = std::mem::replace(&mut self.folder.state, state);
        let at = self.progress.position;
        match (before, state) {
            (State::There, State::There) | (State::Other, State::Other) => {}
            (_, State::Other) => {
                look.happenings.push(Happening::OtherCluster { at, system_identifier: found });
            }
            _ => look.happenings.push(Happening::Back { at }),
        }
    }
}

/// The system identifier in the segments, wherever they lie: ours if any has it, else that of the newest one
/// that has WAL.
fn cluster_of(shelf: &Shelf, ours: u64) -> Option<u64> {
    let all = shelf.all().ok()?;
    let mut newest = None;
    for file in all.values().rev() {
        let probe = probe(&file.path, &mut Ahead::default());
        let page = probe.ok().and_then(|probe| probe.first_page.ok());
        let found = page.map(|page| page.long.system_identifier);
        if found == Some(ours) {
            return found;
        }
        newest = newest.or(found);
    }
    newest
}
