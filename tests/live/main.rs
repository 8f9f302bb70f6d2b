//! Live tests: what real programs on this machine say is the judge. PostgreSQL servers of every release
//! that runs, archivers, a browser, Prometheus. Where one is missing its tests say so and pass;
//! `WALSTAT_REQUIRE_LIVE=1` makes that a failure. A module is a subject: `cargo test --test live who::`.

#[allow(dead_code, reason = "most of it is for the tests that need no server")]
#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "most of it is for the tests that need no server")]
#[path = "../support/mod.rs"]
mod support;

// What the tests share: programs of this machine, clusters made with them, walstat run on their WAL.
mod archiving;
mod browser;
mod cluster;
mod python;
mod server;
mod shell;
mod template;
mod wait;
mod walstat;

// The tests.
mod advice;
mod archives;
#[cfg(feature = "cloud")]
mod cloud;
mod dashboard;
mod events;
mod follow;
mod kinds;
mod pages;
mod postgres;
mod records;
mod restore;
mod scale;
mod spark;
mod verdicts;
mod whatif;
mod when;
mod who;
mod window;
