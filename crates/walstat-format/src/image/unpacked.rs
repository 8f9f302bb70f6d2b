//! To how many bytes a compressed image unpacks, without unpacking it: a walk over the lengths that the
//! compressed bytes state. Unpacking would cost many times as much. Only a block of Zstandard has its lengths
//! packed, too: nothing else tells what a server makes of it, and with `images` it is unpacked.

#[cfg(feature = "images")]
mod frame;

use super::Compression;
use crate::page_size::MAX_PAGE_BYTES;

/// What compressed bytes unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpacked {
    /// So many bytes.
    Bytes(usize),
    /// As many as there is room for, of at least the first and at most the second: the last reference of pglz
    /// is cut where the page ends.
    Room(usize, usize),
    /// They do not say it. A server's do.
    Unknown,
    /// They are not what they should be: the server cannot unpack them (`RestoreBlockImage` in
    /// `src/backend/access/transam/xlogreader.c`).
    Nothing,
}

/// What `packed` unpacks to.
pub fn unpacked(compression: Compression, packed: &[u8]) -> Unpacked {
    let unpacked = match compression {
        Compression::Pglz => pglz(packed),
        Compression::Lz4 => lz4(packed).map(Unpacked::Bytes),
        Compression::Zstd => zstd(packed),
    };
    unpacked.unwrap_or(Unpacked::Nothing)
}

/// The shortest reference of pglz, and the length with a further byte.
const PGLZ_LENGTHS: (usize, usize) = (3, 18);

/// `pglz_decompress` in `src/common/pg_lzcompress.c`: a control byte, and for each of its bits, from the
/// lowest on, a byte as it stands (0) or a reference (1). The server stops where the page is full, and there
/// nothing may be left.
fn pglz(packed: &[u8]) -> Option<Unpacked> {
    let (shortest, extended) = PGLZ_LENGTHS;
    let (mut rest, mut bytes) = (packed, 0);
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        if rest.is_empty() {
            return None;
        }
        // Up to 8 items; the last control byte may have fewer.
        let mut control = u32::from(control) | 0x100;
        while control > 1 && !rest.is_empty() {
            let run = control.trailing_zeros() as usize;
            if run > 0 {
                let run = run.min(rest.len());
                rest = rest.get(run..)?;
                bytes += run;
                control >>= run;
                continue;
            }
            let (&[first, second], after) = rest.split_first_chunk()?;
            rest = after;
            let mut length = usize::from(first & 0x0F) + shortest;
            if length == extended {
                let (&more, after) = rest.split_first()?;
                (rest, length) = (after, length + usize::from(more));
            }
            let distance = usize::from(first & 0xF0) << 4 | usize::from(second);
            is_behind(distance, bytes)?;
            if rest.is_empty() {
                is_no_more_than_a_page(bytes)?;
                return Some(Unpacked::Room(bytes + 1, bytes + length));
            }
            bytes += length;
            control >>= 1;
        }
        is_no_more_than_a_page(bytes)?;
    }
    Some(Unpacked::Bytes(bytes))
}

/// The shortest match of LZ4, and the half byte that says that more bytes of length follow.
const LZ4_LENGTHS: (usize, u8) = (4, 15);

/// A block of LZ4 (`lz4_Block_format.md`): literals and a match in turn, literals alone at the end.
fn lz4(packed: &[u8]) -> Option<usize> {
    let (shortest, _) = LZ4_LENGTHS;
    let (mut rest, mut bytes) = (packed, 0);
    loop {
        let (&token, after) = rest.split_first()?;
        rest = after;
        let literals = lz4_length(token >> 4, &mut rest)?;
        rest = rest.get(literals..)?;
        bytes += literals;
        is_no_more_than_a_page(bytes)?;
        if rest.is_empty() {
            return Some(bytes);
        }
        let (distance, after) = rest.split_first_chunk()?;
        rest = after;
        is_behind(usize::from(u16::from_le_bytes(*distance)), bytes)?;
        bytes += lz4_length(token & 0x0F, &mut rest)? + shortest;
    }
}

