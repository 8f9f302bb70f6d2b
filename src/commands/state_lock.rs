//! That a state file (`--state`) is used by one program at a time.

use crate::failure::Failure;
use crate::output::{Named, hold};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// More links than that lead nowhere (`MAXSYMLINKS`).
const LINKS_MAX: usize = 40;

/// The file that stands for the lock of a state. By whatever link that is called, it is the same file,
/// whether the state is there yet or not.
pub fn lock_of(state: &Path) -> PathBuf {
    let whole = lies_at(state);
    let mut name = whole.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    whole.with_file_name(name)
}

/// Where a file lies, or will.
fn lies_at(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.with_file_name("").join(target);
    }
    let name = path.file_name().unwrap_or_default();
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    directory.canonicalize().map_or_else(|_| path.clone(), |directory| directory.join(name))
}

/// A file beside the state that one program holds locked. It is removed with the lock.
#[derive(Debug)]
pub struct Lock {
    // Removed before it is unlocked: what another program makes then is its own.
    named: Named,
    _file: File,
}

impl Lock {
    /// Locks a state; `command` is what uses it.
    ///
    /// # Errors
    ///
    /// When somebody else is using it.
    pub fn take(state: &Path, command: &str) -> Result<Lock, Failure> {
        let path = lock_of(state);
        loop {
            let taken = hold(&path, |file| match file.try_lock() {
                // Whoever held it before may have removed it meanwhile, and a third one made a new one.
                Ok(()) => Ok(is_at(file, &path)),
                Err(TryLockError::WouldBlock) => Err(Failure::Usage(format!(
                    "{}: another {command} is using this state file right now: wait until it has ended",
                    state.display()
                ))),
                Err(TryLockError::Error(source)) => {
                    Err(Failure::Output { path: path.display().to_string(), source })
                }
            })?;
            if let Some((named, file)) = taken {
                return Ok(Lock { named, _file: file });
            }
        }
    }

    /// Removes the file.
    pub fn remove(&self) {
        self.named.remove();
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    let there = std::fs::metadata(path).map(identity).ok();
    there.is_some() && there == file.metadata().map(identity).ok()
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}
