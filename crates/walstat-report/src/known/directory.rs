//! What a data directory tells of the WAL: the catalogs with the names of relations, and the settings of
//! the server. Read once, and kept in a partial result, which is merged where there is no such directory.

use serde::{Deserialize, Serialize};
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_names::data_directory::{self, Catalog, Expected};
use walstat_names::server_settings::{self, ServerSettings};

/// What a data directory tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Directory {
    /// Where it lies.
    path: String,
    pub(super) catalog: Option<Catalog>,
    pub(super) settings: Option<ServerSettings>,
    /// What is missing or cannot be relied on.
    pub(super) warnings: Vec<String>,
}

impl Directory {
    /// Reads the catalogs of a data directory.
    pub(super) fn with_names(path: &Path) -> Directory {
        let mut directory = Directory::unread(path);
        directory.catalog =
            data_directory::read(path, &Expected::default(), &mut directory.warnings);
        directory
    }

    /// One of which nothing was read.
    pub(super) fn unread(path: &Path) -> Directory {
        let path = path.display().to_string();
        Directory { path, catalog: None, settings: None, warnings: Vec::new() }
    }

    /// The same, with the settings.
    pub(super) fn with_settings(mut self, path: &Path) -> Directory {
        let mut warnings = Vec::new();
        self.settings = server_settings::read(path, &mut warnings);
        // What concerns the names too has been said of them.
        warnings.retain(|warning| !self.warnings.contains(warning));
        self.warnings.extend(warnings);
        self
    }

    /// Of two readings of one directory the later one, if it is one directory.
    ///
    /// # Errors
    ///
    /// How each is called, where they are two.
    pub fn later(self, other: Directory) -> Result<Directory, (String, String)> {
        let names = (self.called(), other.called());
        if names.0 != names.1 {
            return Err(names);
        }
        Ok(if other.known_up_to() > self.known_up_to() { other } else { self })
    }

    /// What tells it from others.
    fn called(&self) -> String {
        let of_settings = || Some(self.settings.as_ref()?.system_identifier);
        let cluster = self.catalog.as_ref().map(|catalog| catalog.system_identifier);
        match cluster.or_else(of_settings) {
            Some(cluster) => format!("data directory {} of cluster {cluster}", self.path),
            None => format!("data directory {}", self.path),
        }
    }

    /// Up to where in the WAL its catalogs have what was written.
    fn known_up_to(&self) -> Option<Lsn> {
        self.catalog.as_ref().map(|catalog| catalog.store.known_up_to())
    }
}
