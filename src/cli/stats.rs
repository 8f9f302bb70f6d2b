//! The report and `--stats`: read, build the model, write it.

use super::args::{Format, RowBy, StatsArgs};
use super::config::Config;
use super::counted::{ReadFull, read_full};
use super::outputs::Output;
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
    let asked = with_charts(args);
    run_on(args, &asked, || {
        args.outputs.spare(args.source.inputs())?;
        read_full(args, (command(args), &asked))
    })
}

/// The same of what `read` reads, with what was `asked` for.
pub fn run_on(
    args: &StatsArgs,
    asked: &Dimensions,
    read: impl FnOnce() -> Result<ReadFull, Failure>,
) -> Result<Exit, Failure> {
    let result = report(args, asked, read);
    if let Err(failure) = &result
        && failure.is_unreadable()
    {
        let answer = Unreadable::new(command(args), failure.to_string());
        args.outputs.answer(&args.show, |format, out| match format {
            Format::Json => Some(render::json::render(&answer, out)),
            Format::Ndjson => Some(render::ndjson::unreadable(&answer, out)),
            Format::Openmetrics => Some(render::openmetrics::unreadable(out)),
            Format::Table | Format::Csv | Format::Markdown => None,
            Format::Html | Format::PgWaldump => None,
        })?;
    }
    result
}

