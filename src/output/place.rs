//! Where a file goes: the directory, held open from the moment it was looked at, and the name in it. Nobody
//! who can write beside the file decides where it goes.

use super::interrupt;
use super::interrupt::Named;
use crate::failure::Failure;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::fs::{fstat, openat, readlinkat, stat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walstat_read::input::storage::LINKS_MAX;

/// Devices that take text and keep nothing of it, or show it.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/full", "/dev/zero", "/dev/tty"];

/// A name in a directory.
#[derive(Debug)]
pub struct Place {
    /// The directory.
    pub directory: OwnedFd,
    /// The name.
    pub name: OsString,
    /// What lies there.
    pub existing: Option<Stat>,
}

/// Why there is no way to a place.
#[derive(Debug)]
pub enum NoWay {
    /// A link that others may have put there.
    Link(OsString),
    /// The system says no.
    Io(io::Error),
}

impl From<Errno> for NoWay {
    fn from(error: Errno) -> NoWay {
        NoWay::Io(error.into())
    }
}

impl Place {
    /// Goes along a path, link by link: to the place where a file of this path would lie.
    pub fn of(path: &Path) -> Result<Place, NoWay> {
        let mut walk = Walk { directory: open_directory(".")?, steps: Vec::new(), links: 0 };
        walk.plan(path);
        while let Some(step) = walk.steps.pop() {
            if step == "/" || step == ".." {
                walk.enter(&step)?;
            } else if step != "."
                && let Some(existing) = walk.pass(&step)?
            {
                return Ok(Place { directory: walk.directory, name: step, existing });
            }
        }
        Err(Errno::ISDIR.into())
    }

    /// What can be done with what lies there.
    pub fn thing(&self) -> Thing {
        let Some(existing) = &self.existing else { return Thing::File };
        match kind_of(existing) {
            FileType::RegularFile => Thing::File,
            FileType::CharacterDevice if self.is_known_device(existing) => Thing::Device,
            FileType::CharacterDevice | FileType::BlockDevice => Thing::Other("a device"),
            FileType::Fifo => Thing::Other("a named pipe"),
            FileType::Socket => Thing::Other("a socket"),
            _ => Thing::Other("no file"),
        }
    }

    /// Whether it is a device to which text can be written without harm.
    fn is_known_device(&self, existing: &Stat) -> bool {
        let terminal = Path::new("/dev/pts").join(&self.name);
        let known = DEVICES.iter().map(Path::new).chain([terminal.as_path()]);
        let mut known = known.filter_map(|device| stat(device).ok());
        known.any(|known| known.st_rdev == existing.st_rdev)
    }

    /// Opens the device that lies there.
    pub fn device(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(openat(&self.directory, &self.name, flags, Mode::empty())?.into())
    }

    /// Opens the file that lies there, or makes one, without a look at what is in it, and removes it as a
    /// temporary one is removed, if it is ours by `is_ours`. A link or a pipe that somebody puts there
    /// meanwhile is not opened.
    pub fn keep(
        self,
        is_ours: impl FnOnce(io::Result<File>) -> Result<Option<File>, Failure>,
    ) -> Result<Option<(Named, File)>, Failure> {
        let Place { directory, name, .. } = self;
        interrupt::keep(directory, name, |directory, name| is_ours(touch(directory, name)))
    }
}

fn touch(directory: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::from_bits_truncate(0o666);
    let file = openat(directory, name, flags | OFlags::CLOEXEC, mode)?;
    match kind_of(&fstat(&file)?) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(Errno::INVAL.into()),
    }
}

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

/// On the way along a path.
struct Walk {
    /// Where it has come to.
    directory: OwnedFd,
    /// What is left of the path, the next one last.
    steps: Vec<OsString>,
    /// Links that were followed.
    links: usize,
}

impl Walk {
    fn plan(&mut self, path: &Path) {
        self.steps.extend(path.components().rev().map(|step| step.as_os_str().to_owned()));
    }

    fn enter(&mut self, step: &OsStr) -> Result<(), Errno> {
        self.directory = openat(&self.directory, step, directory_flags(), Mode::empty())?;
        Ok(())
    }

    /// Goes over a name. At the end of the path: what lies there, if anything does.
    fn pass(&mut self, step: &OsStr) -> Result<Option<Option<Stat>>, NoWay> {
        let is_last = self.steps.is_empty();
        match statat(&self.directory, step, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) if is_last => return Ok(Some(None)),
            Err(error) => return Err(error.into()),
            Ok(found) if kind_of(&found) == FileType::Symlink => self.follow(step, &found)?,
            Ok(found) if is_last && kind_of(&found) != FileType::Directory => {
                return Ok(Some(Some(found)));
            }
            Ok(_) => self.enter(step)?,
        }
        Ok(None)
    }

    fn follow(&mut self, step: &OsStr, link: &Stat) -> Result<(), NoWay> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let directory = fstat(&self.directory)?;
        if !is_trusted(Entry::of(link), Entry::of(&directory), geteuid().as_raw()) {
            return Err(NoWay::Link(step.to_owned()));
        }
        let target = readlinkat(&self.directory, step, Vec::new())?;
        self.plan(Path::new(OsStr::from_bytes(target.as_bytes())));
        Ok(())
    }
}

/// What counts of a link, and of its directory.
#[derive(Clone, Copy)]
struct Entry {
    owner: u32,
    mode: Mode,
}

impl Entry {
    fn of(stat: &Stat) -> Entry {
        Entry { owner: stat.st_uid, mode: Mode::from_raw_mode(stat.st_mode) }
    }
}

/// Whether nobody but `user` and root can have put a link into a directory. In one that all may write
/// no link is trusted, whoever's it is: in some of them others can rename links that are not theirs.
fn is_trusted(link: Entry, directory: Entry, user: u32) -> bool {
    let is_own = |owner: u32| owner == user || owner == 0;
    let is_for_all = directory.mode.contains(Mode::WOTH);
    let is_for_group = directory.mode.contains(Mode::WGRP);
    is_own(directory.owner) && !is_for_all && (!is_for_group || is_own(link.owner))
}

fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn open_directory(path: &str) -> Result<OwnedFd, Errno> {
    openat(CWD, path, directory_flags(), Mode::empty())
}

/// A directory that is only gone through need not be readable.
fn directory_flags() -> OFlags {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_trusted_where_nobody_else_can_have_put_it() {
        let entry = |owner, bits| Entry { owner, mode: Mode::from_bits_truncate(bits) };
        let (root, me, other) = (0, 1000, 65534);
        for (link, directory, user, want) in [
            (me, entry(me, 0o755), me, true),
            (other, entry(me, 0o755), me, true),
            (me, entry(root, 0o755), me, true),
            (root, entry(root, 0o755), root, true),
            (me, entry(me, 0o775), me, true),
            (other, entry(me, 0o775), me, false),
            (other, entry(root, 0o1777), me, false),
            (me, entry(root, 0o1777), me, false),
            (other, entry(other, 0o755), root, false),
            (root, entry(other, 0o755), root, false),
        ] {
            let text = format!("link of {link} for {user}");
            assert_eq!(is_trusted(entry(link, 0o777), directory, user), want, "{text}");
        }
    }
}
