//! Names of relations: what is known of them before the WAL is read, put together with what it teaches.

mod directory;

use super::settings::pace;
pub use directory::Directory;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use walstat_analyse::dimension::Dimensions;
use walstat_analyse::who::{Counted, Who};
use walstat_format::block::RelFileLocator;
use walstat_format::version::Version;
use walstat_names::catalog::listing::Listing;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::Source;
use walstat_names::catalog::store::Store;
use walstat_names::data_directory::{Catalog, subtransactions};
use walstat_names::names_file;
#[cfg(feature = "server")]
use walstat_names::server;
use walstat_names::server_settings::ServerSettings;
use walstat_read::input::discover::Found;
use walstat_read::input::plan::Plan;
use walstat_whatif::driver::KnownServer;

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

impl Sources {
    fn directory<'s>(&'s self, found: &'s Found) -> Option<&'s Path> {
        self.data_directory.as_deref().or(found.data_directory.as_deref())
    }
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
    directory: Option<Directory>,
    /// Subtransactions with their parents.
    pub subtransactions: Vec<(u32, u32)>,
    listings: Vec<Listing>,
    /// What warnings call the server that was asked.
    server_name: String,
    /// What is missing or cannot be relied on.
    pub(crate) warnings: Vec<String>,
}

impl Known {
    /// What `asked` needs of all sources.
    pub fn of(sources: &Sources, found: &Found, asked: &Dimensions) -> Known {
        let path = sources.directory(found);
        let read = |path: &Path| {
            if Who::needs_names(asked) {
                Directory::with_names(path).with_settings(path)
            } else {
                Directory::unread(path).with_settings(path)
            }
        };
        Known::told(path.map(read), sources, asked).with_subtransactions(path, found, asked)
    }

    /// The same, with a data directory that was read before.
    pub fn told(directory: Option<Directory>, sources: &Sources, asked: &Dimensions) -> Known {
        let known = Known::of_directory(directory);
        if Who::needs_names(asked) { known.with_lists(sources) } else { known }
    }

    /// The names alone, of all sources.
    pub fn names(sources: &Sources, found: &Found) -> Known {
        Known::names_beside(sources, found.data_directory.as_deref())
    }

    /// The same, where the WAL lies in this data directory.
    pub(crate) fn names_beside(sources: &Sources, data_directory: Option<&Path>) -> Known {
        let path = sources.data_directory.as_deref().or(data_directory);
        Known::of_directory(path.map(Directory::with_names)).with_lists(sources)
    }

    fn of_directory(directory: Option<Directory>) -> Known {
        let warnings = directory.as_ref().map(|told| told.warnings.clone()).unwrap_or_default();
        Known { directory, warnings, ..Known::default() }
    }

    /// The settings of the server, if it is the one that wrote the WAL.
    pub(crate) fn settings(&self, plan: &Plan) -> Option<&ServerSettings> {
        let cluster = plan.geometry.system_identifier;
        self.server_settings().filter(|settings| settings.system_identifier == cluster)
    }

    /// What of the settings what-if wants to know.
    pub fn server(&self) -> Option<KnownServer> {
        let settings = self.server_settings()?;
        Some(KnownServer {
            system_identifier: settings.system_identifier,
            pace: pace(settings),
            archive_timeout: settings.archive_timeout,
        })
    }

    fn server_settings(&self) -> Option<&ServerSettings> {
        self.directory.as_ref()?.settings.as_ref()
    }

    fn with_lists(mut self, sources: &Sources) -> Known {
        #[cfg(feature = "server")]
        self.ask(sources);
        let files = sources.names.iter();
        let lists = files.filter_map(|path| names_file::read(path, &mut self.warnings));
        self.listings.extend(lists);
        for (name, bytes) in &sources.contents {
            self.listings.push(names_file::parse(bytes, Source::File, name, &mut self.warnings));
        }
        self
    }

    #[cfg(feature = "server")]
    fn ask(&mut self, sources: &Sources) {
        let Some(RunningServer { dsn, name }) = &sources.server else { return };
        self.listings.extend(server::read(dsn, name, &mut self.warnings));
        self.server_name.clone_from(name);
    }

