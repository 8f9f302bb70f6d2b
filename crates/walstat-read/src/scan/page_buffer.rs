//! A buffer that pages are read into, and a page in it. A window is what the buffer holds at the
//! moment.

use walstat_format::lsn::Lsn;

/// A cache line: into a buffer that is aligned to one, read() copies at least a tenth faster.
const ALIGNMENT: usize = 64;

/// A buffer that is filled again and again; its memory is allocated when it is first filled.
#[derive(Debug, Default)]
pub struct PageBuffer {
    buffer: Vec<u8>,
    /// Bytes before the first cache line, which are not used.
    lead: usize,
}

impl PageBuffer {
    /// The first `length` bytes, of at most `capacity`, to be filled.
    pub fn fresh(&mut self, length: usize, capacity: usize) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = vec![0; capacity + ALIGNMENT];
            self.lead = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
        self.buffer.get_mut(self.lead..self.lead + length).unwrap_or_default()
    }

    /// The first `length` bytes.
    pub fn filled(&self, length: usize) -> &[u8] {
        self.buffer.get(self.lead..self.lead + length).unwrap_or_default()
    }
}

/// A page of a window.
#[derive(Debug, Clone, Copy)]
pub struct Page<'w> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Its bytes: fewer than a page has if the file ends in it.
    pub bytes: &'w [u8],
    /// Its bytes, and all bytes after them in the window.
    pub window: &'w [u8],
}

impl<'w> Page<'w> {
    /// The first page of a window whose first byte is at `lsn`; `None` if the window is empty.
    pub fn first(lsn: Lsn, window: &'w [u8], page_bytes: u32) -> Option<Page<'w>> {
        let bytes = window.get(..page_bytes as usize).unwrap_or(window);
        (!bytes.is_empty()).then_some(Page { lsn, bytes, window })
    }

    /// The page after this one.
    pub fn next(self, page_bytes: u32) -> Option<Page<'w>> {
        self.at(self.bytes.len(), page_bytes)
    }

    /// The page that begins `distance` bytes after the start of this one.
    pub fn at(self, distance: usize, page_bytes: u32) -> Option<Page<'w>> {
        let lsn = Lsn(self.lsn.0 + distance as u64);
        Page::first(lsn, self.window.get(distance..)?, page_bytes)
    }

    /// After its last byte.
    pub fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + self.bytes.len() as u64)
    }
}
