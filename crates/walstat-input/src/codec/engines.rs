//! The codecs that decode from slice to slice, as [`Engine`]s: gzip, bzip2,
//! the LZMA family and brotli. zstd has a file of its own.
#![forbid(unsafe_code)]

use super::Codec;
use super::pump::{Decoded, Engine, Next, Step, StreamFault, StreamState};
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use liblzma::stream::{Action, Error as LzmaError, Status as LzmaStatus, Stream};
use std::io;

/// The most memory that a stream of the LZMA family may ask for: a dictionary
/// of 128 MiB and what liblzma needs beside it.
const LZMA_MEMORY_LIMIT: u64 = 130 << 20;

pub(super) struct Gzip {
    decompress: flate2::Decompress,
    /// Zeros follow the last member.
    padded: bool,
    /// Nothing may follow it.
    is_last: bool,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Gzip { decompress: flate2::Decompress::new_gzip(15), padded: false, is_last: false }
    }

    /// Members without padding, as zstd takes them.
    pub(super) fn without_padding() -> Self {
        Gzip { is_last: true, ..Gzip::new() }
    }
}

impl Engine for Gzip {
    const NAME: &'static str = Codec::Gzip.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let before = (self.decompress.total_in(), self.decompress.total_out());
        let result = self.decompress.decompress(input, output, flate2::FlushDecompress::None);
        let state = match result {
            Ok(flate2::Status::StreamEnd) => Ok(StreamState::Ended),
            Ok(_) => Ok(StreamState::Going),
            // An error after good bytes is told at the next call, and by then
            // only as "repeated call with bad state".
            Err(error) => {
                let known = error.message().filter(|text| !text.ends_with("bad state"));
                let what = known.unwrap_or("damaged stream");
                Err(StreamFault::bad(&format!("gzip: {what}")))
            }
        };
        let after = (self.decompress.total_in(), self.decompress.total_out());
        step(before, after, state)
    }

    /// Members follow each other; zeros after the last one are padding. What
    /// follows those, be it another member, gzip itself leaves out, and says so
    /// by its exit status.
    fn next(&mut self, first: u8) -> io::Result<Next> {
        match first {
            0x1F if !self.padded => {
                *self = Gzip { is_last: self.is_last, ..Gzip::new() };
                Ok(Next::Stream)
            }
            0 if !self.is_last => {
                self.padded = true;
                Ok(Next::Padding)
            }
            _ => Ok(Next::Garbage),
        }
    }
}

pub(super) struct Bzip2 {
    decompress: bzip2::Decompress,
    /// A stream was read before this one.
    is_later: bool,
    /// What follows the streams begins as one does, and is none.
    is_over: bool,
}

impl Bzip2 {
    pub(super) fn new() -> Self {
        Bzip2 { decompress: bzip2::Decompress::new(false), is_later: false, is_over: false }
    }
}

impl Engine for Bzip2 {
    const NAME: &'static str = Codec::Bzip2.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let before = (self.decompress.total_in(), self.decompress.total_out());
        let state = match self.decompress.decompress(input, output) {
            Ok(bzip2::Status::StreamEnd) => Ok(StreamState::Ended),
            Ok(bzip2::Status::MemNeeded) => Err(StreamFault::out_of_memory(Self::NAME)),
            Ok(_) => Ok(StreamState::Going),
            Err(bzip2::Error::DataMagic) if self.is_later => {
                self.is_over = true;
                Ok(StreamState::Ended)
            }
            Err(bzip2::Error::DataMagic) => {
                Err(StreamFault::bad("bzip2: not the start of a stream"))
            }
            Err(_) => Err(StreamFault::bad("bzip2: damaged block or checksum mismatch")),
        };
        let after = (self.decompress.total_in(), self.decompress.total_out());
        step(before, after, state)
    }

    fn next(&mut self, first: u8) -> io::Result<Next> {
        match first {
            b'B' if !self.is_over => {
                *self = Bzip2 { is_later: true, ..Bzip2::new() };
                Ok(Next::Stream)
            }
            // `bzip2 -d` says so and succeeds, where other tools fail.
            _ => Ok(Next::Ignored),
        }
    }
}

/// xz. Streams follow each other, with zeros between and after.
pub(super) struct Xz {
    stream: Stream,
    /// Zeros after the last stream.
    padding: u64,
}

/// The zeros between and after xz streams are so many, or a multiple of that.
const XZ_PADDING: u64 = 4;

impl Xz {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Xz {
            stream: lzma(Stream::new_stream_decoder(LZMA_MEMORY_LIMIT, 0), Self::NAME)?,
            padding: 0,
        })
    }

    fn is_aligned(&self) -> bool {
        self.padding.is_multiple_of(XZ_PADDING)
    }
}

