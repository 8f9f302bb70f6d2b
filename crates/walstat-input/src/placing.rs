//! Decides which cluster's WAL is read, and which file is which segment; files and streams are treated
//! alike. Looks at names and first pages only, not at records.

use super::discover::Found;
use super::error::InputError;
use super::input_kind::InputKind;
use super::names::{
    SegmentFile, Standing, compression_suffix, file_name, first_of, is_called_like_a_tar,
    lies_beside_segments,
};
use super::neighbours::{self, Lost};
use super::piece::{Identity, Piece, identity};
use super::probe::{FirstPage, NotWal};
use super::problem::{Fetched, Problem, ProblemKind};
use super::reach::{self, Reach, in_its_directory};
use super::repository::{Repositories, stanzas_without_list};
use super::salvage::{self, Salvaged};
use super::segment::Segment;
use super::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::segment::number_of;
use walstat_format::version::Magic;

/// Timeline and number of a segment.
pub type Key = (u32, u64);

/// All files, by the segment that they are.
#[derive(Debug)]
pub struct Placed {
    /// Release, cluster and sizes that most first pages agree on.
    pub geometry: Geometry,
    /// All files of each segment, in the order in which they are preferred.
    pub files: BTreeMap<Key, Vec<Segment>>,
    /// Names of files that are no segments.
    pub others: Vec<String>,
    /// What is wrong with the files themselves.
    pub problems: Vec<Problem>,
    /// Problems of files older than all others. They count only where a backup is to be restored that needs
    /// those files.
    pub laid_away: Vec<Problem>,
    /// Notes about files that are not read.
    pub notes: Vec<String>,
    /// Where the WAL begins, if a file begins in the middle of its segment.
    pub begin: Option<Lsn>,
}

/// The note where no file has an intact first page.
const SALVAGED: &str = "no segment has an intact first page: sizes are taken from later pages and from file \
                        lengths, and the cluster may be unknown";

/// Decides which segment each file is.
pub fn place(found: &Found) -> Result<Placed, InputError> {
    let voted = found.geometry();
    let salvaged = if voted.is_none() { salvage::look(&found.pieces) } else { None };
    let told = voted.or(salvaged.as_ref().map(|salvaged| salvaged.geometry));
    let geometry = told.ok_or_else(|| nothing(found))?;
    one_archive(found)?;
    let mut placed = Placed::new(found, geometry, salvaged.as_ref());
    let is_full =
        |piece: &Piece| piece.name.as_ref().is_some_and(|name| name.standing == Standing::Full);
    let usual = found.looked_into().any(is_full);
    let mut refused = Vec::new();
    let mut places: Vec<Option<Key>> = Vec::with_capacity(found.pieces.len());
    for (index, piece) in found.pieces.iter().enumerate() {
        if found.passed_over_read.contains(&piece.directory) {
            places.push(None);
            continue;
        }
        let before = piece.after.and_then(|before| places.get(before).copied().flatten());
        let found_there = salvaged.as_ref().filter(|salvaged| salvaged.piece == index);
        let place = match found_there {
            Some(salvaged) => Ok(salvaged.key),
            None => place_of(piece, before, &geometry),
        };
        places.push(place.as_ref().ok().copied());
        match place {
            Ok(key) => {
                let taken_for = found.taken_for(piece.directory);
                let standing = Standing::of(piece.name.as_ref(), found.taken_for, usual);
                let mut segment = Segment { standing, ..segment(index, piece, key, taken_for) };
                if let Some((source, problem)) = found_there.and_then(|found| found.moved.clone()) {
                    segment.source = source;
                    placed.problems.push(problem);
                }
                // Mostly it is the only one: no room is kept for more.
                let files = placed.files.entry(key).or_insert_with(|| Vec::with_capacity(1));
                files.push(segment);
            }
            Err(problem) => refused.push((index, problem)),
        }
    }
    let unfinished = reach::unfinished(found, &places, &geometry);
    placed.leave_out(&unfinished, found, &mut places);
    refused.retain(|(index, problem)| {
        problem.kind != ProblemKind::NotWal || !unfinished.contains(index)
    });
    placed.refuse_all(refused, found);
    placed.compare(found, &places);
    for files in placed.files.values_mut() {
        lay_copies_aside(files);
        // An uncompressed file is read faster.
        files
            .sort_by_cached_key(|file| (file.standing, file.compressed, file.source.shared_path()));
    }
    Ok(placed)
}

