//! Pages rolled forward, each under its block's number, within a limit of memory.
//!
//! Where only lengths are asked for, a page of a table or a B-tree is kept as a [`LightPage`]: taken from an
//! image without a copy of all of it, and changed where it lies.

use super::blocks::BlockNumber;
use super::light_page::{LightPage, LightRoom};
use super::page::Page;
use super::page_view::{PageLength, PageView};
use super::redo::{self, Before, Imaged};
use super::whole_record::WholeRecord;
use walstat_format::block::{BlockRef, Image};
use walstat_format::data_page::DEFAULT_PAGE_BYTES;
use walstat_format::data_page::restore::PageRestorer;

/// So much memory of single pages is kept for the next ones.
const SPARE_PAGES: usize = 8;

/// Pages.
pub(crate) struct PageReplayer {
    /// By block number.
    pages: Vec<PageSlot>,
    /// Bytes of those that are kept, and how many may be.
    held: usize,
    limit: usize,
    restorer: PageRestorer,
    page_bytes: Option<usize>,
    /// Pages that were given up to make room.
    given_up: u64,
    /// Memory of pages that are not needed any more, for the next ones.
    spare: Vec<Vec<u8>>,
    /// Whether only lengths are asked for.
    is_light: bool,
    room: LightRoom,
}

/// A place for a page.
#[derive(Default)]
struct PageSlot {
    page: Kept,
    is_in_use: bool,
    /// Whether it was needed since room was made the last time.
    is_young: bool,
}

/// What is kept of a page.
#[derive(Default)]
enum Kept {
    #[default]
    Nothing,
    Whole(Page),
    Light(LightPage),
}

impl Kept {
    /// Bytes that it takes beside its place.
    #[inline]
    fn bytes(&self) -> usize {
        match self {
            Kept::Nothing => 0,
            Kept::Whole(page) => page.size(),
            Kept::Light(page) => page.bytes(),
        }
    }

    fn before(&self) -> Option<Before<'_>> {
        match self {
            Kept::Nothing => None,
            Kept::Whole(page) => Some(Before::Whole(page)),
            Kept::Light(page) => Some(Before::Light(page)),
        }
    }
}

impl PageReplayer {
    /// Pages within so many bytes.
    pub(crate) fn within(bytes: u64) -> PageReplayer {
        PageReplayer {
            pages: Vec::new(),
            held: 0,
            limit: usize::try_from(bytes).unwrap_or(usize::MAX),
            restorer: PageRestorer::default(),
            page_bytes: None,
            given_up: 0,
            spare: Vec::new(),
            is_light: false,
            room: LightRoom::default(),
        }
    }

    /// The same, of which only lengths are asked; or more.
    pub(crate) fn light(self, is_light: bool) -> PageReplayer {
        PageReplayer { is_light, ..self }
    }

