//! Everything that can be counted: who writes the WAL and when, as far as that was asked for. What
//! nobody asked for costs nothing: the loop over the records is compiled without it.

use super::Failure;
use super::args::StatsArgs;
use super::read::{self, Read, Statistics, found};
use super::span::Window;
use super::{relation, who};
use crate::analyse::dimension::Dimensions;
use crate::analyse::large::{Large, LargeTransaction};
use crate::analyse::sample::{self, Sample};
use crate::analyse::select::Filters;
use crate::analyse::when::{self, When};
use crate::analyse::who::{Counted, Who};
use crate::input::discover::Found;
use crate::report::known::Known;
use crate::report::model::CommandName;
use crate::scan::record::Observe;
use crate::wal::payload::Time;

/// What advice of a report is made of: some of the images, and large transactions.
pub type Clues = (Sample, Large);

/// All that can be counted.
pub type Full = (Statistics, (Who, (Option<When>, Option<Clues>)));

/// What was read and counted.
pub struct ReadFull {
    /// What was read.
    pub read: Read,
    /// Who wrote it, as far as that was asked for.
    pub who: Counted,
    /// When it was written, as far as that was asked for.
    pub when: Option<when::Found>,
    /// Some of its images, and who wrote much at once, for the report.
    pub clues: Option<(sample::Found, Vec<LargeTransaction>)>,
    /// Why names are missing.
    pub warnings: Vec<String>,
}

impl ReadFull {
    /// Puts together what was read and what is `known` of names.
    pub fn of(read: Read<Full>, known: Known) -> ReadFull {
        let mut counted = None;
        let read = read.map(|(statistics, others)| {
            counted = Some(others);
            statistics
        });
        let (who, (when, clues)) = counted.unwrap_or_default();
        let (who, warnings) = known.finish(who, &read.plan);
        let end = read.scanned.ending.lsn;
        let when = when.map(|when| when.finish(end));
        let clues = clues.map(|(sample, large)| (sample.finish(), large.finish()));
        ReadFull { who, when, clues, read, warnings }
    }
}

/// Reads the WAL and counts what was asked for.
pub fn read_full(args: &StatsArgs, asked: (CommandName, &Dimensions)) -> Result<ReadFull, Failure> {
    let (filters, named) = relation::filters(&args.source, &args.filters, &args.names)?;
    let mut result = read_filtered(args, &filters, asked)?;
    // In a range fewer names can be learnt than in all of the WAL.
    if let Some(named) = named {
        (result.who.names, result.warnings) = named;
    }
    Ok(result)
}

fn read_filtered(
    args: &StatsArgs,
    filters: &Filters,
    (command, asked): (CommandName, &Dimensions),
) -> Result<ReadFull, Failure> {
    let found = found(&args.source)?;
    // Before the WAL: then all that a running server changes meanwhile is in the WAL.
    let known = Known::of(&args.names.sources(), &found, asked);
    let window = read::window(&args.source, &found)?;
    let times = window.as_ref().map(|window| (window.span.times.start, window.span.times.end));
    let (statistics, (who, (when, clues))) = prototype(args, (command, asked), times, &known);
    let reading = Reading { args, filters, found, window };
    let read = match (who.is_nothing(), when, clues) {
        (true, None, _) => reading.read(&statistics, |statistics| (statistics, Default::default())),
        (true, Some(when), _) => reading.read(&(statistics, when), |(statistics, when)| {
            (statistics, (Who::default(), (Some(when), None)))
        }),
        (false, None, _) => {
            reading.read(&(statistics, who), |(statistics, who)| (statistics, (who, (None, None))))
        }
        (false, Some(when), None) => reading
            .read(&(statistics, (who, when)), |(statistics, (who, when))| {
                (statistics, (who, (Some(when), None)))
            }),
        (false, Some(when), Some(clues)) => reading
            .read(&(statistics, (who, (when, clues))), |(statistics, (who, (when, clues)))| {
                (statistics, (who, (Some(when), Some(clues))))
            }),
    }?;
    Ok(ReadFull::of(read, known))
}

/// What is to be read.
struct Reading<'a> {
    args: &'a StatsArgs,
    filters: &'a Filters,
    found: Found,
    window: Option<Window>,
}

impl Reading<'_> {
    /// Counts it in copies of `prototype`, and makes everything of what was counted.
    fn read<O: Observe>(
        self,
        prototype: &O,
        full: impl FnOnce(O) -> Full,
    ) -> Result<Read<Full>, Failure> {
        let Reading { args, filters, found, window } = self;
        let read = read::read_in(&args.source, found, window, filters, prototype)?;
        Ok(read.map(full))
    }
}

/// What is counted, empty.
pub fn prototype(
    args: &StatsArgs,
    (command, asked): (CommandName, &Dimensions),
    times: Option<(Time, Time)>,
    known: &Known,
) -> Full {
    let who = Who::new(asked, who::rows(args), who::order(args.tables.sort), known.store());
    let who = who.with_subtransactions(&known.subtransactions);
    let config = match command {
        CommandName::Report => Some(overview(args, asked)),
        _ => args.when.config(asked),
    };
    let config = config.map(|config| when::Config { times, ..config });
    let clues = (command == CommandName::Report).then(Clues::default);
    (Statistics::default(), (who, (config.map(When::new), clues)))
}

/// What the report tells of when, and what its charts are made of.
fn overview(args: &StatsArgs, asked: &Dimensions) -> when::Config {
    let charts = args.when.config(asked).unwrap_or_default();
    when::Config { timeline: charts.timeline, sums: charts.sums, ..when::Config::OVERVIEW }
}
