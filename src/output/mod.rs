//! Where results go: standard output, or a file that is written whole or not at all.

pub mod interrupt;

use crate::args::values::When;
use crate::failure::Failure;
use crate::output::interrupt::{Interrupt, held_back};
use anstream::{AutoStream, ColorChoice, StripStream};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use walstat_read::input::discover::STANDARD_INPUT;
use walstat_read::input::names::FileName;
use walstat_read::input::probe::first_page;
use walstat_read::input::recognise;
use walstat_read::input::recognise::{Content, recognise};

/// How often it is checked whether a signal has come.
const CHUNK_BYTES: usize = 1 << 16;

/// Whether `when` holds for standard output.
pub fn wanted(when: When, to_file: bool) -> bool {
    match when {
        When::Auto => !to_file && io::stdout().is_terminal(),
        When::Always => true,
        When::Never => false,
    }
}

/// Runs `write` on the file, or on standard output; `color`: whether styles are kept.
pub fn write_to(
    file: Option<&Path>,
    color: When,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let written = match file {
        Some(path) => {
            let mut text = StripStream::new(Vec::new());
            write(&mut text).and_then(|()| write_file(path, &text.into_inner()))
        }
        None => {
            let stdout = AutoStream::new(io::stdout().lock(), color.into());
            let mut out = io::BufWriter::new(stdout);
            write(&mut out).and_then(|()| out.flush())
        }
    };
    told(file, written)
}

/// Runs `write` on the file, or on standard output. For formats without styles: what looks like one is
/// part of a name, and is kept.
pub fn write_unstyled(
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    match write(&mut bytes) {
        Ok(()) => write_bytes(file, &bytes),
        failed => told(file, failed),
    }
}

/// Writes bytes that are no text to the file, or to standard output.
pub fn write_bytes(file: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    let written = match file {
        Some(path) => write_file(path, bytes),
        None => io::stdout().lock().write_all(bytes),
    };
    told(file, written)
}

/// An output that is written bit by bit: standard output, a device or pipe, or a file that appears when
/// it is complete.
pub struct Stream {
    to: Option<PathBuf>,
    out: io::BufWriter<Box<dyn Write + Send>>,
    file: Option<(tempfile::NamedTempFile, Option<std::fs::Permissions>)>,
}

impl Stream {
    /// To the file, or to standard output.
    pub fn begin(file: Option<&Path>) -> Result<Stream, Failure> {
        let file = file.filter(|file| *file != Path::new(STANDARD_INPUT));
        let Some(path) = file else {
            let out: Box<dyn Write + Send> = Box::new(io::stdout());
            return Ok(Stream { to: None, out: io::BufWriter::new(out), file: None });
        };
        let failed = |source| Failure::Output { path: path.display().to_string(), source };
        Stream::to_file(path).map_err(failed)
    }

    fn to_file(path: &Path) -> io::Result<Stream> {
        let Target { path, permissions, is_replaced } = Target::of(path);
        if !is_replaced {
            let out = Box::new(OpenOptions::new().write(true).open(&path)?);
            return Ok(Stream { to: Some(path), out: io::BufWriter::new(out), file: None });
        }
        let file = new_file(directory_of(&path)).map_err(|error| io::Error::from(error.kind()))?;
        let out = Box::new(file.reopen()?);
        let file = Some((file, permissions));
        Ok(Stream { to: Some(path), out: io::BufWriter::new(out), file })
    }

    /// An output that is thrown away.
    pub fn nothing() -> Stream {
        Stream { to: None, out: io::BufWriter::new(Box::new(io::sink())), file: None }
    }

