//! Arguments: what was typed, checked as far as it can be without opening a file.

use super::check_args::CheckArgs;
use crate::analyse::select::Filters;
use crate::input::taken_for::TakenFor;
use crate::report::arrange::Sort;
use crate::wal::block::RelFileLocator;
use crate::wal::lsn::Lsn;
use crate::wal::rmgr;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What is in this WAL, why there is so much of it, and what to do about it.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    long_about = "Reads PostgreSQL WAL (9.5 to 19) without a server, and says what is in it, why \
                  there is so much of it, and what to do about it. Every byte of the input is \
                  accounted for.",
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 done, 1 a limit was broken, 2 usage, 3 not readable as WAL, 4 damage."
)]
pub struct Cli {
    /// A command of its own.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The report and the statistics.
    #[command(flatten)]
    pub stats: StatsArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Integrity and budgets, for CI and archives
    Check(Box<CheckArgs>),
    /// The advice rules, with thresholds and sources
    Rules {
        /// Only this rule
        id: Option<String>,
    },
}

/// What to read, for every command that reads WAL.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Segments, or directories that hold them (pg_wal, an archive, a data directory); default:
    /// the current directory
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What the WAL is taken for, where it cannot be told: in an archive nothing may be open under
    /// a segment's full name
    #[arg(long = "as", value_name = "archive|pg_wal", value_parser = parse_taken_for)]
    pub taken_for: Option<TakenFor>,
    /// Which part of it
    #[command(flatten)]
    pub range: RangeArgs,
    /// Threads; results do not depend on it [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<NonZeroUsize>,
    /// Do not verify the records' checksums (the report says so)
    #[arg(long)]
    pub no_verify_checksums: bool,
    /// Bytes read, rate and time left on standard error; auto: on a terminal, from one second on
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub progress: When,
}

/// Arguments of the report and the statistics.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Statistics only, by resource manager or by record type
    #[arg(
        long,
        value_name = "DIM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "rmgr",
        value_delimiter = ',',
        value_enum
    )]
    pub stats: Vec<Dimension>,
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Dimensions of the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dimension {
    /// By resource manager
    Rmgr,
    /// By record type
    Record,
    /// All dimensions
    All,
}

/// Which part of the WAL.
#[derive(Debug, Args)]
#[command(next_help_heading = "Range")]
pub struct RangeArgs {
    /// Count records that start here or later
    #[arg(short, long, value_name = "LSN")]
    pub start: Option<Lsn>,
    /// Count records that end here or before
    #[arg(short, long, value_name = "LSN")]
    pub end: Option<Lsn>,
    /// Timeline to follow [default: the newest whose history is complete]
    #[arg(short, long, value_name = "N", value_parser = parse_timeline)]
    pub timeline: Option<u32>,
    /// Stop after that many counted records; 0: no limit
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
}

/// Which records; together they are AND.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Only this resource manager (repeatable)
    #[arg(short, long, value_name = "NAME", value_parser = parse_rmgr)]
    pub rmgr: Vec<u8>,
    /// Only this record type, like HOT_UPDATE or Heap/INSERT (repeatable)
    #[arg(long, value_name = "NAME", value_parser = parse_record)]
    pub record: Vec<String>,
    /// Only records of this transaction
    #[arg(short, long, value_name = "N")]
    pub xid: Option<u32>,
    /// Only records with a block of this relation: tablespace/database/relfilenode
    #[arg(short = 'R', long, value_name = "T/D/R", value_parser = parse_relation)]
    pub relation: Option<RelFileLocator>,
    /// Only records with this block of the relation
    #[arg(short = 'B', long, value_name = "N", requires = "relation")]
    pub block: Option<u32>,
    /// Only records with a block of this fork
    #[arg(short = 'F', long, value_name = "F", value_enum)]
    pub fork: Option<Fork>,
    /// Only records with a block in this database (oid)
    #[arg(long, value_name = "N")]
    pub database: Option<u32>,
    /// Only records with a full page image
    #[arg(short = 'w', long)]
    pub fullpage: bool,
}

/// Forks of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fork {
    /// The data itself
    Main,
    /// Free space map
    Fsm,
    /// Visibility map
    Vm,
    /// What an unlogged relation starts from
    Init,
}

