//! Floor 4, what is counted: one file a dimension, each of which knows nothing of the others.

pub mod amounts;
pub mod backup;
pub mod block;
pub mod block_set;
pub mod clock;
pub mod dimension;
pub mod distribution;
pub mod finished;
pub mod fork_table;
pub mod leaf;
pub mod names;
pub mod operation;
pub mod rare;
pub mod ratios;
pub mod reach;
pub mod relation;
pub mod select;
pub mod sums;
pub mod totals;
pub mod transaction;
pub mod volume;
pub mod whatif;
pub mod who;
pub mod why;
