//! Where results go: standard output, or a file that is written whole or not at all.

use super::Failure;
use super::args::When;
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

/// Runs `write` on the file, or on standard output. A reader that went away is no failure.
pub fn write_to(
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let result = match file {
        Some(path) => write_file(path, write),
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
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

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    let mut out = io::BufWriter::new(file.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    readable_by_others(file.path())?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// A temporary file is its owner's alone; a result is as readable as any new file.
#[cfg(unix)]
fn readable_by_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> io::Result<()> {
    Ok(())
}
