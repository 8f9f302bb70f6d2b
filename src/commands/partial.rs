//! `--partial` and `walstat merge`: the mergeable form of one run of segments, and the report of many.

mod all_names;
mod beside;

use super::read;
use super::stats;
use crate::args::relation::RelationArg;
use crate::args::values::When;
use crate::args::{Cli, Format, StatsArgs};
use crate::commands::{gather, guarded};
use crate::failure::{Exit, Failure};
use crate::output::write_bytes;
use beside::{Beside, Difference};
use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use walstat_analyse::counters::Counters;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::select::{Filters, RelationFilter};
use walstat_analyse::who::Who;
use walstat_format::rmgr;
use walstat_read::input::discover::Found;
use walstat_read::input::error::InputError;
use walstat_read::input::packed::{self, PARTIAL, PackedError, pack, unpack};
use walstat_read::input::storage;
use walstat_read::scan::partial::Partial;
use walstat_read::scan::progress::Progress;
use walstat_report::assemble::Gathered;
use walstat_report::known::{Directory, Known};
use walstat_report::model::Report;
use walstat_report::model::table::Sort;

/// What was asked for when a partial result was made, as options.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct AskedOptions {
    /// What is counted: must be the same everywhere.
    counted: Vec<String>,
    /// How it is shown: what the first one says, if nothing else is said.
    shown: Vec<String>,
}

/// The version of [`Layout`] that is written into a partial result's file. Raise it whenever the written form
/// of `Layout`, or of any type in it, changes. Releases of the same one read each other's partial results.
/// `tests/it/partial_layout.rs` fails where it was forgotten.
pub(super) const LAYOUT_VERSION: u32 = 37;

/// What is in the file of a partial result.
#[derive(Serialize, Deserialize)]
struct Layout {
    asked: AskedOptions,
    beside: Beside,
    partial: Partial<Counters>,
    /// What all of the WAL says of names, where a range of it is counted.
    all_names: Option<Partial<Who>>,
}

/// Writes the partial result of what `args` ask for.
pub fn write(args: &StatsArgs) -> Result<Exit, Failure> {
    if args.source.range.limit.is_some_and(|limit| limit > 0) {
        let text = "--partial takes no --limit: what it leaves out depends on the other parts";
        return Err(Failure::Usage(text.to_owned()));
    }
    if args.source.range.since.is_some() || args.source.range.until.is_some() {
        let text = "--partial takes no --since or --until: what they leave out depends on times in \
                    the other parts";
        return Err(Failure::Usage(text.to_owned()));
    }
    stats::check_rules(args)?;
    args.outputs.only()?;
    stats::refuse_to_overwrite(args)?;
    let filters = filters(args)?;
    let mut beside = Beside::of(args)?;
    let (partial, known) = read_partial(args, &filters)?;
    let all_names = all_names::read(args, &known)?;
    beside.directory = known.into_directory();
    write_layout(&Layout { asked: AskedOptions::of(args), beside, partial, all_names }, args)
}

fn write_layout(layout: &Layout, args: &StatsArgs) -> Result<Exit, Failure> {
    let output = args.outputs.only()?.file.as_deref();
    let bytes = pack(PARTIAL, &[LAYOUT_VERSION], layout).map_err(|error| Failure::Beside {
        path: output.map_or_else(|| "standard output".into(), |path| path.display().to_string()),
        reason: error.to_string(),
    })?;
    write_bytes(output, &bytes)?;
    Ok(if layout.partial.has_problems() { Exit::Damage } else { Exit::Done })
}

/// The filters; names would stand for other files in each part.
fn filters(args: &StatsArgs) -> Result<Filters, Failure> {
    let filters = &args.filters;
    let relation = match (&filters.relation, filters.table) {
        (None, _) => None,
        (Some(RelationArg::File(file)), false) => {
            Some(RelationFilter { text: file.to_string(), whole_table: false, files: vec![*file] })
        }
        _ => {
            let text = "--partial takes --relation as tablespace/database/relfilenode alone: what a \
                        name stands for depends on the other parts";
            return Err(Failure::Usage(text.to_owned()));
        }
    };
    Ok(filters.filters(relation))
}

