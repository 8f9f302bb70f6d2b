//! The model of predictions: what the same workload would have written under other settings.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A prediction is certain if the truth is no farther off than this part of it.
pub const NARROW: f64 = 0.001;

/// Predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// LSN distance of the range.
    pub base_bytes: u64,
    /// The base replayed under its own settings, against what it really wrote.
    pub self_check: SelfCheck,
    /// The base first, then what was asked for.
    pub scenarios: Vec<Scenario>,
}

/// How far the replay of the base is from the base: the confidence of everything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfCheck {
    /// Replayed minus real, bytes, beside what switches leave empty; 0: all rules are known.
    pub difference_bytes: i64,
    /// The same by record type, where it is not 0.
    pub by_record: Vec<RecordDifference>,
}

/// Records of one type that come to another length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordDifference {
    /// `Heap/INSERT`.
    pub record: String,
    /// Simulated minus real, with padding; bytes.
    pub difference_bytes: i64,
    /// How many records differ.
    pub records: u64,
    /// Images simulated minus real.
    pub difference_images: i64,
}

/// A simulated run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scenario {
    /// Its name.
    pub id: String,
    /// The settings that are others than the base's, by option.
    pub settings: BTreeMap<String, String>,
    /// LSN distance from start to end.
    pub predicted_bytes: u64,
    /// (predicted - base) / base.
    pub change_ratio: Option<f64>,
    /// What of it pg_switch_wal() and archive_timeout leave empty.
    pub switch_bytes: u64,
    /// What of it is written: the rest.
    pub written_bytes: u64,
    /// (written - written by the base) / written by the base.
    pub written_change_ratio: Option<f64>,
    /// Bytes of it that the WAL decides: all, if the truth is at most 0.1 % off.
    pub exact_bytes: u64,
    /// Bytes of it whose number is estimated.
    pub estimated_bytes: u64,
    /// Bytes of it of which the WAL says nothing.
    pub unknown_bytes: u64,
    /// Least that it can come to.
    pub low_bytes: u64,
    /// Most that it can come to.
    pub high_bytes: u64,
    /// References to blocks that come with an image.
    pub fpi_count: u64,
    /// Where records come to another length than in the base, by type.
    pub by_record: Vec<RecordDifference>,
    /// Redo points after the start, up to the end: places in the base.
    pub redo_points: Vec<String>,
    /// Most that crash recovery has to replay.
    pub recovery_bytes: u64,
    /// How long that takes at least.
    pub recovery_seconds_low: f64,
    /// How long that takes at most.
    pub recovery_seconds_high: f64,
    /// Time of one processor that compressing images takes; null where it was not measured.
    pub cpu_seconds: Option<f64>,
    /// What else changes.
    pub side_effects: Vec<String>,
    /// What a reader of the numbers should know.
    pub notes: Vec<String>,
}
