//! Partial results: what was found in some files, with the run that each of them gave, to be put
//! together with others elsewhere. Judges nothing: that is done when all are together, as if all had
//! been read at once.

use super::alone::{Counted, Passed};
use super::observe::Observe;
use super::observer::Observer;
use super::progress::Progress;
use super::run::Run;
use super::streamed::{self, Wanted};
use super::timeline_switches::TimelineSwitches;
use crate::input::archive_info::ArchiveInfo;
use crate::input::codec::Codec;
use crate::input::digest::Digest;
use crate::input::discover::{Found, Stream, discover_beside};
use crate::input::error::InputError;
use crate::input::history::Histories;
use crate::input::input_kind::Directories;
use crate::input::names::{FileName, SegmentFile, Standing, file_name};
use crate::input::piece::Piece;
use crate::input::piece::majority;
use crate::input::probe::{FirstPage, NotWal, Probe};
use crate::input::problem::Problem;
use crate::input::source::{KeptBytes, Source};
use crate::input::stream::without_dots;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walstat_format::page::Geometry;
use walstat_format::segment::SEGMENT_BYTES;

/// What was found in some files, and the runs that they gave.
#[derive(Debug, Serialize, Deserialize)]
pub struct Partial<O> {
    /// The paths that were looked at.
    pub paths: Vec<String>,
    pieces: Vec<PieceForm>,
    directories: Directories,
    histories: Histories,
    others: Vec<String>,
    streams: Vec<Stream>,
    backup_histories: Vec<String>,
    archive_infos: Vec<(String, Result<ArchiveInfo, String>)>,
    zstd_links: BTreeSet<String>,
    problems: Vec<Problem>,
    notes: Vec<String>,
    /// By the index of the piece.
    passed: BTreeMap<usize, PassedForm<O>>,
}

/// A segment that was read.
#[derive(Debug, Serialize, Deserialize)]
struct PassedForm<O> {
    run: Run,
    turns: TimelineSwitches,
    counted: O,
    digest: Digest,
}

/// A piece whose bytes are elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct PieceForm {
    path: String,
    /// What its name promises, if it says what it is: that depends on how it was packed, too.
    standing: Option<Standing>,
    compressed: bool,
    /// How long it is, if that is known and it is not compressed.
    raw_bytes: Option<u64>,
    /// How, as far as that is known.
    codec: Option<Codec>,
    directory: usize,
    after: Option<usize>,
    first_page: Result<FirstPage, NotWal>,
    /// Its bytes, kept where the segment size is known only from other pieces.
    kept: Option<KeptBytes>,
}

/// Partial results that do not belong together.
#[derive(Debug, thiserror::Error)]
#[error("WAL of {found}, expected {expected} as in {first}")]
pub struct OtherWal {
    /// The paths of the first one that tells.
    pub first: String,
    /// Whose WAL that is.
    pub expected: String,
    /// Whose WAL this is.
    pub found: String,
}

impl<O: Observe> Partial<O> {
    /// Reads everything that was found, each segment by itself.
    ///
    /// # Errors
    ///
    /// When the system has no memory for it, or no file descriptor.
    pub fn read(
        mut found: Found,
        wanted: &Wanted,
        progress: &Progress,
        prototype: &O,
    ) -> Result<Partial<O>, InputError> {
        let observer = Partial::observer(prototype);
        let mut passed = streamed::pass(&mut found, wanted, progress, &observer).passed;
        passed.extend(streamed::pass_files(&mut found, wanted, progress, &observer));
        progress.fail_if_lacking()?;
        found.fail_if_given_up()?;
        Ok(Partial::of(found, passed))
    }

    /// What lies beside the segments in a directory, where others have read the segments.
    ///
    /// # Errors
    ///
    /// When the directory cannot be listed.
    pub fn beside(directory: &Path) -> Result<Partial<O>, InputError> {
        Ok(Partial::of(discover_beside(directory)?, BTreeMap::new()))
    }

    fn of(found: Found, passed: BTreeMap<usize, Passed>) -> Partial<O> {
        let form = |(piece, passed)| Some((piece, PassedForm::of(passed)?));
        let infos = found.archive_infos.into_iter();
        Partial {
            paths: found.paths.iter().map(|path| text(path)).collect(),
            pieces: found.pieces.into_iter().map(PieceForm::of).collect(),
            directories: found.directories,
            histories: found.histories,
            others: found.others,
            streams: found
                .streams
                .into_iter()
                .map(|it| Stream { path: text(&it.path).into(), ..it })
                .collect(),
            backup_histories: found.backup_histories.iter().map(|path| text(path)).collect(),
            archive_infos: infos.map(|(path, info)| (text(&path), info)).collect(),
            zstd_links: found.zstd_links,
            problems: found.problems,
            notes: found.notes,
            passed: passed.into_iter().filter_map(form).collect(),
        }
    }

