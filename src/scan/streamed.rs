//! Segments that come through a stream, in any order: each is a run of its own as it passes by,
//! under the sizes that its own first page tells. Judges nothing: which of them belong together is
//! decided when all have passed, for files and streams alike.

use super::pages::{Pages, Progress};
use super::reader::Reader;
use super::record::{Observe, Select};
use super::run::Run;
use super::scope::Scope;
use super::turns::Turns;
use super::window::Window;
use crate::input::digest::{Digest, Digesting};
use crate::input::discover::{Found, Stream, file_name};
use crate::input::names::{FileName, Standing};
use crate::input::piece::Piece;
use crate::input::placing::geometry_of;
use crate::input::plan::Segment;
use crate::input::probe::{NotWal, Probe};
use crate::input::problem::{Problem, ProblemKind};
use crate::input::source::{Bytes, Kept, Source};
use crate::input::stream::{Item, StreamSegment, for_each_item};
use crate::input::taken_for::{ARCHIVE_STATUS, SERVER_DIRECTORIES, TakenFor};
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use crate::wal::page::Geometry;
use crate::wal::segment::{SEGMENT_BYTES, number_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is asked of a scan before it is known what it will meet.
#[derive(Debug, Clone)]
pub struct Wanted<S> {
    /// How checksums are computed; `None`: they are not verified.
    pub crc: Option<Crc32c>,
    /// Range of LSNs.
    pub range: (Lsn, Lsn),
    /// Stop after that many counted records.
    pub limit: Option<u64>,
    /// Timeline to follow.
    pub timeline: Option<u32>,
    /// The filters.
    pub select: S,
}

impl<S> Wanted<S> {
    /// The scope of a scan of WAL of this geometry.
    pub fn scope(self, geometry: Geometry) -> Scope<S> {
        let (start, end) = self.range;
        Scope { geometry, crc: self.crc, start, end, limit: self.limit, select: self.select }
    }
}

/// Of that many other files in a stream the names are kept.
const UNREAD_MAX: usize = 1000;

/// Segments without a first page do not say how long a segment is; up to so many bytes of them are
/// kept until it is known. Zeros are only counted.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// A segment that passed by.
#[derive(Debug, Serialize, Deserialize)]
pub struct Passed<O> {
    /// Its run, with the beginnings of timelines in it.
    pub run: Run<Turns>,
    /// What was counted in it.
    pub counted: O,
    /// What all its bytes come to.
    pub digest: Digest,
}

/// What passes by.
struct Collector<'a, S, O> {
    found: &'a mut Found,
    wanted: &'a Wanted<S>,
    progress: &'a Progress,
    prototype: &'a O,
    window: Window,
    /// By the index of the piece.
    passed: BTreeMap<usize, Passed<O>>,
    /// How many records were counted, those that go on after their segment included.
    counted: u64,
    /// Bytes that are kept.
    kept_bytes: usize,
    stream: Stream,
    /// The segment of the stream that passed by last.
    last: Option<usize>,
    /// It had neither name nor first page: two of those in a row are no WAL any more.
    last_was_bare: bool,
    unread: usize,
}

/// Lets all streams pass by. What they hold is added to what was found; the runs are by the index
/// of their piece.
pub fn pass<S: Select + Clone, O: Observe>(
    found: &mut Found,
    wanted: &Wanted<S>,
    progress: &Progress,
    prototype: &O,
) -> BTreeMap<usize, Passed<O>> {
    let streams = found.streams.clone();
    let mut collector = Collector::new(found, wanted, progress, prototype);
    for stream in streams {
        collector.stream = stream.clone();
        (collector.last, collector.last_was_bare) = (None, false);
        for_each_item(&stream.path, &mut |item| collector.take(item));
    }
    collector.passed
}

/// Lets the files that were found pass by too, as if they came through a stream.
pub fn pass_files<S: Select + Clone, O: Observe>(
    found: &mut Found,
    wanted: &Wanted<S>,
    progress: &Progress,
    prototype: &O,
) -> BTreeMap<usize, Passed<O>> {
    let mut collector = Collector::new(found, wanted, progress, prototype);
    for index in 0..collector.found.pieces.len() {
        collector.take_file(index);
    }
    collector.passed
}

impl<'a, S: Select + Clone, O: Observe> Collector<'a, S, O> {
    fn new(
        found: &'a mut Found,
        wanted: &'a Wanted<S>,
        progress: &'a Progress,
        prototype: &'a O,
    ) -> Self {
        Collector {
            found,
            wanted,
            progress,
            prototype,
            window: Window::default(),
            passed: BTreeMap::new(),
            counted: 0,
            kept_bytes: 0,
            stream: Stream { path: PathBuf::new(), root: 0 },
            last: None,
            last_was_bare: false,
            unread: 0,
        }
    }

