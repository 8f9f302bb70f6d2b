//! Partial results: what was found in some files, with the run that each of them gave, to be put
//! together with others elsewhere. Judges nothing: that is done when all are together, as if all had
//! been read at once.

use super::pages::Progress;
use super::record::{Observe, Select};
use super::streamed::{self, Passed, Wanted};
use crate::input::discover::{Found, file_name};
use crate::input::error::InputError;
use crate::input::history::Histories;
use crate::input::names::FileName;
use crate::input::piece::Piece;
use crate::input::placing::vote;
use crate::input::probe::{FirstPage, NotWal, Probe};
use crate::input::problem::Problem;
use crate::input::source::{Kept, Source};
use crate::input::taken_for::Directories;
use crate::wal::page::Geometry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What was found in some files, and the runs that they gave.
#[derive(Debug, Serialize, Deserialize)]
pub struct Partial<O> {
    /// The paths that were looked at.
    pub paths: Vec<String>,
    pieces: Vec<PieceForm>,
    directories: Directories,
    histories: Histories,
    data_directory: Option<String>,
    others: Vec<String>,
    problems: Vec<Problem>,
    notes: Vec<String>,
    /// By the index of the piece.
    passed: BTreeMap<usize, Passed<O>>,
}

/// A piece whose bytes are elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct PieceForm {
    path: String,
    /// Whether its name says what it is.
    named: bool,
    compressed: bool,
    directory: usize,
    after: Option<usize>,
    first_page: Result<FirstPage, NotWal>,
    /// Its bytes, where only the others tell how to read them.
    kept: Option<Kept>,
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
    pub fn read<S: Select + Clone>(
        mut found: Found,
        wanted: &Wanted<S>,
        progress: &Progress,
        prototype: &O,
    ) -> Partial<O> {
        let mut passed = streamed::pass(&mut found, wanted, progress, prototype);
        passed.extend(streamed::pass_files(&mut found, wanted, progress, prototype));
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        Partial {
            paths: found.paths.iter().map(text).collect(),
            pieces: found.pieces.into_iter().map(PieceForm::of).collect(),
            directories: found.directories,
            histories: found.histories,
            data_directory: found.data_directory.as_ref().map(text),
            others: found.others,
            problems: found.problems,
            notes: found.notes,
            passed,
        }
    }

    /// Whether something is wrong already now.
    pub fn has_problems(&self) -> bool {
        let in_run = |passed: &Passed<O>| !passed.run.problems.is_empty();
        !self.problems.is_empty()
            || !self.histories.problems.is_empty()
            || self.passed.values().any(in_run)
    }

    /// Puts partial results together, into what one reading of all files would have found.
    ///
    /// # Errors
    ///
    /// When they are not of one cluster, release and segment size.
    pub fn merge(
        partials: Vec<Partial<O>>,
    ) -> Result<(Found, BTreeMap<usize, Passed<O>>), OtherWal> {
        let (mut found, mut passed) = (Found::default(), BTreeMap::new());
        let mut first: Option<(String, Geometry)> = None;
        for partial in partials {
            let (pieces, root) = (found.pieces.len(), found.paths.len());
            let paths = partial.paths.join(", ");
            let directories = found.directories.extend(root, partial.directories);
            let own: Vec<Piece> = partial.pieces.into_iter().map(PieceForm::into_piece).collect();
            if let Some(geometry) = vote(&own) {
                agree(&mut first, paths, geometry)?;
            }
            found.pieces.extend(own.into_iter().map(|piece| Piece {
                directory: piece.directory + directories,
                after: piece.after.map(|before| before + pieces),
                ..piece
            }));
            found.paths.extend(partial.paths.into_iter().map(PathBuf::from));
            found.histories.extend(partial.histories);
            let data_directory = partial.data_directory.map(PathBuf::from);
            found.data_directory = found.data_directory.or(data_directory);
            found.others.extend(partial.others);
            found.problems.extend(partial.problems);
            found.notes.extend(partial.notes);
            passed.extend(partial.passed.into_iter().map(|(index, run)| (index + pieces, run)));
        }
        Ok((found, passed))
    }
}

/// Holds what one partial result is of against the first that tells.
fn agree(
    first: &mut Option<(String, Geometry)>,
    paths: String,
    geometry: Geometry,
) -> Result<(), OtherWal> {
    let text = |geometry: &Geometry| {
        format!("PostgreSQL {}, {}", geometry.version.name, geometry.long_header())
    };
    let (before, expected) = first.get_or_insert((paths, geometry));
    let (expected, found) = (text(expected), text(&geometry));
    match expected == found {
        true => Ok(()),
        false => Err(OtherWal { first: before.clone(), expected, found }),
    }
}

impl PieceForm {
    fn of(piece: Piece) -> PieceForm {
        let path = piece.path().to_string_lossy().into_owned();
        let kept = match piece.probe.source {
            Source::Kept(_, kept) => Arc::into_inner(kept),
            _ => None,
        };
        PieceForm {
            path,
            named: piece.name.is_some(),
            compressed: piece.probe.compressed,
            directory: piece.directory,
            after: piece.after,
            first_page: piece.probe.first_page,
            kept,
        }
    }

    fn into_piece(self) -> Piece {
        let path = PathBuf::from(self.path);
        let name = match FileName::parse(&file_name(&path)) {
            FileName::Segment(name) if self.named => Some(name),
            _ => None,
        };
        let source = match self.kept {
            Some(kept) => Source::Kept(path, Arc::new(kept)),
            None => Source::Streamed(path),
        };
        let probe = Probe {
            source,
            compressed: self.compressed,
            raw_bytes: None,
            modified: None,
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
