//! Names of relations from the rows of the system catalogs, wherever they were found: in the files
//! of a data directory, in page images, in records.
//!
//! A [`store::Store`] keeps the versions of rows by their place, as the files have them, so that
//! records can be applied to it ([`event`], [`catalog_changes`]). [`store::Store::names`] asks which
//! versions count, by what became of their transactions ([`xid_status`]), and makes [`names::Names`]
//! of them. Neither opens files nor knows a server.

mod builtin;
mod catalog_candidates;
pub mod catalog_changes;
pub mod event;
pub mod history;
pub mod listing;
pub mod names;
mod relation;
mod resolve;
pub mod row;
pub mod store;
pub mod xid_status;
