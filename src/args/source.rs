//! Arguments of every command that reads WAL: what to read, which part of it, what to count.

use super::moment::Moment;
use super::relation::{self, RelationArg};
use super::storage::StorageArgs;
use super::values::{When, named, nearest};
use clap::Args;
use jiff::tz::TimeZone;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use walstat_analyse::select::{Filters, RelationFilter};
use walstat_format::fork::Fork;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr;
use walstat_read::input::input_kind::{InputKind, SERVER_DIRECTORIES};
use walstat_read::input::storage;

/// What to read, for every command that reads WAL.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// Segments, or directories that hold them (pg_wal, an archive, a data directory); default:
    /// the current directory
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Directory in which to find segments given by bare name, like pg_waldump's --path; without PATH, all
    /// WAL in it is read
    #[arg(short = 'p', long = "path", value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// What the WAL is: an archive, in which every file with a full segment name must be filled to its end,
    /// or a server's pg_wal, in which the newest may be unfinished [default: judged by the directory]
    #[arg(long = "as", value_name = "archive|pg_wal", value_parser = parse_taken_for)]
    pub taken_for: Option<InputKind>,
    /// Threads; results do not depend on it [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<NonZeroUsize>,
    /// Do not verify the records' checksums (the report says so)
    #[arg(long)]
    pub no_verify_checksums: bool,
    /// Read every file with read(), instead of mapping those that nobody writes to any more
    #[arg(long)]
    pub no_mmap: bool,
    /// Show bytes read, rate and time left on standard error; auto: on a terminal, after one second
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub progress: When,
    /// Where it lies
    #[command(flatten)]
    pub storage: StorageArgs,
    /// Which part of it
    #[command(flatten)]
    pub range: RangeArgs,
}

/// Which part of the WAL.
#[derive(Debug, Clone, Args)]
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
    /// Count records of this time or later, by the WAL's own clock: RFC 3339, 2026-11-21,
    /// 2026-11-21 09:12, or back from where the WAL ends: 09:12 (the last one before), today,
    /// yesterday 09:12, -2h, "2 hours ago"
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<Moment>,
    /// Count records before this time; after --since 22:00, 02:00 is that of the next day
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<Moment>,
    /// Time zone of times that name none, and of hours: UTC, +02:00, Europe/Paris [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub tz: Option<Zone>,
}

impl RangeArgs {
    /// Whether the first records count, too.
    pub fn is_from_the_beginning(&self) -> bool {
        self.start.is_none() && self.since.is_none()
    }

    /// Whether all counts up to the last record.
    pub fn is_to_the_end(&self) -> bool {
        self.end.is_none() && self.until.is_none() && self.limit.is_none_or(|limit| limit == 0)
    }
}

/// A time zone, with the name that was typed.
#[derive(Debug, Clone)]
pub struct Zone {
    /// As typed.
    pub name: String,
    /// What it is.
    pub zone: TimeZone,
}

/// Which records: those that pass all filters.
#[derive(Debug, Clone, Args)]
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
    /// Only records with a block of this relation: tablespace/database/relfilenode, or a name like
    /// public.orders
    #[arg(short = 'R', long, value_name = "T/D/R|NAME", value_parser = relation::parse)]
    pub relation: Option<RelationArg>,
    /// With --relation: all of its table, with TOAST and indexes
    #[arg(long, requires = "relation")]
    pub table: bool,
    /// Only records with this block of the relation
    #[arg(short = 'B', long, value_name = "N", requires = "relation")]
    pub block: Option<u32>,
    /// Only records with a block of this fork
    #[arg(short = 'F', long, value_name = "F", value_parser = named(Fork::ALL, Fork::name, Fork::text))]
    pub fork: Option<Fork>,
    /// Only records with a block in this database (oid)
    #[arg(long, value_name = "N")]
    pub database: Option<u32>,
    /// Only records with a full page image
    #[arg(short = 'w', long)]
    pub fullpage: bool,
}

impl SourceArgs {
    /// Looks for segments given by name in the directory of --path.
    pub fn settle(&mut self) {
        let directories = std::mem::take(&mut self.directories);
        if self.paths.is_empty() {
            self.paths = directories;
            return;
        }
        let is_name = |path: &&mut PathBuf| path.components().count() == 1;
        for path in self.paths.iter_mut().filter(is_name) {
            let inside = |directory: &PathBuf| {
                let server = SERVER_DIRECTORIES.map(|name| directory.join(name));
                std::iter::once(directory.clone()).chain(server)
            };
            let mut places = directories.iter().flat_map(inside).map(|place| place.join(&*path));
            if let Some(place) = places.find(|place| storage::exists(place)) {
                *path = place;
            }
        }
    }

    /// What is read: the paths given, or the current directory.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        let here = self.paths.is_empty().then_some(Path::new("."));
        self.paths.iter().map(PathBuf::as_path).chain(here)
    }
}

impl FilterArgs {
    /// Whether there is no filter.
    pub fn is_empty(&self) -> bool {
        self.relation.is_none() && self.filters(None).is_empty()
    }

    /// The filters that were asked for; `relation`: the files that are asked for.
    pub fn filters(&self, relation: Option<RelationFilter>) -> Filters {
        Filters {
            rmgrs: self.rmgr.clone(),
            records: self.record.clone(),
            xid: self.xid,
            relation,
            block: self.block,
            fork: self.fork.map(Fork::number),
            database: self.database,
            full_page: self.fullpage,
            span: None,
        }
    }
}

/// Decimal or, with `0x`, hexadecimal; at least 1.
pub(super) fn parse_timeline(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|&n| n > 0).ok_or_else(|| "expected a number from 1 on".to_owned())
}

fn parse_zone(text: &str) -> Result<Zone, String> {
    let zone = match text {
        "UTC" | "Z" => Ok(TimeZone::UTC),
        // An offset, or a name of the system's database.
        _ => jiff::fmt::temporal::DateTimeParser::new().parse_time_zone(text),
    };
    let expected = "expected UTC, an offset like +02:00 or a name like Europe/Paris";
    zone.map(|zone| Zone { name: text.to_owned(), zone }).map_err(|_| expected.to_owned())
}

pub(super) fn parse_taken_for(text: &str) -> Result<InputKind, String> {
    let told = [InputKind::Archive, InputKind::PgWal].into_iter().find(|told| told.name() == text);
    told.ok_or_else(|| format!("expected {} or {}", InputKind::Archive, InputKind::PgWal))
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
