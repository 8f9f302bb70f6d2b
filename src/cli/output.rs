//! Where results go: standard output, or a file that is written whole or not at all.

use super::Failure;
use super::args::When;
use anstream::{AutoStream, ColorChoice, StripStream};
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Whether `when` holds for standard output.
pub fn wanted(when: When, to_file: bool) -> bool {
    match when {
        When::Auto => !to_file && io::stdout().is_terminal(),
        When::Always => true,
        When::Never => false,
    }
}

/// Runs `write` on the file, or on standard output; `color`: whether styles are kept. A reader
/// that went away is no failure.
pub fn write_to(
    file: Option<&Path>,
    color: When,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let result = match file {
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
    match result {
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

/// A regular file is replaced when the new one is complete. A device or a pipe is written to.
fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let existing = target.metadata().ok();
    if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        return OpenOptions::new().write(true).open(&target)?.write_all(text);
    }
    let directory = target.parent().filter(|p| !p.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    directory.metadata()?;
    // The library's own text would name the temporary file, which means nothing to anybody.
    let mut file = new_file(directory).map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(text)?;
    if let Some(metadata) = existing {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.persist(&target).map(|_| ()).map_err(|error| error.error)
}

/// A temporary file that may become a result: as readable as any new file.
fn new_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}
