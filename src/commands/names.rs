//! `walstat names`: the query for a names file, and the names that paths yield.

use super::read::{self, found};
use crate::args::names::{NamesArgs, NamesFormat};
use crate::args::values::When;
use crate::failure::{Exit, Failure};
use crate::output::inputs::refuse_to_overwrite;
use crate::output::{file_of, tell, wanted, write_unstyled};
use crate::render::visible::visible;
use crate::render::{json, names};
use walstat_analyse::who::Who;
use walstat_names::catalog::names::Names;
use walstat_names::names_file::QUERY;
use walstat_report::known::Known;
use walstat_report::model::names::NamesReport;
use walstat_report::model::{CommandName, Unreadable};

/// Prints the query, or the names.
pub fn run(args: &NamesArgs) -> Result<Exit, Failure> {
    let output = file_of(args.output.as_deref());
    if args.sql {
        write_unstyled(output, |out| write!(out, "{QUERY}"))?;
        return Ok(Exit::Done);
    }
    let on_terminal =
        if wanted(When::Auto, output.is_some()) { NamesFormat::Table } else { NamesFormat::Csv };
    let format = args.format.unwrap_or(on_terminal);
    refuse_to_overwrite(output, args.source.inputs().chain(args.names.inputs()))?;
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
        tell(&format!("walstat: {}", visible(warning)));
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
    let known = Known::names(&args.names.sources(), &found);
    match read::all(&args.source).count_found(found, &Who::names(known.store())) {
        Ok((plan, scanned)) => {
            let exit = if scanned.problems.is_empty() { Exit::Done } else { Exit::Damage };
            let (counted, warnings) = known.finish(scanned.observer, &plan);
            Ok(Answer { names: counted.names, warnings, exit })
        }
        Err(error) => {
            let failure = Failure::from(error);
            if !has_catalogs || !failure.is_unreadable() {
                return Err(failure);
            }
            let (names, mut warnings) = known.without_wal();
            warnings.push(failure.to_string());
            Ok(Answer { names, warnings, exit: Exit::Done })
        }
    }
}
