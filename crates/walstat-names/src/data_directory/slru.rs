//! Files of pages without headers, by number: `pg_xact`, `pg_multixact` (`slru.c`). A page is
//! read when it is first asked for, and kept.

use super::open;
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// A directory of such files.
pub(super) struct Slru {
    directory: PathBuf,
    page_bytes: u32,
    file_pages: u32,
    /// Hexadecimal digits of a file's name, at least.
    digits: usize,
    pages: HashMap<u64, Option<Vec<u8>>>,
}

impl Slru {
    pub(super) fn new(directory: PathBuf, page_bytes: u32, file_pages: u32, digits: usize) -> Slru {
        Slru { directory, page_bytes, file_pages, digits, pages: HashMap::new() }
    }

    /// The file in which a page lies.
    pub(super) fn path(&self, page: u64) -> PathBuf {
        let number = page / u64::from(self.file_pages);
        self.directory.join(format!("{number:0digits$X}", digits = self.digits))
    }

    /// The directory.
    pub(super) fn directory(&self) -> &PathBuf {
        &self.directory
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// `count` bytes of a page from `offset` on; `None` where they are not there. A page at a
    /// file's end may be short.
    pub(super) fn bytes(&mut self, page: u64, offset: usize, count: usize) -> Option<&[u8]> {
        if !self.pages.contains_key(&page) {
            let read = self.read(page).ok();
            self.pages.insert(page, read);
        }
        self.pages.get(&page)?.as_ref()?.get(offset..offset.checked_add(count)?)
    }

    fn read(&self, page: u64) -> io::Result<Vec<u8>> {
        let mut file = open(&self.path(page))?;
        let place = page % u64::from(self.file_pages) * u64::from(self.page_bytes);
        file.seek(SeekFrom::Start(place))?;
        let mut bytes = Vec::new();
        file.take(u64::from(self.page_bytes)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_number() {
        let root = tempfile::tempdir().expect("a directory");
        let bytes: Vec<u8> = (0..100).collect();
        std::fs::write(root.path().join("0001"), &bytes).expect("a file");
        let mut slru = Slru::new(root.path().to_owned(), 32, 4, 4);
        assert_eq!(slru.bytes(5, 1, 2), Some(&[33, 34][..]));
        assert_eq!(slru.bytes(7, 0, 4), Some(&[96, 97, 98, 99][..]));
        assert_eq!(slru.bytes(7, 0, 5), None);
        assert_eq!(slru.bytes(0, 0, 1), None);
        assert!(slru.path(0xFFFF_FFFF).ends_with("3FFFFFFF"));
    }
}
