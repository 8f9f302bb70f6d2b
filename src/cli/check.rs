//! `walstat check`: read, build the model, judge it, write it.

use super::check_args::{CheckArgs, CheckFormat, RestoreArgs};
use super::config::Config;
use super::output::write_to;
use super::read::{Read, found, read, read_found};
use super::relation;
use super::values::When;
use super::{Exit, Failure};
use crate::analyse::backup::Backups;
use crate::analyse::dimension::Dimensions;
use crate::analyse::reach::Reach;
use crate::input::label;
use crate::input::plan::Plan;
use crate::input::problem::Problem;
use crate::render;
use crate::render::nagios::State;
use crate::render::style::Show;
use crate::report::annotation::{Places, relative, unreadable};
use crate::report::baseline::{self, Baseline};
use crate::report::budget::Budgets;
use crate::report::build::{Draft, Request};
use crate::report::check::{Asked, judge};
use crate::report::known::Known;
use crate::report::model::checked::{Check, Verdict};
use crate::report::model::view::View;
use crate::report::model::{CommandName, Report, Unreadable};
use crate::report::restore::{Backup, Wal, restore};
use crate::report::whole;
use crate::scan::outcome::Outcome;
use crate::wal::lsn::Lsn;
use crate::wal::segment::SegmentName;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where GitHub Actions takes the step's summary from.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Runs the check. A monitoring plugin answers on standard output whatever happens, and other
/// formats that machines collect where the input cannot be read.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let result = check(args);
    let Err(failure) = &result else { return result };
    let reason = failure.to_string();
    let others = match failure.is_unreadable() {
        true => answer(args, &reason),
        false => Ok(()),
    };
    let mut plugins =
        args.outputs.all.iter().filter(|o| o.format == CheckFormat::Nagios).peekable();
    if plugins.peek().is_none() {
        return others.and(result);
    }
    plugins.try_for_each(|output| {
        let write = |out: &mut dyn Write| render::nagios::unknown(&reason, out);
        write_to(output.file.as_deref(), When::Never, write)
    })?;
    Ok(Exit::Plugin(State::Unknown))
}

/// Says in the format asked for why there is no report.
fn answer(args: &CheckArgs, error: &str) -> Result<(), Failure> {
    let answer = Unreadable::new(CommandName::Check, error.to_owned());
    let path = args.source.inputs().next().unwrap_or(Path::new("."));
    let annotation = unreadable(error, &path.display().to_string());
    let now = jiff::Timestamp::now().as_microsecond();
    args.outputs.answer(&args.show, |format, out| match format {
        CheckFormat::Json => Some(render::json::render(&answer, out)),
        CheckFormat::Ndjson => Some(render::ndjson::unreadable(&answer, out)),
        CheckFormat::Openmetrics => Some(render::openmetrics::unreadable(out)),
        CheckFormat::Junit => Some(render::junit::unreadable(&answer, now, out)),
        CheckFormat::Sarif => Some(render::sarif::unreadable(&answer, out)),
        CheckFormat::Github => Some(render::github::unreadable(&annotation, out)),
        CheckFormat::Gitlab => Some(render::gitlab::unreadable(&annotation, out)),
        CheckFormat::Table | CheckFormat::Csv | CheckFormat::Markdown => None,
        CheckFormat::Html | CheckFormat::Nagios => None,
    })
}

/// The plugin's answer where there is none.
pub fn unknown(reason: &str) -> Result<Exit, Failure> {
    write_to(None, When::Never, |out| render::nagios::unknown(reason, out))?;
    Ok(Exit::Plugin(State::Unknown))
}

/// Whether arguments that could not be parsed ask for a plugin's answer.
pub fn is_plugin_call(arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<String> = arguments.collect();
    let asks = |pair: &[String]| match pair {
        [option, value] => ["-f", "--format"].contains(&option.as_str()) && value == "nagios",
        _ => false,
    };
    let joined = ["-fnagios", "-f=nagios", "--format=nagios"];
    let format = arguments.iter().any(|argument| joined.contains(&argument.as_str()))
        || arguments.windows(2).any(asks);
    format && arguments.first().is_some_and(|command| command == "check")
}

fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let limits = args.budgets.limits(&args.config)?;
    let budgets = &limits.budgets;
    check_usage(args, budgets)?;
    let beside = [&budgets.baseline, &args.restore.backup_label, &limits.found];
    let beside = beside.into_iter().flatten().map(PathBuf::as_path);
    args.outputs.spare(args.source.inputs().chain(beside))?;
    let baseline = budgets.baseline.as_deref().map(read_baseline).transpose()?;
    let backup = backup(&args.restore)?;
    let mut view = read_and_judge(args, &limits, baseline.as_ref(), backup)?;
    let what = if limits.has_rules { "limits and thresholds of rules" } else { "limits" };
    let found = limits.found.map(|path| format!("{what} are from {}", path.display()));
    view.report.notes.extend(found);
    show(&view, args)?;
    Ok(exit(&view.report, args.outputs.has(CheckFormat::Nagios)))
}

fn read_and_judge(
    args: &CheckArgs,
    limits: &Config,
    baseline: Option<&Baseline>,
    backup: Option<Backup>,
) -> Result<View, Failure> {
    let begun = Instant::now();
    let request = Request {
        command: CommandName::Check,
        dimensions: match needs_tables(limits) {
            true => whole::dimensions(),
            false => Dimensions::new(),
        },
        checksums_verified: !args.source.no_verify_checksums,
        start: args.source.range.start,
        filters: relation::filters(&args.source, &args.filters, &args.names)?.0,
    };
    let Checked { mut draft, plan, problems, end, backups, reach } = match needs_tables(limits) {
        true => read_whole(args, request)?,
        false => read_overview(args, request)?,
    };
    draft.report.thresholds.clone_from(&limits.thresholds);
    let mut view = draft.conclude();
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    let wal = Wal { plan: &plan, problems: &problems, backups: &backups, reach: &reach, end };
    let restore: Option<Check> = backup.map(|backup| restore(&backup, wal));
    let asked = Asked {
        budgets: &limits.budgets,
        tables: &limits.tables,
        baseline,
        restore,
        places: &places(&view.report.input.paths, &plan),
        segments: &names(&plan),
    };
    judge(&mut view, asked);
    // What was counted for the rules was not asked for.
    (view.report.rmgrs, view.report.records) = (None, None);
    if limits.tables.is_empty() {
        (view.report.tables, view.report.names) = (None, None);
    }
    Ok(view)
}

/// Whether tables have limits of their own, or rules are asked, some of which look at tables.
fn needs_tables(limits: &Config) -> bool {
    !limits.tables.is_empty() || limits.budgets.fail_on.is_some()
}

/// What was read: a report that has no advice yet, and what a restore needs to know.
struct Checked {
    draft: Draft,
    plan: Plan,
    problems: Vec<Problem>,
    end: Lsn,
    backups: Backups,
    reach: Reach,
}

impl Checked {
    /// Puts together what was read; `draft` makes the report of what was counted.
    fn of<O>(
        read: Read<(O, (Backups, Reach))>,
        request: Request,
        draft: impl FnOnce(Vec<String>, &Plan, Outcome<O>, &Request) -> Draft,
    ) -> Checked {
        let Read { paths, plan, scanned, filters } = read;
        let (mut backups, mut reach) = Default::default();
        let (problems, end) = (scanned.problems.clone(), scanned.ending.lsn);
        let outcome = scanned.map(|(counted, checked)| {
            (backups, reach) = checked;
            counted
        });
        let draft = draft(paths, &plan, outcome, &Request { filters, ..request });
        Checked { draft, plan, problems, end, backups, reach }
    }
}

/// Counts what limits of all of the WAL need.
fn read_overview(args: &CheckArgs, request: Request) -> Result<Checked, Failure> {
    let prototype = (whole::overview(), Default::default());
    let read = read(&args.source, &request.filters, &prototype)?;
    Ok(Checked::of(read, request, whole::overview_draft))
}

/// Counts what a report has.
fn read_whole(args: &CheckArgs, request: Request) -> Result<Checked, Failure> {
    let found = found(&args.source)?;
    let known = Known::of(&args.names.sources(), &found, &request.dimensions);
    let prototype = (whole::prototype(&known), Default::default());
    let read = read_found(&args.source, found, &request.filters, &prototype)?;
    Ok(Checked::of(read, request, |paths, plan, outcome, request| {
        whole::draft(paths, plan, outcome, known, request)
    }))
}

