//! The file of `walstat check --state`: read at the beginning of a round, written at its end, and locked
//! between.

use super::partial;
use super::state_lock::Lock;
use crate::failure::Failure;
use crate::output::inputs::refuse_to_overwrite;
use crate::output::write_bytes;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use walstat_read::input::packed::{self, STATE, pack, unpack};
use walstat_read::scan::memory::Memory;

/// The versions of what is in the file: of [`Layout`] itself, to be raised whenever what is written beside
/// partial results changes; and of these, of which most of it is.
const LAYOUT_VERSIONS: [u32; 2] = [1, partial::LAYOUT_VERSION];

/// What is in the file: the options that it was made with, and what is remembered.
type Layout = (Vec<String>, Memory);

/// A state, and that nobody else uses it meanwhile.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    asked: Vec<String>,
    /// What is remembered.
    pub memory: Mutex<Memory>,
    lock: Lock,
}

impl State {
    /// Opens the state at `path`, or begins one; `asked`: the options on which depends what is remembered.
    ///
    /// # Errors
    ///
    /// When another round is using it, or it cannot be read as one of these options.
    pub fn open<'p>(
        path: &Path,
        asked: Vec<String>,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Arc<State>, Failure> {
        refuse_to_overwrite(Some(path), inputs).map_err(refused)?;
        let lock = Lock::take(path, "check").map_err(refused)?;
        let memory = match packed::read(STATE, path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Memory::default(),
            Err(error) => return Err(usage(path, &error.to_string())),
            Ok(bytes) => memory_of(path, &bytes, &asked)?,
        };
        Ok(Arc::new(State { path: path.to_owned(), asked, memory: Mutex::new(memory), lock }))
    }

    /// Writes what is remembered, whole or not at all.
    ///
    /// # Errors
    ///
    /// When it cannot be written: the file is then as it was.
    pub fn save(&self) -> Result<(), Failure> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| Failure::Output { path: self.path.display().to_string(), source };
        let content = (&self.asked, &*memory);
        let bytes =
            pack(STATE, &LAYOUT_VERSIONS, &content).map_err(|e| failed(io::Error::other(e)))?;
        write_bytes(Some(&self.path), &bytes)
    }

    /// Writes what is remembered, if the program is ended before the round is over.
    pub fn end_early(&self) {
        self.save_unfinished();
        self.lock.remove();
    }

    /// Writes what is remembered of a round that does not come to its end: the next one goes on from there.
    pub fn save_unfinished(&self) {
        let is_empty = self.memory.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if !is_empty && let Err(failure) = self.save() {
            crate::output::tell(&format!("walstat: {failure}"));
        }
    }
}

fn memory_of(path: &Path, bytes: &[u8], asked: &[String]) -> Result<Memory, Failure> {
    let (made, memory): Layout = unpack(STATE, &LAYOUT_VERSIONS, bytes).map_err(|error| {
        usage(path, &format!("{error}; remove the file to have everything read anew"))
    })?;
    if made == asked {
        return Ok(memory);
    }
    let told = |options: &[String]| match options {
        [] => "no options".to_owned(),
        options => options.join(" "),
    };
    let (found, expected) = (told(&made), told(asked));
    let again = "give the same options again, or another file for --state";
    Err(usage(
        path,
        &format!("a state of a check with {found}, and this one has {expected}: {again}"),
    ))
}

/// What lies there, or beside it, is no file for a state.
fn refused(failure: Failure) -> Failure {
    match failure {
        Failure::Target { path, reason } => {
            Failure::Usage(format!("{path}: {reason}, expected another file for --state"))
        }
        other => other,
    }
}

fn usage(path: &Path, reason: &str) -> Failure {
    Failure::Usage(format!("{}: {reason}", path.display()))
}
