//! A relation with its name, and what it belongs to.

use super::row::{Source, kind};
use std::sync::Arc;

/// A relation as `pg_class` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its oid.
    pub oid: u32,
    /// Its schema; `None` where that is not known.
    pub schema: Option<Arc<str>>,
    /// Its name. What is no UTF-8 in it is replaced.
    pub name: Box<str>,
    /// `relkind`.
    pub kind: u8,
    /// `relpersistence`: `p`, `u`nlogged, `t`emporary.
    pub persistence: u8,
    /// Oid of the table that it belongs to: of an index and a TOAST table if known, of all others
    /// their own.
    pub table: Option<u32>,
    /// Oid of the table, or index, of which it is a partition, or from which it inherits first.
    pub parent: Option<u32>,
    /// Whether it is a partition of its parent.
    pub is_partition: bool,
    /// Whether it is known to be gone, or never to have come to be: this is the last name it had.
    pub is_gone: bool,
    /// Where its name was found.
    pub source: Source,
}

impl Relation {
    /// Whether it is an index.
    pub fn is_index(&self) -> bool {
        [kind::INDEX, kind::PARTITIONED_INDEX].contains(&self.kind)
    }
}
