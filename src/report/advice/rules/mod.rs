//! The rules, one file each, named after what they find.

use crate::analyse::ratios::ratio;
use crate::report::model::Report;
use crate::report::model::table::TableRow;
use crate::report::model::threshold::MIN_VOLUME_BYTES;
use crate::report::model::who::WholeTableRow;
use crate::report::when::REPLAY_RATES;
use crate::wal::version::VERSIONS;
use serde_json::{Map, Value};
use std::cmp::Reverse;

pub mod burst_after_checkpoint;
pub mod checkpoint_spacing;
pub mod commit_pressure;
pub mod consistency_checking;
pub mod fpi_ratio;
pub mod hint_images;
pub mod hot_ratio;
pub mod recovery_distance;
pub mod standby_lag;
pub mod switch_waste;
pub mod write_amplification;

/// Where the first rules come from.
const CHEN_2017: &str = "Chen, WAL volume of pgbench under different settings, 2017";

/// What a server shows that was never tuned: so many bytes for each byte of change.
const UNTUNED_AMPLIFICATION: f64 = 20.0;

/// Replay runs at so many bytes a second on common hardware, slow and fast.
const REPLAY_BYTES_PER_SECOND: (u64, u64) = REPLAY_RATES;

/// Images stored at more than this share of their size are hardly compressed.
const HARDLY_COMPRESSED: f64 = 0.95;

/// Checkpoints that are so far apart need not be further apart, in seconds.
const FAR_APART: u64 = 1800;

/// From this share on it is mostly that.
const MOSTLY: f64 = 0.5;

/// A table with less than this share of something is not named for it.
const LEAST_SHARE: f64 = 0.10;

/// Whether a report is of too little WAL for its shares to say anything.
fn says_little(report: &Report) -> bool {
    report.totals.total_bytes < MIN_VOLUME_BYTES
}

/// Which share of the images is for checking only; `None` without images.
fn checking_share(report: &Report) -> Option<f64> {
    ratio(report.totals.fpi_check_count, report.totals.fpi_count)
}

/// Whether most images are for checking only, which no other setting changes.
fn is_for_checking(report: &Report) -> bool {
    checking_share(report).is_some_and(|share| share >= MOSTLY)
}

/// Whether checkpoints are as far apart already as anybody advises.
fn is_far_apart(report: &Report) -> bool {
    let spacing = report.when.as_ref().and_then(|when| when.spacing_seconds.as_ref());
    // Times are cut to whole seconds.
    spacing.is_some_and(|spacing| spacing.median + 1 >= FAR_APART)
}

/// A size as settings are written: `4096MB`.
fn megabytes(bytes: u64) -> String {
    format!("{}MB", bytes.div_ceil(1 << 20))
}

/// What to say of images that are stored nearly as they are. lz4 and zstd came with 15; before
/// there is pglz only.
fn compression_advice(report: &Report) -> Option<String> {
    let stored = report.ratios.compression_ratio.filter(|stored| *stored > HARDLY_COMPRESSED)?;
    let found = if stored < 1.0 { "hardly compressed" } else { "not compressed" };
    let lz4 = VERSIONS.iter().any(|v| v.name == report.input.postgres && v.image_flags.has_lz4());
    let method = if lz4 { "lz4" } else { "on" };
    Some(format!("wal_compression = {method}: images are {found}"))
}

/// Tables that a finding names.
const TABLES_NAMED: usize = 3;

/// Of the tables that were counted those with most of what `amount` says, as far as each has a
/// tenth of it all: with their amounts and shares.
fn worst_tables(
    report: &Report,
    amount: impl Fn(&WholeTableRow) -> u64,
) -> Vec<(&WholeTableRow, u64, f64)> {
    let rows = report.tables.as_ref().map_or(&[][..], |tables| &tables.rows);
    let all: u64 = rows.iter().map(&amount).sum();
    let mut worst: Vec<_> = rows
        .iter()
        .filter(|row| row.database.is_some())
        .map(|row| (row, amount(row), amount(row) as f64 / all.max(1) as f64))
        .filter(|(_, _, share)| *share >= LEAST_SHARE)
        .collect();
    worst.sort_by_key(|(row, amount, _)| (Reverse(*amount), row.label()));
    worst.truncate(TABLES_NAMED);
    worst
}

/// Evidence: names and numbers.
fn evidence<const N: usize>(numbers: [(&str, Value); N]) -> Map<String, Value> {
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

/// What larger distances between checkpoints cost.
fn recovery_price() -> String {
    let (slow, fast) = REPLAY_BYTES_PER_SECOND;
    let seconds = |rate: u64| (1u64 << 30).div_ceil(rate);
    format!(
        "crash recovery takes longer: {} to {} s for each GB of WAL since the last checkpoint \
         (replay at 50 to 150 MB/s)",
        seconds(fast),
        seconds(slow)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::threshold::{FPI_RATIO, MIN_UPDATES};

    /// Thresholds that stand in texts are those of the code.
    #[test]
    fn texts_tell_the_thresholds() {
        let percent = |ratio: f64| format!("{:.0} %", ratio * 100.0);
        let critical = 1.0 - 1.0 / UNTUNED_AMPLIFICATION;
        for words in [percent(FPI_RATIO), percent(critical)] {
            assert!(fpi_ratio::RULE.summary.contains(&words), "{words}");
            assert!(fpi_ratio::RULE.text.contains(&words), "{words}");
        }
        let updates = MIN_UPDATES.to_string();
        let updates = format!("{},{}", &updates[..1], &updates[1..]);
        assert!(hot_ratio::RULE.text.contains(&updates), "{updates}");
    }
}