    /// The dimension by which parts are counted, and with which they are put together: what is read only
    /// then is merged with what the parts have counted, and both have to be of one kind.
    pub fn observer(prototype: &O) -> Observer {
        Observer::new(prototype.clone())
    }

    /// Whether something is wrong already now.
    pub fn has_problems(&self) -> bool {
        let in_run = |passed: &PassedForm<O>| !passed.run.problems.is_empty();
        !self.problems.is_empty()
            || self.histories.has_problems()
            || self.passed.values().any(in_run)
    }

    /// Whether its parts can belong together; a file can claim anything.
    pub fn is_sound(&self) -> bool {
        let is_before =
            |(index, piece): (usize, &PieceForm)| piece.after.is_none_or(|before| before < index);
        self.pieces.iter().enumerate().all(is_before)
            && self.passed.keys().all(|index| *index < self.pieces.len())
            && self.passed.values().all(|passed| passed.run.is_sound())
    }

    /// Puts partial results together, into what one reading of all files would have found.
    ///
    /// # Errors
    ///
    /// When they are not of one cluster, release and segment size.
    pub fn merge(partials: Vec<Partial<O>>) -> Result<(Found, BTreeMap<usize, Passed>), OtherWal> {
        let joined = Partial::join(partials)?;
        let infos = joined.archive_infos.into_iter();
        let mut found = Found::default();
        found.is_merged = true;
        found.paths = joined.paths.into_iter().map(PathBuf::from).collect();
        found.pieces = joined.pieces.into_iter().map(PieceForm::into_piece).collect();
        found.directories = joined.directories;
        found.histories = joined.histories;
        found.others = joined.others;
        found.streams = joined.streams;
        found.backup_histories = joined.backup_histories.into_iter().map(PathBuf::from).collect();
        found.archive_infos = infos.map(|(path, info)| (PathBuf::from(path), info)).collect();
        found.zstd_links = joined.zstd_links;
        found.problems = joined.problems;
        found.notes = joined.notes;
        let passed = joined.passed.into_iter().map(|(index, form)| (index, form.into_passed()));
        Ok((found, passed.collect()))
    }

    /// Puts partial results into one, which has what they have.
    ///
    /// # Errors
    ///
    /// When they are not of one cluster, release and segment size.
    pub fn join(partials: Vec<Partial<O>>) -> Result<Partial<O>, OtherWal> {
        agree(&partials)?;
        let mut joined = Partial::default();
        partials.into_iter().for_each(|partial| joined.add(partial));
        joined.belong_to_outermost();
        Ok(joined)
    }

    /// Has everything belong to the outermost of the paths that it lies in: whoever reads in parts gives the
    /// archive to one of them, or to the merge.
    fn belong_to_outermost(&mut self) {
        let mut roots: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for (root, path) in self.paths.iter().enumerate() {
            roots.entry(without_dots(Path::new(path))).or_insert(root);
        }
        let outermost = |path: &Path| {
            let path = without_dots(path);
            path.ancestors().filter_map(|above| roots.get(above)).last().copied()
        };
        self.directories.belong_to(outermost);
        for stream in &mut self.streams {
            stream.root = outermost(&stream.path).unwrap_or(stream.root);
        }
    }

    fn first_pages(&self) -> impl Iterator<Item = &Result<FirstPage, NotWal>> {
        self.pieces.iter().map(|piece| &piece.first_page)
    }

    fn add(&mut self, other: Partial<O>) {
        let (pieces, root) = (self.pieces.len(), self.paths.len());
        self.paths.extend(other.paths);
        let directories = self.directories.extend(root, other.directories);
        self.pieces.extend(other.pieces.into_iter().map(|piece| PieceForm {
            directory: directories.get(piece.directory).copied().unwrap_or(usize::MAX),
            after: piece.after.map(|before| before.saturating_add(pieces)),
            ..piece
        }));
        self.histories.extend(other.histories);
        self.others.extend(other.others);
        let streams = other.streams.into_iter();
        self.streams.extend(
            streams.map(|stream| Stream { root: stream.root.saturating_add(root), ..stream }),
        );
        self.backup_histories.extend(other.backup_histories);
        self.archive_infos.extend(other.archive_infos);
        self.zstd_links.extend(other.zstd_links);
        self.problems.extend(other.problems);
        self.notes.extend(other.notes);
        let passed = other.passed.into_iter();
        self.passed.extend(passed.map(|(index, form)| (index.saturating_add(pieces), form)));
    }
}

