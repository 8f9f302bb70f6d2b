//! Checksums of data pages (`pd_checksum`), as in `src/include/storage/checksum_impl.h`: 32
//! running sums over the page's columns of four bytes, folded into one with the block number.
//!
//! Says whether a page of a file is whole. Pages in the WAL carry none that means anything.

use super::field;

/// Bytes beside each other that are summed apart.
const COLUMNS: usize = 32;
/// The prime of FNV-1a, on which the sums are built.
const PRIME: u32 = 16_777_619;
/// Where each of the sums begins.
const START: [u32; COLUMNS] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

fn mix(sum: u32, value: u32) -> u32 {
    let mixed = sum ^ value;
    mixed.wrapping_mul(PRIME) ^ (mixed >> 17)
}

/// The checksum that a page should carry as block `block` of its fork.
pub fn page_checksum(page: &[u8], block: u32) -> u16 {
    let mut sums = START;
    for (number, row) in page.chunks_exact(4 * COLUMNS).enumerate() {
        for (column, (sum, bytes)) in sums.iter_mut().zip(row.chunks_exact(4)).enumerate() {
            let mut value = bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            // The checksum itself counts as zero: the low half of the third number.
            if number == 0 && column == field::CHECKSUM / 4 {
                value &= 0xFFFF_0000;
            }
            *sum = mix(*sum, value);
        }
    }
    let folded = sums.iter().fold(0, |all, sum| all ^ mix(mix(*sum, 0), 0));
    // 1 to 65535, so that 0 can mean "none".
    ((folded ^ block) % 65535 + 1) as u16
}

#[cfg(test)]
mod tests {
    use super::super::tests::page_of;
    use super::*;

    #[test]
    fn the_checksum_depends_on_all_but_itself() {
        let page = page_of(8192, &[b"item"]);
        let sum = page_checksum(&page, 7);
        assert_ne!(sum, page_checksum(&page, 8));
        let mut other = page.clone();
        other[8191] ^= 1;
        assert_ne!(sum, page_checksum(&other, 7));
        let mut other = page.clone();
        (other[8], other[9]) = (0xAB, 0xCD);
        assert_eq!(sum, page_checksum(&other, 7));
        other[10] = 1;
        assert_ne!(sum, page_checksum(&other, 7));
    }
}
