//! Archivers' own trees, held against where pgBackRest's `archive-get`, Barman's `get-wal` and WAL-G's
//! `wal-fetch` look for a file: what lies elsewhere in such a tree is not restored, whatever it holds.

use super::archive_info::ArchiveInfo;
use super::codec::Codec;
use super::discover::Found;
use super::history;
use super::input_kind::{InputKind, SERVER_DIRECTORIES, is_version};
use super::layout::{Archiver, WALS, is_received, stanza_of, tree_of};
use super::names::{Standing, XLOG_DB, backup_start, file_name};
use super::neighbours::{Lost, missing, name_of};
use super::piece::Piece;
use super::problem::{Problem, ProblemKind};
use super::storage::on_disk;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::Geometry;

/// Timeline and number of a segment.
type Key = (u32, u64);

/// Packings that Barman unpacks, and those that it does from 3.12 on.
const BARMANS: [Codec; 2] = [Codec::Gzip, Codec::Bzip2];
const BARMANS_SINCE_3_12: [Codec; 3] = [Codec::Xz, Codec::Zstd, Codec::Lz4];

/// Archivers' trees, by the directory with those of groups of segments in it; and stanzas of pgBackRest,
/// which have trees in them.
#[derive(Debug)]
pub(super) struct Repositories<'f> {
    found: &'f Found,
    trees: BTreeMap<PathBuf, Archiver>,
    /// Those in which pgBackRest looks for nothing itself: stanzas, and what its list does not have.
    passed_over: BTreeSet<PathBuf>,
    /// How many segments are found in each.
    filled: BTreeMap<PathBuf, usize>,
    /// How many files with a segment's name lie in each directory.
    named: BTreeMap<&'f Path, usize>,
}

