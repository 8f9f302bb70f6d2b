//! How people call the rows of who writes the WAL.

use super::{
    BlockRow, DatabaseRow, ForkRow, RelationRow, TablespaceRow, TransactionRow, WholeTableRow,
};
use crate::model::Numbers;
use crate::model::table::TableRow;

/// What rows without a block are called.
const NO_BLOCK: &str = "(no block)";

fn qualified(schema: &Option<String>, name: &str) -> String {
    match schema {
        Some(schema) => format!("{schema}.{name}"),
        None => name.to_owned(),
    }
}

/// A label with the database before it, if there is one.
fn in_database(name: &Option<String>, oid: Option<u32>, label: String) -> String {
    match (name, oid) {
        (Some(name), _) => format!("{name}.{label}"),
        (None, Some(oid)) if oid > 0 => format!("{oid}: {label}"),
        _ => label,
    }
}

impl TableRow for RelationRow {
    fn label(&self) -> String {
        let (Some(tablespace), Some(database), Some(relfilenode)) =
            (self.tablespace, self.database, self.relfilenode)
        else {
            return NO_BLOCK.to_owned();
        };
        let label = match &self.name {
            Some(name) => qualified(&self.schema, name),
            None => format!("{tablespace}/{database}/{relfilenode}"),
        };
        match self.fork.as_deref() {
            Some(fork) if fork != "main" => format!("{label} ({fork})"),
            _ => label,
        }
    }

    fn full_label(&self) -> String {
        in_database(&self.database_name, self.database, self.label())
    }

    fn exact_label(&self) -> String {
        let file = self.relfilenode.map_or(String::new(), |file| format!(", file {file}"));
        format!("{}{file}", self.full_label())
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for WholeTableRow {
    fn label(&self) -> String {
        match (&self.name, &self.heap) {
            (Some(name), _) => qualified(&self.schema, name),
            (None, Some(heap)) => heap.relfilenodes.join(" "),
            (None, None) => NO_BLOCK.to_owned(),
        }
    }

    fn full_label(&self) -> String {
        in_database(&self.database_name, self.database, self.label())
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for DatabaseRow {
    fn label(&self) -> String {
        match (&self.database_name, self.database) {
            (Some(name), _) => name.clone(),
            (None, Some(0)) => "(shared)".to_owned(),
            (None, Some(oid)) => oid.to_string(),
            (None, None) => NO_BLOCK.to_owned(),
        }
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for TablespaceRow {
    fn label(&self) -> String {
        match (&self.tablespace_name, self.tablespace) {
            (Some(name), _) => name.clone(),
            (None, Some(oid)) => oid.to_string(),
            (None, None) => NO_BLOCK.to_owned(),
        }
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for ForkRow {
    fn label(&self) -> String {
        self.fork.clone().unwrap_or_else(|| NO_BLOCK.to_owned())
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for BlockRow {
    fn label(&self) -> String {
        let relation = match &self.name {
            Some(name) => qualified(&self.schema, name),
            None => format!("{}/{}/{}", self.tablespace, self.database, self.relfilenode),
        };
        let fork = if self.fork == "main" { String::new() } else { format!(" ({})", self.fork) };
        format!("{relation}{fork} block {}, {} references", self.block, self.block_refs)
    }

    fn full_label(&self) -> String {
        in_database(&None, Some(self.database), self.label())
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for TransactionRow {
    fn label(&self) -> String {
        format!("{} {}", self.xid, self.outcome)
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}
