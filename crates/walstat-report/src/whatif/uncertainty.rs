//! From what of a prediction is not certain, as the sentence that the model carries.

use walstat_whatif::uncertainty::{SECONDS_BETWEEN, UncertaintyKind};

/// One sentence, without a full stop; `None` where the range alone has it.
pub(crate) fn sentence(kind: &UncertaintyKind) -> Option<String> {
    use UncertaintyKind::*;
    Some(match kind {
        UnseenBlocks { bytes: bytes @ 1.. } => format!(
            "{bytes} bytes are images of blocks that were not seen before: they may have been touched \
             before the WAL that is there"
        ),
        NoRecord { bytes: bytes @ 1.. } => {
            format!("{bytes} bytes of the range hold no readable record")
        }
        GuessedLengths { for_want_of_images: true } => {
            "the WAL has no images: how long they would be is not known, and taken for whole pages"
                .to_owned()
        }
        HintImages { expected, possible: possible @ 1.. } => format!(
            "{expected} images for hint bits are expected; {possible} more pages get one if somebody \
             reads them"
        ),
        LostFreezes { pages: pages @ 1.. } => format!(
            "rows of {pages} pages were frozen because their page got an image: without it a later \
             vacuum may have to freeze them, which is in the range only"
        ),
        CrowdedCheckpoints | LostRequests | DoubtfulCauses { .. } | NoClock => {
            return of_checkpoints(kind);
        }
        Crash { pages: pages @ 1.. } => format!(
            "a crash discards hint bits and pruning on {pages} pages, which are not the same pages as in \
             this WAL"
        ),
        BackupImages { bytes: bytes @ 1.. } => format!(
            "{bytes} bytes are images that only base backups ask for: how much others write during one is \
             not the same each time"
        ),
        OldRows { is_told: true } => {
            "how much of old rows is logged depends on the replica identity of their tables, which this \
             WAL does not show: one integer for each deleted row is assumed, as for a small primary key; \
             the range also covers REPLICA IDENTITY FULL, except for values in TOAST"
                .to_owned()
        }
        DroppedSwitches { count: count @ 1.. } => format!(
            "{count} segment switches of this WAL are left out; those that were requested would stay, \
             which the range covers"
        ),
        Sample { compressed, images, error } => format!(
            "{compressed} of {images} images were compressed, and tell how long the others are: \
             {error} bytes more or less, in 19 of 20 cases"
        ),
        CompressedLengths { is_told: true } => {
            "compressed lengths vary by some bytes with the times that rows hold and with the \
             release of the codec's library"
                .to_owned()
        }
        _ => return None,
    })
}

/// The same of when checkpoints begin.
fn of_checkpoints(kind: &UncertaintyKind) -> Option<String> {
    use UncertaintyKind::*;
    Some(match kind {
        CrowdedCheckpoints => {
            format!(
                "checkpoints lie less than {SECONDS_BETWEEN} seconds apart: a server cannot keep up and \
                 skips some, other ones in each run; the range goes down to no checkpoint by volume at \
                 all"
            )
        }
        LostRequests => {
            "a checkpoint that is asked for while another runs may be skipped or late, which a \
             server does not repeat: the range has both"
                .to_owned()
        }
        DoubtfulCauses { count: count @ 1.. } => format!(
            "it is not certain why {count} checkpoints began: those by max_wal_size or \
             checkpoint_timeout would move, requested ones would stay; the range covers both"
        ),
        NoClock => "no commit tells the time, so nothing happens by the clock".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use UncertaintyKind::*;

    #[test]
    fn what_is_only_in_the_range_has_no_sentence() {
        let only_in_the_range = [
            Sequences,
            ConflictXids,
            Lateness,
            UnseenBlocks { bytes: 0 },
            HintImages { expected: 3, possible: 0 },
            GuessedLengths { for_want_of_images: false },
            DoubtfulCauses { count: 0 },
            OldRows { is_told: false },
        ];
        assert_eq!(only_in_the_range.map(|kind| sentence(&kind)), [const { None }; 8]);
    }

    #[test]
    fn a_sentence_has_the_numbers_of_its_kind() {
        let said = |kind| sentence(&kind).expect("a sentence");
        let unseen = said(UnseenBlocks { bytes: 70 });
        assert!(unseen.starts_with("70 bytes are images of blocks"), "{unseen}");
        let hints = said(HintImages { expected: 3, possible: 2 });
        assert!(hints.starts_with("3 images for hint bits are expected; 2 more"), "{hints}");
        let guessed = said(GuessedLengths { for_want_of_images: true });
        assert!(guessed.starts_with("the WAL has no images"), "{guessed}");
        assert!(said(CrowdedCheckpoints).contains("less than 0.3 seconds apart"));
        assert!(said(DoubtfulCauses { count: 4 }).contains("why 4 checkpoints began"));
    }
}
