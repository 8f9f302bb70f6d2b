//! What comes through a pipe, kept in a file without a name to be read more than once. Whatever ends the
//! program, nothing of it is left, and nobody else can open it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use walstat_read::input::inherited::{STANDARD_INPUT, is_read_once};

/// What can be read only once could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be kept in a file to be read again: {error}", path.display())]
pub struct SpoolError {
    /// The pipe, or where temporary files lie.
    path: PathBuf,
    /// Why.
    error: io::Error,
}

/// What can be read only once, as it was kept to be read again.
#[derive(Debug)]
pub struct Spooled {
    /// The paths, with files in place of pipes.
    pub paths: Vec<PathBuf>,
    kept: Vec<Kept>,
}

/// A pipe, and the file in its place.
#[derive(Debug)]
struct Kept {
    pipe: PathBuf,
    path: PathBuf,
    /// Keeps the file there.
    _file: Spool,
}

/// A file that goes away by itself.
#[derive(Debug)]
enum Spool {
    Unnamed { _file: File },
    Named { _file: NamedTempFile },
}

impl Spooled {
    /// Keeps what comes through a pipe in a file: the WAL is read several times.
    ///
    /// # Errors
    ///
    /// When a pipe cannot be read, or no file written.
    pub fn of(paths: &[PathBuf]) -> Result<Spooled, SpoolError> {
        let mut spooled = Spooled { paths: paths.to_vec(), kept: Vec::new() };
        for path in spooled.paths.iter_mut().filter(|path| is_read_once(path)) {
            let failed = |path: &Path, error| SpoolError { path: path.to_owned(), error };
            let (mut file, place, spool) =
                file().map_err(|error| failed(&std::env::temp_dir(), error))?;
            copy(path, &mut file).map_err(|error| failed(path, error))?;
            let pipe = std::mem::replace(path, place.clone());
            spooled.kept.push(Kept { pipe, path: place, _file: spool });
        }
        Ok(spooled)
    }

    /// The pipe in whose place a path is.
    pub fn pipe(&self, path: &Path) -> Option<&Path> {
        let kept = self.kept.iter().find(|kept| kept.path == path);
        kept.map(|kept| kept.pipe.as_path())
    }

    /// A text, or the name of a file, with pipes in place of the files.
    pub fn told(&self, text: &str) -> String {
        self.kept.iter().fold(text.to_owned(), |text, Kept { pipe, path, .. }| {
            let pipe = pipe.display().to_string();
            if path.file_name().is_some_and(|name| name == text.as_str()) {
                pipe
            } else {
                text.replace(&path.display().to_string(), &pipe)
            }
        })
    }
}

/// A new file, and a path that opens it again.
fn file() -> io::Result<(File, PathBuf, Spool)> {
    let file = tempfile::tempfile()?;
    if let Some(path) = again(&file) {
        return Ok((file.try_clone()?, path, Spool::Unnamed { _file: file }));
    }
    let named = NamedTempFile::new().map_err(|error| io::Error::from(error.kind()))?;
    let path = named.path().to_owned();
    Ok((named.reopen()?, path, Spool::Named { _file: named }))
}

/// Where an open file can be opened once more, to be read from its beginning.
fn again(file: &File) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        File::open(&path).is_ok().then_some(path)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

fn copy(path: &Path, kept: &mut File) -> io::Result<u64> {
    if path == Path::new(STANDARD_INPUT) {
        io::copy(&mut io::stdin().lock(), kept)
    } else {
        io::copy(&mut File::open(path)?, kept)
    }
}
