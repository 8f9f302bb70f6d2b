//! Decompression of PostgreSQL's own format (`pglz_decompress` in `src/common/pg_lzcompress.c`),
//! as it is used for full page images: a stream without any header.
//!
//! A control byte announces eight items, from its lowest bit on: 0 is a byte as it stands, 1 a
//! reference back into what was written already. Compresses nothing.

use crate::cursor::Cursor;

/// Lengths of references begin here: shorter ones would not pay.
const SHORTEST: usize = 3;
/// A reference of this length has a further byte of length.
const EXTENDED: usize = 18;

/// Appends what `packed` unpacks to; `None` if it is no such stream, or longer than `limit`
/// bytes. What was appended before the fault stays.
pub fn decompress(packed: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let end = start.checked_add(limit)?;
    let mut input = Cursor::new(packed);
    while !input.rest().is_empty() {
        let mut control: u8 = input.field()?;
        for _ in 0..8 {
            if input.rest().is_empty() {
                break;
            }
            match control & 1 {
                0 => out.push(input.field()?),
                _ => copy(reference(&mut input)?, start, out)?,
            }
            if out.len() > end {
                return None;
            }
            control >>= 1;
        }
    }
    Some(())
}

struct Reference {
    length: usize,
    distance: usize,
}

/// The low half of the first byte is the length, the high half and the second byte the distance.
fn reference(input: &mut Cursor<'_>) -> Option<Reference> {
    let (first, second): (u8, u8) = input.field()?;
    let mut length = usize::from(first & 0x0F) + SHORTEST;
    if length == EXTENDED {
        length += usize::from(input.field::<u8>()?);
    }
    let distance = usize::from(first & 0xF0) << 4 | usize::from(second);
    Some(Reference { length, distance })
}

/// What is copied may reach into what the copy itself writes.
fn copy(reference: Reference, start: usize, out: &mut Vec<u8>) -> Option<()> {
    let Reference { length, distance } = reference;
    let from = out.len().checked_sub(distance).filter(|from| *from >= start && distance > 0)?;
    for index in from..from + length {
        let byte = *out.get(index)?;
        out.push(byte);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        decompress(packed, 100, &mut out)?;
        Some(out.split_off(6))
    }

    #[test]
    fn bytes_and_references_mix() {
        assert_eq!(unpacked(b"\0abcdefgh\0ij").as_deref(), Some(&b"abcdefghij"[..]));
        // "ab", then 3 bytes from 2 back: the copy reads its own first byte.
        assert_eq!(unpacked(&[0b100, b'a', b'b', 0x00, 2]).as_deref(), Some(&b"ababa"[..]));
        // A length of 18 has a further byte: 18 + 2.
        let long = unpacked(&[0b10, b'x', 0x0F, 1, 2]).expect("sound");
        assert_eq!(long, vec![b'x'; 21]);
        assert_eq!(unpacked(b"").as_deref(), Some(&b""[..]));
    }

    #[test]
    fn the_distance_has_twelve_bits() {
        let mut packed: Vec<u8> = Vec::new();
        for chunk in 0..40u8 {
            packed.push(0);
            packed.extend([chunk; 8]);
        }
        packed.extend([1, 0x10, 0x04]);
        let mut out = Vec::new();
        decompress(&packed, 1000, &mut out).expect("sound");
        assert_eq!(out.len(), 323);
        // 260 bytes back from 320.
        assert_eq!(out[320..], [7, 7, 7]);
    }

    #[test]
    fn nonsense_is_refused() {
        // Back beyond the start, which is not what was there before; no distance; cut off.
        assert_eq!(unpacked(&[0b10, b'x', 0x00, 2]), None);
        assert_eq!(unpacked(&[0b10, b'x', 0x00, 0]), None);
        assert_eq!(unpacked(&[0b10, b'x', 0x00]), None);
        assert_eq!(unpacked(&[0b10, b'x', 0x0F, 1]), None);
        // More than the limit.
        assert_eq!(unpacked(&[0b10, b'x', 0x0F, 1, 200]), None);
    }
}
