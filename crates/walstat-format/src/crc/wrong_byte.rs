//! Where a record is wrong whose checksum fails, if it is wrong in one byte.

use super::{Crc32c, ONE, POLYNOMIAL};
use crate::record_header::{CRC_OFFSET, RECORD_HEADER_BYTES};

/// So many bytes, or bits, of a record are tried at most. Damage in many places looks like that of one by
/// chance in so many of 2^32 cases: one in a thousand.
const PLACES_MAX: usize = 1 << 22;
/// What a byte can be instead of what it should be, and in which bits it can differ alone.
const OTHER_BYTES: usize = 255;
const BITS: usize = 8;

impl Crc32c {
    /// The offset of the one byte of a record that is wrong, where one is enough to make its checksum
    /// differ by so much (XOR): found by taking the bytes after it back. One bit that turned over is looked
    /// for in records of up to 512 kB, a byte in up to 16 kB: in longer ones more would be found by chance.
    #[must_use]
    pub fn wrong_byte(difference: u32, total_bytes: usize) -> Option<usize> {
        let any_byte = total_bytes <= PLACES_MAX / OTHER_BYTES;
        if total_bytes > PLACES_MAX / BITS {
            return None;
        }
        let in_checksum = |byte: &usize| difference & !(0xFF << (8 * byte)) == 0;
        if let Some(byte) = (0..RECORD_HEADER_BYTES - CRC_OFFSET).find(in_checksum) {
            return Some(CRC_OFFSET + byte);
        }
        let body_bytes = total_bytes.checked_sub(RECORD_HEADER_BYTES)?;
        let mut state = difference;
        let covered = (0..body_bytes + CRC_OFFSET).rev();
        let mut back = covered.map(|at| {
            state = without_zero_byte(state);
            (at, state)
        });
        let (at, _) =
            back.find(|(_, state)| *state <= 0xFF && (any_byte || state.is_power_of_two()))?;
        Some(if at < body_bytes { RECORD_HEADER_BYTES + at } else { at - body_bytes })
    }
}

/// The state before a zero byte that led to `state`.
fn without_zero_byte(state: u32) -> u32 {
    (0..8).fold(state, |state, _| match state & ONE {
        0 => state << 1,
        _ => (state ^ POLYNOMIAL) << 1 | 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of a record, as `ValidXLogRecord` computes it.
    fn checksum(record: &[u8]) -> u32 {
        let crc = Crc32c::portable();
        let body = crc.update(Crc32c::START, &record[RECORD_HEADER_BYTES..]);
        Crc32c::finish(crc.update(body, &record[..CRC_OFFSET]))
    }

    #[test]
    fn a_wrong_byte_is_found_wherever_it_is() {
        let mut record: Vec<u8> = (0..3000_u32).map(|at| (at * 7 % 251) as u8).collect();
        let right = checksum(&record);
        for at in (0..CRC_OFFSET).chain(RECORD_HEADER_BYTES..3000) {
            record[at] ^= 0x10 | at as u8;
            let difference = checksum(&record) ^ right;
            assert_eq!(Crc32c::wrong_byte(difference, record.len()), Some(at));
            record[at] ^= 0x10 | at as u8;
        }
        for byte in 0..4 {
            let found = Crc32c::wrong_byte(0x40 << (8 * byte), record.len());
            assert_eq!(found, Some(CRC_OFFSET + byte));
        }
    }

    /// Lost sectors of a record of 400 kB, those of 200 that one byte explains, too, by chance.
    #[test]
    fn what_explains_much_by_chance_is_none() {
        let mut record: Vec<u8> = (0..400_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        let right = checksum(&record);
        for sector in [2, 46, 88, 89, 116, 120, 175, 184, 191, 197] {
            let place = sector * 1024 + 512..sector * 1024 + 1024;
            let sound = record[place.clone()].to_vec();
            record[place.clone()].fill(0);
            assert_eq!(Crc32c::wrong_byte(checksum(&record) ^ right, record.len()), None);
            record[place].copy_from_slice(&sound);
        }
        for bit in 0..8 {
            record[300_000] ^= 1 << bit;
            let found = Crc32c::wrong_byte(checksum(&record) ^ right, record.len());
            assert_eq!(found, Some(300_000));
            record[300_000] ^= 1 << bit;
        }
    }

    #[test]
    fn several_wrong_bytes_are_none() {
        let mut record = vec![7; 500];
        let right = checksum(&record);
        (record[40], record[400]) = (1, 2);
        assert_eq!(Crc32c::wrong_byte(checksum(&record) ^ right, record.len()), None);
    }
}
