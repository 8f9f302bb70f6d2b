//! The seam: the bytes of one segment, in order, into a window of the caller's.
//!
//! A worker sees pages in its window and does not know whether they were read, decompressed or
//! came through a pipe. Reading into a reused window was faster than mapping the file when
//! measured, cannot fault when a live file shrinks, and keeps memory flat
//! (`benches/README.md`).

use super::codec::Codec;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::SystemTime;

/// Where the bytes of a segment are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file as the server wrote it.
    Raw(PathBuf),
    /// A compressed file.
    Compressed(PathBuf, Codec),
    /// They came through a stream and are gone; its name and the member's.
    Streamed(PathBuf),
}

/// The bytes of a segment, being read.
pub enum Bytes<'a> {
    /// A file as the server wrote it.
    Raw(File),
    /// A decoder, or a part of a stream.
    Read(Box<dyn Read + 'a>),
}

impl Source {
    /// The file.
    pub fn path(&self) -> &PathBuf {
        match self {
            Source::Raw(path) | Source::Compressed(path, _) | Source::Streamed(path) => path,
        }
    }

    /// When the file was last written to, as far as that can be told.
    pub fn modified(&self) -> Option<SystemTime> {
        std::fs::metadata(self.path()).and_then(|metadata| metadata.modified()).ok()
    }

    /// Opens the segment and goes to byte `from` of it.
    pub fn open(&self, from: u64) -> io::Result<Bytes<'static>> {
        let mut file = File::open(self.path())?;
        match self {
            Source::Raw(_) => {
                if from > 0 {
                    file.seek(SeekFrom::Start(from))?;
                }
                Ok(Bytes::Raw(file))
            }
            Source::Compressed(_, codec) => {
                let mut bytes = Bytes::Read(codec.decoder(file)?);
                bytes.skip(from)?;
                Ok(bytes)
            }
            Source::Streamed(_) => Err(io::Error::other("a stream cannot be read again")),
        }
    }
}

impl Bytes<'_> {
    /// Fills `window` from where the last call ended; fewer bytes only at the end. The bytes
    /// before an error are delivered, the error with the next call.
    pub fn fill(&mut self, window: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < window.len() {
            let rest = &mut window[filled..];
            let read = match self {
                Bytes::Raw(file) => file.read(rest),
                Bytes::Read(reader) => reader.read(rest),
            };
            match read {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Reads over up to `bytes`, and says how many there were.
    pub fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        match self {
            Bytes::Raw(file) => io::copy(&mut file.take(bytes), &mut io::sink()),
            Bytes::Read(reader) => io::copy(&mut reader.take(bytes), &mut io::sink()),
        }
    }

    /// Whether the rest of the segment need not be read to know how long it is.
    pub fn is_file(&self) -> bool {
        matches!(self, Bytes::Raw(_))
    }
}
