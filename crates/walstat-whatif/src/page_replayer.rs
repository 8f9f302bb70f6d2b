//! Pages rolled forward, each under its block's number, within a limit of memory.
//!
//! Where only lengths are asked for, a page of a table or a B-tree rests when it was not needed for a while:
//! as a [`LeanPage`].

use super::blocks::BlockNumber;
use super::lean_page::LeanPage;
use super::page::Page;
use super::redo;
use super::whole_record::WholeRecord;
use std::collections::VecDeque;
use walstat_format::block::BlockRef;
use walstat_format::data_page::restore::PageRestorer;

/// What `BLCKSZ` is unless an image says otherwise.
const USUAL_PAGE_BYTES: usize = 8192;

/// No page is kept of a block.
const NO_PAGE: u32 = 0;

/// So many pages in use stay as they are, although they could be kept lean: they fit the processor's cache.
const AWAKE_PAGES: usize = 128;

/// So much memory of single pages is kept for the next ones.
const SPARE_PAGES: usize = 8;

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
    /// Memory of pages that are not needed any more, for the next ones.
    spare: Vec<Vec<u8>>,
    /// Whether only lengths are asked for.
    is_lean: bool,
    /// Places of the pages that may rest and do not.
    awake: VecDeque<u32>,
    room: Vec<u8>,
}

/// A place for a page.
struct PageSlot {
    page: Kept,
    block: BlockNumber,
    /// Whether it was needed since room was made the last time.
    is_young: bool,
    /// Whether a record of a table or a B-tree has changed it.
    may_rest: bool,
    /// Whether it is one of those that are awake, and was needed since it was looked at there.
    is_awake: bool,
    is_in_use: bool,
}

impl PageSlot {
    fn new(block: BlockNumber) -> PageSlot {
        let page = Kept::Nothing;
        PageSlot { page, block, is_young: true, may_rest: false, is_awake: false, is_in_use: false }
    }
}

/// What is kept of a page.
#[derive(Default)]
enum Kept {
    #[default]
    Nothing,
    Whole(Page),
    Lean(LeanPage),
}

/// A page before and after a record.
pub(crate) struct ReplayedPage {
    /// Before; where an image shows what it is after, or nothing, and it is compared with that.
    pub(crate) before: Option<Page>,
    /// After.
    pub(crate) after: Option<Page>,
}

/// How long an image of a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageLength {
    /// Bytes.
    pub(crate) bytes: usize,
    /// Whether a hole is left out.
    pub(crate) has_hole: bool,
}

