//! Which rows of a names file can be relied on: of those that contradict each other, none.

use super::{FileWarnings, Placed};
use crate::catalog::listing::Listed;
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::block::RelFileLocator;

/// What a row says of its relation, whatever its file.
#[derive(PartialEq)]
struct Said<'r> {
    schema: Option<&'r str>,
    name: &'r str,
    kind: Option<char>,
    table: Option<u32>,
    parent: Option<u32>,
}

/// The rows without those that contradict each other, and without those that stand there twice.
pub(super) fn without_contradictions(
    rows: Vec<Placed>,
    warnings: &mut FileWarnings,
) -> Vec<Listed> {
    let oids = disputed(&rows, |row| Some((row.database, row.oid)), said, "neither", warnings);
    let by_file = |row: &Listed| row.file().filter(|_| !oids.contains(&(row.database, row.oid)));
    let files: BTreeSet<RelFileLocator> =
        disputed(&rows, by_file, |row| row.oid, "neither", warnings);
    let database = |row: &Listed| Some(row.database).filter(|oid| *oid != 0);
    let what = "neither name of the database";
    let databases = disputed(&rows, database, |row| row.database_name.as_deref(), what, warnings);
    let tablespace = |row: &Listed| row.tablespace;
    let what = "neither name of the tablespace";
    let tablespaces =
        disputed(&rows, tablespace, |row| row.tablespace_name.as_deref(), what, warnings);

    let mut seen = BTreeMap::new();
    let mut kept = Vec::new();
    for Placed { line, mut row } in rows {
        let is_disputed = row.file().is_some_and(|file| files.contains(&file));
        if is_disputed || oids.contains(&(row.database, row.oid)) {
            continue;
        }
        let identity = (row.database, row.oid, row.file());
        if let Some(first) = seen.get(&identity) {
            // Each database lists the shared relations.
            if row.database != 0 {
                warnings.add(line, &format!("found the row of line {first} again"));
            }
            continue;
        }
        seen.insert(identity, line);
        row.database_name.take_if(|_| databases.contains(&row.database));
        row.tablespace_name
            .take_if(|_| row.tablespace.is_some_and(|oid| tablespaces.contains(&oid)));
        kept.push(row);
    }
    kept
}

fn said(row: &Listed) -> Said<'_> {
    let Listed { name, kind, table, parent, .. } = row;
    Said { schema: row.schema.as_deref(), name, kind: *kind, table: *table, parent: *parent }
}

/// The keys of which rows say different things; `what` is not used of them.
fn disputed<'r, K: Ord + Copy, V: PartialEq>(
    rows: &'r [Placed],
    key: impl Fn(&Listed) -> Option<K>,
    said: impl Fn(&'r Listed) -> V,
    what: &str,
    warnings: &mut FileWarnings,
) -> BTreeSet<K> {
    let (mut first, mut disputed) = (BTreeMap::new(), BTreeSet::new());
    for Placed { line, row } in rows {
        let Some(key) = key(row) else { continue };
        let (known, at) = *first.entry(key).or_insert((row, *line));
        if said(known) != said(row) {
            warnings.add(*line, &format!("contradicts line {at}: {what} is used"));
            disputed.insert(key);
        }
    }
    disputed
}
