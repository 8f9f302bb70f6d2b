//! `walstat check`: read, build the model, judge it, write it.

use super::args::{BytesForm, When};
use super::check_args::{CheckArgs, CheckFormat, CheckShowArgs, RestoreArgs};
use super::output::{wanted, write_to};
use super::read::{Statistics, read};
use super::{Failure, Outcome, config};
use crate::analyse::backup::Backups;
use crate::input::label;
use crate::input::plan::Plan;
use crate::render;
use crate::render::nagios::State;
use crate::render::table::Show;
use crate::report::annotation::{Places, relative};
use crate::report::baseline::{self, Baseline};
use crate::report::budget::Budgets;
use crate::report::build::{Request, build_from};
use crate::report::check::{Asked, judge};
use crate::report::model::Report;
use crate::report::model::checked::Check;
use crate::report::restore::{Backup, Wal, restore};
use crate::wal::segment::SegmentName;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where GitHub Actions takes the step's summary from.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Runs the check. A monitoring plugin answers on standard output whatever happens.
pub fn run(args: &CheckArgs) -> Result<Outcome, Failure> {
    let result = check(args);
    match result {
        Err(failure) if args.show.format == CheckFormat::Nagios => unknown(&failure.to_string()),
        result => result,
    }
}

/// The plugin's answer where there is none.
pub fn unknown(reason: &str) -> Result<Outcome, Failure> {
    write_to(None, When::Never, |out| render::nagios::unknown(reason, out))?;
    Ok(Outcome::Plugin(State::Unknown))
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

fn check(args: &CheckArgs) -> Result<Outcome, Failure> {
    let budgets = args.budgets.budgets().or(config::load(args.budgets.config.as_deref())?);
    check_usage(args, &budgets)?;
    let baseline = budgets.baseline.as_deref().map(read_baseline).transpose()?;
    let backup = backup(&args.restore)?;
    let begun = Instant::now();
    let prototype = <(Statistics, Backups)>::default();
    let read = read(&args.source, &args.filters.filters(), &prototype)?;
    let (statistics, backups) = &read.scanned.observer;
    let request = Request {
        command: "check",
        rmgrs: false,
        records: false,
        advice: true,
        checksums_verified: !args.source.no_verify_checksums,
        start: args.source.range.start,
    };
    let mut report = build_from(read.paths, &read.plan, &read.scanned, statistics, &request);
    report.elapsed_seconds = begun.elapsed().as_secs_f64();
    let wal = Wal {
        plan: &read.plan,
        problems: &read.scanned.problems,
        backups,
        end: read.scanned.ending.lsn,
    };
    let restore: Option<Check> = backup.map(|backup| restore(&backup, wal, &report));
    let asked = Asked {
        budgets: &budgets,
        baseline: baseline.as_ref(),
        restore,
        places: &places(&report.input.paths, &read.plan),
        segments: &names(&read.plan),
    };
    judge(&mut report, asked);
    show(&report, &args.show)?;
    Ok(outcome(&report, args.show.format))
}

/// What clap cannot check: options that make no sense together, wherever they stand.
fn check_usage(args: &CheckArgs, budgets: &Budgets) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    if budgets.max_growth.is_some() && budgets.baseline.is_none() {
        return usage("--max-growth needs a --baseline to grow from");
    }
    let restore = args.restore.from.is_some() || args.restore.backup_label.is_some();
    if restore && !args.filters.filters().is_empty() {
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
        let label = label::read(path).map_err(|error| beside(path, &error))?;
        let system_identifier = label::system_identifier_beside(path);
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

fn outcome(report: &Report, format: CheckFormat) -> Outcome {
    let checked = report.checked.as_ref();
    match (format, checked) {
        (CheckFormat::Nagios, Some(checked)) => Outcome::Plugin(State::of(checked)),
        _ if !report.problems.is_empty() => Outcome::Damage,
        (_, Some(checked)) if checked.is_broken() => Outcome::Broken,
        _ => Outcome::Done,
    }
}

fn show(report: &Report, show: &CheckShowArgs) -> Result<(), Failure> {
    let style = style(show);
    if show.format == CheckFormat::Github {
        write_summary(report, &style)?;
    }
    if show.quiet && show.format != CheckFormat::Nagios {
        return Ok(());
    }
    write_to(show.output.as_deref(), show.color, |out| match show.format {
        CheckFormat::Table => render::check_table::render(report, &style, out),
        CheckFormat::Json => render::json::render(report, out),
        CheckFormat::Junit => render::junit::render(report, out),
        CheckFormat::Sarif => render::sarif::render(report, out),
        CheckFormat::Github => render::github::render(report, out),
        CheckFormat::Gitlab => render::gitlab::render(report, out),
        CheckFormat::Nagios => render::nagios::render(report, out),
    })
}

/// Adds the summary to the file that GitHub Actions names: other steps may have written to it.
fn write_summary(report: &Report, style: &Show) -> Result<(), Failure> {
    let Some(path) = std::env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let mut text = Vec::new();
    let style = Show { human: true, bars: false, ..*style };
    let written = render::github::summary(report, &style, &mut text)
        .and_then(|()| fs::OpenOptions::new().append(true).create(true).open(&path))
        .and_then(|mut file| file.write_all(&text));
    written.map_err(|source| Failure::Output { path: path.display().to_string(), source })
}

fn style(show: &CheckShowArgs) -> Show {
    let terminal = wanted(When::Auto, show.output.is_some());
    Show {
        human: show.bytes.map_or(terminal, |form| form == BytesForm::Human),
        bars: wanted(show.color, show.output.is_some()),
        main_data: false,
        verbose: show.verbose,
    }
}