impl<O> Default for Partial<O> {
    fn default() -> Partial<O> {
        Partial {
            paths: Vec::new(),
            pieces: Vec::new(),
            directories: Directories::default(),
            histories: Histories::default(),
            others: Vec::new(),
            streams: Vec::new(),
            backup_histories: Vec::new(),
            archive_infos: Vec::new(),
            zstd_links: BTreeSet::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            passed: BTreeMap::new(),
        }
    }
}

/// Only paths that are valid text can be written into partial results.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Holds what each partial result is of against what most of their segments are of. One segment alone may be
/// damaged: it is judged with all others, as if they had been read together.
fn agree<O: Observe>(partials: &[Partial<O>]) -> Result<(), OtherWal> {
    let Some((count, expected)) = majority(partials.iter().flat_map(Partial::first_pages)) else {
        return Ok(());
    };
    let text = |geometry: &Geometry| {
        format!("PostgreSQL {}, {}", geometry.version.name, geometry.long_header())
    };
    let is_other = |found: &Geometry| text(found) != text(&expected);
    let mut found = partials.iter().filter_map(|partial| majority(partial.first_pages()));
    let Some((_, other)) =
        found.find(|(votes, found)| is_other(found) && (*votes > 1 || count == 1))
    else {
        return Ok(());
    };
    let is_first = |partial: &&Partial<O>| {
        majority(partial.first_pages()).is_some_and(|(_, found)| !is_other(&found))
    };
    let first = partials.iter().find(is_first).map(|partial| partial.paths.join(", "));
    let (expected, found) = (text(&expected), text(&other));
    Err(OtherWal { first: first.unwrap_or_default(), expected, found })
}

impl<O: Observe> PassedForm<O> {
    fn of(passed: Passed) -> Option<PassedForm<O>> {
        let Passed { mut run, counted, digest } = passed;
        let counted = counted.into_observer()?;
        let turns = std::mem::take(&mut run.observer).into_inner().ok()?;
        Some(PassedForm { run, turns, counted: counted.into_inner().ok()?, digest })
    }

    fn into_passed(self) -> Passed {
        let PassedForm { run, turns, counted, digest } = self;
        let run = Run { observer: Observer::new(turns), ..run };
        let counted = Counted::Plain(Partial::observer(&counted));
        Passed { run, counted, digest }
    }
}

impl PieceForm {
    fn of(piece: Piece) -> PieceForm {
        let (path, codec) = (text(piece.path()), piece.probe.source.codec());
        let kept = match piece.probe.source {
            Source::Kept(_, _, kept) => Arc::into_inner(kept).map(KeptBytes::without_foreign_bytes),
            _ => None,
        };
        PieceForm {
            path,
            standing: piece.name.map(|name| name.standing),
            compressed: piece.probe.compressed,
            raw_bytes: piece.probe.raw_bytes,
            codec,
            directory: piece.directory,
            after: piece.after,
            first_page: piece.probe.first_page,
            kept,
        }
    }

    fn into_piece(self) -> Piece {
        let path = PathBuf::from(self.path);
        let name = match (FileName::parse(&file_name(&path)), self.standing) {
            (FileName::Segment(name), Some(standing)) => Some(SegmentFile { standing, ..name }),
            _ => None,
        };
        let source = match self.kept {
            Some(kept) => {
                // One byte after the longest segment tells that there are too many, as where it was kept.
                let zeros = kept.zeros.min(u64::from(*SEGMENT_BYTES.end()) + 1);
                Source::Kept(path.into(), self.codec, Arc::new(KeptBytes { zeros, ..kept }))
            }
            None => Source::Streamed(path.into(), self.codec),
        };
        let probe = Probe {
            source,
            compressed: self.compressed,
            raw_bytes: self.raw_bytes,
            modified: None,
            stamp: None,
            first_page: self.first_page,
        };
        Piece { name, probe, directory: self.directory, after: self.after }
    }
}

impl From<OtherWal> for InputError {
    fn from(other: OtherWal) -> InputError {
        InputError::Apart { reason: other.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number alone would have them read for years.
    #[test]
    fn no_more_zeros_are_believed_in_than_a_segment_has() {
        let kept = KeptBytes { zeros: u64::MAX, ..KeptBytes::default() };
        let form = PieceForm {
            path: "0000000100000000000000FF".to_owned(),
            standing: Some(Standing::Full),
            compressed: false,
            raw_bytes: None,
            codec: None,
            directory: 0,
            after: None,
            first_page: Err(NotWal::Zeros),
            kept: Some(kept),
        };
        let Source::Kept(_, _, kept) = form.into_piece().probe.source else { panic!("not kept") };
        assert_eq!(kept.zeros, (1 << 30) + 1);
    }
}