/// How to show the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
    /// Format
    #[arg(short, long, value_name = "F", value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows of long tables; 0: all [default: 20; JSON and CSV: all]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Order of rows
    #[arg(long, value_name = "COL", value_enum, default_value_t = SortBy::Bytes)]
    pub sort: SortBy,
    /// Sizes in digits or in units [default: human on a terminal, raw elsewhere]
    #[arg(long, value_name = "FORM", value_enum)]
    pub bytes: Option<BytesForm>,
    /// Add what was called the record size before BUG #14687: main data and record header only
    #[arg(long)]
    pub show_main_data: bool,
    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub color: When,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: all problems, files that were not read
    #[arg(short, long)]
    pub verbose: bool,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One object
    Json,
    /// One table, one line a row
    Csv,
    /// The text of the official tool, byte for byte
    #[value(name = "pg_waldump")]
    PgWaldump,
}

/// Orders of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// All bytes
    Bytes,
    /// Records
    Count,
    /// Image bytes
    Fpi,
    /// Name
    Name,
}

/// Forms of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BytesForm {
    /// Digits
    Raw,
    /// Units
    Human,
}

/// When to do something that terminals like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl From<SortBy> for Sort {
    fn from(sort: SortBy) -> Sort {
        match sort {
            SortBy::Bytes => Sort::Bytes,
            SortBy::Count => Sort::Count,
            SortBy::Fpi => Sort::Fpi,
            SortBy::Name => Sort::Name,
        }
    }
}

impl FilterArgs {
    /// The filters that were asked for.
    pub fn filters(&self) -> Filters {
        Filters {
            rmgrs: self.rmgr.clone(),
            records: self.record.clone(),
            xid: self.xid,
            relation: self.relation,
            block: self.block,
            fork: self.fork.map(|fork| fork as u8),
            database: self.database,
            full_page: self.fullpage,
        }
    }
}

/// Decimal or, with `0x`, hexadecimal; at least 1.
fn parse_timeline(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|&n| n > 0).ok_or_else(|| "expected a number from 1 on".to_owned())
}

fn parse_taken_for(text: &str) -> Result<TakenFor, String> {
    let told = [TakenFor::Archive, TakenFor::PgWal].into_iter().find(|told| told.name() == text);
    told.ok_or_else(|| format!("expected {} or {}", TakenFor::Archive, TakenFor::PgWal))
}

fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number from 1 on".to_owned())
}

fn parse_rmgr(text: &str) -> Result<u8, String> {
    rmgr::by_name(text).ok_or_else(|| {
        let near = nearest(text, rmgr::built_in().iter().copied());
        format!("resource manager \"{text}\" does not exist{near}")
    })
}

fn parse_record(text: &str) -> Result<String, String> {
    let (of, name) = text.split_once('/').map_or((None, text), |(of, name)| (Some(of), name));
    if let Some(of) = of {
        parse_rmgr(of)?;
    }
    if rmgr::has_record_named(name) || name.to_ascii_uppercase().starts_with("UNKNOWN (") {
        return Ok(text.to_owned());
    }
    let near = nearest(name, rmgr::record_names());
    Err(format!("no record type is called \"{name}\"{near}"))
}

/// `, did you mean "X"?` for the name most like `text`, if one is.
pub fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> String {
    let wanted = text.to_ascii_lowercase();
    let score = |name: &str| strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase());
    let best = names.map(|name| (score(name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, name)) if score > 0.7 => format!(", did you mean \"{name}\"?"),
        _ => String::new(),
    }
}

fn parse_relation(text: &str) -> Result<RelFileLocator, String> {
    let expected = || "expected tablespace/database/relfilenode, like 1663/5/16390".to_owned();
    let numbers: Result<Vec<u32>, _> = text.split('/').map(str::parse).collect();
    match numbers.map_err(|_| expected())?.as_slice() {
        &[tablespace, database, relfilenode] if tablespace > 0 && relfilenode > 0 => {
            Ok(RelFileLocator { tablespace, database, relfilenode })
        }
        _ => Err(expected()),
    }
}

/// The only long option of `command` that begins with what was typed.
pub fn nearest_option(typed: &str, command: &clap::Command) -> Option<String> {
    let typed = typed.split('=').next()?.strip_prefix("--")?;
    let names = command.get_arguments().filter_map(clap::Arg::get_long);
    let mut begun = names.filter(|name| !typed.is_empty() && name.starts_with(typed));
    match (begun.next(), begun.next()) {
        (Some(only), None) => Some(format!("--{only}")),
        _ => None,
    }
}
