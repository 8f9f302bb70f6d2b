//! Skippable frames, which LZ4 and zstd have in common, and the decoder for a
//! file that begins with one. Format: RFC 8878, section 3.1.2.
#![forbid(unsafe_code)]

use super::pump::{Decoded, StreamFault};
use super::{Codec, Input, decode, magic};
use std::io::{self, Cursor, ErrorKind, Read};

/// Passes over a skippable frame whose magic number has been read.
pub(super) fn skip(inner: &mut impl Read, codec: &str) -> Decoded<()> {
    let mut len = [0; 4];
    fill(inner, &mut len, codec)?;
    let len = u64::from(u32::from_le_bytes(len));
    if io::copy(&mut inner.take(len), &mut io::sink())? < len {
        return Err(StreamFault::cut_off(codec));
    }
    Ok(())
}

/// Reads a magic number, or nothing where the input ends before it.
pub(super) fn magic_or_end(inner: &mut impl Read, codec: &str) -> Decoded<Option<u32>> {
    let mut magic = [0; 4];
    let (first, rest) = magic.split_at_mut(1);
    match inner.read_exact(first) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    fill(inner, rest, codec)?;
    Ok(Some(u32::from_le_bytes(magic)))
}

/// Fills `bytes`; an input that ends before that is cut off.
pub(super) fn fill(inner: &mut impl Read, bytes: &mut [u8], codec: &str) -> Decoded<()> {
    inner.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => StreamFault::cut_off(codec),
        _ => StreamFault::from(error),
    })
}

/// A decoder that learns its codec from the first frame that is not skippable.
pub(super) enum Undecided<'a> {
    Skipping(Input<'a>),
    Decided(Box<dyn Read + 'a>),
    Failed(StreamFault),
}

impl<'a> Undecided<'a> {
    pub(super) fn new(input: Input<'a>) -> Self {
        Undecided::Skipping(input)
    }
}

/// Skips until a frame tells the codec; an input of skippable frames alone
/// holds nothing.
fn decide(mut input: Input<'_>) -> Decoded<Box<dyn Read + '_>> {
    let name = Codec::Lz4OrZstd.name();
    loop {
        let Some(magic) = magic_or_end(&mut input, name)? else {
            return Ok(Box::new(io::empty()));
        };
        if magic::is_skippable(magic) {
            skip(&mut input, name)?;
            continue;
        }
        let codec = if magic == magic::ZSTD { Codec::Zstd } else { Codec::Lz4 };
        let whole = Cursor::new(magic.to_le_bytes()).chain(input);
        return Ok(decode(codec, Box::new(whole))?);
    }
}

impl Read for Undecided<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let empty = Undecided::Decided(Box::new(io::empty()));
        *self = match std::mem::replace(self, empty) {
            Undecided::Skipping(input) => match decide(input) {
                Ok(decoder) => Undecided::Decided(decoder),
                Err(failure) => Undecided::Failed(failure),
            },
            settled => settled,
        };
        match self {
            Undecided::Decided(decoder) => decoder.read(out),
            Undecided::Failed(failure) => Err(failure.to_error()),
            Undecided::Skipping(_) => Ok(0),
        }
    }
}
