//! Names of copies of a segment: what people call one that they keep, and tools one that is under way.

use super::names::{compression_suffix, is_encryption};
use walstat_format::segment::NAME_DIGITS;

/// What a file is for that has a segment's name and an unusual suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// A tool is writing it, or was interrupted.
    UnderWay,
    /// Somebody keeps it, or it is packed or encrypted.
    Kept,
    /// Any tool may name a copy under way so, once.
    Unknown,
}

/// Words for files that are being written, in small letters; digits may follow.
const UNDER_WAY: [&str; 14] = [
    "tmp",
    "temp",
    "part",
    "partial",
    "filepart",
    "gstmp",
    "crdownload",
    "download",
    "incomplete",
    "inprogress",
    "uploading",
    "copying",
    "writing",
    "unfinished",
];

/// Words for files that are kept, likewise.
const KEPT: [&str; 17] = [
    "bad",
    "bak",
    "broken",
    "copy",
    "corrupt",
    "corrupted",
    "damaged",
    "dup",
    "failed",
    "keep",
    "moved",
    "old",
    "orig",
    "original",
    "prev",
    "save",
    "saved",
];

/// Names of directories in which a file is written before it is renamed into the archive, beside those of
/// archivers.
const STAGING: [&str; 4] = ["tmp", "temp", "part", "partial"];

/// What the suffix of a file with a segment's name says. A name in small digits alone is kept.
pub(crate) fn copied(file: &str) -> Copied {
    let suffix = suffix(file).to_ascii_lowercase();
    let words =
        || suffix.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    let is_one_of = |list: &[&str], word: &str| {
        list.contains(&word.trim_end_matches(|letter: char| letter.is_ascii_digit()))
    };
    // A short number counts copies, as `logrotate` does; a long one is that of a process, or a date.
    let is_number = |word: &str| {
        let is_date = word.len() == 8 && (word.starts_with("19") || word.starts_with("20"));
        word.bytes().all(|byte| byte.is_ascii_digit()) && (word.len() <= 2 || is_date)
    };
    let is_kept = |word: &str| is_one_of(&KEPT, word) || is_number(word) || is_encryption(word);
    let is_packing = |word: &str| compression_suffix(&format!(".{word}")).is_some();
    match () {
        () if words().any(|word| is_one_of(&UNDER_WAY, word)) => Copied::UnderWay,
        () if suffix.contains('~') || words().any(is_kept) || words().all(is_packing) => {
            Copied::Kept
        }
        () => Copied::Unknown,
    }
}

/// What stands behind a segment's name.
pub(crate) fn suffix(file: &str) -> &str {
    file.get(NAME_DIGITS..).unwrap_or_default()
}

/// Whether files are written in a directory of this name before they are renamed into the archive.
pub(crate) fn is_staging(directory: &str) -> bool {
    STAGING.contains(&directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_say_what_a_copy_is_for() {
        let of = |suffix: &str| copied(&format!("000000010000000000000009{suffix}"));
        for suffix in [
            ".tmp",
            ".TMP",
            ".tmp47",
            ".tmp.2011",
            ".old.tmp",
            "_.gstmp",
            ".8f3c.partial",
            ".tmp.gz",
        ] {
            assert_eq!(of(suffix), Copied::UnderWay, "{suffix}");
        }
        for suffix in [
            "",
            ".bak",
            ".bak2",
            ".old~",
            ".~1~",
            ".1",
            ".2026-11-26",
            ".20261126",
            ".zip",
            ".gz.enc",
        ] {
            assert_eq!(of(suffix), Copied::Kept, "{suffix}");
        }
        for suffix in [".6Ab2C3d4", ".12345", ".new", ".wal"] {
            assert_eq!(of(suffix), Copied::Unknown, "{suffix}");
        }
    }
}
