//! Why there is so much WAL: every byte of the counted records by its cause.

use super::amounts::Amounts;
use super::totals::{RecordTable, Totals};
use walstat_format::payload::{heap, heap2, xlog};
use walstat_format::rmgr;
use walstat_format::rmgr::RecordType;

named! {
    /// What made WAL. Each byte of a record has one cause; in the order in which ties are shown.
    pub enum ByteCause {
        CheckpointImages "checkpoint_images" "page images after a checkpoint";
        HintImages "hint_images" "page images for hint bits";
        NewPageImages "new_page_images" "index builds, rewrites, copied pages";
        CheckImages "check_images" "page images for checking only";
        Rows "rows" "row data";
        Indexes "indexes" "index entries";
        Sequences "sequences" "sequences";
        LogicalMessages "logical_messages" "logical messages";
        RowLocks "row_locks" "row locks";
        Vacuum "vacuum" "vacuum, with its images";
        Pruning "pruning" "pruning by statements";
        Commits "commits" "commits";
        Other "other" "other";
    }
}

impl ByteCause {
    /// Whether it has images alone.
    pub fn is_images(self) -> bool {
        use ByteCause::*;
        matches!(self, CheckpointImages | HintImages | NewPageImages | CheckImages)
    }
}

/// Which cause the images of a record type have.
fn image_cause(record: RecordType) -> ByteCause {
    match (record.rmgr, record.info()) {
        (rmgr::XLOG, xlog::FPI_FOR_HINT) => ByteCause::HintImages,
        (rmgr::XLOG, xlog::FPI | xlog::FPI_MULTI) => ByteCause::NewPageImages,
        // Without vacuum the page would not have been touched, so the image is charged to it.
        (rmgr, info) if rmgr::is_of_vacuum(rmgr, info) => ByteCause::Vacuum,
        _ => ByteCause::CheckpointImages,
    }
}

/// Which cause the rest of a record has. Heap2 has besides rows, locks and vacuum what logical
/// decoding needs; a multixact that many lockers share is no row lock of its own.
fn record_cause(record: RecordType) -> ByteCause {
    match (record.rmgr, record.opcode()) {
        (rmgr::HEAP, heap::LOCK) => ByteCause::RowLocks,
        (rmgr::HEAP, _) => ByteCause::Rows,
        (rmgr::HEAP2, heap2::MULTI_INSERT) => ByteCause::Rows,
        (rmgr::HEAP2, heap2::LOCK_UPDATED) => ByteCause::RowLocks,
        (rmgr, _) if rmgr::is_of_vacuum(rmgr, record.info()) => ByteCause::Vacuum,
        (rmgr::HEAP2, opcode) if heap2::PRUNES.contains(&opcode) => ByteCause::Pruning,
        _ if record.is_commit() => ByteCause::Commits,
        (rmgr::SEQUENCE, _) => ByteCause::Sequences,
        (rmgr::LOGICAL_MESSAGE, _) => ByteCause::LogicalMessages,
        (id, _) if rmgr::INDEXES.contains(&id) => ByteCause::Indexes,
        _ => ByteCause::Other,
    }
}

/// Bytes by cause, in the order of [`ByteCause::ALL`]; they add up to all bytes of the records. `pruning`
/// is what vacuum pruned by records that statements write too (see [`super::vacuum`]).
pub fn causes(table: &RecordTable, pruning: &Amounts) -> Vec<(ByteCause, u64)> {
    let mut sums: Vec<(ByteCause, u64)> = ByteCause::ALL.iter().map(|cause| (*cause, 0)).collect();
    let mut add = |cause: ByteCause, bytes: u64| {
        sums.iter_mut().filter(|(of, _)| *of == cause).for_each(|(_, sum)| *sum += bytes);
    };
    for (record, totals) in table.rows() {
        add(ByteCause::CheckImages, totals.fpi_check_bytes);
        add(image_cause(record), applied_bytes(totals));
        add(record_cause(record), totals.record_bytes());
    }
    let mut take = |cause: ByteCause, bytes: u64| {
        let sum = sums.iter_mut().find(|(of, _)| *of == cause).map(|(_, sum)| sum);
        sum.map_or(0, |sum| {
            let taken = bytes.min(*sum);
            *sum -= taken;
            taken
        })
    };
    let moved = take(ByteCause::Pruning, pruning.record_bytes)
        + take(ByteCause::CheckpointImages, pruning.fpi_bytes);
    sums.iter_mut().filter(|(of, _)| *of == ByteCause::Vacuum).for_each(|(_, sum)| *sum += moved);
    sums
}

