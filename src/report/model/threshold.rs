//! Thresholds that more than one place speaks of, each with its home here: below what volume
//! ratios say nothing, and from where on a number is worth a look.

/// Bytes of records below which shares say little: an idle server writes almost nothing but
/// images after each checkpoint.
pub const MIN_VOLUME_BYTES: u64 = 16 << 20;
/// Updates below which their HOT share says little: a few, of one table, are no habit.
pub const MIN_UPDATES: u64 = 1000;
/// Above this share of the bytes, images are worth a look.
pub const FPI_RATIO: f64 = 0.70;
