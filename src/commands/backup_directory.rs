//! What lies in the directory of a base backup and matters to whoever restores it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;
use walstat_format::version::Version;
use walstat_names::server_settings::{recovery_commands, recovery_delay, recovery_targets};
use walstat_read::input::history::{self, Histories};
use walstat_read::input::label::BACKUP_LABEL;
use walstat_read::input::limited;
use walstat_read::input::plan::Plan;
use walstat_read::input::probe::{NotWal, probe};
use walstat_read::input::segment::Segment;
use walstat_read::input::storage::{self, Ahead};
use walstat_read::input::timeline::Lineage;
use walstat_report::restore::Backup;

/// The directory of the backup whose label was given, by itself or with the directory.
pub(super) fn of_label(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let parent = path.parent().filter(|_| path.ends_with(BACKUP_LABEL))?;
    Some(if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() })
}

/// Notes on it.
pub(super) fn notes(directory: &Path, backup: &Backup, plan: &Plan) -> Vec<String> {
    let notes = [
        wal_directory(directory, plan.version()),
        lock_file(directory),
        own_timeline(directory, backup, plan),
        early_end(directory, backup, plan),
        commands(directory, plan.version()),
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

/// A copy of the whole directory has the lock file of the server that went on: `pg_ctl` takes the process in
/// it for that of the directory that it is given.
fn lock_file(directory: &Path) -> Option<String> {
    directory.join("postmaster.pid").exists().then(|| {
        "postmaster.pid is in the backup: take it out of what is restored; pg_ctl stop would stop the server \
         that the backup was taken of"
            .to_owned()
    })
}

/// Where only the WAL in a restored directory is read, and nothing tells its server to recover from an
/// archive, it goes by the label alone: on the timeline of that, and no history (`StartupXLOG` in
/// `src/backend/access/transam/xlog.c`).
fn own_timeline(directory: &Path, backup: &Backup, plan: &Plan) -> Option<String> {
    let own = backup.label?.timeline;
    let (version, followed) = (plan.version(), plan.timeline);
    let wal = directory.join(version.wal_directory);
    let is_own =
        storage::identity(plan.wal_alone.as_deref()?).ok()? == storage::identity(&wal).ok()?;
    let signal =
        if version.recovery.file == "recovery.conf" { "recovery.conf" } else { "recovery.signal" };
    let is_told = [signal, "standby.signal"].iter().any(|it| directory.join(it).exists());
    (is_own && own != followed && !is_told).then(|| {
        format!(
            "{signal} is not in the directory: a server that is started there as it is stays on timeline \
             {own}, to its end, and does not come to timeline {followed}"
        )
    })
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
fn early_end(directory: &Path, backup: &Backup, plan: &Plan) -> Option<String> {
    let own = backup.label.map(|label| label.timeline);
    let is_followed = |timeline: &str| match timeline {
        "current" => own == Some(plan.timeline),
        number => number
            .parse()
            .is_ok_and(|number| [plan.timeline, plan.history_read()].contains(&number)),
    };
    let targets = recovery_targets(directory, is_followed).join(", ");
    (!targets.is_empty()).then(|| {
        format!(
            "the backup's settings end a restore before the end of the WAL, or with FATAL: {targets}; take \
             them out of what is restored, before the start"
        )
    })
}

/// The commands that a restored server runs, as a standby's backup has them. Before 12 `recovery.conf` would
/// say so, which is not read.
fn commands(directory: &Path, version: &Version) -> Option<String> {
    let commands = recovery_commands(directory).join(", ");
    (version.recovery.file != "recovery.conf" && !commands.is_empty()).then(|| {
        format!(
            "the backup's settings have a restored server run {commands}: set each to '' before the \
             start, if it changes the archive, as pg_archivecleanup does, or what others need"
        )
    })
}

/// The segments that `pg_basebackup` has put into the backup itself: what `restore_command` does not bring, a
/// server takes from there.
fn own_wal(directory: &Path, backup: &Backup, plan: &Plan) -> Option<String> {
    // A link may lead into another server's.
    let name = plan.version().wal_directory;
    let path = Some(directory.join(name)).filter(|path| !path.is_symlink())?;
    let own = fs::read_dir(&path).ok()?.flatten();
    let named =
        own.filter_map(|file| Some((SegmentName::parse(file.file_name().to_str()?)?, file.path())));
    // One that was made ready to be written later has zeros, or an old address.
    let is_ready = |(name, path): &(SegmentName, PathBuf)| {
        let begin = name.start(plan.geometry.segment_bytes);
        match probe(path, &mut Ahead::default()).map(|probe| probe.first_page) {
            Ok(Ok(page)) => Some(page.header.address) != begin,
            Ok(Err(reason)) => reason == NotWal::Zeros,
            Err(_) => false,
        }
    };
    let names = named.filter(|file| !is_ready(file)).map(|(name, _)| name);
    let lineage = lineage_in(&path, backup, plan);
    let taken = taken_from(names, backup, plan, &lineage);
    let (first, last) = (taken.first()?, taken.last()?);
    let what = if first == last { first.to_string() } else { format!("{first} to {last}") };
    Some(format!(
        "the backup's own {name} has {what}, which a server takes from there: give that directory as a \
         further PATH, without --as archive, which would take it for one"
    ))
}

/// More than any history has.
const HISTORY_BYTES_MAX: u64 = 1 << 20;

/// The lineage that a server follows. The history of the backup's timeline may be in its own directory alone.
fn lineage_in(wal_directory: &Path, backup: &Backup, plan: &Plan) -> Lineage {
    let lineage = plan.lineage_read();
    let own = backup.label.map(|label| label.timeline).filter(|own| !lineage.has(*own));
    let Some(own) = own else { return lineage.clone() };
    if let Some(known) = plan.lineage_of(own) {
        return known.clone();
    }
    let name = history::name_of(own);
    let mut histories = Histories::default();
    if let Ok(text) = limited::read_plain(&wal_directory.join(&name), HISTORY_BYTES_MAX) {
        histories.add(own, Ok(text), &name);
    }
    Lineage::of(own, &histories)
}

/// Those of a backup's `own` segments that a server reads: of each number it looks for the newest timeline
/// first, in the archive and then in its own directory (`XLogFileReadAnyTLI` in
/// `src/backend/access/transam/xlogrecovery.c`).
fn taken_from(
    own: impl Iterator<Item = SegmentName>,
    backup: &Backup,
    plan: &Plan,
    lineage: &Lineage,
) -> Vec<SegmentName> {
    let bytes = plan.geometry.segment_bytes;
    let own: BTreeMap<(u32, u64), SegmentName> =
        own.filter_map(|name| Some(((name.timeline, name.number(bytes)?), name))).collect_map();
    let numbers: BTreeSet<u64> = own.keys().map(|(_, number)| *number).collect_set();
    // A `.partial` is not fetched.
    let is_fetched =
        |key| plan.files.get(&key).is_some_and(|files| files.iter().any(Segment::is_asked_for));
    let read = |number: u64| {
        let begun = lineage.spans().rev();
        let begun = begun.filter(|(_, span)| span.start.0 / u64::from(bytes) <= number);
        let mut keys = begun.map(|(timeline, _)| (timeline, number));
        let key = keys.find(|key| is_fetched(*key) || own.contains_key(key))?;
        own.get(&key).filter(|_| !is_fetched(key)).copied()
    };
    let begin = backup.start.0 / u64::from(bytes);
    numbers.range(begin..).filter_map(|number| read(*number)).collect()
}
