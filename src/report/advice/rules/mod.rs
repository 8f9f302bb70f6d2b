//! The rules, one file each, named after what they find.

pub mod fpi_ratio;
pub mod hot_ratio;
pub mod write_amplification;

/// Below so many bytes of records, shares say little: an idle server writes almost nothing but
/// images.
const VOLUME_BYTES: u64 = 16 << 20;

/// Where the first rules come from.
const CHEN_2017: &str = "Chen, WAL volume of pgbench under different settings, 2017";

/// Replay runs at so many bytes a second on common hardware, slow and fast.
const REPLAY_BYTES_PER_SECOND: (u64, u64) = (50 << 20, 150 << 20);

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
