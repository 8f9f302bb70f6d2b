//! `walstat check`: read, build the model, judge it, write it.

use super::REPORT_BYTES_MAX;
use super::backup_directory;
use super::plugin;
use super::read::{self, Read};
use super::round::{self, OpenState};
use super::state_lock::lock_of;
use crate::args::check::{CheckArgs, CheckFormat, RestoreArgs};
use crate::commands::relation_files;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::render;
use crate::render::nagios;
use crate::render::style::Show;
use std::cmp::Reverse;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use walstat_analyse::counters::Counters;
use walstat_analyse::dimension::Dimensions;
use walstat_analyse::restore_input::RestoreInput;
use walstat_analyse::select::Filters;
use walstat_format::ordered::OrderBy;
use walstat_format::segment::SegmentName;
use walstat_read::input::control::begins_by;
use walstat_read::input::discover::Found;
use walstat_read::input::label::{self, ToldLabel};
use walstat_read::input::limited;
use walstat_read::input::plan::Plan;
use walstat_read::scan::round::Round;
use walstat_report::annotation::{Places, relative, unreadable};
use walstat_report::assemble::{self, Gathered, ReportOptions, assemble};
use walstat_report::backup_end::lost_end;
use walstat_report::baseline;
use walstat_report::baseline::Baseline;
use walstat_report::budget::Budgets;
use walstat_report::build::Request;
use walstat_report::check::{Criteria, judge};
use walstat_report::contradicting::contradicting;
use walstat_report::gap::Gap;
use walstat_report::known::Known;
use walstat_report::model::checked::Verdict;
use walstat_report::model::view::View;
use walstat_report::model::{CommandName, Report, Unreadable};
use walstat_report::notes::{self, Configured};
use walstat_report::restart::{lost_checkpoint, lost_start};
use walstat_report::restore::{
    Backup, Wal, directory_needs, none_left, restore, standby_needs, unopened,
};
use walstat_report::window::none_usable;

/// The format of monitoring plugins, as it is typed.
const NAGIOS: &str = "nagios";
/// Options of one letter that have no value.
const SWITCHES: [char; 3] = ['q', 'v', 'w'];

/// Where GitHub Actions takes the step's summary from.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Runs the check. A monitoring plugin answers on standard output whatever happens, and other
/// formats that machines collect where the input cannot be read.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let failure = match check(args) {
        Ok(exit) => return Ok(exit),
        Err(failure) => failure,
    };
    let others = if failure.is_unreadable() { answer(args, &failure.to_string()) } else { Ok(()) };
    if !args.outputs.has(CheckFormat::Nagios) {
        others?;
    }
    plugin::failed(&args.outputs, failure)
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

/// Whether arguments that could not be parsed ask for a plugin's answer.
pub fn is_plugin_call(arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<String> = arguments.collect();
    let after = arguments.iter().skip(1).map(String::as_str).chain([""]);
    let is_asked = |(argument, after)| format_in(argument, after) == Some(NAGIOS);
    arguments.first().is_some_and(|command| command == "check")
        && arguments.iter().map(String::as_str).zip(after).any(is_asked)
}

/// The format that an argument asks for, by itself or with the one after it.
fn format_in<'a>(argument: &'a str, after: &'a str) -> Option<&'a str> {
    if argument == "--format" {
        return Some(after);
    }
    let own = argument.strip_prefix("--format=").or_else(|| {
        // Options without a value may stand before it in one word.
        let value = argument.strip_prefix('-')?.trim_start_matches(SWITCHES).strip_prefix('f')?;
        Some(value.strip_prefix('=').unwrap_or(value))
    });
    own.map(|value| if value.is_empty() { after } else { value })
}

fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let label = args.restore.backup();
    let state = args.round.state.as_deref();
    let lock = state.map(lock_of);
    let beside = args.names.inputs().chain([args.config.file()]).chain(label.as_deref());
    let beside = beside.chain(state).chain(lock.as_deref());
    args.outputs.refuse_to_overwrite(args.source.inputs().chain(beside))?;
    let limits = args.budgets.limits(&args.config)?;
    let budgets = &limits.budgets;
    check_usage(args, budgets)?;
    args.outputs.refuse_to_overwrite(budgets.baseline.as_deref())?;
    let baseline = budgets.baseline.as_deref().map(read_baseline).transpose()?;
    let backup = backup(&args.restore)?;
    let gaps = args.round.gaps(&limits)?;
    let work = || read_and_judge(args, &limits, &gaps, baseline.as_ref(), backup);
    let (mut view, state) = round::guarded_by_state(args, work)?;
    let told = Configured { limits: true, rules: limits.has_rules };
    view.report.notes.extend(limits.found.and_then(|path| notes::configured(told, &path)));
    // What was verified is not lost where the result cannot be shown, nor the result where it cannot be
    // remembered.
    let saved = state.map_or(Ok(()), |state| state.save());
    show(&view, args)?;
    saved?;
    Ok(exit(&view.report, args.outputs.has(CheckFormat::Nagios)))
}

