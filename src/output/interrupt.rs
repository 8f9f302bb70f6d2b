//! Temporary files that have a name, and signals: whatever ends the program, none of them is left. Where a
//! file has no name before it is complete, there is nothing to do. And what else is to be done before a
//! signal ends the program.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::{OsStr, OsString, c_int};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, TryLockError};

/// Signals that end the program and that it can do something about.
const SIGNALS: [c_int; 4] = [SIGHUP, SIGINT, SIGTERM, SIGQUIT];

/// A file that has a name of its own until it gets the right one. Dropped, it is removed.
#[derive(Debug, Clone)]
pub struct Temporary {
    directory: Arc<OwnedFd>,
    name: OsString,
}

/// Those that are there. Whoever changes one holds the lock: so a signal finds it either there or not.
static THERE: Mutex<Vec<Temporary>> = Mutex::new(Vec::new());

fn there() -> MutexGuard<'static, Vec<Temporary>> {
    THERE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove_all(there: &mut Vec<Temporary>) {
    there.drain(..).for_each(|temporary| _ = temporary.remove());
}

/// Removes those that are there.
fn remove_temporaries() {
    remove_all(&mut there());
}

/// The same in the midst of anything: where this very thread holds the lock they are left.
pub fn try_to_remove_temporaries() {
    match THERE.try_lock() {
        Ok(mut there) => remove_all(&mut there),
        Err(TryLockError::Poisoned(there)) => remove_all(&mut there.into_inner()),
        Err(TryLockError::WouldBlock) => {}
    }
}

/// What is to be done before a signal ends the program.
type Task = Box<dyn FnOnce() + Send>;

static LAST_TASK: Mutex<Option<Task>> = Mutex::new(None);

fn last_task() -> MutexGuard<'static, Option<Task>> {
    LAST_TASK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `task` before a signal ends the program, for as long as the returned guard lives.
pub fn before_end(task: Task) -> Waiting {
    watch();
    *last_task() = Some(task);
    Waiting
}

/// Something is to be done.
#[derive(Debug)]
pub struct Waiting;

impl Drop for Waiting {
    fn drop(&mut self) {
        last_task().take();
    }
}

/// Makes a new file in a directory.
pub fn create(directory: OwnedFd, mode: Mode) -> io::Result<(Named, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Named::new(directory, |directory, name| Ok(openat(directory, name, flags, mode)?.into()))
}

/// A file that has its name already, and is removed as a temporary one is. `make` makes it; `None`: it is not
/// ours.
pub fn keep<T, E>(
    directory: OwnedFd,
    name: OsString,
    make: impl FnOnce(&OwnedFd, &OsStr) -> Result<Option<T>, E>,
) -> Result<Option<(Named, T)>, E> {
    watch();
    let temporary = Temporary { directory: Arc::new(directory), name };
    let mut there = there();
    let Some(made) = make(&temporary.directory, &temporary.name)? else { return Ok(None) };
    there.push(temporary.clone());
    Ok(Some((Named(temporary), made)))
}

/// Gives a name to a file that has none.
pub fn name(directory: OwnedFd, file: &File) -> io::Result<Named> {
    Named::new(directory, |directory, name| link(file, directory, name)).map(|(named, ())| named)
}

/// Gives this name to a file that has none; fails where something has it.
pub fn link(file: &File, directory: impl AsFd, name: &OsStr) -> io::Result<()> {
    let path = unnamed(file);
    Ok(linkat(CWD, path, directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Where the system lists an open file.
pub fn unnamed(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// A temporary file that is there.
#[derive(Debug)]
pub struct Named(Temporary);

impl Named {
    fn new<T>(
        directory: OwnedFd,
        make: impl FnOnce(&OwnedFd, &OsStr) -> io::Result<T>,
    ) -> io::Result<(Named, T)> {
        watch();
        // Nobody guesses it: what lies there already would be in the way.
        let name = format!(".walstat-{:016x}.tmp", RandomState::new().hash_one(SIGNALS));
        let temporary = Temporary { directory: Arc::new(directory), name: name.into() };
        let mut there = there();
        let made = make(&temporary.directory, &temporary.name)?;
        there.push(temporary.clone());
        Ok((Named(temporary), made))
    }

    /// Gives the file another name in its directory.
    pub fn rename(self, name: &OsStr) -> io::Result<()> {
        let mut there = there();
        let Temporary { directory, name: before } = &self.0;
        renameat(directory, before, directory, name)?;
        there.retain(|temporary| temporary.name != *before);
        Ok(())
    }
}

impl Named {
    /// Removes the file, if it is still there.
    pub fn remove(&self) {
        let mut there = there();
        if let Some(place) = there.iter().position(|temporary| temporary.name == self.0.name) {
            // What is gone need not be removed.
            let _ = there.swap_remove(place).remove();
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Temporary {
    fn remove(&self) -> Result<(), Errno> {
        unlinkat(&self.directory, &self.name, AtFlags::empty())
    }
}

static WATCH: Once = Once::new();

/// From now on a signal ends the program as `end` does, and temporary files are removed after that. One that
/// asks for a core, or stops the program for a while, does so after what `aside` says; `again`: it goes on.
pub fn heed_ending(end: impl FnOnce() + Send + 'static, aside: fn(), again: fn()) {
    WATCH.call_once(|| {
        let Ok(mut signals) = heeded(SIGNALS.into_iter().chain([SIGTSTP])) else { return };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGTSTP => {
                        aside();
                        let _ = emulate_default_handler(signal);
                        again();
                        continue;
                    }
                    SIGQUIT => aside(),
                    _ => break,
                }
                remove_temporaries();
                let _ = emulate_default_handler(signal);
            }
            end();
            remove_temporaries();
            std::process::exit(0);
        });
    });
}

/// From now on a signal removes temporary files before it ends the program: at once, whatever the
/// program is waiting for.
fn watch() {
    WATCH.call_once(|| {
        // A signal that cannot be caught ends the program as it always does.
        let Ok(mut signals) = heeded(SIGNALS) else { return };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if let Some(task) = last_task().take() {
                    task();
                }
                // Until the program has ended nobody makes another.
                let mut there = there();
                remove_all(&mut there);
                let _ = emulate_default_handler(signal);
            }
        });
    });
}

/// These signals as they come, without those that are to be ignored.
fn heeded(signals: impl IntoIterator<Item = c_int>) -> io::Result<Signals> {
    let ignored = ignored();
    Signals::new(signals.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0))
}

/// The signals that whoever started the program wants to be ignored, as `nohup` does; a bit for each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

/// From now on a file that exceeds the size limit is a write error, and does not end the program.
pub fn heed_size_limit() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}
