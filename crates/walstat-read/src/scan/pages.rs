//! Brings the pages of segments to a reader, through one buffer that is used again and again.

use super::page_buffer::PageBuffer;
use super::progress::Progress;
use super::reader::{Flow, Reader};
use super::scope::Scope;
use crate::input::faster_way::{FasterWay, Way, processor_time};
use crate::input::names::Standing;
use crate::input::problem::{Fetched, Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::source::Bytes;
use crate::input::storage::Ahead;
use sha1::{Digest, Sha1};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use walstat_format::lsn::Lsn;

/// How much is read, or looked at, at a time: it fits into the second-level cache, and is a multiple of
/// every page size.
pub(crate) const WINDOW_BYTES: usize = 512 << 10;

/// Brings pages to a reader; one for each thread, which keeps its buffer.
pub struct Pages<'a> {
    scope: &'a Scope,
    progress: &'a Progress,
    window: PageBuffer,
    /// Whether files may be mapped.
    map_files: bool,
    faster: FasterWay,
    /// How long it takes to bring in the segment at hand, while that is measured.
    trial: Option<Trial>,
    is_lost: bool,
    /// What comes next, where it has to be fetched.
    ahead: Ahead,
}

/// What is measured of a segment.
struct Trial {
    way: Way,
    bytes: u64,
    time: Duration,
}

/// A segment while it is read.
struct Place<'s> {
    segment: &'s Segment,
    first: u64,
    /// Length of a segment.
    length: u64,
    sha1: Option<Sha1>,
    progress: &'s Progress,
}

impl<'a> Pages<'a> {
    /// Brings pages for the scan that `scope` describes, through a buffer of its own.
    pub fn new(scope: &'a Scope, progress: &'a Progress) -> Self {
        Pages::through(PageBuffer::default(), scope, progress)
    }

    /// The same, through a buffer that was used before.
    pub fn through(window: PageBuffer, scope: &'a Scope, progress: &'a Progress) -> Self {
        let (map_files, ahead) = (scope.map_files, Ahead::default());
        let faster = FasterWay::default();
        Pages { scope, progress, window, map_files, faster, trial: None, is_lost: false, ahead }
    }

    /// The buffer, to be used again.
    pub(crate) fn into_window(self) -> PageBuffer {
        self.window
    }

    /// Says which segments come next.
    pub(crate) fn announce(&mut self, segments: &[Segment]) {
        let expected = segments.iter().map(|segment| {
            let from = self.first_page_in_range(segment);
            let at = if segment.source.codec().is_some() { 0 } else { from };
            (segment.source.path().to_owned(), at, self.wanted(segment, from) + from - at)
        });
        let expected: Vec<(PathBuf, u64, u64)> = expected.collect();
        self.ahead.announce(expected);
    }

    /// Opens a segment and pushes its pages, from the range's start on.
    pub(crate) fn push_segment(&mut self, segment: &Segment, reader: &mut Reader<'_>) -> Flow {
        let from = self.first_page_in_range(segment);
        match self.open(segment, from) {
            Ok(mut bytes) => {
                let flow = self.push_bytes(segment, from, &mut bytes, reader);
                if let Bytes::Mapped(mapped) = &mut bytes {
                    self.is_lost |= mapped.is_lost();
                }
                if let Some(Trial { way, bytes, time }) = self.trial.take() {
                    self.faster.took(way, bytes, time);
                }
                flow
            }
            Err(error) => {
                reader.begin_segment(segment.timeline);
                let first = self.first_byte(segment);
                let length = u64::from(self.scope.geometry.segment_bytes);
                let place = Place { segment, first, length, sha1: None, progress: self.progress };
                fail(&place, from, &error, reader)
            }
        }
    }

