//! Settings of the server that wrote the WAL, as its data directory has them now.

use serde::{Deserialize, Serialize};

/// Settings that WAL depends on, and where they are from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// The data directory: its `postgresql.conf` with what that includes, `postgresql.auto.conf`, the
    /// arguments of the last start, and `pg_control`.
    pub source: String,
    /// The values, as they are now.
    pub values: SettingValues,
}

/// Values of settings; null where one is not known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingValues {
    /// In seconds.
    pub checkpoint_timeout: Option<u64>,
    /// In bytes.
    pub max_wal_size: Option<u64>,
    /// Share of the time to the next checkpoint.
    pub checkpoint_completion_target: Option<f64>,
    /// `off` or the codec.
    pub wal_compression: Option<String>,
    /// Whether pages are written as a whole after a checkpoint.
    pub full_page_writes: Option<bool>,
    /// In seconds; 0 is off.
    pub archive_timeout: Option<u64>,
    /// Whether commits wait for the disk: `synchronous_commit` is not off.
    pub synchronous_commit: Option<bool>,
    /// Whether vacuum comes by itself: `autovacuum` and `track_counts` are on.
    #[serde(default)]
    pub autovacuum: Option<bool>,
    /// In bytes.
    pub wal_segment_size: u64,
    /// `minimal`, `replica` or `logical`; up to 9.5 also `archive` and `hot_standby`.
    pub wal_level: String,
    /// Whether hint bits bring images as they do with checksums.
    pub wal_log_hints: bool,
    /// Whether data pages have checksums.
    pub data_checksums: bool,
    /// Segments after which a checkpoint begins by volume, as follows from the others.
    pub checkpoint_segments: Option<u64>,
}
