//! What a simulated run comes to.

use crate::wal::lsn::Lsn;
use crate::wal::rmgr::RecordType;
use std::collections::BTreeMap;

/// A record that freezes all rows of a page of the usual size, in one way: 2 bytes each.
const FREEZE_BYTES_MAX: u64 = 24 + 20 + 9 + 12 + 2 * 291;
/// A record that marks a page in the visibility map, with its padding.
const VISIBLE_BYTES: u64 = 64;
/// By that part of their bytes images for hint bits differ from what is expected: one that does not come
/// is followed by one of the page as it is pruned.
const HINTS_PART: u64 = 8;
/// The newest xid that pruning takes away, with its padding.
const CONFLICT_XID_BYTES: u64 = 8;
/// By that part of their bytes compressed images differ between equal runs: a multiple of what was
/// measured (`docs/whatif.md`).
const COMPRESSED_PART: u64 = 3_000;
/// By that part those differ whose pages were rolled forward.
const ADDED_PART: u64 = 100;

/// Data whose length is the mean of the type's others may be so many times longer.
const DATA_TIMES: u64 = 3;

/// Records of one type whose simulated length is not that of the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Records.
    pub records: u64,
    /// Simulated minus base, bytes.
    pub bytes: i64,
    /// Images simulated minus base.
    pub images: i64,
}

/// A redo point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoPoint {
    /// The record before which it lies, in the base.
    pub base: Lsn,
    /// Where it lies in the simulated WAL.
    pub simulated: Lsn,
}

/// A simulated run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// LSN distance from start to end.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Images.
    pub images: u64,
    /// Their bytes as stored.
    pub image_bytes: u64,
    /// Bytes whose length is an estimate.
    pub estimated_bytes: u64,
    /// Images among them.
    pub estimated_images: u64,
    /// Segments that archive_timeout closes.
    pub switches: u64,
    /// Switches of the base that are left out: someone may have asked for them.
    pub switches_dropped: u64,
    /// Bytes of images whose length follows from a sample of others.
    pub sampled_bytes: u64,
    /// How far off these may be, bytes.
    pub sample_error: u64,
    /// Images for hint bits that the base does not have: estimates.
    pub hint_images: u64,
    /// Bytes of their records.
    pub hint_image_bytes: u64,
    /// Pages that were changed before a redo point and not after it: each may be read, which changes
    /// hint bits, and nothing in the base shows it.
    pub hint_images_possible: u64,
    /// Pages that get an image when they are pruned, other than in the base: rows may be frozen for it.
    pub freezes_possible: u64,
    /// Pages whose rows were frozen because they got an image, which they do not get here: a later vacuum
    /// that freezes may have to do it.
    pub freezes_lost: u64,
    /// Records that prune as in the base, and do not freeze for want of an image: the newest xid that
    /// they take away may go unsaid.
    pub freezes_cut: u64,
    /// Bytes of records of sequences, of which there may be one more or less each.
    pub open_sequence_bytes: u64,
    /// Block data whose length is an estimate; bytes.
    pub estimated_data_bytes: u64,
    /// Bytes of old rows that are logged at the other wal_level where a table's replica identity is FULL,
    /// which nothing in the base shows.
    pub old_rows_possible: u64,
    /// Bytes of compressed images.
    pub compressed_bytes: u64,
    /// Bytes of those that the base does not have: their pages were rolled forward.
    pub added_compressed_bytes: u64,
    /// Bytes that no record explains: damaged or missing in the base.
    pub unknown_bytes: u64,
    /// Images of blocks that nothing is known of before the first record, where checkpoints lie
    /// farther apart than in the base; bytes.
    pub unseen_bytes: u64,
    /// Redo points after the start.
    pub redo_points: Vec<RedoPoint>,
    /// Longest way from a redo point to the end of the next checkpoint: what recovery would have
    /// had to replay; bytes.
    pub recovery_bytes: u64,
    /// Where records differ from the base's.
    pub differences: BTreeMap<RecordType, Difference>,
}

impl Outcome {
    /// Bytes that are certain: neither estimated nor unknown.
    pub fn exact_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.estimated() + self.unknown())
    }

    /// Bytes whose length is an estimate, or follows from a sample.
    pub fn estimated(&self) -> u64 {
        self.estimated_bytes + self.sampled_bytes
    }

    /// Bytes that nothing in the base tells of.
    pub fn unknown(&self) -> u64 {
        self.unknown_bytes + self.unseen_bytes
    }

    /// Least and most that it can come to: an estimated image may be next to nothing or a whole
    /// page, and what is not known may not be there at all. Compressed images come to other lengths
    /// where times in rows and hint bits, which are not logged, are others.
    pub fn bounds(&self, page_bytes: u64) -> (u64, u64) {
        let codec =
            self.compressed_bytes / COMPRESSED_PART + self.added_compressed_bytes / ADDED_PART;
        let codec = codec + self.sample_error;
        let unsaid = self.freezes_cut * CONFLICT_XID_BYTES + self.open_sequence_bytes;
        let hints = self.hint_image_bytes / HINTS_PART;
        let low = self.estimated_bytes + self.unknown() + codec + unsaid + hints;
        let images = (self.estimated_images * page_bytes).saturating_sub(self.estimated_bytes)
            + self.hint_images_possible * page_bytes
            + self.freezes_possible * FREEZE_BYTES_MAX
            + self.freezes_lost * (FREEZE_BYTES_MAX + VISIBLE_BYTES)
            + self.estimated_data_bytes * DATA_TIMES
            + self.old_rows_possible
            + self.open_sequence_bytes;
        // A codec is given the page as it is pruned.
        let unpruned = if self.compressed_bytes > 0 { self.hint_image_bytes / 2 } else { hints };
        (self.bytes.saturating_sub(low), self.bytes + images + codec + unpruned)
    }

    /// Notes how a record compares with the base's: lengths with their padding.
    pub(super) fn differ(&mut self, kind: RecordType, bytes: i64, images: i64) {
        if bytes != 0 || images != 0 {
            let row = self.differences.entry(kind).or_default();
            row.records += 1;
            row.bytes += bytes;
            row.images += images;
        }
    }
}
