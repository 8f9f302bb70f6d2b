//! File names in WAL directories and archives: what they say, and no more than that.

use super::history;
use crate::wal::segment::SegmentName;

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
    /// What it promises.
    pub standing: Standing,
    /// SHA-1 of the uncompressed segment, in hexadecimal, as pgBackRest appends it.
    pub sha1: Option<String>,
}

/// What the name of a segment file promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The whole segment: it is what a server asks for.
    Full,
    /// Not yet whole when it was stored (`.partial`).
    Partial,
    /// Nothing: laid aside under a name that no server asks for (`.bak`, a date), or named by
    /// the user under whatever name.
    Aside,
}

/// Suffixes of compressed files, in lower case.
const COMPRESSED: [&str; 14] = [
    "gz", "lz4", "zst", "bz2", "xz", "lzma", "br", "lz", "gzip", "zstd", "bzip2", "bz", "brotli",
    "z",
];

/// Suffixes of encrypted files, which their content will tell.
const ENCRYPTED: [&str; 4] = ["gpg", "asc", "age", "enc"];

/// Suffixes of other files beside a segment: backup histories, lists, checksums.
const BESIDE: [&str; 12] = [
    "backup", "json", "ready", "done", "ok", "md5", "sha1", "sha256", "sum", "info", "txt", "meta",
];

const SHA1_DIGITS: usize = 40;

impl FileName {
    /// Reads a file name without its directory.
    pub fn parse(text: &str) -> FileName {
        if let Some(timeline) = history::timeline_of(without_compression(text)) {
            return FileName::History(timeline);
        }
        match segment(text) {
            Some(file) => FileName::Segment(file),
            None => FileName::Other,
        }
    }
}

fn without_compression(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((rest, suffix)) if is_compression(suffix) => rest,
        _ => text,
    }
}

fn is_compression(suffix: &str) -> bool {
    COMPRESSED.contains(&&*suffix.to_ascii_lowercase())
}

/// `<24 hex>`, then in any order `.partial`, `-<sha1>` and suffixes; anything else after them only
/// resembles a segment's name.
fn segment(text: &str) -> Option<SegmentFile> {
    let name = SegmentName::parse(text.get(..24)?)?;
    let mut file = SegmentFile { name, standing: Standing::Full, sha1: None };
    let all = text.get(24..)?;
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
        match (mark, word) {
            (".", "partial") => file.standing = file.standing.max(Standing::Partial),
            (".", suffix) if is_compression(suffix) || ENCRYPTED.contains(&suffix) => {}
            ("-", digits) if is_sha1(digits) => file.sha1 = Some(digits.to_owned()),
            _ => file.standing = Standing::Aside,
        }
        rest = more;
    }
    Some(file)
}

fn is_sha1(digits: &str) -> bool {
    digits.len() == SHA1_DIGITS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
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
        for suffix in ["", ".gz", ".zst", ".lz4", ".lzma", ".br", ".gpg", ".gzip", ".zstd", ".GZ"] {
            assert_eq!(read(suffix), Some((Full, false)), "{suffix}");
        }
        for suffix in [".partial", ".gz.partial", ".partial.zst"] {
            assert_eq!(read(suffix), Some((Partial, false)), "{suffix}");
        }
        assert_eq!(read(&format!("-{SHA1}")), Some((Full, true)));
        assert_eq!(read(&format!("-{SHA1}.zst")), Some((Full, true)));
        assert_eq!(read(&format!(".partial-{SHA1}.zst")), Some((Partial, true)));
    }

    #[test]
    fn names_that_only_resemble_a_segments_promise_nothing() {
        for suffix in [".bak", ".old", "-2026-11-21", ".20261121", "~", ".gz.old", ".", "-abc", "é"]
        {
            assert_eq!(read(suffix), Some((Standing::Aside, false)), "{suffix}");
        }
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
