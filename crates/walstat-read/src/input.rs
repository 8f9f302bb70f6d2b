//! Where WAL comes from: from paths to the segments that are read, and their bytes. Decodes no records.

pub mod codec;
pub mod control;
pub(crate) mod digest;
pub mod discover;
pub mod error;
pub mod formula;
pub mod history;
pub mod input_kind;
pub mod label;
pub mod limited;
pub mod mapped;
pub mod names;
mod neighbours;
pub mod packed;
pub(crate) mod packing;
pub mod piece;
pub mod placing;
pub mod plan;
pub mod probe;
pub mod problem;
pub mod recognise;
mod salvage;
pub mod segment;
pub mod source;
pub mod stream;
pub mod tar;
pub mod timeline;
