//! The catalogs under `tests/fixtures/catalogs`: of one stopped server of each release what names
//! are read from, and what the server itself said they are.

use super::fixtures::unpacked;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use walstat_format::block::RelFileLocator;
use walstat_names::catalog::names::{Names, Relation};

/// One data directory, cut down to its catalogs.
pub struct Catalogs {
    /// Its name; WAL of the same cluster may be in the sample of that name.
    pub name: String,
    /// The directory; not to be written to.
    pub directory: PathBuf,
    /// What the server said.
    pub truth: Truth,
}

/// A relation as the server described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub kind: String,
    /// The table of an index, else 0.
    pub table: u32,
}

/// What a server said of its relations, by file.
pub struct Truth {
    pub rows: BTreeMap<RelFileLocator, Row>,
    /// Names of databases by oid.
    pub databases: BTreeMap<u32, String>,
    /// TOAST tables and their tables, by database.
    pub toasts: BTreeMap<(u32, u32), u32>,
}

/// All of them.
pub fn catalogs() -> Vec<Catalogs> {
    let root = unpacked("catalogs/catalogs.tar.zst");
    let mut names: Vec<PathBuf> = fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    let one = |directory: PathBuf| Catalogs {
        name: directory.file_name().expect("a name").to_string_lossy().into_owned(),
        truth: Truth::read(&directory.join("relations.tsv")),
        directory,
    };
    names.into_iter().map(one).collect()
}

/// The one of this name, copied so that it can be spoiled.
pub fn copy_of(name: &str) -> (tempfile::TempDir, Truth) {
    let all = catalogs();
    let found = all.into_iter().find(|catalogs| catalogs.name == name).expect("a fixture");
    let copy = tempfile::tempdir().expect("a directory");
    copy_tree(&found.directory, copy.path());
    (copy, found.truth)
}

/// Copies a directory and all below it.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_tree(&path, &target)
        } else {
            fs::write(target, fs::read(&path).expect("a file")).expect("a copy")
        }
    }
}

impl Truth {
    /// Reads the rows that a server wrote, by `COPY`: tabs in names are escaped.
    pub fn read(path: &Path) -> Truth {
        let text = fs::read_to_string(path).expect("relations.tsv");
        Truth::parse(&text)
    }

    /// Columns: database, oid, relfilenode, tablespace, database oid, schema, name, kind, TOAST
    /// table, table of an index. Files are 0 for what has none.
    pub fn parse(text: &str) -> Truth {
        let mut truth =
            Truth { rows: BTreeMap::new(), databases: BTreeMap::new(), toasts: BTreeMap::new() };
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |index: usize| fields[index].parse::<u32>().expect("a number");
            let file = RelFileLocator {
                tablespace: number(3),
                database: number(4),
                relfilenode: number(2),
            };
            if file.database != 0 {
                truth.databases.insert(file.database, fields[0].to_owned());
            }
            let row = Row {
                oid: number(1),
                schema: fields[5].to_owned(),
                name: fields[6].replace("\\t", "\t"),
                kind: fields[7].to_owned(),
                table: number(9),
            };
            if number(8) != 0 {
                truth.toasts.insert((file.database, number(8)), row.oid);
            }
            truth.rows.insert(file, row);
        }
        truth
    }

    /// Whether what was found of a file is what the server said.
    fn agrees(&self, file: RelFileLocator, row: &Row, found: &Relation) -> bool {
        let owner = |table: u32| self.toasts.get(&(file.database, table)).copied().unwrap_or(table);
        let table = match row.kind.as_str() {
            "i" => owner(row.table),
            _ => owner(row.oid),
        };
        let same = found.oid == row.oid && *found.name == *row.name;
        let kind = char::from(found.kind).to_string() == row.kind && !found.is_gone;
        same && kind
            && found.schema.as_deref().is_none_or(|schema| schema == row.schema)
            && found.table.is_none_or(|found| found == table)
    }

    /// Fails if a file has another name than the server gave it. Returns how many of the server's
    /// files have their names, and how many have not.
    #[track_caller]
    pub fn named_right(&self, names: &Names, what: &str) -> (usize, usize) {
        let found: BTreeMap<_, _> = names.files().collect();
        let mut named = 0;
        for (file, row) in &self.rows {
            let Some(relation) = found.get(file) else { continue };
            let agrees = self.agrees(*file, row, relation);
            assert!(agrees, "{what}: {file:?} is {row:?}, and is called {relation:?}");
            named += 1;
        }
        (named, self.rows.len() - named)
    }

    /// The same, and fails if a relation is said to be there that the server did not name.
    #[track_caller]
    pub fn none_wrong(&self, names: &Names, what: &str) -> (usize, usize) {
        for (file, relation) in names.files() {
            // The server was asked of some databases only.
            let asked = self.databases.contains_key(&file.database);
            let is_there = self.rows.contains_key(&file) || self.has_other_file(file, relation);
            assert!(relation.is_gone || is_there || !asked, "{what}: no {file:?} {relation:?}");
        }
        self.named_right(names, what)
    }

    /// Whether the relation is there, with another file: one that it had.
    fn has_other_file(&self, file: RelFileLocator, relation: &Relation) -> bool {
        self.rows.iter().any(|(other, row)| {
            other.database == file.database
                && row.oid == relation.oid
                && *row.name == *relation.name
        })
    }

    /// Fails unless every file has the name that the server gave it, in every respect.
    #[track_caller]
    pub fn all_right(&self, names: &Names, what: &str) {
        assert_eq!(self.none_wrong(names, what), (self.rows.len(), 0), "{what}");
        for (file, row) in &self.rows {
            let relation = names.relation(*file).expect("a relation");
            assert_eq!(relation.schema.as_deref(), Some(&*row.schema), "{what}: {row:?}");
            assert!(relation.table.is_some(), "{what}: {row:?}");
        }
        for (database, name) in &self.databases {
            assert_eq!(names.database(*database), Some(&**name), "{what}");
        }
    }
}
