//! `walstat diff`: two reports, or two paths, side by side.

use super::args::{Cli, StatsArgs};
use super::name_args::NameArgs;
use super::outputs::Outputs;
use super::show_args::ShowArgs;
use super::source_args::FilterArgs;
use super::{Exit, Failure, stats};
use crate::render;
use crate::report::diff::diff;
use crate::report::model::diff::{Diff, Side};
use crate::report::model::{CommandName, Report, SCHEMA, Unreadable};
use clap::{Args, Parser, ValueEnum};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Rows of a table for people.
const TOP_DEFAULT: usize = 20;

/// Arguments of `walstat diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "walstat diff before.json /var/lib/postgresql/15/main/pg_wal --fail-on-growth\n\
                  Exit codes: 0 done, 1 it grew (--fail-on-growth), 2 usage, 3 not readable, 4 damage."
)]
pub struct DiffArgs {
    /// WAL, or the JSON of a report (walstat PATH -f json)
    pub before: PathBuf,
    /// WAL, or the JSON of a report
    pub after: PathBuf,
    /// Exit code 1 where there is more WAL after than before: in all, or for each commit
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "total")]
    pub fail_on_growth: Option<Growth>,
    /// Rows of long tables; 0: all [default: 20; JSON: all]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Threads; results do not depend on it [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Names of relations
    #[command(flatten)]
    pub names: NameArgs,
    /// Formats, and where they go
    #[command(flatten)]
    pub outputs: Outputs<DiffFormat>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// What must not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Growth {
    /// Bytes of all records
    Total,
    /// Bytes for each commit
    Commit,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DiffFormat {
    /// For people
    #[default]
    Table,
    /// One object
    Json,
    /// For pull requests and summaries
    Markdown,
}

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
    args.outputs.spare([args.before.as_path(), args.after.as_path()])?;
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
        Some(growth) if has_grown(&diff, growth) => Exit::Broken,
        _ => Exit::Done,
    })
}

fn has_grown(diff: &Diff, growth: Growth) -> bool {
    match growth {
        Growth::Total => diff.totals.change.total_bytes > 0,
        Growth::Commit => {
            let (before, after) = (diff.before.bytes_per_commit, diff.after.bytes_per_commit);
            before.zip(after).is_some_and(|(before, after)| after > before)
        }
    }
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

/// A report that was written before, or that of the WAL at a path.
fn side(args: &DiffArgs, path: &Path) -> Result<Report, Failure> {
    match begins_as_json(path) {
        true if !args.filters.is_empty() => Err(Failure::Usage(format!(
            "{}: is a report, which no filter changes: expected WAL, or the filters as the report is made",
            path.display()
        ))),
        true => read_report(path),
        false => count(args, path),
    }
}

/// Whether a file begins like an object. What cannot be read is told when it is read as WAL.
fn begins_as_json(path: &Path) -> bool {
    let mut head = [0; 64];
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let read = is_file.then(|| File::open(path).and_then(|mut file| file.read(&mut head)));
    let Some(Ok(bytes)) = read else { return false };
    let mut text = head.iter().take(bytes).filter(|byte| !byte.is_ascii_whitespace());
    text.next() == Some(&b'{')
}

fn read_report(path: &Path) -> Result<Report, Failure> {
    let beside = |reason: String| Failure::Beside { path: path.display().to_string(), reason };
    let bytes = std::fs::read(path).map_err(|error| beside(error.to_string()))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| beside(format!("found no JSON ({error}), expected a report")))?;
    let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    if let Some(error) = value.get("error").and_then(serde_json::Value::as_str) {
        return Err(beside(format!("the report of WAL that could not be read: {error}")));
    }
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(text("schema")) != major(SCHEMA) {
        return Err(beside(format!("found schema {:?}, expected {SCHEMA}", text("schema"))));
    }
    if !["report", "stats", "check"].contains(&text("command")) {
        return Err(beside(format!(
            "found the answer of {:?}, expected a report",
            text("command")
        )));
    }
    serde_json::from_value(value).map_err(|error| beside(format!("found no report: {error}")))
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
