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

use super::control::{self, Control};
use crate::wal::block::RelFileLocator;
use crate::wal::catalog::event::rows_of_page;
use crate::wal::catalog::layout::NAME_BYTES;
use crate::wal::catalog::row::{Mark, RowVersion};
use crate::wal::catalog::store::Store;
use crate::wal::catalog::{CatalogTable, GLOBAL_TABLESPACE};
use crate::wal::payload::relmap::RelMap;
use crate::wal::version::{VERSIONS, Version};
use commit_log::CommitLog;
use databases::Home;
use multixacts::Multixacts;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// What the WAL says that the names are wanted for; `None` where nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected {
    /// The cluster.
    pub system_identifier: Option<u64>,
    /// The release.
    pub version: Option<&'static Version>,
}

/// The catalogs of a data directory.
#[derive(Debug)]
pub struct Catalog {
    /// What `pg_control` says.
    pub control: Control,
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

fn warning(path: &Path, what: impl Display) -> String {
    format!("{}: {what}", path.display())
}

/// Whose the directory is, and of which release; `Err` says what is wrong with that.
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
fn release(directory: &Path) -> Result<&'static Version, String> {
    let path = directory.join("PG_VERSION");
    let text = read_at_most(&path, 16).map_err(|error| warning(&path, error))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let found = VERSIONS.iter().find(|version| version.name.eq(text.trim_end()));
    found.ok_or_else(|| {
        let text = text.trim_end().escape_debug();
        warning(&path, format!("found release '{text}', expected one that is read"))
    })
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
    let homes = databases::find(directory, version, &control, reader.warnings);
    for home in &homes {
        reader.read_home(home);
    }
    let store = reader.store;
    let databases = homes.iter().map(|home| home.database).collect();
    Catalog { control, version, store, databases }
}

/// A map that a server is just replacing is read again.
const MAP_TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);
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
    fn read_home(&mut self, home: &Home) {
        if !self.read_map(home) {
            return;
        }
        let tables = CatalogTable::ALL.into_iter();
        for table in tables.filter(|table| table.is_shared() == home.is_shared()) {
            let files = self.files_of(home, table);
            for file in files {
                self.read_table(home, table, file);
            }
        }
    }

    fn read_map(&mut self, home: &Home) -> bool {
        let path = home.path.join("pg_filenode.map");
        let mut tries = 1;
        let text = loop {
            let bytes = match read_at_most(&path, MAP_BYTES) {
                Ok(bytes) => bytes,
                Err(error) => break error.to_string(),
            };
            match RelMap::parse(&bytes) {
                Ok(map) => {
                    let files = map.mappings.iter().collect();
                    self.store.put_map(home.database, home.tablespace, files);
                    return true;
                }
                Err(fault) if tries == MAP_TRIES => break fault.to_string(),
                Err(_) => tries += 1,
            }
            std::thread::sleep(PAUSE);
        };
        self.warnings.push(warning(&path, text));
        false
    }

    /// The files that a table has, or may have: more than one where a rewrite has not ended.
    fn files_of(&self, home: &Home, table: CatalogTable) -> Vec<RelFileLocator> {
        let file = |relfilenode| RelFileLocator {
            tablespace: home.tablespace,
            database: home.database,
            relfilenode,
        };
        if table.is_mapped() {
            return vec![file(self.store.mapped(home.database, table.oid()))];
        }
        let class = file(self.store.mapped(home.database, CatalogTable::Class.oid()));
        self.store.relfilenodes(class, table.oid()).into_iter().map(file).collect()
    }

    fn read_table(&mut self, home: &Home, table: CatalogTable, file: RelFileLocator) {
        let path = home.path.join(file.relfilenode.to_string());
        let (reader, mut strange) = (pages::Pages::new(&path, self.control), Strange::default());
        let outcome = reader.read(|block, page| {
            let (rows, strange_rows) = rows_of_page(page, table, self.version.catalog);
            strange.note(block, strange_rows);
            self.ask_fates(&rows);
            self.store.put_page(file, table, block, page.header().lsn, rows);
        });
        self.warnings.extend(outcome.warnings);
        if let Some(text) = strange.text(table) {
            self.warnings.push(warning(&path, text));
        }
        // pg_inherits alone may be empty.
        if outcome.pages == 0 && outcome.is_whole && table != CatalogTable::Inherits {
            let text = format!("found no page, expected the rows of {}", table.name());
            self.warnings.push(warning(&path, text));
        }
        let is_whole = outcome.is_whole && strange.rows == 0;
        self.store.put_file(file, table, is_whole);
    }

    /// Looks up what became of the transactions that the rows do not know it of.
    fn ask_fates(&mut self, rows: &[(u16, RowVersion)]) {
        for (_, row) in rows {
            self.ask(row.inserter());
            self.ask(row.deleter());
        }
    }

    fn ask(&mut self, mark: Mark) {
        let xid = match mark {
            Mark::Ask(xid) => xid,
            Mark::AskMulti(multixact) => {
                let Some(updater) = self.multixacts.updater(multixact, self.warnings) else {
                    return;
                };
                self.store.note_multixact(multixact, updater);
                let Some(xid) = updater else { return };
                xid
            }
            Mark::None | Mark::Committed | Mark::Aborted => return,
        };
        let fate = self.commit_log.fate(xid, self.warnings);
        self.store.fates_mut().note(xid, fate);
    }
}

/// Rows that cannot be those of their table: of a page that was torn, or is another one's.
#[derive(Default)]
struct Strange {
    rows: usize,
    first: u32,
}

impl Strange {
    fn note(&mut self, block: u32, rows: usize) {
        if self.rows == 0 && rows > 0 {
            self.first = block;
        }
        self.rows += rows;
    }

    fn text(&self, table: CatalogTable) -> Option<String> {
        let Strange { rows, first } = self;
        let text =
            || format!("found {rows} rows from block {first} on that are none of {}", table.name());
        (*rows > 0).then(text)
    }
}

/// Opens a file of a data directory. Whatever else lies there under its name, a pipe that nobody
/// writes to, say, is not waited for.
fn open(path: &Path) -> std::io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(std::io::Error::other("found something else, expected a file")),
    }
}

fn read_at_most(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the shared catalogs lie.
fn global(directory: &Path) -> Home {
    Home { database: 0, tablespace: GLOBAL_TABLESPACE, path: directory.join("global") }
}