impl Engine for Xz {
    const NAME: &'static str = Codec::Xz.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        lzma_step(&mut self.stream, Self::NAME, input, output)
    }

    fn next(&mut self, first: u8) -> io::Result<Next> {
        match first {
            0xFD if self.is_aligned() => {
                *self = Xz::new()?;
                Ok(Next::Stream)
            }
            0 => {
                self.padding += 1;
                Ok(Next::Padding)
            }
            _ => Ok(Next::Garbage),
        }
    }

    fn end(&self) -> Decoded<()> {
        if self.is_aligned() {
            return Ok(());
        }
        let name = Self::NAME;
        let text = format!("{name}: {} zeros follow, no multiple of {XZ_PADDING}", self.padding);
        Err(StreamFault::bad(&text))
    }
}

/// The stream that came before xz: a header without magic, then raw LZMA.
pub(super) struct LzmaAlone(Stream);

impl LzmaAlone {
    pub(super) fn new() -> io::Result<Self> {
        Ok(LzmaAlone(lzma(Stream::new_lzma_decoder(LZMA_MEMORY_LIMIT), Self::NAME)?))
    }
}

impl Engine for LzmaAlone {
    const NAME: &'static str = Codec::Lzma.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        lzma_step(&mut self.0, Self::NAME, input, output)
    }
}

/// lzip, whose members follow each other.
pub(super) struct Lzip(Stream);

impl Lzip {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Lzip(lzma(Stream::new_lzip_decoder(LZMA_MEMORY_LIMIT, 0), Self::NAME)?))
    }
}

impl Engine for Lzip {
    const NAME: &'static str = Codec::Lzip.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        lzma_step(&mut self.0, Self::NAME, input, output)
    }

    fn next(&mut self, first: u8) -> io::Result<Next> {
        match first {
            b'L' => {
                *self = Lzip::new()?;
                Ok(Next::Stream)
            }
            // `lzip -d` takes it for no part of the file, as long as it looks like no member.
            _ => Ok(Next::Ignored),
        }
    }
}

/// A decoder of the LZMA family, or why there is none.
fn lzma(made: Result<Stream, LzmaError>, name: &str) -> io::Result<Stream> {
    made.map_err(|error| match error {
        LzmaError::Mem => StreamFault::out_of_memory(name).to_error(),
        error => error.into(),
    })
}

fn lzma_step(stream: &mut Stream, name: &str, input: &[u8], output: &mut [u8]) -> Step {
    let action = if input.is_empty() { Action::Finish } else { Action::Run };
    let before = (stream.total_in(), stream.total_out());
    let state = match stream.process(input, output, action) {
        Ok(LzmaStatus::StreamEnd) => Ok(StreamState::Ended),
        Ok(_) => Ok(StreamState::Going),
        Err(LzmaError::Mem) => Err(StreamFault::out_of_memory(name)),
        Err(error) => Err(StreamFault::bad(&format!("{name}: {}", lzma_text(&error)))),
    };
    step(before, (stream.total_in(), stream.total_out()), state)
}

fn lzma_text(error: &LzmaError) -> String {
    match error {
        LzmaError::MemLimit => format!(
            "the stream needs a larger dictionary than the memory limit of {} MiB allows",
            LZMA_MEMORY_LIMIT >> 20
        ),
        LzmaError::Data => "damaged stream or checksum mismatch".into(),
        LzmaError::Format => "not the start of a stream".into(),
        LzmaError::Options => "the stream uses options that liblzma does not know".into(),
        other => other.to_string(),
    }
}

/// Brotli with the windows of RFC 7932, which end at 16 MiB; the large ones
/// (up to 1 GiB) are refused.
pub(super) struct Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>);

impl Brotli {
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
    }
}

impl Engine for Brotli {
    const NAME: &'static str = Codec::Brotli.name();

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let (mut input_left, mut output_left) = (input.len(), output.len());
        let (mut consumed, mut produced, mut total) = (0, 0, 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut consumed,
            input,
            &mut output_left,
            &mut produced,
            output,
            &mut total,
            &mut self.0,
        );
        let state = match result {
            BrotliResult::ResultSuccess => Ok(StreamState::Ended),
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(StreamState::Going),
            BrotliResult::ResultFailure => Err(StreamFault::bad("brotli: damaged stream")),
        };
        Step { consumed, produced, state }
    }
}

/// A step as the difference of a codec's running totals of input and output.
fn step(before: (u64, u64), after: (u64, u64), state: Result<StreamState, StreamFault>) -> Step {
    Step { consumed: (after.0 - before.0) as usize, produced: (after.1 - before.1) as usize, state }
}
