//! Who writes the WAL: reads with the dimensions of relations, blocks and transactions where they
//! were asked for, and with the names that a data directory has.

use super::Failure;
use super::args::StatsArgs;
use super::name_args::Known;
use super::read::{Read, Statistics, found, read_found};
use super::relation;
use crate::analyse::dimension::Dimensions;
use crate::analyse::finished::{Order, ROWS_MAX};
use crate::analyse::select::Filters;
use crate::analyse::who::{Counted, Who};
use crate::report::model::table::Sort;
use crate::scan::outcome::Outcome;

/// All that can be counted.
pub type Full = (Statistics, Who);

/// What was read, and who wrote it as far as that was asked for.
pub struct ReadWho {
    /// What was left out.
    pub filters: Filters,
    /// What was read.
    pub read: Read,
    /// Who wrote it.
    pub who: Counted,
    /// Why names are missing.
    pub warnings: Vec<String>,
}

impl ReadWho {
    /// Puts together what was read and what is `known` of names.
    pub fn of(read: Read<Full>, filters: Filters, known: Known) -> ReadWho {
        let Read { paths, plan, scanned } = read;
        let (scanned, who) = split(scanned);
        let (who, warnings) = known.finish(who, &plan);
        ReadWho { filters, who, read: Read { paths, plan, scanned }, warnings }
    }
}

/// Reads the WAL and counts what was asked for.
pub fn read_who(args: &StatsArgs, asked: &Dimensions) -> Result<ReadWho, Failure> {
    let (filters, named) = relation::filters(&args.source, &args.filters, &args.names)?;
    let mut result = read_filtered(args, filters, asked)?;
    // Of the records that filters leave over fewer names can be learnt than of all.
    if let Some(named) = named {
        (result.who.names, result.warnings) = named;
    }
    Ok(result)
}

fn read_filtered(
    args: &StatsArgs,
    filters: Filters,
    asked: &Dimensions,
) -> Result<ReadWho, Failure> {
    let found = found(&args.source)?;
    // Before the WAL: then all that a running server changes meanwhile is in the WAL.
    let known = Known::of(&args.names, &found, asked);
    let prototype = prototype(args, asked, &known);
    if prototype.1.is_nothing() {
        let Read { paths, plan, scanned } =
            read_found(&args.source, found, &filters, &Statistics::default())?;
        let scanned = scanned.map(|statistics| (statistics, Who::default()));
        return Ok(ReadWho::of(Read { paths, plan, scanned }, filters, known));
    }
    let read = read_found(&args.source, found, &filters, &prototype)?;
    Ok(ReadWho::of(read, filters, known))
}

/// What is counted, empty.
pub fn prototype(args: &StatsArgs, asked: &Dimensions, known: &Known) -> Full {
    let who = Who::new(asked, rows(args), order(args.tables.sort), known.store());
    let who = who.with_subtransactions(&known.subtransactions);
    (Statistics::default(), who)
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
