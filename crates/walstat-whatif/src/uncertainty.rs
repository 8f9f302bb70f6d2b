//! What of a simulated run is not certain: of each kind how many bytes fewer or more it may come to. Those of
//! a run come from `Tally::uncertainties`; what the choice of checkpoints leaves open is added where runs are
//! compared (`predict.rs`). Numbers, no words: the report says it in English.

use walstat_format::block::{BLOCK_HEADER_BYTES, PLACE_BYTES};
use walstat_format::data_page::PAGE_HEADER_BYTES;
use walstat_format::data_page::heap_tuple::ROW_BYTES_MIN;
use walstat_format::record_header::RECORD_HEADER_BYTES;

/// A server whose checkpoints by volume are nearer to each other than that takes longer for one: requests
/// are lost one after the other, and it may come to any number of them. (Two to eleven in equal runs 0.15 s
/// apart; always as many at 0.5 s.)
pub const SECONDS_BETWEEN: f64 = 0.3;

/// Something that is not certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncertainty {
    /// What.
    pub kind: UncertaintyKind,
    /// So many bytes fewer may be written.
    pub(crate) low: u64,
    /// So many bytes more may be written.
    pub(crate) high: u64,
}

/// Kinds of uncertainty, in the order in which they are told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UncertaintyKind {
    /// Images of blocks that nothing is known of before the first record.
    UnseenBlocks {
        /// Bytes of them.
        bytes: u64,
    },
    /// Damaged or missing in the base: no record explains it.
    NoRecord {
        /// Bytes of it.
        bytes: u64,
    },
    /// Lengths of images and data that had to be guessed.
    GuessedLengths {
        /// Whether that is for want of any image in the base.
        for_want_of_images: bool,
    },
    /// Images for hint bits that the base does not have.
    HintImages {
        /// Those that are expected.
        expected: u64,
        /// Pages that may have one, too.
        possible: u64,
    },
    /// Pages whose rows were frozen because they got an image that they do not get here.
    LostFreezes {
        /// How many.
        pages: u64,
    },
    /// Rows that may be frozen because their page gets an image that it does not have in the base.
    PossibleFreezes,
    /// Pruning that does not freeze for want of an image may leave the newest xid unsaid.
    ConflictXids,
    /// Block data whose length is the mean of its type's.
    BlockData,
    /// One record of a sequence more or less.
    Sequences,
    /// What a crash takes away of pages that no WAL tells of.
    Crash {
        /// Pages that were changed since the checkpoint before it.
        pages: u64,
    },
    /// Where full_page_writes is off, only a base backup asks for images: of what is written while it runs,
    /// which is not the same each time.
    BackupImages {
        /// Bytes of them.
        bytes: u64,
    },
    /// The background writer logs the running transactions by the clock: some times more or less.
    Snapshots,
    /// Transactions that run side by side take other turns each time.
    SideBySide,
    /// What the clock begins, or somebody beside running work, meets other work each time: checkpoints and
    /// vacuums.
    Clock,
    /// What happens by the clock or by the volume happens some records late.
    Lateness,
    /// Checkpoints are so near to each other that a server may lose many of them.
    CrowdedCheckpoints,
    /// A request for a checkpoint may be lost or late; what that comes to is simulated, too.
    LostRequests,
    /// Checkpoints of the base of which the WAL does not say for certain why they began.
    DoubtfulCauses {
        /// How many.
        count: u64,
    },
    /// Nothing in the base tells the time.
    NoClock,
    /// Old rows that are logged where the replica identity is FULL.
    OldRows {
        /// Whether the other wal_level is logical.
        is_told: bool,
    },
    /// Switches of the base that somebody may have asked for.
    DroppedSwitches {
        /// How many.
        count: u64,
    },
    /// Some images were compressed, and tell how long the others are.
    Sample {
        /// Images that were compressed.
        compressed: u64,
        /// All images.
        images: u64,
        /// How far off the others may be, bytes.
        error: u64,
    },
    /// Compressed images come to other lengths where times in rows and hint bits, which are not logged, are
    /// others.
    CompressedLengths {
        /// Whether a codec was asked for.
        is_told: bool,
    },
}

impl UncertaintyKind {
    /// Whether it comes at a known place in the run, and not somewhere after that or all over it.
    pub(crate) fn is_in_place(&self) -> bool {
        use UncertaintyKind::*;
        matches!(
            self,
            UnseenBlocks { .. }
                | NoRecord { .. }
                | GuessedLengths { .. }
                | PossibleFreezes
                | BlockData
                | OldRows { .. }
                | CompressedLengths { .. }
                | Lateness
        )
    }

