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
    /// Not yet whole when it was stored.
    pub partial: bool,
    /// SHA-1 of the uncompressed segment, in hexadecimal, as pgBackRest appends it.
    pub sha1: Option<String>,
}

/// Suffixes of compressed files.
const COMPRESSED: [&str; 8] = ["gz", "lz4", "zst", "bz2", "xz", "lzma", "br", "lz"];

/// Suffixes of encrypted files, which their content will tell.
const ENCRYPTED: [&str; 4] = ["gpg", "asc", "age", "enc"];

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
        Some((rest, suffix)) if COMPRESSED.contains(&suffix) => rest,
        _ => text,
    }
}

/// `<24 hex>`, then in any order `.partial`, `-<sha1>` and suffixes.
fn segment(text: &str) -> Option<SegmentFile> {
    let name = SegmentName::parse(text.get(..24)?)?;
    let mut file = SegmentFile { name, partial: false, sha1: None };
    let mut rest = text.get(24..)?;
    while !rest.is_empty() {
        let (mark, tail) = rest.split_at(rest.chars().next()?.len_utf8());
        let length = tail.find(['.', '-']).unwrap_or(tail.len());
        let (word, more) = tail.split_at(length);
        match (mark, word) {
            (".", "partial") => file.partial = true,
            (".", suffix) if COMPRESSED.contains(&suffix) || ENCRYPTED.contains(&suffix) => {}
            ("-", digits) if is_sha1(digits) => file.sha1 = Some(digits.to_owned()),
            _ => return None,
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

    fn read(suffix: &str) -> Option<(bool, bool)> {
        match FileName::parse(&format!("{PLAIN}{suffix}")) {
            FileName::Segment(file) => Some((file.partial, file.sha1.is_some())),
            _ => None,
        }
    }

    #[test]
    fn the_names_of_all_archivers_are_read() {
        for suffix in ["", ".gz", ".zst", ".lz4", ".lzma", ".br", ".gpg"] {
            assert_eq!(read(suffix), Some((false, false)), "{suffix}");
        }
        for suffix in [".partial", ".gz.partial", ".partial.zst"] {
            assert_eq!(read(suffix), Some((true, false)), "{suffix}");
        }
        assert_eq!(read(&format!("-{SHA1}")), Some((false, true)));
        assert_eq!(read(&format!("-{SHA1}.zst")), Some((false, true)));
        assert_eq!(read(&format!(".partial-{SHA1}.zst")), Some((true, true)));
    }

    #[test]
    fn other_files_are_told_apart() {
        for suffix in [".00000028.backup", ".json", ".", "x", "-abc", ".ready", "é"] {
            assert_eq!(read(suffix), None, "{suffix}");
        }
        assert_eq!(FileName::parse("00000002.history"), FileName::History(2));
        assert_eq!(FileName::parse("00000002.history.zst"), FileName::History(2));
        assert_eq!(FileName::parse("xlog.db"), FileName::Other);
    }
}
