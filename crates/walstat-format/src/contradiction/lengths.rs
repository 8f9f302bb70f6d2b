//! How many bytes of main data redo of a type reads at least, whatever else the record has: where a structure
//! of fixed length lies there. A record that is longer is well. What redo reads only of a page without an
//! image, or only as a hot standby, is not here.

use crate::payload::{btree, gin, gist, hash, xlog};
use crate::rmgr::{
    BRIN, BTREE, CLOG, COMMIT_TS, DATABASE, GIN, GIST, HASH, HEAP2, MULTIXACT, REPLICATION_ORIGIN,
    SEQUENCE, STORAGE, TABLESPACE, XLOG,
};
use crate::version::{Release, Version};

/// A structure, and the release since which redo reads so many bytes of it: up to the next row of its type.
pub(super) struct Fixed {
    pub rmgr: u8,
    pub info: u8,
    /// `None`: 9.5.
    since: Option<Release>,
    bytes: usize,
}

const fn row(rmgr: u8, info: u8, since: Option<Release>, bytes: usize) -> Fixed {
    Fixed { rmgr, info, since, bytes }
}

const V9_5: Option<Release> = None;
const V9_6: Option<Release> = Some(Release::V9_6);
const V10: Option<Release> = Some(Release::V10);
const V12: Option<Release> = Some(Release::V12);
const V14: Option<Release> = Some(Release::V14);
const V15: Option<Release> = Some(Release::V15);
const V17: Option<Release> = Some(Release::V17);
const V19: Option<Release> = Some(Release::V19);

/// Rows of one type stand together, by release. 0: another structure, or a list.
pub(super) const FIXED: [Fixed; 52] = [
    // Oid, XLogRecPtr, xl_parameter_change, bool, xl_end_of_recovery
    row(XLOG, xlog::NEXTOID, V9_5, 4),
    row(XLOG, xlog::BACKUP_END, V9_5, 8),
    row(XLOG, xlog::PARAMETER_CHANGE, V9_5, 24),
    row(XLOG, xlog::PARAMETER_CHANGE, V12, 28),
    row(XLOG, xlog::FPW_CHANGE, V9_5, 1),
    row(XLOG, xlog::END_OF_RECOVERY, V9_5, 16),
    // xl_smgr_create, xl_smgr_truncate
    row(STORAGE, 0x10, V9_5, 16),
    row(STORAGE, 0x20, V9_5, 16),
    row(STORAGE, 0x20, V9_6, 20),
    // The number of a page, xl_clog_truncate
    row(CLOG, 0x00, V9_5, 4),
    row(CLOG, 0x00, V17, 8),
    row(CLOG, 0x10, V9_5, 4),
    row(CLOG, 0x10, V10, 12),
    row(CLOG, 0x10, V17, 16),
    // xl_dbase_create_rec, later xl_dbase_create_file_copy_rec; xl_dbase_drop_rec, later
    // xl_dbase_create_wal_log_rec; xl_dbase_drop_rec
    row(DATABASE, 0x00, V9_5, 16),
    row(DATABASE, 0x10, V9_5, 8),
    row(DATABASE, 0x20, V15, 8),
    // xl_tblspc_create_rec with a path of no length, xl_tblspc_drop_rec
    row(TABLESPACE, 0x00, V9_5, 5),
    row(TABLESPACE, 0x10, V9_5, 4),
    // The number of a page, xl_multixact_truncate
    row(MULTIXACT, 0x00, V9_5, 4),
    row(MULTIXACT, 0x00, V17, 8),
    row(MULTIXACT, 0x10, V9_5, 4),
    row(MULTIXACT, 0x10, V17, 8),
    row(MULTIXACT, 0x30, V9_5, 20),
    row(MULTIXACT, 0x30, V19, 0),
    // The number of a page, xl_commit_ts_truncate, xl_commit_ts_set
    row(COMMIT_TS, 0x00, V9_5, 4),
    row(COMMIT_TS, 0x00, V17, 8),
    row(COMMIT_TS, 0x10, V9_5, 4),
    row(COMMIT_TS, 0x10, V10, 8),
    row(COMMIT_TS, 0x10, V17, 12),
    row(COMMIT_TS, 0x20, V9_5, 16),
    row(COMMIT_TS, 0x20, V14, 0),
    // xl_replorigin_set, xl_replorigin_drop
    row(REPLICATION_ORIGIN, 0x00, V9_5, 11),
    row(REPLICATION_ORIGIN, 0x10, V9_5, 2),
    // xl_seq_rec, xl_heap_rewrite_mapping
    row(SEQUENCE, 0x00, V9_5, 12),
    row(HEAP2, 0x00, V9_5, 40),
    // xl_btree_newroot, xl_btree_mark_page_halfdead, xl_btree_unlink_page up to btpo_xact, later safexid
    row(BTREE, btree::opcode::NEWROOT, V9_5, 8),
    row(BTREE, btree::opcode::MARK_PAGE_HALFDEAD, V9_5, 20),
    row(BTREE, btree::opcode::UNLINK_PAGE, V9_5, 24),
    row(BTREE, btree::opcode::UNLINK_PAGE_META, V9_5, 24),
    // xl_hash_init_meta_page, xl_hash_init_bitmap_page, xl_hash_split_allocate_page up to new_bucket_flag
    row(HASH, hash::opcode::INIT_META_PAGE, V10, 14),
    row(HASH, hash::opcode::INIT_BITMAP_PAGE, V10, 2),
    row(HASH, hash::opcode::SPLIT_ALLOCATE_PAGE, V10, 8),
    // xl_hash_move_page_contents, xl_hash_squeeze_page, xl_hash_delete
    row(HASH, 0x70, V10, 3),
    row(HASH, 0x80, V10, 12),
    row(HASH, 0x90, V10, 2),
    // ginxlogSplit, ginxlogUpdateMeta, ginxlogInsertListPage, ginxlogDeleteListPages
    row(GIN, gin::opcode::SPLIT, V9_5, 26),
    row(GIN, gin::opcode::UPDATE_META_PAGE, V9_5, 84),
    row(GIN, gin::opcode::INSERT_LISTPAGE, V9_5, 8),
    row(GIN, gin::opcode::DELETE_LISTPAGE, V9_5, 60),
    // gistxlogPageSplit, xl_brin_createidx
    row(GIST, gist::opcode::PAGE_SPLIT, V9_5, 21),
    row(BRIN, 0x00, V9_5, 6),
];

