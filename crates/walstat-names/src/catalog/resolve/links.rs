//! How relations hang together: indexes and TOAST tables with their table, partitions with their
//! parent, a relation that is rewritten with its new version.

use super::{Resolver, database_of};
use crate::catalog::row::{Class, Row, TOAST_SCHEMA, kind};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use walstat_format::catalog_layout::CatalogTable;

/// How relations hang together, by database and oid.
pub(super) struct Links {
    /// The table of an index.
    tables: HashMap<(u32, u32), u32>,
    /// The table of a TOAST table.
    owners: HashMap<(u32, u32), u32>,
    /// The first parent, behind its number.
    pub parents: HashMap<(u32, u32), (u32, u32)>,
    /// The relation whose new version another one was.
    rewritten: HashMap<(u32, u32), u32>,
    /// The TOAST table of a table.
    toasts: HashMap<(u32, u32), u32>,
    /// The index of a table with the lowest oid.
    indexes: HashMap<(u32, u32), u32>,
}

impl Links {
    pub(super) fn of(resolver: &Resolver<'_>) -> Links {
        let mut links = Links {
            tables: HashMap::new(),
            owners: HashMap::new(),
            parents: HashMap::new(),
            rewritten: HashMap::new(),
            toasts: HashMap::new(),
            indexes: HashMap::new(),
        };
        links.link_indexes(resolver);
        links.link_classes(resolver);
        links.link_parents(resolver);
        links
    }

    /// An index belongs to one table for life: any version will do.
    fn link_indexes(&mut self, resolver: &Resolver<'_>) {
        for seen in resolver.versions(CatalogTable::Index) {
            let Row::Index(index, table) = seen.row else { continue };
            let is_shared = resolver.classes.contains_key(&(0, index));
            let database = if is_shared { 0 } else { seen.database };
            self.tables.insert((database, index), table);
        }
        for ((database, index), table) in &self.tables {
            let lowest = self.indexes.entry((*database, *table)).or_insert(*index);
            *lowest = (*lowest).min(*index);
        }
    }

    fn link_classes(&mut self, resolver: &Resolver<'_>) {
        for (&(database, oid), best) in &resolver.classes {
            let Row::Class(class) = best.seen.row else { continue };
            if let Some(original) = class.rewrites(resolver.store.version.catalog)
                && !best.seen.counts()
            {
                self.rewritten.insert((database, oid), original);
            }
            if class.toast != 0 {
                self.toasts.insert((database, oid), class.toast);
            }
        }
        for seen in resolver.versions(CatalogTable::Class) {
            let Row::Class(class) = seen.row else { continue };
            if class.toast != 0 {
                self.link_toast(database_of(&class, seen.database), &class, seen.counts());
            }
        }
    }

    /// A TOAST table changes hands when its table is rewritten: who counts wins, then who is not
    /// only a new version.
    fn link_toast(&mut self, database: u32, class: &Class<'_>, counts: bool) {
        let is_rewrite = self.rewritten.contains_key(&(database, class.oid));
        match self.owners.entry((database, class.toast)) {
            Entry::Vacant(entry) => {
                entry.insert(class.oid);
            }
            Entry::Occupied(mut entry) => {
                let has_rewrite = self.rewritten.contains_key(&(database, *entry.get()));
                if counts || (has_rewrite && !is_rewrite) {
                    entry.insert(class.oid);
                }
            }
        }
    }

    fn link_parents(&mut self, resolver: &Resolver<'_>) {
        for seen in resolver.versions(CatalogTable::Inherits) {
            let Row::Inherits(child, parent, number) = seen.row else { continue };
            let key = (seen.database, child);
            // One that was detached has no parent; one that is gone keeps the last it had.
            if !seen.counts() && resolver.counts(seen.database, child) {
                continue;
            }
            let first = self.parents.entry(key).or_insert((number, parent));
            *first = (*first).min((number, parent));
        }
    }

    /// The table that a relation belongs to; `None` where a link to it is not known.
    pub(super) fn table_of(&self, database: u32, class: &Class<'_>) -> Option<u32> {
        let mut oid = class.oid;
        if [kind::INDEX, kind::PARTITIONED_INDEX].contains(&class.kind) {
            oid = *self.tables.get(&(database, oid))?;
        }
        // TOAST tables are in a schema of their own, and so are their indexes.
        if class.kind == kind::TOAST || class.namespace == TOAST_SCHEMA {
            oid = *self.owners.get(&(database, oid))?;
        }
        Some(self.rewritten.get(&(database, oid)).copied().unwrap_or(oid))
    }

    /// The relation in whose place one stands: the original of a new version, and the original's
    /// TOAST table and its index for those of a new version.
    pub(super) fn stands_for(&self, database: u32, oid: u32) -> u32 {
        let of = |map: &HashMap<(u32, u32), u32>, oid| map.get(&(database, oid)).copied();
        let toast_of_original = |toast| {
            let original = of(&self.rewritten, of(&self.owners, toast)?)?;
            of(&self.toasts, original)
        };
        if let Some(original) = of(&self.rewritten, oid).or_else(|| toast_of_original(oid)) {
            return original;
        }
        let toast = of(&self.tables, oid).and_then(toast_of_original);
        let index_of = |table: u32| of(&self.indexes, table);
        toast.and_then(index_of).unwrap_or(oid)
    }
}
