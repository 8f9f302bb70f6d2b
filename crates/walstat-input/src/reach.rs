//! Where files lie. An archive is one directory for one `restore_command`, `cp DIR/%f`: what lies in another
//! one, below it or beside it, is not found. Archivers' trees have rules of their own
//! ([`super::repository`]), and a server's own directory is none of an archive.

use super::copy_names::is_staging;
use super::discover::Found;
use super::history;
use super::input_kind::InputKind;
use super::names::file_name;
use super::neighbours::{Lost, is_asked_for, missing, name_of};
use super::packing::usual_suffix;
use super::piece::Piece;
use super::problem::{Problem, ProblemKind};
use super::storage;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::Geometry;
use walstat_format::segment::SegmentName;

/// Timeline and number of a segment.
type Key = (u32, u64);

/// What an archive is looked for in: a path that was asked for, or one of the tars in it, by their indexes.
type Whole = (usize, Option<usize>);

/// Which directories a `restore_command` looks into.
#[derive(Debug)]
pub(super) struct Reach<'f> {
    found: &'f Found,
    /// Indexes of the tars.
    streams: BTreeMap<&'f Path, usize>,
    /// The segments of each directory, by its index.
    keys: BTreeMap<usize, BTreeSet<Key>>,
    /// The archive in each of the paths asked for, and in each tar.
    mains: BTreeMap<Whole, usize>,
    /// Directories out of reach, each with the one that is looked into in its place.
    instead: BTreeMap<usize, usize>,
}

/// What tells the archive from the other directories below a path: the greatest is it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// It is the path itself.
    is_given: bool,
    segments: usize,
    /// Number and timeline.
    newest: Option<(u64, u32)>,
    directory: usize,
}

impl<'f> Reach<'f> {
    /// `places`: which segment each piece is.
    pub(super) fn of(found: &'f Found, places: &[Option<Key>]) -> Reach<'f> {
        let mut keys: BTreeMap<usize, BTreeSet<Key>> = BTreeMap::new();
        for (piece, key) in asked_for(found, places) {
            keys.entry(piece.directory).or_default().insert(key);
        }
        let streams = found.streams.iter().enumerate();
        let streams = streams.map(|(index, stream)| (&*stream.path, index)).collect_map();
        let (mains, instead) = (BTreeMap::new(), BTreeMap::new());
        let mut reach = Reach { found, streams, keys, mains, instead };
        reach.mains = reach.main_of_each();
        let instead = reach.keys.keys().filter_map(|&directory| {
            let is_above = |other: &&usize| reach.is_above(**other, directory);
            let above = || reach.keys.keys().find(is_above).copied();
            Some((directory, reach.instead_of(directory).or_else(above)?))
        });
        reach.instead = instead.collect();
        reach
    }

    /// The path asked for, or the tar, that a directory lies in.
    fn whole_of(&self, directory: usize) -> Option<Whole> {
        let (root, path) = self.found.directories.place(directory)?;
        Some((root, path.ancestors().find_map(|above| self.streams.get(above)).copied()))
    }

    /// Its own path.
    fn path_of(&self, (root, stream): Whole) -> Option<Cow<'_, Path>> {
        match stream {
            Some(stream) => Some(Cow::Borrowed(&*self.found.streams.get(stream)?.path)),
            None => Some(storage::on_disk(self.found.paths.get(root)?)),
        }
    }

    /// The directory in each path asked for, and in each tar, that is its archive: the path itself if
    /// segments lie in it, else the one with the most, and of several the one with the newest. None where
    /// archivers put as many.
    fn main_of_each(&self) -> BTreeMap<Whole, usize> {
        let mut best: BTreeMap<Whole, Rank> = BTreeMap::new();
        let mut archivers: BTreeMap<Whole, usize> = BTreeMap::new();
        for (&directory, keys) in &self.keys {
            let Some(whole) = self.whole_of(directory) else { continue };
            if self.found.directories.is_archivers(directory) {
                *archivers.entry(whole).or_default() += keys.len();
                continue;
            }
            if self.is_servers(directory) {
                continue;
            }
            let path = self.found.directories.place(directory).map(|(_, path)| path);
            let is_given = self.path_of(whole).as_deref() == path;
            let newest = keys.iter().map(|(timeline, number)| (*number, *timeline)).max();
            let rank = Rank { is_given, segments: keys.len(), newest, directory };
            let best = best.entry(whole).or_insert(rank);
            *best = rank.max(*best);
        }
        let theirs = |whole: &Whole| archivers.get(whole).copied().unwrap_or(0);
        let mains = best.into_iter().filter(|(whole, rank)| rank.segments > theirs(whole));
        mains.map(|(whole, rank)| (whole, rank.directory)).collect_map()
    }

