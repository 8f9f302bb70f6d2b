//! walstat
pub mod analyse;
#[cfg(feature = "cli")]
pub mod cli;
pub mod input;
#[cfg(feature = "cli")]
pub mod render;
pub mod report;
pub mod scan;
pub mod wal;
