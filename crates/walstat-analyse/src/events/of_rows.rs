//! Rows of one table that one transaction has changed.

use super::EventKind;
use super::changes::{Changes, RowChange};
use super::deed::{Deed, Rewritten, Scene, Subject, holds_rows_of_users, is_of_system};
use std::collections::BTreeMap;
use walstat_format::block::RelFileLocator;
use walstat_names::catalog::history::ClassVersion;

/// What was done to the rows of a table, whatever files it had.
struct Table {
    owner: Option<ClassVersion>,
    file: RelFileLocator,
    changes: [Changes; 3],
}

/// The events.
pub(super) fn told(scene: &mut Scene<'_>) -> Vec<Deed> {
    let (whole, min_rows) = (scene.whole, scene.min_rows);
    let is_enough = |rows: u64| rows > 0 && rows >= min_rows;
    let may_be_enough =
        |change: RowChange| is_enough(whole.files.values().map(|work| work.of(change).rows).sum());
    if !RowChange::ALL.into_iter().any(may_be_enough) {
        return Vec::new();
    }
    let mut tables: BTreeMap<(u32, u32, u32), Table> = BTreeMap::new();
    for (file, work) in whole.files.iter().filter(|(file, _)| !is_of_system(**file)) {
        let rewritten = scene.rewritten.get(file).copied();
        let is_copy = rewritten.is_some_and(|rewritten| rewritten.is_copy);
        let owner = match rewritten {
            Some(Rewritten { relation: (database, oid), .. }) => {
                scene.catalogs.class(database, oid)
            }
            None => scene.catalogs.owner(*file),
        };
        if owner.as_ref().is_some_and(|owner| !holds_rows_of_users(owner)) {
            continue;
        }
        let key = match &owner {
            Some(owner) => (owner.database, owner.oid, 0),
            None => (file.database, file.tablespace, file.relfilenode),
        };
        let changes = [Changes::default(); 3];
        let table = tables.entry(key).or_insert(Table { owner, file: *file, changes });
        // What a rewrite inserts are the rows that the table has already; it changes and deletes none.
        for change in
            RowChange::ALL.into_iter().filter(|change| !is_copy || *change != RowChange::Insert)
        {
            table.changes[change as usize].add(work.of(change));
        }
    }
    let mut deeds = Vec::new();
    for Table { owner, file, changes } in tables.into_values() {
        let subject = owner.map_or(Subject::File(file), |owner| Subject::Relation(owner, None));
        let each = RowChange::ALL.into_iter().zip(changes);
        for (change, Changes { rows, bytes, first }) in
            each.filter(|(_, c)| c.rows > 0 && c.rows >= min_rows)
        {
            deeds.push(Deed {
                kind: kind(change),
                lsn: first,
                subject: subject.clone(),
                file: Some(file),
                new_file: None,
                rows: Some(rows),
                bytes: Some(bytes),
                no_return: None,
            });
        }
    }
    deeds
}

fn kind(change: RowChange) -> EventKind {
    match change {
        RowChange::Insert => EventKind::Insert,
        RowChange::Update => EventKind::Update,
        RowChange::Delete => EventKind::Delete,
    }
}
