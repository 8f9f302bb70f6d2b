//! Tables with all that belongs to them: the table itself over all its files, its TOAST table, its
//! indexes.

use super::{By, database_name, kind, schema};
use crate::model::update::{UpdateBytes, UpdateCost};
use crate::model::who::{IndexPart, Part, WholeTableRow};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use walstat_analyse::amounts::Amounts;
use walstat_analyse::leaf::Leaves;
use walstat_analyse::ratios::ratio;
use walstat_analyse::relation::{Relation, Relations};
use walstat_analyse::update::{Cost, Costs, Updates};
use walstat_analyse::vacuum::Vacuums;
use walstat_format::block::RelFileLocator;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::names;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::TOAST_SCHEMA_NAME;
use walstat_names::catalog::row::kind::TOAST;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Database and oid.
    Table(u32, u32),
    /// A file of an unknown relation.
    File(RelFileLocator),
    /// Records without a block.
    NoBlock,
}

/// Which part of the row a file is.
enum Place {
    Heap,
    Toast,
    Index(u32),
}

/// All tables.
pub(crate) fn rows(
    relations: &Relations,
    updates: &Updates,
    vacuums: &Vacuums,
    names: &Names,
    by: By,
) -> Vec<WholeTableRow> {
    let placed = |file: Option<RelFileLocator>| {
        let named = file.and_then(|file| names.relation(file));
        let (key, place) = key_of(file, named, names);
        match (by, named) {
            (By::Parent, Some(named)) => in_parent(key, place, named, names),
            _ => (key, place, named),
        }
    };
    let file = |relation: &Relation<'_>| relation.key.map(|key| key.relation);
    // The rows of a table lie anywhere: one table is built at a time.
    let keys = relations.rows().map(|relation| placed(file(&relation)).0);
    let mut order: Vec<(Key, usize)> = keys.zip(0..).collect();
    let again = made_again(order.iter().map(|(key, _)| *key).collect(), names);
    order.iter_mut().for_each(|(key, _)| *key = again.get(key).copied().unwrap_or(*key));
    order.sort_unstable();
    let tables = order.chunk_by(|(one, _), (other, _)| one == other);
    let row = |table: &[(Key, usize)]| {
        let mut building = Building::default();
        for relation in table.iter().filter_map(|(_, number)| relations.row(*number)) {
            let (_, place, named) = placed(file(&relation));
            if let Some(key) = relation.key.filter(|key| key.fork == 0) {
                updates.of(key.relation).into_iter().for_each(|costs| building.costs.add(costs));
                vacuums.of(key.relation).into_iter().for_each(|wrote| building.vacuum.add(wrote));
            }
            building.add(&relation, place, named);
        }
        table.first().map(|(key, _)| building.finish(*key, names))
    };
    tables.filter_map(row).collect()
}

/// Tables that were dropped and made again under the same name, each time with another oid: those that are
/// gone, each with the one in whose row it is told.
fn made_again(keys: BTreeSet<Key>, names: &Names) -> BTreeMap<Key, Key> {
    let named = keys.into_iter().filter_map(|key| {
        let Key::Table(database, oid) = key else { return None };
        let table = names.by_oid(database, oid)?;
        // Of two whose schema is not known, each may have its own.
        let schema = table.schema.as_deref()?;
        Some((key, table.is_gone, (database, schema, &*table.name, table.kind)))
    });
    under_one_name(named)
}

/// Of those with one name, in the order of their oids, the one that stands has all the others that are gone,
/// or else the last one.
fn under_one_name<K: Copy + Ord, N: Ord>(
    named: impl Iterator<Item = (K, bool, N)>,
) -> BTreeMap<K, K> {
    let mut of_name: BTreeMap<N, Vec<(K, bool)>> = BTreeMap::new();
    for (key, is_gone, name) in named {
        of_name.entry(name).or_default().push((key, is_gone));
    }
    let mut again = BTreeMap::new();
    for alike in of_name.values() {
        let standing = alike.iter().rfind(|(_, is_gone)| !is_gone);
        let Some((one, _)) = standing.or(alike.last()) else { continue };
        let others = alike.iter().filter(|(key, is_gone)| *is_gone && key != one);
        again.extend(others.map(|(key, _)| (*key, *one)));
    }
    again
}

fn key_of(
    file: Option<RelFileLocator>,
    named: Option<&names::Relation>,
    names: &Names,
) -> (Key, Place) {
    let Some(file) = file else { return (Key::NoBlock, Place::Heap) };
    let Some(named) = named else { return (Key::File(file), Place::Heap) };
    let Some(table) = names.table_of(file.database, named) else {
        return (Key::Table(file.database, named.oid), Place::Heap);
    };
    let is_toast = named.kind == TOAST
        || named.is_index() && named.schema.as_deref() == Some(TOAST_SCHEMA_NAME);
    let place = if table.oid == named.oid {
        Place::Heap
    } else if is_toast {
        Place::Toast
    } else if named.is_index() {
        Place::Index(named.oid)
    } else {
        Place::Heap
    };
    (Key::Table(file.database, table.oid), place)
}