impl ImageLength {
    fn of(page: &Page) -> ImageLength {
        let hole = page.hole().len();
        ImageLength { bytes: page.size() - hole, has_hole: hole > 0 }
    }
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
            is_lean: false,
            awake: VecDeque::new(),
            room: Vec::new(),
        }
    }

    /// The same, of which only lengths are asked; or more.
    pub(crate) fn lean(self, is_lean: bool) -> PageReplayer {
        PageReplayer { is_lean, ..self }
    }

    /// `BLCKSZ`.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes.unwrap_or(USUAL_PAGE_BYTES)
    }

    /// Pages that were given up to make room.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The page of a block, if all of it is kept.
    pub(crate) fn page(&self, number: BlockNumber) -> Option<&Page> {
        match &self.pages.get(self.place_of(number)?)?.page {
            Kept::Whole(page) => Some(page),
            Kept::Nothing | Kept::Lean(_) => None,
        }
    }

    /// Bytes of an image of a block's page, which leaves out the hole.
    pub(crate) fn image_bytes(&self, number: BlockNumber) -> Option<usize> {
        match &self.pages.get(self.place_of(number)?)?.page {
            Kept::Nothing => None,
            Kept::Whole(page) => Some(page.image_bytes()),
            Kept::Lean(page) => page.image_bytes(),
        }
    }

    /// Rolls a page over a record. [`PageReplayer::keep`] puts it back.
    pub(crate) fn roll(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> ReplayedPage {
        if block.image.is_none() {
            let before = self.take(number);
            let after = redo::apply(record, block, before, self.page_bytes());
            return ReplayedPage { before: None, after };
        }
        let before = if redo::compares(record) { self.take(number) } else { None };
        ReplayedPage { before, after: self.restored(record, block) }
    }

    /// Rolls a page over a [plain](redo::is_plain) record: where it lies, if it is at hand as a whole. How
    /// long an image of it is then.
    pub(crate) fn change(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> Option<ImageLength> {
        if block.will_init {
            return self.change_anew(record, block, number);
        }
        let place = self.place_of(number)?;
        let kept = self.pages.get_mut(place)?;
        let Kept::Whole(page) = &mut kept.page else {
            return self.change_anew(record, block, number);
        };
        if self.is_lean && !kept.is_awake {
            return self.change_anew(record, block, number);
        }
        if redo::change(record, block, page).is_none() {
            kept.page = Kept::Nothing;
            self.release(number, place);
            return None;
        }
        (kept.is_young, kept.is_in_use) = (true, true);
        kept.may_rest |= self.is_lean;
        Some(ImageLength::of(page))
    }

    /// The same of one that is made anew, or that rests.
    fn change_anew(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        number: BlockNumber,
    ) -> Option<ImageLength> {
        let after = self.roll(record, block, number).after;
        let length = after.as_ref().map(ImageLength::of);
        self.keep(record, number, after);
        length
    }

    /// Takes back a page that is not needed any more.
    pub(crate) fn reuse(&mut self, page: Option<Page>) {
        if self.spare.len() < SPARE_PAGES {
            self.spare.extend(page.map(Page::into_bytes));
        }
    }

    /// Forgets all pages.
    pub(crate) fn forget(&mut self) {
        self.places.clear();
        self.pages.clear();
        self.free.clear();
        self.awake.clear();
    }

    fn place_of(&self, number: BlockNumber) -> Option<usize> {
        let place = self.places.get(number as usize)?;
        Some(place.checked_sub(1)? as usize)
    }

    /// Its place stays, until [`PageReplayer::keep`] puts a page there or not.
    fn take(&mut self, number: BlockNumber) -> Option<Page> {
        let place = self.place_of(number)?;
        match std::mem::take(&mut self.pages.get_mut(place)?.page) {
            Kept::Nothing => None,
            Kept::Whole(page) => Some(page),
            Kept::Lean(page) => page.page(self.spare.pop().unwrap_or_default()),
        }
    }

    /// Keeps a page after a record; without one, of this block none is kept any more.
    pub(crate) fn keep(
        &mut self,
        record: &WholeRecord<'_>,
        number: BlockNumber,
        page: Option<Page>,
    ) {
        let place = self.place_of(number);
        match (page, place) {
            (None, None) => {}
            (None, Some(place)) => self.release(number, place),
            (Some(page), place) => {
                let place = place.unwrap_or_else(|| self.new_place(number));
                self.put(place, page, self.is_lean && redo::needs_lengths_only(record));
            }
        }
    }

    fn put(&mut self, place: usize, page: Page, may_rest: bool) {
        let Some(kept) = self.pages.get_mut(place) else { return };
        let before = std::mem::replace(&mut kept.page, Kept::Whole(page));
        (kept.is_young, kept.is_in_use) = (true, true);
        kept.may_rest |= may_rest;
        if kept.may_rest && !kept.is_awake {
            kept.is_awake = true;
            self.awake.push_back(place as u32);
            self.let_rest();
        }
        if let Kept::Whole(page) = before {
            self.reuse(Some(page));
        }
    }

    /// Lets a page rest that was not in use, if too many are awake.
    fn let_rest(&mut self) {
        while self.awake.len() > AWAKE_PAGES
            && let Some(place) = self.awake.pop_front()
            && let Some(kept) = self.pages.get_mut(place as usize)
        {
            if std::mem::take(&mut kept.is_in_use) {
                self.awake.push_back(place);
                continue;
            }
            kept.is_awake = false;
            if let Kept::Whole(page) = &kept.page
                && let Some(lean) = LeanPage::of(page, &mut self.room)
                && let Kept::Whole(page) = std::mem::replace(&mut kept.page, Kept::Lean(lean))
            {
                self.reuse(Some(page));
            }
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
        match self.pages.get_mut(place) {
            Some(kept) => {
                let PageSlot { is_awake, .. } = *kept;
                *kept = PageSlot { is_awake, ..PageSlot::new(number) };
            }
            None => self.pages.push(PageSlot::new(number)),
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
        let is_free = |kept: &PageSlot| matches!(kept.page, Kept::Nothing);
        let all_young = self.pages.iter().all(|kept| kept.is_young || is_free(kept));
        for (place, kept) in (0u32..).zip(&mut self.pages) {
            if is_free(kept) {
                continue;
            }
            if kept.is_young && !all_young {
                kept.is_young = false;
                continue;
            }
            kept.page = Kept::Nothing;
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
        let mut bytes = self.spare.pop().unwrap_or_default();
        let stored = record.image(block);
        if self.restorer.page_into(&image, stored, flags, &mut bytes).is_none() {
            self.spare.push(bytes);
            return None;
        }
        self.page_bytes.get_or_insert(bytes.len());
        Page::from_bytes(bytes)
    }
}
