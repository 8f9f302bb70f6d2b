//! Segments that come through a stream, in any order: each is read at once, as a run of its own, with
//! the sizes that its own first page says. Which of them belong together is decided when all were read,
//! as for files.

mod members;

use super::alone::{Alone, Passed, segment_of};
use super::observe::Select;
use super::observer::Observer;
use super::page_buffer::PageBuffer;
use super::progress::Progress;
use super::scope::Scope;
use super::usual_types::UsualTypes;
use crate::input::discover::{Found, Stream};
use crate::input::input_kind::{ARCHIVE_STATUS, SERVER_DIRECTORIES};
use crate::input::label;
use crate::input::listed::look_into;
use crate::input::moved::SegmentDirectories;
use crate::input::names::{FileName, SegmentFile, file_name};
use crate::input::packing;
use crate::input::piece::geometry_of;
use crate::input::plan::Plan;
use crate::input::probe::{NotWal, Probe};
use crate::input::problem::{Problem, ProblemKind};
use crate::input::source::{KeptBytes, Source};
use crate::input::stream::{Item, StreamSegment, for_each_item, without_dots};
use members::Members;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::segment::SEGMENT_BYTES;

/// What is asked of a scan, before release and sizes are known.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// How checksums are computed; `None`: they are not verified.
    pub crc: Option<Crc32c>,
    /// Records that start and end in this range are counted.
    pub range: Range<Lsn>,
    /// Whether files that nobody writes to any more may be mapped, where the platform allows it and it is
    /// faster than reading them. The process then handles SIGBUS, which a file raises that ends while it is
    /// mapped.
    pub map_files: bool,
    /// Stop after that many counted records.
    pub limit: Option<u64>,
    /// Timeline to follow.
    pub timeline: Option<u32>,
    /// The filters; `None`: all records are counted.
    pub select: Option<Arc<dyn Select>>,
    /// Segments that may be missing: from the first byte of one to that of a later one.
    pub accepted_gaps: Vec<Range<Lsn>>,
}

/// Everything, with its checksums verified.
impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            crc: Some(Crc32c::detect()),
            range: Lsn(0)..Lsn::MAX,
            map_files: false,
            limit: None,
            timeline: None,
            select: None,
            accepted_gaps: Vec::new(),
        }
    }
}

impl Wanted {
    /// The scope of a scan of the plan's segments, wherever they lie by then.
    pub fn scope_of(self, plan: &Plan) -> Scope {
        Scope { directories: plan.directories.clone(), ..self.scope(plan.geometry) }
    }

    /// The scope of a scan of WAL of this geometry, as it passes by.
    pub fn scope(self, geometry: Geometry) -> Scope {
        let Wanted { crc, range: Range { start, end }, map_files, limit, select, .. } = self;
        let usual_types = UsualTypes::of(geometry.version);
        let directories = SegmentDirectories::default();
        Scope { geometry, usual_types, crc, start, end, directories, map_files, limit, select }
    }
}

/// Names of other files in a stream are kept for so many of them.
const UNREAD_MAX: usize = 1000;

/// Segments without a first page do not say how long a segment is; up to so many bytes of them are
/// kept until it is known. Zeros are only counted.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Reads streams, and collects what is in them.
struct Collector<'a> {
    found: &'a mut Found,
    wanted: &'a Wanted,
    progress: &'a Progress,
    prototype: &'a Observer,
    window: PageBuffer,
    /// By the index of the piece.
    passed: BTreeMap<usize, Passed>,
    /// How many records were counted, those that go on after their segment included.
    counted: u64,
    /// Which records come first, where there is a limit.
    order: Order,
    /// How many bytes are kept.
    kept_bytes: usize,
    stream: Stream,
    /// The last segment of the stream.
    last: Option<usize>,
    /// Whether it had neither a name nor a first page: after two of those in a row the stream is not
    /// read on.
    last_was_bare: bool,
    unread: usize,
    members: Members,
}

/// Whether segments come in the order of the WAL: with a limit those are wanted that come first in it.
#[derive(Debug, Default)]
struct Order {
    /// The newest segment so far.
    newest: Option<u64>,
    /// The limit was reached.
    is_done: bool,
    is_lost: bool,
}

impl Order {
    /// Takes note of a segment.
    fn take(&mut self, number: u64) {
        self.is_lost |= self.newest.is_some_and(|newest| number < newest);
        self.newest = self.newest.max(Some(number));
    }
}