    /// A file, as if its bytes came through a stream.
    fn take_file(&mut self, index: usize) {
        let Some(piece) = self.found.pieces.get_mut(index) else { return };
        let path = piece.path().to_owned();
        let refused = matches!(&piece.probe.first_page, Err(reason) if reason.is_final());
        // What is no file at all is not to be opened: a pipe waits for who writes into it.
        if refused || !piece.probe.source.is_file() {
            return;
        }
        let mut bytes = match piece.probe.source.open(0) {
            Ok(bytes) => bytes.into_reader(),
            Err(error) => {
                let kept = Kept::failing(error.kind(), error.to_string());
                piece.probe.source = Source::Kept(path, Arc::new(kept));
                return;
            }
        };
        piece.probe.source = Source::Streamed(path);
        let segment = StreamSegment {
            path: piece.path().to_owned(),
            name: piece.name.clone(),
            first_page: piece.probe.first_page.clone(),
            compressed: piece.probe.compressed,
            bytes: &mut bytes,
        };
        match &segment.first_page {
            Err(_) => self.keep(index, segment.bytes),
            Ok(page) => {
                if let Some(geometry) = geometry_of(page) {
                    // Only a limit ends it early.
                    let _ = self.read(index, geometry, segment);
                }
            }
        }
    }

    fn take(&mut self, item: Item<'_>) -> ControlFlow<()> {
        match item {
            Item::Segment(segment) => return self.take_segment(segment),
            Item::History(timeline, text, file) => {
                let text = text.as_deref().map_err(Clone::clone);
                self.found.histories.add(timeline, text, &file);
            }
            Item::NotWal(file, reason) => self.refuse(Path::new(&file), reason),
            Item::NoFile(path, kind) => self.refuse(&path, NotWal::NoFile(kind.into())),
            Item::Other(path) => self.take_other(&path),
            Item::Directory(path) => self.look_at(&path),
            Item::Broken(file, error) => self.take_error(file, &error),
        }
        ControlFlow::Continue(())
    }

    fn take_other(&mut self, path: &Path) {
        self.look_at(path);
        if let Some(parent) = path.parent() {
            self.look_at(parent);
        }
        if self.unread < UNREAD_MAX {
            self.unread += 1;
            self.found.others.push(file_name(path));
        }
    }

    /// What the path of a member tells of the directories around it.
    fn look_at(&mut self, path: &Path) {
        let parent = self.directory_of(path);
        match path.file_name().and_then(|name| name.to_str()) {
            Some(ARCHIVE_STATUS) => self.is_servers(&parent),
            Some("PG_VERSION") => {
                SERVER_DIRECTORIES.iter().for_each(|name| self.is_servers(&parent.join(name)));
            }
            _ => {}
        }
    }

    fn is_servers(&mut self, directory: &Path) {
        let index = self.found.directories.index(self.stream.root, directory);
        self.found.directories.is_servers(index);
    }

    /// The directory of a member, below the stream that it came in.
    fn directory_of(&self, member: &Path) -> PathBuf {
        let inner = member.parent().unwrap_or_else(|| Path::new(""));
        // The parts as they are: `./pg_wal` is `pg_wal`.
        let inner: PathBuf = inner.components().filter(|part| part.as_os_str() != ".").collect();
        if inner.as_os_str().is_empty() {
            self.stream.path.clone()
        } else {
            self.stream.path.join(inner)
        }
    }

    /// A stream that cannot be read to its end, or a member.
    fn take_error(&mut self, file: String, error: &io::Error) {
        let (kind, expected) = match error.kind() {
            io::ErrorKind::UnexpectedEof => (ProblemKind::Truncated, "the rest of the stream"),
            _ => (ProblemKind::Unreadable, "bytes that can be read"),
        };
        let problem = Problem::of_file(kind, &file, expected.to_owned(), error.to_string());
        self.found.problems.push(problem);
    }

    fn refuse(&mut self, path: &Path, reason: NotWal) {
        let name = match FileName::parse(&file_name(path)) {
            FileName::Segment(name) => Some(name),
            _ => None,
        };
        let directory = self.directory_of(path);
        let probe = Probe::failed(path, reason);
        self.found.add_piece(self.stream.root, &directory, name, probe);
    }

