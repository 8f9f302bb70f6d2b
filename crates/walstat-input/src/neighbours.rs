//! Compares how a file is stored with the files beside it. One `restore_command` fetches them all, so a file
//! that is stored otherwise is not found, or arrives in a form that the server refuses. In which directory
//! it lies is [`super::reach`]'s affair.

use super::codec::Codec;
use super::discover::Found;
use super::input_kind::InputKind;
use super::layout::{Archiver, is_received, tree_of};
use super::names::{Standing, compression_suffix};
use super::packing::usual_suffix;
use super::piece::Piece;
use super::problem::{Fetched, Problem, ProblemKind};
use super::suffixes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::Geometry;
use walstat_format::segment::SegmentName;

/// Timeline and number of a segment.
type Key = (u32, u64);

/// Whether a file is asked for by its name.
pub(super) fn is_asked_for(piece: &Piece) -> bool {
    piece.name.as_ref().is_some_and(|name| name.standing == Standing::Full)
}

/// Problems of files under a segment's plain name that are compressed where others are not, the other way
/// round, or by another codec than the others. `cp` brings compressed bytes, which have a wrong size; a tool
/// fails on plain ones, and on what it does not unpack. Archivers with directories for groups of segments
/// look at the content, as Barman does where it keeps what it has not put there yet.
pub(super) fn packed_apart(found: &Found) -> Vec<Problem> {
    let trees = found.pieces.iter().filter_map(|it| tree_of(it.path(), it.name.as_ref()?));
    let barmans = trees.filter(|(_, archiver)| *archiver == Archiver::Barman);
    let barmans: BTreeSet<PathBuf> = barmans.map(|(tree, _)| tree).collect_set();
    let mut directories: BTreeMap<usize, [Vec<&Piece>; 2]> = BTreeMap::new();
    for piece in &found.pieces {
        let named = piece.name.as_ref().is_some_and(|name| name.sha1.is_none());
        let plain_name = named && compression_suffix(&piece.file()).is_none();
        if plain_name
            && is_asked_for(piece)
            && piece.probe.first_page.is_ok()
            && !piece.probe.is_presumed()
            && !found.directories.is_group(piece.directory)
            && !barmans.iter().any(|wals| is_received(piece.path(), wals))
        {
            let both = directories.entry(piece.directory).or_default();
            both[usize::from(piece.probe.compressed)].push(piece);
        }
    }
    let apart = directories.values().flat_map(|[plain, compressed]| {
        // Where there are as many of both, they are copied as they are.
        let few = if compressed.len() > plain.len() { plain } else { compressed };
        let few = few.iter().filter(|_| !plain.is_empty()).map(|piece| differs(piece));
        let others = if plain.is_empty() { unpacked_otherwise(compressed) } else { Vec::new() };
        few.chain(others)
    });
    apart.collect()
}

/// Problems of compressed files that the tool does not unpack which unpacks the most of them.
fn unpacked_otherwise(compressed: &[&Piece]) -> Vec<Problem> {
    let packed = compressed.iter().filter_map(|piece| Some((piece, piece.probe.source.codec()?)));
    let packed: Vec<_> = packed.collect();
    let codecs: Vec<Codec> = packed.iter().map(|(_, codec)| *codec).collect();
    let Some(tool) = suffixes::best_for(&codecs) else { return Vec::new() };
    let others = packed.iter().filter(|(_, codec)| !tool.unpacks.contains(codec));
    let problem = |(piece, codec): &(&&Piece, Codec)| {
        let expected = format!(
            "what a tool for .{} unpacks, as of the others beside it under names without a suffix",
            tool.usual
        );
        let found = format!("a segment packed by {}", codec.name());
        Problem::of_file(ProblemKind::Unreadable, &piece.file(), expected, found)
    };
    others.map(problem).collect()
}

fn differs(piece: &Piece) -> Problem {
    let (plain, compressed) = ("a segment that is not compressed", "a compressed segment");
    let is_compressed = piece.probe.compressed;
    let (expected, found) = if is_compressed { (plain, compressed) } else { (compressed, plain) };
    let expected = format!("{expected}, as the others beside it under names without a suffix");
    let problem =
        Problem::of_file(ProblemKind::Unreadable, &piece.file(), expected, found.to_owned());
    // `cp` brings a compressed one as it is; on a plain one a tool fails.
    Problem { fetched: is_compressed.then_some(Fetched::InAnotherSize), ..problem }
}

/// A segment that a `restore_command` does not find where and as most others are.
#[derive(Debug)]
pub(super) struct Lost {
    /// What is wrong with it.
    pub problem: Problem,
    /// It is older than all the others: whoever laid it away may not want it any more.
    pub is_laid_away: bool,
}

