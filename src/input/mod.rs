//! Floor 2, where WAL comes from: paths → a plan of segments, and their bytes. Decodes no
//! records.

pub mod catalog;
pub mod codec;
pub mod control;
pub mod digest;
pub mod discover;
pub mod error;
pub mod formula;
pub mod history;
pub mod label;
pub mod names;
#[cfg(feature = "cli")]
pub mod names_file;
pub mod packed;
pub mod piece;
pub mod placing;
pub mod plan;
pub mod probe;
pub mod problem;
pub mod recognise;
#[cfg(feature = "server")]
pub mod server;
pub mod source;
pub mod stream;
pub mod taken_for;
pub mod tar;
pub mod timeline;
