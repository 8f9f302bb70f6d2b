//! What the live tests share: servers found on this machine, clusters made with them, and walstat
//! run on their WAL. Not for samples kept in the repository: those are under `tests/fixtures`.

#![allow(dead_code, reason = "each test file is a program of its own and uses a part of this")]

pub mod cluster;
pub mod server;
pub mod shell;
pub mod walstat;
