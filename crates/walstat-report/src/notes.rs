//! Notes of a report that are not about what was counted, but about how it came to be: each a function, which
//! the commands call with what they know.

use super::model::checked::StateSummary;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use walstat_analyse::totals::RecordTable;
use walstat_format::ordered::CollectOrdered;
use walstat_format::rmgr;
use walstat_format::version::FIRST_CUSTOM_RMGR;
use walstat_read::input::problem::Problem;

/// What a file of settings says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured {
    /// Limits of a check.
    pub limits: bool,
    /// Thresholds of rules.
    pub rules: bool,
}

/// Where limits and thresholds are from; `None` where the file says nothing of them.
pub fn configured(what: Configured, path: &Path) -> Option<String> {
    let what = match what {
        Configured { limits: true, rules: true } => "limits and thresholds of rules",
        Configured { limits: true, rules: false } => "limits",
        Configured { limits: false, rules: true } => "thresholds of rules",
        Configured { limits: false, rules: false } => return None,
    };
    Some(format!("{what} are from {}", path.display()))
}

/// What a round with a state knew and what it read.
pub fn round(state: &StateSummary) -> String {
    format!(
        "segments known from an earlier round: {}, read now: {}, known and read again: {}; verified to {}",
        state.known_segments, state.read_segments, state.rechecked_segments, state.verified_to
    )
}

/// What-if could not write into `folder` what it has no room for in memory.
pub fn no_file_in(folder: &Path, error: &impl Display) -> String {
    format!(
        "{}: no file could be written ({error}), so more memory was used than --memory says",
        folder.display()
    )
}

/// `--sample` was given in vain.
pub fn nothing_to_sample() -> String {
    "--sample: no scenario compresses images, so there is nothing to sample".to_owned()
}

/// A timeline that is not followed would have to be read by itself, and cannot be.
pub fn left_out(timeline: u32) -> String {
    format!("timeline {timeline} is left out: a pipe can be read only once")
}

/// A timeline that is not followed could not be read.
pub fn unread_timeline(timeline: u32, why: &impl Display) -> String {
    format!("timeline {timeline}: {why}")
}

/// A backup's history could not be read.
pub fn unread_label(path: &Path, why: &impl Display) -> String {
    format!("{}: {why}", path.display())
}

/// A target was given as a time without a zone.
pub fn taken_for_utc(asked: &str) -> String {
    format!("{asked} is taken for UTC: --tz, or a zone behind it, says otherwise")
}

/// A `.partial` that is newer than all segments is damaged.
pub(crate) fn not_fetched(problem: &Problem) -> String {
    let Problem { segment, expected, .. } = problem;
    let found = problem.whole_found();
    let at = problem.lsn.map(|lsn| format!(" at {lsn}")).unwrap_or_default();
    format!(
        "{segment}: expected {expected}, found {found}{at}: no server asks for a .partial, so a restore \
         ends before it"
    )
}

/// A segment's SHA-1 does not hold, and nothing else is wrong with it: `archive-get` does not compare it.
pub(crate) fn restored_nevertheless(problem: &Problem) -> String {
    let Problem { segment, expected, found, .. } = problem;
    format!(
        "{segment}: expected {expected}, found {found}: pgBackRest restores it nevertheless, and its records \
         are whole"
    )
}

/// There are records of extensions, at which a server without the extension's library stops (`RmgrNotFound`
/// in `src/backend/access/transam/rmgr.c`).
pub(crate) fn of_extensions(table: &RecordTable) -> Option<String> {
    let ids = table.rows().map(|(record, _)| record.rmgr).filter(|id| *id >= FIRST_CUSTOM_RMGR);
    let ids: BTreeSet<u8> = ids.collect_set();
    let names: Vec<_> = ids.into_iter().map(rmgr::name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "there are records of an extension ({}): a server replays them only with its library in \
             shared_preload_libraries",
            names.join(", ")
        )
    })
}