/// Files of one directory by how they are packed, the suffix's usual spelling (none for plain files); then by
/// how it is spelt, with those before it; then by segment.
type Packings<'f> = BTreeMap<Option<&'static str>, Spellings<'f>>;
/// The same of one packing.
type Spellings<'f> = BTreeMap<String, BTreeMap<Key, &'f Piece>>;

/// What suffixes say.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Segments under another spelling of the others' suffix.
    pub lost: Vec<Lost>,
    /// Notes on segments packed otherwise than those around them.
    pub notes: Vec<String>,
}

/// Segments that are only there under another suffix than most beside them have, or under another spelling of
/// it (`.zstd` or `.zst.zst` for `.zst`): a `restore_command` has one. `places`: which segment each piece is.
pub(super) fn suffixed_apart(found: &Found, places: &[Option<Key>], geometry: &Geometry) -> Apart {
    let mut directories: BTreeMap<usize, Packings<'_>> = BTreeMap::new();
    for (piece, key) in found.pieces.iter().zip(places) {
        let promises = piece.name.as_ref().is_some_and(|name| name.standing <= Standing::Unusual);
        let Some(key) = key.filter(|_| promises) else { continue };
        let file = piece.file();
        let usual = usual_suffix(&file);
        let packings = directories.entry(piece.directory).or_default();
        let spellings = packings.entry(usual).or_default();
        spellings.entry(suffixes(&file).to_owned()).or_default().insert(key, piece);
    }
    let mut apart = Apart::default();
    for (directory, packings) in directories {
        let is_packed_in_any_way = found.directories.is_archivers(directory)
            || found.directories.taken_for(directory) == InputKind::PgWal;
        if !is_packed_in_any_way {
            apart.notes.extend(packed_otherwise(&packings));
        }
        for (usual, spellings) in packings {
            let Some(usual) = usual else { continue };
            apart.lost.extend(spelt_apart(usual, spellings, geometry));
        }
    }
    apart
}

/// Segments that are only there under a name with a SHA-1 beside others without, or the other way round: one
/// `restore_command` does not ask for both. Where pgBackRest itself put them, it is asked. `places`: which
/// segment each piece is.
pub(super) fn hashed_apart(
    found: &Found,
    places: &[Option<Key>],
    geometry: &Geometry,
) -> Vec<Lost> {
    let mut directories: BTreeMap<usize, [BTreeMap<Key, &Piece>; 2]> = BTreeMap::new();
    for (piece, key) in found.pieces.iter().zip(places) {
        let (Some(name), Some(key)) = (piece.name.as_ref(), key) else { continue };
        if is_asked_for(piece) && tree_of(piece.path(), name).is_none() {
            let both = directories.entry(piece.directory).or_default();
            // Of several the first by name, in whatever order they were found.
            let first = both[usize::from(name.sha1.is_some())].entry(*key).or_insert(piece);
            if piece.file() < first.file() {
                *first = piece;
            }
        }
    }
    let lost = directories.values().flat_map(|[without, with]| {
        let is_usual = with.len() > without.len();
        let (usual, other) = if is_usual { (with, without) } else { (without, with) };
        let first = usual.keys().next().copied();
        let lost = other.iter().filter(move |(key, _)| first.is_some() && !usual.contains_key(key));
        lost.map(move |(key, piece)| {
            let file = piece.file();
            let expected = if is_usual { "a name with a SHA-1" } else { "a name without a SHA-1" };
            let expected = format!("{expected}, as the others beside it have");
            let problem = missing(*key, geometry, expected, format!("only {file}"));
            Lost { problem, is_laid_away: Some(*key) < first }
        })
    });
    lost.collect()
}

/// All suffixes of compressions that a file's name ends in: a tool takes off one, and the name without it has
/// to be the segment's.
fn suffixes(file: &str) -> &str {
    let mut rest = file;
    while let Some(suffix) = compression_suffix(rest) {
        rest = rest.get(..rest.len() - suffix.len() - 1).unwrap_or_default();
    }
    file.get(rest.len()..).unwrap_or_default()
}