    /// `BLCKSZ`.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes.unwrap_or(DEFAULT_PAGE_BYTES)
    }

    /// Pages that were given up to make room.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The page of a block, if all of it is kept.
    pub(crate) fn page(&self, number: BlockNumber) -> Option<&Page> {
        match self.kept(number)? {
            Kept::Whole(page) => Some(page),
            Kept::Nothing | Kept::Light(_) => None,
        }
    }

    /// How long a block's page is.
    pub(crate) fn length(&self, number: BlockNumber) -> Option<PageLength> {
        match self.kept(number)? {
            Kept::Nothing => None,
            Kept::Whole(page) => Some(page.view().length()),
            Kept::Light(page) => Some(page.length()),
        }
    }

    /// Rolls a page over a record; `seen` is told what an image shows, with the page before where both are
    /// compared. How long the page is then; `None`: it cannot be followed any more.
    pub(crate) fn roll(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
        seen: impl FnOnce(Imaged<'_>, Option<Before<'_>>),
    ) -> Option<PageLength> {
        let Some(image) = block.image else { return self.change(record, block, number) };
        let after = self.replace(record, &image, record.image(block), number, seen);
        if after.is_none() {
            self.release(number);
        }
        after
    }

    /// The same of a record without an image.
    #[inline]
    pub(crate) fn change(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> Option<PageLength> {
        let is_light = self.is_light && redo::is_light(record, block);
        // Most records of WAL without images: nothing is known of the page, and the record does not make it.
        if is_light && !block.will_init && self.kept(number).is_none() {
            return None;
        }
        self.change_kept(record, block, number, is_light)
    }

    fn change_kept(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
        is_light: bool,
    ) -> Option<PageLength> {
        let light = if is_light { self.light_page(block, number) } else { None };
        let after = match light {
            Some(page) => {
                let before = page.bytes();
                let after = redo::change_light(record, block, page).map(|()| page.length());
                let bytes = page.bytes();
                self.held = self.held + bytes - before;
                after
            }
            None => self.change_whole(record, block, number),
        };
        if after.is_none() {
            self.release(number);
        }
        after
    }

    /// Takes back a page that is not needed any more.
    fn reuse(&mut self, page: Kept) {
        if let Kept::Whole(page) = page
            && self.spare.len() < SPARE_PAGES
        {
            self.spare.push(page.into_bytes());
        }
    }

    /// Forgets all pages.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
        self.held = 0;
    }

    fn kept(&self, number: BlockNumber) -> Option<&Kept> {
        let page = &self.pages.get(number as usize)?.page;
        if matches!(page, Kept::Nothing) { None } else { Some(page) }
    }

    /// The page before a record for which its lengths are enough, if they are kept.
    #[inline]
    fn light_page(&mut self, block: &BlockRef, number: BlockNumber) -> Option<&mut LightPage> {
        if block.will_init {
            let page = LightPage::table(self.page_bytes())?;
            self.keep(number, Kept::Light(page));
        }
        let slot = self.pages.get_mut(number as usize)?;
        slot.is_young = true;
        if let Kept::Whole(page) = &slot.page {
            let light = Kept::Light(self.room.read(&page.view())?.clone());
            self.held += light.bytes();
            self.held -= std::mem::replace(&mut slot.page, light).bytes();
        }
        match &mut slot.page {
            Kept::Light(page) => Some(page),
            Kept::Nothing | Kept::Whole(_) => None,
        }
    }

    /// Rolls a page of which all is needed over a record without an image.
    fn change_whole(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> Option<PageLength> {
        let slot = self.pages.get_mut(number as usize);
        let before = slot.map(|slot| std::mem::take(&mut slot.page)).unwrap_or_default();
        self.held -= before.bytes();
        let before = match before {
            Kept::Nothing => None,
            Kept::Whole(page) => Some(page),
            Kept::Light(page) => page.page(self.spare.pop().unwrap_or_default()),
        };
        let after = redo::apply(record, block, before, self.page_bytes())?;
        let length = after.view().length();
        let is_light = self.is_light && redo::needs_lengths_only(record);
        let light = if is_light { self.room.read(&after.view()).cloned() } else { None };
        match light {
            Some(light) => {
                self.keep(number, Kept::Light(light));
                self.reuse(Kept::Whole(after));
            }
            None => self.keep(number, Kept::Whole(after)),
        }
        Some(length)
    }

    /// The page becomes that of an image.
    fn replace(
        &mut self,
        record: &WholeRecord<'_>,
        image: &Image,
        stored: &[u8],
        number: BlockNumber,
        seen: impl FnOnce(Imaged<'_>, Option<Before<'_>>),
    ) -> Option<PageLength> {
        let was_light = matches!(self.kept(number), Some(Kept::Light(_)));
        let is_enough =
            redo::needs_lengths_only(record) || was_light && redo::is_of_any_page(record);
        self.make_place(number);
        let slot = self.pages.get_mut(number as usize)?;
        let stored = self.restorer.stored(image, stored, record.version.image_flags)?;
        let view = PageView::of_stored(&stored);
        self.page_bytes.get_or_insert(view.size());
        let before = if redo::compares(record) { slot.page.before() } else { None };
        if self.is_light
            && is_enough
            && let Some(light) = self.room.read(&view)
        {
            seen(Imaged { view, whole: None }, before);
            self.held -= slot.page.bytes();
            match &mut slot.page {
                Kept::Light(page) => page.become_like(light),
                page => *page = Kept::Light(light.clone()),
            }
            self.held += slot.page.bytes();
            return Some(view.length());
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        stored.write_to(&mut bytes);
        let page = Page::from_bytes(bytes);
        seen(Imaged { view, whole: page.as_ref() }, before);
        let length = view.length();
        match page {
            Some(page) => {
                self.held += page.size();
                let before = std::mem::replace(&mut slot.page, Kept::Whole(page));
                self.held -= before.bytes();
                self.reuse(before);
            }
            // The image is as long as it is, but what later records do to the page cannot be told.
            None => self.release(number),
        }
        Some(length)
    }

    fn keep(&mut self, number: BlockNumber, page: Kept) {
        self.make_place(number);
        if let Some(slot) = self.pages.get_mut(number as usize) {
            self.held += page.bytes();
            let before = std::mem::replace(&mut slot.page, page);
            self.held -= before.bytes();
            self.reuse(before);
        }
    }

    /// No page of the block is kept any more.
    fn release(&mut self, number: BlockNumber) {
        if let Some(slot) = self.pages.get_mut(number as usize) {
            let before = std::mem::take(slot);
            self.held -= before.page.bytes();
            self.reuse(before.page);
        }
    }

    /// Makes a place for the page of a block, if it has none.
    fn make_place(&mut self, number: BlockNumber) {
        let index = number as usize;
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, PageSlot::default);
        }
        if self.pages.get(index).is_some_and(|slot| !slot.is_in_use) {
            // How long it will be is not known yet: hardly longer than a page.
            if self.held > 0 && self.held + self.page_bytes() > self.limit {
                self.make_room();
            }
        }
        if let Some(slot) = self.pages.get_mut(index) {
            (slot.is_in_use, slot.is_young) = (true, true);
        }
    }

    /// Gives up the pages that were not needed since the last time; all, if all were.
    fn make_room(&mut self) {
        let is_free = |slot: &PageSlot| matches!(slot.page, Kept::Nothing);
        let all_young = self.pages.iter().all(|slot| slot.is_young || is_free(slot));
        for slot in self.pages.iter_mut().filter(|slot| !is_free(slot)) {
            if slot.is_young && !all_young {
                slot.is_young = false;
                continue;
            }
            self.held -= std::mem::take(slot).page.bytes();
            self.given_up += 1;
        }
    }
}

#[cfg(test)]
mod tests;
