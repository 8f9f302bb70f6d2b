//! How archivers lay out their trees: where pgBackRest and Barman put a segment.

use super::input_kind::is_version;
use super::names::{SHA1_DIGITS, SegmentFile, file_name};
use std::path::{Path, PathBuf};
use walstat_format::segment::GROUP_DIGITS;

/// Who keeps a tree, and how it is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archiver {
    /// `15-1/<16 digits>/<24 digits>-<SHA-1>`, and the suffix of a compression.
    PgBackRest,
    /// `wals/<16 digits>/<24 digits>`, however it is packed.
    Barman,
}

/// Barman's directory of WAL.
pub(super) const WALS: &str = "wals";

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
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Archiver::PgBackRest => "pgBackRest",
            Archiver::Barman => "Barman",
        }
    }
}

/// The directory of a tree, if it shows by a file that lies where its archiver puts it.
pub(super) fn tree_of(path: &Path, name: &SegmentFile) -> Option<(PathBuf, Archiver)> {
    let (file, group) = (file_name(path), path.parent()?);
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
