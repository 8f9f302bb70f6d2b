//! Pages from full page images: decompressed, with the hole put back (`RestoreBlockImage` in
//! `src/backend/access/transam/xlogreader.c`).
//!
//! The page is as the record left it, but for its LSN, which is still the one from before. The
//! size of pages is not in the WAL: it follows from the image itself.

use super::{PAGE_HEADER_BYTES, is_page_size, pglz, stated_size};
use crate::block::Image;
use crate::image::{Compression, HAS_HOLE, ImageFlags};
use crate::page_size::MAX_PAGE_BYTES;
use zstd::bulk::Decompressor;

/// A page as an image has it, decompressed: without its hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPage<'a> {
    /// From the page's first byte on.
    pub before_hole: &'a [u8],
    /// Bytes that are left out, all of them 0.
    pub hole_bytes: usize,
    /// Up to its last byte.
    pub after_hole: &'a [u8],
}

impl StoredPage<'_> {
    /// Size of the page.
    pub fn size(&self) -> usize {
        self.before_hole.len() + self.hole_bytes + self.after_hole.len()
    }

    /// Puts the hole back; what was in `page` is gone.
    pub fn write_to(&self, page: &mut Vec<u8>) {
        page.clear();
        page.reserve(self.size());
        page.extend_from_slice(self.before_hole);
        page.resize(self.before_hole.len() + self.hole_bytes, 0);
        page.extend_from_slice(self.after_hole);
    }
}

/// Restores pages, one after the other, into memory that it uses again.
#[derive(Default)]
pub struct PageRestorer {
    unpacked: Vec<u8>,
    page: Vec<u8>,
    zstd: Option<Decompressor<'static>>,
}

impl PageRestorer {
    /// The page of an image whose stored bytes are `stored`; `None` where they cannot be one. Never makes
    /// more than 32 kB, the largest page, whatever length the image states.
    pub fn page(&mut self, image: &Image, stored: &[u8], flags: ImageFlags) -> Option<&[u8]> {
        let mut page = std::mem::take(&mut self.page);
        let made = self.page_into(image, stored, flags, &mut page);
        self.page = page;
        made.map(|()| self.page.as_slice())
    }

    /// The same, into `page`; what was in it is gone in any case.
    pub fn page_into(
        &mut self,
        image: &Image,
        stored: &[u8],
        flags: ImageFlags,
        page: &mut Vec<u8>,
    ) -> Option<()> {
        page.clear();
        self.stored(image, stored, flags)?.write_to(page);
        Some(())
    }

    /// The page as it is stored, decompressed; `None` where it cannot be one.
    pub fn stored<'a>(
        &'a mut self,
        image: &Image,
        stored: &'a [u8],
        flags: ImageFlags,
    ) -> Option<StoredPage<'a>> {
        let rest = self.rest(image, stored, flags)?;
        let hole_bytes = hole(image, rest, flags)?;
        // Without a hole the page is in one piece.
        let at = if hole_bytes > 0 { image.hole_offset.into() } else { rest.len() };
        let (before_hole, after_hole) = rest.split_at_checked(at)?;
        Some(StoredPage { before_hole, hole_bytes, after_hole })
    }

    /// The page without its hole, which is what the server compresses; `None` where it cannot be one.
    pub fn without_hole<'a>(
        &'a mut self,
        image: &Image,
        stored: &'a [u8],
        flags: ImageFlags,
    ) -> Option<&'a [u8]> {
        let rest = self.rest(image, stored, flags)?;
        hole(image, rest, flags).map(|_| rest)
    }

    /// What is stored, decompressed: a page without its hole.
    fn rest<'a>(
        &'a mut self,
        image: &Image,
        stored: &'a [u8],
        flags: ImageFlags,
    ) -> Option<&'a [u8]> {
        if stored.len() != usize::from(image.bytes) {
            return None;
        }
        if !flags.is_compressed(image.info) {
            return Some(stored);
        }
        let compression = flags.compression(image.info)?;
        self.unpacked.clear();
        if compression == Compression::Pglz {
            pglz::decompress(stored, MAX_PAGE_BYTES, &mut self.unpacked)?;
            return Some(&self.unpacked);
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
        Some(&self.unpacked)
    }
}

/// Bytes of the hole that was left out of a page, whose remaining bytes are `rest`. `None` if both together
/// are no possible page size, or not the size that the page header states.
fn hole(image: &Image, rest: &[u8], flags: ImageFlags) -> Option<usize> {
    let stated = stated_size(rest).unwrap_or_default();
    let has_hole = image.info & HAS_HOLE != 0;
    let hole = match (has_hole, flags.is_compressed(image.info)) {
        (false, _) => 0,
        (true, true) => usize::from(image.hole_bytes),
        // The hole itself is not in the image, but the page's header is.
        (true, false) => stated.checked_sub(rest.len())?,
    };
    let (at, size) = (usize::from(image.hole_offset), rest.len() + hole);
    let is_sound = at <= rest.len()
        && (hole == 0 || at >= PAGE_HEADER_BYTES)
        && is_page_size(size)
        && (stated == 0 || stated == size);
    is_sound.then_some(hole)
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