/// The same in the row of the table that all is a partition of; an index is part of an index there.
fn in_parent<'n>(
    key: Key,
    place: Place,
    named: &'n names::Relation,
    names: &'n Names,
) -> (Key, Place, Option<&'n names::Relation>) {
    let Key::Table(database, oid) = key else { return (key, place, Some(named)) };
    let root = names.by_oid(database, oid).map(|table| names.root_of(database, table));
    let key = root.map_or(key, |root| Key::Table(database, root.oid));
    match place {
        Place::Index(_) => {
            let index = names.root_of(database, named);
            (key, Place::Index(index.oid), Some(index))
        }
        Place::Heap | Place::Toast => (key, place, Some(named)),
    }
}

/// A row in the making.
#[derive(Default)]
struct Building {
    row: WholeTableRow,
    costs: Costs,
    vacuum: Amounts,
    indexes: BTreeMap<u32, Index>,
}

/// An index in the making.
#[derive(Default)]
struct Index {
    part: IndexPart,
    keys: Keys,
    is_gone: bool,
}

/// Insertions into an index's leaves.
#[derive(Default)]
struct Keys {
    is_btree: bool,
    inserts: u64,
    blocks: u64,
    /// Those into the right-most leaf, at most.
    rightmost: u64,
}

impl Building {
    fn add(&mut self, relation: &Relation<'_>, place: Place, named: Option<&names::Relation>) {
        self.row.numbers.add(&relation.amounts.numbers());
        let operations = &relation.operations;
        match place {
            Place::Heap if relation.key.is_none() => {}
            Place::Heap => {
                self.row.inserts += operations.inserts;
                self.row.updates += operations.updates;
                self.row.hot_updates += operations.hot_updates;
                self.row.updates_new_page += operations.updates_new_page;
                self.row.deletes += operations.deletes;
                self.row.locks += operations.locks;
                self.row.old_row_bytes += relation.substance.old_row_bytes;
                self.row.whole_old_row_bytes += relation.substance.whole_old_row_bytes;
                self.row.heap.get_or_insert_default().add(relation);
            }
            Place::Toast => {
                self.row.toast_inserts += operations.inserts;
                self.row.toast_deletes += operations.deletes;
                self.row.toast.get_or_insert_default().add(relation);
            }
            Place::Index(oid) => {
                let index = self.indexes.entry(oid).or_default();
                index.part.part.add(relation);
                index.keys.add_leaves(relation.leaves);
                if let Some(named) = named {
                    index.is_gone = named.is_gone;
                    index.part.oid = oid;
                    index.part.schema = schema(named);
                    index.part.name = named.name.to_string();
                }
            }
        }
    }

    fn finish(mut self, key: Key, names: &Names) -> WholeTableRow {
        self.row.indexes = together(self.indexes).map(Index::finish).collect();
        self.row.indexes.order_by_key(|index| (Reverse(index.part.numbers.total_bytes), index.oid));
        let parts = self.row.heap.iter_mut().chain(&mut self.row.toast);
        let indexes = self.row.indexes.iter_mut().map(|index| &mut index.part);
        parts.chain(indexes).for_each(|part| {
            part.relfilenodes.sort_unstable();
            part.relfilenodes.dedup();
        });
        self.row.bytes_per_hot_update = per_update(&self.costs.hot);
        self.row.bytes_per_non_hot_update = per_update(&self.costs.non_hot);
        self.row.update_bytes = update_bytes(&self.costs);
        self.row.vacuum_bytes = self.vacuum.total_bytes();
        self.row.vacuum_fpi_bytes = self.vacuum.fpi_bytes;
        let database = match key {
            Key::Table(database, _) => Some(database),
            Key::File(file) => Some(file.database),
            Key::NoBlock => None,
        };
        self.row.database = database;
        self.row.database_name = database.and_then(|oid| database_name(oid, names));
        if let Key::Table(database, oid) = key
            && let Some(table) = names.by_oid(database, oid)
        {
            self.row.oid = Some(oid);
            self.row.schema = schema(table);
            self.row.name = Some(table.name.to_string());
            self.row.kind = kind(table);
        }
        self.row
    }
}

fn per_update(cost: &Cost) -> Option<f64> {
    ratio(cost.total_bytes(), cost.updates)
}

fn update_bytes(costs: &Costs) -> UpdateBytes {
    let cost = |cost: &Cost| UpdateCost {
        updates: cost.updates,
        heap_bytes: cost.heap_bytes,
        lock_bytes: cost.lock_bytes,
        prune_bytes: cost.prune_bytes,
        index_bytes: cost.index_bytes,
        total_bytes: cost.total_bytes(),
        fpi_bytes: cost.fpi_bytes,
    };
    UpdateBytes { hot: cost(&costs.hot), non_hot: cost(&costs.non_hot) }
}

