//! Rows of when WAL is written: timeline, checkpoint cycles, recovery, replication, commits. Keys are
//! the contract's; every key of a row is there, unknown is null.

use super::Numbers;
use super::table::{Table, TableRow};
use serde::{Deserialize, Serialize, Serializer};
pub use walstat_analyse::checkpoint::cause::{Cause, Confidence};

/// Makes a row: its keys, all of which are written and read.
macro_rules! row {
    ($(#[$meta:meta])* pub struct $row:ident { $($(#[$about:meta])* pub $key:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $row { $($(#[$about])* pub $key: $type,)+ }
    };
}

row! {
    /// WAL over time.
    pub struct Timeline {
        /// Width of a bucket.
        pub bucket_seconds: u64,
        /// Ascending; those without WAL are left out.
        pub buckets: Table<BucketRow>,
        /// The busiest stretches of time.
        pub peaks: Peaks,
        /// Share of the seconds without WAL.
        pub idle_ratio: Option<f64>,
        /// By the hour of the day, if asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub by_hour: Option<Vec<HourRow>>,
    }
}

row! {
    /// Records of one stretch of time.
    pub struct BucketRow {
        /// When it begins, a multiple of the width; null without a clock.
        pub time: Option<String>,
        /// Lowest start of its records.
        pub start_lsn: Option<String>,
        /// Highest end of its records.
        pub end_lsn: Option<String>,
        /// Commits.
        pub commits: u64,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
    }
}

row! {
    /// Records of one hour of the day, of all days.
    pub struct HourRow {
        /// 0 to 23, in the time zone asked for.
        pub hour: u8,
        /// Commits.
        pub commits: u64,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
    }
}

row! {
    /// The busiest stretches of time, of each length.
    pub struct Peaks {
        /// A second.
        #[serde(rename = "1s")]
        pub second: Peak,
        /// Ten seconds.
        #[serde(rename = "10s")]
        pub ten_seconds: Peak,
        /// A minute.
        #[serde(rename = "1min")]
        pub minute: Peak,
    }
}

row! {
    /// The stretch of time with the most WAL.
    pub struct Peak {
        /// When it begins, a multiple of its length.
        pub time: Option<String>,
        /// Bytes of its records.
        pub total_bytes: Option<u64>,
    }
}

named! {
    /// Which record a checkpoint has.
    pub enum Kind {
        Online "online" "While the server went on";
        Shutdown "shutdown" "With nothing else going on, at its end or after recovery";
    }
}

row! {
    /// From one redo point to the next.
    pub struct CheckpointRow {
        /// The redo point; null in a first row that begins in mid-cycle.
        pub redo_lsn: Option<String>,
        /// The redo point, or the range's start.
        pub start_lsn: String,
        /// The next redo point, or the range's end.
        pub end_lsn: String,
        /// The checkpoint's record.
        pub checkpoint_lsn: Option<String>,
        /// Which record it is.
        pub kind: Option<Kind>,
        /// When it began.
        pub time: Option<String>,
        /// From then to its record, by the clock: up to a second too long, since checkpoints state
        /// whole seconds; null where the clock is thin.
        pub spread_seconds: Option<f64>,
        /// Why it began; null where the WAL cannot tell.
        #[serde(serialize_with = "one_cause")]
        pub cause: Option<Cause>,
        /// How sure that is.
        pub cause_confidence: Option<Confidence>,
        /// From what, in one sentence.
        pub cause_evidence: Option<String>,
        /// The sums over the cycle.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// Blocks that its records refer to.
        pub distinct_blocks: u64,
        /// Share of the image bytes in the first tenth of the cycle's WAL.
        pub fpi_first_tenth_ratio: Option<f64>,
        /// In the first quarter.
        pub fpi_first_quarter_ratio: Option<f64>,
        /// In the first half.
        pub fpi_first_half_ratio: Option<f64>,
        /// Share of the image bytes in the first tenth of the cycle's time; null where the clock is
        /// thin, as the next two.
        pub fpi_first_tenth_time_ratio: Option<f64>,
        /// In the first quarter of its time.
        pub fpi_first_quarter_time_ratio: Option<f64>,
        /// In the first half of its time.
        pub fpi_first_half_time_ratio: Option<f64>,
        /// In each tenth of its WAL.
        pub fpi_decay: Option<[f64; 10]>,
        /// The share in the first part x is about x to the power of this; 1 is evenly spread.
        pub fpi_decay_exponent: Option<f64>,
        /// The share of its time is about that of its WAL to the power of this: 1 is evenly written,
        /// more is a burst at the beginning; null where the clock is thin.
        pub wal_pace_exponent: Option<f64>,
        /// Images of blocks that the cycle before had touched too: without this checkpoint they would
        /// not be here. Null if that cycle is not there as a whole.
        pub brought_fpi_count: Option<u64>,
        /// Their bytes, each taken for an average image of the cycle.
        pub brought_fpi_bytes: Option<u64>,
    }
}

row! {
    /// What all checkpoint cycles come to. Shares, pace and cost are those of whole cycles.
    pub struct CheckpointSummary {
        /// Checkpoints that have a record.
        pub checkpoints: u64,
        /// How many of them began by which cause, as far as that is likely.
        pub causes: Causes,
        /// Share of those by volume or asked for, among these and those by time.
        pub forced_ratio: Option<f64>,
        /// Seconds from one to the next, while the server went on.
        pub spacing_seconds: Option<Spacing>,
        /// Bytes of WAL from one redo point to the next.
        pub spacing_bytes: Option<Spacing>,
        /// From a checkpoint's beginning to its record: half of them take no longer.
        pub spread_seconds: Option<f64>,
        /// Share of the image bytes in the first tenth of their cycle's WAL.
        pub fpi_first_tenth_ratio: Option<f64>,
        /// In the first quarter.
        pub fpi_first_quarter_ratio: Option<f64>,
        /// In the first half.
        pub fpi_first_half_ratio: Option<f64>,
        /// Share of the image bytes in the first tenth of their cycle's time.
        pub fpi_first_tenth_time_ratio: Option<f64>,
        /// In the first quarter.
        pub fpi_first_quarter_time_ratio: Option<f64>,
        /// In the first half.
        pub fpi_first_half_time_ratio: Option<f64>,
        /// The share of a cycle's time is about that of its WAL to the power of this, at the median: 1
        /// is evenly written, more is a burst at the beginning.
        pub wal_pace_exponent: Option<f64>,
        /// How far that is from 1.5, which full_page_writes is reckoned with to make of it.
        pub wal_pace_beyond_full_page_writes: Option<f64>,
        /// Share of a cycle's time after which half of its WAL is there, at that pace. A checkpoint
        /// that keeps up with the WAL has written half of its pages then.
        pub half_of_wal_time_ratio: Option<f64>,
        /// Images that one more checkpoint brings, on average.
        pub brought_fpi_count: Option<f64>,
        /// Their bytes.
        pub brought_fpi_bytes: Option<f64>,
        /// Switches to the next segment before one was full.
        pub switches: u64,
        /// Bytes that they left unused.
        pub switch_bytes: u64,
        /// Those of a day; null if the range is shorter than a minute.
        pub switch_bytes_per_day: Option<f64>,
        /// archive_timeout, if at least half of the switches are as far apart.
        pub archive_timeout_seconds: Option<u64>,
        /// Bytes of a day that these left unused.
        pub archive_timeout_bytes_per_day: Option<f64>,
    }
}

row! {
    /// What a crash would make the server replay.
    pub struct Recovery {
        /// At the end of the range.
        pub at_end: Option<RecoveryRow>,
        /// At the worst moment.
        pub worst: Option<RecoveryRow>,
        /// At the worst moment after each checkpoint.
        pub cycles: Table<RecoveryRow>,
        /// Slow replay, bytes a second.
        pub replay_rate_low: u64,
        /// Fast replay, bytes a second.
        pub replay_rate_high: u64,
    }
}

row! {
    /// What a crash after one checkpoint would make the server replay.
    pub struct RecoveryRow {
        /// The checkpoint's redo point.
        pub from_lsn: String,
        /// Start of the next checkpoint's record, or the range's end.
        pub to_lsn: String,
        /// Bytes of WAL from the one to the other, without the unused rest of switched segments.
        pub wal_bytes: u64,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// Blocks that the records refer to.
        pub distinct_blocks: u64,
        /// Those of them whose first record has no image: they have to be read.
        pub blocks_without_fpi: u64,
        /// With fast replay.
        pub seconds_low: f64,
        /// With slow replay.
        pub seconds_high: f64,
    }
}

row! {
    /// How fast WAL is written, and what keeps up with it. What has to be sent is the distance of
    /// places: a server that switches to the next segment sends the unused rest of the last one too.
    pub struct Replication {
        /// Bytes written a second, on average.
        pub mean_rate: Option<f64>,
        /// Bytes written in the busiest second; null where most of the WAL has no time near it.
        pub peak_rate: Option<u64>,
        /// The smallest rate, in bytes of distance a second, at which nothing is left at any second's
        /// end.
        pub never_behind_rate: Option<u64>,
        /// In the longest stretch without a time so many seconds are taken for even, if it is longer
        /// than ten: what was written at once in it needs a higher rate.
        pub longest_even_seconds: Option<u64>,
        /// The link's rate that was asked for.
        pub link_rate: Option<u64>,
        /// The standby's rate that was asked for.
        pub replay_rate: Option<u64>,
        /// The smallest rate that keeps the delay that was asked for.
        pub max_lag_rate: Option<u64>,
        /// What piles up at the rate that was asked for.
        pub backlog: Option<Backlog>,
    }
}

row! {
    /// What piles up before a link or a standby.
    pub struct Backlog {
        /// Bytes, at the worst second's end.
        pub peak_bytes: u64,
        /// How long it takes to get them over.
        pub peak_seconds: f64,
        /// The end of that second.
        pub peak_time: Option<String>,
        /// When all of it is over; null if not in this WAL.
        pub clear_time: Option<String>,
    }
}

row! {
    /// Commits, and what they ask of a disk.
    pub struct Commits {
        /// COMMIT and COMMIT_PREPARED.
        pub commits: u64,
        /// Earliest.
        pub first_time: Option<String>,
        /// Latest.
        pub last_time: Option<String>,
        /// Seconds from the one to the other, both counted.
        pub seconds: u64,
        /// Commits a second, seconds without any counted.
        pub per_second: Option<PerSecond>,
        /// Bytes of all records for each commit.
        pub wal_bytes_per_commit: Option<f64>,
        /// Writes to disk in the busiest second, where commits close to each other share one.
        pub syncs_per_second_low: u64,
        /// Writes to disk in the busiest second, one for each commit.
        pub syncs_per_second_high: u64,
    }
}

row! {
    /// Commits a second.
    pub struct PerSecond {
        /// On average.
        pub mean: f64,
        /// In half of the seconds no more.
        pub median: u64,
        /// In 99 of 100 seconds no more.
        pub p99: u64,
        /// In the busiest second.
        pub peak: u64,
        /// That second.
        pub peak_time: Option<String>,
    }
}

row! {
    /// When WAL was written, in a few numbers: what the report shows and the advice looks at. Times are
    /// those of stretches of 16 kB, each taken for evenly written: rates and peaks are near those of
    /// `replication` and `timeline`, which look at every record.
    pub struct Overview {
        /// How WAL was written: bytes by equal stretches of time, as all rates here without the unused
        /// rest of switched segments.
        pub growth: Vec<u64>,
        /// Seconds of such a stretch.
        pub growth_seconds: u64,
        /// Bytes a second, on average.
        pub mean_rate: Option<f64>,
        /// The same without the time after shutdowns, when the server was down or wrote nothing.
        pub running_rate: Option<f64>,
        /// About so many in the busiest second; null where most of the WAL has no time near it.
        pub peak_rate: Option<u64>,
        /// That second.
        pub peak_time: Option<String>,
        /// How late a standby gets that replays slowly, at most, in seconds.
        pub slow_replay_lag_seconds: Option<f64>,
        /// Checkpoints that have a record.
        pub checkpoints: u64,
        /// How many of them began by which cause, as far as that is likely.
        pub causes: Causes,
        /// Checkpoints that a base backup asked for.
        pub backups: u64,
        /// Image bytes in their cycles.
        pub backup_fpi_bytes: u64,
        /// What archive_timeout left empty of segments, at most; null where it is neither known nor shown.
        pub archive_timeout_bytes: Option<u64>,
        /// Of how many it is likely that DROP DATABASE asked for them: they lie right before a database was
        /// dropped. For the rules.
        #[serde(skip)]
        pub before_drops: u64,
        /// The same of CREATE DATABASE, or ALTER DATABASE SET TABLESPACE, which copied files. For the rules.
        #[serde(skip)]
        pub beside_copies: u64,
        /// Whether initdb wrote some of this WAL, for the rules.
        #[serde(skip)]
        pub has_initdb: bool,
        /// Bytes of WAL before them, by those causes.
        pub wal_by_cause: Causes,
        /// Seconds from one to the next. Of those by `spacing_cause`; where that is null, of all, and
        /// median, mean and p90 are those of the WAL, so that most of it counts and not what an idle
        /// server did.
        pub spacing_seconds: Option<Spacing>,
        /// The cause of the checkpoints that most of the WAL was written before; null if no cause has
        /// most of it.
        pub spacing_cause: Option<Cause>,
        /// Bytes of WAL from one redo point to the next.
        pub spacing_bytes: Option<Spacing>,
        /// checkpoint_timeout, as the spacing tells it.
        pub checkpoint_timeout_seconds: Option<u64>,
        /// Least max_wal_size that the spacing tells.
        pub max_wal_size_low: Option<u64>,
        /// Most max_wal_size that the spacing tells.
        pub max_wal_size_high: Option<u64>,
        /// Share of the images in the first quarter of their cycle's WAL, of cycles that have ended; null
        /// where these have less than half of the images.
        pub fpi_first_quarter_ratio: Option<f64>,
        /// WAL that a crash would make the server replay at the worst moment.
        pub worst_recovery_bytes: Option<u64>,
        /// How long that takes, in seconds.
        pub worst_recovery_seconds: Option<Range>,
        /// Commits in the busiest second.
        pub peak_commits: Option<u64>,
        /// Commits a second, on average of the time from `range.first_time` to `range.last_time`, both
        /// seconds counted.
        pub mean_commits: Option<f64>,
        /// At most so many writes to disk in the busiest second, where commits within a millisecond share
        /// one.
        pub peak_syncs: Option<u64>,
    }
}

row! {
    /// Checkpoints by what began them.
    pub struct Causes {
        /// checkpoint_timeout.
        pub time: u64,
        /// max_wal_size.
        pub wal: u64,
        /// Somebody.
        pub requested: u64,
        /// The server's end.
        pub shutdown: u64,
        /// The end of recovery.
        pub end_of_recovery: u64,
        /// One of these two, and the WAL does not tell which.
        #[serde(default)]
        pub shutdown_or_recovery: u64,
        /// Not told, or not sure.
        pub unknown: u64,
        /// How many of these are the one that the WAL begins with: what began it lies before.
        #[serde(default)]
        pub before: u64,
    }
}

row! {
    /// From the one to the other.
    pub struct Range {
        /// Least.
        pub low: f64,
        /// Most.
        pub high: f64,
    }
}

row! {
    /// Distances.
    pub struct Spacing {
        /// How many.
        pub count: u64,
        /// The shortest.
        pub min: u64,
        /// The average.
        pub mean: f64,
        /// Half of them are no longer.
        pub median: u64,
        /// Nine of ten are no longer.
        pub p90: u64,
        /// The longest.
        pub max: u64,
    }
}

impl TableRow for BucketRow {
    fn label(&self) -> String {
        self.time.clone().unwrap_or_default()
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for CheckpointRow {
    fn label(&self) -> String {
        self.start_lsn.clone()
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

impl TableRow for RecoveryRow {
    fn label(&self) -> String {
        self.from_lsn.clone()
    }

    fn numbers(&self) -> Numbers {
        self.numbers
    }
}

/// One of two causes is none that is told: the evidence says which two.
fn one_cause<S: Serializer>(cause: &Option<Cause>, serializer: S) -> Result<S::Ok, S::Error> {
    cause.filter(|cause| *cause != Cause::ShutdownOrRecovery).serialize(serializer)
}

/// How a checkpoint came about, in words: `by volume`.
pub fn how(cause: Cause) -> &'static str {
    match cause {
        Cause::Time => "by time",
        Cause::Wal => "by volume",
        Cause::Requested => "asked for",
        Cause::Shutdown => "at a shutdown",
        Cause::EndOfRecovery => "after recovery",
        Cause::ShutdownOrRecovery => "at a shutdown or after recovery",
    }
}
