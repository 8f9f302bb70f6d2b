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
use crate::input::discover::Found;
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

/// All that can be counted.
pub type Full = (Statistics, Who);

/// What was read, and who wrote it as far as that was asked for.
pub struct ReadWho {
    /// What was read.
    pub read: Read,
    /// Who wrote it.
    pub who: Counted,
    /// Why names are missing.
    pub warnings: Vec<String>,
}

impl ReadWho {
    /// Puts together what was read and what is `known` of names.
    pub fn of(read: Read<Full>, known: Option<Catalog>, mut warnings: Vec<String>) -> ReadWho {
        let Read { paths, plan, scanned } = read;
        let (scanned, who) = split(scanned);
        let read = Read { paths, plan, scanned };
        let store = store_of(known, &read, &mut warnings);
        ReadWho { who: who.finish(store, |_| None), read, warnings }
    }
}

/// Reads the WAL and counts what was asked for.
pub fn read_who(
    args: &StatsArgs,
    filters: &Filters,
    asked: &Dimensions,
) -> Result<ReadWho, Failure> {
    let found = found(&args.source)?;
    let mut warnings = Vec::new();
    // Before the WAL: then all that a running server changes meanwhile is in the WAL.
    let known = known(args, &found, asked, &mut warnings);
    let prototype = prototype(args, asked, known.as_ref());
    if prototype.1.is_nothing() {
        let Read { paths, plan, scanned } =
            read_found(&args.source, found, filters, &Statistics::default())?;
        let scanned = scanned.map(|statistics| (statistics, Who::default()));
        return Ok(ReadWho::of(Read { paths, plan, scanned }, known, warnings));
    }
    let read = read_found(&args.source, found, filters, &prototype)?;
    Ok(ReadWho::of(read, known, warnings))
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

/// What is counted, empty.
pub fn prototype(args: &StatsArgs, asked: &Dimensions, known: Option<&Catalog>) -> Full {
    let store = known.map(|catalog| &catalog.store);
    let who = Who::new(asked, rows(args), order(args.tables.sort), store);
    (Statistics::default(), who)
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

fn split(scanned: Outcome<Full>) -> (Outcome<Statistics>, Who) {
    let mut who = Who::default();
    let scanned = scanned.map(|(statistics, theirs)| {
        who = theirs;
        statistics
    });
    (scanned, who)
}
