//! The rules, one file each, named after what they find.

use crate::report::model::Report;
use crate::report::model::threshold::MIN_VOLUME_BYTES;
use serde_json::{Map, Value};

pub mod fpi_ratio;
pub mod hot_ratio;
pub mod write_amplification;

/// Where the first rules come from.
const CHEN_2017: &str = "Chen, WAL volume of pgbench under different settings, 2017";

/// What a server shows that was never tuned: so many bytes for each byte of change.
const UNTUNED_AMPLIFICATION: f64 = 20.0;

/// Replay runs at so many bytes a second on common hardware, slow and fast.
const REPLAY_BYTES_PER_SECOND: (u64, u64) = (50 << 20, 150 << 20);

/// Whether a report is of too little WAL for its shares to say anything.
fn says_little(report: &Report) -> bool {
    report.totals.total_bytes < MIN_VOLUME_BYTES
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
