//! The report and `--stats`: discover, scan, build the model, write it.

use super::args::{BytesForm, Dimension, Format, ShowArgs, StatsArgs};
use super::output::{wanted, write_to};
use super::{Failure, Outcome};
use crate::analyse::clock::Clock;
use crate::analyse::totals::RecordTable;
use crate::input::discover::{InputError, Plan, discover};
use crate::render;
use crate::render::table::Style;
use crate::report::arrange::arrange;
use crate::report::build::{Request, build};
use crate::report::model::Report;
use crate::scan::outcome::{Outcome as Scanned, conclude};
use crate::scan::parallel::{Progress, scan};
use crate::scan::reader::Scope;
use crate::scan::record::{Everything, Select};
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// Rows of a long table for people.
const TOP_DEFAULT: usize = 20;
/// Record types in the report without `--stats`.
const TOP_IN_REPORT: usize = 8;

type Statistics = (RecordTable, Clock);

/// Runs the report, or `--stats`.
pub fn run(args: &StatsArgs) -> Result<Outcome, Failure> {
    check_usage(args)?;
    let begun = Instant::now();
    let paths = paths(args)?;
    let mut plan = discover(&paths, args.range.timeline)?;
    let start = args.range.start.unwrap_or_default();
    let end = args.range.end.unwrap_or(Lsn::MAX);
    plan.clip(start, end)?;
    let scanned = count(args, &plan, start, end)?;
    let request = request(args);
    let paths = paths.iter().map(|path| path.display().to_string()).collect();
    let mut report = build(paths, &plan, &scanned, &request);
    report.elapsed_seconds = begun.elapsed().as_secs_f64();
    show(&mut report, args)?;
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::Damage })
}

/// What clap cannot check: options that contradict each other.
fn check_usage(args: &StatsArgs) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    if let (Some(start), Some(end)) = (args.range.start, args.range.end)
        && end <= start
    {
        let text = format!("--end {end} is not behind --start {start}");
        return Err(Failure::Usage(text));
    }
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

/// The paths given, or the current directory if it holds WAL.
fn paths(args: &StatsArgs) -> Result<Vec<PathBuf>, Failure> {
    if !args.paths.is_empty() {
        return Ok(args.paths.clone());
    }
    let here = PathBuf::from(".");
    match discover(std::slice::from_ref(&here), None) {
        Ok(_) => Ok(vec![here]),
        Err(_) => Err(Failure::Usage(
            "no PATH given, and the current directory holds no WAL; try 'walstat --help'".into(),
        )),
    }
}

fn request(args: &StatsArgs) -> Request {
    let report = args.stats.is_empty();
    Request {
        command: if report { "report" } else { "stats" },
        rmgrs: by_rmgr(args) || (report && args.show.format == Format::Json),
        records: by_record(args) || report,
        advice: report,
        checksums_verified: !args.no_verify_checksums,
        start: args.range.start,
    }
}

/// Reads the WAL; without filters the loop is compiled for that.
fn count(args: &StatsArgs, plan: &Plan, start: Lsn, end: Lsn) -> Result<Scanned<Statistics>, Failure> {
    let filters = args.filters.filters();
    match filters.is_empty() {
        true => count_with(args, plan, start, end, Everything),
        false => count_with(args, plan, start, end, filters),
    }
}

fn count_with<S: Select>(
    args: &StatsArgs,
    plan: &Plan,
    start: Lsn,
    end: Lsn,
    select: S,
) -> Result<Scanned<Statistics>, Failure> {
    let scope = Scope {
        geometry: plan.geometry,
        crc: (!args.no_verify_checksums).then(Crc32c::detect),
        start,
        end,
        limit: args.range.limit.filter(|&limit| limit > 0),
        select,
    };
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let stretches = scan(&plan.segments, &scope, threads, &Progress::default());
    conclude(plan, stretches).ok_or_else(|| {
        let (first, last) = plan.bounds();
        let path = plan.segments.first().map(|s| s.source.path().clone()).unwrap_or_default();
        Failure::Input(InputError::NoRecord { path, first, last })
    })
}

fn show(report: &mut Report, args: &StatsArgs) -> Result<(), Failure> {
    let show = &args.show;
    let style = style(show);
    match (show.format, show.top) {
        (Format::Table, top) => {
            let default = if args.stats.is_empty() { TOP_IN_REPORT } else { TOP_DEFAULT };
            arrange(report, show.sort.into(), top.unwrap_or(default));
        }
        (Format::Json | Format::Csv, Some(top)) => arrange(report, show.sort.into(), top),
        _ => {}
    }
    if show.format == Format::PgWaldump
        && let Some((line, true)) = &report.official.skip_line
    {
        eprintln!("{line}");
    }
    if show.quiet {
        return Ok(());
    }
    write_to(show.output.as_deref(), |out| write_format(report, args, &style, out))
}

fn write_format(
    report: &Report,
    args: &StatsArgs,
    style: &Style,
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

fn style(show: &ShowArgs) -> Style {
    let terminal = wanted(super::args::When::Auto, show.output.is_some());
    Style {
        human: show.bytes.map_or(terminal, |form| form == BytesForm::Human),
        bars: wanted(show.color, show.output.is_some()),
        main_data: show.show_main_data,
        verbose: show.verbose,
    }
}
