//! How archivers lay out their trees: where pgBackRest, Barman and WAL-G put a segment.

use super::input_kind::is_version;
use super::names::{SHA1_DIGITS, SegmentFile, compression_suffix, file_name};
use super::packing::usual_suffix;
use std::path::{Path, PathBuf};
use walstat_format::segment::GROUP_DIGITS;

/// Who keeps a tree, and how it is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archiver {
    /// `15-1/<16 digits>/<24 digits>-<SHA-1>`, and the suffix of a compression.
    PgBackRest,
    /// `wals/<16 digits>/<24 digits>`, however it is packed.
    Barman,
    /// `wal_005/<24 digits>`, and the suffix of a compression.
    WalG,
}

/// Barman's directory of WAL.
pub(super) const WALS: &str = "wals";

/// WAL-G's.
const WAL_005: &str = "wal_005";

/// Where Barman keeps what it has not put there yet: `get-wal` looks into them next (`get_wal`
/// in its `server.py`).
const RECEIVED: [&str; 2] = ["incoming", "streaming"];

/// What pgBackRest appends to the names of compressed files.
const SUFFIXES: [&str; 5] = ["", ".gz", ".lz4", ".zst", ".bz2"];

impl Archiver {
    /// What it looks for where a server asks for a segment.
    pub(super) fn asks_for(self, segment: &str) -> String {
        let group = segment.get(..GROUP_DIGITS).unwrap_or_default();
        match self {
            Archiver::PgBackRest => format!(
                "{group}/{segment}-SHA1 in a directory that archive.info has, as pgBackRest looks for it"
            ),
            Archiver::Barman => {
                format!("{WALS}/{group}/{segment}, as Barman's get-wal looks for it")
            }
            Archiver::WalG => format!("{WAL_005}/{segment}, as WAL-G's wal-fetch looks for it"),
        }
    }

    /// Beside what it looks for a history.
    pub(super) fn beside(self) -> &'static str {
        match self {
            Archiver::PgBackRest | Archiver::Barman => "the directories of segments",
            Archiver::WalG => "the segments",
        }
    }

    /// Whether it finds a history at `path`: under its plain name; WAL-G packs it as it does segments.
    pub(super) fn finds_history(self, path: &Path, tree: &Path, name: &str) -> bool {
        let file = file_name(path);
        let is_packed = self == Archiver::WalG && usual_suffix(&file).is_some();
        let file =
            if is_packed { file.rsplit_once('.').map_or(&*file, |(stem, _)| stem) } else { &*file };
        path.parent() == Some(tree) && file == name
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Archiver::PgBackRest => "pgBackRest",
            Archiver::Barman => "Barman",
            Archiver::WalG => "WAL-G",
        }
    }
}

/// The directory of a tree, if it shows by a file that lies where its archiver puts it.
pub(super) fn tree_of(path: &Path, name: &SegmentFile) -> Option<(PathBuf, Archiver)> {
    let (file, group) = (file_name(path), path.parent()?);
    if file_name(group) == WAL_005 {
        return Some((group.to_owned(), Archiver::WalG));
    }
    let tree = group.parent()?;
    if file.get(..GROUP_DIGITS) != Some(&*file_name(group)) {
        return None;
    }
    let archiver = if is_pgbackrests(&file, name) {
        Archiver::PgBackRest
    } else if is_barmans(&file, name) && file_name(tree) == WALS {
        Archiver::Barman
    } else {
        return None;
    };
    Some((tree.to_owned(), archiver))
}

/// Whether a file lies where Barman looks after `wals`, its directory of WAL: under the plain name.
pub(super) fn is_received(path: &Path, wals: &Path) -> bool {
    let is_one = |directory: &Path| {
        directory.parent() == wals.parent() && RECEIVED.contains(&&*file_name(directory))
    };
    let is_plain = compression_suffix(&file_name(path)).is_none();
    file_name(wals) == WALS && is_plain && path.parent().is_some_and(is_one)
}

/// Whether Barman has a copy of a segment that it does not hand out, since it has `handed_out` in `wals`.
pub fn is_behind(copy: &Path, handed_out: &Path) -> bool {
    handed_out.ancestors().nth(2).is_some_and(|wals| is_received(copy, wals))
}

fn is_pgbackrests(file: &str, name: &SegmentFile) -> bool {
    let rest = file.strip_prefix(&format!("{}-", name.name));
    let suffix = rest.and_then(|rest| rest.get(SHA1_DIGITS..));
    name.sha1.is_some() && suffix.is_some_and(|suffix| SUFFIXES.contains(&suffix))
}

fn is_barmans(file: &str, name: &SegmentFile) -> bool {
    file == name.name.to_string()
}

/// The stanza's directory of pgBackRest that a file lies in as its segments do.
pub(super) fn stanza_of(path: &Path, name: &SegmentFile) -> Option<PathBuf> {
    let (tree, archiver) = tree_of(path, name)?;
    let is_stanzas = archiver == Archiver::PgBackRest && is_version(&file_name(&tree));
    tree.parent().filter(|_| is_stanzas).map(Path::to_owned)
}