    fn take_segment(&mut self, item: StreamSegment<'_>) -> ControlFlow<()> {
        let bare = item.name.is_none() && item.first_page.is_err();
        if bare && self.last_was_bare {
            let found = "more segments without a first page".to_owned();
            let expected = "the end of the stream".to_owned();
            let file = file_name(&item.path);
            let problem = Problem::of_file(ProblemKind::TrailingBytes, &file, expected, found);
            self.found.problems.push(problem);
            return ControlFlow::Break(());
        }
        self.last_was_bare = bare;
        let index = self.add_piece(&item);
        let before = self.last.replace(index);
        if let Some(piece) = self.found.pieces.get_mut(index).filter(|_| bare) {
            piece.after = before;
        }
        match &item.first_page {
            Err(reason) if reason.is_final() => {}
            Err(_) => self.keep(index, item.bytes),
            Ok(page) => {
                if let Some(geometry) = geometry_of(page) {
                    return self.read(index, geometry, item);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn add_piece(&mut self, item: &StreamSegment<'_>) -> usize {
        let path = match &item.name {
            Some(_) => self.stream.path.join(&item.path),
            None => item.path.clone(),
        };
        let probe = Probe {
            source: Source::Streamed(path),
            compressed: item.compressed,
            raw_bytes: None,
            modified: None,
            first_page: item.first_page.clone(),
        };
        let directory = self.directory_of(&item.path);
        self.found.add_piece(self.stream.root, &directory, item.name.clone(), probe)
    }

    /// Keeps the bytes of a segment whose first page does not say how long it is.
    fn keep(&mut self, index: usize, bytes: &mut dyn Read) {
        let room = KEPT_BYTES_MAX - self.kept_bytes;
        let Some(piece) = self.found.pieces.get_mut(index) else { return };
        let path = piece.path().to_owned();
        match kept(bytes, room) {
            Some(kept) => {
                self.kept_bytes += kept.rest.len();
                piece.probe.source = Source::Kept(path, Arc::new(kept));
            }
            None => {
                let mb = KEPT_BYTES_MAX >> 20;
                let reason = format!("no first page, and more than {mb} MB of such segments");
                piece.probe.source =
                    Source::Kept(path, Arc::new(Kept::failing(io::ErrorKind::Other, reason)));
            }
        }
    }

    fn read(
        &mut self,
        index: usize,
        geometry: Geometry,
        item: StreamSegment<'_>,
    ) -> ControlFlow<()> {
        let path = self.found.pieces.get(index).map_or(Path::new(""), Piece::path);
        let Some(segment) = segment_of(index, &item, &geometry, path) else {
            return ControlFlow::Continue(());
        };
        // What an unusual name promises is known when all have passed: take note of everything.
        let standing = Standing::of(item.name.as_ref(), self.found.taken_for, false);
        let segment = Segment { standing, ..segment };
        let bytes = u64::from(geometry.segment_bytes);
        let (start, end) = (Lsn(segment.number * bytes), Lsn((segment.number + 1) * bytes));
        let scope = self.wanted.clone().scope(geometry);
        if start >= scope.end || end <= scope.start {
            return ControlFlow::Continue(());
        }
        let limit = scope.limit.map(|limit| limit.saturating_sub(self.counted).max(1));
        let scope = Scope { limit, ..scope };
        let prototype = (self.prototype.clone(), Turns::default());
        let mut reader: Reader<_, (O, Turns)> = Reader::new(&scope, start, end, prototype);
        let window = std::mem::take(&mut self.window);
        let mut pages = Pages::through(window, &scope, self.progress);
        let from = pages.first_page_in_range(&segment);
        let mut digesting = Digesting::new(item.bytes, geometry.segment_bytes);
        let mut bytes = Bytes::Read(Box::new(&mut digesting));
        if bytes.skip(from).is_ok() {
            pages.push_bytes(&segment, from, &mut bytes, &mut reader);
        }
        drop(bytes);
        self.window = pages.into_window();
        let run = reader.finish();
        self.counted += run.counted + u64::from(run.open.is_some());
        // Others may lie before the end of the range, whichever came first.
        let done = scope.limit.is_some_and(|limit| run.counted >= limit);
        let (run, (mut counted, turns)) = run.with(());
        let (run, ()) = run.with(turns);
        counted.shrink();
        self.passed.insert(index, Passed { run, counted, digest: digesting.finish() });
        match done {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// What is known of a segment while it passes by; `None` if it has no place.
fn segment_of(
    piece: usize,
    item: &StreamSegment<'_>,
    geometry: &Geometry,
    path: &Path,
) -> Option<Segment> {
    let page = item.first_page.as_ref().ok()?;
    let (number, timeline) = match &item.name {
        Some(file) => (file.name.number(geometry.segment_bytes)?, file.name.timeline),
        None => {
            let number = number_of(page.header.address, geometry.segment_bytes)?;
            (number, page.header.timeline)
        }
    };
    Some(Segment {
        number,
        timeline,
        raw_bytes: None,
        modified: None,
        sha1: item.name.as_ref().and_then(|name| name.sha1.clone()),
        named: item.name.is_some(),
        standing: Standing::Aside,
        taken_for: TakenFor::Copy,
        first_page: item.first_page.clone(),
        compressed: item.compressed,
        source: Source::Streamed(path.to_owned()),
        piece,
    })
}

/// All bytes of a reader, if no more than `room` of them are to be kept.
fn kept(bytes: &mut dyn Read, room: usize) -> Option<Kept> {
    let mut kept = Kept::default();
    let mut buffer = vec![0; 64 << 10];
    // One byte after the longest segment tells that there are too many.
    let mut bytes = bytes.take(u64::from(*SEGMENT_BYTES.end()) + 1);
    loop {
        match bytes.read(&mut buffer) {
            Ok(0) => return Some(kept),
            Ok(count) => {
                let new = buffer.get(..count).unwrap_or_default();
                if kept.rest.is_empty() && new.iter().all(|&byte| byte == 0) {
                    kept.zeros += count as u64;
                } else if kept.rest.len() + count <= room {
                    kept.rest.extend_from_slice(new);
                } else {
                    return None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                kept.error = Some((error.kind(), error.to_string()));
                return Some(kept);
            }
        }
    }
}
