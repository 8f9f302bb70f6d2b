//! File names in WAL directories and archives, and what follows from a name alone.

use super::input_kind::InputKind;
use super::suffixes::{is_rare, is_usual};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use walstat_format::segment::{NAME_DIGITS, SegmentName};

/// What a file name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileName {
    /// A segment, whole or partial, plain or compressed.
    Segment(SegmentFile),
    /// The history of a timeline.
    History(u32),
    /// Anything else: backup history files, lists, temporary files.
    Other,
}

/// What the name of a segment file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Timeline and number.
    pub name: SegmentName,
    /// How much of the segment a file of this name has to hold.
    pub standing: Standing,
    /// SHA-1 of the uncompressed segment, as the name has it: pgBackRest appends small hexadecimal
    /// digits, finds large ones too, and takes both for two files.
    pub sha1: Option<Arc<str>>,
}

/// How much of a segment a file of such a name has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Standing {
    /// All of it: it is the name that a server asks for, compressed or not.
    Full,
    /// All of it, unless the same segment is there under a usual suffix: this one is rare (`.gzip`).
    /// Where other files have usual ones, no `restore_command` would ask for it, so it stands in for
    /// none of them.
    Unusual,
    /// Not yet whole when it was stored (`.partial`).
    Partial,
    /// Nothing: a copy under a name that no server asks for (`.bak`, a date), or a file of any name
    /// that the user has given.
    Aside,
}

impl Standing {
    /// The standing of a file: without a segment's name it is [`Standing::Aside`], unless the user says
    /// that it comes from an archive. `usual`: whether other files have usual suffixes.
    pub fn of(name: Option<&SegmentFile>, taken_for: Option<InputKind>, usual: bool) -> Standing {
        match name {
            Some(SegmentFile { standing: Standing::Unusual, .. }) if usual => Standing::Unusual,
            Some(SegmentFile { standing: Standing::Unusual, .. }) => Standing::Full,
            Some(name) => name.standing,
            None if taken_for == Some(InputKind::Archive) => Standing::Full,
            None => Standing::Aside,
        }
    }
}

/// Suffixes of encrypted files; which encryption it is, the content tells.
const ENCRYPTED: [&str; 4] = ["gpg", "asc", "age", "enc"];

/// Suffixes of other files beside a segment: backup histories, lists, checksums.
const BESIDE: [&str; 12] = [
    "backup", "json", "ready", "done", "ok", "md5", "sha1", "sha256", "sum", "info", "txt", "meta",
];

/// Barman's list of the segments that it has.
pub(super) const XLOG_DB: &str = "xlog.db";

/// Files that Barman and pgBackRest keep beside segments.
const LISTS: [&str; 3] = [XLOG_DB, "archive.info", "archive.info.copy"];

pub(super) const SHA1_DIGITS: usize = 40;

impl FileName {
    /// Reads a file name without its directory.
    pub fn parse(text: &str) -> FileName {
        if let Some(timeline) = history_timeline(text) {
            return FileName::History(timeline);
        }
        match segment(text) {
            Some(file) => FileName::Segment(file),
            None => FileName::Other,
        }
    }
}

/// The timeline that a history file is about, from its name, compressed or not. A server accepts only capital
/// letters (`IsTLHistoryFileName` in `src/include/access/xlog_internal.h`).
pub fn history_timeline(name: &str) -> Option<u32> {
    let digits = without_compression(name).strip_suffix(".history")?;
    let plain = digits.len() == 8 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
    plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// The suffix of a compression that a file's name ends in.
pub fn compression_suffix(text: &str) -> Option<&str> {
    let (_, suffix) = text.rsplit_once('.')?;
    compression(suffix).map(|_| suffix)
}

/// Whether a suffix is that of encrypted files.
pub(crate) fn is_encryption(suffix: &str) -> bool {
    ENCRYPTED.contains(&suffix)
}

/// The segment in which a base backup begins, by the name of its history: `SEGMENT.OFFSET.backup`
/// (`BackupHistoryFileName` in `src/include/access/xlog_internal.h`).
pub fn backup_start(text: &str) -> Option<SegmentName> {
    let rest = without_compression(text).strip_suffix(".backup")?;
    let (name, offset) = rest.split_once('.')?;
    let is_offset = offset.len() == 8 && offset.bytes().all(|b| b.is_ascii_hexdigit());
    is_offset.then(|| SegmentName::parse(name)).flatten()
}

/// Whether a file has a name that archivers give to other files beside segments.
pub(crate) fn lies_beside_segments(text: &str) -> bool {
    let suffix = without_compression(text).rsplit_once('.').map(|(_, suffix)| suffix);
    LISTS.contains(&text) || suffix.is_some_and(|suffix| BESIDE.contains(&suffix))
}

fn without_compression(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((rest, suffix)) if compression(suffix).is_some() => rest,
        _ => text,
    }
}

/// The standing of a name with this suffix, if it is that of a compressed file.
fn compression(suffix: &str) -> Option<Standing> {
    match suffix {
        usual if is_usual(usual) => Some(Standing::Full),
        rare if is_rare(rare) => Some(Standing::Unusual),
        _ => None,
    }
}

