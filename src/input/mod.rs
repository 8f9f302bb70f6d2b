//! Floor 2, where WAL comes from: paths → a plan of segments, and their bytes. Decodes no
//! records.

pub mod codec;
pub mod control;
pub mod discover;
pub mod duplicate;
pub mod history;
pub mod label;
pub mod names;
pub mod plan;
pub mod probe;
pub mod problem;
pub mod recognise;
pub mod source;
pub mod stream;
pub mod tar;
pub mod timeline;
