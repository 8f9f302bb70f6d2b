//! Floor 5: one typed model of everything that is printed, and what reads it. Touches no WAL.

pub mod advice;
pub mod amount;
pub mod annotation;
pub mod baseline;
pub mod budget;
pub mod build;
pub mod check;
pub mod diff;
pub mod estimate;
pub mod known;
pub mod model;
pub mod official;
pub mod restore;
#[cfg(feature = "schema")]
pub mod schema;
pub mod segment_group;
pub mod table_budget;
pub mod whatif;
pub mod when;
pub mod who;
pub mod whole;
