//! How and where a file is stored, held against the files beside it: a `restore_command` is one line for
//! all of them. What it brings of one that differs is nothing, or what the server does not take.

use super::discover::Found;
use super::input_kind::InputKind;
use super::names::{Standing, compression_suffix};
use super::packing::usual_suffix;
use super::piece::Piece;
use super::problem::{Problem, ProblemKind};
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::segment::SegmentName;

/// Timeline and number of a segment.
type Key = (u32, u64);

/// Whether a file is asked for by its name.
fn is_asked_for(piece: &Piece) -> bool {
    piece.name.as_ref().is_some_and(|name| name.standing == Standing::Full)
}

/// Problems of files under a segment's plain name that are compressed where others are not, or the other
/// way round. `cp` brings compressed bytes, which have a wrong size; a tool fails on plain ones. Archivers
/// with directories for groups of segments look at the content.
pub(super) fn packed_apart(found: &Found) -> Vec<Problem> {
    let mut directories: BTreeMap<usize, [Vec<&Piece>; 2]> = BTreeMap::new();
    for piece in &found.pieces {
        let named = piece.name.as_ref().is_some_and(|name| name.sha1.is_none());
        let plain_name = named && compression_suffix(&piece.file()).is_none();
        if plain_name
            && is_asked_for(piece)
            && piece.probe.first_page.is_ok()
            && !found.directories.is_group(piece.directory)
        {
            let both = directories.entry(piece.directory).or_default();
            both[usize::from(piece.probe.compressed)].push(piece);
        }
    }
    let apart = directories.values().flat_map(|[plain, compressed]| {
        // Where there are as many of both, they are copied as they are.
        let few = if compressed.len() > plain.len() { plain } else { compressed };
        few.iter().filter(|_| !plain.is_empty()).map(|piece| differs(piece))
    });
    apart.collect()
}

fn differs(piece: &Piece) -> Problem {
    let (plain, compressed) = ("a segment that is not compressed", "a compressed segment");
    let is_compressed = piece.probe.compressed;
    let (expected, found) = if is_compressed { (plain, compressed) } else { (compressed, plain) };
    let expected = format!("{expected}, as the others beside it under names without a suffix");
    Problem::of_file(ProblemKind::Unreadable, &piece.file(), expected, found.to_owned())
}

/// Problems of segments that are only there under another spelling of the suffix that most beside them have
/// (`.zstd` for `.zst`): a `restore_command` has one. `places`: which segment each piece is.
pub(super) fn spelt_apart(
    found: &Found,
    places: &[Option<Key>],
    geometry: &Geometry,
) -> Vec<Problem> {
    type Spellings = BTreeMap<String, BTreeMap<Key, String>>;
    let mut suffixes: BTreeMap<(usize, &str), Spellings> = BTreeMap::new();
    for (piece, key) in found.pieces.iter().zip(places) {
        let promises = piece.name.as_ref().is_some_and(|name| name.standing <= Standing::Unusual);
        let file = piece.file();
        if let (Some(key), Some(usual)) = (key.filter(|_| promises), usual_suffix(&file)) {
            let spelling = compression_suffix(&file).unwrap_or(usual).to_owned();
            let spellings = suffixes.entry((piece.directory, usual)).or_default();
            spellings.entry(spelling).or_default().insert(key, file);
        }
    }
    let apart = suffixes.into_iter().flat_map(|((_, usual), mut spellings)| {
        let most =
            spellings.iter().max_by_key(|(spelling, files)| (files.len(), *spelling == usual));
        let most = most.map(|(spelling, _)| spelling.clone()).unwrap_or_default();
        let there = spellings.remove(&most).unwrap_or_default();
        let first = there.keys().next().copied();
        let others = spellings.into_values().flatten();
        // What is older than all others was laid away.
        let lost = others.filter(move |(key, _)| first < Some(*key) && !there.contains_key(key));
        lost.map(move |(key, file)| {
            let expected = format!("a file under .{most}, as the others beside it");
            missing(key, geometry, expected, format!("only {file}"))
        })
    });
    apart.collect()
}

/// Problems of segments that are only in a directory below the one in which most others are: no
/// `restore_command` looks there. `places`: which segment each piece is.
pub(super) fn out_of_reach(
    found: &Found,
    places: &[Option<Key>],
    geometry: &Geometry,
) -> Vec<Problem> {
    let placed = found.pieces.iter().zip(places);
    let asked_for = placed.filter(|(piece, _)| is_asked_for(piece));
    let asked_for: Vec<(&Piece, Key)> =
        asked_for.filter_map(|(piece, key)| Some((piece, (*key)?))).collect();
    let mut keys: BTreeMap<usize, BTreeSet<Key>> = BTreeMap::new();
    for (piece, key) in &asked_for {
        keys.entry(piece.directory).or_default().insert(*key);
    }
    let above: BTreeMap<usize, usize> = keys
        .keys()
        .filter_map(|&directory| {
            let is_above = |other: &&usize| is_main(found, &keys, **other, directory);
            Some((directory, *keys.keys().find(is_above)?))
        })
        .collect();
    let within_reach: BTreeSet<Key> = asked_for
        .iter()
        .filter(|(piece, _)| !above.contains_key(&piece.directory))
        .map(|(_, key)| *key)
        .collect();
    let lost = asked_for.iter().filter(|(piece, key)| {
        let others = above.get(&piece.directory).and_then(|above| keys.get(above));
        // What is older than all others was laid away.
        let is_needed = others.and_then(BTreeSet::first).is_some_and(|first| first.1 < key.1);
        is_needed && !within_reach.contains(key)
    });
    lost.map(|(piece, key)| out_of_reach_problem(piece, *key, geometry)).collect()
}

/// Whether `other` is a directory above `directory`, on disk or in a tar, that holds more segments.
fn is_main(
    found: &Found,
    keys: &BTreeMap<usize, BTreeSet<Key>>,
    other: usize,
    directory: usize,
) -> bool {
    let place = |index| found.directories.place(index);
    let (Some((root, path)), Some((own_root, own))) = (place(other), place(directory)) else {
        return false;
    };
    let in_one_tar = found.streams.iter().all(|stream| {
        let is_in = |path: &std::path::Path| path.starts_with(&stream.path);
        is_in(path) == is_in(own)
    });
    let is_servers = [other, directory]
        .into_iter()
        .any(|index| found.directories.taken_for(index) == InputKind::PgWal);
    let count = |index| keys.get(&index).map_or(0, BTreeSet::len);
    root == own_root
        && own != path
        && own.starts_with(path)
        && in_one_tar
        && !is_servers
        && count(other) > count(directory)
}

fn name_of((timeline, number): Key, geometry: &Geometry) -> String {
    SegmentName::new(timeline, number, geometry.segment_bytes).to_string()
}

fn out_of_reach_problem(piece: &Piece, key: Key, geometry: &Geometry) -> Problem {
    let name = name_of(key, geometry);
    let path = piece.path();
    let parent = path.parent().and_then(|parent| parent.file_name()).unwrap_or_default();
    let expected = format!("segment {name} in the directory of the others");
    let found = format!("only {}/{}", parent.to_string_lossy(), piece.file());
    missing(key, geometry, expected, found)
}

/// The problem of a segment that no `restore_command` finds.
fn missing(key: Key, geometry: &Geometry, expected: String, found: String) -> Problem {
    let problem =
        Problem::of_file(ProblemKind::MissingSegment, &name_of(key, geometry), expected, found);
    let start = key.1.saturating_mul(u64::from(geometry.segment_bytes));
    Problem { lsn: Some(Lsn(start)), ..problem }
}
