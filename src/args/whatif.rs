//! Arguments of `walstat whatif`: one option for each setting that can differ from the one that wrote
//! the WAL.

use super::outputs::Outputs;
use crate::args::show::ShowArgs;
use crate::args::source::SourceArgs;
use crate::failure::Failure;
use crate::machine;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use walstat_format::image::Compression;
use walstat_format::lsn::Lsn;
use walstat_report::amount::{Size, Span};
use walstat_whatif::recode::Share;
use walstat_whatif::scenario::{AskedSetting, Scenario};
use walstat_whatif::settings::{ArchiveTimeout, Change, Checkpoints};

const HEADING: &str = "Settings";

/// Arguments of `walstat whatif`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each value of a comma-separated list is a scenario of its own; the values of several \
                  options are combined.\nWithout options: checkpoints at ½ to 16 times their distance, and \
                  the codecs.\nExit codes: 0 predicted, 2 usage, 3 not readable as WAL, 4 damage."
)]
pub struct WhatIfArgs {
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// The settings
    #[command(flatten)]
    pub changes: ChangeArgs,
    /// Memory for the data pages that are replayed [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Compress only a random sample of the images, and estimate the others from it
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub sample: Option<Share>,
    /// Formats, and where they are written to
    #[command(flatten)]
    pub outputs: Outputs<WhatIfFormat>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum WhatIfFormat {
    /// For people
    #[default]
    Table,
    /// One object
    Json,
    /// One object a line, each a scenario
    Ndjson,
    /// One line a scenario
    Csv,
    /// For pull requests and summaries
    Markdown,
    /// One page for a browser
    Html,
    /// Gauges for Prometheus: for node_exporter's textfile collector
    Openmetrics,
}

/// An option.
struct ChangeOption {
    name: &'static str,
    value_name: &'static str,
    help: &'static str,
    parse: fn(&str) -> Result<Change, String>,
    /// Whether values are separated by commas, each for a scenario of its own.
    is_split: bool,
    /// Options that cannot be combined with it.
    conflicts: &'static [&'static str],
}

const fn option(
    name: &'static str,
    value_name: &'static str,
    help: &'static str,
    parse: fn(&str) -> Result<Change, String>,
) -> ChangeOption {
    ChangeOption { name, value_name, help, parse, is_split: true, conflicts: &[] }
}

const TIMED: [&str; 3] = ["max-wal-size", "checkpoint-timeout", "checkpoint-completion-target"];

static OPTIONS: [ChangeOption; 12] = [
    ChangeOption {
        conflicts: &["redo-at", TIMED[0], TIMED[1], TIMED[2]],
        ..option(
            "checkpoint-every",
            "2x|30min|4GB|none",
            "Checkpoints twice (2x) as far apart as in the WAL, or every 30min, every 4GB, or none",
            every,
        )
    },
    ChangeOption {
        is_split: false,
        conflicts: &[TIMED[0], TIMED[1], TIMED[2]],
        ..option(
            "redo-at",
            "LSN,...",
            "Checkpoints whose redo points are the records at these LSNs, and no others",
            redo_at,
        )
    },
    option(
        "max-wal-size",
        "SIZE",
        "Checkpoints as a server with this max_wal_size begins them",
        max_wal_size,
    ),
    option(
        "checkpoint-timeout",
        "TIME",
        "Checkpoints as a server with this checkpoint_timeout begins them, by the times of the commits",
        timeout,
    ),
    option(
        "checkpoint-completion-target",
        "F",
        "Fraction of the time to the next checkpoint over which a checkpoint is spread [default: the \
         release's]",
        target,
    ),
    option("wal-compression", "pglz|lz4|zstd|off", "How images are compressed", compression),
    option(
        "full-page-writes",
        "on|off",
        "Whether full page images are written after checkpoints",
        |text| on_off(text).map(Change::FullPageWrites),
    ),
    option(
        "data-checksums",
        "off",
        "Without data checksums: no full page images for hint bits",
        checksums,
    ),
    option(
        "wal-log-hints",
        "on|off",
        "Whether full page images are written for hint bits",
        |text| on_off(text).map(Change::LogHints),
    ),
    option("wal-level", "replica|logical", "What is logged for logical decoding", wal_level),
    option(
        "archive-timeout",
        "TIME|off",
        "Time after which a segment is switched that is not full",
        archive_timeout,
    ),
    option("wal-segment-size", "SIZE", "Size of segments", segment_size),
];

