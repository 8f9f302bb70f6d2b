//! How people call the rows of who writes the WAL.

use super::{
    BlockRow, DatabaseRow, ForkRow, IndexPart, RelationRow, TablespaceRow, TransactionRow,
    WholeTableRow,
};
use crate::model::Numbers;
use crate::model::table::{Home, TableRow};

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

/// The oid of template1 (`Template1DbOid`).
pub(crate) const TEMPLATE1: u32 = 1;

/// In whose database a row lies.
pub(crate) fn home(name: &Option<String>, oid: Option<u32>) -> Home {
    match (oid, name.as_deref()) {
        (None | Some(0), _) => Home::Nowhere,
        (Some(TEMPLATE1), _) | (_, Some("template0" | "template1")) => Home::Template,
        (Some(oid), _) => Home::Database(oid),
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

    fn home(&self) -> Home {
        home(&self.database_name, self.database)
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

    fn home(&self) -> Home {
        home(&self.database_name, self.database)
    }
}

/// An index and the table that it is of, which knows the database.
pub(crate) struct IndexOf<'r> {
    /// The table.
    pub table: &'r WholeTableRow,
    /// The index.
    pub index: &'r IndexPart,
}

impl TableRow for IndexOf<'_> {
    fn label(&self) -> String {
        qualified(&self.index.schema, &self.index.name)
    }

    fn full_label(&self) -> String {
        in_database(&self.table.database_name, self.table.database, self.label())
    }

    fn numbers(&self) -> Numbers {
        self.index.part.numbers
    }

    fn home(&self) -> Home {
        self.table.home()
    }
}

impl IndexPart {
    /// Its name in a command: with its schema, since that need not be in the `search_path`, and in quotes
    /// where a server would read it otherwise (`quote_identifier`; no key words).
    pub(crate) fn sql_name(&self) -> String {
        let quoted = |name: &String| {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
                return name.clone();
            }
            format!("\"{}\"", name.replace('"', "\"\""))
        };
        let names: Vec<String> = self.schema.iter().chain([&self.name]).map(quoted).collect();
        names.join(".")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::{Sort, Table};

    fn row(database: u32, database_name: &str, name: &str) -> WholeTableRow {
        WholeTableRow {
            database: Some(database),
            database_name: Some(database_name.into()),
            schema: Some("public".into()),
            name: Some(name.into()),
            ..WholeTableRow::default()
        }
    }

    #[test]
    fn commands_find_an_index_wherever_it_is_and_however_it_is_called() {
        let name = |schema: Option<&str>, name: &str| {
            let schema = schema.map(str::to_owned);
            IndexPart { schema, name: name.into(), ..IndexPart::default() }.sql_name()
        };
        assert_eq!(name(Some("app_2"), "words"), "app_2.words");
        assert_eq!(name(None, "words"), "words");
        assert_eq!(name(Some("App"), "User_email_key"), "\"App\".\"User_email_key\"");
        assert_eq!(name(Some("a"), "2\"x"), "a.\"2\"\"x\"");
    }

    #[test]
    fn all_rows_say_their_database_or_none_does() {
        let shared = WholeTableRow { database: Some(0), ..row(0, "", "s") };
        let rows = vec![row(5, "app", "a"), row(1, "template1", "a"), shared, row(5, "app", "b")];
        let one: Table<WholeTableRow> = rows.clone().into();
        let last = |labels: Vec<String>| labels.last().cloned().unwrap_or_default();
        assert_eq!(one.labels()[..2], ["public.a", "template1.public.a"]);
        assert_eq!(last(one.labels()), "public.b");
        let mut two: Table<WholeTableRow> =
            rows.into_iter().chain([row(6, "x", "z")]).collect::<Vec<_>>().into();
        let want = ["app.public.a", "template1.public.a"];
        assert_eq!(two.labels()[..2], want);
        assert_eq!(last(two.labels()), "x.public.z");
        assert_eq!(two.label_of(&two.rows[3]), "app.public.b");
        // However many are shown.
        two.arrange(Sort::Name, 1);
        assert_eq!(two.labels(), ["app.public.a"]);
    }
}
