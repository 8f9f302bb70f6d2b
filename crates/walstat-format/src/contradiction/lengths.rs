//! How many bytes of main data redo of a type reads at least, whatever else the record has: where a structure
//! of fixed length lies there. A record that is longer is well. What redo reads only of a page without an
//! image, or only as a hot standby, is not here.

use super::by_type::{Row, Table};
use crate::payload::{brin, btree, gin, gist, hash, heap, heap2, spgist, xact, xlog};
use crate::rmgr::{
    BRIN, BTREE, CLOG, COMMIT_TS, DATABASE, GIN, GIST, HASH, HEAP, HEAP2, MULTIXACT,
    REPLICATION_ORIGIN, SEQUENCE, SPGIST, STORAGE, TABLESPACE, TRANSACTION, XLOG,
};
use crate::version::Release;

const fn row(rmgr: u8, info: u8, since: Option<Release>, bytes: u32) -> Row<u32> {
    Row { rmgr, info, since, what: bytes }
}

const V9_5: Option<Release> = None;
const V9_6: Option<Release> = Some(Release::V9_6);
const V10: Option<Release> = Some(Release::V10);
const V12: Option<Release> = Some(Release::V12);
const V14: Option<Release> = Some(Release::V14);
const V15: Option<Release> = Some(Release::V15);
const V17: Option<Release> = Some(Release::V17);
const V18: Option<Release> = Some(Release::V18);
const V19: Option<Release> = Some(Release::V19);

