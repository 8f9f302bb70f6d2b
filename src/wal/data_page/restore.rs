//! Pages from full page images: decompressed, with the hole put back (`RestoreBlockImage` in
//! `src/backend/access/transam/xlogreader.c`).
//!
//! The page is as the record left it, but for its LSN, which is still the one from before. The
//! size of pages is not in the WAL: it follows from the image itself.

use super::{MAX_PAGE_BYTES, is_page_size, pglz, stated_size};
use crate::wal::block::Image;
use crate::wal::image::{Compression, HAS_HOLE, ImageFlags};
use zstd::bulk::Decompressor;

/// Restores pages, one after the other, into memory that it uses again.
#[derive(Default)]
pub struct PageRestorer {
    unpacked: Vec<u8>,
    page: Vec<u8>,
    zstd: Option<Decompressor<'static>>,
}

impl PageRestorer {
    /// The page of an image whose stored bytes are `stored`; `None` where they cannot be one. At
    /// most a page's 32 kB are made of it, whatever it says.
    pub fn page(&mut self, image: &Image, stored: &[u8], flags: ImageFlags) -> Option<&[u8]> {
        if stored.len() != usize::from(image.bytes) {
            return None;
        }
        self.unpack(image, stored, flags)?;
        let has_hole = image.info & HAS_HOLE != 0;
        let hole = match (has_hole, flags.is_compressed(image.info)) {
            (false, _) => 0,
            (true, true) => usize::from(image.hole_bytes),
            // The hole itself is not in the image, but the page's header is.
            (true, false) => stated_size(&self.unpacked)?.checked_sub(self.unpacked.len())?,
        };
        let (before, after) = self.unpacked.split_at_checked(usize::from(image.hole_offset))?;
        self.page.clear();
        self.page.extend_from_slice(before);
        self.page.resize(before.len() + hole, 0);
        self.page.extend_from_slice(after);
        self.is_page().then_some(&self.page)
    }

    /// The page without its hole, which is what the server compresses; `None` where it cannot be one.
    pub fn without_hole(
        &mut self,
        image: &Image,
        stored: &[u8],
        flags: ImageFlags,
    ) -> Option<&[u8]> {
        self.page(image, stored, flags).is_some().then_some(&self.unpacked)
    }

    /// Whether the page has a size that there is, and none other in its header.
    fn is_page(&self) -> bool {
        let stated = stated_size(&self.page).unwrap_or_default();
        is_page_size(self.page.len()) && (stated == 0 || stated == self.page.len())
    }

    fn unpack(&mut self, image: &Image, stored: &[u8], flags: ImageFlags) -> Option<()> {
        self.unpacked.clear();
        if !flags.is_compressed(image.info) {
            self.unpacked.extend_from_slice(stored);
            return Some(());
        }
        let compression = flags.compression(image.info)?;
        if compression == Compression::Pglz {
            return pglz::decompress(stored, MAX_PAGE_BYTES, &mut self.unpacked);
        }
        self.unpacked.resize(MAX_PAGE_BYTES, 0);
        let room = self.unpacked.as_mut_slice();
        let bytes = match compression {
            Compression::Zstd => {
                decompressor(&mut self.zstd)?.decompress_to_buffer(stored, room).ok()?
            }
            _ => lz4_flex::block::decompress_into(stored, room).ok()?,
        };
        self.unpacked.truncate(bytes);
        Some(())
    }
}

/// Made when it is first needed: most WAL has no such image.
fn decompressor<'z>(
    zstd: &'z mut Option<Decompressor<'static>>,
) -> Option<&'z mut Decompressor<'static>> {
    if zstd.is_none() {
        *zstd = Decompressor::new().ok();
    }
    zstd.as_mut()
}

#[cfg(test)]
mod tests {
    use super::super::tests::page_of;
    use super::*;

    const V9_5: ImageFlags = ImageFlags::V9_5;
    const V15: ImageFlags = ImageFlags::V15;

