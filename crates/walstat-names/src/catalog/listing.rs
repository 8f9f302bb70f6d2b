//! Names as rows of a list: what a server says of its relations, what stands in a names file, and
//! what `walstat names` prints. Reads and writes no files.

use super::names::{Names, Relation};
use super::row::{Source, kind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::{GLOBAL_TABLESPACE, NAME_BYTES};
use walstat_format::ordered::CollectOrdered;

/// A relation, and one of its files. Keys are the columns of `walstat names`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Listed {
    /// Oid of its database, 0 for a shared relation.
    pub database: u32,
    /// The name of that.
    pub database_name: Option<String>,
    /// Oid of its tablespace; `None` where it has no file.
    pub tablespace: Option<u32>,
    /// The name of that.
    pub tablespace_name: Option<String>,
    /// Its file number; `None` where it has no file.
    pub relfilenode: Option<u32>,
    /// Oid.
    pub oid: u32,
    /// Schema.
    pub schema: Option<String>,
    /// Name.
    pub name: String,
    /// `relkind`; `None` where that is not known.
    pub kind: Option<char>,
    /// Oid of the table that it belongs to, its own for a table.
    pub table: Option<u32>,
    /// Oid of the table, or index, of which it is a partition or from which it inherits first.
    pub parent: Option<u32>,
    /// Where it was found; `None` where a list does not say.
    pub names_source: Option<Source>,
}

impl Listed {
    /// Its file.
    pub fn file(&self) -> Option<RelFileLocator> {
        let (tablespace, relfilenode) = (self.tablespace?, self.relfilenode?);
        Some(RelFileLocator { tablespace, database: self.database, relfilenode })
    }

    fn relation(&self, source: Source, kinds: &HashMap<(u32, u32), char>) -> Relation {
        let is_partition = self.parent.and_then(|parent| kinds.get(&(self.database, parent)));
        Relation {
            oid: self.oid,
            schema: self.schema.as_deref().map(Arc::from),
            name: self.name.as_str().into(),
            kind: self.kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(kind::UNKNOWN),
            persistence: b'p',
            table: self.table,
            parent: self.parent,
            is_partition: is_partition.is_some_and(|kind| kind::PARTITIONED.contains(kind)),
            is_gone: false,
            source,
        }
    }
}

/// A list of relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// What it is.
    pub source: Source,
    /// The cluster that it is of, where that is known.
    pub system_identifier: Option<u64>,
    /// Relations with their files.
    pub rows: Vec<Listed>,
    /// Names of databases.
    pub databases: BTreeMap<u32, String>,
    /// Names of tablespaces.
    pub tablespaces: BTreeMap<u32, String>,
    /// Relations of a database that the list does not say, by oid: schema and name.
    pub(crate) without_database: BTreeMap<u32, (String, String)>,
}

impl Listing {
    /// An empty list.
    pub fn new(source: Source) -> Listing {
        Listing {
            source,
            system_identifier: None,
            rows: Vec::new(),
            databases: BTreeMap::new(),
            tablespaces: BTreeMap::new(),
            without_database: BTreeMap::new(),
        }
    }

    /// Takes the names of databases and tablespaces from the rows.
    pub(crate) fn with_rows(mut self, rows: Vec<Listed>) -> Listing {
        for row in &rows {
            if let Some(name) = row.database_name.as_ref().filter(|_| row.database != 0) {
                self.databases.entry(row.database).or_insert_with(|| name.clone());
            }
            if let (Some(oid), Some(name)) = (row.tablespace, &row.tablespace_name) {
                self.tablespaces.entry(oid).or_insert_with(|| name.clone());
            }
        }
        self.rows = rows;
        self
    }

    /// The relations that rows without a database name, of files of which `seen` has those of one
    /// database only: of two databases either could be meant.
    fn placed(&self, seen: &BTreeSet<RelFileLocator>) -> Vec<Listed> {
        let mut files: BTreeMap<u32, Vec<RelFileLocator>> = BTreeMap::new();
        for file in seen {
            files.entry(file.relfilenode).or_default().push(*file);
        }
        let only = |oid: &u32| match files.get(oid)?.as_slice() {
            [file] => Some(*file),
            _ => None,
        };
        let placed = self.without_database.iter().filter_map(|(oid, (schema, name))| {
            let RelFileLocator { tablespace, database, relfilenode } = only(oid)?;
            Some(Listed {
                database,
                tablespace: Some(tablespace),
                relfilenode: Some(relfilenode),
                oid: *oid,
                schema: Some(schema.clone()),
                name: name.clone(),
                ..Listed::default()
            })
        });
        placed.collect()
    }
}

impl Names {
    /// Adds a list: of each relation the better source is kept, and the WAL where it shows the list
    /// to be older. `seen`: the files in the WAL.
    pub fn add(&mut self, listing: &Listing, seen: &BTreeSet<RelFileLocator>) {
        let kind = |row: &Listed| Some(((row.database, row.oid), row.kind?));
        let kinds: HashMap<_, _> = listing.rows.iter().filter_map(kind).collect();
        for row in &listing.rows {
            self.add_row(row, row.relation(listing.source, &kinds));
        }
        for row in listing.placed(seen) {
            let is_known = row.file().and_then(|file| self.relation(file)).is_some();
            if !is_known && !self.relations.contains_key(&(row.database, row.oid)) {
                self.add_row(&row, row.relation(listing.source, &kinds));
            }
        }
        for (oid, name) in &listing.databases {
            self.databases.entry(*oid).or_insert_with(|| name.as_str().into());
        }
        for (oid, name) in &listing.tablespaces {
            self.tablespaces.entry(*oid).or_insert_with(|| name.as_str().into());
        }
    }