    /// Opens a segment, where it was found or where it lies by now.
    fn open(&mut self, segment: &Segment, from: u64) -> io::Result<Bytes<'static>> {
        match self.open_there(segment, from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let moved = self.scope.directories.find(segment, &self.scope.geometry);
                moved.map_or(Err(error), |moved| moved.source.open(from))
            }
            opened => opened,
        }
    }

    fn open_there(&mut self, segment: &Segment, from: u64) -> io::Result<Bytes<'static>> {
        let may_map = self.map_files && segment.is_at_rest();
        let mapped = if may_map { self.map(segment, from)? } else { None };
        let wanted = self.wanted(segment, from);
        let ahead = &mut self.ahead;
        mapped.map_or_else(|| segment.source.open_through(ahead, from, wanted), Ok)
    }

    /// The segment mapped, if it can be, and as long as that is not known to be the slower way.
    fn map(&mut self, segment: &Segment, from: u64) -> io::Result<Option<Bytes<'static>>> {
        let (way, is_timed) = self.faster.next();
        if way == Way::Read && !is_timed {
            return Ok(None);
        }
        let mapped = segment.source.map(from)?;
        if mapped.is_some() && is_timed {
            self.trial = Some(Trial { way, bytes: 0, time: Duration::ZERO });
        }
        Ok(mapped.filter(|_| way == Way::Map))
    }

    /// How much of a segment the range needs, from byte `from` on.
    fn wanted(&self, segment: &Segment, from: u64) -> u64 {
        let length = u64::from(self.scope.geometry.segment_bytes);
        let first = self.first_byte(segment);
        useful_bytes(self.scope, first + from, length.saturating_sub(from))
    }

    /// Whether a file became shorter, or failed, while it was mapped: what was pushed is to be forgotten and
    /// read again. From now on, nothing is mapped.
    pub(crate) fn are_lost(&mut self) -> bool {
        self.map_files &= !self.is_lost;
        std::mem::take(&mut self.is_lost)
    }

    /// Where in a segment the first page lies that the range needs.
    pub fn first_page_in_range(&self, segment: &Segment) -> u64 {
        let page_bytes = u64::from(self.scope.geometry.page_bytes);
        let from = self.scope.start.0.saturating_sub(self.first_byte(segment));
        from / page_bytes * page_bytes
    }

    fn first_byte(&self, segment: &Segment) -> u64 {
        segment.number * u64::from(self.scope.geometry.segment_bytes)
    }

    /// Pushes the pages of a segment, whose `bytes` begin at offset `from`.
    pub fn push_bytes(
        &mut self,
        segment: &Segment,
        from: u64,
        bytes: &mut Bytes<'_>,
        reader: &mut Reader<'_>,
    ) -> Flow {
        let length = u64::from(self.scope.geometry.segment_bytes);
        let sha1 = segment.sha1.as_ref().filter(|_| from == 0).map(|_| Sha1::new());
        let (first, progress) = (self.first_byte(segment), self.progress);
        let mut place = Place { segment, first, length, sha1, progress };
        reader.begin_segment(segment.timeline);
        let mut offset = from;
        let (mut switched, mut skipped) = (false, false);
        while offset < length {
            let wanted = useful_bytes(self.scope, place.first + offset, length - offset);
            let wanted = WINDOW_BYTES.min(usize::try_from(wanted).unwrap_or(usize::MAX));
            let window = match self.next_window(bytes, wanted) {
                Ok(window) => window,
                Err(error) => return fail(&place, offset, &error, reader),
            };
            let filled = window.len();
            if let Some(sha1) = &mut place.sha1 {
                sha1.update(window);
            }
            match reader.push(Lsn(place.first + offset), window) {
                Flow::Next => {}
                Flow::SkipSegment => switched = true,
                Flow::Done => return Flow::Done,
            }
            offset += filled as u64;
            if switched && bytes.is_file() && place.sha1.is_none() {
                let end = segment.raw_bytes.unwrap_or(length).min(length);
                reader.skip(Lsn(place.first + offset), end.saturating_sub(offset));
                offset = end.max(offset);
                skipped = true;
                break;
            }
            if filled < wanted {
                // The end, unless an error ended the bytes early: then the next call returns it.
                match bytes.fill(&mut [0; 1]) {
                    Ok(_) => break,
                    Err(error) => return fail(&place, offset, &error, reader),
                }
            }
        }
        if offset < length {
            cut(&place, offset, None, reader);
        }
        if !skipped {
            check_end(&place, offset, bytes, reader);
        } else if segment.raw_bytes.is_some_and(|bytes| bytes > length) {
            reader.note(Problem::trailing_bytes(&segment.file(), length));
        }
        Flow::Next
    }

    /// The next `wanted` bytes, or as many as there are.
    fn next_window<'w>(
        &'w mut self,
        bytes: &'w mut Bytes<'_>,
        wanted: usize,
    ) -> io::Result<&'w [u8]> {
        let begun = self.trial.is_some().then(processor_time);
        let window = if let Bytes::Mapped(mapped) = bytes {
            mapped.next(wanted)
        } else {
            let filled = bytes.fill(self.window.fresh(wanted, WINDOW_BYTES))?;
            self.window.filled(filled)
        };
        if let (Some(trial), Some(begun)) = (&mut self.trial, begun) {
            trial.bytes += window.len() as u64;
            trial.time += processor_time().saturating_sub(begun);
        }
        self.progress.add(window.len());
        Ok(window)
    }
}

/// How much there is to read at `lsn`, of the `left` bytes of its segment: what lies in the range, and one
/// page more, which shows that the range has ended.
fn useful_bytes(scope: &Scope, lsn: u64, left: u64) -> u64 {
    let page_bytes = u64::from(scope.geometry.page_bytes);
    let in_range = scope.end.0.saturating_sub(lsn);
    (in_range / page_bytes).saturating_add(2).saturating_mul(page_bytes).min(left)
}

