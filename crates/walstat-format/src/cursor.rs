//! Reading numbers out of bytes that may be too short: one small cursor for data pages, payloads
//! and catalog rows. All numbers are little-endian and not aligned.
//!
//! Not for the headers that every record has: those have readers of their own, made for speed.

use std::marker::PhantomData;

/// Something of a fixed length that can be read from bytes.
pub trait Field: Copy {
    /// How many bytes it takes.
    const BYTES: usize;
    /// Reads it from the start of `bytes`; `None` if they are too few.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            const BYTES: usize = size_of::<$number>();
            #[inline]
            fn read(bytes: &[u8]) -> Option<$number> {
                bytes.first_chunk().map(|chunk| <$number>::from_le_bytes(*chunk))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i32, i64);

impl Field for bool {
    const BYTES: usize = 1;

    fn read(bytes: &[u8]) -> Option<bool> {
        bytes.first().map(|byte| *byte != 0)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn read(bytes: &[u8]) -> Option<(A, B)> {
        Some((A::read(bytes)?, at(bytes, A::BYTES)?))
    }
}

/// The field at byte `offset` of `bytes`.
#[inline]
pub fn at<T: Field>(bytes: &[u8], offset: usize) -> Option<T> {
    T::read(bytes.get(offset..)?)
}

/// Reads forward through bytes.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Begins at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next field.
    #[inline]
    pub fn field<T: Field>(&mut self) -> Option<T> {
        T::read(self.take(T::BYTES)?)
    }

    /// The next `count` values, one after the other; a count is often signed in the record, and
    /// a negative one finds too few bytes.
    pub fn list<T: Field>(&mut self, count: u32) -> Option<List<'a, T>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(T::BYTES)?;
        Some(List::over(self.take(bytes)?))
    }

    /// A 32-bit count and as many values.
    pub(crate) fn counted_list<T: Field>(&mut self) -> Option<List<'a, T>> {
        let count = self.field()?;
        self.list(count)
    }

    /// A text up to its zero byte, which is passed too.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.rest.iter().position(|byte| *byte == 0)?;
        let text = self.take(length)?;
        self.take(1)?;
        Some(text)
    }
}

/// Values of one fixed length, one after the other, borrowed from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List<'a, T> {
    bytes: &'a [u8],
    values: PhantomData<T>,
}

impl<'a, T: Field> List<'a, T> {
    /// All whole values in `bytes`.
    pub fn over(bytes: &'a [u8]) -> List<'a, T> {
        List { bytes, values: PhantomData }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + use<'a, T> {
        // Every chunk is long enough, so none is left out.
        let values: fn(&'a [u8]) -> Option<T> = T::read;
        Values { chunks: self.bytes.chunks_exact(T::BYTES), values }
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        List { bytes: &[], values: PhantomData }
    }
}

struct Values<'a, T> {
    chunks: std::slice::ChunksExact<'a, u8>,
    values: fn(&'a [u8]) -> Option<T>,
}

impl<T> Iterator for Values<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        (self.values)(self.chunks.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.chunks.size_hint()
    }
}

impl<T> ExactSizeIterator for Values<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 0, b'a', b'b', 0, 9]);
        assert_eq!(cursor.field::<u8>(), Some(1));
        assert_eq!(cursor.field::<u16>(), Some(2));
        assert_eq!(cursor.field::<u32>(), Some(3));
        assert_eq!(cursor.text(), Some(&b"ab"[..]));
        assert_eq!(cursor.field::<u16>(), None);
        assert_eq!(cursor.rest(), [9]);
        assert_eq!(cursor.text(), None);
    }

    #[test]
    fn a_list_is_whole_or_none() {
        let bytes = [2, 0, 0, 0, 5, 0, 6, 0, 7];
        let list = Cursor::new(&bytes).counted_list::<u16>().expect("two values");
        assert_eq!((list.len(), list.iter().collect::<Vec<_>>()), (2, vec![5, 6]));
        assert!(Cursor::new(&bytes).counted_list::<u32>().is_none());
        // -1
        assert!(Cursor::new(&[0xFF; 40]).counted_list::<u16>().is_none());
        assert!(List::<u32>::default().is_empty());
    }

    #[test]
    fn a_place_beyond_the_end_has_nothing() {
        assert_eq!(at::<u32>(&[1, 2, 3, 4], 1), None);
        assert_eq!(at::<u8>(&[1], usize::MAX), None);
    }
}
