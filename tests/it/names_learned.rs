//! Names learnt from the WAL of every release: alone, and on top of a data directory that is newer.
//! The servers' own answers are the judge: never a wrong name.

use crate::common::catalog_changes::learn;
use crate::common::whole::{Whole, records};
use crate::support::catalogs::{Catalogs, catalogs};
use crate::support::fixtures::{sample, sample_names};
use std::collections::BTreeSet;
use walstat_format::block::RelFileLocator;
use walstat_names::catalog::catalog_changes::CatalogChanges;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::store::Store;
use walstat_names::data_directory::{Catalog, Expected, read};

/// The first oid that a cluster's users get.
const FIRST_USER_OID: u32 = 16384;

/// Data directories, and the WAL of the same clusters.
fn each_cluster(mut check: impl FnMut(&Catalogs, Catalog, &[Whole])) {
    let mut clusters = 0;
    for catalogs in catalogs().iter().filter(|c| sample_names().contains(&c.name)) {
        let catalog = read(&catalogs.directory, &Expected::default(), &mut Vec::new());
        let catalog = catalog.expect("a data directory");
        let records = records(&sample(&catalogs.name).wal, catalog.version, 1);
        check(catalogs, catalog, &records);
        clusters += 1;
    }
    assert!(clusters >= 10, "{clusters}");
}

/// The files that the records refer to, those of users only.
fn user_files(records: &[Whole]) -> BTreeSet<RelFileLocator> {
    let blocks = records.iter().flat_map(|record| &record.blocks);
    let files = blocks.map(|block| block.reference.relation);
    files.filter(|file| file.relfilenode >= FIRST_USER_OID).collect()
}

fn assert_all_named(names: &Names, files: &BTreeSet<RelFileLocator>, what: &str) {
    let unnamed: Vec<_> = files.iter().filter(|file| names.relation(**file).is_none()).collect();
    assert!(unnamed.is_empty() && files.len() > 20, "{what}: {unnamed:?}");
}

/// Each of these clusters made its tables in the WAL at hand, so that all of them can be known:
/// those that were rewritten, dropped, or only written for the time of a rewrite too.
#[test]
fn the_wal_alone_names_what_was_made_in_it() {
    each_cluster(|catalogs, catalog, records| {
        let mut changes = CatalogChanges::default();
        learn(&mut changes, records, catalog.version);
        let mut store = Store::new(catalog.version);
        changes.apply_to(&mut store);
        let names = store.names();
        catalogs.truth.none_wrong(&names, &catalogs.name);
        assert_all_named(&names, &user_files(records), &catalogs.name);
        for (file, row) in catalogs.truth.rows.iter().filter(|(_, row)| row.oid >= FIRST_USER_OID) {
            let found = names.relation(*file).map(|found| &*found.name);
            assert_eq!(found, Some(&*row.name), "{}", catalogs.name);
        }
        // The catalogs have the names that they have everywhere.
        for (file, row) in catalogs.truth.rows.iter().filter(|(file, _)| file.relfilenode < 10_000)
        {
            let found = names.relation(*file).map(|found| (&*found.name, found.schema.as_deref()));
            assert_eq!(found, Some((&*row.name, Some(&*row.schema))), "{}", catalogs.name);
        }
    });
}

/// What the directory has is newer: the WAL adds files that are gone, and changes nothing else.
#[test]
fn older_wal_changes_no_name_of_a_data_directory() {
    each_cluster(|catalogs, Catalog { version, mut store, .. }, records| {
        let mut changes = CatalogChanges::over(&store);
        learn(&mut changes, records, version);
        changes.apply_to(&mut store);
        let names = store.names();
        catalogs.truth.all_right(&names, &catalogs.name);
        assert_all_named(&names, &user_files(records), &catalogs.name);
    });
}

/// However the WAL is divided, what is learnt from it is the same.
#[test]
fn stretches_teach_what_the_whole_does() {
    each_cluster(|catalogs, Catalog { version, .. }, records| {
        let mut changes = CatalogChanges::default();
        for part in records.chunks(records.len() / 7 + 1) {
            let mut next = CatalogChanges::default();
            learn(&mut next, part, version);
            changes.merge(next);
        }
        let mut store = Store::new(version);
        changes.apply_to(&mut store);
        let names = store.names();
        catalogs.truth.none_wrong(&names, &catalogs.name);
        assert_all_named(&names, &user_files(records), &catalogs.name);
    });
}
