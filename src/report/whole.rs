//! The report with all that the rules look at: what is counted for it, and how it is put together.

use super::build::{Counted, Draft, Request, build};
use super::estimate::estimates;
use super::known::Known;
use super::model::CommandName;
use super::model::table::Sort;
use super::{when as told_when, who as told_who};
use crate::analyse::clock::Clock;
use crate::analyse::dimension::{Dimension, Dimensions};
use crate::analyse::finished::Order;
use crate::analyse::large::Large;
use crate::analyse::sample::Sample;
use crate::analyse::totals::RecordTable;
use crate::analyse::when::{self, When};
use crate::analyse::who::Who;
use crate::input::plan::Plan;
use crate::scan::outcome::Outcome;

/// What is counted for every command.
pub type Statistics = (RecordTable, Clock);

/// What is counted for an overview: who wrote the WAL is not in it.
pub type Overview = (Statistics, When);

/// What is counted for the whole.
pub type Whole = (Statistics, (Who, (When, (Sample, Large))));

/// What the rules need tables of.
pub fn dimensions() -> Dimensions {
    Dimensions::from([Dimension::Rmgr, Dimension::Record, Dimension::Table])
}

/// What is counted for an overview, empty.
pub fn overview() -> Overview {
    (Statistics::default(), When::new(when::Config::OVERVIEW))
}

/// Puts an overview together, but for its advice.
pub fn overview_draft(
    paths: Vec<String>,
    plan: &Plan,
    outcome: Outcome<Overview>,
    request: &Request,
) -> Draft {
    let mut when = When::default();
    let outcome = outcome.map(|(statistics, counted)| {
        when = counted;
        statistics
    });
    let found = when.finish(outcome.ending.lsn);
    let overview = Some(told_when::overview(&found, told_when::Origin::of(plan)));
    let counted = Counted { overview, ..Counted::from(&outcome.observer) };
    build(paths, plan, &outcome, counted, request)
}

/// What is counted for the whole, empty; with what is `known` of names.
pub fn prototype(known: &Known) -> Whole {
    let who = Who::new(&dimensions(), 0, Order::Bytes, known.store());
    let (statistics, when) = overview();
    (statistics, (who, (when, Default::default())))
}

/// Puts the whole report together, but for its advice.
pub fn draft(
    paths: Vec<String>,
    plan: &Plan,
    outcome: Outcome<Whole>,
    known: Known,
    request: &Request,
) -> Draft {
    let mut counted = None;
    let outcome = outcome.map(|(statistics, others)| {
        counted = Some(others);
        statistics
    });
    let (who, (when, (sample, large))) = counted.unwrap_or_default();
    let found = when.finish(outcome.ending.lsn);
    let statistics = &outcome.observer;
    let counted = Counted {
        statistics,
        overview: Some(told_when::overview(&found, told_when::Origin::of(plan))),
        estimates: estimates(&sample.finish(), found.cycles.as_ref(), &statistics.0),
        large: Some(large.finish()),
    };
    let mut draft = build(paths, plan, &outcome, counted, request);
    if request.command == CommandName::Report {
        draft.report.notes.extend(told_when::notes(&found));
    }
    let (who, warnings) = known.finish(who, plan);
    draft.report.notes.extend(warnings);
    let rows = told_who::Rows { by: told_who::By::Table, sort: Sort::Bytes, shown: 0 };
    told_who::fill(&mut draft.report, who, &request.dimensions, rows, plan.version());
    draft
}