    fn add_row(&mut self, row: &Listed, mut relation: Relation) {
        let (key, source) = ((row.database, row.oid), relation.source);
        if let Some(file) = row.file() {
            let known = self.files.get(&file).and_then(|oid| self.by_oid(row.database, *oid));
            if known.is_none_or(|known| known.source > source) {
                self.files.insert(file, row.oid);
            }
        }
        let had_before = |name: &str| {
            self.former.get(&key).is_some_and(|former| former.iter().any(|other| **other == *name))
        };
        let renamed = relation
            .schema
            .as_deref()
            .and_then(|schema| self.renamed_schemas.get(&(row.database, Box::from(schema))));
        relation.schema = renamed.cloned().or(relation.schema);
        match self.relations.get(&key) {
            Some(known) if known.source <= source || had_before(&row.name) => {}
            known => {
                relation.table = relation.table.or(known.and_then(|known| known.table));
                self.relations.insert(key, relation);
            }
        }
    }

    /// All relations that can be in WAL, or have partitions that can: a row for each file that
    /// they have and had.
    pub fn list(&self) -> Vec<Listed> {
        let with_file: BTreeSet<(u32, u32)> =
            self.files().map(|(file, relation)| (file.database, relation.oid)).collect_set();
        let without = self.relations().filter(|(database, relation)| {
            let is_listed = kind::PARTITIONED.contains(&char::from(relation.kind));
            is_listed && !with_file.contains(&(*database, relation.oid))
        });
        // Temporary relations write no WAL, and have files of another kind.
        let files = self.files().filter(|(_, relation)| relation.persistence != b't');
        let files = files.map(|(file, relation)| self.listed(file.database, Some(file), relation));
        let without = without.map(|(database, relation)| self.listed(database, None, relation));
        let mut rows: Vec<Listed> = files.chain(without).collect();
        rows.sort_unstable();
        rows
    }

    fn listed(&self, database: u32, file: Option<RelFileLocator>, relation: &Relation) -> Listed {
        let tablespace = file.map(|file| file.tablespace);
        Listed {
            database,
            database_name: self.database(database).map(str::to_owned),
            tablespace,
            tablespace_name: tablespace.and_then(|oid| self.tablespace(oid)).map(str::to_owned),
            relfilenode: file.map(|file| file.relfilenode),
            oid: relation.oid,
            schema: relation.schema.as_deref().map(str::to_owned),
            name: relation.name.to_string(),
            kind: (relation.kind != kind::UNKNOWN).then(|| char::from(relation.kind)),
            table: relation.table,
            parent: relation.parent,
            names_source: Some(relation.source),
        }
    }
}

/// The longest name that a server gives (`NAMEDATALEN` - 1).
const NAME_BYTES_MAX: usize = NAME_BYTES - 1;

impl Listed {
    /// A row from the texts of its columns; `Err` says what is wrong with it.
    pub(crate) fn of_columns<'t>(
        column: impl Fn(&str) -> Option<&'t str>,
    ) -> Result<Listed, String> {
        let text = |key: &str| column(key).filter(|text| !text.is_empty());
        let number = |key: &str| match text(key).map(str::parse::<u32>) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(wrong(key, text(key), "a number")),
        };
        let needed = |key: &str, expected| number(key)?.ok_or_else(|| wrong(key, None, expected));
        let name = |key: &str| text(key).map(|name| sound_name(key, name)).transpose();
        let row = Listed {
            database: needed("database", "a number")?,
            database_name: name("database_name")?,
            tablespace: number("tablespace")?,
            tablespace_name: name("tablespace_name")?,
            relfilenode: number("relfilenode")?.filter(|number| *number != 0),
            oid: needed("oid", "a number")?,
            schema: name("schema")?,
            name: name("name")?.ok_or_else(|| wrong("name", None, "a name"))?,
            kind: text("kind").map(sound_kind).transpose()?,
            table: number("table")?.filter(|oid| *oid != 0),
            parent: number("parent")?.filter(|oid| *oid != 0),
            names_source: None,
        };
        row.sound()
    }

    /// Itself, if its numbers fit each other.
    fn sound(self) -> Result<Listed, String> {
        if self.oid == 0 {
            return Err("oid: found 0, expected that of a relation".to_owned());
        }
        if self.relfilenode.is_some() && self.tablespace.is_none_or(|oid| oid == 0) {
            return Err("found a relfilenode without a tablespace, expected both".to_owned());
        }
        let is_shared = self.tablespace == Some(GLOBAL_TABLESPACE);
        if self.file().is_some() && is_shared != (self.database == 0) {
            return Err(format!(
                "found database {} in tablespace {}, expected 0 in {GLOBAL_TABLESPACE} and nowhere else",
                self.database,
                self.tablespace.unwrap_or_default()
            ));
        }
        Ok(self)
    }
}

fn wrong(key: &str, found: Option<&str>, expected: &str) -> String {
    match found {
        Some(found) => format!("{key}: found '{}', expected {expected}", found.escape_debug()),
        None => format!("{key}: found nothing, expected {expected}"),
    }
}

/// A name that a server could have given.
pub(crate) fn sound_name(key: &str, name: &str) -> Result<String, String> {
    match name.len() {
        1..=NAME_BYTES_MAX if !name.contains('\0') => Ok(name.to_owned()),
        bytes => {
            Err(format!("{key}: found {bytes} bytes, expected a name of 1 to {NAME_BYTES_MAX}"))
        }
    }
}

fn sound_kind(text: &str) -> Result<char, String> {
    let mut kinds = kind::ALL.iter().map(|kind| char::from(*kind));
    let kind = kinds.find(|kind| text.chars().eq([*kind]));
    kind.ok_or_else(|| wrong("kind", Some(text), "one of the letters of relkind"))
}
