//! Payloads and images of real WAL of every release: each record's main data and block data are
//! read by the reader of its type, each image becomes a page, and what the payload says of a row
//! is true of the page beside it.

use crate::common::whole::{Block, Whole, records};
use crate::support::fixtures::sample;
use std::collections::BTreeMap;
use walstat_format::data_page::heap_tuple::{HeapTuple, TupleBody, infomask};
use walstat_format::data_page::restore::PageRestorer;
use walstat_format::data_page::{DataPage, ItemState};
use walstat_format::payload::{
    btree, checkpoint, dbase, heap, heap2, multixact, prepare, prune, relmap, seq, standby, xact,
    xlog,
};
use walstat_format::rmgr;
use walstat_format::version::{VERSIONS, Version};

/// Samples with all releases among them.
const SAMPLES: [&str; 14] = [
    "pg9.5-mixed",
    "pg9.6-mixed",
    "pg10-mixed",
    "pg11-mixed",
    "pg12-mixed",
    "pg13-mixed",
    "pg14-mixed",
    "pg15-mixed",
    "pg16-workload",
    "pg17-mixed",
    "pg18-workload",
    "pg19-mixed",
    "consistency",
    "pages16k",
];

fn each_sample(mut check: impl FnMut(&'static Version, Vec<Whole>)) {
    for name in SAMPLES {
        let sample = sample(name);
        let version = VERSIONS.iter().find(|version| version.name == sample.release);
        let version = version.expect("a release that is read");
        let records = records(&sample.wal, version, 1);
        assert!(records.len() > 500, "{name}: {} records", records.len());
        check(version, records);
    }
}

/// What a record is, for messages.
fn title(record: &Whole, version: &Version) -> String {
    let kind = rmgr::RecordType::of(record.header.rmgr, record.header.info, version);
    let (rmgr, name) = (rmgr::name(record.header.rmgr), kind.name(version));
    format!("{} {rmgr}/{name} at {}", version.name, record.lsn)
}

#[test]
fn every_payload_is_read() {
    let mut read: BTreeMap<String, u64> = BTreeMap::new();
    each_sample(|version, records| {
        for record in &records {
            let Some(parsed) = parse(record, version) else { continue };
            let title = title(record, version);
            assert!(parsed, "{title}: {:?}", record.main_data);
            let name = title.split([' ']).nth(1).unwrap_or_default().to_owned();
            *read.entry(name).or_default() += 1;
        }
    });
    // A reader that is never asked proves nothing.
    for name in [
        "Transaction/COMMIT",
        "Transaction/ABORT",
        "Transaction/PREPARE",
        "Transaction/COMMIT_PREPARED",
        "Database/DROP",
        "MultiXact/CREATE_ID",
        "RelMap/UPDATE",
        "Standby/RUNNING_XACTS",
        "Heap/INSERT",
        "Heap/HOT_UPDATE",
        "Heap/INPLACE",
        "Heap2/MULTI_INSERT",
        "Heap2/CLEAN",
        "Heap2/PRUNE",
        "Heap2/PRUNE_VACUUM_SCAN",
        "Heap2/FREEZE_PAGE",
        "Btree/SPLIT_L",
        "Btree/DEDUP",
        "Btree/DELETE",
        "Btree/VACUUM",
        "Sequence/LOG",
        "XLOG/PARAMETER_CHANGE",
        "XLOG/CHECKPOINT_ONLINE",
    ] {
        assert!(read.get(name).is_some_and(|count| *count > 0), "{name}: {read:?}");
    }
}

/// Whether the record's reader can read it; `None` for a type that has none.
fn parse(record: &Whole, version: &Version) -> Option<bool> {
    let (info, main) = (record.header.info, record.main_data.as_slice());
    let data = record.blocks.first().map(|block| block.data.as_slice());
    let data = data.filter(|bytes| !bytes.is_empty());
    Some(match record.header.rmgr {
        rmgr::XLOG => return xlog_record(info, main, version),
        rmgr::TRANSACTION => return transaction(info, main, version),
        rmgr::DATABASE => dbase::DatabaseChange::parse(info, main, version).is_some(),
        rmgr::MULTIXACT if info & 0xF0 == multixact::CREATE_ID => {
            multixact::Create::parse(main, version).is_some_and(|multi| multi.members.len() > 1)
        }
        rmgr::RELMAP => relmap::Update::parse(main).is_some_and(|u| !u.map.mappings.is_empty()),
        rmgr::STANDBY => match info & 0xF0 {
            standby::RUNNING_XACTS => standby::RunningXacts::parse(main).is_some(),
            _ => return None,
        },
        rmgr::HEAP => return heap_record(info, main, data, version),
        rmgr::HEAP2 => return heap2_record(info, main, data, version),
        rmgr::BTREE => return btree_record(info, main, data, version),
        rmgr::SEQUENCE => seq::Sequence::parse(main).is_some(),
        _ => return None,
    })
}

fn xlog_record(info: u8, main: &[u8], version: &Version) -> Option<bool> {
    Some(match info & 0xF0 {
        xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN => {
            main.len() == version.checkpoint.bytes
                && checkpoint::Checkpoint::parse(main, version.checkpoint).is_some_and(|point| {
                    point.timeline == 1
                        && point.full_page_writes
                        && point.oldest_multixact == 1
                        && point.next_oid > 10_000
                        && point.next_xid >> 32 == 0
                        && u64::from(point.oldest_xid) < point.next_xid
                })
        }
        xlog::PARAMETER_CHANGE => xlog::ParameterChange::parse(main, version).is_some(),
        xlog::END_OF_RECOVERY => xlog::EndOfRecovery::parse(main).is_some(),
        xlog::RESTORE_POINT => xlog::RestorePoint::parse(main).is_some(),
        xlog::OVERWRITE_CONTRECORD => xlog::OverwriteContrecord::parse(main).is_some(),
        xlog::BACKUP_END => xlog::backup_start(main).is_some(),
        xlog::FPW_CHANGE => xlog::full_page_writes(main).is_some(),
        xlog::NEXTOID => xlog::next_oid(main).is_some_and(|oid| oid > 10_000),
        _ => return None,
    })
}

fn transaction(info: u8, main: &[u8], version: &Version) -> Option<bool> {
    Some(match info & xact::OPCODE_MASK {
        xact::PREPARE => {
            prepare::Prepare::parse(main, version).is_some_and(|prepare| prepare.xid > 2)
        }
        xact::ASSIGNMENT => xact::Assignment::parse(main).is_some_and(|a| a.top > 2),
        0x60 => return None,
        opcode => xact::End::parse(info, main, version).is_some_and(|end| {
            let prepared = [xact::COMMIT_PREPARED, xact::ABORT_PREPARED].contains(&opcode);
            let files = end.dropped.iter().all(|file| file.relfilenode > 1000);
            // Since 2026, and before 2100.
            end.prepared_xid.is_some() == prepared
                && files
                && end.time.0 / 1_000_000 < 4_102_444_800
        }),
    })
}

fn heap_record(info: u8, main: &[u8], data: Option<&[u8]>, version: &Version) -> Option<bool> {
    let row_is_sound = |data: Option<&[u8]>| data.is_none_or(|d| TupleBody::of_record(d).is_some());
    Some(match info & heap::OPCODE_MASK {
        heap::INSERT => heap::Insert::parse(main).is_some() && row_is_sound(data),
        heap::DELETE => heap::Delete::parse(main)
            .is_some_and(|delete| delete.old.is_empty() || row_is_sound(Some(delete.old))),
        heap::UPDATE | heap::HOT_UPDATE => heap::Update::parse(main).is_some_and(|update| {
            let old = update.old.is_empty() || row_is_sound(Some(update.old));
            old && data.is_none_or(|data| heap::NewTuple::parse(&update, data).is_some())
        }),
        heap::TRUNCATE => return None,
        heap::CONFIRM => main.len() == 2,
        heap::LOCK => heap::Lock::parse(main).is_some(),
        _ => heap::Inplace::parse(main, version).is_some_and(|inplace| inplace.offset > 0),
    })
}

fn heap2_record(info: u8, main: &[u8], data: Option<&[u8]>, version: &Version) -> Option<bool> {
    Some(match info & heap::OPCODE_MASK {
        0x00 | heap2::VISIBLE | heap2::NEW_CID => return None,
        heap2::MULTI_INSERT => heap2::MultiInsert::parse(info, main).is_some_and(|insert| {
            let rows = data.map_or(insert.offsets().count(), |data| insert.tuples(data).count());
            rows == usize::from(insert.count) && rows > 0
        }),
        heap2::LOCK_UPDATED => heap::Lock::parse(main).is_some(),
        // CLEANUP_INFO is about no page.
        0x30 if VERSIONS[..6].iter().any(|old| old.name == version.name) => return None,
        _ => prune::Prune::parse(info, main, data, version).is_some(),
    })
}

fn btree_record(info: u8, main: &[u8], data: Option<&[u8]>, version: &Version) -> Option<bool> {
    use btree::{Insertion, opcode};
    Some(match (Insertion::of(info, version), info & 0xF0) {
        (Some(Insertion::Split { .. }), _) => {
            btree::Split::parse(main, version).is_some_and(|split| split.level < 10)
        }
        (Some(_), _) => btree::Insert::parse(main).is_some_and(|insert| insert.offset > 0),
        (_, opcode::SPLIT_R_OR_DEDUP) => btree::Dedup::parse(main, data).is_some(),
        (_, opcode::DELETE) => btree::Removal::delete(main, data, version).is_some(),
        (_, opcode::VACUUM) => btree::Removal::vacuum(main, data, version).is_some(),
        (_, opcode::MARK_PAGE_HALFDEAD) => btree::MarkHalfDead::parse(main).is_some(),
        _ => return None,
    })
}

#[test]
fn every_image_becomes_a_page() {
    each_sample(|version, records| {
        let mut restorer = PageRestorer::default();
        let mut page_bytes = None;
        for record in &records {
            for Block { reference, image, .. } in &record.blocks {
                let Some(header) = &reference.image else { continue };
                let title = || format!("{} block {}", title(record, version), reference.id);
                let page = restorer.page(header, image, version.image_flags);
                let page = page.unwrap_or_else(|| panic!("{}", title()));
                assert_eq!(*page_bytes.get_or_insert(page.len()), page.len(), "{}", title());
                let sound = DataPage::new(page);
                assert!(sound.is_some() || DataPage::is_zero(page), "{}", title());
                // The page was last changed before this record.
                assert!(sound.is_none_or(|page| page.header().lsn <= record.lsn), "{}", title());
            }
        }
    });
}

/// The rows that records name are there in the images beside them, with what the records say.
#[test]
fn rows_are_where_the_payload_says() {
    let mut checked = 0;
    each_sample(|version, records| {
        let mut restorer = PageRestorer::default();
        for record in records.iter().filter(|record| record.header.rmgr == rmgr::HEAP) {
            let Some(block) = record.blocks.first().filter(|block| !block.image.is_empty()) else {
                continue;
            };
            let header = block.reference.image.as_ref().expect("an image");
            let page = restorer.page(header, &block.image, version.image_flags).expect("a page");
            let page = DataPage::new(page).expect("a sound page");
            assert!(row_is_there(record, &page), "{}", title(record, version));
            checked += 1;
        }
    });
    assert!(checked > 1000, "{checked}");
}

fn row_is_there(record: &Whole, page: &DataPage<'_>) -> bool {
    let row = |offset: u16| page.item_bytes(offset).and_then(HeapTuple::parse);
    let (main, xid) = (&record.main_data, record.header.xid);
    let inserted = |offset| row(offset).is_some_and(|row| row.xmin == xid);
    match record.header.info & heap::OPCODE_MASK {
        heap::INSERT => {
            let offset = heap::Insert::parse(main).expect("an insertion").offset;
            let in_record = TupleBody::of_record(&record.blocks[0].data);
            let in_page = row(offset).map(|row| row.body.data());
            inserted(offset) && in_record.is_none_or(|body| Some(body.data()) == in_page)
        }
        heap::DELETE => {
            let delete = heap::Delete::parse(main).expect("a deletion");
            row(delete.offset).is_some_and(|row| row.xmax == delete.xmax)
        }
        heap::UPDATE | heap::HOT_UPDATE => {
            let update = heap::Update::parse(main).expect("an update");
            let same_page = record.blocks.len() == 1;
            let old = row(update.old_offset).filter(|_| same_page);
            inserted(update.new_offset) && old.is_none_or(|old| old.xmax == update.old_xmax)
        }
        heap::LOCK => {
            let lock = heap::Lock::parse(main).expect("a lock");
            row(lock.offset).is_some_and(|row| {
                let is_multi = row.body.infomask & infomask::XMAX_IS_MULTI != 0;
                row.xmax == lock.xmax
                    && is_multi == (lock.infobits & heap::infobits::XMAX_IS_MULTI != 0)
            })
        }
        heap::INPLACE => {
            let offset = u16::from_le_bytes([main[0], main[1]]);
            page.item(offset).is_some_and(|item| item.state == ItemState::Normal)
        }
        _ => true,
    }
}