    /// The archive that is looked into, if that is another directory.
    fn instead_of(&self, directory: usize) -> Option<usize> {
        let (root, own) = self.found.directories.place(directory)?;
        let whole = self.whole_of(directory)?;
        let within = self.mains.get(&whole).copied().filter(|main| *main != directory);
        // A tar below the archive; one elsewhere may be a base backup's.
        let around = || {
            let main = *self.mains.get(&(root, None)).filter(|_| whole.1.is_some())?;
            let (_, path) = self.found.directories.place(main)?;
            own.starts_with(path).then_some(main)
        };
        let main = within.or_else(around)?;
        (!self.is_servers(directory) && !self.poses_as_segment(own)).then_some(main)
    }

    /// Whether `other` is a directory above `directory`, on disk or in a tar, that holds more segments.
    fn is_above(&self, other: usize, directory: usize) -> bool {
        let place = |index| self.found.directories.place(index);
        let (Some((root, path)), Some((own_root, own))) = (place(other), place(directory)) else {
            return false;
        };
        let count = |index| self.keys.get(&index).map_or(0, BTreeSet::len);
        root == own_root
            && own != path
            && own.starts_with(path)
            && ![other, directory].into_iter().any(|index| self.is_servers(index))
            && !self.poses_as_segment(own)
            && count(other) > count(directory)
    }

    /// The archive below which a directory lies, on disk or in the same tar, and which is looked into in its
    /// place.
    fn main_above(&self, directory: usize) -> Option<usize> {
        let (_, own) = self.found.directories.place(directory)?;
        let main = self.instead.get(&directory).copied().or_else(|| self.instead_of(directory))?;
        let (_, path) = self.found.directories.place(main)?;
        let is_within_one = self.whole_of(main)? == self.whole_of(directory)?;
        (is_within_one && own != path && own.starts_with(path)).then_some(main)
    }

    fn is_servers(&self, directory: usize) -> bool {
        self.found.directories.taken_for(directory) == InputKind::PgWal
    }

    /// A tar under a segment's name is told as no segment.
    fn poses_as_segment(&self, path: &Path) -> bool {
        self.found.streams.iter().any(|stream| {
            SegmentName::parse(&file_name(&stream.path)).is_some() && path.starts_with(&stream.path)
        })
    }

    /// The segments in directories that are looked into.
    fn within(&self) -> BTreeSet<Key> {
        let within = self.keys.iter().filter(|(index, _)| !self.instead.contains_key(index));
        within.flat_map(|(_, keys)| keys.iter().copied()).collect_set()
    }

    /// Segments that are only in a directory, or in a tar, that no `restore_command` looks into. What is
    /// older than all above it was laid away.
    pub(super) fn segments(&self, places: &[Option<Key>], geometry: &Geometry) -> Vec<Lost> {
        let within = self.within();
        let path_of = |index| self.found.directories.place(index).map(|(_, path)| path);
        let lost = asked_for(self.found, places).filter_map(|(piece, key)| {
            let main = *self.instead.get(&piece.directory)?;
            let first = self.keys.get(&main)?.first()?;
            let is_below = path_of(piece.directory)?.starts_with(path_of(main)?);
            let problem = out_of_reach_problem(piece, key, geometry);
            let lost = Lost { problem, is_laid_away: is_below && key.1 <= first.1 };
            (!within.contains(&key)).then_some(lost)
        });
        lost.collect()
    }

    /// Problems of histories that are only where no `restore_command` looks, or packed as no segment is: to
    /// a server they are missing. A plain one is found beside packed segments: `pg_receivewal` writes it so.
    pub(super) fn histories(&self) -> Vec<Problem> {
        let asked_for = || self.found.pieces.iter().filter(|piece| is_asked_for(piece));
        if asked_for().any(|piece| self.found.directories.is_archivers(piece.directory)) {
            return Vec::new();
        }
        let packings: BTreeSet<Option<&str>> =
            asked_for().map(|piece| usual_suffix(&piece.file())).collect_set();
        let looked_into = asked_for().filter(|it| !self.instead.contains_key(&it.directory));
        let looked_into: BTreeSet<&Path> =
            looked_into.filter_map(|piece| piece.path().parent()).collect_set();
        let with_main: Vec<Cow<'_, Path>> =
            self.mains.keys().filter_map(|whole| self.path_of(*whole)).collect();
        let is_within_reach = |path: &PathBuf| {
            let packing = usual_suffix(&file_name(path));
            let parent = path.parent().unwrap_or(path);
            let is_below = |directory: &&Path| parent.starts_with(directory);
            let is_passed_over = || {
                looked_into.iter().any(is_below)
                    || with_main.iter().any(|given| parent.starts_with(given))
            };
            (packing.is_none() || packings.contains(&packing))
                && (looked_into.contains(parent) || !is_passed_over())
        };
        let files = self.found.histories.files();
        let lost = files.filter(|(_, files)| !files.iter().any(is_within_reach));
        if looked_into.is_empty() { Vec::new() } else { lost.map(history_problem).collect() }
    }

