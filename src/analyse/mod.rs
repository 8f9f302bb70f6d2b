//! Floor 4, what is counted: one file a dimension, each of which knows nothing of the others.

pub mod backup;
pub mod checkpoint;
pub mod clock;
pub mod commit;
pub mod ratios;
pub mod replication;
pub mod select;
pub mod tape;
pub mod time_map;
pub mod timeline;
pub mod totals;
pub mod when;
pub mod why;
