//! The report and `--stats`: read, build the model, write it.

use super::args::{Format, RowBy, StatsArgs};
use super::counted::{ReadFull, read_full};
use super::output::{spare_inputs, write_to, write_unstyled};
use super::{Exit, Failure, partial};
use crate::analyse::dimension::{Dimension, Dimensions};
use crate::analyse::select::Filters;
use crate::render;
use crate::render::style::Show;
use crate::render::visible::visible;
use crate::report::build::{Counted, Request, build};
use crate::report::estimate::estimates;
use crate::report::model::table::Top;
use crate::report::model::view::View;
use crate::report::model::{CommandName, Report, Unreadable};
use crate::report::when;
use crate::report::who::{self, By};
use std::io::Write;
use std::time::Instant;

/// Rows of a long table for people.
const TOP_DEFAULT: usize = 20;
/// Record types in the report without `--stats`.
const TOP_IN_REPORT: usize = 8;

/// Runs the report, or `--stats`.
pub fn run(args: &StatsArgs) -> Result<Exit, Failure> {
    if args.partial {
        return partial::write(args);
    }
    run_on(args, || {
        spare_inputs(args.show.output.as_deref(), args.source.inputs())?;
        read_full(args, (command(args), &dimensions(args)))
    })
}

/// The same of what `read` reads.
pub fn run_on(
    args: &StatsArgs,
    read: impl FnOnce() -> Result<ReadFull, Failure>,
) -> Result<Exit, Failure> {
    let result = report(args, read);
    if let Err(failure) = &result
        && failure.is_unreadable()
        && !args.show.is_silent()
    {
        let answer = Unreadable::new(command(args), failure.to_string());
        let output = args.show.output.as_deref();
        let write = |out: &mut dyn Write| match args.tables.format {
            Format::Json => render::json::render(&answer, out),
            Format::Ndjson => render::ndjson::unreadable(&answer, out),
            Format::Openmetrics => render::openmetrics::unreadable(out),
            Format::Table | Format::Csv | Format::Markdown | Format::PgWaldump => Ok(()),
        };
        if args.tables.format.is_collected() {
            write_unstyled(output, write)?;
        }
    }
    result
}