    /// Whether it is told whatever its range is.
    fn is_told(&self) -> bool {
        use UncertaintyKind::*;
        matches!(
            self,
            GuessedLengths { for_want_of_images: true }
                | OldRows { is_told: true }
                | CompressedLengths { is_told: true }
        )
    }
}

/// Main data with its header, and a plan of how to freeze (`xl_heap_prune`, `xlhp_freeze_plan`).
const FREEZE_PLAN_BYTES: u64 = 9 + 12;
/// A record that freezes rows in one way, without their numbers, which have 2 bytes each.
const FREEZE_BYTES: u64 =
    (RECORD_HEADER_BYTES + BLOCK_HEADER_BYTES + PLACE_BYTES) as u64 + FREEZE_PLAN_BYTES;
/// A record that marks a page in the visibility map, with its padding.
const VISIBLE_BYTES: u64 = 64;
/// What a page that a crash took back costs more or less, in the mean, in bytes: for some an image, and else
/// a record that prunes it once more (measured: `docs/whatif-mixed.tsv`).
const CRASH_IMAGE_BYTES: u64 = 128;
const CRASH_PRUNE_BYTES: u64 = 32;
/// What each costs more where recovery begins earlier than in the base. It notes in the free space map the
/// room that records before had pruned (`heap_xlog_prune`), which nobody does before a crash: later rows go
/// to these pages, and each gets an image. (With whole images 227 and 251 bytes, with compressed ones 60 and
/// 70, without any 10 and 11: `crash16` and `crash18` in `docs/whatif-mixed.tsv`.)
const LONGER_CRASH_BYTES: u64 = 320;
const LONGER_CRASH_COMPRESSED_BYTES: u64 = 96;
const LONGER_CRASH_PRUNE_BYTES: u64 = 24;
/// One part in so many: what these may cost less.
const LONGER_CRASH_LESS: u64 = 8;
/// One part in so many: how far the bytes of hint-bit images are off. Where such an image does not come, the
/// page gets one when it is pruned instead.
const HINTS_PART: u64 = 8;
/// One part in so many: the most pages, of those that may be read for the first time, that really were in any
/// run on a server (`docs/whatif-runs.tsv`, `docs/whatif-mixed.tsv`).
const POSSIBLE_PART: u64 = 8;
/// The same where they are compressed: a codec is given the page as it is pruned.
const COMPRESSED_HINTS_PART: u64 = 2;
/// The newest xid that pruning takes away, with its padding.
const CONFLICT_XID_BYTES: u64 = 8;
/// One part in so many: how far the bytes of compressed images differ between equal runs, a multiple of what
/// was measured (`docs/whatif.md`).
const COMPRESSED_PART: u64 = 3_000;
/// The same for compressed images that the base does not have: their pages were rolled forward.
const ADDED_PART: u64 = 100;
/// One part in so many: how much less or more is written during a base backup.
const BACKUP_PART: u64 = 4;
/// Data whose length is the mean of the type's others may be so many times longer.
const DATA_TIMES: u64 = 3;

/// What a simulated run counts of what is not certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Bytes whose length is an estimate.
    pub(crate) estimated_bytes: u64,
    /// Images among them.
    pub(crate) estimated_images: u64,
    /// Bytes of images whose length follows from a sample of others.
    pub(crate) sampled_bytes: u64,
    /// How far off these may be, bytes.
    pub(crate) sample_error: u64,
    /// Images for hint bits that the base does not have: estimates.
    pub(crate) hint_images: u64,
    /// Bytes of their records.
    pub(crate) hint_image_bytes: u64,
    /// Pages that were changed before a redo point and not after it: each may be read, which changes
    /// hint bits, and nothing in the base shows it.
    pub(crate) hint_images_possible: u64,
    /// Pages that get an image when they are pruned, other than in the base: rows may be frozen for it.
    pub(crate) freezes_possible: u64,
    /// Pages whose rows were frozen because they got an image, which they do not get here: a later vacuum
    /// that freezes may have to do it.
    pub(crate) freezes_lost: u64,
    /// Records that prune as in the base, and do not freeze for want of an image: the newest xid that
    /// they take away may go unsaid.
    pub(crate) freezes_cut: u64,
    /// Bytes of records of sequences, of which there may be one more or less each.
    pub(crate) open_sequence_bytes: u64,
    /// Pages that were changed since the checkpoint before a crash, where the base had another one.
    pub(crate) pages_of_crash: u64,
    /// The same where the base had a later one.
    pub(crate) pages_of_longer_crash: u64,
    /// Block data whose length is an estimate; bytes.
    pub(crate) estimated_data_bytes: u64,
    /// Bytes of old rows that are logged at the other wal_level where a table's replica identity is FULL,
    /// which nothing in the base shows.
    pub(crate) old_rows_possible: u64,
    /// Bytes of compressed images.
    pub(crate) compressed_bytes: u64,
    /// Bytes of those that the base does not have: their pages were rolled forward.
    pub(crate) added_compressed_bytes: u64,
    /// Bytes of images that only a base backup asks for, beside which others went on to write.
    pub(crate) backup_image_bytes: u64,
    /// Bytes that no record explains: damaged or missing in the base.
    pub(crate) unknown_bytes: u64,
    /// Images of blocks that nothing is known of before the first record, where checkpoints lie
    /// farther apart than in the base; bytes.
    pub(crate) unseen_bytes: u64,
}