/// The settings that were asked for.
#[derive(Debug, Default)]
pub struct ChangeArgs {
    options: Vec<Vec<AskedSetting>>,
}

impl ChangeArgs {
    /// The scenarios that were asked for; none: the usual ones.
    pub fn scenarios(&self) -> Vec<Scenario> {
        Scenario::combinations(&self.options)
    }

    /// All that was asked for.
    pub fn asked(&self) -> impl Iterator<Item = &AskedSetting> {
        self.options.iter().flatten()
    }
}

impl Args for ChangeArgs {
    fn augment_args(command: Command) -> Command {
        let argument = |option: &'static ChangeOption| {
            let check = |text: &str| (option.parse)(text).map(|_| text.to_owned());
            let argument = Arg::new(option.name).long(option.name).value_name(option.value_name);
            let argument = argument.help(option.help).help_heading(HEADING);
            let argument = argument.value_parser(ValueParser::new(check));
            let argument = argument.action(ArgAction::Append).conflicts_with_all(option.conflicts);
            if option.is_split { argument.value_delimiter(',') } else { argument }
        };
        command.args(OPTIONS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ChangeArgs::augment_args(command)
    }
}

impl FromArgMatches for ChangeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ChangeArgs, clap::Error> {
        let values = |option: &'static ChangeOption| {
            let given = matches.get_many::<String>(option.name).into_iter().flatten();
            let asked = given.filter_map(|text| {
                let change = (option.parse)(text).ok()?;
                Some(AskedSetting { option: option.name, value: text.clone(), change })
            });
            // A value that is given twice makes one scenario.
            asked.fold(Vec::new(), |mut all: Vec<AskedSetting>, next| {
                if all.iter().all(|before| before.value != next.value) {
                    all.push(next);
                }
                all
            })
        };
        Ok(ChangeArgs { options: OPTIONS.iter().map(values).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ChangeArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl WhatIfArgs {
    /// What clap cannot check.
    pub fn check_usage(&self) -> Result<(), Failure> {
        let range = &self.source.range;
        if range.limit.is_some_and(|limit| limit > 0) {
            return Err(Failure::Usage(
                "--limit: a prediction needs a range, expected --end instead".into(),
            ));
        }
        let has = |name: &str| self.changes.asked().any(|asked| asked.option == name);
        if has("checkpoint-completion-target") && !has("max-wal-size") && !has("checkpoint-timeout")
        {
            let text = "--checkpoint-completion-target changes when --max-wal-size and \
                        --checkpoint-timeout begin checkpoints: expected one of these too";
            return Err(Failure::Usage(text.into()));
        }
        Ok(())
    }
}

impl WhatIfArgs {
    /// Memory for pages, bytes.
    pub fn page_memory(&self) -> u64 {
        self.memory.unwrap_or_else(|| machine::memory_bytes() / 4)
    }
}

fn memory(text: &str) -> Result<u64, String> {
    match text.parse::<Size>() {
        Ok(Size(bytes @ 0x10_0000..)) => Ok(bytes),
        _ => Err("expected a size from 1MB on".into()),
    }
}

fn share(text: &str) -> Result<Share, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    let share = percent.and_then(|percent| Share::new(percent / 100.0));
    share.ok_or_else(|| "expected a percentage like 5%".into())
}

/// Checkpoints a thousand times as often as in the WAL: nobody means more.
const FACTOR_LEAST: f64 = 0.001;

fn every(text: &str) -> Result<Change, String> {
    let expected = "expected a factor like 2x, a time like 30min, a size like 4GB, or none";
    if text == "none" {
        return Ok(Change::Checkpoints(Checkpoints::Never));
    }
    if let Some(factor) = text.strip_suffix('x') {
        return match factor.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= FACTOR_LEAST => {
                Ok(Change::Checkpoints(Checkpoints::Factor(factor)))
            }
            Ok(_) => Err(format!("expected a factor from {FACTOR_LEAST}x on")),
            Err(_) => Err(expected.into()),
        };
    }
    if let Ok(micros @ 1..) = microseconds(text) {
        return Ok(Change::Checkpoints(Checkpoints::Time(micros)));
    }
    match text.parse() {
        Ok(Size(bytes @ 1..)) => Ok(Change::Checkpoints(Checkpoints::Bytes(bytes))),
        _ => Err(expected.into()),
    }
}