impl<'f> Repositories<'f> {
    /// The trees among what was found.
    pub(super) fn of(found: &'f Found, geometry: &Geometry) -> Repositories<'f> {
        let names = found.pieces.iter().filter_map(|piece| Some((piece, piece.name.as_ref()?)));
        let lists = Lists::of(found);
        let told = names.clone().flat_map(|(piece, _)| lists.trees_of(piece.path()));
        let shown = names.clone().filter_map(|(piece, name)| tree_of(piece.path(), name));
        let shown: Vec<(PathBuf, Archiver)> = shown.collect();
        let trees = told.chain(shown.iter().cloned()).collect();
        let passed_over = BTreeSet::new();
        let filled = counted(shown.into_iter().map(|(tree, _)| tree));
        let named = counted(names.filter_map(|(piece, _)| piece.path().parent()));
        let mut all = Repositories { found, trees, passed_over, filled, named };
        let stanzas = all.stanzas();
        all.passed_over =
            stanzas.iter().flat_map(|stanza| all.unlisted(stanza, geometry)).collect();
        all.trees.extend(stanzas.iter().map(|stanza| (stanza.clone(), Archiver::PgBackRest)));
        all.passed_over.extend(stanzas);
        all
    }

    /// Directories of archive.info with trees in them, or that would be taken for one by what lies in them.
    fn stanzas(&self) -> BTreeSet<PathBuf> {
        let trees = self.trees.iter().filter(|(_, archiver)| **archiver == Archiver::PgBackRest);
        let trees = trees.flat_map(|(tree, _)| [Some(tree.as_path()), tree.parent()]).flatten();
        let trees: BTreeSet<&Path> = trees.collect_set();
        let lists = self.found.archive_infos.iter().filter_map(|(path, _)| path.parent());
        lists.filter(|stanza| trees.contains(stanza)).map(Path::to_owned).collect_set()
    }

    /// Trees that `archive-get` passes over: it looks into those that archive.info has with the server's
    /// release and system identifier.
    fn unlisted(&self, stanza: &Path, geometry: &Geometry) -> Vec<PathBuf> {
        let Some(list) = self.list_of(stanza) else { return Vec::new() };
        let trees = self.trees.keys().filter(|tree| tree.parent() == Some(stanza));
        trees.filter(|tree| !list.has(&file_name(tree), geometry)).cloned().collect()
    }

    /// A stanza's archive.info, or its copy.
    fn list_of(&self, stanza: &Path) -> Option<&ArchiveInfo> {
        let lists = self.found.archive_infos.iter();
        let mut lists = lists.filter(|(path, _)| path.parent() == Some(stanza));
        lists.find_map(|(_, list)| list.as_ref().ok())
    }

    /// The tree that a file lies in, whether it is found there or not.
    fn around(&self, path: &Path) -> Option<(&Path, Archiver)> {
        let within = path.ancestors().find_map(|above| self.trees.get_key_value(above));
        within.map(|(tree, archiver)| (tree.as_path(), *archiver))
    }

    /// The tree that a file lies beside, below the same path or in the same tar: that archiver keeps there
    /// what servers ask it for. Nearest is the one with the longest way in common.
    fn beside(&self, path: &Path) -> Option<(&Path, Archiver)> {
        let is_servers =
            || path.ancestors().any(|above| SERVER_DIRECTORIES.contains(&&*file_name(above)));
        if self.trees.is_empty() || is_servers() {
            return None;
        }
        let directory = path.parent()?;
        // A tar may be a base backup's, whatever lies beside it.
        let mut streams = self.found.streams.iter().map(|stream| Cow::Borrowed(&*stream.path));
        let stream = streams.find(|stream| path.starts_with(stream));
        let roots = self.found.paths.iter().map(|given| on_disk(given));
        let outermost = |root: &Cow<'_, Path>| root.as_os_str().len();
        let given = || roots.filter(|root| path.starts_with(root)).min_by_key(outermost);
        let root = stream.or_else(given)?;
        let segments = self.named.get(directory).copied().unwrap_or(0);
        let is_one = |tree: &Path| {
            tree.starts_with(&root)
                && !self.passed_over.contains(tree)
                && self.filled.get(tree).is_some_and(|filled| *filled >= segments)
        };
        let trees = self.trees.iter().filter(|(tree, _)| is_one(tree));
        let in_common = |tree: &Path| {
            let both = tree.components().zip(path.components());
            both.take_while(|(one, other)| one == other).count()
        };
        let (tree, archiver) = trees.max_by_key(|(tree, _)| in_common(tree))?;
        (!is_received(path, tree)).then_some((tree.as_path(), *archiver))
    }

    /// The tree that a segment lies in, or beside, without being found by the archiver.
    fn lost_in(&self, piece: &Piece) -> Option<(&Path, Archiver)> {
        let (path, name) = (piece.path(), piece.name.as_ref()?);
        let is_servers = self.found.directories.taken_for(piece.directory) == InputKind::PgWal;
        let beside = || self.beside(path).filter(|_| !is_servers);
        let (tree, archiver) = self.around(path).or_else(beside)?;
        let is_found = tree_of(path, name).is_some_and(|its| its == (tree.to_owned(), archiver))
            && !self.passed_over.contains(tree);
        (!is_found).then_some((tree, archiver))
    }

    /// Segments that are only where the archiver does not look for them. `places`: which segment each piece
    /// is.
    pub(super) fn segments_elsewhere(
        &self,
        places: &[Option<Key>],
        geometry: &Geometry,
    ) -> Vec<Lost> {
        let promises = |piece: &Piece| {
            piece.name.as_ref().is_some_and(|name| name.standing <= Standing::Unusual)
        };
        let placed = self.found.pieces.iter().zip(places).filter(|(piece, _)| promises(piece));
        let placed: Vec<(&Piece, Key)> =
            placed.filter_map(|(piece, key)| Some((piece, (*key)?))).collect();
        let there = placed.iter().filter(|(piece, _)| self.lost_in(piece).is_none());
        let there: BTreeSet<Key> = there.map(|(_, key)| *key).collect_set();
        let begin_backups = self.begin_backups(geometry);
        let lost = placed.iter().filter(|(_, key)| !there.contains(key));
        let lost = lost.filter_map(|(piece, key)| {
            let (tree, archiver) = self.lost_in(piece)?;
            let expected = archiver.asks_for(&name_of(*key, geometry));
            let is_old = there.first().is_some_and(|first| key < first);
            let problem = missing(*key, geometry, expected, only(tree, piece.path()));
            Some(Lost { problem, is_laid_away: is_old && !begin_backups.contains(key) })
        });
        lost.collect()
    }

    /// The segments in which base backups begin.
    fn begin_backups(&self, geometry: &Geometry) -> BTreeSet<Key> {
        let histories = self.found.backup_histories.iter();
        let names = histories.filter_map(|path| backup_start(&file_name(path)));
        let bytes = geometry.segment_bytes;
        names.filter_map(|name| Some((name.timeline, name.number(bytes)?))).collect_set()
    }

    /// Problems of histories that are only where the archiver does not look for them: it does beside the
    /// directories of segments, under the plain name.
    pub(super) fn histories_elsewhere(&self) -> Vec<Problem> {
        let lost_in = |timeline: u32, path: &Path| {
            let (tree, archiver) = self.around(path).or_else(|| self.beside(path))?;
            let is_found = archiver.finds_history(path, tree, &history::name_of(timeline))
                && !self.passed_over.contains(tree);
            (!is_found).then(|| (archiver, only(tree, path)))
        };
        let lost = self.found.histories.files().filter_map(|(timeline, files)| {
            let lost: Option<Vec<_>> = files.iter().map(|path| lost_in(timeline, path)).collect();
            let (archiver, only) = lost?.into_iter().next()?;
            let name = history::name_of(timeline);
            let (what, who) = (archiver.beside(), archiver.name());
            let expected = format!("{name} beside {what}, as {who} looks for it");
            Some(Problem::of_file(ProblemKind::MissingHistory, &name, expected, only))
        });
        lost.collect()
    }

    /// Notes on packings that not every Barman knows: `compression_registry` of its `compression.py` has
    /// gzip and bzip2, and from 3.12 on three more. What it does not know it hands out as it is.
    pub(super) fn notes(&self) -> Vec<String> {
        struct Packed {
            who: &'static str,
            file: String,
            count: usize,
        }
        let mut packed: BTreeMap<&str, Packed> = BTreeMap::new();
        for piece in &self.found.pieces {
            let is_barmans = piece.name.as_ref().is_some_and(|name| {
                tree_of(piece.path(), name).is_some_and(|(_, it)| it == Archiver::Barman)
            });
            let codec = piece.probe.source.codec().filter(|_| is_barmans);
            let Some(codec) = codec.filter(|it| !BARMANS.contains(it)) else { continue };
            let is_known = BARMANS_SINCE_3_12.contains(&codec);
            let who = if is_known { "Barman before 3.12" } else { "Barman" };
            let new = || Packed { who, file: piece.file(), count: 0 };
            packed.entry(codec.name()).or_insert_with(new).count += 1;
        }
        let note = |(codec, Packed { who, file, count }): (&str, Packed)| {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            format!(
                "{file}{more}: packed by {codec}, which {who} unpacks only as its custom_compression"
            )
        };
        packed.into_iter().map(note).collect()
    }
}

/// What archivers keep beside segments. Where no segment is where its archiver looks for it, that alone shows
/// whose tree it lies in.
struct Lists<'f> {
    /// pgBackRest has archive.info in the stanza, above the directories of its archive ids.
    stanzas: BTreeSet<&'f Path>,
    /// Barman has xlog.db in `wals`.
    has_barmans: bool,
}