fn report(
    args: &StatsArgs,
    asked: &Dimensions,
    read: impl FnOnce() -> Result<ReadFull, Failure>,
) -> Result<Exit, Failure> {
    check_usage(args)?;
    let config = config(args)?;
    args.outputs.spare(config.found.as_deref())?;
    let view = view_of(args, asked, &config, read)?;
    show(&view, args)?;
    Ok(if view.report.problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// What the arguments ask for, not shown yet.
pub fn view(args: &StatsArgs) -> Result<View, Failure> {
    let asked = dimensions(args);
    check_usage(args)?;
    view_of(args, &asked, &Config::default(), || read_full(args, (command(args), &asked)))
}

fn view_of(
    args: &StatsArgs,
    asked: &Dimensions,
    config: &Config,
    read: impl FnOnce() -> Result<ReadFull, Failure>,
) -> Result<View, Failure> {
    let begun = Instant::now();
    let ReadFull { read, who, when: found, clues, warnings } = read()?;
    args.when.check(found.as_ref())?;
    let request = request(args, asked, read.filters);
    let origin = when::Origin::of(&read.plan);
    let overview = found.as_ref().filter(|_| request.command == CommandName::Report);
    let overview = overview.map(|found| when::overview(found, origin));
    let statistics = &read.scanned.observer;
    let cycles = found.as_ref().and_then(|found| found.cycles.as_ref());
    let (sample, large) = clues.unzip();
    let estimates = sample.and_then(|sample| estimates(&sample, cycles, &statistics.0));
    let counted = Counted { statistics, overview, estimates, large };
    let mut draft = build(read.paths, &read.plan, &read.scanned, counted, &request);
    if let Some(found) = found {
        let questions = args.when.questions(args.source.range.tz.as_ref());
        when::fill(&mut draft.report, found, &request.dimensions, &questions, origin);
    }
    if args.outputs.formats().all(|format| [Format::Csv, Format::PgWaldump].contains(&format)) {
        // They have no place for notes.
        warnings.iter().for_each(|warning| eprintln!("walstat: {}", visible(warning)));
    }
    draft.report.notes.extend(warnings);
    draft.report.thresholds.clone_from(&config.thresholds);
    let by = args.tables.by.map_or(By::Table, |RowBy::Parent| By::Parent);
    let rows = who::Rows { by, sort: args.tables.sort, shown: most_rows(args) };
    who::fill(&mut draft.report, who, &request.dimensions, rows, read.plan.version());
    let mut view = draft.conclude();
    let found = config.found.as_ref().filter(|_| config.has_rules);
    let found = found.map(|path| format!("thresholds of rules are from {}", path.display()));
    view.report.notes.extend(found);
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    Ok(view)
}

/// What files say of the rules: nothing where there is no advice.
fn config(args: &StatsArgs) -> Result<Config, Failure> {
    match command(args) {
        CommandName::Report => args.config.read(),
        _ => Ok(Config::default()),
    }
}

/// Options about advice where there is none.
pub fn check_rules(args: &StatsArgs) -> Result<(), Failure> {
    match args.asks_for_statistics() && args.config.are_given() {
        true => {
            let text = "--ruleset and --config are about advice, which --stats does not give";
            Err(Failure::Usage(text.to_owned()))
        }
        false => Ok(()),
    }
}

/// What clap cannot check: options that contradict each other.
fn check_usage(args: &StatsArgs) -> Result<(), Failure> {
    check_rules(args)?;
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    let dimensions = args.dimensions().len();
    let has = |format| args.outputs.has(format) && dimensions != 1;
    let of_types = [Dimension::Rmgr, Dimension::Record];
    let is_compatible = dimensions == 1 && args.dimensions().iter().all(|d| of_types.contains(d));
    match (has(Format::Csv), has(Format::PgWaldump), args.tables.json_compat) {
        (true, ..) => usage("--format csv takes one --stats=DIM"),
        (_, true, _) => usage("--format pg_waldump takes one --stats=DIM"),
        (.., Some(_)) if !args.outputs.has(Format::Json) || !is_compatible => {
            usage("--json-compat takes --format json, and --stats or --stats=record")
        }
        _ => Ok(()),
    }
}

/// Which command these arguments are.
pub fn command(args: &StatsArgs) -> CommandName {
    if args.asks_for_statistics() { CommandName::Stats } else { CommandName::Report }
}

/// What is asked for.
fn request(args: &StatsArgs, asked: &Dimensions, filters: Filters) -> Request {
    Request {
        command: command(args),
        dimensions: asked.clone(),
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
        if args.outputs.formats().any(Format::is_collected) {
            dimensions.insert(Dimension::Rmgr);
        }
    }
    dimensions
}

/// The same, and what charts are made of. (Partial results do not have it: how they will be shown is
/// said later.)
fn with_charts(args: &StatsArgs) -> Dimensions {
    let mut dimensions = dimensions(args);
    if command(args) == CommandName::Report && args.outputs.has(Format::Html) {
        dimensions.extend([Dimension::Rmgr, Dimension::Timeline, Dimension::Checkpoint]);
    }
    dimensions
}

/// How many rows of a table a format shows; 0: all.
fn rows_shown(args: &StatsArgs, format: Format) -> usize {
    let usual = match format {
        Format::Json | Format::Ndjson | Format::Csv | Format::PgWaldump => 0,
        Format::Table if !args.asks_for_statistics() => TOP_IN_REPORT,
        Format::Table | Format::Markdown | Format::Html | Format::Openmetrics => TOP_DEFAULT,
    };
    args.tables.top.unwrap_or(usual)
}

/// How many rows of a table are shown at most in any format; 0: all.
pub fn most_rows(args: &StatsArgs) -> usize {
    let shown = args.outputs.formats().map(|format| rows_shown(args, format));
    shown.max_by_key(|rows| rows.wrapping_sub(1)).unwrap_or(0)
}

/// Puts the tables into the order and length asked for. The official tool has an order of its
/// own.
fn arrange(report: &mut Report, args: &StatsArgs, format: Format) {
    if format == Format::PgWaldump {
        return;
    }
    // There are few resource managers: all are shown unless fewer are asked for.
    let few = args.tables.top.unwrap_or(0);
    let others = rows_shown(args, format);
    // A chart has all cycles; what else has them was not asked for.
    let cycles = if format == Format::Html { few } else { others };
    if !args.asks_for_statistics() && !format.is_collected() && format != Format::Html {
        report.rmgrs = None;
    }
    if !args.asks_for_statistics() && format != Format::Html {
        (report.timeline, report.checkpoints, report.checkpoint_summary) = (None, None, None);
    }
    report.arrange(args.tables.sort, Top { rmgrs: few, buckets: few, cycles, others });
}

/// Writes all outputs.
fn show(view: &View, args: &StatsArgs) -> Result<(), Failure> {
    if args.outputs.has(Format::PgWaldump)
        && let Some((line, true)) = &view.official.skip_line
    {
        eprintln!("{line}");
    }
    args.outputs.shown(&args.show).try_for_each(|output| {
        let mut view = view.clone();
        arrange(&mut view.report, args, output.format);
        write(&view, args, output)
    })
}

fn write(view: &View, args: &StatsArgs, output: &Output<Format>) -> Result<(), Failure> {
    let style = output.style(&args.show, args.tables.show_main_data);
    let write = |out: &mut dyn Write| write_format(view, (args, output.format), &style, out);
    output.write(output.format == Format::Table, args.show.color, write)?;
    if matches!(output.format, Format::Csv | Format::Ndjson | Format::PgWaldump) {
        tell_problems(&view.report, &style);
    }
    Ok(())
}

/// How many problems are told so.
const PROBLEMS_TOLD: usize = 10;

/// Tells problems beside a format that has no place for them.
pub fn tell_problems(report: &Report, style: &Show) {
    // Where standard error is closed nothing can be told.
    let _ = render::closing::problems(report, PROBLEMS_TOLD, style, &mut anstream::stderr());
}

fn write_format(
    view: &View,
    (args, format): (&StatsArgs, Format),
    style: &Show,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        Format::Table if !args.asks_for_statistics() => render::screen::render(view, style, out),
        Format::Table => render::table::render(view, style, out),
        Format::Markdown => render::markdown::render(view, style, out),
        Format::Html => render::html::render(view, style, out),
        Format::Json if args.tables.json_compat.is_some() => {
            render::walinspect::render(&view.report, out)
        }
        Format::Json => render::json::render(&view.report, out),
        Format::Ndjson => render::ndjson::render(&view.report, out),
        Format::Csv => render::csv::render(&view.report, out),
        Format::Openmetrics => render::openmetrics::render(&view.report, out),
        Format::PgWaldump => render::pg_waldump::render(view, out),
    }
}
