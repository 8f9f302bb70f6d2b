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
//! one's own is anything that is [`Observe`], and sees every [`Record`] once; [`whatif`] says what other
//! settings would have written. A program needs no more than the library: `default-features = false`
//! leaves the command line out. To take records apart in memory, the crate `walstat-format` is enough.
//!
//! # The floors
//!
//! Each floor is a crate, and uses only those above it in this table: an import the other way does not
//! compile. `docs/architecture.md` says where to add what.
//!
//! | floor | is | knows nothing of |
//! | --- | --- | --- |
//! | `walstat-format` | the format: views over borrowed bytes | files, statistics |
//! | `walstat-cloud` | object stores, with the feature `cloud` | WAL |
//! | `walstat-read` | where WAL comes from; its records in order, damage, endings, books | what is counted |
//! | `walstat-names` | names of relations, from catalogs, files, servers | who asks for a name |
//! | `walstat-analyse` | what is counted, a file a dimension | files, printing |
//! | `walstat-whatif` | what other settings would have written | printing |
//! | `walstat-report` | one typed model of all that is printed, and advice | formats, where it goes |
//! | `walstat` | this library, and with the feature `cli`, on by default, the command | |
//!
//! Of the command, `render` makes text of the model, a file a format, and `commands` has a file a command.
//!
//! # The way of one record
//!
//! `input::discover` looks at the paths, `input::placing` puts every file in its place and
//! `input::plan` decides which are read → `scan::parallel` hands runs of them to threads →
//! `scan::pages` fills one reused buffer from `input::source` and pushes page after page →
//! `scan::fast` makes a [`Record`] of the bytes, checked and borrowed from the buffer; where anything is
//! unusual, `scan::reader` does, step by step → every dimension that was asked for sees it once
//! ([`Observe`]), in batches of up to 128 records → runs are joined in WAL order (`scan::join`) and
//! concluded (`scan::outcome`), all of this in `walstat-read` → `assemble` of `walstat-report` makes the
//! model → one file of `render` writes it. There is no way back up. Nothing is counted twice, and little is
//! read twice: copies that differ, places where a timeline leaves another, what a server was writing to,
//! and what has to be known before the counting begins.

#[cfg(feature = "cli")]
mod args;
#[cfg(feature = "cli")]
mod commands;
#[cfg(feature = "cli")]
mod config;
mod face;
#[cfg(feature = "cli")]
mod failure;
#[cfg(feature = "cli")]
mod machine;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod render;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use commands::{command_line, main};

/// What other settings would have written.
pub mod whatif {
    pub use walstat_format::image::Compression;
    pub use walstat_whatif::driver::{Predicted, WhatIf, WhatIfError};
    pub use walstat_whatif::outcome::RunOutcome;
    pub use walstat_whatif::predict::Prediction;
    pub use walstat_whatif::scenario::Scenario;
    pub use walstat_whatif::settings::{ArchiveTimeout, Change, Checkpoints};
}

/// How object stores are reached, where a path is a URL: feature `cloud`.
#[cfg(feature = "cloud")]
pub mod storage {
    pub use walstat_read::input::storage::{Options, configure};
}

pub use face::Scan;
pub use walstat_format::block::{BlockRef, Blocks, Image, Parts, RelFileLocator};
pub use walstat_format::fork::Fork;
pub use walstat_format::lsn::Lsn;
pub use walstat_format::record::{Record, StoredImage};
pub use walstat_format::record_header::RecordHeader;
pub use walstat_format::rmgr::{self, RecordType};
pub use walstat_read::input::error::InputError as Error;
pub use walstat_read::input::input_kind::InputKind;
pub use walstat_read::scan::observe::Observe;
pub use walstat_report::model::{Problem, Report};
