//! `walstat window`: reads the WAL once, puts together from where to where recovery can go, and writes it. A
//! timeline that the one followed has left is read for its row.

use super::backup_directory;
use super::read::{self, Read};
use super::relation_files::can_be_read_again;
use crate::args::source::SourceArgs;
use crate::args::window::{WindowArgs, WindowFormat};
use crate::failure::{Exit, Failure};
use crate::render;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use walstat_analyse::counters::Statistics;
use walstat_analyse::dimension::Dimensions;
use walstat_analyse::recovery_window::{RecoveryWindow, Target};
use walstat_analyse::restore_input::RestoreInput;
use walstat_analyse::select::Filters;
use walstat_format::ordered::CollectOrdered;
use walstat_read::input::discover::{Found, ToRestore};
use walstat_read::input::label::{self, ToldLabel};
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::Problem;
use walstat_read::scan::observer::Observer;
use walstat_report::assemble::{Gathered, ReportOptions, assemble};
use walstat_report::build::Request;
use walstat_report::contradicting::contradicting;
use walstat_report::model::view::View;
use walstat_report::model::window::TimelineRow;
use walstat_report::model::{CommandName, Unreadable};
use walstat_report::notes;
use walstat_report::restore::{Backup, Wal};
use walstat_report::window::{Question, add_reached_on, can_recover, needs, window};

/// What is counted.
type Noted = (Statistics, (RestoreInput, RecoveryWindow));

/// Runs the command.
pub fn run(args: &WindowArgs) -> Result<Exit, Failure> {
    let result = answer(args);
    if let Err(failure) = &result
        && failure.is_unreadable()
    {
        let answer = Unreadable::new(CommandName::Window, failure.to_string());
        args.outputs.answer(&args.show, |format, out| match format {
            WindowFormat::Json => Some(render::json::render(&answer, out)),
            WindowFormat::Table => None,
        })?;
    }
    result
}

fn answer(args: &WindowArgs) -> Result<Exit, Failure> {
    args.check_usage()?;
    let target = args.target()?;
    let label = args.backup_label.as_deref().map(label::within);
    let label = label.as_deref();
    args.outputs.refuse_to_overwrite(args.source.inputs().chain(label))?;
    let begun = Instant::now();
    let found = read::found(&args.source)?;
    let can_be_read_again = can_be_read_again(&found);
    let (mut labels, mut notes) = labels(&found, label)?;
    let directory = label.and_then(backup_directory::of_label);
    let given = directory.zip(labels.last().map(|told| Backup::of(told.found.clone())));
    notes.extend(args.taken_for_utc());
    let mut seen = look(&args.source, found, target.as_ref(), &labels)?;
    if add_labels(&mut labels, &seen.plan, &mut notes) && target.is_some() && can_be_read_again {
        // Which matches lie between the places that they name can only be noted of places known before.
        seen = look(&args.source, read::found(&args.source)?, target.as_ref(), &labels)?;
    }
    let asked = target.as_ref().zip(args.target.as_ref().map(|asked| asked.text.as_str()));
    let problems = seen.scanned.in_the_way();
    let question = question(&seen, &problems, &labels, asked);
    notes.extend(needs(&question));
    if let Some((directory, backup)) = given {
        notes.extend(backup_directory::notes(&directory, &backup, &seen.plan));
    }
    let mut answer = window(&question);
    let others = left_timelines(&seen.plan);
    if can_be_read_again {
        let left = timelines(&args.source, others, asked, &labels, &mut notes);
        let is_out_of_reach = answer.target.as_ref().is_some_and(|row| !row.reachable);
        let lineage = seen.plan.lineage.spans().map(|(timeline, _)| timeline);
        let followed = seen.plan.lineage.timeline();
        let older: BTreeSet<u32> =
            lineage.filter(|timeline| is_out_of_reach && *timeline != followed).collect_set();
        let older = timelines(&args.source, older, asked, &labels, &mut notes);
        let reached = left.iter().chain(&older).filter(|other| other.reaches_target);
        let reached_on: Vec<u32> = reached.map(|other| other.timeline).collect();
        add_reached_on(&mut answer, &reached_on);
        answer.timelines.extend(left.into_iter().filter_map(|other| other.row));
    } else {
        notes.extend(others.into_iter().map(notes::left_out));
    }
    let Read { paths, plan, scanned, .. } = seen;
    let gathered = Gathered::plain(paths, plan, scanned.map(|(statistics, _)| statistics));
    let mut view = assemble(gathered, &request(args), &ReportOptions::default()).conclude();
    view.report.notes.extend(notes);
    let can_recover = can_recover(&answer);
    view.report.window = Some(answer);
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    show(&view, args)?;
    Ok(match (view.report.problems.is_empty(), can_recover) {
        (false, _) => Exit::Damage,
        (true, true) => Exit::Done,
        (true, false) => Exit::Broken,
    })
}

