//! Reads PostgreSQL's WAL wherever it lies, and shows every valid record once, in WAL order: from
//! `pg_wal`, archives, compressed files, tars and pipes, on several threads. What is damaged or missing is
//! reported and skipped; how the WAL ends is named.
//!
//! ```
//! use walstat_format::record::Record;
//! use walstat_read::{Scan, scan::observe::Observe};
//!
//! /// How many records there are.
//! #[derive(Clone, Default)]
//! struct Count(u64);
//!
//! impl Observe for Count {
//!     fn observe(&mut self, _: &Record<'_>) {
//!         self.0 += 1;
//!     }
//!     fn merge(&mut self, later: Count) {
//!         self.0 += later.0;
//!     }
//! }
//!
//! # fn main() -> Result<(), walstat_read::input::error::InputError> {
//! let scan = Scan::paths(["../../tests/fixtures/pg15-mixed"]);
//! let (plan, outcome) = scan.count(&Count::default())?;
//! assert_eq!(plan.version().name, "15");
//! assert_eq!(outcome.observer.0, 72_170);
//! assert!(outcome.problems.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! From paths to segments ([`input`]):
//!
//! | module | holds |
//! | --- | --- |
//! | [`discover`](input::discover) | which files at the paths may be segments |
//! | [`names`](input::names), [`piece`](input::piece) | what a file's name says, what is known of one file |
//! | [`recognise`](input::recognise), [`probe`](input::probe) | what a file holds, by its first bytes |
//! | [`codec`](input::codec), [`tar`](input::tar), [`stream`](input::stream) | compressions, tars, pipes |
//! | [`input_kind`](input::input_kind) | whether a directory is an archive, `pg_wal` or a copy |
//! | [`placing`](input::placing), [`plan`](input::plan) | the segment that each file is, and which are read |
//! | [`storage`](input::storage) | files, on disk and in object stores |
//! | [`segment`](input::segment), [`source`](input::source) | one segment of the plan, and its bytes |
//! | [`history`](input::history), [`label`](input::label) | timeline histories, backup labels |
//! | [`control`](input::control) | `pg_control` |
//! | [`problem`](input::problem) | what is wrong in the WAL |
//! | [`error`](input::error) | why there is nothing to read |
//!
//! From segments to records ([`scan`]):
//!
//! | module | holds |
//! | --- | --- |
//! | [`observe`](scan::observe) | the trait of what counts records |
//! | [`observer`](scan::observer) | a value of any type that has this trait |
//! | [`pages`](scan::pages), [`reader`](scan::reader) | pages through one buffer, records out of pages |
//! | [`run`](scan::run) | what reading consecutive segments gives: runs are joined in WAL order |
//! | [`outcome`](scan::outcome), [`ending`](scan::ending) | the result of a scan, and how the WAL ends |
//! | [`books`](scan::books) | every byte that is in no counted record, by what it is |
//! | [`streamed`](scan::streamed) | segments in tars and pipes, which can be read only once |
//! | [`partial`](scan::partial) | results that are merged later |
//! | [`seek`](scan::seek) | a look into single segments |

//! [`follow`] reads WAL as it is written, by the same means.

#![warn(unreachable_pub)]

#[macro_use]
extern crate walstat_format;

pub mod follow;
pub mod input;
mod reading;
pub mod scan;

pub use reading::{Scan, Watch};
