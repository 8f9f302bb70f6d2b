//! What the catalogs say at a moment, and what transactions have done to them by then.

use super::story::{Class, Story, class_file, file};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::lsn::Lsn;
use walstat_format::version::VERSIONS;
use walstat_names::catalog::history::{Deeds, History};
use walstat_names::catalog::store::Store;

const ORDERS: Class = Class { oid: 16384, name: "orders", file: 16384, ..Class::TABLE };
const RENAMED: Class = Class { name: "orders_of_2026", ..ORDERS };

fn history(story: &Story) -> History {
    story.history(Store::new(story.release()))
}

fn name_at(history: &mut History, to: Lsn, newest_xid: u32) -> Option<String> {
    history.advance(to, Some(newest_xid));
    history.look_back(&[], Some(newest_xid));
    history.owner(file(16384)).map(|class| class.name.to_string())
}

/// Names, and whether each row was made and ended.
fn told(deeds: &Deeds) -> Vec<(&str, bool, bool)> {
    let classes = deeds.classes.iter();
    classes.map(|row| (&*row.row.name, row.inserted.is_some(), row.ended.is_some())).collect()
}

#[test]
fn a_name_is_that_of_the_moment() {
    for version in &VERSIONS {
        let mut story = Story::of(version);
        let before = story.here();
        story.insert(700, 0, 1, &ORDERS).commit(700);
        let made = story.here();
        story.update(701, 0, 1, 2, &ORDERS, &RENAMED);
        let renamed = story.here();
        let mut history = history(&story);
        assert_eq!(name_at(&mut history, before, 699), None, "{}", version.name);
        history.advance(made, Some(700));
        history.ended(&[700], Some(true));
        assert_eq!(name_at(&mut history, made, 700).as_deref(), Some("orders"));
        // It goes on, and nobody else sees what it did.
        assert_eq!(name_at(&mut history, renamed, 702).as_deref(), Some("orders"));
        history.ended(&[701], Some(true));
        assert_eq!(name_at(&mut history, renamed, 702).as_deref(), Some("orders_of_2026"));
        assert_eq!(name_at(&mut history, renamed, 700).as_deref(), Some("orders"), "looking back");
    }
}

/// Its pages have what comes later already.
#[test]
fn a_newer_data_directory_does_not_know_better() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS);
    let made = story.here();
    story.update(701, 0, 1, 2, &ORDERS, &RENAMED);
    let base = story.base(&[(2, 701, &RENAMED)], true);
    let mut history = story.history(base);
    history.advance(made, Some(700));
    history.ended(&[700], Some(true));
    assert_eq!(name_at(&mut history, made, 700).as_deref(), Some("orders"));
    history.advance(story.here(), Some(701));
    let deeds = history.ended(&[701], Some(true));
    assert_eq!(told(&deeds), [("orders", false, true), ("orders_of_2026", true, false)]);
}

#[test]
fn deeds_are_of_the_transactions_that_end_together() {
    let mut story = Story::new();
    let moved = Class { file: 20000, ..ORDERS };
    let other = Class { oid: 16390, name: "other", file: 16390, ..ORDERS };
    story.insert(700, 0, 1, &ORDERS);
    // Savepoints: one is rolled back, one is kept.
    story.delete(702, 0, 1);
    let deleted = story.here();
    story.update(703, 0, 1, 2, &ORDERS, &moved);
    story.insert(701, 0, 3, &other);
    let mut history = history(&story);
    history.advance(deleted, Some(702));
    history.ended(&[700], Some(true));
    assert_eq!(told(&history.ended(&[702], Some(false))), [("orders", false, true)]);
    history.advance(story.here(), Some(703));
    let deeds = history.ended(&[701, 703], Some(true));
    let want = [("orders", false, true), ("orders", true, false), ("other", true, false)];
    assert_eq!(told(&deeds), want);
    let files: Vec<u32> =
        deeds.classes.iter().filter_map(|row| Some(row.row.file?.relfilenode)).collect();
    assert_eq!(files, [16384, 20000, 16390]);
    assert_eq!(history.ended(&[701, 703], Some(true)), Deeds::default(), "each is told once");
}

#[test]
fn a_row_of_which_nothing_is_known_is_counted() {
    let mut story = Story::new();
    story.delete(700, 3, 7);
    let mut history = history(&story);
    history.advance(story.here(), Some(700));
    assert_eq!(history.ended(&[700], Some(true)).unknown, 1);
}

/// A page that comes with its first change shows the row that is deleted.
#[test]
fn an_image_shows_what_was_deleted() {
    let mut story = Story::new();
    story.image_in(class_file(), 0, &[(1, 650, 0, &ORDERS)]);
    story.delete(700, 0, 1);
    let mut history = history(&story);
    history.advance(story.here(), Some(700));
    assert_eq!(told(&history.ended(&[700], Some(true))), [("orders", false, true)]);
    assert_eq!(name_at(&mut history, story.here(), 700), None);
}

