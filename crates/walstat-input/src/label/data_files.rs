//! What a data directory has beside `pg_control`, and no server starts without (`ValidatePgVersion` in
//! `src/backend/utils/init/miscinit.c`, `read_relmap_file` in `src/backend/utils/cache/relmapper.c`; the rest
//! tried with 15).

use super::PG_VERSION;
use crate::control::Control;
use crate::limited;
use crate::storage;
use std::io::ErrorKind;
use std::path::Path;
use walstat_format::version::VERSIONS;

const FILES: [&str; 2] = [PG_VERSION, "global/pg_filenode.map"];

/// Directories that may be empty, which some copiers leave out: without one, a server ends when it starts, or
/// when recovery does. That of WAL is made anew by whoever restores.
const DIRECTORIES: [&str; 9] = [
    PERMANENT_STATISTICS,
    "pg_commit_ts",
    "pg_logical/mappings",
    "pg_logical/snapshots",
    "pg_notify",
    "pg_replslot",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
];

/// Before 15 a server that recovers empties it (`pgstat_reset_all`), for which it has to be there.
const PERMANENT_STATISTICS: &str = "pg_stat";

/// The directory of a database that every cluster has.
const TEMPLATE: &str = "base/1";

/// More than the number of a release takes.
const VERSION_BYTES_MAX: u64 = 16;

/// Why a server does not start with a backup's directory; `None` where it may. A label may be kept with its
/// `pg_control` alone, and pgBackRest makes what its own directory lacks: neither is a data directory.
pub(super) fn unusable(directory: &Path, control: Option<&Control>) -> Option<String> {
    let is_pgbackrests = || storage::exists(&directory.join("../backup.manifest"));
    if !storage::is_dir(&directory.join(TEMPLATE)) || is_pgbackrests() {
        return None;
    }
    let release = control.and_then(|control| {
        VERSIONS.iter().find(|it| it.catalog_versions.contains(&control.catalog_version))
    });
    let empties = release.is_some_and(|release| release.recovery.empties_statistics);
    let is_lost = |name: &&str| {
        let found = storage::metadata(&directory.join(name));
        (*name != PERMANENT_STATISTICS || empties)
            && found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    if let Some(lost) = FILES.into_iter().find(is_lost) {
        return Some(format!("{lost}: no such file"));
    }
    let lost: Vec<&str> = DIRECTORIES.into_iter().filter(is_lost).collect();
    if !lost.is_empty() {
        let lost = lost.join(", ");
        return Some(format!("{lost}: no such directory, which may be empty and has to be there"));
    }
    let release = release?.name;
    let said = limited::read(&directory.join(PG_VERSION), VERSION_BYTES_MAX).ok()?;
    let is_same = String::from_utf8_lossy(&said).trim() == release;
    (!is_same).then(|| format!("{PG_VERSION}: another release than {release}, that of pg_control"))
}
