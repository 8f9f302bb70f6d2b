//! Where results go: standard output, or a file that is written whole or not at all.

mod closed;
#[cfg(not(unix))]
mod elsewhere;
pub mod ending;
pub mod inputs;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod new_file;
#[cfg(unix)]
mod place;
mod target;
#[cfg(unix)]
pub mod terminal;

use crate::args::values::When;
use crate::failure::Failure;
use anstream::{AutoStream, ColorChoice, StripStream};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::{panic, process};
use target::Target;

#[cfg(not(unix))]
pub use elsewhere::{Named, Waiting};
#[cfg(unix)]
pub use interrupt::{Named, Waiting};
pub use target::{file_of, hold};

/// The exit code of a Rust program that panicked.
const PANICKED: u8 = 101;

/// Prepares the program for what can happen to its outputs. A panic ends it, on whatever thread, since
/// nothing is unwound in a release; on Unix temporary files are removed before. Unlike after a signal no
/// state is saved: what panicked may have spoiled it.
pub fn prepare() {
    #[cfg(unix)]
    interrupt::heed_size_limit();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        usual(panic);
        end_now(PANICKED);
    }));
}

/// Ends the program from wherever it is, and on Unix leaves no temporary file.
pub fn end_now(code: u8) -> ! {
    #[cfg(unix)]
    interrupt::try_to_remove_temporaries();
    process::exit(code.into())
}

/// As long as what is returned is there, a signal that ends the program has `task` done before, where there
/// are signals.
#[must_use]
pub fn before_end(task: impl FnOnce() + Send + 'static) -> Waiting {
    #[cfg(unix)]
    return interrupt::before_end(Box::new(task));
    #[cfg(not(unix))]
    {
        drop(task);
        Waiting
    }
}

/// Whether `when` holds for standard output.
pub fn wanted(when: When, to_file: bool) -> bool {
    match when {
        When::Auto => !to_file && io::stdout().is_terminal(),
        When::Always => true,
        When::Never => false,
    }
}

/// Tells something beside the result. Where standard error is closed or full nothing can be told.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Runs `write` on the file, or on standard output; `color`: whether styles are kept.
pub fn write_to(
    file: Option<&Path>,
    color: When,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if file.is_some() {
        let mut text = StripStream::new(Vec::new());
        return match write(&mut text) {
            Ok(()) => write_bytes(file, &text.into_inner()),
            failed => told(file, failed),
        };
    }
    let written = closed::check_standard_output().and_then(|()| {
        let stdout = AutoStream::new(io::stdout().lock(), color.into());
        let mut out = io::BufWriter::new(stdout);
        write(&mut out).and_then(|()| out.flush())
    });
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
    let mut stream = Stream::begin(file)?;
    let failed = stream.write_all(bytes).err();
    stream.end(failed)
}

/// Writes bytes to standard output: how many were written, and why no more. The standard library's buffer is
/// passed by, since it keeps what could not be written, and puts it before what is written next.
pub fn write_to_standard_output(bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    let mut write = || -> io::Result<()> {
        closed::check_standard_output()?;
        let mut out = unbuffered()?;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        out.flush()
    };
    let failed = write();
    (written, failed)
}

#[cfg(unix)]
fn unbuffered() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(Into::into)
}

/// A console takes text only by way of the standard library.
#[cfg(not(unix))]
fn unbuffered() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// An output that is written bit by bit: standard output, a device or pipe, or a file that appears when
/// it is complete.
pub struct Stream {
    to: Option<PathBuf>,
    out: io::BufWriter<Out>,
}

/// What a stream goes to.
enum Out {
    Standard(io::Stdout),
    Target(Target),
    Nothing,
}

impl Stream {
    /// To the file, or to standard output.
    pub fn begin(file: Option<&Path>) -> Result<Stream, Failure> {
        let out = match file {
            Some(path) => Out::Target(Target::open(path)?),
            None => {
                closed::check_standard_output().map_err(|source| failure(None, source))?;
                Out::Standard(io::stdout())
            }
        };
        Ok(Stream { to: file.map(Path::to_owned), out: io::BufWriter::new(out) })
    }

    /// An output that is thrown away.
    pub fn nothing() -> Stream {
        Stream { to: None, out: io::BufWriter::new(Out::Nothing) }
    }

    /// Finishes the output: a file appears under its name if writing has not failed.
    pub fn end(self, failed: Option<io::Error>) -> Result<(), Failure> {
        let Stream { to, out } = self;
        let written = match failed {
            // What is left in the buffer is not wanted any more.
            Some(error) => {
                let _ = out.into_parts();
                Err(error)
            }
            None => out.into_inner().map_err(io::IntoInnerError::into_error).and_then(Out::finish),
        };
        told(to.as_deref(), written)
    }
}

impl Out {
    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Out::Target(target) => target.finish(),
            Out::Standard(_) | Out::Nothing => Ok(()),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Standard(out) => out.write(bytes),
            Out::Target(target) => target.write(bytes),
            Out::Nothing => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Standard(out) => out.flush(),
            Out::Target(target) => target.flush(),
            Out::Nothing => Ok(()),
        }
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

/// A closed pipe is no failure.
fn told(file: Option<&Path>, written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(failure(file, source)),
        Ok(()) => Ok(()),
    }
}

fn failure(file: Option<&Path>, source: io::Error) -> Failure {
    let path = file.map_or_else(|| "standard output".into(), |path| path.display().to_string());
    Failure::Output { path, source }
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
