//! Floor 5: one typed model of everything that is printed, and what reads it. Touches no WAL.

pub mod advice;
pub mod arrange;
pub mod build;
pub mod model;
