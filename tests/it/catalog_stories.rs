//! Stories of catalogs, told in records: what the names are at their end.

mod moments;
mod story;

use story::{Class, DATABASE, Story, class_file, file};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::version::VERSIONS;
use walstat_names::catalog::catalog_changes::CatalogChanges;
use walstat_names::catalog::store::Store;
use walstat_names::catalog::xid_status::XidStatus;

const ORDERS: Class = Class { oid: 16384, name: "orders", file: 16384, ..Class::TABLE };

#[test]
fn a_relation_is_named_in_every_release() {
    for version in &VERSIONS {
        let mut story = Story::of(version);
        story.insert(700, 0, 1, &ORDERS).commit(700);
        let names = story.names();
        let found = names.relation(file(16384)).expect(version.name);
        assert_eq!((&*found.name, found.oid, found.is_gone), ("orders", 16384, false));
        assert_eq!((found.schema.as_deref(), found.table), (Some("public"), Some(16384)));
    }
}

#[test]
fn a_relation_that_never_came_to_be_is_gone() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).insert(
        701,
        0,
        2,
        &Class { oid: 16390, file: 16390, ..ORDERS },
    );
    story.abort(700);
    let names = story.names();
    assert!(names.relation(file(16384)).is_none_or(|found| found.is_gone));
    assert!(names.relation(file(16390)).is_none_or(|found| found.is_gone));
    assert!(names.relation(file(99999)).is_none());
}

#[test]
fn a_new_name_counts_when_its_transaction_commits() {
    let renamed = Class { name: "orders_of_2026", ..ORDERS };
    for (commits, name) in [(true, "orders_of_2026"), (false, "orders")] {
        let mut story = Story::new();
        story.insert(700, 0, 1, &ORDERS).commit(700);
        story.update(701, 0, 1, 2, &ORDERS, &renamed);
        if commits {
            story.commit(701);
        }
        assert_eq!(story.name_of(16384).as_deref(), Some(name));
    }
}

#[test]
fn subtransactions_and_prepared_transactions_commit_by_their_own_xids() {
    let mut story = Story::new();
    let other = Class { oid: 16390, name: "other", file: 16390, ..ORDERS };
    story.insert(701, 0, 1, &ORDERS).insert(710, 0, 2, &other);
    story.commit_with(700, &[701]);
    story.commit_prepared(710);
    let names = story.names();
    assert!(!names.relation(file(16384)).expect("orders").is_gone);
    assert!(!names.relation(file(16390)).expect("other").is_gone);
}

#[test]
fn a_dropped_relation_keeps_its_last_name() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.delete(701, 0, 1).commit(701);
    story.prune(0, &[1]);
    // Its place is used again.
    story.insert(702, 0, 1, &Class { oid: 16400, name: "next", file: 16400, ..ORDERS }).commit(702);
    let names = story.names();
    let gone = names.relation(file(16384)).expect("orders");
    assert_eq!((&*gone.name, gone.is_gone), ("orders", true));
    assert_eq!(names.relation(file(16400)).map(|found| &*found.name), Some("next"));
}

#[test]
fn a_rewritten_relation_owns_all_its_files() {
    for version in &VERSIONS {
        let mut story = Story::of(version);
        let rewrite =
            Class { oid: 16390, name: "pg_temp_16384", file: 16390, rewrite: 16384, ..ORDERS };
        let swapped = Class { file: 16390, ..ORDERS };
        story.insert(700, 0, 1, &ORDERS).commit(700);
        story.insert(701, 0, 2, &rewrite);
        // While it is written, the new file is the relation's already.
        let names = story.names();
        assert_eq!(names.relation(file(16390)).map(|found| found.oid), Some(16384));
        story.update(701, 0, 1, 3, &ORDERS, &swapped);
        story.update(701, 0, 2, 4, &rewrite, &Class { file: 16384, ..rewrite });
        story.delete(701, 0, 4).commit(701);
        let names = story.names();
        for relfilenode in [16384, 16390] {
            let found = names.relation(file(relfilenode)).expect("a name");
            assert_eq!((found.oid, &*found.name, found.is_gone), (16384, "orders", false));
        }
        let writers = [16384, 16390].map(|relfilenode| names.rewritten_by(file(relfilenode)));
        assert_eq!(writers, [None, Some(701)], "{}", version.name);
    }
}

