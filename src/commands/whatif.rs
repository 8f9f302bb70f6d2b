//! `walstat whatif`: reads the WAL, replays it under its own and other settings, and writes how much
//! WAL each gives. To compress images in another way, the WAL is read again.

use super::problems::tell_problems;
use super::read;
use crate::args::source::SourceArgs;
use crate::args::whatif::{WhatIfArgs, WhatIfFormat};
use crate::failure::{Exit, Failure};
use crate::render;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use walstat_analyse::counters::Counters;
use walstat_analyse::dimension::Dimensions;
use walstat_analyse::select::Filters;
use walstat_read::Scan;
use walstat_report::assemble::{Gathered, ReportOptions, assemble};
use walstat_report::build::Request;
use walstat_report::known::{Known, Sources};
use walstat_report::model::view::View;
use walstat_report::model::{CommandName, Report, Unreadable};
use walstat_report::notes;
use walstat_report::whatif;
use walstat_whatif::driver::{Predicted, WhatIf, WhatIfError};
use walstat_whatif::spooled::Spooled;

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
    args.outputs.refuse_to_overwrite(args.source.inputs())?;
    let begun = Instant::now();
    let spooled = Spooled::of(&args.source.paths).map_err(WhatIfError::from)?;
    let mut view = predict(args, &spooled).map_err(|failure| told(failure, &spooled))?;
    view.elapsed_seconds = begun.elapsed().as_secs_f64();
    for problem in &mut view.report.problems {
        problem.segment = spooled.told(&problem.segment);
    }
    let Report { notes, input, .. } = &mut view.report;
    notes.iter_mut().chain(&mut input.other_files).for_each(|text| *text = spooled.told(text));
    show(&view, args)?;
    Ok(if view.report.problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// A failure that names pipes, and not the files in their place.
fn told(failure: Failure, spooled: &Spooled) -> Failure {
    match failure {
        Failure::Input(error) => {
            Failure::Input(error.with_paths(|path| spooled.pipe(path).map(Path::to_owned)))
        }
        Failure::Beside { path, reason } => Failure::Beside { path: spooled.told(&path), reason },
        other => other,
    }
}

fn predict(args: &WhatIfArgs, spooled: &Spooled) -> Result<View, Failure> {
    let request = Request {
        command: CommandName::WhatIf,
        dimensions: Dimensions::new(),
        checksums_verified: !args.source.no_verify_checksums,
        start: args.source.range.start,
        filters: Filters::default(),
    };
    let source = SourceArgs { paths: spooled.paths.clone(), ..args.source.clone() };
    let found = read::found(&source)?;
    let window = read::window(&source, &found)?;
    let (scan, _) = read::scan_in(&source, window.as_ref(), &Filters::default())?;
    let paths = if source.paths.is_empty() { &found.paths } else { &args.source.paths };
    let paths = read::names_of(paths);
    let scan = Scan { paths: found.paths.clone(), ..scan };
    let question = WhatIf::new(scan).memory(args.page_memory());
    let known = Known::of(&Sources::default(), &found, &Dimensions::new());
    let question = question.server(known.server());
    let question = match args.sample {
        Some(share) => question.sample(share),
        None => question,
    };
    let predicted = match (question.run(args.changes.scenarios()), &window) {
        (Err(WhatIfError::Nothing), Some(window)) => {
            return Err(read::nothing_in(window, &found.paths));
        }
        (predicted, _) => predicted?,
    };
    let Predicted { plan, scanned, base, scenarios, compresses, unfiled } = predicted;
    let counters = |statistics| Counters { statistics, ..Counters::default() };
    let gathered = Gathered::of(paths, plan, scanned.map(counters), known);
    let mut draft = assemble(gathered, &request, &ReportOptions::default());
    if let Some(error) = unfiled {
        draft.report.notes.push(notes::no_file_in(&std::env::temp_dir(), &error));
    }
    if args.sample.is_some() && !compresses {
        draft.report.notes.push(notes::nothing_to_sample());
    }
    draft.report.notes.extend(whatif::notes(&base));
    draft.report.whatif = Some(whatif::build(&base, &scenarios));
    Ok(draft.conclude())
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
            tell_problems(&view.report.problems, style.verbose);
        }
        Ok(())
    })
}
