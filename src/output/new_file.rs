//! A file that appears under its name when it is complete, with no more rights than the one before it had.
//! Until then it has no name at all, where the file system can do that.

use super::interrupt;
use super::interrupt::Named;
use super::place::Place;
use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// As readable as any new file.
const NEW: Mode = Mode::from_bits_truncate(0o666);
/// The rights that a file can have; set-uid, set-gid and sticky are none of them.
const RIGHTS: Mode = Mode::from_bits_truncate(0o777);
const OWNERS: Mode = Mode::from_bits_truncate(0o600);

/// A file that is being written.
#[derive(Debug)]
pub struct NewFile {
    /// Where it is written.
    pub file: File,
    place: Place,
    /// Its name until it is complete, if it has to have one.
    named: Option<Named>,
}

impl NewFile {
    /// Begins a file.
    pub fn begin(place: Place) -> io::Result<NewFile> {
        if let Some(file) = unnamed_in(&place.directory) {
            return Ok(NewFile { file, place, named: None });
        }
        let (named, file) = interrupt::create(place.directory.try_clone()?, NEW)?;
        Ok(NewFile { file, place, named: Some(named) })
    }

    /// The file is complete: it gets its name.
    pub fn finish(self) -> io::Result<()> {
        let NewFile { file, place, named } = self;
        if let Some(existing) = &place.existing {
            // Where all may write, anybody may have prepared the file to have what is written.
            let directory = Mode::from_raw_mode(fstat(&place.directory)?.st_mode);
            set_rights(&file, existing, !directory.contains(Mode::WOTH))?;
        }
        let named = match named {
            Some(named) => named,
            None if place.existing.is_none()
                && interrupt::link(&file, &place.directory, &place.name).is_ok() =>
            {
                return Ok(());
            }
            None => interrupt::name(place.directory.try_clone()?, &file)?,
        };
        named.rename(&place.name)
    }
}

/// A file without a name, if it can be given one later.
fn unnamed_in(directory: &OwnedFd) -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file: File = openat(directory, OsStr::new("."), flags, NEW).ok()?.into();
        Path::new(&interrupt::unnamed(&file)).exists().then_some(file)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Gives a file the rights of the one that it replaces, as far as they are not wider for anybody.
fn set_rights(file: impl AsFd, existing: &Stat, keeps_owner: bool) -> io::Result<()> {
    if keeps_owner && fstat(&file)?.st_uid != existing.st_uid {
        // As `sed -i` does: root leaves a file to its owner, and nobody else can.
        let _ = fchown(&file, Some(Uid::from_raw(existing.st_uid)), None);
    }
    let new = fstat(&file)?;
    if new.st_uid == existing.st_uid && new.st_gid != existing.st_gid {
        // Who is not of the group cannot give the file to it, and the group has no rights then.
        let _ = fchown(&file, None, Some(Gid::from_raw(existing.st_gid)));
    }
    let new = fstat(&file)?;
    let rights = |stat: &Stat| Mode::from_raw_mode(stat.st_mode);
    let is_same = (new.st_uid == existing.st_uid, new.st_gid == existing.st_gid);
    Ok(fchmod(&file, rights_of(rights(existing), rights(&new), is_same))?)
}

/// The rights of a file in the place of another: those of `before` if it has the same owner, else those
/// of a `new` file, as far as `before` had them. Another group has what everybody had.
fn rights_of(before: Mode, new: Mode, (same_owner, same_group): (bool, bool)) -> Mode {
    let for_all = before & Mode::RWXO;
    let group = Mode::from_bits_truncate(for_all.bits() << 3);
    let before = if same_group { before } else { before & !(Mode::RWXG & !group) };
    let rights = if same_owner { before } else { new & before | new & OWNERS };
    rights & RIGHTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rights_are_wider_than_before() {
        for (before, new, same, want) in [
            (0o600, 0o644, (true, true), 0o600),
            (0o664, 0o644, (true, true), 0o664),
            (0o6755, 0o644, (true, true), 0o755),
            (0o640, 0o644, (true, false), 0o600),
            (0o664, 0o644, (true, false), 0o644),
            (0o4777, 0o644, (false, false), 0o644),
            (0o600, 0o644, (false, false), 0o600),
            (0o640, 0o644, (false, true), 0o640),
            (0o040, 0o644, (false, false), 0o600),
            (0o1777, 0o600, (false, false), 0o600),
        ] {
            let mode = Mode::from_bits_truncate;
            let rights = rights_of(mode(before), mode(new), same);
            assert_eq!(rights.bits(), want, "{before:o} {new:o} {same:?}");
        }
    }
}