/// Images that are not for checking only, in bytes.
fn applied_bytes(totals: &Totals) -> u64 {
    totals.fpi_bytes - totals.fpi_check_bytes
}

/// Images among what has the cause [`ByteCause::Vacuum`], in bytes.
pub fn vacuum_fpi_bytes(table: &RecordTable, pruning: &Amounts) -> u64 {
    let of_vacuum = table.rows().filter(|(record, _)| image_cause(*record) == ByteCause::Vacuum);
    pruning.fpi_bytes + of_vacuum.map(|(_, totals)| applied_bytes(totals)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::Totals;

    /// Rows of a table and where their bytes go; 200 of 300 bytes are images, 50 of them to check.
    #[test]
    fn every_byte_has_its_cause() {
        for (rmgr, slot, images, rest) in [
            (rmgr::XLOG, 0xA, ByteCause::HintImages, ByteCause::Other),
            (rmgr::XLOG, 0xB, ByteCause::NewPageImages, ByteCause::Other),
            (rmgr::HEAP, 0x0, ByteCause::CheckpointImages, ByteCause::Rows),
            (rmgr::HEAP, 0xE, ByteCause::CheckpointImages, ByteCause::RowLocks),
            (rmgr::HEAP2, 0x1, ByteCause::CheckpointImages, ByteCause::Pruning),
            (rmgr::HEAP2, 0x2, ByteCause::Vacuum, ByteCause::Vacuum),
            (rmgr::HEAP2, 0x3, ByteCause::Vacuum, ByteCause::Vacuum),
            (rmgr::HEAP2, 0x4, ByteCause::Vacuum, ByteCause::Vacuum),
            (rmgr::BTREE, 0xC, ByteCause::Vacuum, ByteCause::Vacuum),
            (rmgr::BTREE, 0x7, ByteCause::CheckpointImages, ByteCause::Indexes),
            (rmgr::HEAP2, 0xD, ByteCause::CheckpointImages, ByteCause::Rows),
            (rmgr::HEAP2, 0x6, ByteCause::CheckpointImages, ByteCause::RowLocks),
            (rmgr::HEAP2, 0x7, ByteCause::CheckpointImages, ByteCause::Other),
            (rmgr::TRANSACTION, 0x3, ByteCause::CheckpointImages, ByteCause::Commits),
            (rmgr::TRANSACTION, 0x2, ByteCause::CheckpointImages, ByteCause::Other),
            (rmgr::LOGICAL_MESSAGE, 0x0, ByteCause::CheckpointImages, ByteCause::LogicalMessages),
            (17, 0x1, ByteCause::CheckpointImages, ByteCause::Indexes),
            (rmgr::SEQUENCE, 0x0, ByteCause::CheckpointImages, ByteCause::Sequences),
        ] {
            let mut table = RecordTable::default();
            let totals = Totals {
                count: 1,
                total_bytes: 300,
                fpi_bytes: 200,
                fpi_check_bytes: 50,
                ..Totals::default()
            };
            table.add(RecordType { rmgr, slot }, &totals);
            let found: Vec<_> =
                causes(&table, &Amounts::default()).into_iter().filter(|(_, b)| *b > 0).collect();
            let mut want = vec![(images, 150), (ByteCause::CheckImages, 50), (rest, 100)];
            if images == rest {
                want = vec![(ByteCause::CheckImages, 50), (rest, 250)];
            }
            want.sort();
            assert_eq!(found, want, "{rmgr} {slot}");
        }
    }

    /// Of 100 bytes of pruning and 200 of its images vacuum wrote a part.
    #[test]
    fn what_vacuum_pruned_is_vacuums_with_its_images() {
        let mut table = RecordTable::default();
        let totals = Totals { count: 2, total_bytes: 300, fpi_bytes: 200, ..Totals::default() };
        table.add(RecordType { rmgr: rmgr::HEAP2, slot: 1 }, &totals);
        let pruning = Amounts { count: 1, record_bytes: 60, fpi_bytes: 150, fpi_count: 1 };
        let found = causes(&table, &pruning).into_iter().filter(|(_, bytes)| *bytes > 0);
        let want =
            [(ByteCause::CheckpointImages, 50), (ByteCause::Vacuum, 210), (ByteCause::Pruning, 40)];
        assert_eq!(found.collect::<Vec<_>>(), want);
        assert_eq!(vacuum_fpi_bytes(&table, &pruning), 150);
    }
}
