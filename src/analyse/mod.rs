//! Floor 4, what is counted: one file a dimension, each of which knows nothing of the others.

pub mod backup;
pub mod clock;
pub mod dimension;
pub mod ratios;
pub mod reach;
pub mod select;
pub mod sums;
pub mod totals;
pub mod volume;
pub mod why;
