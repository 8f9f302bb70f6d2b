//! Byte-exact statistics of PostgreSQL WAL, 9.5 to 19, read without a server.
//!
//! The library behind the `walstat` command. It counts what is in the WAL; it changes nothing,
//! talks to no server, and does not say what single records mean.
//!
//! ```
//! use walstat::{Lsn, Scan};
//!
//! # fn main() -> Result<(), walstat::Error> {
//! let report = Scan::paths(["tests/fixtures/pg15-mixed"]).threads(2).report()?;
//!
//! assert_eq!(report.input.postgres, "15");
//! assert!(report.problems.is_empty());
//! assert_eq!((report.totals.count, report.totals.total_bytes), (72_170, 17_066_396));
//! // Every byte is in a counted record or under a heading of the books.
//! assert_eq!((report.books.zero_bytes, report.books.unaccounted_bytes), (703_000, 0));
//! assert_eq!(report.range.start.parse(), Ok(Lsn(0x0060_1B60)));
//! # Ok(())
//! # }
//! ```
//!
//! [`Scan`] says what is read. [`Report`] is what `walstat --format json` prints; a dimension of
//! one's own is anything that is [`Observe`], and sees every [`Record`] once. Everything else is the
//! inside of the house and may change.
//!
//! # The floors
//!
//! A file imports from its own floor and from those below it, never upwards; `tests/tidy` holds
//! that. `docs/architecture.md` says where to add what.
//!
//! | floor | is | knows nothing of |
//! | --- | --- | --- |
//! | `wal` | the format: borrowed views over bytes | files, statistics |
//! | `input` | where WAL comes from: paths, archives, compressions | records |
//! | `scan` | segments → records in LSN order; damage, endings, the books | what is counted |
//! | `analyse` | what is counted, one file a dimension | printing, arguments |
//! | `report` | one typed model of everything that is printed, and advice on it | WAL bytes |
//! | `render` | model → text, one file a format | how a number came about |
//! | `cli` | arguments and wiring, one file a command | logic worth a test |
//!
//! `render` and `cli` come with the feature `cli`, which is on by default.
//!
//! # The way of one record
//!
//! `input::discover` looks at the paths, `input::placing` puts every file in its place and
//! `input::plan` decides which are read → `scan::parallel` hands runs of them to threads →
//! `scan::pages` fills one reused window from `input::source` and pushes page after page →
//! `scan::reader` makes a [`Record`] of the bytes, checked and borrowed from the window → every
//! dimension that was asked for sees it once ([`Observe`]) → runs are joined in WAL order
//! (`scan::run`) and concluded (`scan::outcome`) → `report::build` fills the model → one file of
//! `render` writes it. There is no way back up. Nothing is counted twice, and read twice
//! only for a verdict: copies that differ, places where a timeline leaves another, and what a server was
//! writing to.

#[macro_use]
mod listed;

#[doc(hidden)]
pub mod analyse;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
mod face;
#[doc(hidden)]
pub mod input;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod render;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod scan;
#[doc(hidden)]
pub mod wal;

pub use face::Scan;
pub use input::error::InputError as Error;
pub use input::taken_for::TakenFor;
pub use report::model::{Problem, Report};
pub use scan::record::{Observe, Record, StoredImage};
pub use wal::block::{BlockRef, Blocks, Image, Parts, RelFileLocator};
pub use wal::fork::Fork;
pub use wal::lsn::Lsn;
pub use wal::record::RecordHeader;
pub use wal::rmgr::{self, RecordType};