/// A copy under a rare suffix promises nothing beside one under a usual one.
fn lay_copies_aside(files: &mut [Segment]) {
    if files.iter().any(Segment::is_asked_for) {
        let rare = files.iter_mut().filter(|file| file.standing == Standing::Unusual);
        rare.for_each(|file| file.standing = Standing::Aside);
    }
}

/// Why there is nothing to read: the first reason that a file gives.
fn nothing(found: &Found) -> InputError {
    let reason = |piece: &Piece| {
        let reason = piece.probe.first_page.clone().err()?;
        Some(InputError::NotWal { path: piece.path().to_owned(), reason })
    };
    let path = || found.paths.first().cloned().unwrap_or_else(|| PathBuf::from("."));
    let first = found.pieces.iter().find_map(reason);
    let unreadable = || {
        let problem = found.problems.first()?;
        let reason = NotWal::Io(problem.found.clone());
        Some(InputError::NotWal { path: PathBuf::from(&problem.segment), reason })
    };
    first.or_else(unreadable).unwrap_or_else(|| match found.streams.first() {
        Some(stream) => {
            InputError::NoWal { path: stream.path.clone(), beside: wal_beside(&stream.path) }
        }
        None => {
            let is_too_deep = found.is_too_deep;
            InputError::NoSegments { path: path(), is_too_deep, below: None }
        }
    })
}

/// The tar with the WAL, beside one of a base backup without.
fn wal_beside(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    // The parent of a bare file name is empty: the current directory.
    let looked_into = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let names = storage::entries(looked_into)
        .ok()?
        .into_iter()
        .filter_map(|(name, _)| name.into_string().ok());
    let tars = names.filter(|name| name.starts_with("pg_wal.tar") && *name != file_name(path));
    tars.min().map(|tar| parent.join(tar))
}

/// Several archives below one path, with the WAL of different clusters: their sums would mean nothing.
/// A segment of another cluster among others, or in a folder below them, is a problem, not another archive.
fn one_archive(found: &Found) -> Result<(), InputError> {
    let mut archives: BTreeMap<(usize, &Path), BTreeSet<Identity>> = BTreeMap::new();
    let mut folders: BTreeSet<&Path> = BTreeSet::new();
    for piece in found.looked_into() {
        let Ok(page) = &piece.probe.first_page else { continue };
        let archive = found.directories.archive_of(piece.directory).or_else(|| {
            let promises = piece.name.as_ref().is_some_and(|it| it.standing <= Standing::Unusual);
            let folder = found.directories.folder_of(piece.directory).filter(|_| promises)?;
            folders.insert(folder.1);
            Some(folder)
        });
        if let Some(archive) = archive {
            archives.entry(archive).or_default().insert(identity(page));
        }
    }
    let is_below = |path: &Path, other: &Path| path.starts_with(other) && folders.contains(path);
    let mut seen: Vec<(&(usize, &Path), &BTreeSet<Identity>)> = Vec::new();
    for archive in &archives {
        let ((root, path), identities) = archive;
        let apart = |((other, beside), theirs): &&(&(usize, &Path), &BTreeSet<Identity>)| {
            other == root
                && identities.is_disjoint(theirs)
                && !is_below(path, beside)
                && !is_below(beside, path)
        };
        if let Some(((_, first), _)) = seen.iter().find(apart) {
            return Err(InputError::Several {
                path: found.paths.get(*root).cloned().unwrap_or_default(),
                first: first.to_path_buf(),
                second: path.to_path_buf(),
            });
        }
        seen.push(archive);
    }
    Ok(())
}

