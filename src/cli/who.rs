//! Who writes the WAL: the names that a data directory has, and how many rows are kept in which order.

use super::args::StatsArgs;
use super::read::Read;
use crate::analyse::dimension::Dimensions;
use crate::analyse::finished::{Order, ROWS_MAX};
use crate::analyse::who::Who;
use crate::input::catalog::{self, Catalog, Expected};
use crate::input::discover::Found;
use crate::report::model::table::Sort;
use crate::wal::catalog::store::Store;
use clap::Args;
use std::path::PathBuf;

/// Where names of relations come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names")]
pub struct NameArgs {
    /// The cluster's data directory, for names of relations [default: the one that PATH is, or lies in]
    #[arg(long, value_name = "DIR")]
    pub data_directory: Option<PathBuf>,
}

/// The catalogs of the data directory, if names are asked for and there is one.
pub fn known(
    args: &StatsArgs,
    found: &Found,
    asked: &Dimensions,
    warnings: &mut Vec<String>,
) -> Option<Catalog> {
    let directory = args.names.data_directory.as_ref().or(found.data_directory.as_ref());
    let directory = directory.filter(|_| Who::needs_names(asked))?;
    catalog::read(directory, &Expected::default(), warnings)
}

/// The catalogs, if they are those of the WAL; else none.
pub fn store_of(known: Option<Catalog>, read: &Read, warnings: &mut Vec<String>) -> Store {
    let (version, geometry) = (read.plan.version(), &read.plan.geometry);
    let Some(known) = known else { return Store::new(version) };
    if known.control.system_identifier == geometry.system_identifier
        && known.version.magic == version.magic
    {
        return known.store;
    }
    warnings.push(format!(
        "the data directory is of cluster {} of release {}, expected {} of release {}, that of the \
         WAL: its names are not used",
        known.control.system_identifier,
        known.version.name,
        geometry.system_identifier,
        version.name
    ));
    Store::new(version)
}

/// How many transactions are kept as rows.
pub fn rows(args: &StatsArgs) -> usize {
    args.tables.top.filter(|top| *top > 0).unwrap_or(ROWS_MAX)
}

pub fn order(sort: Sort) -> Order {
    match sort {
        Sort::Bytes => Order::Bytes,
        Sort::Count => Order::Count,
        Sort::Fpi => Order::Fpi,
        Sort::Name => Order::Xid,
    }
}