impl<'f> Lists<'f> {
    fn of(found: &'f Found) -> Lists<'f> {
        Lists {
            stanzas: found.archive_infos.iter().filter_map(|(path, _)| path.parent()).collect(),
            has_barmans: found.others.iter().any(|file| file == XLOG_DB),
        }
    }

    /// The trees that a segment lies in.
    fn trees_of(&self, path: &Path) -> Vec<(PathBuf, Archiver)> {
        let stanza = path.ancestors().skip(1).find(|above| self.stanzas.contains(above));
        let below = stanza.and_then(|stanza| path.strip_prefix(stanza).ok()?.parent());
        let id = below.and_then(|below| below.iter().next()?.to_str());
        let id = id.filter(|id| is_version(id));
        // What lies beside archive.info, in no directory of an archive id, may be a copy of somebody's own.
        let stanza = stanza.zip(id);
        let pgbackrests =
            stanza.into_iter().flat_map(|(stanza, id)| [stanza.to_owned(), stanza.join(id)]);
        let wals = path.ancestors().skip(1).find(|above| file_name(above) == WALS);
        let barmans =
            wals.filter(|_| self.has_barmans).map(|wals| (wals.to_owned(), Archiver::Barman));
        pgbackrests.map(|tree| (tree, Archiver::PgBackRest)).chain(barmans).collect()
    }
}

/// Problems of stanzas of pgBackRest whose list of archive ids is missing or damaged, and its copy too. Only
/// stanzas in directories that were asked for: of others not all was seen, and lists in a tar are not read.
pub(super) fn stanzas_without_list(found: &Found) -> Vec<Problem> {
    let named = found.pieces.iter().filter_map(|piece| Some((piece.path(), piece.name.as_ref()?)));
    let trees = named.filter_map(|(path, name)| stanza_of(path, name));
    let stanzas: BTreeSet<PathBuf> = trees.collect_set();
    let is_listed = |stanza: &&PathBuf| {
        found.paths.iter().any(|path| stanza.starts_with(on_disk(path)))
            && !found.is_in_stream(stanza)
    };
    let problem = |stanza: &PathBuf| {
        let lists = found.archive_infos.iter();
        let lists = lists.filter(|(path, _)| path.parent() == Some(stanza));
        let faults: Option<Vec<&String>> = lists.map(|(_, list)| list.as_ref().err()).collect();
        faults.map(|faults| Problem::no_archive_info(faults.into_iter().next().cloned()))
    };
    stanzas.iter().filter(is_listed).filter_map(problem).collect()
}

fn counted<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_insert(0) += 1);
    counts
}

/// Where a file lies, from the directory of the tree on.
fn only(tree: &Path, path: &Path) -> String {
    let path = tree.parent().and_then(|above| path.strip_prefix(above).ok()).unwrap_or(path);
    format!("only {}", path.display())
}
