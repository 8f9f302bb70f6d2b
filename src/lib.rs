//! Byte-exact statistics of PostgreSQL WAL, 9.5 to 19, read without a server.
//!
//! The library behind the `walstat` command. It counts what is in the WAL; it changes nothing,
//! talks to no server, and does not say what single records mean.
//!
//! # One runnable example
//!
//! ```
//! use std::num::NonZeroUsize;
//! use std::path::PathBuf;
//! use walstat::analyse::totals::RecordTable;
//! use walstat::scan::books::Heading;
//! use walstat::scan::pages::Progress;
//! use walstat::scan::read::read;
//! use walstat::scan::record::Everything;
//! use walstat::scan::streamed::Wanted;
//! use walstat::wal::crc::Crc32c;
//! use walstat::wal::lsn::Lsn;
//!
//! # fn main() -> Result<(), walstat::input::plan::InputError> {
//! let paths = [PathBuf::from("tests/fixtures/pg15-mixed")];
//! let wanted = Wanted {
//!     crc: Some(Crc32c::detect()),
//!     range: (Lsn(0), Lsn::MAX),
//!     limit: None,
//!     timeline: None,
//!     select: Everything,
//! };
//! let (plan, outcome) =
//!     read(&paths, wanted, NonZeroUsize::MIN, &Progress::default(), &RecordTable::default())?;
//!
//! assert_eq!(plan.version().name, "15");
//! assert!(outcome.problems.is_empty());
//! let totals = outcome.observer.sum(|_| true);
//! assert_eq!(totals.count, 72_170);
//! assert_eq!(totals.record_bytes() + totals.fpi_bytes, 17_066_396);
//! // Every byte is in a counted record or under a heading of the books.
//! assert_eq!(totals.total_bytes + outcome.books.total(), outcome.input_bytes);
//! assert_eq!(outcome.books.get(Heading::Zero), 703_000);
//! # Ok(())
//! # }
//! ```
//!
//! # The floors
//!
//! A file imports from its own floor and from those below it, never upwards; `tests/tidy` holds
//! that. `docs/architecture.md` says where to add what.
//!
//! | floor | is | knows nothing of |
//! | --- | --- | --- |
//! | [`wal`] | the format: borrowed views over bytes | files, statistics |
//! | [`input`] | where WAL comes from: paths, archives, compressions | records |
//! | [`scan`] | segments → records in LSN order; damage, endings, the books | what is counted |
//! | [`analyse`] | what is counted, one file a dimension | printing, arguments |
//! | [`report`] | one typed model of everything that is printed, and advice on it | WAL bytes |
//! | `render` | model → text, one file a format | how a number came about |
//! | `cli` | arguments and wiring, one file a command | logic worth a test |
//!
//! `render` and `cli` come with the feature `cli`, which is on by default.
//!
//! # The way of one record
//!
//! [`input::discover`] looks at the paths and [`input::plan`] decides which segments are read →
//! [`scan::parallel`] hands runs of them to threads → [`scan::pages`] fills one reused window from
//! [`input::source`] and pushes page after page → [`scan::reader`] makes a
//! [`Record`](scan::record::Record) of the bytes, checked and borrowed from the window → every
//! dimension that was asked for sees it once ([`Observe`](scan::record::Observe)) → runs are joined
//! in WAL order ([`scan::run`]) and concluded ([`scan::outcome`]) → [`report::build`] fills the
//! model → one file of `render` writes it. There is no way back up, and no second pass.

#[macro_use]
mod named;

pub mod analyse;
#[cfg(feature = "cli")]
pub mod cli;
pub mod input;
#[cfg(feature = "cli")]
pub mod render;
pub mod report;
pub mod scan;
pub mod wal;
