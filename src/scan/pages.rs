//! The pages of segments, brought to a reader through one reused window.

use super::reader::{Flow, Reader};
use super::record::{Observe, Select};
use super::scope::Scope;
use super::window::Window;
use crate::input::plan::Segment;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::source::Bytes;
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use sha1::{Digest, Sha1};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A window is filled at once: it fits the second-level cache and is any page size's multiple.
const WINDOW_BYTES: usize = 512 << 10;

/// Bytes read so far, for whoever shows progress.
pub type Progress = AtomicU64;

/// Brings pages; kept for its window.
pub struct Pages<'a, S> {
    scope: &'a Scope<S>,
    progress: &'a Progress,
    window: Window,
    /// CRC-32C of the bytes pushed, where they are to be compared with those of a copy.
    content: Option<u32>,
}

/// A segment while it is read.
struct Place<'s> {
    segment: &'s Segment,
    first: u64,
    /// Of the segment, bytes.
    length: u64,
    sha1: Option<Sha1>,
}

impl<'a, S: Select> Pages<'a, S> {
    /// Brings pages of what `scope` describes.
    pub fn new(scope: &'a Scope<S>, progress: &'a Progress) -> Self {
        Pages { scope, progress, window: Window::default(), content: None }
    }

    /// Has the checksum of all bytes computed that are pushed from now on.
    pub fn watch_content(&mut self) {
        self.content = Some(Crc32c::START);
    }

    /// The checksum of all bytes pushed since [`Pages::watch_content`].
    pub fn content(&self) -> Option<u32> {
        self.content
    }

    /// Opens a segment and pushes its pages, from the range's start on.
    pub fn push_segment<O: Observe>(
        &mut self,
        segment: &Segment,
        reader: &mut Reader<'_, S, O>,
    ) -> Flow {
        let from = self.first_page_in_range(segment);
        match segment.source.open(from) {
            Ok(mut bytes) => self.push_bytes(segment, from, &mut bytes, reader),
            Err(error) => {
                reader.begin_segment(segment.timeline);
                let lsn = Lsn(self.first_byte(segment) + from);
                reader.unreadable(lsn, error.to_string());
                Flow::Next
            }
        }
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
    pub fn push_bytes<O: Observe>(
        &mut self,
        segment: &Segment,
        from: u64,
        bytes: &mut Bytes<'_>,
        reader: &mut Reader<'_, S, O>,
    ) -> Flow {
        let length = u64::from(self.scope.geometry.segment_bytes);
        let sha1 = segment.sha1.as_ref().filter(|_| from == 0).map(|_| Sha1::new());
        let mut place = Place { segment, first: self.first_byte(segment), length, sha1 };
        reader.begin_segment(segment.timeline);
        let mut offset = from;
        let (mut switched, mut skipped) = (false, false);
        while offset < length {
            let wanted = WINDOW_BYTES.min(usize::try_from(length - offset).unwrap_or(usize::MAX));
            let filled = match self.fill(bytes, wanted) {
                Ok(filled) => filled,
                Err(error) => return fail(&place, offset, &error, reader),
            };
            let window = self.window.filled(filled);
            if let Some(sha1) = &mut place.sha1 {
                sha1.update(window);
            }
            if let Some(content) = &mut self.content {
                *content = Crc32c::detect().update(*content, window);
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
                // The end, unless the error that broke the window off comes with the next call.
                match bytes.fill(&mut [0; 1]) {
                    Ok(_) => break,
                    Err(error) => return fail(&place, offset, &error, reader),
                }
            }
        }
        if offset < length {
            reader.cut(Lsn(place.first + offset));
        }
        if !skipped {
            check_end(&place, offset, bytes, reader);
        } else if segment.raw_bytes.is_some_and(|bytes| bytes > length) {
            let file = crate::input::discover::file_name(segment.source.path());
            reader.note(Problem::trailing_bytes(&file, length));
        }
        Flow::Next
    }

    /// Fills the window with `wanted` bytes, or as many as there are.
    fn fill(&mut self, bytes: &mut Bytes<'_>, wanted: usize) -> io::Result<usize> {
        let filled = bytes.fill(self.window.fresh(wanted, WINDOW_BYTES))?;
        self.progress.fetch_add(filled as u64, Ordering::Relaxed);
        Ok(filled)
    }
}

/// The bytes end with an error: a compressed stream that was cut off is a file that was cut.
fn fail<S: Select, O: Observe>(
    place: &Place<'_>,
    offset: u64,
    error: &io::Error,
    reader: &mut Reader<'_, S, O>,
) -> Flow {
    let lsn = Lsn(place.first + offset);
    match error.kind() {
        io::ErrorKind::UnexpectedEof => reader.cut(lsn),
        _ => reader.unreadable(lsn, error.to_string()),
    }
    Flow::Next
}

/// Behind a whole segment nothing may follow, and what the archive says of it must hold.
fn check_end<S: Select, O: Observe>(
    place: &Place<'_>,
    offset: u64,
    bytes: &mut Bytes<'_>,
    reader: &mut Reader<'_, S, O>,
) {
    let file = place.segment.source.path();
    let file = crate::input::discover::file_name(file);
    if offset == place.length {
        match bytes.fill(&mut [0; 1]) {
            Ok(0) => {}
            Ok(_) => reader.note(Problem::trailing_bytes(&file, place.length)),
            // A pg_receivewal file that is still being written has no end mark.
            Err(error) if place.segment.partial && is_cut(&error) => {}
            Err(error) => reader.note(Problem::of_file(
                ProblemKind::CodecChecksum,
                &file,
                "a compressed file that ends as it should".into(),
                error.to_string(),
            )),
        }
    }
    if let (Some(sha1), Some(expected)) = (&place.sha1, &place.segment.sha1) {
        let digest = sha1.clone().finalize();
        let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if found != *expected {
            let expected = format!("SHA-1 {expected}, as the file name says");
            let found = format!("SHA-1 {found}");
            reader.note(Problem::of_file(ProblemKind::ArchiveChecksum, &file, expected, found));
        }
    }
}

fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}
