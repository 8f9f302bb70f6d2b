//! Rows that vacuum freezes because their page got an image anyway, as it is pruned or as hint bits are
//! set just before (`heap_page_prune_and_freeze`, `lazy_scan_prune`; 16 and later): where the image goes
//! away, so does the freezing.

use super::blocks::{BlockNumber, ForkNumber};
use super::marks::is_hint;
use super::redo;
use super::trace::Mark;
use super::whole::Whole;
use crate::wal::block::BlockRef;
use hashbrown::HashMap;

/// What brought the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Row,
    Pruning,
    Hint,
}

/// What a record has to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Freeze {
    /// The record is there only because the page got an image just before.
    pub is_for_image: bool,
    /// What it means beyond that.
    pub mark: Option<Mark>,
}

/// Follows which page was looked at last, as [`super::lane::Lane`] does.
#[derive(Debug, Clone, Default)]
pub struct Freezing {
    /// The last page whose rows were looked at, if it got an image.
    imaged: Option<(BlockNumber, Cause)>,
    /// By table, where vacuum is.
    passes: HashMap<ForkNumber, Pass>,
}

/// Vacuum on its way through a table.
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    block: u32,
    /// Whether it froze rows of the last page that got no image: it does so anyway.
    freezes: bool,
}

impl Freezing {
    /// Takes a record's first block.
    pub fn of(
        &mut self,
        record: &Whole<'_>,
        block: &BlockRef,
        (fork, number): (ForkNumber, BlockNumber),
    ) -> Freeze {
        let habits = &record.version.pages;
        if !habits.freezes_after_image && !habits.freezes_with_pruning {
            return Freeze::default();
        }
        let before = self.imaged.filter(|(imaged, _)| *imaged == number).map(|(_, cause)| cause);
        let image = |cause| block.image.map(|_| (number, cause));
        if is_hint(record) {
            if block.fork == 0 {
                self.imaged = image(Cause::Hint);
            }
            return Freeze::default();
        }
        if !redo::looks_at(record, block) {
            return Freeze::default();
        }
        let prunes = redo::prunes(record);
        let is_pruning = habits.freezes_after_image && prunes == Some(true);
        self.imaged = image(if is_pruning { Cause::Pruning } else { Cause::Row });
        if habits.freezes_with_pruning {
            let mark = self.beside(record, block, (fork, before));
            return Freeze { is_for_image: false, mark };
        }
        let is_for_image =
            prunes == Some(false) && matches!(before, Some(Cause::Pruning | Cause::Hint));
        if is_pruning && block.image.is_none() && before == Some(Cause::Hint) {
            self.imaged = Some((number, Cause::Hint));
            return Freeze { is_for_image, mark: Some(Mark::PrunesAfterHint) };
        }
        Freeze { is_for_image, mark: None }
    }

    /// From 17 on one record prunes and freezes.
    fn beside(
        &mut self,
        record: &Whole<'_>,
        block: &BlockRef,
        (fork, before): (ForkNumber, Option<Cause>),
    ) -> Option<Mark> {
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
            return unfrozen.filter(|_| !pass.freezes).map(|data| Mark::FreezesForHint { data });
        }
        pass.freezes = unfrozen.is_some();
        None
    }
}
