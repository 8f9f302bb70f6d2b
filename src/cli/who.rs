//! Who writes the WAL: reads with the dimensions of relations, blocks and transactions where they
//! were asked for, and with the names that a data directory has.

use super::Failure;
use super::args::StatsArgs;
use super::read::{Read, Statistics, found, read_found};
use crate::analyse::dimension::Dimensions;
use crate::analyse::finished::{Order, ROWS_MAX};
use crate::analyse::select::Filters;
use crate::analyse::who::{Counted, Who};
use crate::input::catalog::{self, Catalog, Expected};
use crate::report::model::table::Sort;
use crate::scan::outcome::Outcome;
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

/// What was read, and who wrote it as far as that was asked for.
pub struct ReadWho {
    /// What was read.
    pub read: Read,
    /// Who wrote it.
    pub who: Option<Counted>,
    /// Why names are missing.
    pub warnings: Vec<String>,
}

impl From<Read> for ReadWho {
    fn from(read: Read) -> ReadWho {
        ReadWho { read, who: None, warnings: Vec::new() }
    }
}

/// Reads the WAL and counts what was asked for.
pub fn read_who(args: &StatsArgs, filters: &Filters, asked: &Dimensions) -> Result<ReadWho, Failure> {
    let found = found(&args.source)?;
    if Who::new(asked, 0, Order::Bytes, None).is_none() {
        return Ok(read_found(&args.source, found, filters, &Statistics::default())?.into());
    }
    let mut warnings = Vec::new();
    let directory = args.names.data_directory.clone().or_else(|| found.data_directory.clone());
    // Before the WAL: then all that a running server changes meanwhile is in the WAL.
    let known = directory.as_ref().and_then(|directory| {
        catalog::read(directory, &Expected::default(), &mut warnings)
    });
    let store = known.as_ref().map(|catalog| &catalog.store);
    let Some(who) = Who::new(asked, rows(args), order(args.tables.sort), store) else {
        return Ok(read_found(&args.source, found, filters, &Statistics::default())?.into());
    };
    let prototype = (Statistics::default(), who);
    let Read { paths, plan, scanned } = read_found(&args.source, found, filters, &prototype)?;
    let (scanned, who) = split(scanned);
    let read = Read { paths, plan, scanned };
    let store = store_of(known, &read, &mut warnings);
    Ok(ReadWho { who: Some(who.finish(store, |_| None)), read, warnings })
}

/// The catalogs, if they are those of the WAL; else none.
fn store_of(known: Option<Catalog>, read: &Read, warnings: &mut Vec<String>) -> Store {
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
fn rows(args: &StatsArgs) -> usize {
    args.tables.top.filter(|top| *top > 0).unwrap_or(ROWS_MAX)
}

fn order(sort: Sort) -> Order {
    match sort {
        Sort::Bytes => Order::Bytes,
        Sort::Count => Order::Count,
        Sort::Fpi => Order::Fpi,
        Sort::Name => Order::Xid,
    }
}

fn split(scanned: Outcome<(Statistics, Who)>) -> (Outcome<Statistics>, Who) {
    let mut who = None;
    let scanned = scanned.map(|(statistics, theirs)| {
        who = Some(theirs);
        statistics
    });
    (scanned, who.unwrap_or_default())
}
