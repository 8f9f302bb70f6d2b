//! The report and `--stats`: read, build the model, write it.

use crate::args::outputs::Output;
use crate::args::{Format, RowBy, StatsArgs};
use crate::commands::gather::gather;
use crate::commands::problems::tell_problems;
use crate::commands::rows::{most_rows, rows_shown};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::output::tell;
use crate::render;
use crate::render::style::Show;
use crate::render::visible::visible;
use std::io::Write;
use std::time::Instant;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::select::Filters;
use walstat_report::assemble::{Gathered, ReportOptions, assemble};
use walstat_report::build::Request;
use walstat_report::model::table::Top;
use walstat_report::model::view::View;
use walstat_report::model::{CommandName, Report, Unreadable};
use walstat_report::notes::{self, Configured};
use walstat_report::wal_keepers;
use walstat_report::who;
use walstat_report::who::By;

/// Runs the report, or `--stats`.
pub fn run(args: &StatsArgs) -> Result<Exit, Failure> {
    let asked = dimensions_with(args, has_charts(args));
    refuse_to_overwrite(args)?;
    run_on(args, &asked, || with_keepers(gather(args, command(args), &asked)?, args), |_| Ok(()))
}

/// Adds what lies in `pg_wal` and what keeps it there, if that is what was read.
fn with_keepers(
    (mut gathered, filters): (Gathered, Filters),
    args: &StatsArgs,
) -> Result<(Gathered, Filters), Failure> {
    if command(args) == CommandName::Report
        && let Some(directory) = &gathered.plan.data_directory
    {
        let end = gathered.scanned.ending.lsn;
        gathered.pg_wal = wal_keepers::read(directory, end, &mut gathered.warnings);
    }
    Ok((gathered, filters))
}

/// Refuses to overwrite anything that is read.
pub fn refuse_to_overwrite(args: &StatsArgs) -> Result<(), Failure> {
    let config = (command(args) == CommandName::Report).then(|| args.config.file());
    args.outputs.refuse_to_overwrite(args.source.inputs().chain(args.names.inputs()).chain(config))
}

/// The same of what `read` reads, with what was `asked` for; `check` may refuse to show what came of it.
pub fn run_on(
    args: &StatsArgs,
    asked: &Dimensions,
    read: impl FnOnce() -> Result<(Gathered, Filters), Failure>,
    check: impl FnOnce(&Report) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut is_refused = false;
    let check = |report: &Report| check(report).inspect_err(|_| is_refused = true);
    let result = report(args, asked, read, check);
    if let Err(failure) = &result
        && failure.is_unreadable()
        && !is_refused
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
    read: impl FnOnce() -> Result<(Gathered, Filters), Failure>,
    check: impl FnOnce(&Report) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    check_usage(args)?;
    let config = config(args)?;
    let view = view_of(args, asked, &config, read)?;
    check(&view.report)?;
    let exit = if view.report.problems.is_empty() { Exit::Done } else { Exit::Damage };
    show(view, args)?;
    Ok(exit)
}

/// What the arguments ask for, not shown yet.
pub fn view(args: &StatsArgs) -> Result<View, Failure> {
    let asked = dimensions(args);
    check_usage(args)?;
    view_of(args, &asked, &Config::default(), || gather(args, command(args), &asked))
}

fn view_of(
    args: &StatsArgs,
    asked: &Dimensions,
    config: &Config,
    read: impl FnOnce() -> Result<(Gathered, Filters), Failure>,
) -> Result<View, Failure> {
    let begun = Instant::now();
    let (gathered, filters) = read()?;
    args.when.check(gathered.when.as_ref())?;
    if args.outputs.formats().all(|format| [Format::Csv, Format::PgWaldump].contains(&format)) {
        // These formats have no place for notes.
        let line = |warning: &String| tell(&format!("walstat: {}", visible(warning)));
        gathered.warnings.iter().for_each(line);
    }
    let by = match (args.tables.by, command(args)) {
        (Some(RowBy::Parent), _) | (None, CommandName::Report) => By::Parent,
        (Some(RowBy::Table), _) | (None, _) => By::Table,
    };
    let options = ReportOptions {
        rows: who::Rows { by, sort: args.tables.sort, shown: most_rows(args) },
        questions: args.when.questions(args.source.range.tz.as_ref()),
    };
    let mut draft = assemble(gathered, &request(args, asked, filters), &options);
    draft.report.thresholds.clone_from(&config.thresholds);
    let mut view = draft.conclude();
    let told = Configured { limits: false, rules: config.has_rules };
    let found = config.found.as_ref().and_then(|path| notes::configured(told, path));
    view.report.notes.extend(found);
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    Ok(view)
}

/// The settings of the rules; the usual ones where there is no advice.
fn config(args: &StatsArgs) -> Result<Config, Failure> {
    match command(args) {
        CommandName::Report => args.config.read(),
        _ => Ok(Config::default()),
    }
}

/// Options about advice where there is none.
pub fn check_rules(args: &StatsArgs) -> Result<(), Failure> {
    if args.asks_for_statistics() && args.config.are_given() {
        let text = "--ruleset and --config are about advice, which --stats does not give";
        Err(Failure::Usage(text.to_owned()))
    } else {
        Ok(())
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

/// The dimensions that tables are made of.
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

/// The same, and what charts need.
pub fn dimensions_with(args: &StatsArgs, has_charts: bool) -> Dimensions {
    let mut dimensions = dimensions(args);
    if has_charts {
        dimensions.extend([Dimension::Rmgr, Dimension::Timeline, Dimension::Checkpoint]);
        dimensions.insert(Dimension::Kind);
    }
    dimensions
}

/// Whether charts are asked for.
pub fn has_charts(args: &StatsArgs) -> bool {
    command(args) == CommandName::Report && args.outputs.has(Format::Html)
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
    // Only charts need all checkpoint cycles.
    let cycles = if format == Format::Html { few } else { others };
    if !args.asks_for_statistics() && !format.is_collected() && format != Format::Html {
        report.rmgrs = None;
    }
    if !args.asks_for_statistics() && format != Format::Html {
        (report.timeline, report.checkpoints, report.checkpoint_summary) = (None, None, None);
        report.kinds = None;
    }
    report.arrange(args.tables.sort, Top { rmgrs: few, buckets: few, cycles, others });
}

/// Writes all outputs, the last of them without a copy of what is shown.
fn show(view: View, args: &StatsArgs) -> Result<(), Failure> {
    if args.outputs.has(Format::PgWaldump)
        && let Some((line, true)) = &view.official.skip_line
    {
        tell(line);
    }
    let show = |mut view: View, output: &Output<Format>| {
        arrange(&mut view.report, args, output.format);
        write(&view, args, output)
    };
    let outputs: Vec<&Output<Format>> = args.outputs.shown(&args.show).collect();
    let Some((last, others)) = outputs.split_last() else { return Ok(()) };
    others.iter().try_for_each(|output| show(view.clone(), output))?;
    show(view, last)
}

fn write(view: &View, args: &StatsArgs, output: &Output<Format>) -> Result<(), Failure> {
    let style = output.style(&args.show, args.tables.show_main_data);
    let write = |out: &mut dyn Write| write_format(view, args, output.format, &style, out);
    output.write(output.format == Format::Table, args.show.color, write)?;
    if matches!(output.format, Format::Csv | Format::Ndjson | Format::PgWaldump) {
        tell_problems(&view.report.problems, style.verbose);
    }
    Ok(())
}

fn write_format(
    view: &View,
    args: &StatsArgs,
    format: Format,
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
