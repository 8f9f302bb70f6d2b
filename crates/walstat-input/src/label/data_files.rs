//! The files of a data directory beside `pg_control` without which no server starts (`ValidatePgVersion` in
//! `src/backend/utils/init/miscinit.c`, `read_relmap_file` in `src/backend/utils/cache/relmapper.c`).

use super::PG_VERSION;
use crate::control::Control;
use crate::limited;
use crate::storage;
use std::path::Path;
use walstat_format::version::VERSIONS;

const SHARED_CATALOGS: &str = "global/pg_filenode.map";

/// More than the number of a release takes.
const VERSION_BYTES_MAX: u64 = 16;

/// Which of them a server does not start with, and why. A label may be kept with its `pg_control` alone: that
/// is no data directory.
pub(super) fn unusable(directory: &Path, control: Option<&Control>) -> Option<String> {
    if !storage::is_dir(&directory.join("base")) {
        return None;
    }
    let mut needed = [PG_VERSION, SHARED_CATALOGS].into_iter();
    if let Some(lost) = needed.find(|file| !storage::exists(&directory.join(file))) {
        return Some(format!("{lost}: no such file"));
    }
    let catalog = control?.catalog_version;
    let release = VERSIONS.iter().find(|it| it.catalog_versions.contains(&catalog))?.name;
    let said = limited::read(&directory.join(PG_VERSION), VERSION_BYTES_MAX).ok()?;
    let is_same = String::from_utf8_lossy(&said).trim() == release;
    (!is_same).then(|| format!("{PG_VERSION}: expected {release}, the release of its pg_control"))
}
