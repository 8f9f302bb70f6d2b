//! The catalogs of a data directory, read as files: without a server, and without writing.
//!
//! A server may be running, may have crashed, or the directory may be half of a copy. What cannot
//! be read is left out, with a warning that names the file; rows whose transactions have not ended
//! stay in the store as such, so that WAL read afterwards can be applied on top. Read the catalogs
//! before the WAL: then all that a running server changes meanwhile is in the WAL.

mod commit_log;
mod databases;
mod multixacts;
mod pages;
mod slru;
pub mod subtransactions;

use crate::catalog::event::rows_of_page;
use crate::catalog::row::{HintedStatus, RowVersion};
use crate::catalog::store::Store;
use commit_log::CommitLog;
use databases::CatalogDirectory;
use multixacts::Multixacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::NAME_BYTES;
use walstat_format::catalog_layout::{CatalogTable, GLOBAL_TABLESPACE};
use walstat_format::payload::relmap::RelMap;
use walstat_format::version::{VERSIONS, Version};
use walstat_input::control::{self, Control, PAUSE, TRIES};

/// What the WAL says that the names are wanted for; `None` where nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected {
    /// The cluster.
    pub system_identifier: Option<u64>,
    /// The release.
    pub version: Option<&'static Version>,
}

/// The catalogs of a data directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalog {
    /// The cluster.
    pub system_identifier: u64,
    /// The release.
    pub version: &'static Version,
    /// The rows.
    pub store: Store,
    /// The databases that have files in it.
    pub databases: BTreeSet<u32>,
}

/// Reads the catalogs of a data directory. `None` where it is none, or that of another cluster or
/// release: `warnings` says why then, as it does for all that could not be read.
pub fn read(directory: &Path, expected: &Expected, warnings: &mut Vec<String>) -> Option<Catalog> {
    match identify(directory, expected) {
        Ok((control, version)) => Some(read_known(directory, control, version, warnings)),
        Err(warning) => {
            warnings.push(warning);
            None
        }
    }
}

pub(crate) fn warning(path: &Path, what: impl Display) -> String {
    format!("{}: {what}", path.display())
}

/// Which cluster and release the directory is of; `Err` says what is wrong with that.
fn identify(directory: &Path, expected: &Expected) -> Result<(Control, &'static Version), String> {
    let control_path = control::path(directory);
    let of_control = |what: String| warning(&control_path, what);
    let control = control::read(directory).map_err(|error| of_control(error.to_string()))?;
    if let Some(wal) = expected.system_identifier.filter(|id| *id != control.system_identifier) {
        let found = control.system_identifier;
        return Err(of_control(format!("found cluster {found}, expected {wal}, that of the WAL")));
    }
    let version = release(directory)?;
    if let Some(wal) = expected.version.filter(|wal| wal.magic != version.magic) {
        let what =
            format!("found release {}, expected {}, that of the WAL", version.name, wal.name);
        return Err(warning(&directory.join("PG_VERSION"), what));
    }
    let known = version.catalog_versions;
    if !known.contains(&control.catalog_version) {
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        return Err(of_control(format!(
            "found catalogs of version {}, expected {}, of release {}",
            control.catalog_version,
            known.join(" or "),
            version.name
        )));
    }
    if usize::try_from(control.name_bytes) != Ok(NAME_BYTES) {
        let found = control.name_bytes;
        return Err(of_control(format!("found names of {found} bytes, expected {NAME_BYTES}")));
    }
    Ok((control, version))
}

/// The release by the file that says it in one line.
pub(crate) fn release(directory: &Path) -> Result<&'static Version, String> {
    let path = directory.join("PG_VERSION");
    let text = read_at_most(&path, 16).map_err(|error| warning(&path, error))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let found = VERSIONS.iter().find(|version| version.name.eq(text.trim_end()));
    found.ok_or_else(|| {
        // The name may lead to any file: what is no number of a release is not shown.
        let number = Some(text.trim_end()).filter(|text| is_release(text));
        let found = number.map_or("no release".to_owned(), |text| format!("release '{text}'"));
        warning(&path, format!("found {found}, expected one that is read"))
    })
}

/// Whether a text may be the number of a release: `15`, `9.4`.
fn is_release(text: &str) -> bool {
    let is_number = |part: &str| part.len() <= 2 && part.parse::<u8>().is_ok();
    text.split('.').count() <= 2 && text.split('.').all(is_number)
}

fn read_known(
    directory: &Path,
    control: Control,
    version: &'static Version,
    warnings: &mut Vec<String>,
) -> Catalog {
    let mut store = Store::new(version);
    // The low half of the next xid: what rows have.
    store.set_base(control.checkpoint.redo, control.checkpoint.next_xid as u32);
    let mut reader = Reader {
        control: &control,
        version,
        commit_log: CommitLog::new(directory, version, &control),
        multixacts: Multixacts::new(directory, version, &control),
        store,
        warnings,
    };
    let directories = databases::find(directory, version, &control, reader.warnings);
    for directory in &directories {
        reader.read_directory(directory);
    }
    let store = reader.store;
    let databases = directories.iter().map(|directory| directory.database).collect();
    Catalog { system_identifier: control.system_identifier, version, store, databases }
}

