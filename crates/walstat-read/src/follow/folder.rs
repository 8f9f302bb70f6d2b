//! Whether the folder that is followed is still the one that it was: it may go away or be closed, and another
//! cluster's WAL may lie there later.

use super::held::identity;
use super::shelf::Shelf;
use super::{Follower, Happening, Look};
use crate::input::error::InputError;
use crate::input::probe::probe;
use crate::input::storage::Ahead;
use std::fs::{self, Metadata};
use std::io;

/// The folder, as it was when it was looked into last.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// What told it from others.
    known: Option<String>,
    state: State,
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
    pub(super) fn is_there(&self) -> bool {
        self.state == State::There && !self.is_unreadable
    }
}

/// What tells a folder from one that was made later, which may have its number.
fn told_by(metadata: &Metadata) -> String {
    format!("{:?} {:?}", identity(metadata), metadata.created().ok())
}

impl Follower {
    /// Lists what is there from segment `first` on, if it has changed; whether it was listed.
    pub(super) fn list(&mut self, first: u64, look: &mut Look) -> Result<bool, InputError> {
        let root = self.shelf.root().to_owned();
        let listed = match self.shelf.refresh(first) {
            // Where a server is built anew its folder is away for a while.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if std::mem::replace(&mut self.folder.state, State::Gone) != State::Gone {
                    look.happenings.push(Happening::Gone { at: self.position });
                }
                return Ok(false);
            }
            listed => listed.map_err(|error| InputError::io(&root, error))?,
        };
        if listed {
            self.note_cluster(look);
        }
        Ok(listed)
    }

    /// Tells once that the folder, or a file in it, cannot be read; any other error is one.
    pub(super) fn note_unreadable(
        &mut self,
        error: InputError,
        look: &mut Look,
    ) -> Result<(), InputError> {
        let is_denied = matches!(
            &error,
            InputError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied
        );
        if !is_denied {
            return Err(error);
        }
        if !std::mem::replace(&mut self.folder.is_unreadable, true) {
            let (at, error) = (self.position, error.to_string());
            look.happenings.push(Happening::Unreadable { at, error });
        }
        look.is_at_end = true;
        Ok(())
    }

    /// Tells that the folder can be read again.
    pub(super) fn note_readable(&mut self, look: &mut Look) {
        if std::mem::take(&mut self.folder.is_unreadable) {
            look.happenings.push(Happening::Back { at: self.position });
        }
    }

    /// Tells once that another cluster's WAL lies where the folder was, or that the folder is there again.
    fn note_cluster(&mut self, look: &mut Look) {
        let Ok(metadata) = fs::metadata(self.shelf.root()) else { return };
        let now = Some(told_by(&metadata));
        let is_same = self.folder.known == now && self.folder.state != State::Gone;
        if self.folder.known.is_none() || is_same {
            self.folder.known = now;
            return;
        }
        // Until there is WAL again, nobody knows whose it is.
        let Some(found) = newest_cluster(&self.shelf) else { return };
        let is_other = found != self.scope.geometry.system_identifier;
        let state = if is_other { State::Other } else { State::There };
        self.folder.known = now;
        let before = std::mem::replace(&mut self.folder.state, state);
        let at = self.position;
        if is_other {
            look.happenings.push(Happening::OtherCluster { at, system_identifier: found });
        } else if before != State::There {
            look.happenings.push(Happening::Back { at });
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