/// Timeline and number of a piece; a problem if it belongs to something else. `before`: those of
/// the piece before it in a stream without names.
fn place_of(piece: &Piece, before: Option<Key>, geometry: &Geometry) -> Result<Key, Problem> {
    let file = piece.file();
    let first = piece.probe.first_page.as_ref();
    if let Ok(page) = first {
        belongs(page, geometry, &file)?;
    }
    let not_wal = |reason: &NotWal| {
        let found = match reason {
            NotWal::NoFile(kind) => format!("a {kind}"),
            _ => reason.to_string(),
        };
        let problem = Problem::of_file(ProblemKind::NotWal, &file, "a WAL segment".into(), found);
        let is_plain = compression_suffix(&file).is_none() && !piece.probe.compressed;
        let bytes = piece.probe.raw_bytes.filter(|_| is_plain);
        let fetched = match (reason, bytes) {
            (NotWal::NoFile(_), _) => Some(Fetched::NotAtAll),
            (_, Some(bytes)) if bytes != u64::from(geometry.segment_bytes) => {
                Some(Fetched::InAnotherSize)
            }
            _ => None,
        };
        Problem { fetched, ..problem }
    };
    let standing = piece.name.as_ref().map(|name| name.standing);
    let name = piece.name.as_ref().map(|name| name.name);
    match (name, first) {
        (_, Err(reason)) if reason.is_final() => Err(not_wal(reason)),
        (Some(_), Err(reason)) if standing == Some(Standing::Aside) => Err(not_wal(reason)),
        (Some(name), _) => match name.number(geometry.segment_bytes) {
            Some(number) => Ok((name.timeline, number)),
            None => {
                let bytes = geometry.segment_bytes;
                let expected = format!("a name that is possible with segments of {bytes} bytes");
                Err(Problem::of_file(ProblemKind::SegmentName, &file, expected, file.clone()))
            }
        },
        (None, Ok(page)) => match number_of(page.header.address, geometry.segment_bytes) {
            Some(number) => Ok((page.header.timeline, number)),
            None => {
                let expected = "an address with room for a segment after it".to_owned();
                let found = format!("page address {}", page.header.address);
                Err(Problem::of_file(ProblemKind::PageAddress, &file, expected, found))
            }
        },
        (None, Err(reason)) => {
            let next = before.map(|(timeline, number)| (timeline, number + 1));
            next.ok_or_else(|| not_wal(reason))
        }
    }
}

/// Whether a first page is of this release, cluster and sizes; a problem if not.
fn belongs(page: &FirstPage, geometry: &Geometry, file: &str) -> Result<(), Problem> {
    let version = geometry.version;
    if page.header.magic != version.magic {
        let release = match Magic::of(page.header.magic) {
            Magic::Known(version) => version.name,
            _ => "unknown",
        };
        let expected = format!("WAL of PostgreSQL {}", version.name);
        let found = format!("WAL of PostgreSQL {release}");
        return Err(Problem::of_file(ProblemKind::OtherRelease, file, expected, found));
    }
    let expected = geometry.long_header();
    if page.long == expected {
        return Ok(());
    }
    let kind = if page.long.system_identifier == expected.system_identifier {
        ProblemKind::SegmentSize
    } else {
        ProblemKind::OtherCluster
    };
    Err(Problem::of_file(kind, file, expected.to_string(), page.long.to_string()))
}

fn segment(index: usize, piece: &Piece, (timeline, number): Key, taken_for: InputKind) -> Segment {
    let probe = &piece.probe;
    Segment {
        number,
        timeline,
        raw_bytes: probe.raw_bytes,
        modified: probe.modified,
        sha1: piece.name.as_ref().and_then(|name| name.sha1.clone()),
        named: piece.name.is_some(),
        standing: Standing::Aside,
        taken_for,
        first_page: probe.first_page.clone(),
        compressed: probe.compressed,
        source: probe.source.clone(),
        piece: index,
    }
}

impl Placed {
    /// What was found, before any file has its place.
    fn new(found: &Found, geometry: Geometry, salvaged: Option<&Salvaged>) -> Placed {
        let salvage = salvaged.map(|_| SALVAGED.to_owned());
        Placed {
            geometry,
            files: BTreeMap::new(),
            others: found.others.clone(),
            problems: [found.problems.clone(), stanzas_without_list(found)].concat(),
            laid_away: Vec::new(),
            notes: found.notes.iter().cloned().chain(salvage).collect(),
            begin: salvaged.and_then(|salvaged| salvaged.begin),
        }
    }

    /// Leaves out what is being copied into the archive, or was left by a copy.
    fn leave_out(
        &mut self,
        unfinished: &BTreeSet<usize>,
        found: &Found,
        places: &mut [Option<Key>],
    ) {
        if unfinished.is_empty() {
            return;
        }
        for files in self.files.values_mut() {
            files.retain(|file| !unfinished.contains(&file.piece));
        }
        self.files.retain(|_, files| !files.is_empty());
        // Of partial results two may have looked at a file.
        let mut names = BTreeSet::new();
        for &index in unfinished {
            places.get_mut(index).into_iter().for_each(|place| *place = None);
            let Some(piece) = found.pieces.get(index) else { continue };
            if names.insert(in_its_directory(piece.path())) {
                self.others.push(piece.file());
            }
        }
        let names: Vec<String> = names.into_iter().collect();
        let note =
            "not read: an unfinished copy, in a directory that no restore_command looks into";
        self.notes.extend(first_of(&names).map(|files| format!("{files}: {note}")));
    }