/// No map is longer than that.
const MAP_BYTES: u64 = 4096;

struct Reader<'r> {
    control: &'r Control,
    version: &'static Version,
    commit_log: CommitLog,
    multixacts: Multixacts,
    store: Store,
    warnings: &'r mut Vec<String>,
}

impl Reader<'_> {
    /// Reads the catalogs of one database, or the shared ones.
    fn read_directory(&mut self, directory: &CatalogDirectory) {
        if !self.read_map(directory) {
            return;
        }
        let tables = CatalogTable::ALL.into_iter();
        for table in tables.filter(|table| table.is_shared() == directory.is_shared()) {
            let files = self.files_of(directory, table);
            for file in files {
                self.read_table(directory, table, file);
            }
        }
    }

    fn read_map(&mut self, directory: &CatalogDirectory) -> bool {
        let path = directory.path.join("pg_filenode.map");
        let mut tries = 1;
        let text = loop {
            let bytes = match read_at_most(&path, MAP_BYTES) {
                Ok(bytes) => bytes,
                Err(error) => break error.to_string(),
            };
            match RelMap::parse(&bytes) {
                Ok(map) => {
                    let files = map.mappings.iter().collect();
                    self.store.put_map(directory.database, directory.tablespace, files);
                    return true;
                }
                Err(fault) if tries == TRIES => break fault.to_string(),
                Err(_) => tries += 1,
            }
            std::thread::sleep(PAUSE);
        };
        self.warnings.push(warning(&path, text));
        false
    }

    /// The files that a table has, or may have: more than one where a rewrite has not ended.
    fn files_of(&self, directory: &CatalogDirectory, table: CatalogTable) -> Vec<RelFileLocator> {
        let file = |relfilenode| RelFileLocator {
            tablespace: directory.tablespace,
            database: directory.database,
            relfilenode,
        };
        if table.is_mapped() {
            return vec![file(self.store.mapped(directory.database, table.oid()))];
        }
        let class = file(self.store.mapped(directory.database, CatalogTable::Class.oid()));
        self.store.relfilenodes(class, table.oid()).into_iter().map(file).collect()
    }

    fn read_table(
        &mut self,
        directory: &CatalogDirectory,
        table: CatalogTable,
        file: RelFileLocator,
    ) {
        let path = directory.path.join(file.relfilenode.to_string());
        let (reader, mut unreadable) =
            (pages::Pages::new(&path, self.control), UnreadableRows::default());
        let outcome = reader.read(|block, page| {
            let (rows, unreadable_rows) = rows_of_page(page, table, self.version.catalog);
            unreadable.note(block, unreadable_rows);
            self.look_up_statuses(&rows);
            self.store.put_page(file, table, block, page.header().lsn, rows);
        });
        self.warnings.extend(outcome.warnings);
        if let Some(text) = unreadable.text(table) {
            self.warnings.push(warning(&path, text));
        }
        // pg_inherits alone may be empty.
        if outcome.pages == 0 && outcome.is_whole && table != CatalogTable::Inherits {
            let text = format!("found no page, expected the rows of {}", table.name());
            self.warnings.push(warning(&path, text));
        }
        let is_whole = outcome.is_whole && unreadable.rows == 0;
        self.store.put_file(file, table, is_whole);
    }

    /// Looks up the transactions of which the rows themselves do not say whether they committed.
    fn look_up_statuses(&mut self, rows: &[(u16, RowVersion)]) {
        for (_, row) in rows {
            self.look_up(row.inserter());
            self.look_up(row.deleter());
        }
    }

    fn look_up(&mut self, mark: HintedStatus) {
        let xid = match mark {
            HintedStatus::LookUp(xid) => xid,
            HintedStatus::LookUpMulti(multixact) => {
                let Some(updater) = self.multixacts.updater(multixact, self.warnings) else {
                    return;
                };
                self.store.note_multixact(multixact, updater);
                let Some(xid) = updater else { return };
                xid
            }
            HintedStatus::None | HintedStatus::Committed | HintedStatus::Aborted => return,
        };
        let status = self.commit_log.status(xid, self.warnings);
        self.store.xid_statuses_mut().note(xid, status);
    }
}

/// Rows that cannot be those of their table: the page was torn, or belongs to another relation.
#[derive(Default)]
struct UnreadableRows {
    rows: usize,
    first: u32,
}

impl UnreadableRows {
    fn note(&mut self, block: u32, rows: usize) {
        if self.rows == 0 && rows > 0 {
            self.first = block;
        }
        self.rows += rows;
    }

    fn text(&self, table: CatalogTable) -> Option<String> {
        let UnreadableRows { rows, first } = self;
        let text =
            || format!("found {rows} rows from block {first} on that are none of {}", table.name());
        (*rows > 0).then(text)
    }
}

/// Opens a file of a data directory. What is no regular file is refused: to open a pipe that nobody
/// writes to would wait for ever.
fn open(path: &Path) -> std::io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("found something else, expected a file"));
    }
    File::open(path)
}

pub(crate) fn read_at_most(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the shared catalogs lie.
fn global(directory: &Path) -> CatalogDirectory {
    CatalogDirectory { database: 0, tablespace: GLOBAL_TABLESPACE, path: directory.join("global") }
}
