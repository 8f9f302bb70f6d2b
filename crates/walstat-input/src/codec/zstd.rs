//! Zstandard, over the C library. Format: RFC 8878.
#![forbid(unsafe_code)]

use super::Codec;
use super::pump::{Engine, Next, Step, StreamFault, StreamState};
use std::io;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// The largest window that is read: 2^27 bytes, which is 128 MiB and what
/// `zstd` itself reads unless told otherwise.
const WINDOW_LOG_LIMIT: u32 = 27;
/// `ZSTD_error_memory_allocation` in `zstd_errors.h`, as the library returns it.
const MEMORY_ALLOCATION: usize = 0_usize.wrapping_sub(64);
/// The longest frame header, in bytes.
const HEADER_MAX: usize = 18;
/// Bytes at the start of a frame that tell how long its header is.
const FRAME_START: usize = 5;

pub(super) struct Zstd {
    context: DCtx<'static>,
    /// How much the library wants next. Never giving more means that a call
    /// decodes one block at most, so that a bad block can't swallow the good
    /// ones before it.
    wanted: usize,
    /// The first bytes of the frame at hand, for its error message.
    header: [u8; HEADER_MAX],
    header_len: usize,
}

impl Zstd {
    pub(super) fn new() -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_LIMIT))
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        Ok(Zstd { context, wanted: FRAME_START, header: [0; HEADER_MAX], header_len: 0 })
    }

    fn keep_header(&mut self, input: &[u8]) {
        let len = input.len().min(HEADER_MAX - self.header_len);
        self.header[self.header_len..self.header_len + len].copy_from_slice(&input[..len]);
        self.header_len += len;
    }

    fn failure(&self, code: usize) -> StreamFault {
        let limit = 1u64 << WINDOW_LOG_LIMIT;
        match window_size(&self.header[..self.header_len]) {
            Some(window) if window > limit => StreamFault::bad(&format!(
                "zstd: the frame asks for a window of {window} bytes; the limit is {limit} (128 MiB)"
            )),
            _ if code == MEMORY_ALLOCATION => StreamFault::out_of_memory(Self::NAME),
            _ => StreamFault::bad(&format!("zstd: {}", get_error_name(code))),
        }
    }
}

impl Engine for Zstd {
    const NAME: &'static str = Codec::Zstd.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let input = &input[..input.len().min(self.wanted.max(1))];
        self.keep_header(input);
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(output);
        let state = match self.context.decompress_stream(&mut target, &mut source) {
            Ok(0) => Ok(StreamState::Ended),
            Ok(wanted) => {
                self.wanted = wanted;
                Ok(StreamState::Going)
            }
            Err(code) => Err(self.failure(code)),
        };
        Step { consumed: source.pos(), produced: target.pos(), state }
    }

    /// Frames follow each other, skippable ones among them; the library tells
    /// them from anything else.
    fn next(&mut self, _first: u8) -> io::Result<Next> {
        self.header_len = 0;
        self.wanted = FRAME_START;
        Ok(Next::Stream)
    }
}

/// The window that a frame header asks for, in bytes.
fn window_size(header: &[u8]) -> Option<u64> {
    if header.get(..4)? != [0x28, 0xB5, 0x2F, 0xFD] {
        return None;
    }
    let descriptor = *header.get(4)?;
    if descriptor & 0x20 == 0 {
        let window = *header.get(5)?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // A single segment has no window of its own: it is the whole content.
    let dictionary_id = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_len = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let at = 5 + dictionary_id;
    let mut size = [0; 8];
    size[..size_len].copy_from_slice(header.get(at..at + size_len)?);
    let shift = if size_len == 2 { 256 } else { 0 };
    Some(u64::from_le_bytes(size) + shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_memory_is_no_damage() {
        let kind = |code| Zstd::new().expect("memory").failure(code).to_error().kind();
        assert_eq!(get_error_name(MEMORY_ALLOCATION), "Allocation error : not enough memory");
        assert_eq!(kind(MEMORY_ALLOCATION), io::ErrorKind::OutOfMemory);
        assert_eq!(kind(0_usize.wrapping_sub(20)), io::ErrorKind::InvalidData);
    }
}
