//! What is counted in PostgreSQL's WAL: one file a dimension, which may be made of others.
//!
//! A dimension is a type that is [`Observe`](walstat_read::scan::observe::Observe): it sees each record
//! once, and its results of consecutive WAL merge into the same, however the WAL was divided.
//! Nothing here opens files or prints.
//!
//! * **How much, by record type?** [`totals`], summed up to [`mod@sums`] and [`ratios`]. [`why`] puts every
//!   byte down to a cause; [`volume`] is what there was before filters.
//! * **Which records?** [`select`] has the filters, [`time_span`] those of time; [`dimension`] names what can
//!   be asked for.
//! * **Who writes it?** [`who`] holds what was asked for of [`relation`] (with `operation`, [`leaf`]),
//!   [`update`], [`vacuum`], [`hot_blocks`], `transaction` (with [`finished_transactions`], [`kind`],
//!   `distribution`) and `names`; [`large_transactions`] and [`kind_sample`] are for every report. What is
//!   counted by pages names one by `page`.
//! * **What was done to tables?** [`events`], and where recovery has to stop before it.
//! * **When was it written?** [`when`] follows one [`deferred_log`] for [`course`],
//!   [`checkpoint`] (why each began: [`checkpoint::cause`]), [`replication`], [`commit`] and
//!   [`archive_timeout`]; [`time_map`] is the clock, [`mod@clock`] its first and last time, [`time_search`]
//!   finds the segments of a span, `unused` are the rests that switches leave.
//! * **What does a restore need of it?** [`restore_input`]: [`backup`], [`replay_points`], and where recovery
//!   ends, [`contradictions`] (with `unassigned_xids`); [`recovery_window`]; what is prepared and keeps a
//!   server from opening, [`two_phase`] and [`prepared_log`].
//! * **How long would images be otherwise?** [`sample`] keeps some, [`image_compressor`] compresses them as
//!   the server does.
//! * **While it is written?** [`follow`]: what is counted is taken away at each telling.
//! * **All of it?** [`counters`]: everything that can be counted, as far as it was asked for.
//! * Tables in little memory: `fork_table`, `sparse_column`, `recent_map`, `block_set`, `low_set`, `xid_set`,
//!   [`amounts`]; `open_events` is what waits for the WAL before, `xid_order` which xid is the later one.
//!
//! # Where to add a dimension
//!
//! 1. A file here with a type that is `Observe`: `observe` sees each selected record, `merge` adds what
//!    a later run has seen, `settle` may hand on what is final, `shrink` frees memory while a run waits.
//! 2. Its place in [`counters::Counters`], or in [`who::Who`] or [`when::When`].
//! 3. Its value in [`dimension::Dimension`], from which the command line takes name and help.
//! 4. Its rows in the model: see the documentation of `walstat-report`.

#![warn(unreachable_pub)]

#[macro_use]
extern crate walstat_format;

pub mod amounts;
pub mod archive_timeout;
pub mod backup;
mod block_set;
pub mod checkpoint;
pub mod clock;
pub mod commit;
pub mod contradictions;
pub mod counters;
pub mod course;
pub mod deferred_log;
pub mod dimension;
mod distribution;
pub mod events;
pub mod finished_transactions;
pub mod follow;
mod fork_table;
pub mod hot_blocks;
pub mod image_compressor;
pub mod kind;
pub mod kind_sample;
pub mod large_transactions;
pub mod leaf;
mod low_set;
mod names;
mod open_events;
mod operation;
mod page;
pub mod prepared_log;
pub mod ratios;
mod recent_map;
pub mod recovery_window;
pub mod relation;
pub mod replay_points;
pub mod replication;
pub mod restore_input;
pub mod sample;
pub mod select;
mod sparse_column;
pub mod sums;
pub mod time_map;
pub mod time_search;
pub mod time_span;
pub mod totals;
mod transaction;
pub mod two_phase;
mod unassigned_xids;
mod unused;
pub mod update;
pub mod vacuum;
pub mod volume;
pub mod when;
pub mod who;
pub mod why;
mod xid_order;
mod xid_set;
