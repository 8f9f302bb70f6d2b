//! What every fuzz target checks, apart from the fuzzer, so that `tests/it/fuzz_findings.rs` checks
//! the same with each input that once was a finding.
#![allow(dead_code, reason = "a fuzz target is a program of its own and uses one of these")]

pub mod archive;
pub mod program;
pub mod record;
pub mod segment;
pub mod shape;
