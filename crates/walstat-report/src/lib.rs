//! One typed model of everything that is printed, its sentences among it, and what fills, judges and compares
//! it. Touches no WAL and prints nothing: what records come to is counted by `walstat-analyse`, formats are
//! the program's.
//!
//! * [`model`]: the report, a field for each key of the JSON; [`model::view`] has what only renderers need.
//! * [`assemble`]: puts the report of a command together, of whatever was counted; what one command alone
//!   asks for, that one adds. [`notes`] are what is to be said of how it came to be.
//! * [`build`]: results of a scan → the model, with [`who`] (by relation, block, transaction), [`mod@when`]
//!   (over time) and [`whatif`] (predictions).
//! * [`events`]: what was done to tables, as it is told.
//! * [`follow`]: what is told of WAL while it is written, and the state in which that stops.
//! * [`known`]: names of relations that are known before the WAL is read.
//! * [`contradicting`]: records whose payload contradicts itself, as problems.
//! * [`restart`]: where replay would begin in a server's own directory; [`backup_end`]: where a base backup
//!   ends, if that was lost.
//! * `large_work`: who wrote much at once, and what it did to which table.
//! * `maintenance`: what vacuum, index builds, refreshes and base backups wrote.
//! * `estimate`: what other settings would have written, from a sample of the images; `settled`: how fewer
//!   bytes bring fewer checkpoints, and these fewer bytes again.
//! * [`advice`]: the rules behind WHAT TO DO, a file each in `advice/rules`.
//! * [`mod@check`]: verdicts. [`budget`] and [`table_budget`] say what is asked, [`restore`] whether a backup
//!   can be restored, [`mod@window`] from where to where recovery can go, [`annotation`] how code hosts
//!   and scanners take it; `segment_group` has integrity by group of segments.
//! * [`wal_keepers`]: what keeps segments in `pg_wal`.
//! * `settings`: a server's settings, as the model has them.
//! * [`diff`], [`baseline`]: two reports side by side, and an earlier one read back.
//! * [`gap`]: segments that may be missing, since somebody said so.
//! * [`amount`]: sizes, ratios, rates and times as people write them in options.
//! * `official`: what `pg_waldump` prints around its table.
//! * `schema`: the JSON Schema, with the feature of that name.
//!
//! # Where to add
//!
//! * **A key of the JSON**: a field of its row in [`model`], filled in [`build`], [`who`] or [`mod@when`];
//!   then renew `docs/report.schema.json` as `tests/it/schema.rs` says.
//! * **A dimension**: its rows in [`model`], a [`model::table::TableRow`] each, in a
//!   [`model::table::Table`]; what fills them in [`assemble`] and the files that it calls.
//! * **An advice rule**: a file in `advice/rules`, named after its id, with the five headings in its doc
//!   comment and its threshold in each preset; a line in [`advice::RULES`], and what it measures in the
//!   tests below them.
//! * **A budget**: a row of `OPTIONS` in [`budget`] and a field of its `Budgets`.

// What is `pub` is used by other crates.
#![warn(unreachable_pub)]

#[macro_use]
extern crate walstat_format;

pub mod advice;
pub mod amount;
pub mod annotation;
pub mod assemble;
pub mod backup_end;
pub mod baseline;
pub mod budget;
pub mod build;
pub mod check;
pub mod contradicting;
pub mod diff;
mod estimate;
pub mod events;
pub mod follow;
pub mod gap;
pub mod known;
mod large_work;
mod maintenance;
pub mod model;
pub mod notes;
mod official;
pub mod restart;
pub mod restore;
#[cfg(feature = "schema")]
pub mod schema;
mod segment_group;
mod settings;
mod settled;
pub mod table_budget;
pub mod wal_keepers;
pub mod whatif;
pub mod when;
pub mod who;
pub mod window;
