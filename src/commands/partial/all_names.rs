//! Names that stand before and after a range. A report of a range takes them from all of the WAL where some
//! are missing (`gather`): so each part of a range also has what all of its WAL says of names.

use crate::args::StatsArgs;
use crate::commands::gather::is_part;
use crate::commands::read;
use crate::commands::relation_files::{Named, may_be_read_whole};
use crate::commands::stats;
use crate::failure::Failure;
use walstat_analyse::who::Who;
use walstat_read::input::error::InputError;
use walstat_read::scan::partial::Partial;
use walstat_read::scan::progress::Progress;
use walstat_report::known::Known;

/// What the WAL of a part says of names; `None` where nobody will ask, or it can be read only once.
pub fn read(args: &StatsArgs, known: &Known) -> Result<Option<Partial<Who>>, Failure> {
    if !is_part(args) || !Who::needs_names(&stats::dimensions(args)) {
        return Ok(None);
    }
    let found = read::found(&args.source)?;
    if !may_be_read_whole(&args.source, &found) {
        return Ok(None);
    }
    let (scan, who) = (read::all(&args.source), Who::names(known.store()));
    Ok(Some(Partial::read(found, &scan.wanted, &Progress::default(), &who)?))
}

/// The names of all parts; `None` where one of them could not tell.
pub fn merge(
    parts: Vec<Option<Partial<Who>>>,
    args: &StatsArgs,
    known: Known,
) -> Result<Option<Named>, Failure> {
    let Some(parts) = parts.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let (mut found, passed) = Partial::merge(parts).map_err(InputError::from)?;
    found.taken_for = args.source.taken_for;
    let observer = Partial::observer(&Who::names(known.store()));
    let (plan, scanned) = read::all(&args.source).count_passed(found, passed, &observer)?;
    let who = scanned.observer.into_inner().unwrap_or_else(|_| Who::names(None));
    let (counted, warnings) = known.finish(who, &plan);
    Ok(Some((counted.names, warnings)))
}
