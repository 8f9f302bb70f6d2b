//! Compressed bytes into plain ones: streaming, in bounded memory, nothing to
//! disk. Which codec a file needs is [`recognise`](super::recognise)'s affair.
//!
//! All decoders read what several runs of a compressor leave in one file
//! (gzip members, LZ4 and zstd frames with skippable ones between, bzip2 and
//! xz streams, lzip members), and all of them fail alike:
//!
//! * [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) when the input ends
//!   before the stream does, as in a file that is still being written;
//! * [`InvalidData`](std::io::ErrorKind::InvalidData) when a checksum differs,
//!   when the stream makes no sense, when it needs more memory than the limit,
//!   or when something else follows it, unless the codec's own tool overlooks
//!   that (bzip2); the text names the codec;
//! * errors of the inner reader as they are.
//!
//! What can be decoded before the fault has been delivered by then, in whole
//! blocks for LZ4, zstd and bzip2. A decoder that has failed says so again at
//! every later read.
#![forbid(unsafe_code)]

mod engines;
mod lz4;
pub(super) mod magic;
mod pump;
mod skippable;
mod zstd;

use pump::Pump;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes read from the inner reader at a time.
const INPUT_BUFFER: usize = 128 << 10;

/// A compression that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Codec {
    /// RFC 1952; several members, zeros after the last one.
    Gzip,
    /// LZ4 frames and legacy frames. Memory: two blocks, of at most 4 MiB
    /// (8 MiB in a legacy frame).
    Lz4,
    /// RFC 8878, with windows up to 128 MiB.
    Zstd,
    /// Begins with a skippable frame, which LZ4 and zstd share: the first
    /// frame that is not one decides.
    Lz4OrZstd,
    /// Several streams.
    Bzip2,
    /// Several streams and padding, with dictionaries up to 128 MiB.
    Xz,
    /// The `.lzma` format, with dictionaries up to 128 MiB.
    Lzma,
    /// Several members, with dictionaries up to 128 MiB.
    Lzip,
    /// RFC 7932, with windows up to 16 MiB.
    Brotli,
}

impl Codec {
    /// The name to use towards people, as the tool that writes it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
            Codec::Lz4OrZstd => "lz4 or zstd",
            Codec::Bzip2 => "bzip2",
            Codec::Xz => "xz",
            Codec::Lzma => "lzma",
            Codec::Lzip => "lzip",
            Codec::Brotli => "brotli",
        }
    }

    /// The plain bytes of `inner`, which is read in large pieces and needs no
    /// buffer of its own.
    ///
    /// # Errors
    ///
    /// When the codec's library can't be set up, for want of memory. What the
    /// stream itself holds is judged as it is read; the kinds are in the
    /// [module's text](self).
    pub fn decoder<'a>(self, inner: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        decode(self, Box::new(BufReader::with_capacity(INPUT_BUFFER, inner)))
    }
}

impl Codec {
    /// The same as pgBackRest decodes it: of several gzip members or bzip2 streams the first one, whatever
    /// follows it, and nothing behind a skippable frame of LZ4 or zstd.
    ///
    /// # Errors
    ///
    /// As those of [`Codec::decoder`], and where it would decode nothing.
    pub(super) fn pgbackrests<'a>(self, inner: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        let mut input: Input<'a> = Box::new(BufReader::with_capacity(INPUT_BUFFER, inner));
        match self {
            Codec::Zstd | Codec::Lz4 | Codec::Lz4OrZstd if begins_with_skippable(&mut input)? => {
                let text = "a skippable frame comes first, at which pgBackRest ends";
                let text = format!("{}: {text}", self.name());
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            Codec::Gzip => Ok(Box::new(Pump::of_first(input, engines::Gzip::new()))),
            Codec::Bzip2 => Ok(Box::new(Pump::of_first(input, engines::Bzip2::new()))),
            codec => decode(codec, input),
        }
    }
}

impl Codec {
    /// The same as the tool zstd decodes it: gzip without zeros behind it, and of LZ4 no legacy frames.
    ///
    /// # Errors
    ///
    /// As those of [`Codec::decoder`].
    pub(super) fn zstds<'a>(self, inner: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        let input: Input<'a> = Box::new(BufReader::with_capacity(INPUT_BUFFER, inner));
        match self {
            Codec::Gzip => Ok(Box::new(Pump::new(input, engines::Gzip::without_padding()))),
            Codec::Lz4 => Ok(Box::new(lz4::Lz4::without_legacy(input))),
            codec => decode(codec, input),
        }
    }
}

fn begins_with_skippable(input: &mut Input<'_>) -> io::Result<bool> {
    let magic = input.fill_buf()?.first_chunk().map(|magic| u32::from_le_bytes(*magic));
    Ok(magic.is_some_and(magic::is_skippable))
}

type Input<'a> = Box<dyn BufRead + 'a>;

fn decode(codec: Codec, input: Input<'_>) -> io::Result<Box<dyn Read + '_>> {
    Ok(match codec {
        Codec::Gzip => Box::new(Pump::new(input, engines::Gzip::new())),
        Codec::Lz4 => Box::new(lz4::Lz4::new(input)),
        Codec::Zstd => Box::new(Pump::new(input, zstd::Zstd::new()?)),
        Codec::Lz4OrZstd => Box::new(skippable::Undecided::new(input)),
        Codec::Bzip2 => Box::new(Pump::new(input, engines::Bzip2::new())),
        Codec::Xz => Box::new(Pump::new(input, engines::Xz::new()?)),
        Codec::Lzma => Box::new(Pump::new(input, engines::LzmaAlone::new()?)),
        Codec::Lzip => Box::new(Pump::new(input, engines::Lzip::new()?)),
        Codec::Brotli => Box::new(Pump::new(input, engines::Brotli::new())),
    })
}
