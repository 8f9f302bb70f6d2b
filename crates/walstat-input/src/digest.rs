//! Length and checksum of a file's uncompressed bytes: they tell whether two copies of a segment are
//! the same.

use super::source::Source;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use walstat_format::crc::Crc32c;

/// Length and checksum of a file's uncompressed bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest {
    /// How many bytes there are; counting stops one byte after a segment's length.
    pub bytes: u64,
    /// CRC-32C of them.
    pub crc: u32,
    /// Whether they end as they should, and not with an error.
    pub whole: bool,
}

/// Computes the digest of the bytes that are read through it.
pub struct Digesting<R> {
    inner: R,
    /// How many more bytes are let through.
    left: u64,
    crc: Crc32c,
    digest: Digest,
}

/// Bytes read at a time when they are only digested.
const BUFFER_BYTES: usize = 128 << 10;

impl<R: Read> Digesting<R> {
    /// Lets the bytes of `inner` through, up to one more than `segment_bytes`.
    pub fn new(inner: R, segment_bytes: u32) -> Self {
        let digest = Digest { bytes: 0, crc: Crc32c::START, whole: true };
        Digesting { inner, left: u64::from(segment_bytes) + 1, crc: Crc32c::detect(), digest }
    }

    /// Reads what was not read yet, and returns the digest.
    pub fn finish(mut self) -> Digest {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.digest
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let read = self.inner.read(out.get_mut(..most).unwrap_or_default());
        match &read {
            Ok(count) => {
                let new = out.get(..*count).unwrap_or_default();
                self.digest.crc = self.crc.update(self.digest.crc, new);
                self.digest.bytes += *count as u64;
                self.left -= *count as u64;
            }
            Err(error) => self.digest.whole &= error.kind() == io::ErrorKind::Interrupted,
        }
        read
    }
}

/// The digest of a file; `None` if it cannot be opened, or came through a stream and is gone.
pub fn digest(source: &Source, segment_bytes: u32) -> Option<Digest> {
    let reader = source.open(0).ok()?.into_reader();
    Some(Digesting::new(reader, segment_bytes).finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_all_bytes_whoever_reads_them() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        let mut some = Digesting::new(bytes.as_slice(), 1 << 20);
        let mut head = [0; 1000];
        some.read_exact(&mut head).expect("bytes");
        let (some, all) = (some.finish(), Digesting::new(bytes.as_slice(), 1 << 20).finish());
        assert_eq!((some.bytes, some.whole), (200_000, true));
        assert_eq!(some, all);
        // A segment can have no more: what follows it is told by one byte.
        assert_eq!(Digesting::new(io::repeat(7), 1000).finish().bytes, 1001);
    }
}