fn read_and_judge(
    args: &CheckArgs,
    limits: &Config,
    gaps: &[Gap],
    baseline: Option<&Baseline>,
    backup: Option<Backup>,
) -> Result<(View, Option<OpenState>), Failure> {
    let begun = Instant::now();
    let request = Request {
        command: CommandName::Check,
        dimensions: if needs_tables(limits) { assemble::dimensions() } else { Dimensions::new() },
        checksums_verified: !args.source.no_verify_checksums,
        start: args.source.range.start,
        filters: relation_files::filters(&args.source, &args.filters, &args.names)?.0,
    };
    let state = round::open(args, &request.filters, needs_tables(limits))?;
    let Seen { gathered, filters, round, labels } =
        gather(args, limits, &request, gaps, state.as_ref(), backup.as_ref())?;
    let request = Request { filters, ..request };
    let (plan, accepted) = (gathered.plan.clone(), gathered.scanned.holes.accepted.clone());
    let problems = gathered.scanned.in_the_way();
    let end = gathered.scanned.ending;
    let RestoreInput { backups, replay_points: reach, .. } = gathered.restore.clone();
    let replacing = gathered.scanned.claims.replacing().to_vec();
    let mut draft = assemble(gathered, &request, &ReportOptions::default());
    draft.report.thresholds.clone_from(&limits.thresholds);
    let mut view = draft.conclude();
    if !gaps.is_empty() {
        view.report.accepted_gaps = Some(gaps.iter().map(|gap| gap.told(&accepted)).collect());
    }
    if let (Some(round), Some(state)) = (round, &args.round.state) {
        round::books_close(state, &view.report)?;
        let segment_bytes = plan.geometry.segment_bytes;
        round::told(&mut view.report, round, segment_bytes, needs_tables(limits));
    }
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    let (backups, reach, replacing) = (&backups, &reach, &replacing);
    let wal = Wal { plan: &plan, problems: &problems, backups, reach, replacing, end };
    view.report.notes.extend(restore_notes(&args.restore, backup.as_ref(), wal));
    let restore = match &backup {
        Some(backup) => Some(restore(backup, wal)),
        None => none_left(&plan, backups).or_else(|| none_usable(&wal, &labels)),
    };
    let criteria = Criteria {
        budgets: &limits.budgets,
        tables: &limits.tables,
        baseline,
        restore,
        places: &places(&view.report.input.paths, &plan),
        segments: &names(&plan),
    };
    judge(&mut view, criteria);
    // Remove what was only counted for the rules.
    (view.report.rmgrs, view.report.records) = (None, None);
    if limits.tables.is_empty() {
        (view.report.tables, view.report.names) = (None, None);
    }
    Ok((view, state))
}

/// Whether tables have to be counted: for limits of their own, or for rules.
fn needs_tables(limits: &Config) -> bool {
    !limits.tables.is_empty() || limits.budgets.fail_on.is_some()
}

/// What was read.
struct Seen {
    gathered: Gathered,
    /// The filters that were on.
    filters: Filters,
    /// What a round with a state has done.
    round: Option<Round>,
    /// Labels of backups, where none is asked about.
    labels: Vec<ToldLabel>,
}

/// Reads the WAL and counts what the limits need. `backup`: the one that is asked about.
fn gather(
    args: &CheckArgs,
    limits: &Config,
    request: &Request,
    gaps: &[Gap],
    state: Option<&OpenState>,
    backup: Option<&Backup>,
) -> Result<Seen, Failure> {
    read::range(&args.source)?;
    let mut found = round::found(args, state)?;
    found.to_restore = backup.map(Backup::to_restore).unwrap_or_default();
    // Before the WAL, in which a running server has each checkpoint that is named there.
    let control = found.data_directory_read().as_deref().and_then(begins_by);
    let known = Known::of(&args.names.sources(), &found, &request.dimensions);
    let counters = match state {
        _ if needs_tables(limits) => assemble::whole(&known),
        // It would be most of a state.
        None if args.outputs.formats().any(CheckFormat::tells_when) => assemble::overview(),
        _ => Counters::default(),
    };
    let checkpoint = backup.and_then(|backup| Some(backup.label?.checkpoint));
    let mut labels = if backup.is_none() { newest_labels(&found) } else { Vec::new() };
    let checkpoints = labels.iter().map(|told| told.found.label.checkpoint).chain(checkpoint);
    let restore = RestoreInput::of_checkpoints(checkpoints);
    let counters = Counters { restore: Some(restore), ..counters };
    let (filters, gaps) = (&request.filters, gaps.iter().map(|gap| gap.range.clone()).collect());
    let (read, round) = match state {
        None => (read::read_found(&args.source, found, filters, gaps, &counters)?, None),
        Some(state) => {
            let (read, round) = round::read(args, state, found, filters, gaps, &counters)?;
            (read, Some(round))
        }
    };
    let Read { paths, plan, mut scanned, filters } = read;
    let range = &args.source.range;
    if range.is_from_the_beginning() {
        scanned.problems.extend(lost_start(&plan));
    }
    if let Some(control) = control.filter(|_| range.is_to_the_end() && range.timeline.is_none()) {
        scanned.problems.extend(lost_checkpoint(&plan, &control, scanned.ending.lsn));
    }
    labels.extend(plan.backups.iter().flatten().filter(|_| backup.is_none()).cloned());
    if range.is_to_the_end() {
        scanned.problems.extend(lost_end(&plan, &labels));
    }
    let RestoreInput { contradictions, .. } = scanned.observer.restore.clone().unwrap_or_default();
    scanned.problems.extend(contradicting(&plan, &contradictions));
    Ok(Seen { gathered: Gathered::of(paths, plan, scanned, known), filters, round, labels })
}

