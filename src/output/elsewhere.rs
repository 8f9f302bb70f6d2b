//! New files where there are no directories to hold open, nor owners and modes of files.

use crate::failure::Failure;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Stands for what is to be done before a signal ends the program: there are none.
#[derive(Debug)]
pub struct Waiting;

/// A path.
#[derive(Debug)]
pub struct Place(PathBuf);

/// What lies at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// A file, or nothing: a new file takes its place.
    File,
    /// What is written to, and not replaced.
    Device,
    /// What is neither replaced nor written to.
    Other(&'static str),
}

/// Why there is no way to a place.
#[derive(Debug)]
pub enum NoWay {
    /// A link that others may have put there.
    Link(std::ffi::OsString),
    /// The system says no.
    Io(io::Error),
}

impl Place {
    /// Where a file of this path would lie.
    pub fn of(path: &Path) -> Result<Place, NoWay> {
        Ok(Place(path.canonicalize().unwrap_or_else(|_| path.to_owned())))
    }

    /// What can be done with what lies there.
    pub fn thing(&self) -> Thing {
        match self.0.metadata() {
            Ok(found) if !found.is_file() => Thing::Other("no file"),
            _ => Thing::File,
        }
    }

    /// Opens the device that lies there.
    pub fn device(&self) -> io::Result<File> {
        File::options().write(true).open(&self.0)
    }

    /// Opens the file that lies there, or makes one, without a look at what is in it; it is removed with
    /// what is returned, if it is ours by `is_ours`.
    pub fn keep(
        self,
        is_ours: impl FnOnce(io::Result<File>) -> Result<Option<File>, Failure>,
    ) -> Result<Option<(Named, File)>, Failure> {
        let file = File::options().create(true).write(true).truncate(false).open(&self.0);
        Ok(is_ours(file)?.map(|file| (Named(self.0), file)))
    }
}

/// A file that is removed with this.
#[derive(Debug)]
pub struct Named(PathBuf);

impl Named {
    /// Removes the file.
    pub fn remove(&self) {
        // What is gone need not be removed.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct NewFile {
    /// Where it is written.
    pub file: File,
    named: NamedTempFile,
    place: Place,
}

impl NewFile {
    /// Begins a file.
    pub fn begin(place: Place) -> io::Result<NewFile> {
        let parent = place.0.parent().filter(|parent| !parent.as_os_str().is_empty());
        let named = tempfile::Builder::new().tempfile_in(parent.unwrap_or(Path::new(".")));
        // The library's own text would name the temporary file, which the user does not know.
        let named = named.map_err(|error| io::Error::from(error.kind()))?;
        Ok(NewFile { file: named.reopen()?, named, place })
    }

    /// The file is complete: it gets its name.
    pub fn finish(self) -> io::Result<()> {
        let NewFile { named, place, .. } = self;
        named.persist(place.0).map(|_| ()).map_err(|error| error.error)
    }
}