/// Reads everything, and what is known before the WAL is read.
fn read_partial(
    args: &StatsArgs,
    filters: &Filters,
) -> Result<(Partial<Counters>, Known), Failure> {
    let scan = read::scan(&args.source, read::range(&args.source)?, filters);
    let found = read::found(&args.source)?;
    let (command, asked) =
        (stats::command(args), stats::dimensions_with(args, stats::has_charts(args)));
    // What is said of the names is said when they are shown.
    let known = Known::of(&args.names.sources(), &found, &asked);
    let prototype = gather::prototype(args, command, &asked, None, &known);
    let partial = Partial::read(found, &scan.wanted, &Progress::default(), &prototype)?;
    Ok((partial, known))
}

/// Puts the partial results at the paths of `given` together and shows what was asked for.
pub fn merge(given: &StatsArgs) -> Result<Exit, Failure> {
    if given.source.paths.is_empty() {
        let text = "merge needs the files that 'walstat --partial' wrote";
        return Err(Failure::Usage(text.to_owned()));
    }
    stats::refuse_to_overwrite(given)?;
    let parts = Parts::load(given)?;
    if given.partial { parts.write(given) } else { parts.report(given) }
}

/// What lies in the files of partial results.
#[derive(Default)]
struct Parts {
    /// What all of them were asked for.
    asked: AskedOptions,
    beside: Beside,
    partials: Vec<Partial<Counters>>,
    names: Vec<Option<Partial<Who>>>,
}

impl Parts {
    /// Reads the files, and holds what they were made with against the first of them.
    fn load(given: &StatsArgs) -> Result<Parts, Failure> {
        let own = AskedOptions::of(given);
        let mut parts = Parts::default();
        let first = first_of(given);
        let (directories, files) = apart_from_files(&given.source.paths)?;
        for (index, path) in files.into_iter().enumerate() {
            let layout = on_partials(path, || load(path))?;
            let Layout { asked: theirs, beside: others, partial, all_names } = layout;
            if index == 0 {
                parts.asked = theirs.clone();
            }
            let joined = parts.beside.join(others.without_given(given));
            joined.map_err(|difference| made_otherwise(path, &difference, first))?;
            theirs.agrees_with(&parts.asked, path, first)?;
            parts.partials.push(partial);
            parts.names.push(all_names);
        }
        own.repeats(&parts.asked, first)?;
        for directory in directories {
            parts.partials.push(Partial::beside(directory)?);
        }
        Ok(parts)
    }

    /// Writes one partial result that has what all of them have.
    fn write(self, given: &StatsArgs) -> Result<Exit, Failure> {
        let Parts { asked, beside, partials, names } = self;
        let path = first_of(given);
        let layout = on_partials(path, || {
            let partial = Partial::join(partials).map_err(InputError::from)?;
            let names = names.into_iter().collect::<Option<Vec<_>>>().map(Partial::join);
            let all_names = names.transpose().map_err(InputError::from)?;
            Ok(Layout { asked, beside, partial, all_names })
        })?;
        write_layout(&layout, given)
    }

    /// Shows what was asked for of all of them.
    fn report(self, given: &StatsArgs) -> Result<Exit, Failure> {
        let Parts { asked, beside, partials, names } = self;
        let (own, first) = (AskedOptions::of(given), first_of(given));
        let has_charts = asked.has_charts();
        let mut args = asked.arguments(&own)?;
        args.outputs = given.outputs.with_format_of_partial(&args.outputs);
        // A connection string may have a password in it: no partial result keeps one.
        #[cfg(feature = "server")]
        args.names.dsn.clone_from(&given.names.dsn);
        let directory = beside.give_to(&mut args, given);
        args.source.threads = given.source.threads;
        if stats::has_charts(&args) && !has_charts {
            let reason = "made without --format html: a page needs more than was counted";
            return Err(apart(first, reason));
        }
        let counted = stats::dimensions_with(&args, has_charts);
        on_partials(first, || {
            let read = || put_together(partials, names, &args, &counted, directory);
            stats::run_on(&args, &counted, read, |report| books_close(first, report))
        })
    }
}