/// The bytes end with an error. A compressed file that is cut off is treated like an uncompressed one. Of one
/// of which nothing came at all, the checksum tells nothing.
fn fail(place: &Place<'_>, offset: u64, error: &io::Error, reader: &mut Reader<'_>) -> Flow {
    place.progress.note_error(place.segment.source.path(), error);
    let lsn = Lsn(place.first + offset);
    match error.kind() {
        io::ErrorKind::UnexpectedEof => cut(place, offset, Some(error), reader),
        _ => {
            let expected = "readable bytes".to_owned();
            note(place, ProblemKind::Unreadable, lsn, expected, error.to_string(), reader);
            reader.unreadable(lsn, error.to_string());
            if offset == 0 {
                return Flow::Next;
            }
        }
    }
    check_sha1(place, reader);
    Flow::Next
}

/// The bytes end before the segment does, with an `error` if a stream ends in its middle. That is a problem
/// for a file with a segment's full name; for others it only matters what follows.
fn cut(place: &Place<'_>, offset: u64, error: Option<&io::Error>, reader: &mut Reader<'_>) {
    let lsn = Lsn(place.first + offset);
    if place.segment.claims_whole_segment() {
        let expected = format!("{} bytes", place.length);
        let found = error.map_or_else(|| "end of file".to_owned(), io::Error::to_string);
        let found = format!("{found} after {offset} bytes");
        let problem =
            Problem::of_file(ProblemKind::Truncated, &place.segment.file(), expected, found);
        let fetched = error.is_none().then_some(Fetched::InAnotherSize);
        reader.note(Problem { lsn: Some(lsn), fetched, ..problem });
    }
    reader.cut(lsn);
}

/// Reports a problem of the file itself at `lsn`.
fn note(
    place: &Place<'_>,
    kind: ProblemKind,
    lsn: Lsn,
    expected: String,
    found: String,
    reader: &mut Reader<'_>,
) {
    let problem = Problem::of_file(kind, &place.segment.file(), expected, found);
    reader.note(Problem { lsn: Some(lsn), ..problem });
}

/// Checks that nothing follows a whole segment, and that it has the SHA-1 in the file's name.
fn check_end(place: &Place<'_>, offset: u64, bytes: &mut Bytes<'_>, reader: &mut Reader<'_>) {
    let file = place.segment.file();
    if offset == place.length {
        match bytes.fill(&mut [0; 1]) {
            Ok(0) => {}
            Ok(_) => {
                // Where its stream is broken farther on, a tool fails, and no server gets the file.
                let fetched = ends_badly(bytes, place.length).then_some(Fetched::NotAtAll);
                let problem = Problem::trailing_bytes(&file, place.length);
                reader.note(Problem { fetched, ..problem });
            }
            // A compressed file that pg_receivewal is still writing has no end mark.
            Err(error) if place.segment.standing == Standing::Partial && is_cut(&error) => {}
            Err(error) => {
                place.progress.note_error(place.segment.source.path(), &error);
                let (kind, expected) = if is_of_codec(&error) {
                    (ProblemKind::CodecChecksum, "a compressed file that ends as it should")
                } else {
                    (ProblemKind::Unreadable, "readable bytes")
                };
                let found = error.to_string();
                reader.note(Problem::of_file(kind, &file, expected.to_owned(), found));
            }
        }
    }
    check_sha1(place, reader);
}

/// Whether an error comes within so many bytes.
fn ends_badly(bytes: &mut Bytes<'_>, most: u64) -> bool {
    let mut left = most;
    let mut buffer = [0; 8192];
    while left > 0 {
        match bytes.fill(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => left = left.saturating_sub(count as u64),
            Err(_) => return true,
        }
    }
    false
}

fn check_sha1(place: &Place<'_>, reader: &mut Reader<'_>) {
    let file = place.segment.file();
    if let (Some(sha1), Some(expected)) = (&place.sha1, &place.segment.sha1) {
        let digest = sha1.clone().finalize();
        let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if !found.eq_ignore_ascii_case(expected) {
            let expected = format!("SHA-1 {expected}, as the file name says");
            let found = format!("SHA-1 {found}");
            reader.note(Problem::of_file(ProblemKind::ArchiveChecksum, &file, expected, found));
        }
    }
}

/// Whether a compressed file breaks the rules of its codec: what cannot be had of it tells nothing of that.
fn is_of_codec(error: &io::Error) -> bool {
    is_cut(error) || error.kind() == io::ErrorKind::InvalidData
}

fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}