/// What has to be known beside the tally to say what is not certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// `BLCKSZ`: an estimated image may be next to nothing or a whole page.
    pub(crate) page_bytes: u64,
    /// Whether the base has no images.
    pub(crate) has_no_images: bool,
    /// Whether images are written.
    pub(crate) writes_images: bool,
    /// Whether logical decoding is asked for, which the base does not have.
    pub(crate) to_logical: bool,
    /// Whether a codec is asked for.
    pub(crate) has_codec: bool,
}

/// The longest record that freezes all rows of a page in one way.
fn freeze_bytes_max(page_bytes: u64) -> u64 {
    FREEZE_BYTES + 2 * (page_bytes.saturating_sub(PAGE_HEADER_BYTES as u64) / ROW_BYTES_MIN as u64)
}

impl Tally {
    /// How much less and how much more comes after crashes, bytes.
    fn crash(&self, of: &Circumstances) -> (u64, u64) {
        let is_compressed = self.compressed_bytes > 0;
        let (of_page, of_more) = match (of.writes_images, is_compressed) {
            (true, false) => (CRASH_IMAGE_BYTES, LONGER_CRASH_BYTES),
            (true, true) => (CRASH_PRUNE_BYTES, LONGER_CRASH_COMPRESSED_BYTES),
            (false, _) => (CRASH_PRUNE_BYTES, LONGER_CRASH_PRUNE_BYTES),
        };
        let other = self.pages_of_crash * of_page;
        let longer = self.pages_of_longer_crash * of_more;
        (other + longer / LONGER_CRASH_LESS, other + longer)
    }

    /// What is not certain of the run, most of it with a range.
    pub(crate) fn uncertainties(&self, of: &Circumstances) -> Vec<Uncertainty> {
        use UncertaintyKind::*;
        let codec =
            self.compressed_bytes / COMPRESSED_PART + self.added_compressed_bytes / ADDED_PART;
        let guessed_images = self.estimated_images * of.page_bytes;
        let hints_part = if self.compressed_bytes > 0 { COMPRESSED_HINTS_PART } else { HINTS_PART };
        let for_want_of_images = of.has_no_images && self.estimated_images > self.hint_images;
        let freeze = freeze_bytes_max(of.page_bytes);
        let lost = self.freezes_lost * (freeze + VISIBLE_BYTES);
        let (crash_less, crash_more) = self.crash(of);
        let backups = self.backup_image_bytes / BACKUP_PART;
        let rows = [
            (UnseenBlocks { bytes: self.unseen_bytes }, self.unseen_bytes, 0),
            (NoRecord { bytes: self.unknown_bytes }, self.unknown_bytes, 0),
            (
                GuessedLengths { for_want_of_images },
                self.estimated_bytes,
                guessed_images.saturating_sub(self.estimated_bytes),
            ),
            (
                HintImages { expected: self.hint_images, possible: self.hint_images_possible },
                self.hint_image_bytes / HINTS_PART,
                self.hint_image_bytes / hints_part
                    + self.hint_images_possible * of.page_bytes / POSSIBLE_PART,
            ),
            (LostFreezes { pages: self.freezes_lost }, 0, lost),
            (PossibleFreezes, 0, self.freezes_possible * freeze),
            (ConflictXids, self.freezes_cut * CONFLICT_XID_BYTES, 0),
            (BlockData, 0, self.estimated_data_bytes * DATA_TIMES),
            (Sequences, self.open_sequence_bytes, self.open_sequence_bytes),
            (
                Crash { pages: self.pages_of_crash + self.pages_of_longer_crash },
                crash_less,
                crash_more,
            ),
            (BackupImages { bytes: self.backup_image_bytes }, backups, backups),
            (OldRows { is_told: of.to_logical }, 0, self.old_rows_possible),
            (
                CompressedLengths { is_told: of.has_codec },
                codec + self.sample_error,
                codec + self.sample_error,
            ),
        ];
        let all = rows.into_iter().map(|(kind, low, high)| Uncertainty { kind, low, high });
        all.filter(|one| one.low > 0 || one.high > 0 || one.kind.is_told()).collect()
    }
}