/// The archive that parts were made of, which brings what lies beside its segments, and their files.
fn apart_from_files(paths: &[PathBuf]) -> Result<(Vec<&Path>, Vec<&Path>), Failure> {
    let paths = paths.iter().map(PathBuf::as_path);
    let (directories, files): (Vec<&Path>, Vec<&Path>) = paths.partition(|it| storage::is_dir(it));
    match (directories.first(), files.is_empty()) {
        (Some(directory), true) => {
            let reason = "a directory, expected files that 'walstat --partial' wrote, too; 'walstat PATH' \
                          reads the WAL in it";
            Err(apart(directory, reason))
        }
        _ => Ok((directories, files)),
    }
}

/// The first file of a merge: the one that others are held against.
fn first_of(given: &StatsArgs) -> &Path {
    let mut files = given.source.paths.iter().filter(|path| !storage::is_dir(path));
    files.next().map_or(Path::new(""), |path| path.as_path())
}

/// Refuses partial results of which more or less was counted than there was to read.
fn books_close(path: &Path, report: &Report) -> Result<(), Failure> {
    match report.books.unaccounted_bytes {
        0 => Ok(()),
        bytes => {
            let reason = format!(
                "a partial result, or one given with it, whose books do not close: {bytes} bytes of {} \
                 are unaccounted for, expected 0",
                report.books.input_bytes
            );
            Err(Failure::Beside { path: path.display().to_string(), reason })
        }
    }
}

/// Does `work` on partial results.
fn on_partials<T>(path: &Path, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let owned = path.to_owned();
    guarded::guarded(work, move || Err(unsound(&owned)))
}

fn unsound(path: &Path) -> Failure {
    let reason = "a partial result, or one given with it, with numbers that contradict each other";
    Failure::Beside { path: path.display().to_string(), reason: reason.to_owned() }
}

fn put_together(
    partials: Vec<Partial<Counters>>,
    all_names: Vec<Option<Partial<Who>>>,
    args: &StatsArgs,
    asked: &Dimensions,
    directory: Option<Directory>,
) -> Result<(Gathered, Filters), Failure> {
    let filters = filters(args)?;
    let (mut found, passed) = Partial::merge(partials).map_err(InputError::from)?;
    found.taken_for = args.source.taken_for;
    let paths = found.paths.iter().map(|path| path.display().to_string()).collect();
    let known = |found: &Found| known(args, directory.clone(), found, asked);
    let counted = known(&found);
    let prototype = gather::prototype(args, stats::command(args), asked, None, &counted);
    // The runs are filtered already; the rest is read as they were.
    let scan = read::scan(&args.source, read::range(&args.source)?, &filters);
    let (plan, scanned) = scan.count_passed(found, passed, &Partial::observer(&prototype))?;
    let mut gathered = Gathered::of(paths, plan, scanned.map(Counters::of), counted);
    if gather::is_part(args)
        && gather::has_unnamed(&gathered)
        && let Some(named) = all_names::merge(all_names, args, known(&Found::default()))?
    {
        gather::put_names(&mut gathered, named);
    }
    Ok((gathered, filters))
}

/// What is known before: from the data directory that is given now, or that of the parts.
fn known(
    args: &StatsArgs,
    directory: Option<Directory>,
    found: &Found,
    asked: &Dimensions,
) -> Known {
    let sources = args.names.sources();
    match &sources.data_directory {
        Some(_) => Known::of(&sources, found, asked),
        None => Known::told(directory, &sources, asked),
    }
}

fn load(path: &Path) -> Result<Layout, Failure> {
    let beside = |reason: String| Failure::Beside { path: path.display().to_string(), reason };
    if path.as_os_str() == "-" {
        return Err(apart(path, "merge reads files, not standard input"));
    }
    let bytes = packed::read(PARTIAL, path).map_err(|error| beside(error.to_string()))?;
    let layout: Layout =
        unpack(PARTIAL, &[LAYOUT_VERSION], &bytes).map_err(|error| match error {
            PackedError::Layout { .. } => apart(path, &error.to_string()),
            _ => beside(error.to_string()),
        })?;
    let names_are_sound = layout.all_names.as_ref().is_none_or(Partial::is_sound);
    if !layout.partial.is_sound() || !names_are_sound {
        return Err(unsound(path));
    }
    if !layout.asked.is_understood() {
        let options = [&layout.asked.counted[..], &layout.asked.shown].concat().join(" ");
        let reason = format!("made with {options}: not what --partial of this release takes");
        return Err(apart(path, &reason));
    }
    Ok(layout)
}

