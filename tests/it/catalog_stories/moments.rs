//! What the catalogs say at a moment, and what transactions have done to them by then.

use super::story::{Class, Story, class_file, file};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::lsn::Lsn;
use walstat_format::version::VERSIONS;
use walstat_names::catalog::history::moment::Moment;
use walstat_names::catalog::history::{Deeds, History};
use walstat_names::catalog::store::Store;

const ORDERS: Class = Class { oid: 16384, name: "orders", file: 16384, ..Class::TABLE };
const RENAMED: Class = Class { name: "orders_of_2026", ..ORDERS };

fn history(story: &Story) -> History {
    story.history(Store::new(story.release()))
}

fn name_at(history: &mut History, to: Lsn, newest_xid: u32) -> Option<String> {
    history.advance(to);
    let mut catalogs = history.at(Moment { newest_xid: Some(newest_xid), ..Moment::default() });
    catalogs.owner(file(16384)).map(|class| class.name.to_string())
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
        history.advance(made);
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
    history.advance(made);
    history.ended(&[700], Some(true));
    assert_eq!(name_at(&mut history, made, 700).as_deref(), Some("orders"));
    history.advance(story.here());
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
    history.advance(deleted);
    history.ended(&[700], Some(true));
    assert_eq!(told(&history.ended(&[702], Some(false))), [("orders", false, true)]);
    history.advance(story.here());
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
    history.advance(story.here());
    assert_eq!(history.ended(&[700], Some(true)).unknown, 1);
}

/// A page that comes with its first change shows the row that is deleted.
#[test]
fn an_image_shows_what_was_deleted() {
    let mut story = Story::new();
    story.image_in(class_file(), 0, &[(1, 650, 0, &ORDERS)]);
    story.delete(700, 0, 1);
    let mut history = history(&story);
    history.advance(story.here());
    assert_eq!(told(&history.ended(&[700], Some(true))), [("orders", false, true)]);
    assert_eq!(name_at(&mut history, story.here(), 700), None);
}

#[test]
fn an_index_belongs_to_its_table() {
    let mut story = Story::new();
    story.row(700, CatalogTable::Index, 1, &[16390, 16384]);
    let mut history = history(&story);
    history.advance(story.here());
    assert_eq!(history.table_of_index(super::DATABASE, 16390), Some(16384));
    assert_eq!(history.table_of_index(super::DATABASE, 16384), None);
}

/// CREATE DATABASE by a copy of files, whose catalogs are not in the WAL.
#[test]
fn an_index_of_a_copy_belongs_to_the_copy_of_its_table() {
    let copy = 20_000;
    let mut story = Story::new();
    story.row(700, CatalogTable::Index, 1, &[16390, 16384]);
    story.copy_database((super::DATABASE, 1663), (copy, 1663));
    story.row(701, CatalogTable::Index, 2, &[16391, 16384]);
    let mut history = history(&story);
    history.advance(Lsn::MAX);
    let tables = [16390, 16391].map(|index| history.table_of_index(copy, index));
    assert_eq!(tables, [Some(16384), None], "the second was made after the copy");
}

/// SELECT FOR UPDATE of a row of `pg_class`; the row of another transaction's update too.
#[test]
fn whoever_locks_a_row_has_not_ended_it() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    story.lock(701, 0, 1);
    let mut history = history(&story);
    history.advance(story.here());
    history.ended(&[700], Some(true));
    assert_eq!(history.ended(&[701], Some(true)), Deeds::default());
    assert_eq!(name_at(&mut history, story.here(), 701).as_deref(), Some("orders"));
    // As a member of a multixact of which another one updates.
    story.multixact(9, &[(702, 5), (703, 1)]);
    story.update_by_multixact(702, 9, 1, 2, &RENAMED).lock_in_multixact(703, 9, 1);
    let mut history = self::history(&story);
    history.advance(story.here());
    history.ended(&[700], Some(true));
    assert_eq!(history.ended(&[703], Some(true)), Deeds::default());
    let deeds = history.ended(&[702], Some(true));
    assert_eq!(told(&deeds), [("orders", false, true), ("orders_of_2026", true, false)]);
}

/// The number of the multixact is larger than any xid.
#[test]
fn a_row_that_a_member_of_a_multixact_has_ended_is_not_there() {
    let mut story = Story::new();
    story.insert(700, 0, 1, &ORDERS).commit(700);
    let before = story.here();
    story.multixact(90_000, &[(701, 5), (702, 1)]);
    story.update_by_multixact(701, 90_000, 1, 2, &Class { file: 16400, ..RENAMED });
    let mut history = history(&story);
    history.advance(before);
    history.ended(&[700], Some(true));
    history.advance(story.here());
    history.ended(&[701], Some(true));
    let own = |own: &[u32]| Moment { own: own.into(), newest_xid: Some(702) };
    assert_eq!(history.at(own(&[])).owner(file(16384)), None, "another one's");
    let ended = history.at(own(&[701])).owner(file(16384));
    assert_eq!(ended.map(|class| class.name).as_deref(), Some("orders"), "its own");
    assert_eq!(name_at(&mut history, story.here(), 700).as_deref(), Some("orders"));
}

/// TRUNCATE, again and again: what a moment asks for is found at once, when it comes and when it is looked
/// back at.
#[test]
fn a_row_with_many_versions_is_found_at_each_moment() {
    const COUNT: u32 = 40_000;
    let version = |number: u32| Class { file: 20_000 + number, ..ORDERS };
    let (mut story, mut moments) = (Story::new(), Vec::new());
    story.insert(1000, 0, 1, &version(0));
    for number in 1..=COUNT {
        let (old, new) = if number % 2 == 1 { (1, 2) } else { (2, 1) };
        story.update(1000 + number, 0, old, new, &version(number - 1), &version(number));
        story.prune(0, &[old]);
        moments.push((story.here(), 1000 + number));
    }
    let mut history = history(&story);
    history.advance(Lsn(0));
    history.ended(&[1000], Some(true));
    for (place, xid) in &moments {
        history.advance(*place);
        history.ended(&[*xid], Some(true));
        is_at(&mut history, *xid);
    }
    moments.iter().for_each(|(_, xid)| is_at(&mut history, *xid));
}

/// The version of a moment is the one that this transaction made.
#[track_caller]
fn is_at(history: &mut History, xid: u32) {
    let made = file(20_000 + xid - 1000);
    let mut catalogs = history.at(Moment { own: [xid].into(), newest_xid: Some(xid) });
    let class = catalogs.class(super::DATABASE, ORDERS.oid).expect("a row");
    assert_eq!(class.file, Some(made));
    assert_eq!(catalogs.owner(made), Some(class));
}

/// VACUUM FULL gave `pg_class` another file before the WAL begins.
#[test]
fn a_catalog_that_was_rewritten_before_is_known_by_its_rows() {
    let moved = file(16500);
    let want = [("orders", false, true), ("orders_of_2026", true, false)];
    let deeds = |history: &mut History, story: &Story| {
        history.advance(story.here());
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
        history.advance(story.here());
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
    history.advance(story.here());
    history.ended(&[700], Some(true));
    let mut catalogs = history.at(Moment { own: [700].into(), newest_xid: Some(700) });
    assert_eq!(catalogs.schema(super::DATABASE, 16390).as_deref(), Some("app"));
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
        history.advance(story.here());
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
