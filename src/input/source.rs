//! The seam: the bytes of one segment, in order, into a window of the caller's.
//!
//! A worker sees pages in its window and does not know whether they were read or
//! decompressed. Reading into a reused window was faster than mapping the file when measured,
//! cannot fault when a live file shrinks, and keeps memory flat (`benches/README.md`).

use super::codec::Codec;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Where the bytes of a segment are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file as the server wrote it.
    Raw(PathBuf),
    /// A compressed file.
    Compressed(PathBuf, Codec),
}

/// The bytes of a segment, being read.
pub enum Bytes {
    /// A file as the server wrote it.
    Raw(File),
    /// A decoder over a compressed file.
    Decoded(Box<dyn Read + Send>),
}

impl Source {
    /// The file.
    pub fn path(&self) -> &PathBuf {
        match self {
            Source::Raw(path) | Source::Compressed(path, _) => path,
        }
    }

    /// Opens the segment and goes to byte `from` of it.
    pub fn open(&self, from: u64) -> io::Result<Bytes> {
        let mut file = File::open(self.path())?;
        match self {
            Source::Raw(_) => {
                if from > 0 {
                    file.seek(SeekFrom::Start(from))?;
                }
                Ok(Bytes::Raw(file))
            }
            Source::Compressed(_, codec) => {
                let mut decoder = codec.decoder(file)?;
                io::copy(&mut decoder.by_ref().take(from), &mut io::sink())?;
                Ok(Bytes::Decoded(decoder))
            }
        }
    }
}

impl Bytes {
    /// Fills `window` from where the last call ended; fewer bytes only at the end. The bytes
    /// before an error are delivered, the error with the next call.
    pub fn fill(&mut self, window: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < window.len() {
            let read = match self {
                Bytes::Raw(file) => file.read(&mut window[filled..]),
                Bytes::Decoded(decoder) => decoder.read(&mut window[filled..]),
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
}
