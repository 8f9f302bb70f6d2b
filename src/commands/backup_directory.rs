//! What lies in the directory of a base backup and matters to whoever restores it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;
use walstat_format::version::Version;
use walstat_names::server_settings::{recovery_delay, recovery_targets};
use walstat_read::input::plan::Plan;
use walstat_read::input::segment::Segment;
use walstat_report::restore::Backup;

/// Notes on it.
pub(super) fn notes(directory: &Path, backup: &Backup, plan: &Plan) -> Vec<String> {
    let notes = [
        wal_directory(directory, plan.version()),
        early_end(directory),
        late_end(directory, plan.version()),
        own_wal(directory, backup, plan),
    ];
    notes.into_iter().flatten().collect()
}

/// What is wrong with the directory of WAL that a restored server writes to. It does not make one
/// (`ValidateXLOGDirectoryStructure` in `src/backend/access/transam/xlog.c`); and where it is a link, as on a
/// server that has its WAL on another disk, it may lead into that server's.
fn wal_directory(directory: &Path, version: &Version) -> Option<String> {
    let name = version.wal_directory;
    let path = directory.join(name);
    // A label may be kept alone.
    if !directory.join("PG_VERSION").is_file() && !path.is_symlink() {
        return None;
    }
    let link = fs::read_link(&path).ok();
    match (path.is_dir(), link) {
        (true, None) => None,
        (true, Some(target)) => Some(format!(
            "{name} in the backup is a link to {}: a server that is restored with it writes there, and \
             removes WAL there; make it a directory, unless no other server uses that one",
            target.display()
        )),
        (false, Some(target)) => Some(format!(
            "{name} in the backup is a link to {}, where no directory is: a server does not start before \
             there is one",
            target.display()
        )),
        (false, None) => Some(format!(
            "the backup has no directory {name}: a server does not start before an empty one is made there"
        )),
    }
}

/// Why a server that is restored from a standby's backup does not open, or late. Before 12 `recovery.conf`
/// would say so, which is not read.
fn late_end(directory: &Path, version: &Version) -> Option<String> {
    if version.recovery.file == "recovery.conf" {
        return None;
    }
    if directory.join("standby.signal").exists() {
        let text = "standby.signal is in the backup: a server that is restored with it waits for a primary \
                    at the end of the archive, and does not open";
        return Some(text.to_owned());
    }
    recovery_delay(directory).map(|delay| {
        format!("the backup's settings hold each commit back: recovery_min_apply_delay = '{delay}'")
    })
}

/// The backup's own settings that end a restore early, as an earlier recovery of its server leaves them
/// behind.
fn early_end(directory: &Path) -> Option<String> {
    let targets = recovery_targets(directory).join(", ");
    (!targets.is_empty()).then(|| {
        format!("the backup's settings end a restore before the end of the WAL: {targets}")
    })
}

/// The segments that `pg_basebackup` has put into the backup itself: what `restore_command` does not bring, a
/// server takes from there (`XLogFileReadAnyTLI` in `src/backend/access/transam/xlogrecovery.c`).
fn own_wal(directory: &Path, backup: &Backup, plan: &Plan) -> Option<String> {
    let bytes = plan.geometry.segment_bytes;
    let begin = backup.start.0 / u64::from(bytes);
    // A `.partial` is not.
    let is_fetched = |key: (u32, u64)| {
        plan.files.get(&key).is_some_and(|files| files.iter().any(Segment::is_asked_for))
    };
    let is_missing = |name: &SegmentName| {
        name.number(bytes).is_some_and(|number| {
            number >= begin
                && plan.lineage.of_file(number, bytes) == name.timeline
                && !is_fetched((name.timeline, number))
        })
    };
    // A link may lead into another server's.
    let name = plan.version().wal_directory;
    let path = Some(directory.join(name)).filter(|path| !path.is_symlink())?;
    let own = fs::read_dir(path).ok()?;
    let names = own.flatten().filter_map(|file| SegmentName::parse(file.file_name().to_str()?));
    let missing: BTreeSet<String> =
        names.filter(is_missing).map(|name| name.to_string()).collect_set();
    let (first, last) = (missing.first()?, missing.last()?);
    let what = if first == last { first.clone() } else { format!("{first} to {last}") };
    Some(format!(
        "the backup's own {name} has {what}, which a server takes from there: give that directory as a \
         further PATH, without --as archive, which would take it for one"
    ))
}
