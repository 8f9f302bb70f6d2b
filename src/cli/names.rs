//! `walstat names`: the query for a names file, and the names that paths yield.

use super::name_args::NameArgs;
use super::output::{spare_inputs, wanted, write_unstyled};
use super::read::{self, found};
use super::source_args::SourceArgs;
use super::values::When;
use super::{Exit, Failure};
use crate::analyse::dimension::Dimensions;
use crate::analyse::who::Who;
use crate::input::names_file::QUERY;
use crate::render::visible::visible;
use crate::render::{json, names};
use crate::report::known::Known;
use crate::report::model::names::NamesReport;
use crate::report::model::{CommandName, Unreadable};
use crate::wal::catalog::names::Names;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `walstat names`.
#[derive(Debug, Args)]
#[command(after_help = "A names file of all databases of a server:\n  \
                  for db in $(psql -Atc 'SELECT datname FROM pg_database WHERE datallowconn'); do\n    \
                  walstat names --sql | psql -XqAt -d \"$db\"\n  done > names.csv")]
pub struct NamesArgs {
    /// Print the query that gives a names file, to be run by psql in each database
    #[arg(long, conflicts_with_all = ["paths", "names", "data_directory"])]
    pub sql: bool,
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// Other sources
    #[command(flatten)]
    pub names: NameArgs,
    /// Format [default: table on a terminal, csv elsewhere]
    #[arg(short, long, value_name = "F", value_enum, help_heading = "Output")]
    pub format: Option<NamesFormat>,
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Formats of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NamesFormat {
    /// For people
    Table,
    /// A line a file
    Csv,
    /// The same as COPY writes it
    Tsv,
    /// One object
    Json,
    /// An object a line
    Ndjson,
}

/// Prints the query, or the names.
pub fn run(args: &NamesArgs) -> Result<Exit, Failure> {
    let output = args.output.as_deref();
    if args.sql {
        write_unstyled(output, |out| write!(out, "{QUERY}"))?;
        return Ok(Exit::Done);
    }
    let on_terminal = match wanted(When::Auto, output.is_some()) {
        true => NamesFormat::Table,
        false => NamesFormat::Csv,
    };
    let format = args.format.unwrap_or(on_terminal);
    spare_inputs(output, args.source.inputs())?;
    let result = names_of(args);
    if let Err(failure) = &result
        && failure.is_unreadable()
        && format == NamesFormat::Json
    {
        let answer = Unreadable::new(CommandName::Names, failure.to_string());
        write_unstyled(output, |out| json::render(&answer, out))?;
    }
    let Answer { names, warnings, exit } = result?;
    for warning in &warnings {
        eprintln!("walstat: {}", visible(warning));
    }
    let report = NamesReport::new(names.list(), warnings);
    write_unstyled(output, |out| match format {
        NamesFormat::Table => names::table(&report, out),
        NamesFormat::Csv => names::csv(&report, out),
        NamesFormat::Tsv => names::tsv(&report, out),
        NamesFormat::Json => names::object(&report, out),
        NamesFormat::Ndjson => names::lines(&report, out),
    })?;
    Ok(exit)
}

struct Answer {
    names: Names,
    warnings: Vec<String>,
    exit: Exit,
}

/// The names of all sources; of a data directory also where it has no WAL.
fn names_of(args: &NamesArgs) -> Result<Answer, Failure> {
    let found = found(&args.source)?;
    let has_catalogs = found.data_directory.is_some() || args.names.data_directory.is_some();
    let known = Known::names(&args.names.sources(), &found, &Dimensions::new());
    match read::read_all(&args.source, found, &Who::names(known.store())) {
        Ok(read) => {
            let exit = if read.scanned.problems.is_empty() { Exit::Done } else { Exit::Damage };
            let (counted, warnings) = known.finish(read.scanned.observer, &read.plan);
            Ok(Answer { names: counted.names, warnings, exit })
        }
        Err(failure) if has_catalogs && failure.is_unreadable() => {
            let (names, mut warnings) = known.without_wal();
            warnings.push(failure.to_string());
            Ok(Answer { names, warnings, exit: Exit::Done })
        }
        Err(failure) => Err(failure),
    }
}
