//! The lists of rows that a report has, under the names that they have in the JSON: what formats
//! that write rows alone have in common.

use serde::Serialize;
use std::io;
use walstat_report::model::{Report, Table};

/// Takes one list of rows after the other.
pub trait Take {
    /// Takes a list; `name`: its key in the JSON.
    fn rows<R: Serialize + Default>(&mut self, name: &'static str, rows: &[R]) -> io::Result<()>;
}

/// Hands over every list that was asked for, in the order of the JSON: of a dimension that has more
/// than one thing to say, its rows.
pub fn each(report: &Report, to: &mut impl Take) -> io::Result<()> {
    table("rmgrs", &report.rmgrs, to)?;
    table("records", &report.records, to)?;
    table("relations", &report.relations, to)?;
    table("tables", &report.tables, to)?;
    table("databases", &report.databases, to)?;
    table("tablespaces", &report.tablespaces, to)?;
    table("forks", &report.forks, to)?;
    if let Some(blocks) = &report.blocks {
        to.rows("blocks", &blocks.top.rows)?;
    }
    if let Some(transactions) = &report.transactions {
        to.rows("transactions", &transactions.top.rows)?;
    }
    table("kinds", &report.kinds, to)?;
    if let Some(timeline) = &report.timeline {
        to.rows("timeline", &timeline.buckets.rows)?;
    }
    table("checkpoints", &report.checkpoints, to)?;
    if let Some(recovery) = &report.recovery {
        to.rows("recovery", &recovery.cycles.rows)?;
    }
    if let Some(replication) = &report.replication {
        to.rows("replication", std::slice::from_ref(replication))?;
    }
    if let Some(commits) = &report.commits {
        to.rows("commits", std::slice::from_ref(commits))?;
    }
    if report.checks.is_some() {
        to.rows("checks", report.checks())?;
    }
    if let Some(whatif) = &report.whatif {
        to.rows("scenarios", &whatif.scenarios)?;
    }
    Ok(())
}

fn table<R: Serialize + Default>(
    name: &'static str,
    found: &Option<Table<R>>,
    to: &mut impl Take,
) -> io::Result<()> {
    found.as_ref().map_or(Ok(()), |found| to.rows(name, &found.rows))
}
