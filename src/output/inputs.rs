//! What is never overwritten: everything that is read, and the files of a server.

use super::target;
use crate::failure::Failure;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use walstat_read::input::inherited::STANDARD_INPUT;
use walstat_read::input::names::{FileName, backup_start};
use walstat_read::input::probe::first_page;
use walstat_read::input::recognise;
use walstat_read::input::recognise::{Content, recognise};
use walstat_read::input::storage::LINKS_MAX;

/// Refuses to overwrite what is read: one of `inputs`, or WAL in a directory among them; and what is no
/// file for a result anyway.
pub fn refuse_to_overwrite<'p>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Failure> {
    let Some(output) = output else { return Ok(()) };
    let refused = |reason: &str| {
        Err(Failure::Target { path: output.display().to_string(), reason: reason.to_owned() })
    };
    // A file that does not exist cannot be lost, but a result under a segment's name would be read as one; a
    // device is not replaced.
    let inputs: Vec<&Path> = inputs.into_iter().collect();
    if !output.exists() {
        if inputs.iter().any(|input| would_be_read(output, input)) {
            return refused(
                "would be read as WAL: it has the name of WAL, in a directory that is an input",
            );
        }
        // A state of which this is the first round.
        let place = place_of(output);
        if place.is_some() && inputs.iter().any(|input| place_of(input) == place) {
            return refused("is an input");
        }
    }
    if let Some(target) = output.canonicalize().ok().filter(|target| target.is_file()) {
        if inputs.iter().any(|input| is_read(&target, input)) {
            return refused("is an input");
        }
        if target.ancestors().skip(1).any(is_servers) {
            return refused("is a file of a server");
        }
    }
    target::refuse(output)
}

/// Whether a file that is not there yet has the name of WAL, and lies where `input` is read.
fn would_be_read(output: &Path, input: &Path) -> bool {
    let input = input.canonicalize().ok().filter(|input| input.is_dir());
    let place = place_of(output).zip(input);
    place.is_some_and(|(place, input)| {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let is_wal = FileName::parse(&name) != FileName::Other || backup_start(&name).is_some();
        is_wal && place.starts_with(input)
    })
}

/// Where a file of this path lies or will lie, the same however the path is written, and where links lead
/// to a file that is not there yet.
pub fn place_of(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(place) = path.canonicalize() {
            return Some(place);
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let place = parent.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?);
        match place.read_link() {
            Ok(target) => path = place.with_file_name(target),
            Err(_) => return Some(place),
        }
    }
    None
}

/// Whether a file is read where `input` is.
fn is_read(target: &Path, input: &Path) -> bool {
    if input == Path::new(STANDARD_INPUT) {
        return is_standard_input(target);
    }
    let input = input.canonicalize().unwrap_or_default();
    target == input
        || is_same(target.metadata(), input.metadata())
        || around(&input).is_some_and(|near| target.starts_with(near) && is_of_archive(target))
}

/// The directory that is read, or that of a file that is: what is beside it belongs to the same archive.
fn around(input: &Path) -> Option<&Path> {
    if input.is_dir() { Some(input) } else { input.parent() }
}

/// Files beside WAL that a restore or an archiver needs: of base backups, pgBackRest and Barman.
const BESIDE_WAL: [&str; 6] = [
    "backup_label",
    "tablespace_map",
    "backup_manifest",
    "archive.info",
    "backup.info",
    "backup.manifest",
];

/// Whether a file is part of an archive or of a backup, as its name or its first bytes tell.
fn is_of_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_backup_history = name.ends_with(".backup");
    BESIDE_WAL.contains(&&*name) || is_backup_history || may_be_wal(path)
}

/// Whether the directory is a data directory, or a database in one. Nothing in it is to be replaced by
/// anybody but the server.
fn is_servers(directory: &Path) -> bool {
    directory.join("PG_VERSION").is_file()
}

/// Whether standard input comes from this file.
#[cfg(unix)]
fn is_standard_input(file: &Path) -> bool {
    use std::os::fd::AsFd;
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    is_same(stdin.and_then(|stdin| stdin.metadata()), file.metadata())
}

#[cfg(not(unix))]
fn is_standard_input(_: &Path) -> bool {
    false
}

/// Whether both are one file, under whatever names.
#[cfg(unix)]
fn is_same(one: io::Result<Metadata>, other: io::Result<Metadata>) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let both = one.ok().zip(other.ok());
    both.is_some_and(|(one, other)| identity(&one) == identity(&other))
}

#[cfg(not(unix))]
fn is_same(_: io::Result<Metadata>, _: io::Result<Metadata>) -> bool {
    false
}

/// Whether a file's name or its first bytes are those of WAL, or of an archive or compressed file that
/// may hold WAL.
fn may_be_wal(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut head = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(recognise::HEAD as u64).read_to_end(&mut head));
    FileName::parse(&name) != FileName::Other
        || read.is_err()
        || recognise(&head, &name) != Content::Plain
        || first_page(&head).is_ok()
}