    fn with_subtransactions(
        mut self,
        directory: Option<&Path>,
        found: &Found,
        asked: &Dimensions,
    ) -> Known {
        let directory = directory.filter(|_| Who::needs_transactions(asked));
        if let (Some(directory), Some(geometry)) = (directory, found.geometry()) {
            let cluster = geometry.system_identifier;
            self.subtransactions = subtransactions::read(directory, cluster, &mut self.warnings);
        }
        self
    }

    /// The rows of the catalogs.
    pub fn store(&self) -> Option<&Store> {
        Some(&self.directory.as_ref()?.catalog.as_ref()?.store)
    }

    /// What a data directory tells, to be kept.
    pub fn into_directory(self) -> Option<Directory> {
        self.directory
    }

    fn take_catalog(&mut self) -> Option<Catalog> {
        self.directory.as_mut()?.catalog.take()
    }

    /// What `who` counted, with the names that are known put together, as far as they are of the
    /// cluster of the WAL; and what there is to be said of them.
    pub fn finish(mut self, who: Who, plan: &Plan) -> (Counted, Vec<String>) {
        let cluster = plan.geometry.system_identifier;
        let catalog = self.take_catalog();
        let there = catalog.as_ref().map(|catalog| catalog.databases.clone());
        let store = self.store_of(catalog, plan.version(), cluster);
        let mut counted = who.finish(store);
        for oid in there.into_iter().flat_map(|there| &counted.databases() - &there) {
            // Of one that was dropped nothing is known, and nothing is missing.
            if let Some(name) = counted.names.database(oid) {
                self.warnings.push(format!(
                    "the data directory has no files of database {name} ({oid}): names of its relations are \
                     learned from the WAL"
                ));
            }
        }
        let files = || counted.files();
        let seen = if self.listings.is_empty() { BTreeSet::new() } else { files() };
        self.add_lists(&mut counted.names, &seen, cluster);
        self.warnings.dedup();
        (counted, self.warnings)
    }

    /// Adds what the lists say that are of this cluster.
    fn add_lists(&mut self, names: &mut Names, seen: &BTreeSet<RelFileLocator>, cluster: u64) {
        for listing in &self.listings {
            match listing.system_identifier {
                Some(other) if other != cluster => self.warnings.push(format!(
                    "{}: the server is of cluster {other}, expected {cluster}, that of the WAL: its \
                     names are not used",
                    self.server_name
                )),
                _ => names.add(listing, seen),
            }
        }
    }

    /// The catalogs of the WAL's cluster, the names that lists have, and what there is to be said of them.
    pub fn apart(mut self, plan: &Plan) -> (Store, Names, Vec<String>) {
        let cluster = plan.geometry.system_identifier;
        let store = self.take_store(plan.version(), cluster);
        let mut names = Names::default();
        self.add_lists(&mut names, &BTreeSet::new(), cluster);
        self.warnings.dedup();
        (store, names, self.warnings)
    }

    /// The catalogs of the WAL's cluster, taken out.
    pub(crate) fn take_store(&mut self, version: &'static Version, cluster: u64) -> Store {
        let catalog = self.take_catalog();
        self.store_of(catalog, version, cluster)
    }

    /// Names by these catalogs, and by the lists that there are, which have seen these files.
    pub(crate) fn names_by(
        &mut self,
        store: &Store,
        seen: &BTreeSet<RelFileLocator>,
        cluster: u64,
    ) -> Names {
        let mut names = store.names();
        self.add_lists(&mut names, seen, cluster);
        names
    }

    /// What there is to be said of names since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.dedup();
        std::mem::take(&mut self.warnings)
    }

    /// The names where there is no WAL; and what there is to be said of them.
    pub fn without_wal(mut self) -> (Names, Vec<String>) {
        let mut names =
            self.take_catalog().map(|catalog| catalog.store.names()).unwrap_or_default();
        for listing in &self.listings {
            names.add(listing, &BTreeSet::new());
        }
        (names, self.warnings)
    }

    /// The catalogs, if they are those of the WAL; else none.
    fn store_of(
        &mut self,
        catalog: Option<Catalog>,
        version: &'static Version,
        cluster: u64,
    ) -> Store {
        let Some(known) = catalog else { return Store::new(version) };
        if known.system_identifier == cluster && known.version.magic == version.magic {
            return known.store;
        }
        self.warnings.push(format!(
            "the data directory is of cluster {} of release {}, expected {} of release {}, that of the \
             WAL: its names are not used",
            known.system_identifier,
            known.version.name,
            cluster,
            version.name
        ));
        Store::new(version)
    }
}
