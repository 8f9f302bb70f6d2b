//! What `--output` names: a file that appears when it is complete, a device that is written to, or what is no
//! target at all, which is said before anything is read.

#[cfg(not(unix))]
use super::elsewhere::{Named, NewFile, NoWay, Place, Thing};
#[cfg(unix)]
use super::interrupt::Named;
#[cfg(unix)]
use super::new_file::NewFile;
#[cfg(unix)]
use super::place::{NoWay, Place, Thing};
use crate::failure::Failure;
use std::fs::File;
use std::io;
use std::path::Path;
use walstat_read::input::inherited::{STANDARD_INPUT, descriptor};

/// Its number, whatever it is called.
const STANDARD_OUTPUT: u32 = 1;

/// A target, open.
#[derive(Debug)]
pub enum Target {
    /// A file that has not appeared yet.
    File(Box<NewFile>),
    /// What is written to.
    Device(File),
}

/// The file that is meant; `None`: standard output.
pub fn file_of(named: Option<&Path>) -> Option<&Path> {
    let is_standard = |path: &Path| {
        path == Path::new(STANDARD_INPUT) || descriptor(path) == Some(STANDARD_OUTPUT)
    };
    named.filter(|path| !is_standard(path))
}

/// Refuses what is no target. What the system has against it is told when it is written.
pub fn refuse(path: &Path) -> Result<(), Failure> {
    if descriptor(path).is_some() {
        return Ok(());
    }
    match place(path) {
        Err(Failure::Output { .. }) => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Opens a file of which only counts that it is there, for its lock; makes one where there is none. It is
/// ours if `lock` says so, and then it is removed with what is returned, or before a signal ends the
/// program.
pub fn hold(
    path: &Path,
    lock: impl FnOnce(&File) -> Result<bool, Failure>,
) -> Result<Option<(Named, File)>, Failure> {
    let failed = |source| Failure::Output { path: path.display().to_string(), source };
    let place = place(path)?;
    match place.thing() {
        Thing::File => place.keep(|file| {
            let file = file.map_err(failed)?;
            Ok(lock(&file)?.then_some(file))
        }),
        Thing::Device | Thing::Other(_) => {
            Err(Failure::Target { path: path.display().to_string(), reason: "is no file".into() })
        }
    }
}

impl Target {
    /// Opens the target that a path names.
    pub fn open(path: &Path) -> Result<Target, Failure> {
        let failed = |source| Failure::Output { path: path.display().to_string(), source };
        if descriptor(path).is_some() {
            return File::options().append(true).open(path).map(Target::Device).map_err(failed);
        }
        let place = place(path)?;
        match place.thing() {
            Thing::Device => place.device().map(Target::Device).map_err(failed),
            Thing::File | Thing::Other(_) => {
                NewFile::begin(place).map(|file| Target::File(Box::new(file))).map_err(failed)
            }
        }
    }

    /// All is written: a file appears under its name.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Target::File(file) => file.finish(),
            Target::Device(_) => Ok(()),
        }
    }
}

impl io::Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File(new) => new.file.write(bytes),
            Target::Device(device) => device.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The place where the file will lie.
fn place(path: &Path) -> Result<Place, Failure> {
    let shown = || path.display().to_string();
    let refused = |reason: String| Failure::Target { path: shown(), reason };
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return Err(refused("names a directory".to_owned()));
    }
    let place = Place::of(path).map_err(|no_way| match no_way {
        NoWay::Io(source) => Failure::Output { path: shown(), source },
        NoWay::Link(link) => refused(format!(
            "goes through the symbolic link {}, which others may have put there",
            link.display()
        )),
    })?;
    match place.thing() {
        Thing::Other(kind) => Err(refused(format!("is {kind}"))),
        Thing::File | Thing::Device => Ok(place),
    }
}
