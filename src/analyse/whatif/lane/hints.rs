//! Hint bits in a simulated run: the images that setting them brings, and the rows that vacuum freezes
//! because of an image.

use super::{HINT_BYTES, Lane};
use crate::analyse::whatif::blocks::{BEFORE, Ordinal};
use crate::analyse::whatif::plan::{Certainty, ImageBytes, Plan};
use crate::analyse::whatif::position::padded;
use crate::analyse::whatif::trace::{Mark, Ref, fact};
use crate::wal::payload::xlog::FPI_FOR_HINT;
use crate::wal::rmgr::XLOG;

impl Lane<'_> {
    /// What an image of a record's first page, or the want of one, has to do with freezing.
    pub(super) fn freeze(
        &mut self,
        (mark, first): (Option<Mark>, &Ref),
        is_taken: bool,
        plan: &mut Plan,
    ) {
        let was_imaged = self.imaged == Some(first.block);
        // A record that only freezes is not there without the image for hint bits. One that prunes too may
        // have an image of its own, and freezes for that.
        if let Some(Mark::FreezesForHint { data }) = mark
            && !was_imaged
            && (!is_taken || data.is_none())
        {
            self.outcome.freezes_lost += 1;
            self.outcome.freezes_cut += u64::from(data.is_some());
            plan.level.data = data;
            plan.images = plan.images.filter(|_| data.is_some());
        }
        if first.is(fact::LOOKED_AT) {
            let is_new = is_taken && !first.is(fact::BASE_IMAGE);
            self.outcome.freezes_possible += u64::from(is_new && self.freezes_for_images());
        }
        if first.is(fact::LOOKED_AT) || mark == Some(Mark::Hint { is_main: true }) {
            let keeps = is_taken || was_imaged && mark == Some(Mark::PrunesAfterHint);
            self.imaged = (keeps && plan.images.is_some()).then_some(first.block);
        }
    }

    pub(super) fn freezes_for_images(&self) -> bool {
        let habits = &self.base.version.pages;
        habits.freezes_after_image || habits.freezes_with_pruning
    }

    /// Rows are frozen where the page gets an image anyway, and else not.
    pub(super) fn skips_freezing(&self, refs: &[Ref]) -> bool {
        let first = refs.first().filter(|first| first.is(fact::FREEZES_FOR_IMAGE));
        first.is_some_and(|first| self.imaged != Some(first.block))
    }

    pub(super) fn skips_hint(&self, mark: Option<Mark>, refs: &[Ref]) -> bool {
        let writes = || self.log_hints && refs.iter().all(|reference| self.is_stale(reference));
        match mark {
            Some(Mark::Hint { .. }) => !writes(),
            Some(Mark::MapTruncated) => self.base.log_hints && !self.log_hints,
            _ => false,
        }
    }

    /// Whether hint bits of the page are changed, and that is logged, before the record: the base does
    /// not log them, or was not past a redo point here. Rows that were changed before have none yet;
    /// others may have looked at them since, so it is an estimate.
    pub(super) fn is_hinted_first(&self, reference: &Ref) -> bool {
        let is_new = !self.base.log_hints || !reference.is(fact::BASE_IMAGE);
        self.log_hints
            && is_new
            && self.full_page_writes
            && reference.is(fact::USUAL | fact::LOOKED_AT)
            && reference.stamped > BEFORE
            && self.is_stale(reference)
    }

    /// The page as it is before the record: hint bits are set before rows are taken away.
    pub(super) fn unpruned(&self, ordinal: Ordinal, reference: &Ref) -> Ref {
        match self.trace.unpruned_bytes(ordinal) {
            Some(bytes) => {
                Ref { image_bytes: bytes, facts: reference.facts & !fact::BASE_IMAGE, ..*reference }
            }
            None => *reference,
        }
    }

    /// Writes a record for hint bits.
    pub(super) fn hint(&mut self, ordinal: Ordinal, reference: &Ref, image: ImageBytes) {
        let bytes = HINT_BYTES + self.image(ordinal, reference, image);
        let length = padded(u64::from(bytes));
        self.usable += length;
        self.outcome.records += 1;
        self.outcome.differ(self.kind(XLOG, FPI_FOR_HINT), length as i64, 1);
        self.outcome.hint_images += 1;
        self.outcome.hint_image_bytes += length;
        self.outcome.estimated_bytes += u64::from(HINT_BYTES);
    }

    /// Images of the free space map that the base does not have: none are logged there, or it was past a
    /// redo point less.
    pub(super) fn map_space(&mut self, ordinal: Ordinal, (page, above): (Ordinal, Ordinal)) {
        if !self.log_hints || !self.full_page_writes {
            return;
        }
        let base_redo = self.base.redo_at(ordinal);
        let has_none = |changed: Ordinal| !self.base.log_hints || changed >= base_redo;
        let is_new = |changed: Ordinal| changed < self.redo && has_none(changed);
        let count = u16::from(is_new(page)) + 2 * u16::from(is_new(above));
        let page_bytes = u16::try_from(self.trace.page_bytes).unwrap_or(u16::MAX);
        let image =
            ImageBytes { stored: page_bytes, compressed: false, certainty: Certainty::Estimated };
        let map = Ref { image_bytes: page_bytes, ..Ref::default() };
        (0..count).for_each(|_| self.hint(ordinal, &map, image));
    }
}
