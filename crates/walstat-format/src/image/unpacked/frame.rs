//! To how many bytes a frame of Zstandard unpacks: it is unpacked, into memory that is used again.

use std::cell::RefCell;
use zstd::bulk::Decompressor;

thread_local! {
    /// Made when it is first needed: most WAL has no such image, and one costs more than an image does.
    static UNPACKER: RefCell<Option<(Decompressor<'static>, Vec<u8>)>> = const { RefCell::new(None) };
}

/// So many bytes, which are no more than `most`; `None` where it cannot be unpacked.
pub(super) fn bytes(packed: &[u8], most: usize) -> Option<usize> {
    UNPACKER.with_borrow_mut(|made| {
        if made.is_none() {
            *made = Some((Decompressor::new().ok()?, Vec::new()));
        }
        let (decompressor, room) = made.as_mut()?;
        room.resize(most, 0);
        decompressor.decompress_to_buffer(packed, room.as_mut_slice()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_looked_into() {
        let page: Vec<u8> =
            (0..8192_u32).flat_map(|it| (it * it / 7).to_le_bytes()).take(8192).collect();
        let packed = zstd::bulk::compress(&page, 3).expect("zstd");
        assert_eq!(bytes(&packed, 8192), Some(8192));
        assert_eq!(bytes(&packed, 8191), None);
        let mut broken = packed.clone();
        let middle = broken.len() / 2;
        broken[middle..].fill(0xFF);
        assert_eq!(bytes(&broken, 8192), None);
        assert_eq!(bytes(&packed, 8192), Some(8192), "after one that is broken");
    }
}
