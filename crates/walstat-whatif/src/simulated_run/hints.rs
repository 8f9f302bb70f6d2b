//! Hint bits in a simulated run: the images that setting them brings, and the rows that vacuum freezes
//! because of an image.

use super::{HINT_BYTES, SimulatedRun};
use crate::blocks::{BEFORE, Ordinal};
use crate::imaged_page::Look;
use crate::plan::{Certainty, ImageBytes, Plan};
use crate::position::padded;
use crate::redo::Unfrozen;
use crate::trace::{RecordEffect, TracedBlock, entry_fact};
use walstat_format::payload::xlog::FPI_FOR_HINT;
use walstat_format::rmgr::XLOG;

impl SimulatedRun<'_> {
    /// What an image of a record's first page, or the want of one, has to do with freezing.
    pub(super) fn freeze(
        &mut self,
        effect: Option<RecordEffect>,
        first: &TracedBlock,
        plan: &mut Plan,
    ) {
        let is_taken = plan.has_image_of_first();
        let was_imaged = self.imaged.is(first.block);
        // A record that only freezes is not there without the image for hint bits. One that prunes too may
        // have an image of its own, and freezes for that.
        match effect {
            Some(RecordEffect::FreezesForHint { unfrozen: Unfrozen::NoRecord }) if !was_imaged => {
                self.outcome.uncertain.freezes_lost += 1;
                plan.level.data = None;
                plan.images = None;
            }
            Some(RecordEffect::FreezesForHint { unfrozen: Unfrozen::Data(bytes) })
                if !was_imaged && !is_taken =>
            {
                self.outcome.uncertain.freezes_lost += 1;
                self.outcome.uncertain.freezes_cut += 1;
                plan.level.data = Some(bytes);
            }
            _ => {}
        }
        if first.is(entry_fact::LOOKED_AT) {
            let is_new = is_taken && !first.is(entry_fact::BASE_IMAGE);
            self.outcome.uncertain.freezes_possible +=
                u64::from(is_new && self.freezes_for_images());
        }
        if first.is(entry_fact::LOOKED_AT) || effect == Some(RecordEffect::Hint { is_main: true }) {
            let is_written = plan.images.is_some();
            self.imaged.look(Look {
                block: first.block,
                has_image: is_taken && is_written,
                prunes_after_hint: effect == Some(RecordEffect::PrunesAfterHint) && is_written,
            });
        }
    }

    fn freezes_for_images(&self) -> bool {
        let habits = &self.base.version.pages;
        habits.freezes_after_image || habits.freezes_with_pruning
    }

    /// Rows are frozen where the page gets an image anyway, and else not.
    pub(super) fn skips_freezing(&self, refs: &[TracedBlock]) -> bool {
        let first = refs.first().filter(|first| first.is(entry_fact::FREEZES_FOR_IMAGE));
        first.is_some_and(|first| !self.imaged.is(first.block))
    }

    pub(super) fn skips_hint(&self, effect: Option<RecordEffect>, refs: &[TracedBlock]) -> bool {
        let writes =
            || self.settings.log_hints && refs.iter().all(|reference| self.is_stale(reference));
        match effect {
            Some(RecordEffect::Hint { .. }) => !writes(),
            Some(RecordEffect::MapTruncated) => self.base.log_hints && !self.settings.log_hints,
            _ => false,
        }
    }

    /// Whether hint bits of the page are changed, and that is logged, before the record: the base does
    /// not log them, or was not past a redo point here. Rows that were changed before have none yet;
    /// others may have looked at them since, so it is an estimate.
    pub(super) fn is_hinted_first(&self, reference: &TracedBlock) -> bool {
        let is_new = !self.base.log_hints || !reference.is(entry_fact::BASE_IMAGE);
        self.settings.log_hints
            && is_new
            && self.settings.full_page_writes
            && reference.is(entry_fact::USUAL | entry_fact::LOOKED_AT)
            && reference.stamped > BEFORE
            && self.is_stale(reference)
    }

    /// The page as it is before the record: hint bits are set before rows are taken away.
    pub(super) fn unpruned(&self, ordinal: Ordinal, reference: &TracedBlock) -> TracedBlock {
        match self.trace.unpruned_bytes(ordinal) {
            Some(bytes) => TracedBlock {
                image_bytes: bytes,
                facts: reference.facts & !entry_fact::BASE_IMAGE,
                ..*reference
            },
            None => *reference,
        }
    }

    /// Writes a record for hint bits.
    pub(super) fn hint(&mut self, ordinal: Ordinal, reference: &TracedBlock, image: ImageBytes) {
        let bytes = HINT_BYTES + self.image(ordinal, reference, image);
        let length = padded(u64::from(bytes));
        self.usable += length;
        self.outcome.records += 1;
        self.outcome.differ(self.kind(XLOG, FPI_FOR_HINT), length as i64, 1);
        self.outcome.uncertain.hint_images += 1;
        self.outcome.uncertain.hint_image_bytes += length;
        self.outcome.uncertain.estimated_bytes += u64::from(HINT_BYTES);
    }

    /// Images of the free space map that the base does not have: it logs none, or this run has a redo point
    /// more before this record.
    pub(super) fn map_space(&mut self, ordinal: Ordinal, page: Ordinal, above: Ordinal) {
        if !self.settings.log_hints || !self.settings.full_page_writes {
            return;
        }
        let base_redo = self.base.redo_at(ordinal);
        let has_none = |changed: Ordinal| !self.base.log_hints || changed >= base_redo;
        let is_new = |changed: Ordinal| changed < self.redo && has_none(changed);
        let count = u16::from(is_new(page)) + 2 * u16::from(is_new(above));
        let page_bytes = u16::try_from(self.trace.page_bytes).unwrap_or(u16::MAX);
        let image =
            ImageBytes { stored: page_bytes, compressed: false, certainty: Certainty::Estimated };
        let map = TracedBlock { image_bytes: page_bytes, ..TracedBlock::default() };
        (0..count).for_each(|_| self.hint(ordinal, &map, image));
    }
}