/// What came out of streams.
#[derive(Debug)]
pub struct Streamed {
    /// What was counted, by the index of the piece.
    pub passed: BTreeMap<usize, Passed>,
    /// The stream in which a limit was reached, if its segments come in another order than that of the WAL:
    /// others than the first records may have been counted.
    pub unordered: Option<PathBuf>,
}

/// Reads all streams. The segments in them are added to what was found.
pub fn pass(
    found: &mut Found,
    wanted: &Wanted,
    progress: &Progress,
    prototype: &Observer,
) -> Streamed {
    let streams = found.streams.clone();
    let mut collector = Collector::new(found, wanted, progress, prototype);
    for stream in streams {
        collector.stream = stream.clone();
        (collector.last, collector.last_was_bare) = (None, false);
        for_each_item(&stream.path, &mut |item| collector.take(item));
        collector.end_stream();
    }
    let Collector { order, passed, stream, .. } = collector;
    let unordered = (order.is_done && order.is_lost).then_some(stream.path);
    Streamed { passed, unordered }
}

/// Reads the files that were found in the same way, each segment as a run of its own: for partial
/// results.
pub fn pass_files(
    found: &mut Found,
    wanted: &Wanted,
    progress: &Progress,
    prototype: &Observer,
) -> BTreeMap<usize, Passed> {
    look_into(found, &wanted.range);
    let mut collector = Collector::new(found, wanted, progress, prototype);
    for index in 0..collector.found.pieces.len() {
        collector.take_file(index);
    }
    collector.passed
}

impl<'a> Collector<'a> {
    fn new(
        found: &'a mut Found,
        wanted: &'a Wanted,
        progress: &'a Progress,
        prototype: &'a Observer,
    ) -> Self {
        Collector {
            found,
            wanted,
            progress,
            prototype,
            window: PageBuffer::default(),
            passed: BTreeMap::new(),
            counted: 0,
            order: Order::default(),
            kept_bytes: 0,
            stream: Stream { path: PathBuf::new(), root: 0 },
            last: None,
            last_was_bare: false,
            unread: 0,
            members: Members::default(),
        }
    }

    /// Reads a file as if its bytes came through a stream.
    fn take_file(&mut self, index: usize) {
        let Some(piece) = self.found.pieces.get_mut(index) else { return };
        let path = piece.path().to_owned();
        let refused = matches!(&piece.probe.first_page, Err(reason) if reason.is_final());
        // Only files are opened: to open a pipe would wait for somebody to write into it.
        if refused || !piece.probe.source.is_file() {
            return;
        }
        let mut bytes = match piece.probe.source.open(0) {
            Ok(bytes) => bytes.into_reader(),
            Err(error) => {
                self.progress.note_error(&path, &error);
                let kept = KeptBytes::failing(error.kind(), error.to_string());
                piece.probe.source = piece.probe.source.kept(kept);
                return;
            }
        };
        piece.probe.source = piece.probe.source.streamed();
        let segment = StreamSegment {
            path: piece.path().to_owned(),
            name: piece.name.clone(),
            first_page: piece.probe.first_page.clone(),
            compressed: piece.probe.compressed,
            codec: None,
            raw_bytes: piece.probe.raw_bytes,
            bytes: &mut bytes,
            is_again: false,
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
            Item::History(history) => self.members.take_history(history),
            Item::BackupHistory(path, text) => self.take_backup_history(&path, text),
            Item::NotWal(file, reason) => self.refuse(Path::new(&file), reason),
            Item::NoFile(path, kind) => match FileName::parse(&file_name(&path)) {
                FileName::History(timeline) => {
                    self.found.histories.add_unfetched(timeline, format!("a {kind}"));
                }
                _ => self.refuse(&path, NotWal::NoFile(kind)),
            },
            Item::Other(path) => self.take_other(&path),
            Item::Directory(path) => self.look_at(&path),
            Item::Broken(file, error) => self.take_error(file, &error),
        }
        ControlFlow::Continue(())
    }

    /// What is told of a file that cannot be read.
    fn told(&self, error: &io::Error) -> String {
        self.progress.note_error(&self.stream.path, error);
        error.to_string()
    }

