//! Rows that vacuum freezes because their page got an image anyway, as it is pruned or as hint bits are
//! set just before (`heap_page_prune_and_freeze`, `lazy_scan_prune`; 16 and later): where the image goes
//! away, so does the freezing.

use super::blocks::{BlockNumber, ForkNumber};
use super::imaged_page::{ImagedPage, Look};
use super::record_effect::is_hint;
use super::redo;
use super::trace::RecordEffect;
use super::whole_record::WholeRecord;
use hashbrown::HashMap;
use walstat_format::block::BlockRef;

/// What brought the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Cause {
    #[default]
    Row,
    Pruning,
    Hint,
}

/// What a record has to do with freezing for an image's sake.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Freeze {
    /// The record is there only because the page got an image just before.
    pub(crate) is_for_image: bool,
    /// What it means beyond that.
    pub(crate) effect: Option<RecordEffect>,
}

/// A record's first block: in which table, and which page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstBlock {
    /// The table.
    pub(crate) fork: ForkNumber,
    /// The page.
    pub(crate) number: BlockNumber,
}

/// Follows which page was looked at last, and where vacuum is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Freezing {
    imaged: ImagedPage,
    /// What brought that page's image.
    cause: Cause,
    /// By table, where vacuum is.
    passes: HashMap<ForkNumber, Pass>,
}

/// Vacuum on its way through a table.
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    block: u32,
    /// Whether it froze rows of the last page that had no image: then vacuum freezes for other reasons than
    /// the image.
    freezes: bool,
}

impl Freezing {
    /// Takes a record's first block.
    pub(crate) fn of(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        first: FirstBlock,
    ) -> Freeze {
        let habits = &record.version.pages;
        if !habits.freezes_after_image && !habits.freezes_with_pruning {
            return Freeze::default();
        }
        let before = self.imaged.is(first.number).then_some(self.cause);
        if is_hint(record) {
            if block.fork == 0 {
                self.look(Cause::Hint, block, first, false);
            }
            return Freeze::default();
        }
        if !redo::looks_at(record, block) {
            return Freeze::default();
        }
        let prunes = redo::prunes(record);
        let is_pruning = habits.freezes_after_image && prunes == Some(true);
        let prunes_after_hint = is_pruning && block.image.is_none() && before == Some(Cause::Hint);
        let cause = if is_pruning { Cause::Pruning } else { Cause::Row };
        self.look(cause, block, first, prunes_after_hint);
        if habits.freezes_with_pruning {
            let effect = self.beside(record, block, first.fork, before);
            return Freeze { is_for_image: false, effect };
        }
        let is_for_image =
            prunes == Some(false) && matches!(before, Some(Cause::Pruning | Cause::Hint));
        let effect = prunes_after_hint.then_some(RecordEffect::PrunesAfterHint);
        Freeze { is_for_image, effect }
    }

    fn look(&mut self, cause: Cause, block: &BlockRef, first: FirstBlock, prunes_after_hint: bool) {
        let has_image = block.image.is_some();
        self.imaged.look(Look { block: first.number, has_image, prunes_after_hint });
        if has_image {
            self.cause = cause;
        }
    }

    /// From 17 on one record prunes and freezes.
    fn beside(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        fork: ForkNumber,
        before: Option<Cause>,
    ) -> Option<RecordEffect> {
        if !redo::is_vacuum_scan(record) {
            return None;
        }
        let pass = self.passes.entry(fork).or_default();
        if block.block <= pass.block {
            *pass = Pass::default();
        }
        pass.block = block.block;
        if block.image.is_some() {
            return None;
        }
        let unfrozen = redo::unfrozen(record, block);
        if before == Some(Cause::Hint) {
            return unfrozen
                .filter(|_| !pass.freezes)
                .map(|unfrozen| RecordEffect::FreezesForHint { unfrozen });
        }
        pass.freezes = unfrozen.is_some();
        None
    }
}

#[cfg(test)]
mod tests;
