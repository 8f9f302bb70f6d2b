//! Kinds of work that a report shows, and that several rules look at. These are no rules: those are in
//! `rules/`.

pub(super) mod bulk_updates;
pub(super) mod copied_databases;
pub(super) mod non_hot_updates;
pub(super) mod refilled_tables;
