//! Where PostgreSQL's WAL comes from: from paths to the segments that are read, and their bytes. Decodes no
//! records.
//!
//! | module | holds |
//! | --- | --- |
//! | [`discover`] | which files at the paths may be segments |
//! | [`names`], `suffixes`, `copy_names` | what a file's name says, and its suffix |
//! | [`piece`] | what is known of one file |
//! | [`known_files`], [`stamp`] | the same from before, if it still holds |
//! | [`recognise`], [`probe`] | what a file holds, by its first bytes |
//! | [`codec`], `unpacking` | compressions, and which of their tools unpacks a file |
//! | [`tar`], [`stream`] | tars and pipes |
//! | [`input_kind`] | whether a directory is an archive, `pg_wal` or a copy |
//! | `packing`, `neighbours` | whether a restore gets a file, as it is packed |
//! | `reach`, `layout`, `repository`, `archive_info` | the same, by where it lies |
//! | [`placing`], `salvage`, [`listed`] | the segment that each file is |
//! | [`plan`], [`timeline`] | which segments are read, of which timeline |
//! | [`storage`] | files, on disk and in object stores |
//! | [`limited`], [`inherited`] | files of any size, or open already |
//! | [`segment`], [`source`] | one segment of the plan, and its bytes |
//! | [`moved`] | segments that lie elsewhere by the time they are read |
//! | [`mapped`], `faster_way` | files that are mapped, and whether they are |
//! | `digest` | whether two copies are the same |
//! | [`history`], `history_text` | timeline histories |
//! | [`label`] | backup labels |
//! | [`control`] | `pg_control` |
//! | [`packed`] | the files that walstat writes for itself |
//! | [`problem`] | what is wrong in the WAL |
//! | [`error`] | why there is nothing to read |
//! | [`writers`] | whether another program has a file open to write to it |
//! | [`formula`] | texts that a spreadsheet would run |

#![warn(unreachable_pub)]

#[macro_use]
extern crate walstat_format;

pub mod archive_info;
pub mod codec;
pub mod control;
mod copy_names;
pub mod digest;
pub mod discover;
pub mod error;
pub mod faster_way;
pub mod formula;
pub mod history;
mod history_text;
pub mod inherited;
pub mod input_kind;
pub mod known_files;
pub mod label;
pub mod layout;
pub mod limited;
pub mod listed;
pub mod mapped;
pub mod moved;
pub mod names;
mod neighbours;
pub mod packed;
pub mod packing;
pub mod piece;
pub mod placing;
pub mod plan;
pub mod probe;
pub mod problem;
mod reach;
pub mod recognise;
mod repository;
mod salvage;
pub mod segment;
pub mod source;
pub mod stamp;
pub mod storage;
pub mod stream;
mod suffixes;
pub mod tar;
pub mod timeline;
mod unpacking;
pub mod writers;
