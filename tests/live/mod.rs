//! What the live tests share: servers found on this machine, clusters made with them, and walstat
//! run on their WAL. Not for samples kept in the repository: those are under `tests/fixtures`.

pub mod cluster;
pub mod server;
pub mod walstat;
