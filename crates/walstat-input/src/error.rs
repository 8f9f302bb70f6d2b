//! Why there is nothing to read at all. What is wrong in WAL that can be read is a
//! [`Problem`](super::problem::Problem).

use super::probe::NotWal;
use super::storage::shown;
use std::io;
use std::path::{Path, PathBuf};
use walstat_format::lsn::Lsn;

/// What is said where directories are nested too deep.
const TOO_DEEP: &str = "; what is nested deeper than 64 directories was not looked into";

/// Why there is nothing to read. Each is one line; the exit code is 3, or 2 where the user has to
/// choose.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The path cannot be read.
    #[error("{}: {source}", shown(path))]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// More files would have to be open at once than the system lets the process have.
    #[error("{}: {source}; raise the limit of open files (ulimit -n)", shown(path))]
    Descriptors {
        /// The path that was to be opened.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A path that is neither a file nor a directory.
    #[error("{}: is a {kind}, expected a WAL segment or a directory of segments", shown(path))]
    Kind {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A directory without segments.
    #[error(
        "{}: no WAL segment in this directory (files named by 24 hexadecimal digits){}{}",
        shown(path),
        if *is_too_deep { TOO_DEEP } else { "" },
        below.as_ref().map_or(String::new(), |it| format!("; there are some in {}", shown(it)))
    )]
    NoSegments {
        /// The directory.
        path: PathBuf,
        /// Whether there are directories below it that were not looked into.
        is_too_deep: bool,
        /// A directory in a data directory in which there are some, such as those that Barman recovers with.
        below: Option<PathBuf>,
    },
    /// No file is WAL; the reason of the first file.
    #[error("{}: {reason}", shown(path))]
    NotWal {
        /// The file.
        path: PathBuf,
        /// Why it is not.
        reason: NotWal,
    },
    /// A stream in which nothing can be a segment.
    #[error("{}: no WAL segment in it{}", shown(path), hint(beside))]
    NoWal {
        /// The stream.
        path: PathBuf,
        /// A tar beside it that has WAL, by its name.
        beside: Option<PathBuf>,
    },
    /// No segment of the timeline that was asked for.
    #[error("{}: no segment of timeline {wanted}; there is {}", shown(path), list(present))]
    Timeline {
        /// A file.
        path: PathBuf,
        /// Asked for.
        wanted: u32,
        /// Present.
        present: Vec<u32>,
    },
    /// A stream of which the first records are wanted, with segments in another order than the WAL's.
    #[error(
        "{}: its segments are not in WAL order, so it is not known which records come first; unpack it",
        shown(path)
    )]
    Unordered {
        /// The stream.
        path: PathBuf,
    },
    /// The WAL of several clusters in one place, each in a directory of its own.
    #[error(
        "{}: holds several archives: {} and {}; ask for one of them",
        shown(path),
        shown(first),
        shown(second)
    )]
    Several {
        /// What was asked for.
        path: PathBuf,
        /// One.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
    /// Partial results that do not belong together.
    #[error("{reason}")]
    Apart {
        /// What was found and what was expected.
        reason: String,
    },
    /// The range lies outside the segments.
    #[error("{}: nothing in range: the segments hold {first} to {last}", shown(path))]
    Range {
        /// The first file.
        path: PathBuf,
        /// First byte of the first segment.
        first: Lsn,
        /// After the last byte of the last segment.
        last: Lsn,
    },
    /// No record starts in the range.
    #[error(
        "{}: nothing in range: no WAL record starts at {start} or after it; the segments read hold \
         {first} to {last}",
        shown(path)
    )]
    NothingInRange {
        /// The first file.
        path: PathBuf,
        /// Start of the range.
        start: Lsn,
        /// First byte read.
        first: Lsn,
        /// After the last byte read.
        last: Lsn,
    },
    /// Nothing but zeros and old content.
    #[error("{}: no WAL record found in {} to {}", shown(path), first, last)]
    NoRecord {
        /// The first file.
        path: PathBuf,
        /// First byte read.
        first: Lsn,
        /// After the last byte read.
        last: Lsn,
    },
}

impl InputError {
    /// The same, with another path in place of each that `other` knows one for.
    pub fn with_paths(mut self, other: impl Fn(&Path) -> Option<PathBuf>) -> InputError {
        match &mut self {
            InputError::Io { path, .. }
            | InputError::Descriptors { path, .. }
            | InputError::Kind { path, .. }
            | InputError::NoSegments { path, .. }
            | InputError::NotWal { path, .. }
            | InputError::NoWal { path, .. }
            | InputError::Timeline { path, .. }
            | InputError::Unordered { path }
            | InputError::Several { path, .. }
            | InputError::Range { path, .. }
            | InputError::NothingInRange { path, .. }
            | InputError::NoRecord { path, .. } => {
                if let Some(other) = other(path) {
                    *path = other;
                }
            }
            InputError::Apart { .. } => {}
        }
        self
    }

    /// A path that cannot be read.
    pub fn io(path: &Path, source: io::Error) -> InputError {
        let path = path.to_owned();
        if is_lack_of_descriptors(&source) {
            InputError::Descriptors { path, source }
        } else {
            InputError::Io { path, source }
        }
    }
}

/// Whether the system has no file descriptor left, for the process (`EMFILE`) or for all (`ENFILE`), or no
/// memory: that says nothing of the file.
pub fn is_lack(error: &io::Error) -> bool {
    is_lack_of_descriptors(error) || error.kind() == io::ErrorKind::OutOfMemory
}

fn is_lack_of_descriptors(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// A resource that the system has run out of (file descriptors, memory), and the path at which that showed.
#[derive(Debug, Clone)]
pub struct Lacking {
    path: PathBuf,
    /// The system's own number of the error, or what is said of it.
    code: Result<i32, String>,
}

impl Lacking {
    /// What an error says of the system, where it says nothing of the file.
    pub fn of(path: &Path, error: &io::Error) -> Option<Lacking> {
        let code = || error.raw_os_error().ok_or_else(|| error.to_string());
        is_lack(error).then(|| Lacking { path: path.to_owned(), code: code() })
    }
}

impl From<Lacking> for InputError {
    fn from(Lacking { path, code }: Lacking) -> InputError {
        let no_memory = |text| io::Error::new(io::ErrorKind::OutOfMemory, text);
        InputError::io(&path, code.map_or_else(no_memory, io::Error::from_raw_os_error))
    }
}

fn hint(beside: &Option<PathBuf>) -> String {
    beside.as_ref().map_or(String::new(), |tar| format!("; {} lies beside it", tar.display()))
}

fn list(timelines: &[u32]) -> String {
    let texts: Vec<String> = timelines.iter().map(u32::to_string).collect();
    format!("timeline {}", texts.join(", "))
}