/// What can be read and does not belong to the others: something else has to be asked.
fn apart(path: &Path, reason: &str) -> Failure {
    Failure::Usage(format!("{}: {reason}", path.display()))
}

fn made_otherwise(path: &Path, (found, expected): &Difference, first: &Path) -> Failure {
    let first = first.display();
    apart(path, &format!("made with {found}, expected {expected} as in {first}"))
}

impl AskedOptions {
    fn of(args: &StatsArgs) -> AskedOptions {
        AskedOptions { counted: counted(args), shown: shown(args) }
    }

    /// Fails if a partial result was made with other options than the first one.
    fn agrees_with(
        &self,
        expected: &AskedOptions,
        path: &Path,
        first: &Path,
    ) -> Result<(), Failure> {
        let of_page =
            |asked: &Self| if asked.has_charts() { "--format html" } else { "no --format html" };
        let difference = difference(&self.counted, &expected.counted).or_else(|| {
            let pair = (of_page(self).to_owned(), of_page(expected).to_owned());
            (pair.0 != pair.1).then_some(pair)
        });
        difference.map_or(Ok(()), |difference| Err(made_otherwise(path, &difference, first)))
    }

    /// Fails if options are given once more, and others than those of the partial results.
    fn repeats(&self, made: &AskedOptions, first: &Path) -> Result<(), Failure> {
        let keys: Vec<&str> = self.counted.iter().map(|option| key(option)).collect();
        let repeated = made.counted.iter().filter(|option| keys.contains(&key(option)));
        let repeated: Vec<String> = repeated.cloned().collect();
        difference(&self.counted, &repeated).map_or(Ok(()), |(found, expected)| {
            let first = first.display();
            Err(Failure::Usage(format!("asked for {found}, {first} was made with {expected}")))
        })
    }

    /// Whether these are options that `--partial` takes and writes down, as it writes them: a file can have
    /// any, and no others are followed.
    fn is_understood(&self) -> bool {
        self.arguments(&AskedOptions::default()).is_ok_and(|args| AskedOptions::of(&args) == *self)
    }

    /// Whether what the charts of a page need is counted, too.
    fn has_charts(&self) -> bool {
        self.arguments(&AskedOptions::default()).is_ok_and(|args| stats::has_charts(&args))
    }

    /// The arguments that ask for the same; what `own` says of how to show it wins.
    fn arguments(&self, own: &AskedOptions) -> Result<StatsArgs, Failure> {
        let keys: Vec<&str> = own.shown.iter().map(|option| key(option)).collect();
        let shown = self.shown.iter().filter(|option| !keys.contains(&key(option)));
        let options = self.counted.iter().chain(shown).chain(&own.shown).map(String::as_str);
        let cli = Cli::try_parse_from(["walstat"].into_iter().chain(options));
        cli.map(|cli| cli.stats).map_err(|error| Failure::Usage(error.to_string()))
    }
}

/// The options that decide what is counted.
fn counted(args: &StatsArgs) -> Vec<String> {
    let StatsArgs { source, filters, .. } = args;
    let mut options: Vec<String> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| format!("--{name}={value}")));
    };
    let dimensions: Vec<&str> = args.dimensions().into_iter().map(Dimension::name).collect();
    add("stats", (!dimensions.is_empty()).then(|| dimensions.join(",")));
    add("as", source.taken_for.map(|told| told.to_string()));
    add("start", source.range.start.map(|lsn| lsn.to_string()));
    add("end", source.range.end.map(|lsn| lsn.to_string()));
    add("timeline", source.range.timeline.map(|number| number.to_string()));
    filters.rmgr.iter().for_each(|id| add("rmgr", Some(rmgr::name(*id).into())));
    filters.record.iter().for_each(|name| add("record", Some(name.clone())));
    add("xid", filters.xid.map(|xid| xid.to_string()));
    add("relation", filters.relation.as_ref().map(|relation| relation.to_string()));
    add("block", filters.block.map(|block| block.to_string()));
    add("fork", filters.fork.map(|fork| fork.to_string()));
    add("database", filters.database.map(|oid| oid.to_string()));
    add("tz", source.range.tz.as_ref().map(|zone| zone.name.clone()));
    options.extend(args.when.options());
    options.extend(filters.table.then(|| "--table".to_owned()));
    options.extend(filters.fullpage.then(|| "--fullpage".to_owned()));
    options.extend(source.no_verify_checksums.then(|| "--no-verify-checksums".to_owned()));
    options
}