    fn take_backup_history(&mut self, path: &Path, text: io::Result<Vec<u8>>) {
        if self.unread < UNREAD_MAX {
            let text = text.map_err(|error| self.told(&error));
            let told = text.and_then(|text| {
                let text = String::from_utf8_lossy(&text);
                label::told(&text, &file_name(path)).map_err(|error| error.to_string())
            });
            let shown = self.stream.path.join(path).display().to_string();
            self.found.backups.push(told.map_err(|error| format!("{shown}: {error}")));
        }
        self.take_other(path);
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

    /// Notes what the path of a member says about the directories around it.
    fn look_at(&mut self, path: &Path) {
        let parent = self.directory_of(path);
        match path.file_name().and_then(|name| name.to_str()) {
            Some(ARCHIVE_STATUS) => self.note_server_directory(&parent),
            Some("PG_VERSION") => {
                SERVER_DIRECTORIES
                    .iter()
                    .for_each(|name| self.note_server_directory(&parent.join(name)));
            }
            _ => {}
        }
    }

    fn note_server_directory(&mut self, directory: &Path) {
        let index = self.found.directories.index(self.stream.root, directory);
        self.found.directories.note_server_directory(index);
    }

    /// The directory of a member, below the stream that it came in.
    fn directory_of(&self, member: &Path) -> PathBuf {
        let inner = member.parent().unwrap_or_else(|| Path::new(""));
        let inner = without_dots(inner);
        if inner.as_os_str().is_empty() {
            self.stream.path.clone()
        } else {
            self.stream.path.join(inner)
        }
    }

    /// A stream, or a member of one, that cannot be read to its end.
    fn take_error(&mut self, file: String, error: &io::Error) {
        let found = self.told(error);
        let (kind, expected) = match error.kind() {
            io::ErrorKind::UnexpectedEof => (ProblemKind::Truncated, "the rest of the stream"),
            _ => (ProblemKind::Unreadable, "bytes that can be read"),
        };
        let problem = Problem::of_file(kind, &file, expected.to_owned(), found);
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
        let index = self.add_member(&item);
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
            source: Source::Streamed(path.into(), item.codec),
            compressed: item.compressed,
            raw_bytes: item.raw_bytes,
            modified: None,
            stamp: None,
            first_page: item.first_page.clone(),
        };
        self.found.problems.extend(misnamed(item.name.as_ref(), &probe));
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
                if let Some((kind, text)) = &kept.error {
                    self.progress.note_error(&path, &io::Error::new(*kind, text.clone()));
                }
                self.kept_bytes += kept.rest.len();
                piece.probe.source = piece.probe.source.kept(kept);
            }
            None => {
                let mb = KEPT_BYTES_MAX >> 20;
                let reason = format!("no first page, and more than {mb} MB of such segments");
                let kept = KeptBytes::failing(io::ErrorKind::Other, reason);
                piece.probe.source = piece.probe.source.kept(kept);
            }
        }
    }

    fn read(
        &mut self,
        index: usize,
        geometry: Geometry,
        item: StreamSegment<'_>,
    ) -> ControlFlow<()> {
        let piece = self.found.pieces.get(index);
        let segment =
            piece.and_then(|piece| segment_of(index, piece, self.found.taken_for, &geometry));
        let Some(segment) = segment else { return ControlFlow::Continue(()) };
        let bytes = u64::from(geometry.segment_bytes);
        let (start, end) = (Lsn(segment.number * bytes), Lsn((segment.number + 1) * bytes));
        let scope = self.wanted.clone().scope(geometry);
        if start >= scope.end || end <= scope.start {
            return ControlFlow::Continue(());
        }
        if scope.limit.is_some() {
            self.order.take(segment.number);
            if self.order.is_done {
                return ControlFlow::Continue(());
            }
        }
        let limit = scope.limit.map(|limit| limit.saturating_sub(self.counted).max(1));
        let scope = Scope { limit, ..scope };
        let Collector { progress, prototype, .. } = *self;
        let alone = Alone { scope: &scope, progress, prototype };
        let passed = alone.read(&segment, item.bytes, &mut self.window);
        let run = &passed.run;
        self.counted += run.counted + u64::from(run.open.is_some());
        self.order.is_done = scope.limit.is_some_and(|limit| run.counted >= limit);
        // A member that comes later may lie before this one: so its name is looked at.
        let is_over = self.order.is_done && !segment.named;
        self.passed.insert(index, passed);
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The problem of a member that the tool of its suffix does not unpack.
fn misnamed(name: Option<&SegmentFile>, probe: &Probe) -> Option<Problem> {
    let file = file_name(probe.source.path());
    packing::misnamed(&file, name?, probe.source.codec(), &probe.first_page)
}

/// All bytes of a reader, if there are at most `room`; zeros at the start do not count.
fn kept(bytes: &mut dyn Read, room: usize) -> Option<KeptBytes> {
    let mut kept = KeptBytes::default();
    let mut buffer = vec![0; 64 << 10];
    // One byte more than the longest segment has, to see that there are too many.
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
