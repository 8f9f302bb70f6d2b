//! Integers at fixed places of payloads and pages, little-endian and not aligned. `None` where
//! the bytes end before.

/// The two bytes at `at`.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*field))
}

/// The four bytes at `at`.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*field))
}

/// The eight bytes at `at`.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*field))
}

/// The byte at `at`.
#[inline]
pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// All pairs of bytes as integers: arrays of line pointer numbers.
pub fn u16s(bytes: &[u8]) -> impl ExactSizeIterator<Item = u16> + Clone + '_ {
    bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_with_the_bytes() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(u16_at(&bytes, 7), Some(0x0908));
        assert_eq!(u16_at(&bytes, 8), None);
        assert_eq!(u32_at(&bytes, 5), Some(0x0908_0706));
        assert_eq!(u64_at(&bytes, 1), Some(0x0908_0706_0504_0302));
        assert_eq!(u64_at(&bytes, usize::MAX), None);
        assert_eq!(u8_at(&bytes, 9), None);
        assert_eq!(u16s(&bytes).collect::<Vec<_>>(), [0x0201, 0x0403, 0x0605, 0x0807]);
    }
}