/// So many of the newest backups are looked at where none is asked about: mostly the last one can be
/// restored.
const LABELS_MAX: usize = 8;

/// The labels of the newest backups of which the archive has the histories.
fn newest_labels(found: &Found) -> Vec<ToldLabel> {
    let mut histories: Vec<&PathBuf> = found.backup_histories.iter().collect();
    histories.order_by_key(|path| Reverse(path.file_name()));
    let labels = histories.into_iter().take(LABELS_MAX).map(|path| label::read_history(path));
    labels.filter_map(Result::ok).collect()
}

/// What clap cannot check: options that make no sense together, wherever they stand.
fn check_usage(args: &CheckArgs, budgets: &Budgets) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    if budgets.max_growth.is_some() && budgets.baseline.is_none() {
        return usage("--max-growth needs a --baseline to grow from");
    }
    round::check_usage(args)?;
    let restore = args.restore.from.is_some() || args.restore.backup_label.is_some();
    if restore && !args.filters.is_empty() {
        return usage("a restore needs every record: --from and --backup-label take no filter");
    }
    if restore && args.source.range.limit.is_some_and(|limit| limit > 0) {
        return usage("a restore needs every record: --from and --backup-label take no --limit");
    }
    if restore && args.source.no_verify_checksums {
        return usage(
            "a restore verifies every checksum: --from and --backup-label take no --no-verify-checksums",
        );
    }
    Ok(())
}

fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    let bytes =
        limited::read_plain(path, REPORT_BYTES_MAX).map_err(|error| beside(path, &error))?;
    baseline::parse(path, &bytes).map_err(|error| beside(path, &error))
}

/// The backup that was asked about.
fn backup(args: &RestoreArgs) -> Result<Option<Backup>, Failure> {
    if let Some(path) = args.backup() {
        let read = label::read(&path).map_err(|error| beside(&path, &error))?;
        return Ok(Some(Backup::of(read)));
    }
    Ok(args.from.map(Backup::from_lsn))
}

/// What whoever restores the backup has to know of settings and of the backup's own directory; or the newest
/// one, if none is asked about.
fn restore_notes(args: &RestoreArgs, backup: Option<&Backup>, wal: Wal<'_>) -> Vec<String> {
    let needs = match backup {
        Some(backup) => standby_needs(backup, wal.backups),
        None => unopened(wal),
    };
    let directories = backup.and_then(|backup| directory_needs(backup, wal.backups));
    let directory = args.backup().and_then(|path| backup_directory::of_label(&path));
    let own = directory.zip(backup).map(|(path, it)| backup_directory::notes(&path, it, wal.plan));
    needs.into_iter().chain(directories).chain(own.into_iter().flatten()).collect()
}

fn beside(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::Beside { path: path.display().to_string(), reason: error.to_string() }
}

fn names(plan: &Plan) -> Vec<String> {
    let bytes = plan.geometry.segment_bytes;
    let name = |number, timeline| SegmentName::new(timeline, number, bytes).to_string();
    plan.segments.iter().map(|segment| name(segment.number, segment.timeline)).collect()
}

/// Paths of the segments, relative to the current directory if they lie below it.
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

/// The exit code; a monitoring plugin has codes of its own.
fn exit(report: &Report, is_plugin: bool) -> Exit {
    if is_plugin {
        Exit::Plugin(nagios::State::of(report))
    } else if !report.problems.is_empty() {
        Exit::Damage
    } else if report.checks_that(Verdict::Fail).next().is_some() {
        Exit::Broken
    } else {
        Exit::Done
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
