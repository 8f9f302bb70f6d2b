//! The promises of `walstat check`: integrity, budgets, restore readiness, and every output
//! format held against its reference.

mod archive;
mod budgets;
mod docs;
mod formats;
mod integrity;
mod left_timeline;
mod progress;
mod restore;
mod tables;
