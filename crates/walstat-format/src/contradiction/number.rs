//! Numbers in the main data that say what redo does with blocks.

/// A number of one, two or four bytes at a place of the main data, or bits of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    at: u8,
    mask: u32,
    /// What stands there for none: that counts as 0, and nothing else.
    none: u32,
}

/// A `bool` or a number that is 0 or not.
pub(super) const fn byte(at: u8) -> Number {
    bits(at, 0xFF)
}

pub(super) const fn bit(at: u8, mask: u8) -> Number {
    bits(at, mask as u32)
}

pub(super) const fn half(at: u8) -> Number {
    bits(at, 0xFFFF)
}

pub(super) const fn whole(at: u8) -> Number {
    bits(at, u32::MAX)
}

/// The number of a block, which is none if it is `InvalidBlockNumber`.
pub(super) const fn block(at: u8) -> Number {
    Number { none: u32::MAX, ..whole(at) }
}

const fn bits(at: u8, mask: u32) -> Number {
    Number { at, mask, none: 0 }
}

impl Number {
    /// What it is, or counts as; `None`: the data end before it.
    pub(super) fn of(self, main: &[u8]) -> Option<u32> {
        let bytes = (u32::BITS - self.mask.leading_zeros()).div_ceil(u8::BITS) as usize;
        let at = usize::from(self.at);
        let mut number = [0; 4];
        number.get_mut(..bytes)?.copy_from_slice(main.get(at..at + bytes)?);
        Some(u32::from_le_bytes(number) & self.mask ^ self.none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_as_many_bytes_as_its_mask() {
        let main = [1, 2, 3, 4, 0xFF];
        assert_eq!(byte(1).of(&main), Some(2));
        assert_eq!(bit(4, 0x04).of(&main), Some(4));
        assert_eq!(half(3).of(&main), Some(0xFF04));
        assert_eq!(whole(0).of(&main), Some(0x0403_0201));
        assert_eq!((whole(2).of(&main), half(4).of(&main), byte(5).of(&main)), (None, None, None));
    }

    #[test]
    fn a_block_may_be_none() {
        let numbers = |at: u32| block(0).of(&at.to_le_bytes());
        assert_eq!(numbers(u32::MAX), Some(0));
        assert!(numbers(0) != Some(0) && numbers(7) != Some(0));
    }
}