/// A note on segments packed otherwise than most: there are `restore_command`s that try several packings. At
/// either end too, where the way may have been changed: recovery without such a command ends there as well.
fn packed_otherwise(packings: &Packings<'_>) -> Option<String> {
    let keys = |spellings: &Spellings<'_>| -> BTreeSet<Key> {
        spellings.values().flat_map(|files| files.keys().copied()).collect()
    };
    let counted = packings.iter().map(|(usual, spellings)| (*usual, keys(spellings)));
    let (most, there) = counted.max_by_key(|(_, keys)| keys.len())?;
    let others = packings.iter().filter(|(usual, _)| **usual != most);
    let others = others.flat_map(|(_, spellings)| spellings.values().flatten());
    let mut others = others.filter(|(key, _)| !there.contains(key)).map(|(_, piece)| piece);
    let (one, more) = (others.next()?.file(), others.count());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let suffix =
        most.map_or_else(|| "without a suffix".to_owned(), |usual| format!("under .{usual}"));
    Some(format!(
        "{one}{more} among files {suffix}: a restore_command has to fetch and unpack both kinds"
    ))
}

/// A note on segments for the zstd tool that are links: without `-f` it passes them over, and with `-q` it
/// says nothing of it. Archivers unpack by themselves.
pub(super) fn zstd_links(found: &Found) -> Option<String> {
    let is_link = |piece: &&Piece| {
        let is_archivers = found.directories.is_archivers(piece.directory)
            || piece.name.as_ref().is_none_or(|name| name.sha1.is_some());
        !is_archivers && found.zstd_links.contains(&*piece.path().to_string_lossy())
    };
    let files: BTreeSet<String> =
        found.pieces.iter().filter(is_link).map(Piece::file).collect_set();
    let more = match files.len() {
        0 | 1 => " is a symbolic link".to_owned(),
        all => format!(" and {} more are symbolic links", all - 1),
    };
    let one = files.first()?;
    Some(format!("{one}{more}: zstd unpacks none without -f, and recovery ends there"))
}

/// Segments whose suffix is spelt otherwise than those of most others. `usual`: how it usually is.
fn spelt_apart(usual: &str, mut spellings: Spellings<'_>, geometry: &Geometry) -> Vec<Lost> {
    let count = |(spelling, files): &(&String, &BTreeMap<Key, &Piece>)| {
        (files.len(), spelling.strip_prefix('.') == Some(usual))
    };
    let most = spellings.iter().max_by_key(count).map(|(spelling, _)| spelling.clone());
    let most = most.unwrap_or_default();
    let there = spellings.remove(&most).unwrap_or_default();
    let first = there.keys().next().copied();
    let others = spellings.into_values().flatten();
    let lost = others.filter(|(key, _)| !there.contains_key(key)).map(|(key, piece)| {
        let expected = format!("a file under {most}, as the others beside it");
        let problem = missing(key, geometry, expected, format!("only {}", piece.file()));
        Lost { problem, is_laid_away: Some(key) < first }
    });
    lost.collect()
}

/// Segments that are only there under a name that says nothing, beside others under theirs: whoever gives
/// that file's path has it read, and no `restore_command` does. `places`: which segment each piece is.
pub(super) fn nameless(found: &Found, places: &[Option<Key>], geometry: &Geometry) -> Vec<Lost> {
    let placed =
        || found.pieces.iter().zip(places).filter_map(|(piece, key)| Some((piece, (*key)?)));
    let mut beside: BTreeMap<usize, BTreeSet<Key>> = BTreeMap::new();
    for (piece, key) in placed().filter(|(piece, _)| is_asked_for(piece)) {
        beside.entry(piece.directory).or_default().insert(key);
    }
    let named: BTreeSet<Key> = beside.values().flatten().copied().collect_set();
    let lost = placed().filter(|(piece, key)| {
        let between = beside
            .get(&piece.directory)
            .and_then(|keys| Some(*keys.first()? < *key && *key < *keys.last()?));
        // Of a partial result the source tells no more where it was.
        let is_file = !found.is_in_stream(piece.path());
        piece.name.is_none() && is_file && !named.contains(key) && between == Some(true)
    });
    let lost = lost.map(|(piece, key)| {
        let expected = format!("segment {}", name_of(key, geometry));
        let problem = missing(key, geometry, expected, format!("only {}", piece.file()));
        Lost { problem, is_laid_away: false }
    });
    lost.collect()
}

pub(super) fn name_of((timeline, number): Key, geometry: &Geometry) -> String {
    SegmentName::new(timeline, number, geometry.segment_bytes).to_string()
}

/// The problem of a segment that no `restore_command` finds.
pub(super) fn missing(key: Key, geometry: &Geometry, expected: String, found: String) -> Problem {
    let problem =
        Problem::of_file(ProblemKind::MissingSegment, &name_of(key, geometry), expected, found);
    let start = key.1.saturating_mul(u64::from(geometry.segment_bytes));
    Problem { lsn: Some(Lsn(start)), ..problem }
}