/// Three rewrites of one table were told as two and a load: each changes the relation's row before its own
/// file stands there, and pages were pruned.
#[test]
fn each_of_several_rewrites_of_a_relation_is_one() {
    for version in &VERSIONS {
        let mut story = Story::of(version);
        story.insert(700, 0, 1, &ORDERS).commit(700);
        let (mut now, mut place) = (ORDERS, 1);
        for (xid, file) in [(701, 16390), (702, 16395), (703, 16399)] {
            // As ADD COLUMN does: how many columns there are is in pg_class.
            story.update(xid, 0, place, place + 1, &now, &now);
            let rewrite =
                Class { oid: file, name: "pg_temp_16384", file, rewrite: 16384, ..ORDERS };
            let swapped = Class { file, ..ORDERS };
            story.insert(xid, 1, place, &rewrite);
            story.update(xid, 0, place + 1, place + 2, &now, &swapped);
            story.update(xid, 1, place, place + 1, &rewrite, &Class { file: now.file, ..rewrite });
            story.delete(xid, 1, place + 1).commit(xid);
            story.prune(0, &[place, place + 1]).prune(1, &[place, place + 1]);
            (now, place) = (swapped, place + 2);
        }
        let names = story.names();
        let writers = [16390, 16395, 16399].map(|number| names.rewritten_by(file(number)));
        assert_eq!(writers, [701, 702, 703].map(Some), "{}", version.name);
    }
}

/// TRUNCATE gives a table a new file, too, and a load may fill that in the same transaction.
#[test]
fn a_truncated_table_is_not_written_anew() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.update(701, 0, 1, 2, &ORDERS, &Class { file: 16390, ..ORDERS }).commit(701);
    let names = story.names();
    assert_eq!(names.relation(file(16390)).map(|found| found.oid), Some(16384));
    assert_eq!(names.rewritten_by(file(16390)), None);
}

#[test]
fn indexes_and_toast_belong_to_their_table() {
    let mut story = Story::new();
    let table = Class { toast: 16387, ..ORDERS };
    let toast =
        Class { oid: 16387, name: "pg_toast_16384", file: 16387, kind: b't', schema: 99, ..ORDERS };
    let toast_index =
        Class { oid: 16389, name: "pg_toast_16384_index", kind: b'i', file: 16389, ..toast };
    let index = Class { oid: 16390, name: "orders_pkey", file: 16390, kind: b'i', ..ORDERS };
    for (offset, class) in [(1, &table), (2, &toast), (3, &toast_index), (4, &index)] {
        story.insert(700, 0, offset, class);
    }
    story.row(700, CatalogTable::Index, 1, &[16389, 16387]);
    story.row(700, CatalogTable::Index, 2, &[16390, 16384]);
    story.commit(700);
    let names = story.names();
    for relfilenode in [16384, 16387, 16389, 16390] {
        let found = names.relation(file(relfilenode)).expect("a name");
        let table = names.table_of(DATABASE, found).expect("a table");
        assert_eq!(&*table.name, "orders", "{relfilenode}");
    }
}

#[test]
fn a_partition_knows_its_parent() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS);
    let partition =
        Class { oid: 16390, name: "orders_1", file: 16390, is_partition: true, ..ORDERS };
    story.insert(700, 0, 2, &partition);
    story.row(700, CatalogTable::Inherits, 1, &[16390, 16384, 1]).commit(700);
    let names = story.names();
    let found = names.relation(file(16390)).expect("a name");
    assert_eq!((found.parent, found.is_partition), (Some(16384), true));
    assert_eq!(names.relation(file(16384)).and_then(|found| found.parent), None);
}

#[test]
fn a_page_that_is_newer_than_a_record_knows_it_already() {
    let renamed = Class { name: "renamed", ..ORDERS };
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.update(701, 0, 1, 2, &ORDERS, &renamed).commit(701);
    let mut store = story.base(&[(2, 701, &renamed)], true);
    story.apply_to(&mut store);
    let names = store.names();
    assert_eq!(names.relation(file(16384)).map(|found| &*found.name), Some("renamed"));
    // The old WAL still knows files that the page has forgotten.
    let mut story = Story::new();
    story.insert(700, 0, 1, &Class { file: 16383, ..ORDERS }).commit(700);
    story.advance(1000);
    let mut store = story.base(&[(2, 701, &renamed)], true);
    story.apply_to(&mut store);
    let names = store.names();
    assert_eq!(names.relation(file(16383)).map(|found| &*found.name), Some("renamed"));
}

#[test]
fn where_versions_may_both_count_there_is_no_name() {
    let (old, new) = (ORDERS, Class { name: "renamed", ..ORDERS });
    // Nothing is known of 701: it updated the row before this WAL begins.
    let rows = [(1, 700, 701, &old), (2, 701, 0, &new)];
    let mut story = Story::new();
    story.image(0, &rows);
    assert_eq!(story.name_of(16384), None);
    let mut story = Story::new();
    story.image(0, &rows).commit(701);
    assert_eq!(story.name_of(16384).as_deref(), Some("renamed"));
    // Where they agree, there is one.
    let mut story = Story::new();
    story.image(0, &[(1, 700, 701, &old), (2, 701, 0, &Class { file: 16390, ..old })]);
    assert_eq!(story.name_of(16384).as_deref(), Some("orders"));
}