/// The options that decide how it is shown, as far as they are not the default.
fn shown(args: &StatsArgs) -> Vec<String> {
    let StatsArgs { tables, show, .. } = args;
    let name = |value: Option<PossibleValue>| value.map(|value| value.get_name().to_owned());
    let format = args.outputs.formats().next().filter(|format| *format != Format::Table);
    let format = format.and_then(|format| name(format.to_possible_value()));
    let bytes = show.bytes.and_then(|form| name(form.to_possible_value()));
    let color = name(show.color.to_possible_value()).filter(|_| show.color != When::Auto);
    let sort = (tables.sort != Sort::Bytes).then(|| tables.sort.to_string());
    let options = [
        ("format", format),
        ("ruleset", args.config.ruleset.map(|ruleset| ruleset.to_string())),
        ("top", tables.top.map(|rows| rows.to_string())),
        ("sort", sort),
        ("by", tables.by.and_then(|by| name(by.to_possible_value()))),
        ("json-compat", tables.json_compat.and_then(|tool| name(tool.to_possible_value()))),
        ("bytes", bytes),
        ("color", color),
    ];
    let flags = [
        ("show-main-data", tables.show_main_data),
        ("quiet", show.quiet),
        ("verbose", show.verbose),
    ];
    let options =
        options.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
    let flags = flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| format!("--{name}"));
    options.chain(flags).collect()
}

/// The name of an option.
fn key(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// The first option by which two lists differ: how it stands in each.
fn difference(found: &[String], expected: &[String]) -> Option<Difference> {
    let values = |options: &[String], name: &str| {
        let named = options.iter().filter(|option| key(option) == name);
        let named: Vec<&str> = named.map(String::as_str).collect();
        if named.is_empty() { format!("no {name}") } else { named.join(" ") }
    };
    let names = found.iter().chain(expected).map(|option| key(option));
    let mut pairs = names.map(|name| (values(found, name), values(expected, name)));
    pairs.find(|(found, expected)| found != expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(options: &[&str]) -> AskedOptions {
        let cli = Cli::try_parse_from(["walstat"].iter().chain(options)).expect("arguments");
        AskedOptions::of(&cli.stats)
    }

    #[test]
    fn what_was_asked_is_asked_again() {
        let options = [
            "--stats=rmgr,record",
            "--as=archive",
            "--start=0/00700028",
            "--end=0/01000000",
            "--timeline=2",
            "--rmgr=Heap",
            "--rmgr=Btree",
            "--record=HOT_UPDATE",
            "--xid=7",
            "--relation=1663/5/16384",
            "--block=3",
            "--fork=vm",
            "--database=5",
            "--fullpage",
            "--no-verify-checksums",
            "--format=json",
            "--ruleset=strict",
            "--top=3",
            "--sort=count",
            "--bytes=raw",
            "--color=never",
            "--show-main-data",
            "--verbose",
        ];
        let asked = asked(&options);
        let all: Vec<&str> = asked.counted.iter().chain(&asked.shown).map(String::as_str).collect();
        assert_eq!(all, options);
        assert!(asked.is_understood());
        for smuggled in
            ["--output=anywhere", "-o", "elsewhere", "--start=0/1", "--config=f", "--names=f"]
        {
            let mut asked = asked.clone();
            asked.shown.push(smuggled.to_owned());
            assert!(!asked.is_understood(), "{smuggled}");
        }
    }

    #[test]
    fn other_options_are_named_with_both_values() {
        let (one, two) = (asked(&["--stats", "--rmgr=Heap"]), asked(&["--stats"]));
        let error = two.agrees_with(&one, Path::new("b"), Path::new("a")).expect_err("differ");
        assert_eq!(error.to_string(), "b: made with no --rmgr, expected --rmgr=Heap as in a");
        assert!(asked(&["--stats"]).repeats(&one, Path::new("a")).is_ok());
        let error = asked(&["--stats=record"]).repeats(&one, Path::new("a")).expect_err("differ");
        assert_eq!(error.to_string(), "asked for --stats=record, a was made with --stats=rmgr");
    }
}