fn request(args: &WindowArgs) -> Request {
    Request {
        command: CommandName::Window,
        dimensions: Dimensions::new(),
        checksums_verified: !args.source.no_verify_checksums,
        start: None,
        filters: Filters::default(),
    }
}

/// The labels of the archive's backups and the one that was given; and what cannot be read of the first.
fn labels(found: &Found, given: Option<&Path>) -> Result<(Vec<ToldLabel>, Vec<String>), Failure> {
    let (mut labels, mut notes) = (Vec::new(), Vec::new());
    for path in &found.backup_histories {
        match label::read_history(path) {
            Ok(label) => labels.push(label),
            Err(error) => notes.push(notes::unread_label(path, &error)),
        }
    }
    if let Some(path) = given {
        let beside = |error: label::LabelError| Failure::Beside {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        labels.push(label::read_told(path).map_err(beside)?);
    }
    Ok((labels, notes))
}

/// Adds the labels of backups whose histories lie in streams; whether there are any.
fn add_labels(labels: &mut Vec<ToldLabel>, plan: &Plan, notes: &mut Vec<String>) -> bool {
    let before = labels.len();
    for backup in &plan.backups {
        match backup {
            Ok(label) => labels.push(label.clone()),
            Err(error) => notes.push(error.clone()),
        }
    }
    labels.len() > before
}

fn look(
    source: &SourceArgs,
    mut found: Found,
    target: Option<&Target>,
    labels: &[ToldLabel],
) -> Result<Read<Noted>, Failure> {
    let begins = labels.iter().map(|told| told.found.label.start).min();
    found.to_restore = ToRestore { is_asked: true, begins, ..found.to_restore };
    let places = labels.iter().map(|told| told.found.label);
    let places = places.flat_map(|label| [Some(label.start), label.stop]).flatten();
    let window = RecoveryWindow::new(target.cloned(), places.collect());
    let checkpoints = labels.iter().map(|told| told.found.label.checkpoint);
    let restore = RestoreInput::of_checkpoints(checkpoints);
    let prototype: Noted = (Statistics::default(), (restore, window));
    let read = read::read_in(source, found, None, &Filters::default(), &Observer::new(prototype))?;
    let mut read = read.map(|observer| observer.into_inner::<Noted>().unwrap_or_default());
    let (_, (RestoreInput { contradictions, .. }, _)) = &read.scanned.observer;
    read.scanned.problems.extend(contradicting(&read.plan, contradictions));
    Ok(read)
}

fn question<'q>(
    read: &'q Read<Noted>,
    problems: &'q [Problem],
    labels: &'q [ToldLabel],
    target: Option<(&'q Target, &'q str)>,
) -> Question<'q> {
    let Read { plan, scanned, .. } = read;
    let (_, (RestoreInput { backups, replay_points: reach, .. }, noted)) = &scanned.observer;
    let replacing = scanned.claims.replacing();
    let wal = Wal { plan, problems, backups, reach, replacing, end: scanned.ending };
    let (first, ending) = (scanned.first, scanned.ending.kind);
    Question { wal, first, ending, noted, labels, target }
}

/// The timelines that the one followed has left, ascending.
fn left_timelines(plan: &Plan) -> BTreeSet<u32> {
    let others = plan.other_lineages.iter().map(|lineage| lineage.timeline());
    let followed: BTreeSet<u32> = plan.lineage.spans().map(|(timeline, _)| timeline).collect_set();
    others.filter(|timeline| !followed.contains(timeline)).collect_set()
}

/// What there is to say of a timeline that is not followed.
struct Other {
    timeline: u32,
    row: Option<TimelineRow>,
    reaches_target: bool,
}

/// These timelines, for each of which the WAL is read once more.
fn timelines(
    source: &SourceArgs,
    timelines: BTreeSet<u32>,
    target: Option<(&Target, &str)>,
    labels: &[ToldLabel],
    notes: &mut Vec<String>,
) -> Vec<Other> {
    let mut all = Vec::new();
    for timeline in timelines {
        let mut source = source.clone();
        source.range.timeline = Some(timeline);
        let asked = target.map(|(target, _)| target);
        let read = read::found(&source).and_then(|found| look(&source, found, asked, labels));
        match read {
            Ok(read) => {
                let problems = read.scanned.in_the_way();
                let mut window = window(&question(&read, &problems, labels, target));
                let row = window.timelines.pop();
                let reaches_target = window.target.is_some_and(|row| row.reachable);
                all.push(Other { timeline, row, reaches_target });
            }
            Err(failure) => notes.push(notes::unread_timeline(timeline, &failure)),
        }
    }
    all
}

fn show(view: &View, args: &WindowArgs) -> Result<(), Failure> {
    args.outputs.shown(&args.show).try_for_each(|output| {
        let style = output.style(&args.show, false);
        let write = |out: &mut dyn Write| match output.format {
            WindowFormat::Table => render::window::render(view, &style, out),
            WindowFormat::Json => render::json::render(&view.report, out),
        };
        output.write(output.format == WindowFormat::Table, args.show.color, write)
    })
}
