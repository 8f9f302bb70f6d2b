//! Names of relations, schemas, databases and tablespaces: what is asked when rows are shown.

use super::builtin::Builtin;
use std::collections::HashMap;
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::GLOBAL_TABLESPACE;

pub use super::relation::Relation;

/// More levels of partitions than anyone has. A list may name two relations as each other's parent.
const LEVELS_MAX: usize = 100;

/// All that is known.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// By database, 0 for shared ones, and oid.
    pub(super) relations: HashMap<(u32, u32), Relation>,
    /// The oid of the relation that a file belongs to, or belonged to.
    pub(super) files: HashMap<RelFileLocator, u32>,
    pub(super) databases: HashMap<u32, Box<str>>,
    pub(super) tablespaces: HashMap<u32, Box<str>>,
    pub(super) builtin: Builtin,
    /// Files into which a transaction wrote a relation anew, each with that transaction's xid.
    pub(super) rewritten: HashMap<RelFileLocator, u32>,
    /// Names that relations had before, by database and oid: a list with one of them is older.
    pub(super) former: HashMap<(u32, u32), Vec<Box<str>>>,
    /// Former names of schemas that no schema has now, each with the schema's present name.
    pub(super) renamed_schemas: HashMap<(u32, Box<str>), Arc<str>>,
}

impl Names {
    /// The relation that a file belongs to; one that is gone for a file that is gone.
    pub fn relation(&self, file: RelFileLocator) -> Option<&Relation> {
        let is_shared = file.tablespace == GLOBAL_TABLESPACE;
        let known = self.files.get(&file).and_then(|oid| self.by_oid(file.database, *oid));
        known.or_else(|| self.builtin.get(file.relfilenode, is_shared))
    }

    /// The transaction that wrote a relation anew into a file, as ALTER TABLE does.
    pub fn rewritten_by(&self, file: RelFileLocator) -> Option<u32> {
        self.rewritten.get(&file).copied()
    }

    /// The relation of this oid in a database; 0 for the shared ones.
    pub fn by_oid(&self, database: u32, oid: u32) -> Option<&Relation> {
        let known = self.relations.get(&(database, oid));
        known.or_else(|| self.builtin.get(oid, database == 0))
    }

    /// The table that a relation of a database belongs to, itself for a table.
    pub fn table_of(&self, database: u32, relation: &Relation) -> Option<&Relation> {
        self.by_oid(database, relation.table?)
    }

    /// The relation that a partition is a partition of in the end; itself if it is none.
    pub fn root_of<'n>(&'n self, database: u32, relation: &'n Relation) -> &'n Relation {
        let parent = |relation: &&'n Relation| {
            let oid = relation.parent.filter(|_| relation.is_partition)?;
            self.by_oid(database, oid)
        };
        let chain = std::iter::successors(Some(relation), parent);
        chain.take(LEVELS_MAX).last().unwrap_or(relation)
    }

    /// The name of a database.
    pub fn database(&self, oid: u32) -> Option<&str> {
        self.databases.get(&oid).map(|name| &**name)
    }

    /// The name of a tablespace.
    pub fn tablespace(&self, oid: u32) -> Option<&str> {
        self.tablespaces.get(&oid).map(|name| &**name)
    }

    /// All files that were found with their relations, in no order; those of fixed oids only where
    /// they were found too.
    pub fn files(&self) -> impl Iterator<Item = (RelFileLocator, &Relation)> {
        let named =
            |(file, oid): (&RelFileLocator, &u32)| Some((*file, self.by_oid(file.database, *oid)?));
        self.files.iter().filter_map(named)
    }

    /// All relations that were found with their databases, in no order.
    pub fn relations(&self) -> impl Iterator<Item = (u32, &Relation)> {
        self.relations.iter().map(|((database, _), relation)| (*database, relation))
    }

    /// All databases: oids and names, in no order.
    pub fn databases(&self) -> impl Iterator<Item = (u32, &str)> {
        self.databases.iter().map(|(oid, name)| (*oid, &**name))
    }
}
