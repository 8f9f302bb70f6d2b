//! How a file is packed, held against its name: a `restore_command` fetches a segment by its name, and
//! unpacks it with the tool that the suffix names. What that tool refuses never comes to the server.

use super::codec::Codec;
use super::names::{SegmentFile, Standing, compression_suffix, is_encryption};
use super::probe::{FirstPage, NotWal, Text};
use super::problem::{Fetched, Problem, ProblemKind};
use super::suffixes::{self, Suffix};

/// What zstd's library unpacks; its tool has others beside it.
const ZSTD_ALONE: &[Codec] = &[Codec::Zstd, Codec::Lz4OrZstd];

/// How the suffix of a file is usually spelt: that of `.GZ` and `.gzip` is `gz`.
pub(super) fn usual_suffix(file: &str) -> Option<&'static str> {
    suffixes::of(compression_suffix(file)?).map(|suffix| suffix.usual)
}

/// Whether a file's suffix is that of zstd.
pub(super) fn is_for_zstd(file: &str) -> bool {
    compression_suffix(file).and_then(suffixes::of).is_some_and(Suffix::is_of_zstd)
}

/// Whether a file has to be whole by its name.
fn promises(name: &SegmentFile) -> bool {
    name.standing <= Standing::Unusual
}

/// A name with what it promises, where the file holds WAL that the name's suffixes say it does not: nothing
/// that is known makes a segment of a plain file under `.zip` or `.gpg`. So it is a copy laid aside, as it is
/// under any other suffix (`.bak`).
pub(super) fn with_standing(
    file: &str,
    name: SegmentFile,
    codec: Option<Codec>,
    first_page: &Result<FirstPage, NotWal>,
) -> SegmentFile {
    let last = file.rsplit('.').next().unwrap_or_default();
    let is_unknown = |suffix: &str| {
        suffixes::of(suffix).is_none()
            && !(suffix.eq_ignore_ascii_case("z") && codec == Some(Codec::Gzip))
    };
    let is_strange = is_encryption(last) || compression_suffix(file).is_some_and(is_unknown);
    if promises(&name) && first_page.is_ok() && is_strange {
        return SegmentFile { standing: Standing::Aside, ..name };
    }
    name
}

/// How a history is packed, if the tool of its suffix does not unpack that.
pub(super) fn misnamed_history(file: &str, Text { bytes, codec }: &Text) -> Option<String> {
    let suffix = compression_suffix(file)?;
    let tool = suffixes::of(suffix)?;
    let is_taken = codec.is_none() && bytes.is_empty() && tool.takes_nothing();
    if is_taken { None } else { not_unpacked(*codec, tool, suffix) }
}

/// How a history is packed, if a tool does not unpack that. `suffix`: the tool's, as it is spelt.
pub(super) fn not_unpacked(codec: Option<Codec>, tool: &Suffix, suffix: &str) -> Option<String> {
    let packed = match codec {
        Some(codec) if tool.unpacks.contains(&codec) => return None,
        Some(codec) => format!("text packed by {}", codec.name()),
        None => "text that is not packed".to_owned(),
    };
    Some(format!("{packed}, which a tool for .{suffix} does not unpack"))
}

/// The problem of a file that holds WAL which the tool of its suffix, or pgBackRest, does not unpack.
pub fn misnamed(
    file: &str,
    name: &SegmentFile,
    codec: Option<Codec>,
    first_page: &Result<FirstPage, NotWal>,
) -> Option<Problem> {
    let (suffix, is_pgbackrests) = (compression_suffix(file), name.sha1.is_some());
    // Files that hold something else than WAL are reported elsewhere.
    let is_wal = matches!(first_page, Ok(_) | Err(NotWal::Zeros));
    if !promises(name) || !is_wal || is_unpacked(suffix, codec, is_pgbackrests) {
        return None;
    }
    let expected = match suffix {
        Some(suffix) if is_pgbackrests => format!("what pgBackRest unpacks under .{suffix}"),
        Some(suffix) => format!("what a tool for .{suffix} unpacks"),
        None => "a segment that is not packed, as pgBackRest takes it to be".to_owned(),
    };
    let found = match codec {
        Some(codec) => format!("a segment packed by {}", codec.name()),
        None => "a segment that is not packed".to_owned(),
    };
    let problem = Problem::of_file(ProblemKind::Unreadable, file, expected, found);
    // pgBackRest brings what it takes to be plain as it is.
    Some(Problem { fetched: suffix.is_none().then_some(Fetched::InAnotherSize), ..problem })
}

/// Whether a restore gets the segment out of a file that is packed so. pgBackRest goes by the name as well,
/// and has the library of the suffix in place of its tool: that reads one packing.
fn is_unpacked(suffix: Option<&str>, codec: Option<Codec>, is_pgbackrests: bool) -> bool {
    let Some(suffix) = suffix else { return codec.is_none() || !is_pgbackrests };
    let Some(tool) = suffixes::of(suffix) else { return true };
    let has_library = is_pgbackrests && tool.is_of_zstd();
    let unpacks = if has_library { ZSTD_ALONE } else { tool.unpacks };
    codec.is_some_and(|codec| unpacks.contains(&codec))
}

/// The problem of a tar under a segment's name: a server gets the tar, which is no segment.
pub(crate) fn tar(file: &str, name: &SegmentFile) -> Option<Problem> {
    let problem = || {
        let (expected, found) = ("a WAL segment".to_owned(), NotWal::Tar.to_string());
        let problem = Problem::of_file(ProblemKind::NotWal, file, expected, found);
        Problem { fetched: Some(Fetched::InAnotherSize), ..problem }
    };
    promises(name).then(problem)
}
