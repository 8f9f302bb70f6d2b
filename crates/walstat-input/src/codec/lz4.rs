//! LZ4: the frame format and the legacy frame, both over the block decoder of
//! `lz4_flex`. For reading only; nothing here compresses.
//!
//! The frame decoder of `lz4_flex` can't serve: it takes the end of the input
//! between two blocks for the end of the frame, so that a file which was cut
//! off there looks whole, and it stops at a skippable frame. That of liblz4,
//! which compresses for `walstat whatif`, reads no legacy frame, and through
//! its binding a file that was cut off ends as if it were whole until asked.
//!
//! Format: `lz4_Frame_format.md` of the LZ4 project, version 1.6.4.
#![forbid(unsafe_code)]

use super::magic::{LZ4_FRAME, LZ4_LEGACY, is_skippable};
use super::pump::{Decoded, StreamFault};
use super::{Codec, skippable};
use std::hash::Hasher;
use std::io::{self, Read};
use twox_hash::XxHash32;

const NAME: &str = Codec::Lz4.name();

/// How far back a match reaches into earlier blocks.
const WINDOW: usize = 64 << 10;
/// Plain bytes in a block of the legacy frame, fixed by the format.
const LEGACY_BLOCK: usize = 8 << 20;
/// Set in a block's size when the block is stored as it is.
const STORED: u32 = 1 << 31;

/// What a frame's descriptor says.
struct Frame {
    legacy: bool,
    linked: bool,
    block_checksums: bool,
    content_checksum: bool,
    /// Plain bytes in the frame, if its writer knew.
    content_size: Option<u64>,
    /// The most plain bytes in a block.
    block_max: usize,
}

/// Plain bytes of a file of LZ4 frames, one block at a time.
pub(super) struct Lz4<R> {
    inner: R,
    /// Legacy frames are read, too.
    takes_legacy: bool,
    frame: Option<Frame>,
    /// A magic number that was read in place of a legacy block's size.
    next_magic: Option<u32>,
    content_len: u64,
    content_hash: XxHash32,
    packed: Vec<u8>,
    /// The window, if blocks are linked, then the block at hand.
    plain: Vec<u8>,
    /// What of `plain` the caller has not had yet.
    start: usize,
    end: usize,
    /// Set once reading has failed; every later read says so again.
    failed: Option<StreamFault>,
}

impl<R: Read> Lz4<R> {
    pub(super) fn new(inner: R) -> Self {
        Lz4 {
            inner,
            takes_legacy: true,
            frame: None,
            next_magic: None,
            content_len: 0,
            content_hash: XxHash32::with_seed(0),
            packed: Vec::new(),
            plain: Vec::new(),
            start: 0,
            end: 0,
            failed: None,
        }
    }

    /// No legacy frames, as zstd takes none.
    pub(super) fn without_legacy(inner: R) -> Self {
        Lz4 { takes_legacy: false, ..Lz4::new(inner) }
    }

