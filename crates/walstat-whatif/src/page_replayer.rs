//! Pages rolled forward, each under its block's number, within a limit of memory.

use super::blocks::BlockNumber;
use super::page::Page;
use super::redo;
use super::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::data_page::restore::PageRestorer;

/// What `BLCKSZ` is unless an image says otherwise.
const USUAL_PAGE_BYTES: usize = 8192;

/// No page is kept of a block.
const NO_PAGE: u32 = 0;

/// Pages.
pub(crate) struct PageReplayer {
    /// By block number: its page's place in `pages`, from 1; [`NO_PAGE`].
    places: Vec<u32>,
    pages: Vec<PageSlot>,
    /// Places that are free.
    free: Vec<u32>,
    restorer: PageRestorer,
    page_bytes: Option<usize>,
    /// How many pages are kept at most.
    limit: usize,
    /// Pages that were given up to make room.
    given_up: u64,
    /// Memory of a page that is not needed any more, for the next one.
    spare: Vec<u8>,
}

/// A place for a page.
struct PageSlot {
    page: Option<Page>,
    block: BlockNumber,
    /// Whether it was needed since room was made the last time.
    is_young: bool,
}

/// A page before and after a record.
pub(crate) struct ReplayedPage {
    /// Before; where an image shows what it is after, or nothing.
    pub(crate) before: Option<Page>,
    /// After.
    pub(crate) after: Option<Page>,
}

impl PageReplayer {
    /// Pages within so many bytes.
    pub(crate) fn within(bytes: u64) -> PageReplayer {
        let limit = usize::try_from(bytes / USUAL_PAGE_BYTES as u64).unwrap_or(usize::MAX).max(1);
        PageReplayer {
            places: Vec::new(),
            pages: Vec::new(),
            free: Vec::new(),
            restorer: PageRestorer::default(),
            page_bytes: None,
            limit,
            given_up: 0,
            spare: Vec::new(),
        }
    }

    /// `BLCKSZ`.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes.unwrap_or(USUAL_PAGE_BYTES)
    }

    /// Pages that were given up to make room.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The page of a block.
    pub(crate) fn page(&self, number: BlockNumber) -> Option<&Page> {
        let place = self.place_of(number)?;
        self.pages.get(place)?.page.as_ref()
    }

    /// Rolls a page over a record. [`PageReplayer::keep`] puts it back.
    pub(crate) fn roll(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> ReplayedPage {
        let before = self.take(number);
        match self.restored(record, block) {
            Some(page) => ReplayedPage { before, after: Some(page) },
            None if block.image.is_some() => ReplayedPage { before, after: None },
            None => {
                let after = redo::apply(record, block, before, self.page_bytes());
                ReplayedPage { before: None, after }
            }
        }
    }

    /// Takes back a page that is not needed any more.
    pub(crate) fn reuse(&mut self, page: Option<Page>) {
        if let Some(page) = page {
            self.spare = page.into_bytes();
        }
    }

    /// Forgets all pages.
    pub(crate) fn forget(&mut self) {
        self.places.clear();
        self.pages.clear();
        self.free.clear();
    }

    fn place_of(&self, number: BlockNumber) -> Option<usize> {
        let place = self.places.get(number as usize)?;
        Some(place.checked_sub(1)? as usize)
    }

    /// Its place stays, until [`PageReplayer::keep`] puts a page there or not.
    fn take(&mut self, number: BlockNumber) -> Option<Page> {
        let place = self.place_of(number)?;
        self.pages.get_mut(place)?.page.take()
    }

    /// Keeps a page; without one, of this block none is kept any more.
    pub(crate) fn keep(&mut self, number: BlockNumber, page: Option<Page>) {
        let place = self.place_of(number);
        match (page, place) {
            (None, None) => {}
            (None, Some(place)) => self.release(number, place),
            (Some(page), Some(place)) => self.put(place, number, page),
            (Some(page), None) => {
                let place = self.new_place(number);
                self.put(place, number, page);
            }
        }
    }

    fn put(&mut self, place: usize, block: BlockNumber, page: Page) {
        if let Some(kept) = self.pages.get_mut(place) {
            *kept = PageSlot { page: Some(page), block, is_young: true };
        }
    }

    fn release(&mut self, number: BlockNumber, place: usize) {
        if let Some(slot) = self.places.get_mut(number as usize) {
            *slot = NO_PAGE;
        }
        self.free.push(place as u32);
    }

    fn new_place(&mut self, number: BlockNumber) -> usize {
        if self.pages.len() - self.free.len() >= self.limit {
            self.make_room();
        }
        let place = self.free.pop().map_or(self.pages.len(), |place| place as usize);
        if place == self.pages.len() {
            self.pages.push(PageSlot { page: None, block: number, is_young: true });
        }
        let index = number as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, NO_PAGE);
        }
        if let Some(slot) = self.places.get_mut(index) {
            *slot = place as u32 + 1;
        }
        place
    }

    /// Gives up the pages that were not needed since the last time; all, if all were.
    fn make_room(&mut self) {
        let all_young = self.pages.iter().all(|kept| kept.is_young || kept.page.is_none());
        for (place, kept) in (0u32..).zip(&mut self.pages) {
            if kept.page.is_none() {
                continue;
            }
            if kept.is_young && !all_young {
                kept.is_young = false;
                continue;
            }
            kept.page = None;
            if let Some(slot) = self.places.get_mut(kept.block as usize) {
                *slot = NO_PAGE;
            }
            self.free.push(place);
            self.given_up += 1;
        }
    }

    /// The page of the block's image.
    fn restored(&mut self, record: &WholeRecord<'_>, block: &BlockRef) -> Option<Page> {
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