    /// A page, where its hole begins, and what is left of it without the hole.
    fn page_and_rest(size: usize) -> (Vec<u8>, usize, Vec<u8>) {
        let page = page_of(size, &[&[7; 100], &[8; 300]]);
        let upper = usize::from(super::super::DataPage::new(&page).expect("sound").header().upper);
        let rest = [&page[..32], &page[upper..]].concat();
        (page, 32, rest)
    }

    fn image(stored: &[u8], hole_offset: usize, hole_bytes: usize, info: u8) -> Image {
        let short = |value: usize| u16::try_from(value).expect("fits a page");
        Image {
            bytes: short(stored.len()),
            hole_offset: short(hole_offset),
            hole_bytes: short(hole_bytes),
            info,
        }
    }

    fn restored(image: Image, stored: &[u8], flags: ImageFlags) -> Option<Vec<u8>> {
        PageRestorer::default().page(&image, stored, flags).map(<[u8]>::to_vec)
    }

    #[test]
    fn the_hole_is_put_back_in_pages_of_any_size() {
        for size in [1024, 8192, 16384, 32768] {
            let (page, at, rest) = page_and_rest(size);
            let found = restored(image(&rest, at, 0, 0x03), &rest, V15);
            assert_eq!(found.as_ref(), Some(&page));
            let whole = restored(image(&page, 0, 0, 0x02), &page, V15);
            assert_eq!(whole.as_ref(), Some(&page));
        }
    }

    #[test]
    fn each_compression_is_undone() {
        let (page, at, rest) = page_and_rest(8192);
        let hole = page.len() - rest.len();
        let lz4 = lz4_flex::block::compress(&rest);
        let zstd = zstd::bulk::compress(&rest, 3).expect("zstd");
        // pglz with nothing but bytes as they stand.
        let pglz: Vec<u8> = rest.chunks(8).flat_map(|eight| [&[0], eight].concat()).collect();
        for (stored, info) in [(&pglz, 0x07), (&lz4, 0x0B), (&zstd, 0x13)] {
            let found = restored(image(stored, at, hole, info), stored, V15);
            assert_eq!(found.as_ref(), Some(&page), "{info:#x}");
        }
        assert_eq!(restored(image(&pglz, at, hole, 0x03), &pglz, V9_5), Some(page));
    }

    #[test]
    fn pages_never_initialised_have_no_header() {
        let zeros = vec![0u8; 8192];
        assert_eq!(restored(image(&zeros, 0, 0, 0x02), &zeros, V15).as_ref(), Some(&zeros));
        let packed = zstd::bulk::compress(&zeros, 3).expect("zstd");
        assert_eq!(restored(image(&packed, 0, 0, 0x12), &packed, V15), Some(zeros));
    }

    #[test]
    fn nonsense_is_refused() {
        let (page, at, rest) = page_and_rest(8192);
        let hole = page.len() - rest.len();
        let sound = image(&rest, at, 0, 0x03);
        // Another length than stated; a hole beyond the end; a size that no page has.
        assert_eq!(restored(sound, &rest[1..], V15), None);
        assert_eq!(restored(image(&rest, rest.len() + 1, 0, 0x03), &rest, V15), None);
        assert_eq!(restored(image(&rest, 0, 0, 0x02), &rest, V15), None);
        // Not compressed at all, or said to be compressed twice, or to more than a page.
        for info in [0x07, 0x0B, 0x13, 0x1B] {
            assert_eq!(restored(image(&rest, at, hole, info), &rest, V15), None, "{info:#x}");
        }
        let bomb = zstd::bulk::compress(&vec![0; 1 << 20], 3).expect("zstd");
        assert_eq!(restored(image(&bomb, 0, 0, 0x12), &bomb, V15), None);
        let bomb = lz4_flex::block::compress(&vec![0; 60_000]);
        assert_eq!(restored(image(&bomb, 0, 0, 0x0A), &bomb, V15), None);
        // A page that says it has another size.
        let lz4 = lz4_flex::block::compress(&rest);
        assert_eq!(restored(image(&lz4, at, hole + 8192, 0x0B), &lz4, V15), None);
    }
}
