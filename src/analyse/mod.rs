//! Floor 4, what is counted: one file a dimension, each of which knows nothing of the others.

pub mod backup;
pub mod clock;
pub mod ratios;
pub mod select;
pub mod totals;
pub mod whatif;
pub mod why;
