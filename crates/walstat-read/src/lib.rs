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
//! From paths to segments there is [`input`], a package of its own.
//!
//! From segments to records ([`scan`]):
//!
//! | module | holds |
//! | --- | --- |
//! | [`observe`](scan::observe) | the trait of what counts records |
//! | [`observer`](scan::observer) | a value of any type that has this trait |
//! | [`read`](scan::read), `parallel` | a scan from its files to its outcome, on all threads |
//! | [`pages`](scan::pages), `page_buffer` | pages through one buffer |
//! | [`reader`](scan::reader), `pending`, `resync` | records out of pages, also after what is none |
//! | `fast`, `usual_types` | the same of usual records, many at once |
//! | [`scope`](scan::scope) | what makes bytes a valid record |
//! | [`run`](scan::run) | what reading consecutive segments gives |
//! | `join`, `joined_runs` | runs joined in WAL order |
//! | [`outcome`](scan::outcome) | the result of a scan |
//! | `damage`, [`ending`](scan::ending) | places without a record, and how the WAL ends |
//! | [`claims`](scan::claims), `timeline_switches` | what records say that is judged at the end |
//! | [`few`](scan::few) | the first of records of which few are noted |
//! | [`alone`](scan::alone), `copies`, `verify` | files that are read by themselves |
//! | `older_pages` | files of a timeline that hold an older one's pages |
//! | [`books`](scan::books) | every byte that is in no counted record, by what it is |
//! | [`streamed`](scan::streamed) | segments in tars and pipes, which can be read only once |
//! | [`partial`](scan::partial) | results that are merged later |
//! | [`round`](scan::round), [`memory`](scan::memory) | one check of many, and what it remembers |
//! | [`seek`](scan::seek) | a look into single segments |
//! | [`progress`](scan::progress) | how far reading has come |
//!
//! [`Scan`] (`reading`) ties both together; [`follow`] reads WAL as it is written, by the same means.

#![warn(unreachable_pub)]

#[macro_use]
extern crate walstat_format;

pub mod follow;
mod reading;
pub mod scan;

pub use walstat_input as input;

pub use reading::{Scan, Watch};
