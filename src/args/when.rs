//! When WAL was written: arguments, and the dimension that they ask for.

use crate::args::source::Zone;
use crate::failure::Failure;
use clap::Args;
use jiff::tz::TimeZone;
use walstat_analyse::commit::SYNC_TIME;
use walstat_analyse::course;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::when;
use walstat_analyse::when::WhenFound;
use walstat_report::amount::{AmountError, Rate, Rates, Span};
use walstat_report::when::Questions;

/// Times, rates and delays.
#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct WhenArgs {
    /// Width of the timeline's buckets: 10s, 1min, 1h, 1d, auto [default: auto]
    #[arg(long, value_name = "SPAN", value_parser = parse_bucket)]
    pub bucket: Option<Bucket>,
    /// Add the timeline by the hour of the day
    #[arg(long)]
    pub by_hour: bool,
    /// How fast a server replays WAL, slow to fast: 50MB/s..150MB/s, or one rate [default:
    /// 50MB/s..150MB/s for recovery]
    #[arg(long, value_name = "RATE")]
    pub replay_rate: Option<Rates>,
    /// Bandwidth of the link to a standby: 20MB/s
    #[arg(long, value_name = "RATE")]
    pub link_rate: Option<Rate>,
    /// The longest lag that a standby may have: 30s
    #[arg(long, value_name = "SPAN", value_parser = parse_lag)]
    pub max_lag: Option<Span>,
    /// How long a flush of WAL to disk takes; commits closer together than this share one [default: 1ms]
    #[arg(long, value_name = "SPAN", value_parser = parse_sync_time)]
    pub sync_time: Option<Span>,
}

/// Width of buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bucket {
    /// Chosen so that the timeline fits.
    Auto,
    /// Seconds.
    Seconds(i64),
}

impl WhenArgs {
    /// What the dimensions asked for need; `None`: nothing.
    pub fn config(&self, asked: &Dimensions) -> Option<when::Config> {
        use Dimension::{Checkpoint, Commit, Recovery, Replication, Timeline};
        let asked = |dimension| asked.contains(&dimension);
        let course =
            course::Config { bucket_seconds: self.bucket_seconds(), quarters: self.by_hour };
        let sync_time = self.sync_time.map_or(SYNC_TIME, |span| span.microseconds() as u32);
        let config = when::Config {
            course: asked(Timeline).then_some(course),
            cycles: asked(Checkpoint) || asked(Recovery),
            sums: asked(Checkpoint) || asked(Recovery),
            commits: asked(Commit).then_some(sync_time),
            each_commit: asked(Commit),
            curve: asked(Replication),
            times: None,
        };
        (config != when::Config::default()).then_some(config)
    }

    fn bucket_seconds(&self) -> Option<i64> {
        match self.bucket? {
            Bucket::Auto => None,
            Bucket::Seconds(seconds) => Some(seconds),
        }
    }

    /// What was asked about what is found.
    pub fn questions(&self, zone: Option<&Zone>) -> Questions {
        Questions {
            zone: zone.map_or(TimeZone::UTC, |zone| zone.zone.clone()),
            link_rate: self.link_rate.map(|rate| rate.0),
            replay_rates: self.replay_rate.map(|rates| (rates.low, rates.high)),
            max_lag: self.max_lag.map(|span| span.seconds()),
        }
    }

    /// Fails if buckets were too many for their width.
    pub fn check(&self, found: Option<&WhenFound>) -> Result<(), Failure> {
        let width =
            found.and_then(|found| found.course.as_ref()).map(|course| course.buckets.width());
        match (self.bucket_seconds(), width) {
            (Some(asked), Some(width)) if width > asked => Err(Failure::Usage(format!(
                "--bucket {asked}s gives more than a million rows; --bucket {width}s does not"
            ))),
            _ => Ok(()),
        }
    }

    /// The options as they were given, for a partial result.
    pub fn options(&self) -> Vec<String> {
        let bucket = self.bucket.map(|bucket| match bucket {
            Bucket::Auto => "auto".to_owned(),
            Bucket::Seconds(seconds) => format!("{seconds}s"),
        });
        let values = [
            ("bucket", bucket),
            ("replay-rate", self.replay_rate.map(|rates| rates.to_string())),
            ("link-rate", self.link_rate.map(|rate| rate.to_string())),
            ("max-lag", self.max_lag.map(|span| span.to_string())),
            ("sync-time", self.sync_time.map(|span| span.to_string())),
        ];
        let values =
            values.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        values.chain(self.by_hour.then(|| "--by-hour".to_owned())).collect()
    }
}

fn parse_bucket(text: &str) -> Result<Bucket, String> {
    if text == "auto" {
        return Ok(Bucket::Auto);
    }
    let expected = || "expected auto or whole seconds: 10s, 1min, 1h, 1d".to_owned();
    let span: Span = text.parse().map_err(|_| expected())?;
    let seconds = i64::try_from(span.seconds()).map_err(|_| expected())?;
    (span.is_whole_seconds() && seconds > 0)
        .then_some(Bucket::Seconds(seconds))
        .ok_or_else(expected)
}

fn parse_lag(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: AmountError| error.to_string())?;
    span.is_whole_seconds()
        .then_some(span)
        .ok_or_else(|| "expected whole seconds: 30s, 5min".to_owned())
}

fn parse_sync_time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: AmountError| error.to_string())?;
    let fits = (1..=1_000_000).contains(&span.microseconds());
    fits.then_some(span).ok_or_else(|| "expected a time up to a second: 500us, 2ms".to_owned())
}
