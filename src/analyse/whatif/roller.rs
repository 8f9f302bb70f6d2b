//! Pages rolled forward, each under its block's number, within a limit of memory.

use super::blocks::BlockNumber;
use super::page::Page;
use super::redo;
use super::whole::Whole;
use crate::wal::block::BlockRef;
use crate::wal::data_page::restore::PageRestorer;

/// What `BLCKSZ` is unless an image says otherwise.
const USUAL_PAGE_BYTES: usize = 8192;

/// Pages.
pub struct Roller {
    pages: Vec<Option<Kept>>,
    restorer: PageRestorer,
    page_bytes: Option<usize>,
    /// How many pages are kept at most, and are.
    limit: usize,
    kept: usize,
    /// Pages that were given up to make room.
    given_up: u64,
    /// Memory of a page that is not needed any more, for the next one.
    spare: Vec<u8>,
}

/// A page, and whether it was needed since room was made the last time.
#[derive(Clone)]
struct Kept {
    page: Page,
    is_young: bool,
}

/// A page before and after a record.
pub struct Step {
    /// Before; where an image shows what it is after, or nothing.
    pub before: Option<Page>,
    /// After.
    pub after: Option<Page>,
}

impl Roller {
    /// Pages within so many bytes.
    pub fn within(bytes: u64) -> Roller {
        let limit = usize::try_from(bytes / USUAL_PAGE_BYTES as u64).unwrap_or(usize::MAX).max(1);
        Roller {
            pages: Vec::new(),
            restorer: PageRestorer::default(),
            page_bytes: None,
            limit,
            kept: 0,
            given_up: 0,
            spare: Vec::new(),
        }
    }

    /// `BLCKSZ`.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes.unwrap_or(USUAL_PAGE_BYTES)
    }

    /// Pages that were given up to make room.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The page of a block.
    pub fn page(&self, number: BlockNumber) -> Option<&Page> {
        self.pages.get(number as usize)?.as_ref().map(|kept| &kept.page)
    }

    /// Rolls a page over a record. [`Roller::keep`] puts it back.
    pub fn roll(&mut self, record: &Whole<'_>, block: &BlockRef, number: BlockNumber) -> Step {
        let before = self.take(number);
        match self.restored(record, block) {
            Some(page) => Step { before, after: Some(page) },
            None if block.image.is_some() => Step { before, after: None },
            None => {
                let after = redo::apply(record, block, before, self.page_bytes());
                Step { before: None, after }
            }
        }
    }

    /// Takes back a page that is not needed any more.
    pub fn reuse(&mut self, page: Option<Page>) {
        if let Some(page) = page {
            self.spare = page.into_bytes();
        }
    }

    /// Forgets all pages.
    pub fn forget(&mut self) {
        self.pages.clear();
        self.kept = 0;
    }

    fn take(&mut self, number: BlockNumber) -> Option<Page> {
        let kept = self.pages.get_mut(number as usize)?.take()?;
        self.kept -= 1;
        Some(kept.page)
    }

    /// Keeps a page.
    pub fn keep(&mut self, number: BlockNumber, page: Option<Page>) {
        let Some(page) = page else { return };
        if self.kept >= self.limit {
            self.make_room();
        }
        let index = number as usize;
        if self.pages.len() <= index {
            self.pages.resize(index + 1, None);
        }
        if let Some(slot) = self.pages.get_mut(index) {
            self.kept += usize::from(slot.is_none());
            *slot = Some(Kept { page, is_young: true });
        }
    }

    /// Gives up the pages that were not needed since the last time; all, if all were.
    fn make_room(&mut self) {
        let all_young = self.pages.iter().flatten().all(|kept| kept.is_young);
        for slot in &mut self.pages {
            match slot {
                Some(kept) if kept.is_young && !all_young => kept.is_young = false,
                Some(_) => {
                    *slot = None;
                    self.kept -= 1;
                    self.given_up += 1;
                }
                None => {}
            }
        }
    }

    /// The page of the block's image.
    fn restored(&mut self, record: &Whole<'_>, block: &BlockRef) -> Option<Page> {
        let image = block.image?;
        let flags = record.version.image_flags;
        let mut bytes = std::mem::take(&mut self.spare);
        let stored = record.image(block);
        if self.restorer.page_into(&image, stored, flags, &mut bytes).is_none() {
            self.spare = bytes;
            return None;
        }
        self.page_bytes.get_or_insert(bytes.len());
        Page::from_bytes(bytes)
    }
}