/// How much less and how much more all of them come to, bytes.
pub(crate) fn sums(uncertainties: &[Uncertainty]) -> (u64, u64) {
    let sum = |side: fn(&Uncertainty) -> u64| uncertainties.iter().map(side).sum();
    (sum(|one| one.low), sum(|one| one.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Circumstances = Circumstances {
        page_bytes: 8192,
        has_no_images: false,
        writes_images: true,
        to_logical: false,
        has_codec: false,
    };

    fn kinds(tally: Tally, of: Circumstances) -> Vec<UncertaintyKind> {
        tally.uncertainties(&of).into_iter().map(|one| one.kind).collect()
    }

    fn range(bytes: u64, uncertainties: &[Uncertainty]) -> (u64, u64) {
        let (low, high) = sums(uncertainties);
        (bytes - low, bytes + high)
    }

    #[test]
    fn what_is_certain_has_no_range_and_is_not_told() {
        assert_eq!(Tally::default().uncertainties(&PAGE), []);
        assert_eq!(range(1000, &[]), (1000, 1000));
    }

    #[test]
    fn an_estimated_image_may_be_nothing_or_a_whole_page() {
        let tally = Tally { estimated_images: 1, estimated_bytes: 2000, ..Tally::default() };
        assert_eq!(range(10_000, &tally.uncertainties(&PAGE)), (8000, 10_000 + 8192 - 2000));
        let guessed = |for_want_of_images| UncertaintyKind::GuessedLengths { for_want_of_images };
        assert_eq!(kinds(tally, PAGE), [guessed(false)]);
        assert_eq!(kinds(tally, Circumstances { has_no_images: true, ..PAGE }), [guessed(true)]);
    }

    #[test]
    fn each_kind_has_its_range() {
        let tally =
            Tally { unseen_bytes: 70, hint_images: 3, hint_images_possible: 2, ..Tally::default() };
        let all = tally.uncertainties(&PAGE);
        assert_eq!(range(1000, &all), (930, 1000 + 2 * 8192 / 8));
        let kinds: Vec<&UncertaintyKind> = all.iter().map(|one| &one.kind).collect();
        let hints = UncertaintyKind::HintImages { expected: 3, possible: 2 };
        assert_eq!(kinds, [&UncertaintyKind::UnseenBlocks { bytes: 70 }, &hints]);
        let small = Tally { freezes_cut: 2, open_sequence_bytes: 104, ..Tally::default() };
        assert_eq!(range(1000, &small.uncertainties(&PAGE)), (1000 - 16 - 104, 1104));
    }

    #[test]
    fn after_a_longer_recovery_more_is_written_rather_than_less() {
        let range = |tally: Tally, of: Circumstances| {
            range(100_000, &Tally { pages_of_longer_crash: 100, ..tally }.uncertainties(&of))
        };
        let images = range(Tally::default(), PAGE);
        assert_eq!(images, (100_000 - 4_000, 132_000));
        let compressed = range(Tally { compressed_bytes: 1, ..Tally::default() }, PAGE);
        assert_eq!(compressed, (100_000 - 1_200, 109_600));
        let none = range(Tally::default(), Circumstances { writes_images: false, ..PAGE });
        assert_eq!(none, (100_000 - 300, 102_400));
        let other = Tally { pages_of_crash: 100, ..Tally::default() }.uncertainties(&PAGE);
        assert_eq!(sums(&other), (12_800, 12_800));
    }

    #[test]
    fn a_quarter_more_or_less_is_written_during_a_backup() {
        let tally = Tally { backup_image_bytes: 4000, ..Tally::default() };
        assert_eq!(range(10_000, &tally.uncertainties(&PAGE)), (9000, 11_000));
        assert_eq!(kinds(tally, PAGE), [UncertaintyKind::BackupImages { bytes: 4000 }]);
    }

    #[test]
    fn what_a_setting_brings_is_told_without_a_range() {
        let asked = Circumstances { to_logical: true, has_codec: true, ..PAGE };
        let told = [
            UncertaintyKind::OldRows { is_told: true },
            UncertaintyKind::CompressedLengths { is_told: true },
        ];
        assert_eq!(kinds(Tally::default(), asked), told);
    }

    #[test]
    fn a_page_has_as_many_rows_as_its_size_allows() {
        let tally = Tally { freezes_possible: 1, ..Tally::default() };
        let most = |page_bytes| {
            let (_, high) = sums(&tally.uncertainties(&Circumstances { page_bytes, ..PAGE }));
            high - FREEZE_BYTES
        };
        // MaxHeapTuplesPerPage of such servers.
        assert_eq!([1 << 10, 8 << 10, 32 << 10].map(most), [2 * 35, 2 * 291, 2 * 1169]);
    }
}
