//! What the same workload would have written under other settings: the simulator.
//!
//! # What happens to one record
//!
//! 1. `hand_over` reads it, and gives it to a `trace_builder::TraceBuilder` when nothing earlier can come
//!    (`observe`): at once on one thread; on several, one builds and the others read ahead.
//! 2. The builder rolls the record's pages forward (`page_replayer`, `redo`), so that it knows how long an
//!    image of each would be, and how long the data were that an image replaced. It notes when each page was
//!    stamped before (`blocks`), how the server registers it (`registered`), what the record means beyond its
//!    pages (`record_effect`), and what logical decoding adds to it (`level`).
//! 3. All that goes into the `trace`, in some bytes a record; [`base`] reads from it where the checkpoints
//!    were and which settings were in force.
//! 4. Each scenario is one or several simulated runs ([`predict`]). A run makes every decision of the server
//!    anew (`simulated_run`): does a checkpoint begin here (`pace`), which page gets an image, how long is
//!    the record then. `replay` passes over groups of records that all runs write as the base did.
//! 5. Where images are compressed otherwise, the WAL is read once more, by a `recode::Recoder`.
//! 6. What comes out is an [`outcome::RunOutcome`] for each run, and a [`predict::Prediction`] for each
//!    scenario: bytes, their range, and what is not certain.
//!
//! # Where things are
//!
//! | module | what it does |
//! | --- | --- |
//! | [`driver`] | a prediction from beginning to end |
//! | [`spooled`] | what comes through a pipe, to be read more than once |
//! | `observe` | puts the records of parallel readers into the order of the WAL |
//! | `hand_over` | reads, and gives the records to a sink: where they are read, or on another thread |
//! | `whole_record` | a record in one piece, taken apart |
//! | `trace_builder` | from records to the trace |
//! | `blocks` | numbers of blocks, and when each was stamped |
//! | `page`, `page_replayer`, `redo` | pages, rolled forward; one file a resource manager |
//! | `page_view` | a page that is only read, as an image stores it |
//! | `light_page` | what lengths need of a page |
//! | `registered` | how the server registers each block of each record |
//! | `record_effect`, `running_transactions` | checkpoints, commits, switches and the like |
//! | `freezing`, `imaged_page`, `free_space` | what vacuum does because of an image, and beside it |
//! | `level` | what differs at the other wal_level |
//! | `mean_block_data` | lengths of data that neither record nor page tells |
//! | `sequence` | which tables take the values of which sequences |
//! | `trace` | the records as they are kept, in memory or a file |
//! | [`base`] | checkpoints, settings and clock of the WAL that is there |
//! | [`base_checkpoint`], `causes` | why each of its checkpoints began, and which settings would move it |
//! | [`settings`], [`scenario`], `own` | what is asked, and what of it the base has already |
//! | `pace` | when checkpoints begin and end |
//! | `simulated_run`, `plan` | one run, decision by decision |
//! | `range_walk`, `replay` | runs over the trace |
//! | [`recode`] | runs whose images are compressed otherwise |
//! | `images_seen` | whether the base's images were written under one wal_compression |
//! | [`outcome`], [`uncertainty`], `run_range`, [`predict`] | what comes out |
//! | `position` | arithmetic of WAL positions |

// What is `pub` is used by other crates.
#![warn(unreachable_pub)]

pub mod base;
pub mod base_checkpoint;
mod blocks;
mod causes;
pub mod driver;
mod free_space;
mod freezing;
mod hand_over;
mod imaged_page;
mod images_seen;
mod level;
mod light_page;
#[cfg(test)]
mod made_up;
mod mean_block_data;
mod observe;
pub mod outcome;
mod own;
mod pace;
mod page;
mod page_replayer;
mod page_view;
mod plan;
mod position;
pub mod predict;
mod range_walk;
pub mod recode;
mod record_effect;
mod redo;
mod registered;
mod replay;
mod run_range;
mod running_transactions;
pub mod scenario;
mod sequence;
pub mod settings;
mod simulated_run;
pub mod spooled;
mod trace;
mod trace_builder;
pub mod uncertainty;
mod whole_record;

pub use pace::shown::segments_of;