#[test]
fn an_old_version_names_nothing_where_its_successor_may_be_in_a_page_not_known() {
    for (is_whole, name) in [(true, Some("orders")), (false, None)] {
        let mut store = Story::new().base(&[], is_whole);
        let dead = Story::new().version((700, 701), &ORDERS);
        store.xid_statuses_mut().note(700, XidStatus::Committed);
        store.xid_statuses_mut().note(701, XidStatus::Committed);
        store.put_page(class_file(), CatalogTable::Class, 1, Default::default(), vec![(1, dead)]);
        let names = store.names();
        assert_eq!(names.relation(file(16384)).map(|found| &*found.name), name);
    }
}

#[test]
fn rewritten_catalogs_are_followed_to_their_new_files() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    // VACUUM FULL pg_class: the new file, the row of the new version, its pages, the map.
    let new = RelFileLocator { relfilenode: 16500, ..class_file() };
    story.create_file(701, new);
    let rewrite = Class { oid: 16500, name: "pg_temp_1259", file: 0, rewrite: 1259, ..ORDERS };
    story.insert(701, 0, 2, &rewrite);
    story.image_in(new, 0, &[(1, 700, 0, &ORDERS)]);
    story.map(&[(1259, 16500)]).commit(701);
    let renamed = Class { name: "renamed", ..ORDERS };
    story.update_in(new, 702, 0, 1, 2, &ORDERS, &renamed).commit(702);
    assert_eq!(story.name_of(16384).as_deref(), Some("renamed"));
    let names = story.names();
    for relfilenode in [1259, 16500] {
        let found = names.relation(file(relfilenode)).expect("a name");
        assert_eq!(&*found.name, "pg_class", "{relfilenode}");
    }
}

#[test]
fn a_copied_database_has_the_relations_of_its_original() {
    let mut story = Story::of(&VERSIONS[6]);
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.copy_database((DATABASE, 1663), (77, 1663));
    let names = story.names();
    let copy = RelFileLocator { database: 77, ..file(16384) };
    assert_eq!(names.relation(copy).map(|found| &*found.name), Some("orders"));
}

#[test]
fn an_update_by_a_member_of_a_multixact_counts_with_that_member() {
    for (commits, name) in [(true, "renamed"), (false, "orders")] {
        let mut story = Story::new();
        story.insert(700, 0, 1, &ORDERS).commit(700);
        story.multixact(50, &[(701, 0), (702, 4)]);
        story.update_by_multixact(702, 50, 1, 2, &Class { name: "renamed", ..ORDERS });
        if commits {
            story.commit(702);
        }
        assert_eq!(story.name_of(16384).as_deref(), Some(name));
    }
}

#[test]
fn locks_do_not_end_a_row_and_neither_does_freezing() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.lock(701, 0, 1).commit(701);
    story.freeze(0, 1);
    assert_eq!(story.name_of(16384).as_deref(), Some("orders"));
}

#[test]
fn a_row_is_overwritten_in_its_place() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.overwrite(0, 1, &Class { toast: 16390, ..ORDERS });
    story.insert(
        702,
        0,
        2,
        &Class { oid: 16390, name: "pg_toast_16384", kind: b't', file: 16390, ..ORDERS },
    );
    story.commit(702);
    let names = story.names();
    assert_eq!(names.relation(file(16390)).and_then(|found| found.table), Some(16384));
}

#[test]
fn two_stretches_teach_what_one_does() {
    let renamed = Class { name: "renamed", ..ORDERS };
    let mut first = Story::new();
    first.insert(700, 0, 1, &ORDERS);
    let mut second = Story::new();
    second.advance(500).commit(700).update(701, 0, 1, 2, &ORDERS, &renamed).commit(701);
    let mut changes = first.changes;
    changes.merge(second.changes);
    let mut store = Store::new(&VERSIONS[7]);
    changes.apply_to(&mut store);
    let names = store.names();
    assert_eq!(names.relation(file(16384)).map(|found| &*found.name), Some("renamed"));
}

#[test]
fn temporary_relations_give_way_to_others_of_the_same_number() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &Class { persistence: b't', oid: 16999, name: "temporary", ..ORDERS });
    story.insert(700, 0, 2, &ORDERS).commit(700);
    assert_eq!(story.name_of(16384).as_deref(), Some("orders"));
}

#[test]
fn relations_without_files_claim_none() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &Class { kind: b'v', name: "a_view", ..ORDERS }).commit(700);
    let names = story.names();
    assert!(names.relation(file(16384)).is_none());
    assert_eq!(names.by_oid(DATABASE, 16384).map(|found| &*found.name), Some("a_view"));
}

#[test]
fn nothing_learnt_is_nothing_named_but_what_is_built_in() {
    let names = Store::new(&VERSIONS[7]).names();
    assert!(names.relation(file(16384)).is_none());
    assert_eq!(names.relation(file(1249)).map(|found| &*found.name), Some("pg_attribute"));
    assert_eq!(names.files().count(), 0);
    assert!(!CatalogChanges::default().may_be_catalog(file(13_000)));
}