    /// Finishes the output: a file appears under its name if writing has not failed.
    pub fn end(mut self, failed: Option<io::Error>) -> Result<(), Failure> {
        let written = failed.map_or_else(|| self.out.flush(), Err);
        let target = self.to.as_deref();
        let persisted = written.and_then(|()| match (self.file, target) {
            (Some((file, permissions)), Some(target)) => {
                if let Some(permissions) = permissions {
                    file.as_file().set_permissions(permissions)?;
                }
                file.persist(target).map(|_| ()).map_err(|error| error.error)
            }
            _ => Ok(()),
        });
        told(target, persisted)
    }
}

/// Where a file is written: what a link points to.
struct Target {
    path: PathBuf,
    /// Of a file that is there.
    permissions: Option<std::fs::Permissions>,
    /// A regular file is replaced when the new one is complete. A device or a pipe is written to.
    is_replaced: bool,
}

impl Target {
    fn of(path: &Path) -> Target {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let existing = path.metadata().ok();
        let is_replaced = existing.as_ref().is_none_or(std::fs::Metadata::is_file);
        Target { path, permissions: existing.map(|found| found.permissions()), is_replaced }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Where a file lies.
fn directory_of(file: &Path) -> &Path {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// A closed pipe is no failure.
fn told(file: Option<&Path>, written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => {
            let path = file.map_or_else(|| "standard output".into(), |p| p.display().to_string());
            Err(Failure::Output { path, source })
        }
        Ok(()) => Ok(()),
    }
}

impl From<When> for ColorChoice {
    fn from(when: When) -> ColorChoice {
        match when {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        }
    }
}

/// Whether standard input comes from this file.
#[cfg(unix)]
fn is_standard_input(file: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let stdin = stdin.and_then(|stdin| stdin.metadata()).map(identity).ok();
    stdin.is_some() && stdin == file.metadata().map(identity).ok()
}

#[cfg(not(unix))]
fn is_standard_input(_: &Path) -> bool {
    false
}

/// Refuses to overwrite what is read: one of `inputs`, or WAL in a directory among them.
pub fn spare_inputs<'p>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Failure> {
    let Some(output) = output else { return Ok(()) };
    // A file that does not exist cannot be lost; a device or pipe is not replaced.
    let Some(target) = output.canonicalize().ok().filter(|target| target.is_file()) else {
        return Ok(());
    };
    let is_read = |input: &Path| {
        if input == Path::new(STANDARD_INPUT) {
            return is_standard_input(&target);
        }
        let input = input.canonicalize().unwrap_or_default();
        target == input || (input.is_dir() && target.starts_with(&input) && may_be_wal(&target))
    };
    if inputs.into_iter().any(is_read) {
        Err(Failure::Usage(format!(
            "{}: is an input, expected another file for --output",
            output.display()
        )))
    } else {
        Ok(())
    }
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

fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let Target { path, permissions, is_replaced } = Target::of(path);
    if !is_replaced {
        return OpenOptions::new().write(true).open(&path)?.write_all(text);
    }
    held_back(|interrupt| replace(&path, text, permissions, interrupt))
}

/// Writes a file beside `target` and renames it.
fn replace(
    target: &Path,
    text: &[u8],
    permissions: Option<std::fs::Permissions>,
    interrupt: &Interrupt,
) -> io::Result<()> {
    let directory = directory_of(target);
    directory.metadata()?;
    // The library's own text would name the temporary file, which the user does not know.
    let mut file = new_file(directory).map_err(|error| io::Error::from(error.kind()))?;
    for chunk in text.chunks(CHUNK_BYTES) {
        if interrupt.is_due() {
            return Err(io::Error::other("interrupted"));
        }
        file.write_all(chunk)?;
    }
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(target).map(|_| ()).map_err(|error| error.error)
}

/// A temporary file that may become a result: as readable as any new file.
fn new_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    make_readable(&mut builder);
    builder.tempfile_in(directory)
}

#[cfg(unix)]
fn make_readable(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}

/// Elsewhere a temporary file has the permissions of its directory, as any other.
#[cfg(not(unix))]
fn make_readable(_: &mut tempfile::Builder<'_, '_>) {}
