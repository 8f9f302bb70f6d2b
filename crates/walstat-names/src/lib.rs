//! Names of relations, schemas, databases and tablespaces, for WAL that has only numbers: from the
//! system catalogs in the WAL itself, in a data directory, in a names file, on a server.
//!
//! | module | holds |
//! | --- | --- |
//! | [`catalog`] | rows of the catalogs, which of them count, and the names that they make |
//! | [`catalog::catalog_changes`] | what the WAL changes in the catalogs |
//! | [`catalog::names`] | what is asked for a name: by file, by oid |
//! | [`catalog::listing`] | names as rows of a list, as `walstat names` prints them |
//! | [`data_directory`] | the catalogs, the commit log and the multixacts of a data directory, as files |
//! | [`names_file`] | names in CSV, TSV or JSON, and the query that a server answers with them |
//! | [`server_settings`] | the settings in a data directory that WAL depends on |
//! | [`wal_keepers`] | what a server keeps in `pg_wal`, and what for |
//! | `server` (feature `server`) | names from a running server |
//!
//! A DBA's words: `pg_class` and its kin are read by [`catalog::row`]; `pg_filenode.map`, `pg_xact`,
//! `pg_multixact` and `pg_subtrans` in [`data_directory`]; a *relfilenode* becomes a name by
//! [`catalog::names::Names::relation`]; whether a row is *visible* follows from
//! [`catalog::xid_status`].

#![warn(unreachable_pub)]

#[macro_use]
extern crate walstat_format;

pub mod catalog;
pub mod data_directory;
pub mod names_file;
#[cfg(feature = "server")]
pub mod server;
pub mod server_settings;
pub mod wal_keepers;
