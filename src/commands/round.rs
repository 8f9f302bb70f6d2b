//! A check night after night: what an earlier round has read is remembered, and what is new is read.

use super::guarded::guarded;
use super::plugin;
use super::read::{self, Read};
use super::state::State;
use crate::args::check::CheckArgs;
use crate::args::relation::RelationArg;
use crate::failure::Failure;
use crate::output::{Waiting, before_end};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use walstat_analyse::counters::Counters;
use walstat_analyse::select::Filters;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::discover::Found;
use walstat_read::input::error::InputError;
use walstat_read::scan::round::{Round, RoundRead};
use walstat_report::build;
use walstat_report::model::Report;
use walstat_report::model::checked::StateSummary;
use walstat_report::notes;

/// Options that leave out what depends on the rest of the WAL, or on the time of the round.
pub fn check_usage(args: &CheckArgs) -> Result<(), Failure> {
    if args.round.state.is_none() {
        return Ok(());
    }
    let range = &args.source.range;
    let given = [
        ("start", range.start.is_some()),
        ("end", range.end.is_some()),
        ("limit", range.limit.is_some_and(|limit| limit > 0)),
        ("since", range.since.is_some()),
        ("until", range.until.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        let text = format!("--state remembers all of the WAL: it takes no --{option}");
        return Err(Failure::Usage(text));
    }
    match (&args.filters.relation, args.filters.table) {
        (None, _) | (Some(RelationArg::File(_)), false) => Ok(()),
        _ => {
            let text = "--state takes --relation as tablespace/database/relfilenode alone: what a name \
                        stands for may change from one round to the next";
            Err(Failure::Usage(text.to_owned()))
        }
    }
}

/// A state that is being used. If a signal ends the program meanwhile, it is written before.
#[derive(Debug)]
pub struct OpenState {
    state: Arc<State>,
    _waiting: Waiting,
}

impl OpenState {
    /// Writes it.
    pub fn save(&self) -> Result<(), Failure> {
        self.state.save()
    }
}

/// Opens the state, if one is asked for; `has_tables`: whether tables are counted.
pub fn open(
    args: &CheckArgs,
    filters: &Filters,
    has_tables: bool,
) -> Result<Option<OpenState>, Failure> {
    let Some(path) = &args.round.state else { return Ok(None) };
    let state = State::open(path, asked(args, filters, has_tables), args.source.inputs())?;
    let ending = Arc::clone(&state);
    Ok(Some(OpenState { state, _waiting: before_end(move || ending.end_early()) }))
}

/// The options that decide what is remembered.
fn asked(args: &CheckArgs, filters: &Filters, has_tables: bool) -> Vec<String> {
    let taken_for = args.source.taken_for.map(|told| format!("--as {told}"));
    let unverified = args.source.no_verify_checksums.then(|| "--no-verify-checksums".to_owned());
    let filters = build::filters(filters).options();
    let tables = has_tables.then(|| "limits of tables or rules".to_owned());
    let names = args.names.inputs().filter(|_| has_tables);
    let names = names.map(|path| format!("names from {}", path.display()));
    [taken_for, unverified, filters, tables].into_iter().flatten().chain(names).collect()
}

/// What lies at the paths, of which `state` knows some files.
pub fn found(args: &CheckArgs, state: Option<&OpenState>) -> Result<Found, Failure> {
    let Some(open) = state else { return read::found(&args.source) };
    let files = open.state.memory.lock().unwrap_or_else(PoisonError::into_inner).files();
    read::found_known(&args.source, Arc::new(files))
}

/// Reads what is new.
pub fn read(
    args: &CheckArgs,
    open: &OpenState,
    found: Found,
    filters: &Filters,
    accepted_gaps: Vec<Range<Lsn>>,
    prototype: &Counters,
) -> Result<(Read, Round), Failure> {
    let mut scan = read::scan(&args.source, Lsn(0)..Lsn::MAX, filters);
    scan.wanted.accepted_gaps = accepted_gaps;
    let paths = read::names_of(&found.paths);
    let recheck = args.round.recheck.unwrap_or_default();
    let read = scan.count_round(found, &open.state.memory, recheck, prototype);
    // The store, or the system, gives no more: that says nothing against what was read before.
    if matches!(read, Err(InputError::Io { .. } | InputError::Descriptors { .. })) {
        open.state.save_unfinished();
    }
    let RoundRead { plan, outcome, round } = read?;
    Ok((Read { paths, plan, scanned: outcome, filters: filters.clone() }, round))
}

/// Does `work`, in which a state may be believed.
pub fn guarded_by_state<T>(
    args: &CheckArgs,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(state) = args.round.state.clone() else { return work() };
    let outputs = args.outputs.clone();
    guarded(work, move || plugin::failed(&outputs, unsound(&state)))
}

/// Refuses a state of which more or less was counted than there was to read.
pub fn books_close(state: &Path, report: &Report) -> Result<(), Failure> {
    match report.books.unaccounted_bytes {
        0 => Ok(()),
        _ => Err(unsound(state)),
    }
}

fn unsound(state: &Path) -> Failure {
    let reason = "a state with numbers that contradict each other; remove the file to have everything read \
                  anew";
    Failure::Usage(format!("{}: {reason}", state.display()))
}

/// What the report says of the round; `has_tables`: what the rules look at was counted.
pub fn told(report: &mut Report, round: Round, segment_bytes: u32, has_tables: bool) {
    let count = |number: usize| number as u64;
    let state = StateSummary {
        known_segments: count(round.known),
        read_segments: count(round.read),
        rechecked_segments: count(round.rechecked),
        read_bytes: round.read_bytes,
        verified_to: verified_to(report, segment_bytes),
    };
    report.notes.push(notes::round(&state));
    report.state = Some(state);
    if !has_tables {
        report.findings = None;
    }
}

/// Up to where there is no problem.
fn verified_to(report: &Report, segment_bytes: u32) -> String {
    let end = report.ending.lsn.parse().unwrap_or(Lsn(0));
    let place = |lsn: &Option<String>, segment: &str| {
        let lsn = lsn.as_ref().and_then(|lsn| lsn.parse::<Lsn>().ok());
        let name = SegmentName::leading(segment);
        lsn.or_else(|| name?.start(segment_bytes))
    };
    let problems = report.problems.iter();
    let first = problems.filter_map(|problem| place(&problem.lsn, &problem.segment)).min();
    first.map_or(end, |first| first.min(end)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use std::io::ErrorKind;
    use walstat_read::input::source::{KeptBytes, Source};

    /// What the system, or a store, does not give says nothing against what was read before.
    #[test]
    fn what_was_read_in_a_round_that_cannot_go_on_is_remembered() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pg15-mixed");
        let folder = tempfile::tempdir().expect("a directory");
        let state = folder.path().join("state");
        let words = ["walstat", "check", "--state", state.to_str().expect("UTF-8"), sample];
        let cli = Cli::try_parse_from(words).expect("arguments");
        let Some(Command::Check(args)) = cli.command else { panic!("not a check") };
        let (filters, counters) = (Filters::default(), Counters::default());
        let begin = || {
            let open = open(&args, &filters, false).expect("a state").expect("a state");
            let found = found(&args, Some(&open)).expect("files");
            (open, found)
        };
        let (open, mut failing) = begin();
        let count = failing.pieces.len();
        let piece = failing.pieces.get_mut(1).expect("a second one");
        let lacks = KeptBytes::failing(ErrorKind::OutOfMemory, "no memory".to_owned());
        piece.probe.source = Source::Kept(piece.path().into(), None, Arc::new(lacks));
        let read = |open: &_, found| read(&args, open, found, &filters, Vec::new(), &counters);
        let failure = read(&open, failing).expect_err("memory is lacking");
        assert!(failure.to_string().ends_with("no memory"), "{failure}");
        drop(open);
        let (open, found) = begin();
        let (_, round) = read(&open, found).expect("all of it");
        assert_eq!((round.known, round.read), (count - 1, 1));
    }
}