    /// Decodes until there are plain bytes; `false` at the end of the input.
    fn fill(&mut self) -> Decoded<bool> {
        while self.start == self.end {
            let more = match self.frame.take() {
                None => self.begin_frame()?,
                Some(frame) if frame.legacy => self.legacy_block(frame)?,
                Some(frame) => self.block(frame)?,
            };
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads up to the first block of the next frame, or past a skippable one.
    fn begin_frame(&mut self) -> Decoded<bool> {
        let magic = match self.next_magic.take() {
            Some(magic) => magic,
            None => match self.read_u32_or_end()? {
                Some(magic) => magic,
                None => return Ok(false),
            },
        };
        let frame = match magic {
            LZ4_FRAME => self.descriptor()?,
            LZ4_LEGACY if !self.takes_legacy => {
                return Err(StreamFault::bad("lz4: a legacy frame, which zstd does not unpack"));
            }
            LZ4_LEGACY => Frame {
                legacy: true,
                linked: false,
                block_checksums: false,
                content_checksum: false,
                content_size: None,
                block_max: LEGACY_BLOCK,
            },
            magic if is_skippable(magic) => {
                skippable::skip(&mut self.inner, NAME)?;
                return Ok(true);
            }
            _ => return Err(StreamFault::bad("lz4: what follows a frame is not another one")),
        };
        let linked = if frame.linked { WINDOW } else { 0 };
        // Room for a few blocks spares moving the window after each.
        let blocks = if frame.linked { 4 } else { 1 };
        let room = linked + frame.block_max * blocks.min((1 << 20) / frame.block_max).max(1);
        if self.plain.len() != room {
            self.plain = vec![0; room];
        }
        (self.start, self.end) = (0, 0);
        self.content_len = 0;
        self.content_hash = XxHash32::with_seed(0);
        self.frame = Some(frame);
        Ok(true)
    }

    /// Reads the descriptor that follows the magic number of a frame.
    fn descriptor(&mut self) -> Decoded<Frame> {
        let mut bytes = [0u8; 14];
        let [flags, sizes] = self.read_array()?;
        let has_size = flags & 0x08 != 0;
        if flags >> 6 != 1 || flags & 0x02 != 0 || sizes & 0x8F != 0 {
            return Err(StreamFault::bad("lz4: frame descriptor of an unknown version"));
        }
        if flags & 0x01 != 0 {
            return Err(StreamFault::bad("lz4: the frame needs a dictionary"));
        }
        bytes[..2].copy_from_slice(&[flags, sizes]);
        let mut len = 2;
        let mut content_size = None;
        if has_size {
            let size: [u8; 8] = self.read_array()?;
            bytes[2..10].copy_from_slice(&size);
            content_size = Some(u64::from_le_bytes(size));
            len = 10;
        }
        let [check] = self.read_array()?;
        if check != (XxHash32::oneshot(0, &bytes[..len]) >> 8) as u8 {
            return Err(StreamFault::bad("lz4: checksum mismatch in a frame descriptor"));
        }
        let block_max = match sizes >> 4 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => {
                return Err(StreamFault::bad("lz4: frame descriptor with an unknown block size"));
            }
        };
        Ok(Frame {
            legacy: false,
            linked: flags & 0x20 == 0,
            block_checksums: flags & 0x10 != 0,
            content_checksum: flags & 0x04 != 0,
            content_size,
            block_max,
        })
    }

    /// Reads a block, or the end mark with what follows it.
    fn block(&mut self, frame: Frame) -> Decoded<bool> {
        let size = u32::from_le_bytes(self.read_array()?);
        if size == 0 {
            self.end_frame(&frame)?;
            return Ok(true);
        }
        let len = (size & !STORED) as usize;
        if len > frame.block_max {
            return Err(StreamFault::bad("lz4: a block longer than the frame allows"));
        }
        self.read_packed(len)?;
        if frame.block_checksums {
            let expected = u32::from_le_bytes(self.read_array()?);
            if XxHash32::oneshot(0, &self.packed) != expected {
                return Err(StreamFault::bad("lz4: checksum mismatch in a block"));
            }
        }
        self.unpack(&frame, size & STORED != 0)?;
        if frame.content_checksum {
            self.content_hash.write(&self.plain[self.start..self.end]);
        }
        self.content_len += (self.end - self.start) as u64;
        self.frame = Some(frame);
        Ok(true)
    }

    /// Reads a block of a legacy frame, which ends with the input or with the
    /// magic number of another frame.
    fn legacy_block(&mut self, frame: Frame) -> Decoded<bool> {
        let Some(size) = self.read_u32_or_end()? else {
            return Ok(false);
        };
        if matches!(size, LZ4_FRAME | LZ4_LEGACY) || is_skippable(size) {
            self.next_magic = Some(size);
            return Ok(true);
        }
        let len = size as usize;
        if len > lz4_flex::block::get_maximum_output_size(LEGACY_BLOCK) {
            return Err(StreamFault::bad("lz4: a legacy block longer than the format allows"));
        }
        self.read_packed(len)?;
        self.unpack(&frame, false)?;
        self.frame = Some(frame);
        Ok(true)
    }

    fn read_packed(&mut self, len: usize) -> Decoded<()> {
        self.packed.resize(len, 0);
        skippable::fill(&mut self.inner, &mut self.packed, NAME)
    }

    fn read_array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut bytes = [0; N];
        skippable::fill(&mut self.inner, &mut bytes, NAME)?;
        Ok(bytes)
    }

    fn read_u32_or_end(&mut self) -> Decoded<Option<u32>> {
        skippable::magic_or_end(&mut self.inner, NAME)
    }

    /// Turns `packed` into `plain[start..end]`.
    fn unpack(&mut self, frame: &Frame, stored: bool) -> Decoded<()> {
        if !frame.linked {
            self.end = 0;
        } else if self.end + frame.block_max > self.plain.len() {
            let from = self.end - WINDOW;
            self.plain.copy_within(from..self.end, 0);
            self.end = WINDOW;
        }
        let (window, room) = self.plain.split_at_mut(self.end);
        let room = &mut room[..frame.block_max];
        let len = if stored {
            room[..self.packed.len()].copy_from_slice(&self.packed);
            self.packed.len()
        } else {
            let window = &window[window.len().saturating_sub(WINDOW)..];
            lz4_flex::block::decompress_into_with_dict(&self.packed, room, window)
                .map_err(|error| StreamFault::bad(&format!("lz4: damaged block: {error}")))?
        };
        self.start = self.end;
        self.end += len;
        Ok(())
    }

    fn end_frame(&mut self, frame: &Frame) -> Decoded<()> {
        if frame.content_checksum {
            let expected = u32::from_le_bytes(self.read_array()?);
            if self.content_hash.finish() as u32 != expected {
                return Err(StreamFault::bad("lz4: checksum mismatch in a frame's content"));
            }
        }
        match frame.content_size {
            Some(size) if size != self.content_len => Err(StreamFault::bad(&format!(
                "lz4: a frame of {} bytes that should have {size}",
                self.content_len
            ))),
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if let Some(failure) = &self.failed {
            return Err(failure.to_error());
        }
        match self.fill() {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(failure) => return Err(self.failed.insert(failure).to_error()),
        }
        let len = out.len().min(self.end - self.start);
        out[..len].copy_from_slice(&self.plain[self.start..self.start + len]);
        self.start += len;
        Ok(len)
    }
}