/// `<24 hex>`, then in any order `.partial`, `-<sha1>` and suffixes; anything else after them only
/// resembles a segment's name.
fn segment(text: &str) -> Option<SegmentFile> {
    let digits = text.get(..NAME_DIGITS)?;
    let capital = digits.to_ascii_uppercase();
    let name = SegmentName::parse(&capital)?;
    // A server asks for capital digits.
    let standing = if digits == capital { Standing::Full } else { Standing::Aside };
    let mut file = SegmentFile { name, standing, sha1: None };
    let all = text.get(NAME_DIGITS..)?;
    if all.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let beside = without_compression(all).rsplit('.').next();
    if all.starts_with('.') && beside.is_some_and(|suffix| BESIDE.contains(&suffix)) {
        return None;
    }
    let mut rest = all;
    while !rest.is_empty() {
        let (mark, tail) = rest.split_at(rest.chars().next()?.len_utf8());
        let length = tail.find(['.', '-']).unwrap_or(tail.len());
        let (word, more) = tail.split_at(length);
        let standing = match (mark, word) {
            (".", "partial") => Standing::Partial,
            (".", suffix) if is_encryption(suffix) => Standing::Full,
            (".", suffix) => compression(suffix).unwrap_or(Standing::Aside),
            ("-", digits) if is_sha1(digits) => {
                file.sha1 = Some(digits.into());
                Standing::Full
            }
            _ => Standing::Aside,
        };
        file.standing = file.standing.max(standing);
        rest = more;
    }
    Some(file)
}

/// pgBackRest writes small letters and finds capital ones too (`[0-f]` in its `WAL_SEGMENT_REGEXP`).
fn is_sha1(digits: &str) -> bool {
    digits.len() == SHA1_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether a file has a name that pgBackRest gives to segments: it is unpacked as pgBackRest does.
pub(crate) fn is_pgbackrests(file: &str) -> bool {
    segment(file).is_some_and(|file| file.sha1.is_some())
}

/// The last part of a path, to be shown.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The first of these files, and how many more there are.
pub(crate) fn first_of(files: &[String]) -> Option<String> {
    match files {
        [] => None,
        [one] => Some(one.clone()),
        [first, more @ ..] => Some(format!("{first} and {} more", more.len())),
    }
}

/// Suffixes of a tar, in lower case; `.tar` may have another one after it.
const TARS: [&str; 7] = ["tar", "tgz", "tbz", "tbz2", "txz", "tzst", "tlz4"];

/// `pg_wal.tar`, `base.tar.gz`, `wal.tgz`.
pub(crate) fn is_called_like_a_tar(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut parts = name.rsplitn(3, '.');
    let (last, before, rest) = (parts.next(), parts.next(), parts.next());
    let is_tar = last.is_some_and(|suffix| TARS.contains(&suffix)) && before.is_some();
    is_tar || before == Some("tar") && rest.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "00000001000000000000000A";
    const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

    fn read(suffix: &str) -> Option<(Standing, bool)> {
        match FileName::parse(&format!("{PLAIN}{suffix}")) {
            FileName::Segment(file) => Some((file.standing, file.sha1.is_some())),
            _ => None,
        }
    }

    #[test]
    fn the_names_of_all_archivers_are_read() {
        use Standing::{Full, Partial};
        for suffix in ["", ".gz", ".zst", ".lz4", ".lzma", ".br", ".gpg"] {
            assert_eq!(read(suffix), Some((Full, false)), "{suffix}");
        }
        for suffix in [".gzip", ".zstd", ".GZ", ".Zst"] {
            assert_eq!(read(suffix), Some((Standing::Unusual, false)), "{suffix}");
        }
        for suffix in [".partial", ".gz.partial", ".partial.zst"] {
            assert_eq!(read(suffix), Some((Partial, false)), "{suffix}");
        }
        assert_eq!(read(&format!("-{SHA1}")), Some((Full, true)));
        assert_eq!(read(&format!("-{SHA1}.zst")), Some((Full, true)));
        assert_eq!(read(&format!(".partial-{SHA1}.zst")), Some((Partial, true)));
    }

    #[test]
    fn names_tell_the_timeline() {
        assert_eq!(history_timeline("0000000A.history"), Some(10));
        assert_eq!(history_timeline("0000000A.history.gz"), Some(10));
        assert_eq!(history_timeline("A.history"), None);
        assert_eq!(history_timeline("0000000a.history"), None);
        assert_eq!(history_timeline("00000001.backup"), None);
    }

    #[test]
    fn names_that_only_resemble_a_segments_are_aside() {
        for suffix in [".bak", ".old", "-2026-11-21", ".20261121", "~", ".gz.old", ".", "-abc", "é"]
        {
            assert_eq!(read(suffix), Some((Standing::Aside, false)), "{suffix}");
        }
    }

    #[test]
    fn no_server_asks_for_small_digits() {
        let standing = |text: &str| match FileName::parse(text) {
            FileName::Segment(file) => Some(file.standing),
            _ => None,
        };
        assert_eq!(standing("00000001000000000000000a"), Some(Standing::Aside));
        assert_eq!(standing("00000001000000000000000a.gz"), Some(Standing::Aside));
        assert_eq!(standing("00000001000000000000000g"), None);
    }

    #[test]
    fn other_files_are_told_apart() {
        for suffix in [".00000028.backup", ".00000028.backup.gz", ".json", "x", "0A", ".ready"] {
            assert_eq!(read(suffix), None, "{suffix}");
        }
        assert_eq!(FileName::parse("00000002.history"), FileName::History(2));
        assert_eq!(FileName::parse("00000002.history.zst"), FileName::History(2));
        assert_eq!(FileName::parse("xlog.db"), FileName::Other);
    }
}