fn report(
    args: &StatsArgs,
    read: impl FnOnce() -> Result<ReadFull, Failure>,
) -> Result<Exit, Failure> {
    check_usage(args)?;
    let begun = Instant::now();
    let ReadFull { read, who, when: found, sample, warnings } = read()?;
    args.when.check(found.as_ref())?;
    let request = request(args, read.filters);
    let origin = when::Origin::of(&read.plan);
    let overview = found.as_ref().filter(|_| request.command == CommandName::Report);
    let overview = overview.map(|found| when::overview(found, origin));
    let statistics = &read.scanned.observer;
    let cycles = found.as_ref().and_then(|found| found.cycles.as_ref());
    let estimates = sample.and_then(|sample| estimates(&sample, cycles, &statistics.0));
    let counted = Counted { statistics, overview, estimates };
    let mut draft = build(read.paths, &read.plan, &read.scanned, counted, &request);
    if let Some(found) = found {
        let questions = args.when.questions(args.source.range.tz.as_ref());
        when::fill(&mut draft.report, found, &request.dimensions, &questions, origin);
    }
    if [Format::Csv, Format::PgWaldump].contains(&args.tables.format) {
        // They have no place for notes.
        warnings.iter().for_each(|warning| eprintln!("walstat: {}", visible(warning)));
    }
    draft.report.notes.extend(warnings);
    let by = args.tables.by.map_or(By::Table, |RowBy::Parent| By::Parent);
    let rows = who::Rows { by, sort: args.tables.sort, shown: rows_shown(args) };
    who::fill(&mut draft.report, who, &request.dimensions, rows, read.plan.version());
    let mut view = draft.conclude();
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    arrange(&mut view.report, args);
    show(&view, args)?;
    Ok(if view.report.problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// What clap cannot check: options that contradict each other.
fn check_usage(args: &StatsArgs) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    let dimensions = args.dimensions().len();
    match args.tables.format {
        Format::Csv if dimensions != 1 => usage("--format csv takes one --stats=DIM"),
        Format::PgWaldump if dimensions != 1 => usage("--format pg_waldump takes one --stats=DIM"),
        _ => Ok(()),
    }
}

/// Which command these arguments are.
pub fn command(args: &StatsArgs) -> CommandName {
    if args.stats.is_empty() { CommandName::Report } else { CommandName::Stats }
}

/// What is asked for.
fn request(args: &StatsArgs, filters: Filters) -> Request {
    Request {
        command: command(args),
        dimensions: dimensions(args),
        checksums_verified: !args.source.no_verify_checksums,
        start: args.source.range.start,
        filters,
    }
}

/// What there are to be tables of.
pub fn dimensions(args: &StatsArgs) -> Dimensions {
    let mut dimensions = args.dimensions();
    if command(args) == CommandName::Report {
        dimensions.insert(Dimension::Record);
        dimensions.insert(Dimension::Table);
        if [Format::Json, Format::Ndjson, Format::Openmetrics].contains(&args.tables.format) {
            dimensions.insert(Dimension::Rmgr);
        }
    }
    dimensions
}

/// How many rows of a table are shown; 0: all.
pub fn rows_shown(args: &StatsArgs) -> usize {
    let usual = match args.tables.format {
        Format::Json | Format::Ndjson | Format::Csv | Format::PgWaldump => 0,
        Format::Table if args.stats.is_empty() => TOP_IN_REPORT,
        Format::Table | Format::Markdown | Format::Openmetrics => TOP_DEFAULT,
    };
    args.tables.top.unwrap_or(usual)
}

/// Puts the tables into the order and length asked for. The official tool has an order of its
/// own.
fn arrange(report: &mut Report, args: &StatsArgs) {
    if args.tables.format == Format::PgWaldump {
        return;
    }
    // There are few resource managers: all are shown unless fewer are asked for.
    let few = args.tables.top.unwrap_or(0);
    report.arrange(args.tables.sort, Top { rmgrs: few, buckets: few, others: rows_shown(args) });
}

fn show(view: &View, args: &StatsArgs) -> Result<(), Failure> {
    if args.tables.format == Format::PgWaldump
        && let Some((line, true)) = &view.official.skip_line
    {
        eprintln!("{line}");
    }
    if args.show.is_silent() {
        return Ok(());
    }
    let style = args.show.style(args.tables.show_main_data);
    let output = args.show.output.as_deref();
    let write = |out: &mut dyn Write| write_format(view, args, &style, out);
    match args.tables.format {
        Format::Table => write_to(output, args.show.color, write),
        Format::Markdown => write_unstyled(output, write),
        Format::Json | Format::Ndjson | Format::Openmetrics => write_unstyled(output, write),
        Format::Csv | Format::PgWaldump => {
            write_unstyled(output, write)?;
            tell_problems(&view.report, &style);
            Ok(())
        }
    }
}

/// How many problems are told beside a format that has no place for them.
const PROBLEMS_TOLD: usize = 10;

fn tell_problems(report: &Report, style: &Show) {
    // Where standard error is closed nothing can be told.
    let _ = render::closing::problems(report, PROBLEMS_TOLD, style, &mut anstream::stderr());
}

fn write_format(
    view: &View,
    args: &StatsArgs,
    style: &Show,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match args.tables.format {
        Format::Table if args.stats.is_empty() => render::screen::render(view, style, out),
        Format::Table => render::table::render(view, style, out),
        Format::Markdown => render::markdown::render(view, style, out),
        Format::Json => render::json::render(&view.report, out),
        Format::Ndjson => render::ndjson::render(&view.report, out),
        Format::Csv => render::csv::render(&view.report, out),
        Format::Openmetrics => render::openmetrics::render(&view.report, out),
        Format::PgWaldump => render::pg_waldump::render(view, out),
    }
}