    /// A note where several of the paths asked for have to be looked into: whoever names them says that they
    /// all serve.
    pub(super) fn notes(&self) -> Option<String> {
        let keys = |directory: &usize| self.keys.get(directory).cloned().unwrap_or_default();
        let mains = self.mains.iter().filter(|((_, stream), _)| stream.is_none());
        let directories: BTreeSet<usize> = mains.map(|(_, directory)| *directory).collect_set();
        let all: BTreeSet<Key> = directories.iter().flat_map(keys).collect_set();
        let is_archive = |directory: &usize| {
            let told = self.found.taken_for;
            told.unwrap_or_else(|| self.found.directories.taken_for(*directory))
                == InputKind::Archive
        };
        let one_serves = directories.iter().any(|directory| keys(directory) == all);
        if one_serves || !directories.iter().any(is_archive) {
            return None;
        }
        let places = directories.iter().filter_map(|index| self.found.directories.place(*index));
        let places: Vec<String> = places.map(|(_, path)| path.display().to_string()).collect();
        Some(format!("restore_command has to look in each of {}", places.join(", ")))
    }
}

/// Copies that are under way, or were interrupted, in directories below the archive, which no
/// `restore_command` looks into: the newest file of one, if it is too short; and in one in which files are
/// written before they are renamed, those that are too short and the next segment of the archive. `places`:
/// which segment each piece is.
pub(super) fn unfinished(
    found: &Found,
    places: &[Option<Key>],
    geometry: &Geometry,
) -> BTreeSet<usize> {
    let directories: BTreeSet<usize> =
        found.pieces.iter().map(|piece| piece.directory).collect_set();
    if directories.len() < 2 {
        return BTreeSet::new();
    }
    let reach = Reach::of(found, places);
    let below = directories.into_iter().filter_map(|own| {
        let (_, path) = found.directories.place(own)?;
        Some((own, (reach.main_above(own)?, is_staging(&file_name(path)))))
    });
    let below: BTreeMap<usize, (usize, bool)> = below.collect_map();
    if below.is_empty() {
        return BTreeSet::new();
    }
    let number = |piece: &Piece| piece.name.as_ref()?.name.number(geometry.segment_bytes);
    let mut newest: BTreeMap<usize, u64> = BTreeMap::new();
    for piece in found.pieces.iter().filter(|piece| is_asked_for(piece)) {
        let newest = newest.entry(piece.directory).or_default();
        *newest = number(piece).unwrap_or(0).max(*newest);
    }
    let is_unfinished = |piece: &Piece| {
        let (main, is_staging) = below.get(&piece.directory)?;
        // Of a compressed one it is not known.
        let bytes = piece.probe.raw_bytes;
        let is_short = bytes.is_some_and(|bytes| bytes < u64::from(geometry.segment_bytes));
        let number = number(piece)?;
        let is_next = newest.get(main).is_some_and(|last| number == last + 1);
        let is_last = newest.get(&piece.directory) == Some(&number);
        Some(if *is_staging { is_short || is_next } else { is_short && is_last })
    };
    let pieces = found.pieces.iter().enumerate().filter(|(_, piece)| is_asked_for(piece));
    let unfinished = pieces.filter(|(_, piece)| is_unfinished(piece).unwrap_or(false));
    unfinished.map(|(index, _)| index).collect_set()
}

/// The files that a server asks for, each with the segment that it is.
fn asked_for<'f>(
    found: &'f Found,
    places: &'f [Option<Key>],
) -> impl Iterator<Item = (&'f Piece, Key)> {
    let placed = found.pieces.iter().zip(places);
    let asked_for = placed.filter(|(piece, _)| is_asked_for(piece));
    asked_for.filter_map(|(piece, key)| Some((piece, (*key)?)))
}

fn history_problem((timeline, files): (u32, &BTreeSet<PathBuf>)) -> Problem {
    let only = files.first().map(|path| in_its_directory(path)).unwrap_or_default();
    let expected =
        format!("the history of timeline {timeline} beside the segments, packed as they are");
    let found = format!("only {only}");
    Problem::of_file(ProblemKind::MissingHistory, &history::name_of(timeline), expected, found)
}

/// A file with the directory it lies in.
pub(super) fn in_its_directory(path: &Path) -> String {
    let parent = path.parent().and_then(|parent| parent.file_name()).unwrap_or_default();
    format!("{}/{}", parent.to_string_lossy(), file_name(path))
}

fn out_of_reach_problem(piece: &Piece, key: Key, geometry: &Geometry) -> Problem {
    let name = name_of(key, geometry);
    let expected = format!("segment {name} in the directory of the others");
    let found = format!("only {}", in_its_directory(piece.path()));
    missing(key, geometry, expected, found)
}
