//! Floor 5: one typed model of everything that is printed, and what reads it. Touches no WAL.

pub mod advice;
pub mod annotation;
pub mod arrange;
pub mod baseline;
pub mod budget;
pub mod build;
pub mod check;
pub mod model;
pub mod restore;
pub mod segment_group;