/// A span of time in microseconds.
fn microseconds(text: &str) -> Result<i64, String> {
    let span = text.parse::<Span>().map_err(|error| error.to_string())?;
    i64::try_from(span.microseconds()).map_err(|error| error.to_string())
}

fn redo_at(text: &str) -> Result<Change, String> {
    let places: Result<Vec<Lsn>, _> = text.split(',').map(str::parse).collect();
    places.map(|lsns| Change::Checkpoints(Checkpoints::At(lsns))).map_err(|e| e.to_string())
}

/// Two segments of the smallest size there is; those of the WAL are not known yet. The largest value is
/// PostgreSQL's own.
fn max_wal_size(text: &str) -> Result<Change, String> {
    let Size(bytes) = text.parse::<Size>().map_err(|error| error.to_string())?;
    match bytes {
        0x20_0000..=0x7_FFFF_FFF0_0000 => Ok(Change::MaxWalSize(bytes)),
        _ => Err("expected 2MB to 2147483647MB".into()),
    }
}

fn timeout(text: &str) -> Result<Change, String> {
    match microseconds(text)? {
        micros @ 30_000_000..=86_400_000_000 => Ok(Change::CheckpointTimeout(micros)),
        _ => Err("expected 30s to 1d".into()),
    }
}

fn target(text: &str) -> Result<Change, String> {
    let target = text.parse::<f64>().ok().filter(|target| (0.0..=1.0).contains(target));
    target.map(Change::CompletionTarget).ok_or("expected 0 to 1".into())
}

fn compression(text: &str) -> Result<Change, String> {
    let codec = match text {
        "off" => Some(None),
        "on" => Some(Some(Compression::Pglz)),
        name => Compression::by_name(name).map(Some),
    };
    codec.map(Change::Compression).ok_or("expected pglz, lz4, zstd or off".into())
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

fn checksums(text: &str) -> Result<Change, String> {
    match text {
        "off" => Ok(Change::LogHints(false)),
        _ => Err("expected off: what hint bits would add with them on cannot be told from the WAL"
            .into()),
    }
}

fn wal_level(text: &str) -> Result<Change, String> {
    match text {
        "replica" => Ok(Change::Logical(false)),
        "logical" => Ok(Change::Logical(true)),
        _ => Err("expected replica or logical".into()),
    }
}

fn archive_timeout(text: &str) -> Result<Change, String> {
    let after = match microseconds(text) {
        Ok(micros @ 1_000_000..) => ArchiveTimeout::After(micros),
        _ if text == "off" || text == "0" => ArchiveTimeout::Off,
        _ => return Err("expected a time from 1s on, or off".into()),
    };
    Ok(Change::ArchiveTimeout(after))
}

fn segment_size(text: &str) -> Result<Change, String> {
    let Size(bytes) = text.parse::<Size>().map_err(|error| error.to_string())?;
    if bytes.is_power_of_two() && (1 << 20..=1 << 30).contains(&bytes) {
        Ok(Change::SegmentBytes(bytes))
    } else {
        Err("expected a power of two from 1MB to 1GB".into())
    }
}
