//! `walstat whatif`: reads the WAL, replays it under its own and other settings, writes what that
//! comes to. Where images are compressed otherwise, the WAL is read again.

use super::read::{Read, Statistics, read};
use super::source_args::{RangeArgs, SourceArgs};
use super::stats::tell_problems;
use super::whatif_args::{WhatIfArgs, WhatIfFormat};
use super::{Exit, Failure};
use crate::analyse::dimension::Dimensions;
use crate::analyse::select::Filters;
use crate::analyse::whatif::base::Base;
use crate::analyse::whatif::condense::Condenser;
use crate::analyse::whatif::observe::{Feed, Sink};
use crate::analyse::whatif::outcome::Outcome;
use crate::analyse::whatif::position::Geometry;
use crate::analyse::whatif::predict::{self, Prediction, Run};
use crate::analyse::whatif::recode::{Recoded, Recoder, Recoding, Share};
use crate::analyse::whatif::scenario::{Asked, Scenario};
use crate::analyse::whatif::settings::{Change, Checkpoints, Settings};
use crate::analyse::whatif::trace::Trace;
use crate::input::discover::STANDARD_INPUT;
use crate::input::plan::Plan;
use crate::render;
use crate::report::build::{Counted, Draft, Request, build};
use crate::report::model::view::View;
use crate::report::model::{CommandName, Report, Unreadable};
use crate::report::whatif;
use crate::scan::record::{Observe, Record};
use crate::wal::image::Compression;
use crate::wal::lsn::Lsn;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

/// What can be read once only, as it was kept to be read again.
struct Spooled {
    paths: Vec<PathBuf>,
    _directory: Option<TempDir>,
}

/// Keeps what comes through a pipe in a file: the WAL is read several times.
fn spool(paths: &[PathBuf]) -> Result<Spooled, Failure> {
    if !paths.iter().any(|path| is_pipe(path)) {
        return Ok(Spooled { paths: paths.to_vec(), _directory: None });
    }
    let failed = |path: &Path, error: io::Error| Failure::Beside {
        path: path.display().to_string(),
        reason: format!("cannot be kept in a file to be read again: {error}"),
    };
    let directory = TempDir::new().map_err(|error| failed(&std::env::temp_dir(), error))?;
    let keep = |(number, path): (usize, &PathBuf)| {
        if !is_pipe(path) {
            return Ok(path.clone());
        }
        let kept = directory.path().join(format!("standard-input{number}"));
        let copy = || match path.as_path() == Path::new(STANDARD_INPUT) {
            true => io::copy(&mut io::stdin().lock(), &mut File::create(&kept)?),
            false => io::copy(&mut File::open(path)?, &mut File::create(&kept)?),
        };
        copy().map_err(|error| failed(path, error))?;
        Ok(kept)
    };
    let paths = paths.iter().enumerate().map(keep).collect::<Result<_, Failure>>()?;
    Ok(Spooled { paths, _directory: Some(directory) })
}

/// Standard input, or what a shell puts in its place: `<(zcat x.tar.gz)`.
fn is_pipe(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT) || path.starts_with("/dev/fd")
}

/// Runs the command.
pub fn run(args: &WhatIfArgs) -> Result<Exit, Failure> {
    let result = answer(args);
    if let Err(failure) = &result
        && failure.is_unreadable()
    {
        let answer = Unreadable::new(CommandName::WhatIf, failure.to_string());
        args.outputs.answer(&args.show, |format, out| match format {
            WhatIfFormat::Json => Some(render::json::render(&answer, out)),
            WhatIfFormat::Ndjson => Some(render::ndjson::unreadable(&answer, out)),
            WhatIfFormat::Openmetrics => Some(render::openmetrics::unreadable(out)),
            _ => None,
        })?;
    }
    result
}

