//! Names of relations: what is known of them before the WAL is read, put together with what it teaches.

use super::settings::pace;
use std::collections::BTreeSet;
use std::path::PathBuf;
use walstat_analyse::checkpoint::server::KnownPace;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::who::{Counted, Who};
use walstat_names::catalog::listing::Listing;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::Source;
use walstat_names::catalog::store::Store;
use walstat_names::data_directory;
use walstat_names::data_directory::{Catalog, Expected, subtransactions};
use walstat_names::names_file;
#[cfg(feature = "server")]
use walstat_names::server;
use walstat_names::server_settings;
use walstat_names::server_settings::ServerSettings;
use walstat_read::input::discover::Found;
use walstat_read::input::piece::vote;
use walstat_read::input::plan::Plan;

/// Where names come from. Of each relation the best source is taken, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// The cluster's data directory; else the one that the WAL lies in.
    pub data_directory: Option<PathBuf>,
    /// A running server, all databases of its cluster.
    #[cfg(feature = "server")]
    pub server: Option<RunningServer>,
    /// Files of names.
    pub names: Vec<PathBuf>,
    /// Files of names that were read before, with what stands in them.
    pub contents: Vec<(String, Vec<u8>)>,
}

/// A server that is asked for names.
#[cfg(feature = "server")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    /// Its connection string.
    pub dsn: String,
    /// What warnings call it.
    pub name: String,
}

/// What is known before the WAL is read.
#[derive(Default)]
pub struct Known {
    catalog: Option<Catalog>,
    /// Subtransactions with their parents.
    pub subtransactions: Vec<(u32, u32)>,
    listings: Vec<Listing>,
    /// What warnings call the server that was asked.
    server_name: String,
    settings: Option<ServerSettings>,
    /// What is missing or cannot be relied on.
    pub(crate) warnings: Vec<String>,
}

impl Known {
    /// What `asked` needs of all sources.
    pub fn of(sources: &Sources, found: &Found, asked: &Dimensions) -> Known {
        let known = if Who::needs_names(asked) {
            Known::names(sources, found, asked)
        } else {
            Known::default().with_subtransactions(sources, found, asked)
        };
        known.with_settings(sources, found)
    }

    fn with_settings(mut self, sources: &Sources, found: &Found) -> Known {
        let directory = sources.data_directory.as_ref().or(found.data_directory.as_ref());
        let mut warnings = Vec::new();
        self.settings =
            directory.and_then(|directory| server_settings::read(directory, &mut warnings));
        // What concerns the names too has been said of them.
        warnings.retain(|warning| !self.warnings.contains(warning));
        self.warnings.extend(warnings);
        self
    }

    /// The settings of the server, if it is the one that wrote the WAL.
    pub(crate) fn settings(&self, plan: &Plan) -> Option<&ServerSettings> {
        let cluster = plan.geometry.system_identifier;
        self.settings.as_ref().filter(|settings| settings.system_identifier == cluster)
    }

    /// The cluster of these settings, and when they begin checkpoints.
    pub fn server(&self) -> Option<(u64, KnownPace)> {
        let settings = self.settings.as_ref()?;
        Some((settings.system_identifier, pace(settings)?))
    }

    /// The same, with names whether they are asked for or not.
    pub fn names(sources: &Sources, found: &Found, asked: &Dimensions) -> Known {
        let mut known = Known::default();
        let directory = sources.data_directory.as_ref().or(found.data_directory.as_ref());
        known.catalog = directory.and_then(|directory| {
            data_directory::read(directory, &Expected::default(), &mut known.warnings)
        });
        #[cfg(feature = "server")]
        known.ask(sources);
        let files = sources.names.iter();
        let lists = files.filter_map(|path| names_file::read(path, &mut known.warnings));
        known.listings.extend(lists);
        for (name, bytes) in &sources.contents {
            known.listings.push(names_file::parse(bytes, Source::File, name, &mut known.warnings));
        }
        known.with_subtransactions(sources, found, asked)
    }

    #[cfg(feature = "server")]
    fn ask(&mut self, sources: &Sources) {
        let Some(RunningServer { dsn, name }) = &sources.server else { return };
        self.listings.extend(server::read(dsn, name, &mut self.warnings));
        self.server_name.clone_from(name);
    }

    fn with_subtransactions(
        mut self,
        sources: &Sources,
        found: &Found,
        asked: &Dimensions,
    ) -> Known {
        let directory = sources.data_directory.as_ref().or(found.data_directory.as_ref());
        let directory = directory.filter(|_| asked.contains(&Dimension::Transaction));
        if let (Some(directory), Some(geometry)) = (directory, vote(&found.pieces)) {
            let cluster = geometry.system_identifier;
            self.subtransactions = subtransactions::read(directory, cluster, &mut self.warnings);
        }
        self
    }

    /// The rows of the catalogs.
    pub fn store(&self) -> Option<&Store> {
        self.catalog.as_ref().map(|catalog| &catalog.store)
    }

    /// What `who` counted, with the names that are known put together, as far as they are of the
    /// cluster of the WAL; and what there is to be said of them.
    pub fn finish(mut self, who: Who, plan: &Plan) -> (Counted, Vec<String>) {
        let cluster = plan.geometry.system_identifier;
        let there = self.catalog.as_ref().map(|catalog| catalog.databases.clone());
        let store = self.take_store(plan);
        let mut counted = who.finish(store);
        for oid in there.into_iter().flat_map(|there| &counted.databases() - &there) {
            // Of one that was dropped nothing is known, and nothing is missing.
            if let Some(name) = counted.names.database(oid) {
                self.warnings.push(format!(
                    "the data directory has no files of database {name} ({oid}): the names of its \
                     relations are those that the WAL teaches"
                ));
            }
        }
        let files = || counted.files();
        let seen = if self.listings.is_empty() { BTreeSet::new() } else { files() };
        for listing in &self.listings {
            match listing.system_identifier {
                Some(other) if other != cluster => self.warnings.push(format!(
                    "{}: the server is of cluster {other}, expected {cluster}, that of the WAL: its \
                     names are not used",
                    self.server_name
                )),
                _ => counted.names.add(listing, &seen),
            }
        }
        self.warnings.dedup();
        (counted, self.warnings)
    }

    /// The names where there is no WAL; and what there is to be said of them.
    pub fn without_wal(self) -> (Names, Vec<String>) {
        let mut names = self.catalog.map(|catalog| catalog.store.names()).unwrap_or_default();
        for listing in &self.listings {
            names.add(listing, &BTreeSet::new());
        }
        (names, self.warnings)
    }

    /// The catalogs, if they are those of the WAL; else none.
    fn take_store(&mut self, plan: &Plan) -> Store {
        let (version, geometry) = (plan.version(), &plan.geometry);
        let Some(known) = self.catalog.take() else { return Store::new(version) };
        if known.control.system_identifier == geometry.system_identifier
            && known.version.magic == version.magic
        {
            return known.store;
        }
        self.warnings.push(format!(
            "the data directory is of cluster {} of release {}, expected {} of release {}, that of the \
             WAL: its names are not used",
            known.control.system_identifier,
            known.version.name,
            geometry.system_identifier,
            version.name
        ));
        Store::new(version)
    }
}