/// What clap cannot check: options that make no sense together, wherever they stand.
fn check_usage(args: &CheckArgs, budgets: &Budgets) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    if budgets.max_growth.is_some() && budgets.baseline.is_none() {
        return usage("--max-growth needs a --baseline to grow from");
    }
    let restore = args.restore.from.is_some() || args.restore.backup_label.is_some();
    if restore && !args.filters.is_empty() {
        return usage("a restore needs every record: --from and --backup-label take no filter");
    }
    if restore && args.source.range.limit.is_some_and(|limit| limit > 0) {
        return usage("a restore needs every record: --from and --backup-label take no --limit");
    }
    Ok(())
}

fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    let bytes = fs::read(path).map_err(|error| beside(path, &error))?;
    baseline::parse(path, &bytes).map_err(|error| beside(path, &error))
}

/// The backup that was asked about.
fn backup(args: &RestoreArgs) -> Result<Option<Backup>, Failure> {
    if let Some(path) = &args.backup_label {
        let label::Found { label, system_identifier } =
            label::read(path).map_err(|error| beside(path, &error))?;
        return Ok(Some(Backup { start: label.start, label: Some(label), system_identifier }));
    }
    Ok(args.from.map(|start| Backup { start, label: None, system_identifier: None }))
}

fn beside(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::Beside { path: path.display().to_string(), reason: error.to_string() }
}

fn names(plan: &Plan) -> Vec<String> {
    let bytes = plan.geometry.segment_bytes;
    let name = |number, timeline| SegmentName::new(timeline, number, bytes).to_string();
    plan.segments.iter().map(|segment| name(segment.number, segment.timeline)).collect()
}

/// Where the segments lie, as seen from the current directory.
fn places(paths: &[String], plan: &Plan) -> Places {
    let canonical = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let here = canonical(Path::new("."));
    let given: Vec<PathBuf> = paths.iter().map(|path| canonical(Path::new(path))).collect();
    let seen = |path: &Path| {
        let path = canonical(path);
        let given = given.iter().find(|given| path.starts_with(given));
        relative(&path, &here, given.unwrap_or(&path))
    };
    let root = paths.first().map_or_else(|| ".".into(), |path| seen(Path::new(path)));
    let mut places = Places { root, ..Places::default() };
    for (segment, name) in plan.segments.iter().zip(names(plan)) {
        let path = segment.source.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = seen(path);
        places.files.insert(file_name, place.clone());
        places.files.insert(name, place);
    }
    places
}

/// A monitoring server knows other codes.
fn exit(report: &Report, is_plugin: bool) -> Exit {
    match is_plugin {
        true => Exit::Plugin(State::of(report)),
        false if !report.problems.is_empty() => Exit::Damage,
        false if report.checks_that(Verdict::Fail).next().is_some() => Exit::Broken,
        false => Exit::Done,
    }
}

fn show(view: &View, args: &CheckArgs) -> Result<(), Failure> {
    for output in &args.outputs.all {
        let style = output.style(&args.show, false);
        if output.format == CheckFormat::Github {
            write_summary(view, &style)?;
        }
        let is_silent = args.show.quiet && output.file.is_none();
        if is_silent && output.format != CheckFormat::Nagios {
            continue;
        }
        let write = |out: &mut dyn Write| match output.format {
            CheckFormat::Table => render::check_table::render(view, &style, out),
            CheckFormat::Json => render::json::render(&view.report, out),
            CheckFormat::Ndjson => render::ndjson::render(&view.report, out),
            CheckFormat::Csv => render::csv::table(view.report.checks(), out),
            CheckFormat::Markdown => render::check_markdown::render(view, &style, out),
            CheckFormat::Html => render::html::render(view, &style, out),
            CheckFormat::Openmetrics => render::openmetrics::render(&view.report, out),
            CheckFormat::Junit => render::junit::render(view, out),
            CheckFormat::Sarif => render::sarif::render(view, out),
            CheckFormat::Github => render::github::render(view, out),
            CheckFormat::Gitlab => render::gitlab::render(view, out),
            CheckFormat::Nagios => render::nagios::render(view, out),
        };
        output.write(output.format == CheckFormat::Table, args.show.color, write)?;
    }
    Ok(())
}

/// Adds the summary to the file that GitHub Actions names: other steps may have written to it.
fn write_summary(view: &View, style: &Show) -> Result<(), Failure> {
    let Some(path) = std::env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let mut text = Vec::new();
    let style = Show { human: true, bars: false, ..*style };
    let written = render::check_markdown::render(view, &style, &mut text)
        .and_then(|()| fs::OpenOptions::new().append(true).create(true).open(&path))
        .and_then(|mut file| file.write_all(&text));
    written.map_err(|source| Failure::Output { path: path.display().to_string(), source })
}
