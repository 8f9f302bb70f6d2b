//! Floor 2, where WAL comes from: paths → a plan of segments, and their bytes. Decodes no
//! records.

pub mod codec;
pub mod discover;
pub mod history;
pub mod probe;
pub mod problem;
pub mod recognise;
pub mod source;
pub mod tar;
pub mod timeline;