/// How many bytes redo of a type reads at least.
pub(super) fn read_at_least(rmgr: u8, info: u8, version: &Version) -> usize {
    let is_meant = |row: &&Fixed| {
        (row.rmgr, row.info) == (rmgr, info) && row.since.is_none_or(|since| version.since(since))
    };
    FIXED.iter().rev().find(is_meant).map_or(0, |row| row.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    #[test]
    fn each_release_reads_its_own_structure() {
        let of = |release: &str, rmgr, info| {
            let version = VERSIONS.iter().find(|version| version.name == release);
            read_at_least(rmgr, info, version.expect("a release"))
        };
        assert_eq!((of("9.5", STORAGE, 0x20), of("9.6", STORAGE, 0x20)), (16, 20));
        assert_eq!((of("16", CLOG, 0x10), of("18", CLOG, 0x10)), (12, 16));
        assert_eq!((of("14", DATABASE, 0x20), of("15", DATABASE, 0x20)), (0, 8));
        assert_eq!((of("13", COMMIT_TS, 0x20), of("14", COMMIT_TS, 0x20)), (16, 0));
        // Redo does nothing with it.
        assert_eq!(of("15", HEAP2, 0x70), 0);
    }

    #[test]
    fn rows_of_a_type_stand_by_release() {
        for (earlier, later) in FIXED.iter().zip(&FIXED[1..]) {
            let [earlier, later] = [earlier, later].map(|it| ((it.rmgr, it.info), it.since));
            assert!(earlier.0 != later.0 || earlier.1 < later.1);
        }
    }
}