#[test]
fn an_index_belongs_to_its_table() {
    let mut story = Story::new();
    story.row(700, CatalogTable::Index, 1, &[16390, 16384]);
    let mut history = history(&story);
    history.advance(story.here(), Some(700));
    assert_eq!(history.table_of_index(super::DATABASE, 16390), Some(16384));
    assert_eq!(history.table_of_index(super::DATABASE, 16384), None);
}

/// VACUUM FULL gave `pg_class` another file before the WAL begins.
#[test]
fn a_catalog_that_was_rewritten_before_is_known_by_its_rows() {
    let moved = file(16500);
    let want = [("orders", false, true), ("orders_of_2026", true, false)];
    let deeds = |history: &mut History, story: &Story| {
        history.advance(story.here(), Some(700));
        history.ended(&[700], Some(true))
    };
    for version in &VERSIONS {
        let mut story = Story::of(version);
        story.image_in(moved, 0, &[(1, 650, 0, &ORDERS)]);
        story.update_in(moved, 700, 0, 1, 2, &ORDERS, &RENAMED);
        let mut history = history(&story);
        assert_eq!(told(&deeds(&mut history, &story)), want, "{}", version.name);
        assert!(history.is_mapped(moved) && !history.is_mapped(file(16384)));
        // An older data directory still has the old name, in the file of then.
        let base = Story::of(version).base(&[(1, 650, &ORDERS)], true);
        let mut history = story.history(base);
        assert_eq!(told(&deeds(&mut history, &story)), want, "{}", version.name);
        assert_eq!(name_at(&mut history, story.here(), 701).as_deref(), Some("orders_of_2026"));
    }
}

/// A table may have the rows of `pg_class`, too.
#[test]
fn a_copy_of_a_catalog_is_not_taken_for_it() {
    let copied = |story: &mut Story| {
        story.image_in(file(16500), 0, &[(1, 650, 0, &ORDERS)]);
        story.update_in(file(16500), 700, 0, 1, 2, &ORDERS, &RENAMED);
    };
    let no_deeds = |mut history: History, story: &Story| {
        history.advance(story.here(), Some(700));
        assert_eq!(history.ended(&[700], Some(true)), Deeds::default());
        assert!(!history.is_mapped(file(16500)));
    };
    // The file that is known to be the catalog's changes.
    let mut story = Story::new();
    story.insert(690, 0, 1, &Class { oid: 16390, name: "other", file: 16390, ..ORDERS });
    copied(&mut story);
    no_deeds(history(&story), &story);
    // Either of two could be the catalog.
    let mut story = Story::new();
    copied(&mut story);
    story.image_in(file(16600), 0, &[(1, 650, 0, &ORDERS)]);
    no_deeds(history(&story), &story);
    // A data directory that is newer says which file it is.
    let mut story = Story::new();
    copied(&mut story);
    let mut map = Story::new();
    map.map(&[(1259, 1259)]);
    let mut store = Store::new(story.release());
    map.apply_to(&mut store);
    store.set_base(story.here(), 700);
    no_deeds(story.history(store), &story);
}

/// The pages of a new database follow in the WAL; `pg_namespace` of its template had been written anew.
#[test]
fn schemas_are_known_of_a_catalog_that_its_row_alone_names() {
    let schemas = Class { oid: 2615, name: "pg_namespace", file: 16500, schema: 11, ..ORDERS };
    let mut story = Story::new();
    story.image_in(class_file(), 0, &[(1, 650, 0, &schemas)]);
    story.schema(file(16500), 16390, "app").commit(700);
    let mut history = history(&story);
    history.advance(story.here(), Some(700));
    history.ended(&[700], Some(true));
    assert_eq!(history.schema(super::DATABASE, 16390).as_deref(), Some("app"));
}

/// ALTER DATABASE SET TABLESPACE, there and back again.
#[test]
fn mapped_catalogs_of_a_database_that_was_moved_are_known_in_each_tablespace() {
    let (here, there) = ((super::DATABASE, 1663), (super::DATABASE, 16400));
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).map(&[(1249, 16500), (1259, 1259)]);
    story.copy_database(here, there);
    let moved = story.clone();
    story.copy_database(there, here).map(&[(1249, 16600), (1259, 1259)]);
    for (story, left) in [(moved, 16500), (story, 16600)] {
        let mut history = history(&story);
        history.advance(story.here(), Some(700));
        for tablespace in [1663, 16400] {
            let attributes = RelFileLocator { tablespace, ..file(left) };
            assert!(history.is_mapped(attributes), "{attributes}");
            let attributes = RelFileLocator { tablespace, ..file(16500) };
            assert!(history.is_mapped(attributes), "{attributes}");
            let found = story.names();
            let name = found.relation(attributes).map(|found| &*found.name);
            assert_eq!(name, Some("pg_attribute"), "{attributes}");
        }
        assert!(!history.is_mapped(RelFileLocator { tablespace: 16401, ..file(left) }));
    }
}