    /// Holds how files are stored, and where, against each other. `places`: which segment each piece is.
    fn compare(&mut self, found: &Found, places: &[Option<Key>]) {
        let geometry = &self.geometry.clone();
        self.problems.extend(neighbours::packed_apart(found));
        let apart = neighbours::suffixed_apart(found, places, geometry);
        self.notes.extend(apart.notes);
        self.notes.extend(neighbours::zstd_links(found));
        let repositories = Repositories::of(found, geometry);
        self.notes.extend(repositories.notes());
        let reach = Reach::of(found, places);
        self.notes.extend(reach.notes());
        self.tell_lost([
            repositories.segments_elsewhere(places, geometry),
            apart.lost,
            neighbours::hashed_apart(found, places, geometry),
            reach.segments(places, geometry),
            neighbours::nameless(found, places, geometry),
        ]);
        self.problems.extend(reach.histories());
        self.problems.extend(repositories.histories_elsewhere());
    }

    /// Reports segments that are not found where they lie, each once: first as its archiver sees it.
    fn tell_lost<const N: usize>(&mut self, lost: [Vec<Lost>; N]) {
        let mut told = BTreeSet::new();
        for lost in lost.into_iter().flatten() {
            if told.insert(lost.problem.segment.clone()) {
                let list = if lost.is_laid_away { &mut self.laid_away } else { &mut self.problems };
                list.push(lost.problem);
            }
        }
    }

    /// Reports pieces, by their indexes, that are no segments of this WAL.
    fn refuse_all(&mut self, refused: Vec<(usize, Problem)>, found: &Found) {
        // Of partial results two may have looked at a file.
        let mut told = BTreeSet::new();
        for (index, problem) in refused {
            let Some(piece) = found.pieces.get(index) else { continue };
            if told.insert((piece.path(), problem.kind)) {
                self.refuse(piece, problem, found);
            }
        }
    }

    /// The same of one of them.
    fn refuse(&mut self, piece: &Piece, problem: Problem, found: &Found) {
        let reason = piece.probe.first_page.as_ref().err();
        let may_be_beside = reason.is_some_and(NotWal::may_be_beside_a_segment);
        match (&piece.name, reason) {
            // The same segment is there, and unencrypted.
            (Some(name), _) if may_be_beside && self.has_clear(name) => {
                self.others.push(piece.file())
            }
            // A `.partial` promises nothing: one of another cluster, or that is no file, is none of this
            // archive.
            (Some(name), None | Some(NotWal::NoFile(_))) if name.standing == Standing::Partial => {
                self.notes.push(format!("{}: not read: {}", piece.file(), problem.found));
            }
            (Some(name), _) if name.standing == Standing::Aside => {
                self.notes.push(format!("{}: not read: {}", piece.file(), problem.found));
            }
            (None, Some(reason)) => self.refuse_nameless(piece, reason, problem, found),
            _ => self.problems.push(problem),
        }
    }

    /// The same for a file that the user has given and whose name says nothing. It may be a damaged
    /// segment, unless its name is one that archivers give to other files.
    fn refuse_nameless(&mut self, piece: &Piece, reason: &NotWal, problem: Problem, found: &Found) {
        let as_long = piece.probe.raw_bytes == Some(u64::from(self.geometry.segment_bytes));
        let file = piece.file();
        match reason {
            NotWal::Io(_) | NotWal::Cut(_) => self.problems.push(problem),
            _ if lies_beside_segments(&file) => self.others.push(file),
            // It only looked like a tar of segments, by a name that nobody gave.
            _ if is_called_like_a_tar(&file)
                && !found.paths.iter().any(|it| it == piece.path()) =>
            {
                self.notes.push(format!("{file}: not read: no tar, and {reason}"));
                self.others.push(file);
            }
            _ if found.taken_for == Some(InputKind::Archive) => self.problems.push(problem),
            // A server prepares new segments as files of zeros, under temporary names.
            _ if as_long && *reason != NotWal::Zeros => self.problems.push(problem),
            _ => {
                self.notes.push(format!("{file}: not read: {reason}"));
                self.others.push(file);
            }
        }
    }

    /// Whether the segment of that name is there unencrypted too, under a name that is as good.
    fn has_clear(&self, name: &SegmentFile) -> bool {
        let number = name.name.number(self.geometry.segment_bytes);
        let files = number.and_then(|number| self.files.get(&(name.name.timeline, number)));
        files.into_iter().flatten().any(|file| {
            file.first_page.is_ok() && file.standing <= Standing::of(Some(name), None, false)
        })
    }
}