/// Indexes that are one: a change of a column's type drops an index and makes it anew under its name, and
/// REINDEX CONCURRENTLY gives the name to a new one and drops the old one under another.
fn together(indexes: BTreeMap<u32, Index>) -> impl Iterator<Item = Index> {
    let mut by_name: BTreeMap<_, Vec<Index>> = BTreeMap::new();
    for mut index in indexes.into_values() {
        if index.is_gone {
            index.part.name = without_transient(&index.part.name).to_owned();
        }
        let name = (index.part.schema.clone(), index.part.name.clone());
        let of_name = by_name.entry(name).or_default();
        match of_name.last_mut() {
            Some(last) if last.is_gone || index.is_gone => last.add(index),
            _ => of_name.push(index),
        }
    }
    by_name.into_values().flatten()
}

/// The name of an index that is gone, without what REINDEX CONCURRENTLY puts after it
/// (`ReindexRelationConcurrently`): `_ccnew` or `_ccold`, and a number where that name was taken.
fn without_transient(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let suffix = ["_ccnew", "_ccold"].iter().find_map(|suffix| plain.strip_suffix(suffix));
    suffix.filter(|own| !own.is_empty()).unwrap_or(name)
}

impl Index {
    /// Adds what another index of the name wrote, a later one by its oid.
    fn add(&mut self, later: Index) {
        let Index { part, keys, is_gone } = later;
        self.part.part.add_part(part.part);
        self.keys.add(&keys);
        if self.is_gone {
            (self.part.oid, self.is_gone) = (part.oid, is_gone);
        }
    }

    fn finish(self) -> IndexPart {
        let keys = self.keys;
        IndexPart {
            is_gone: self.is_gone,
            leaf_inserts: keys.is_btree.then_some(keys.inserts),
            leaf_blocks: keys.is_btree.then_some(keys.blocks),
            rightmost_ratio: ratio(keys.rightmost, keys.inserts),
            ..self.part
        }
    }
}

impl Keys {
    fn add(&mut self, other: &Keys) {
        self.is_btree |= other.is_btree;
        self.inserts += other.inserts;
        self.blocks += other.blocks;
        self.rightmost += other.rightmost;
    }

    fn add_leaves(&mut self, leaves: Option<&Leaves>) {
        let Some(leaves) = leaves else { return };
        self.is_btree = true;
        self.inserts += leaves.inserts;
        self.blocks += leaves.blocks.len();
        self.rightmost += leaves.rightmost_inserts();
    }
}

impl Part {
    fn add_part(&mut self, other: Part) {
        self.relfilenodes.extend(other.relfilenodes);
        self.numbers.add(&other.numbers);
        self.block_refs += other.block_refs;
        self.block_data_bytes += other.block_data_bytes;
        self.distinct_blocks += other.distinct_blocks;
        self.new_page_fpi_bytes += other.new_page_fpi_bytes;
        self.built_files += other.built_files;
    }

    fn add(&mut self, relation: &Relation<'_>) {
        self.relfilenodes.extend(relation.key.map(|key| key.relation.to_string()));
        self.numbers.add(&relation.amounts.numbers());
        self.block_refs += relation.block_refs;
        self.block_data_bytes += relation.block_data_bytes;
        self.distinct_blocks += relation.distinct_blocks;
        self.new_page_fpi_bytes += relation.images.new_page_bytes;
        // An index of an empty table has one page.
        let is_built = relation.images.new_page_count > 1;
        self.built_files += u64::from(is_built && relation.key.is_some_and(|key| key.fork == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(oid: u32, name: &str, is_gone: bool) -> (u32, Index) {
        let part = IndexPart { oid, name: name.into(), ..IndexPart::default() };
        (oid, Index { part, is_gone, ..Index::default() })
    }

    /// A table that was dropped and made again in each batch was told as often as there were batches.
    #[test]
    fn tables_that_were_made_again_are_told_as_the_one_that_stands() {
        let (gone, stands) = (true, false);
        let of = |tables: &[(u32, bool, &'static str)]| -> Vec<(u32, u32)> {
            under_one_name(tables.iter().copied()).into_iter().collect()
        };
        let tables = [(10, gone, "stage"), (20, stands, "other"), (30, gone, "stage")];
        assert_eq!(of(&tables), [(10, 30)]);
        assert_eq!(of(&[&tables[..], &[(40, stands, "stage")]].concat()), [(10, 40), (30, 40)]);
        // The number that oids are taken from has come round.
        assert_eq!(of(&[(10, stands, "stage"), (30, gone, "stage")]), [(30, 10)]);
        assert_eq!(of(&[(10, stands, "a"), (30, stands, "a")]), []);
    }

    #[test]
    fn what_reindex_concurrently_leaves_behind_is_the_same_index() {
        let indexes = [
            index(7, "t_pkey_ccold", true),
            index(8, "t_pkey_ccold1", true),
            index(9, "t_pkey", false),
            // A build that failed: nobody has dropped it.
            index(10, "t_pkey_ccnew", false),
            index(11, "xx", true),
        ];
        let told: Vec<_> = together(indexes.into())
            .map(|index| (index.part.oid, index.part.name, index.is_gone))
            .collect();
        let want = [(9, "t_pkey", false), (10, "t_pkey_ccnew", false), (11, "xx", true)];
        assert_eq!(told, want.map(|(oid, name, is_gone)| (oid, name.to_owned(), is_gone)));
    }
}
