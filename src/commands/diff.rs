//! `walstat diff`: two reports, or two paths, side by side.

use super::{REPORT_BYTES_MAX, stats};
use crate::args::diff::{DiffArgs, DiffFormat, Growth};
use crate::args::values::TOP_DEFAULT;
use crate::args::{Cli, StatsArgs};
use crate::failure::{Exit, Failure};
use crate::render;
use clap::Parser;
use std::io::{Read, Write};
use std::path::Path;
use walstat_read::input::{limited, storage};
use walstat_report::diff::{ComparedReport, diff};
use walstat_report::model::diff::{Diff, Side};
use walstat_report::model::{CommandName, Report, SCHEMA, Unreadable, shown_schema};

/// Runs the command.
pub fn run(args: &DiffArgs) -> Result<Exit, Failure> {
    let result = compare(args);
    if let Err(failure) = &result
        && failure.is_unreadable()
    {
        let answer = Unreadable::new(CommandName::Diff, failure.to_string());
        args.outputs.answer(&args.show, |format, out| {
            (format == DiffFormat::Json).then(|| render::json::render(&answer, out))
        })?;
    }
    result
}

fn compare(args: &DiffArgs) -> Result<Exit, Failure> {
    let paths = [args.before.as_path(), args.after.as_path()];
    args.outputs.refuse_to_overwrite(paths.into_iter().chain(args.names.inputs()))?;
    let (before, after) = (side(args, &args.before)?, side(args, &args.after)?);
    let diff = diff(&before, &after);
    args.outputs.shown(&args.show).try_for_each(|output| {
        let style = output.style(&args.show, false);
        let top = args.top.unwrap_or(TOP_DEFAULT);
        let write = |out: &mut dyn Write| match output.format {
            DiffFormat::Table => render::diff::render(&diff, top, &style, out),
            DiffFormat::Json => render::json::render(&cut(&diff, args.top.unwrap_or(0)), out),
            DiffFormat::Markdown => render::diff::markdown(&diff, top, &style, out),
        };
        output.write(output.format == DiffFormat::Table, args.show.color, write)
    })?;
    let is_damaged = |side: &Side| side.problems > 0;
    Ok(match args.fail_on_growth {
        _ if is_damaged(&diff.before) || is_damaged(&diff.after) => Exit::Damage,
        Some(Growth::Total) if diff.has_grown() => Exit::Broken,
        Some(Growth::Commit) if diff.has_grown_per_commit() => Exit::Broken,
        _ => Exit::Done,
    })
}

/// The first rows of each table; 0: all.
fn cut(diff: &Diff, top: usize) -> Diff {
    let mut diff = diff.clone();
    if top > 0 {
        diff.rmgrs.truncate(top);
        diff.records.truncate(top);
        diff.tables.truncate(top);
    }
    diff
}

/// The report in a file, or the one of the WAL at a path.
fn side(args: &DiffArgs, path: &Path) -> Result<ComparedReport, Failure> {
    if !begins_as_json(path) {
        return Ok(count(args, path)?.into());
    }
    if !args.filters.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: is a report, to which no filter can be applied: expected WAL, or no filter",
            path.display()
        )));
    }
    read_report(path)
}

/// Whether a file begins like an object. A file that cannot be read is reported when it is read as WAL.
fn begins_as_json(path: &Path) -> bool {
    let mut head = [0; 64];
    let is_file = storage::is_file(path);
    let read =
        is_file.then(|| storage::open_at(path, 0, 64).and_then(|mut file| file.read(&mut head)));
    let Some(Ok(bytes)) = read else { return false };
    let mut text = head.iter().take(bytes).filter(|byte| !byte.is_ascii_whitespace());
    text.next() == Some(&b'{')
}

fn read_report(path: &Path) -> Result<ComparedReport, Failure> {
    let beside = |reason: String| Failure::Beside { path: path.display().to_string(), reason };
    let bytes =
        limited::read_plain(path, REPORT_BYTES_MAX).map_err(|error| beside(error.to_string()))?;
    // What stands in a file that is no report is not shown: it may be any file.
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| {
        let line = error.line();
        beside(format!("found no JSON in line {line}, expected a report"))
    })?;
    let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(text("schema")) != major(SCHEMA) {
        let found = shown_schema(text("schema"));
        return Err(beside(format!("found schema {found}, expected {SCHEMA}")));
    }
    if let Some(error) = value.get("error").and_then(serde_json::Value::as_str) {
        return Err(beside(format!("the report of WAL that could not be read: {error}")));
    }
    if !["report", "stats", "check"].contains(&text("command")) {
        let reason = "found the output of another command, expected a report";
        return Err(beside(reason.to_owned()));
    }
    serde_json::from_value(value)
        .map_err(|_| beside("found no report, expected one of this release".to_owned()))
}

/// Counts what lies at a path, as `walstat PATH -f json` does.
fn count(args: &DiffArgs, path: &Path) -> Result<Report, Failure> {
    let asked = Cli::try_parse_from(["walstat", "--format=json", "--progress=never"]);
    let asked = asked.map_err(|error| Failure::Usage(error.to_string()))?.stats;
    let mut stats = StatsArgs { filters: args.filters.clone(), names: args.names.clone(), ..asked };
    stats.source.paths = vec![path.to_owned()];
    stats.source.threads = args.threads;
    Ok(stats::view(&stats)?.report)
}
