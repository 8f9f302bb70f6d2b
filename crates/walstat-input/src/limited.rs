//! Files that are read whole: none is believed to be of any size. A path may be a device that never ends.

use super::storage;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file, of which there may be `limit` at most.
///
/// # Errors
///
/// When it cannot be read, or has more.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = storage::open(path)?;
    // Devices and pipes have no size: of those, what comes is counted.
    if file.metadata(path).is_ok_and(|known| known.bytes > limit) {
        return Err(too_large(limit));
    }
    let mut bytes = Vec::new();
    read_on(file, limit, &mut bytes)?;
    Ok(bytes)
}

/// Reads the rest of a file whose first `bytes` were read.
///
/// # Errors
///
/// As those of [`read`].
pub fn read_on(file: impl Read, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let more = limit.saturating_add(1).saturating_sub(bytes.len() as u64);
    file.take(more).read_to_end(bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(limit));
    }
    Ok(())
}

/// The bytes of a file of text of any encoding that tools of PostgreSQL write: it ends at once where there
/// is a zero byte, of which a device that never ends has many.
///
/// # Errors
///
/// As those of [`read`], and when it is no text.
pub fn read_plain(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = storage::open(path)?;
    if file.metadata(path).is_ok_and(|known| known.bytes > limit) {
        return Err(too_large(limit));
    }
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let more = PIECE_BYTES.min(limit.saturating_add(1).saturating_sub(before as u64));
        if file.by_ref().take(more).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes);
        }
        if bytes.len() as u64 > limit {
            return Err(too_large(limit));
        }
        if bytes.get(before..).is_some_and(|piece| piece.contains(&0)) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a zero byte, expected text"));
        }
    }
}

/// So much is read before it is looked at.
const PIECE_BYTES: u64 = 1 << 16;

fn too_large(limit: u64) -> io::Error {
    let reason = format!("larger than {} MB, expected at most that", limit >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, reason)
}

/// The same of a file of text.
///
/// # Errors
///
/// As those of [`read`], and when it is no UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "no text in UTF-8");
    String::from_utf8(read(path, limit)?).map_err(invalid)
}
