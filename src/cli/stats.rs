//! The report and `--stats`: read, build the model, write it.

use super::args::{BytesForm, Dimension, Format, ShowArgs, StatsArgs};
use super::output::{wanted, write_to};
use super::read::{Statistics, read};
use super::{Failure, Outcome};
use crate::render;
use crate::render::table::Show;
use crate::report::arrange::{Top, arrange};
use crate::report::build::{Request, build};
use crate::report::model::Report;
use std::io::Write;
use std::time::Instant;

/// Rows of a long table for people.
const TOP_DEFAULT: usize = 20;
/// Record types in the report without `--stats`.
const TOP_IN_REPORT: usize = 8;

/// Runs the report, or `--stats`.
pub fn run(args: &StatsArgs) -> Result<Outcome, Failure> {
    check_usage(args)?;
    let begun = Instant::now();
    let read = read(&args.source, &args.filters.filters(), &Statistics::default())?;
    let mut report = build(read.paths, &read.plan, &read.scanned, &request(args));
    report.elapsed_seconds = begun.elapsed().as_secs_f64();
    show(&mut report, args)?;
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::Damage })
}

/// What clap cannot check: options that contradict each other.
fn check_usage(args: &StatsArgs) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    let dimensions = usize::from(by_rmgr(args)) + usize::from(by_record(args));
    match args.show.format {
        Format::Csv if dimensions != 1 => usage("--format csv takes one --stats=DIM"),
        Format::PgWaldump if dimensions != 1 => usage("--format pg_waldump takes one --stats=DIM"),
        _ => Ok(()),
    }
}

fn by_rmgr(args: &StatsArgs) -> bool {
    args.stats.iter().any(|dim| [Dimension::Rmgr, Dimension::All].contains(dim))
}

fn by_record(args: &StatsArgs) -> bool {
    args.stats.iter().any(|dim| [Dimension::Record, Dimension::All].contains(dim))
}

fn request(args: &StatsArgs) -> Request {
    let report = args.stats.is_empty();
    Request {
        command: if report { "report" } else { "stats" },
        rmgrs: by_rmgr(args) || (report && args.show.format == Format::Json),
        records: by_record(args) || report,
        advice: report,
        checksums_verified: !args.source.no_verify_checksums,
        start: args.source.range.start,
    }
}

fn show(report: &mut Report, args: &StatsArgs) -> Result<(), Failure> {
    let show = &args.show;
    let style = style(show);
    match (show.format, show.top) {
        (Format::Table, top) => {
            let default = if args.stats.is_empty() { TOP_IN_REPORT } else { TOP_DEFAULT };
            // There are few resource managers: all are shown unless fewer are asked for.
            let top = Top { rmgrs: top.unwrap_or(0), records: top.unwrap_or(default) };
            arrange(report, show.sort.into(), top);
        }
        (Format::Json | Format::Csv, Some(top)) => {
            arrange(report, show.sort.into(), Top { rmgrs: top, records: top });
        }
        _ => {}
    }
    if show.format == Format::PgWaldump
        && let Some((line, true)) = &report.official.skip_line
    {
        eprintln!("{line}");
    }
    if show.quiet && show.output.is_none() {
        return Ok(());
    }
    write_to(show.output.as_deref(), show.color, |out| write_format(report, args, &style, out))
}

fn write_format(
    report: &Report,
    args: &StatsArgs,
    style: &Show,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match args.show.format {
        Format::Table if args.stats.is_empty() => render::screen::render(report, style, out),
        Format::Table => render::table::render(report, style, out),
        Format::Json => render::json::render(report, out),
        Format::Csv => render::csv::render(report, out),
        Format::PgWaldump => render::pg_waldump::render(report, out),
    }
}

fn style(show: &ShowArgs) -> Show {
    let terminal = wanted(super::args::When::Auto, show.output.is_some());
    Show {
        human: show.bytes.map_or(terminal, |form| form == BytesForm::Human),
        bars: wanted(show.color, show.output.is_some()),
        main_data: show.show_main_data,
        verbose: show.verbose,
    }
}
