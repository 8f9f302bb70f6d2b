//! Sequences (`xl_seq_rec` in `src/include/commands/sequence.h`): all of the one row of a sequence's
//! one page.

use crate::cursor::{Field, at};
use crate::data_page::heap_tuple::HeapTuple;
use crate::locator::RelFileLocator;
use crate::version::{Release, Version};

/// So many values are logged beyond the one that is given out.
pub const SEQ_LOG_VALS: u32 = 32;

/// Before the row stands which sequence it is.
const LOCATOR_BYTES: usize = <RelFileLocator as Field>::BYTES;

/// The row of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence<'a> {
    tuple: HeapTuple<'a>,
}

impl<'a> Sequence<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<Sequence<'a>> {
        Some(Sequence { tuple: HeapTuple::parse(main_data.get(LOCATOR_BYTES..)?)? })
    }

    /// The value up to which values are logged: as many are given out before the next record.
    pub fn last_value(&self, version: &Version) -> Option<i64> {
        // Up to 9.6 the row begins with the sequence's name, of 64 bytes.
        at(self.tuple.body.data(), if version.since(Release::V10) { 0 } else { 64 })
    }

    /// Whether that value was given out or reserved: `false` where the sequence is new or reset.
    pub fn is_called(&self, version: &Version) -> Option<bool> {
        // Two more numbers precede it, up to 9.6 seven and another flag.
        at(self.tuple.body.data(), if version.since(Release::V10) { 16 } else { 121 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_page::heap_tuple::sample::row;

    #[test]
    fn the_row_is_whole() {
        let data = [&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0][..], &row(2, 0, 0, 0, b"row")].concat();
        let sequence = Sequence::parse(&data).expect("a row");
        assert_eq!(sequence.tuple.body.data(), b"row");
        assert_eq!(Sequence::parse(&data[..34]), None);
    }
}