#[inline(always)]
fn lz4_length(half: u8, rest: &mut &[u8]) -> Option<usize> {
    let (_, extended) = LZ4_LENGTHS;
    let mut length = usize::from(half);
    if half == extended {
        loop {
            let (&more, after) = rest.split_first()?;
            (*rest, length) = (after, length + usize::from(more));
            if more != u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

/// What a frame of Zstandard begins with, in little-endian order.
pub const ZSTD_MAGIC: u32 = 0xFD2F_B528;

/// A frame of Zstandard (RFC 8878, 3.1.1): its header says how long the content is, and each block how long
/// it is itself. How long a block's content is stands within it.
fn zstd(packed: &[u8]) -> Option<Unpacked> {
    let (magic, rest) = packed.split_first_chunk()?;
    let (&descriptor, rest) = rest.split_first()?;
    let is_one_segment = descriptor & 0x20 != 0;
    let window_bytes = usize::from(!is_one_segment);
    let dictionary_bytes = [0, 1, 2, 4].get(usize::from(descriptor & 0x03))?;
    let sizes = [usize::from(is_one_segment), 2, 4, 8];
    let size_bytes = sizes.get(usize::from(descriptor >> 6))?;
    let rest = rest.get(window_bytes + dictionary_bytes..)?;
    let (size, mut rest) = rest.split_at_checked(*size_bytes)?;
    loop {
        let (&[low, middle, high], after) = rest.split_first_chunk()?;
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let size = usize::try_from(header >> 3).ok()?;
        // Bytes as they are, one that is repeated, packed ones; 3 is reserved.
        let stored = match header >> 1 & 0x03 {
            0 | 2 => size,
            1 => 1,
            _ => return None,
        };
        rest = after.get(stored..)?;
        if header & 1 != 0 {
            break;
        }
    }
    let checksum_bytes = if descriptor & 0x04 != 0 { 4 } else { 0 };
    (u32::from_le_bytes(*magic) == ZSTD_MAGIC && rest.len() == checksum_bytes).then_some(())?;
    let number = size.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    // Two bytes count from 256 on.
    let number = if size.len() == 2 { number + 256 } else { number };
    let stated = (!size.is_empty()).then(|| usize::try_from(number).unwrap_or(usize::MAX));
    let most = stated.unwrap_or(MAX_PAGE_BYTES);
    if most > MAX_PAGE_BYTES {
        return Some(Unpacked::Bytes(most));
    }
    #[cfg(feature = "images")]
    return frame::bytes(packed, most).map(Unpacked::Bytes);
    #[cfg(not(feature = "images"))]
    Some(stated.map_or(Unpacked::Unknown, Unpacked::Bytes))
}

/// A reference leads to what was unpacked before it.
#[inline(always)]
fn is_behind(distance: usize, bytes: usize) -> Option<()> {
    (distance > 0 && distance <= bytes).then_some(())
}

#[inline(always)]
fn is_no_more_than_a_page(bytes: usize) -> Option<()> {
    (bytes <= MAX_PAGE_BYTES).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Compression::{Lz4, Pglz, Zstd};

    #[test]
    fn pglz_is_counted() {
        // Three bytes as they stand, a reference of 3, one of 18 + 2.
        let packed = [0b11000, b'a', b'b', b'c', 0x00, 3, 0x0F, 1, 2];
        assert_eq!(unpacked(Pglz, &packed), Unpacked::Room(3 + 3 + 1, 3 + 3 + 20));
        assert_eq!(unpacked(Pglz, &packed[..8]), Unpacked::Nothing);
        assert_eq!(unpacked(Pglz, &[0b1, 0x00, 1]), Unpacked::Nothing);
        assert_eq!(unpacked(Pglz, &[0b10, b'a', 0x00, 0]), Unpacked::Nothing);
        assert_eq!(unpacked(Pglz, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9]), Unpacked::Bytes(9));
        assert_eq!(unpacked(Pglz, &[]), Unpacked::Bytes(0));
        // A reference that is not the last item; a control byte of nothing.
        let packed = [0b10, b'a', 0x00, 1, b'b'];
        assert_eq!(unpacked(Pglz, &packed), Unpacked::Bytes(1 + 3 + 1));
        assert_eq!(unpacked(Pglz, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 0]), Unpacked::Nothing);
    }

    /// References of 18 + 255 bytes, after a byte: 15 of them fill a page of 4 kB.
    #[test]
    fn no_reference_but_the_last_goes_over_the_end() {
        let references = |count: usize| {
            let mut packed = vec![0b10, b'a'];
            for index in 1..=count {
                if index % 8 == 0 {
                    packed.push(0xFF);
                } else if index == 1 {
                    packed[0] = 0b1111_1110;
                }
                packed.extend([0x0F, 1, 255]);
            }
            packed
        };
        assert_eq!(unpacked(Pglz, &references(15)), Unpacked::Room(1 + 14 * 273 + 1, 4096));
        let most = unpacked(Pglz, &references(121));
        assert_eq!(most, Unpacked::Room(32_761 + 1, 33_034));
        assert_eq!(unpacked(Pglz, &references(130)), Unpacked::Nothing);
    }

    #[test]
    fn lz4_is_counted() {
        // Three literals and a match of 4 + 15 + 1; five literals at the end.
        let packed = [0x3F, b'a', b'b', b'c', 3, 0, 1, 0x50, 1, 2, 3, 4, 5];
        assert_eq!(unpacked(Lz4, &packed), Unpacked::Bytes(3 + 20 + 5));
        assert_eq!(unpacked(Lz4, &packed[..12]), Unpacked::Nothing);
        assert_eq!(unpacked(Lz4, &packed[..7]), Unpacked::Nothing);
        let beyond = [0x3F, b'a', b'b', b'c', 4, 0, 1, 0x10, 1];
        assert_eq!(unpacked(Lz4, &beyond), Unpacked::Nothing);
        assert_eq!(unpacked(Lz4, &[]), Unpacked::Nothing);
    }

    #[test]
    fn zstandard_says_how_much_it_is() {
        let magic = ZSTD_MAGIC.to_le_bytes();
        let frame = |rest: &[u8]| unpacked(Zstd, &[&magic, rest].concat());
        // A last block of 2 bytes as they are; of one byte, 8 times and 8,192 times.
        let (as_it_is, repeated) = ([0x11, 0, 0, 7, 7], [0x43, 0, 0, 7]);
        let page = [0x03, 0, 1, 7];
        assert_eq!(frame(&[&[0x20, 2][..], &as_it_is].concat()), Unpacked::Bytes(2));
        assert_eq!(frame(&[&[0x60, 0, 31][..], &page].concat()), Unpacked::Bytes(8192));
        let unstated =
            if cfg!(feature = "images") { Unpacked::Bytes(8) } else { Unpacked::Unknown };
        assert_eq!(frame(&[&[0x00, 9][..], &repeated].concat()), unstated);
        assert_eq!(frame(&[&[0x20, 2][..], &as_it_is[..4]].concat()), Unpacked::Nothing);
        assert_eq!(frame(&[&[0x20, 2][..], &as_it_is, &[0]].concat()), Unpacked::Nothing);
        let wrong_sum =
            if cfg!(feature = "images") { Unpacked::Nothing } else { Unpacked::Bytes(2) };
        assert_eq!(frame(&[&[0x24, 2][..], &as_it_is, &[0; 4]].concat()), wrong_sum);
        assert_eq!(frame(&[0x20, 2, 0x17, 0, 0, 7, 7]), Unpacked::Nothing);
        assert_eq!(unpacked(Zstd, &[0; 20]), Unpacked::Nothing);
    }
}