fn answer(args: &WhatIfArgs) -> Result<Exit, Failure> {
    args.check_usage()?;
    args.outputs.spare(args.source.inputs())?;
    let begun = Instant::now();
    let spooled = spool(&args.source.paths)?;
    let source = SourceArgs { paths: spooled.paths.clone(), ..args.source.clone() };
    let source = within_times(source)?;
    let (mut draft, plan, (trace, base)) = base_run((args, &source))?;
    if !args.source.paths.is_empty() {
        let given = args.source.paths.iter().map(|path| path.display().to_string());
        draft.report.input.paths = given.collect();
    }
    let scenarios = scenarios(args, &base, &plan)?;
    let predictions = predictions((args, &source), (&trace, &base), &scenarios)?;
    if let Some(error) = trace.records.failure() {
        let reason = format!("what was noted of the records: {error}");
        return Err(Failure::Beside { path: std::env::temp_dir().display().to_string(), reason });
    }
    if let Some(error) = trace.records.unfiled() {
        let folder = std::env::temp_dir();
        let text = format!(
            "{}: no file could be written ({error}), so more memory was used than --memory says",
            folder.display()
        );
        draft.report.notes.push(text);
    }
    let needs_codec = |run: &predict::Run| run.codec.is_some();
    if args.sample.is_some() && !predict::runs(&base, &scenarios).iter().any(needs_codec) {
        let none = "--sample: no scenario compresses images, so there is nothing to take a part of";
        draft.report.notes.push(none.into());
    }
    let predicted: Vec<_> = scenarios.into_iter().zip(predictions).collect();
    draft.report.notes.extend(whatif::notes(&base));
    draft.report.whatif = Some(whatif::build(&base, &predicted));
    let mut view = draft.conclude();
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    show(&view, args)?;
    Ok(if view.report.problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// A span of time as the range of LSNs in which its records lie: a server writes what lies between them,
/// too.
fn within_times(source: SourceArgs) -> Result<SourceArgs, Failure> {
    if source.range.since.is_none() && source.range.until.is_none() {
        return Ok(source);
    }
    let Read { scanned, .. } = read(&source, &Filters::default(), &Extent::default())?;
    let Extent(extent) = scanned.observer;
    let (start, end) = extent
        .map_or((source.range.start, source.range.end), |(start, end)| (Some(start), Some(end)));
    let range = RangeArgs { start, end, since: None, until: None, ..source.range.clone() };
    Ok(SourceArgs { range, ..source })
}

/// From the first record's start to the last one's end.
#[derive(Debug, Clone, Default)]
struct Extent(Option<(Lsn, Lsn)>);

impl Observe for Extent {
    fn observe(&mut self, record: &Record<'_>) {
        let start = self.0.map_or(record.lsn, |(start, _)| start);
        self.0 = Some((start, record.end.aligned()));
    }

    fn merge(&mut self, later: Extent) {
        self.0 = match (self.0, later.0) {
            (Some((start, _)), Some((_, end))) => Some((start, end)),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

/// What every report says of the range, and the trace: from one reading, or from two where the trace needs
/// what lies around the range too.
fn base_run(
    (args, source): (&WhatIfArgs, &SourceArgs),
) -> Result<(Draft, Plan, (Trace, Base)), Failure> {
    let filters = Filters::default();
    let asks_level = args.changes.asked().any(|asked| matches!(asked.change, Change::Logical(_)));
    let condenser = || {
        let plain = Condenser::within(args.page_memory(), || Ok(Box::new(tempfile::tempfile()?)));
        if asks_level { plain.with_levels() } else { plain }
    };
    let RangeArgs { start, end, limit, .. } = source.range;
    let (read, condenser) = if start.is_none() && end.is_none() && limit.is_none() {
        let mut fed = None;
        let both = read(source, &filters, &(Statistics::default(), Feed::new(condenser)))?;
        let read = both.map(|(statistics, feed)| {
            fed = Some(feed.finish().0);
            statistics
        });
        (read, fed.unwrap_or_else(condenser))
    } else {
        (read(source, &filters, &Statistics::default())?, read_all(source, condenser)?)
    };
    let request = Request {
        command: CommandName::WhatIf,
        dimensions: Dimensions::new(),
        checksums_verified: !source.no_verify_checksums,
        start,
        filters,
    };
    let counted = Counted::from(&read.scanned.observer);
    let draft = build(read.paths, &read.plan, &read.scanned, counted, &request);
    let known = finish(condenser, &draft.report, &read.plan);
    Ok((draft, read.plan, known))
}

/// Reads what lies before and after the range too: when blocks were touched before it, and the
/// records of checkpoints that began in it.
fn read_all<S: Sink>(
    source: &SourceArgs,
    make: impl Fn() -> S + Send + Sync,
) -> Result<S, Failure> {
    let source = SourceArgs {
        range: RangeArgs { start: None, end: None, limit: None, ..source.range.clone() },
        ..source.clone()
    };
    let Read { scanned, .. } = read(&source, &Filters::default(), &Feed::new(make))?;
    Ok(scanned.observer.finish().0)
}

fn finish(condenser: Condenser, report: &Report, plan: &Plan) -> (Trace, Base) {
    let geometry = Geometry {
        page: plan.geometry.page_bytes.into(),
        segment: plan.geometry.segment_bytes.into(),
    };
    let lsn = |text: &str| text.parse::<Lsn>().unwrap_or_default();
    let range = (lsn(&report.range.start), lsn(&report.range.end));
    condenser.finish(plan.version(), geometry, range)
}

/// The base itself, and what was asked for.
fn scenarios(args: &WhatIfArgs, base: &Base, plan: &Plan) -> Result<Vec<Scenario>, Failure> {
    let flags = plan.version().image_flags;
    let newer = |change: &Change| {
        matches!(change, Change::Compression(Some(Compression::Lz4 | Compression::Zstd)))
    };
    if let Some(asked) = args.changes.asked().find(|asked| newer(&asked.change) && !flags.has_lz4())
    {
        let release = plan.version().name;
        let value = &asked.value;
        return Err(Failure::Usage(format!(
            "--wal-compression {value}: PostgreSQL {release} has pglz only"
        )));
    }
    for asked in args.changes.asked() {
        check_places(asked, base)?;
    }
    let mut scenarios = args.changes.scenarios();
    if scenarios.is_empty() {
        scenarios = Scenario::usual(flags, base.compression);
    }
    scenarios.insert(0, Scenario::default());
    Ok(scenarios)
}

/// Redo points have to lie in the range.
fn check_places(asked: &Asked, base: &Base) -> Result<(), Failure> {
    let Change::Checkpoints(Checkpoints::At(places)) = &asked.change else { return Ok(()) };
    let outside = |place: &&Lsn| **place < base.start || **place > base.end;
    match places.iter().find(outside) {
        Some(place) => Err(Failure::Usage(format!(
            "--{} {place}: expected a place from {} to {}",
            asked.option, base.start, base.end
        ))),
        None => Ok(()),
    }
}

fn threads(args: &WhatIfArgs) -> NonZeroUsize {
    let threads = args.source.threads.or_else(|| std::thread::available_parallelism().ok());
    threads.unwrap_or(NonZeroUsize::MIN)
}

fn predictions(
    (args, source): (&WhatIfArgs, &SourceArgs),
    (trace, base): (&Trace, &Base),
    scenarios: &[Scenario],
) -> Result<Vec<Prediction>, Failure> {
    let runs = predict::runs(base, scenarios);
    let mut done = recoded((args, source), (trace, base), &runs)?.into_iter();
    let plain: Vec<Settings> =
        runs.iter().filter(|run| run.codec.is_none()).map(|run| run.settings.clone()).collect();
    let mut replayed = predict::replay_all(trace, base, &plain, threads(args)).into_iter();
    let mut ways: Vec<Vec<Recoded>> = vec![Vec::new(); scenarios.len()];
    for run in &runs {
        let plain = |outcome: Outcome| Recoded { outcome, ..Recoded::default() };
        let result = match run.codec {
            Some(_) => done.next(),
            None => replayed.next().map(plain),
        };
        if let Some(ways) = ways.get_mut(run.scenario) {
            ways.extend(result);
        }
    }
    let page_bytes = trace.page_bytes as u64;
    let ways = scenarios.iter().zip(&ways);
    Ok(ways.map(|(asked, ways)| predict::predict(page_bytes, base, asked, ways)).collect())
}

/// The runs with another codec.
fn recoded(
    (args, source): (&WhatIfArgs, &SourceArgs),
    (trace, base): (&Trace, &Base),
    runs: &[Run],
) -> Result<Vec<Recoded>, Failure> {
    let with_codec = runs.iter().filter_map(|run| Some((run.settings.clone(), run.codec?)));
    let runs: Vec<(Settings, Recoding)> = with_codec.collect();
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let share = args.sample.unwrap_or(Share::ALL);
    let means = (threads(args).get(), args.page_memory(), share);
    let recoder = read_all(source, || Recoder::new(trace, base, &runs, means))?;
    match recoder.strangers() {
        0 => Ok(recoder.finish()),
        _ => Err(Failure::Usage("the WAL changed while it was read".into())),
    }
}

fn show(view: &View, args: &WhatIfArgs) -> Result<(), Failure> {
    args.outputs.shown(&args.show).try_for_each(|output| {
        let style = output.style(&args.show, false);
        let write = |out: &mut dyn Write| match output.format {
            WhatIfFormat::Table => render::whatif::render(view, &style, out),
            WhatIfFormat::Json => render::json::render(&view.report, out),
            WhatIfFormat::Ndjson => render::ndjson::render(&view.report, out),
            WhatIfFormat::Csv => render::csv::render(&view.report, out),
            WhatIfFormat::Markdown => render::whatif_markdown::render(view, &style, out),
            WhatIfFormat::Html => render::html::render(view, &style, out),
            WhatIfFormat::Openmetrics => render::openmetrics::render(&view.report, out),
        };
        output.write(output.format == WhatIfFormat::Table, args.show.color, write)?;
        if output.format == WhatIfFormat::Csv {
            tell_problems(&view.report, &style);
        }
        Ok(())
    })
}