/// How many bytes redo of each type reads at least. 0: another structure, or a list.
pub(super) static LENGTHS: Table<u32, 90> = Table::new([
    // Oid, XLogRecPtr, xl_parameter_change, bool, xl_end_of_recovery
    row(XLOG, xlog::NEXTOID, V9_5, 4),
    row(XLOG, xlog::BACKUP_END, V9_5, 8),
    row(XLOG, xlog::PARAMETER_CHANGE, V9_5, 24),
    row(XLOG, xlog::PARAMETER_CHANGE, V12, 28),
    row(XLOG, xlog::FPW_CHANGE, V9_5, 1),
    row(XLOG, xlog::END_OF_RECOVERY, V9_5, 16),
    // TimestampTz
    row(TRANSACTION, xact::COMMIT, V9_5, 8),
    row(TRANSACTION, xact::ABORT, V9_5, 8),
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
    // xl_heap_clean, later xl_heap_prune; xl_heap_visible, xl_heap_lock_updated
    row(HEAP2, heap2::PRUNES[0], V9_5, 8),
    row(HEAP2, heap2::PRUNES[0], V17, 2),
    row(HEAP2, heap2::VISIBLE, V9_5, 4),
    row(HEAP2, heap2::VISIBLE, V9_6, 5),
    row(HEAP2, heap2::LOCK_UPDATED, V9_5, 7),
    row(HEAP2, heap2::LOCK_UPDATED, V9_6, 8),
    // xl_heap_insert, xl_heap_delete, xl_heap_update, xl_heap_confirm, xl_heap_lock, xl_heap_inplace
    row(HEAP, heap::INSERT, V9_5, 3),
    row(HEAP, heap::DELETE, V9_5, 8),
    row(HEAP, heap::UPDATE, V9_5, 14),
    row(HEAP, heap::HOT_UPDATE, V9_5, 14),
    row(HEAP, heap::CONFIRM, V9_5, 2),
    row(HEAP, heap::LOCK, V9_5, 7),
    row(HEAP, heap::LOCK, V9_6, 8),
    row(HEAP, heap::INPLACE, V9_5, 2),
    row(HEAP, heap::INPLACE, V18, 20),
    // xl_btree_newroot, xl_btree_mark_page_halfdead, xl_btree_unlink_page up to btpo_xact, later safexid
    row(BTREE, btree::opcode::NEWROOT, V9_5, 8),
    row(BTREE, btree::opcode::MARK_PAGE_HALFDEAD, V9_5, 20),
    row(BTREE, btree::opcode::UNLINK_PAGE, V9_5, 24),
    row(BTREE, btree::opcode::UNLINK_PAGE_META, V9_5, 24),
    // xl_hash_init_meta_page, xl_hash_init_bitmap_page, xl_hash_split_allocate_page up to new_bucket_flag
    row(HASH, hash::opcode::INIT_META_PAGE, V10, 14),
    row(HASH, hash::opcode::INIT_BITMAP_PAGE, V10, 2),
    row(HASH, hash::opcode::SPLIT_ALLOCATE_PAGE, V10, 9),
    // xl_hash_insert, xl_hash_add_ovfl_page, xl_hash_split_complete, xl_hash_move_page_contents,
    // xl_hash_squeeze_page, xl_hash_delete, xl_hash_update_meta_page
    row(HASH, hash::opcode::INSERT, V10, 2),
    row(HASH, hash::opcode::ADD_OVFL_PAGE, V10, 3),
    row(HASH, hash::opcode::SPLIT_COMPLETE, V10, 4),
    row(HASH, hash::opcode::MOVE_PAGE_CONTENTS, V10, 3),
    row(HASH, hash::opcode::SQUEEZE_PAGE, V10, 12),
    row(HASH, hash::opcode::DELETE, V10, 2),
    row(HASH, hash::opcode::UPDATE_META_PAGE, V10, 8),
    // ginxlogSplit, ginxlogUpdateMeta, ginxlogInsertListPage, ginxlogDeleteListPages
    row(GIN, gin::opcode::SPLIT, V9_5, 26),
    row(GIN, gin::opcode::UPDATE_META_PAGE, V9_5, 84),
    row(GIN, gin::opcode::INSERT_LISTPAGE, V9_5, 8),
    row(GIN, gin::opcode::DELETE_LISTPAGE, V9_5, 60),
    // ginxlogDeletePage, without and with the newest xid that may see the page
    row(GIN, gin::opcode::DELETE_PAGE, V9_5, 8),
    row(GIN, gin::opcode::DELETE_PAGE, V12, 12),
    // gistxlogPageUpdate, gistxlogPageSplit, gistxlogPageDelete
    row(GIST, gist::opcode::PAGE_UPDATE, V9_5, 4),
    row(GIST, gist::opcode::PAGE_SPLIT, V9_5, 21),
    row(GIST, gist::opcode::PAGE_DELETE, V12, 10),
    // spgxlogAddLeaf and the header of an entry, and so on
    row(SPGIST, spgist::opcode::ADD_LEAF, V9_5, 22),
    row(SPGIST, spgist::opcode::MOVE_LEAFS, V9_5, 20),
    row(SPGIST, spgist::opcode::ADD_NODE, V9_5, 28),
    row(SPGIST, spgist::opcode::SPLIT_TUPLE, V9_5, 22),
    row(SPGIST, spgist::opcode::PICKSPLIT, V9_5, 36),
    row(SPGIST, spgist::opcode::VACUUM_LEAF, V9_5, 16),
    row(SPGIST, spgist::opcode::VACUUM_ROOT, V9_5, 12),
    row(SPGIST, spgist::opcode::VACUUM_REDIRECT, V9_5, 4),
    // xl_brin_createidx, xl_brin_insert, xl_brin_update, xl_brin_samepage_update, xl_brin_revmap_extend,
    // xl_brin_desummarize
    row(BRIN, brin::opcode::CREATE_INDEX, V9_5, 6),
    row(BRIN, brin::opcode::INSERT, V9_5, 10),
    row(BRIN, brin::opcode::UPDATE, V9_5, 14),
    row(BRIN, brin::opcode::SAMEPAGE_UPDATE, V9_5, 2),
    row(BRIN, brin::opcode::REVMAP_EXTEND, V9_5, 4),
    row(BRIN, brin::opcode::DESUMMARIZE, V10, 10),
]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    #[test]
    fn each_release_reads_its_own_structure() {
        let of = |release: &str, rmgr, info| {
            let version = VERSIONS.iter().find(|version| version.name == release);
            LENGTHS.find(rmgr, info, version.expect("a release")).copied().unwrap_or_default()
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
        assert!(LENGTHS.is_sorted());
    }
}
