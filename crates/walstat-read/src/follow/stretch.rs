//! From where reading stopped to where no valid page follows: pages into the buffer, records out of them.

use super::held::Held;
use super::{Follower, Stretch};
use crate::input::error::InputError;
use crate::input::input_kind::InputKind;
use crate::input::placing::Key;
use crate::scan::pages::WINDOW_BYTES;
use crate::scan::reader::{Flow, Reader};
use crate::scan::scope::Scope;
use std::ops::Range;
use std::time::Instant;
use walstat_format::lsn::Lsn;
use walstat_format::page::{LONG_HEADER_BYTES, PageHeader};

/// Segments that are held open before their turn: they can be read though a checkpoint recycles them.
const AHEAD_BYTES: u64 = 128 << 20;

/// Where a walk over pages has got to.
struct Walk {
    at: Lsn,
    is_followed: bool,
    is_at_end: bool,
    newest: Lsn,
}

impl Follower {
    /// Opens the segments that may come next, before a checkpoint recycles them.
    pub(super) fn hold_ahead(&mut self, number: u64) {
        if self.kind != InputKind::PgWal {
            return;
        }
        let count = (AHEAD_BYTES / self.segment_bytes()).max(2);
        for number in number..number + count {
            let key = (self.lineage.of_file(number, self.scope.geometry.segment_bytes), number);
            // What cannot be opened is told when it is to be read.
            if !matches!(self.is_there(key), Ok(true)) {
                break;
            }
        }
    }

    /// Whether a segment is there; it is opened if it is.
    pub(super) fn is_there(&mut self, key: Key) -> Result<bool, InputError> {
        if self.files.held.contains_key(&key) {
            return Ok(true);
        }
        let Some(copy) = self.files.shelf.segments.get(&key) else { return Ok(false) };
        let may_grow = self.kind == InputKind::PgWal;
        let held = Held::open(copy, &self.scope.geometry, may_grow);
        let held = held.map_err(|error| InputError::io(&copy.path, error))?;
        Ok(held.map(|held| self.files.held.insert(key, held)).is_some())
    }

    /// Reads from the next page on, as far as there is WAL that can be read; `leaps`: over what is no WAL to
    /// the next record, from where the last leap ended.
    pub(super) fn read_stretch(&mut self, until: Instant, leaps: bool) -> Stretch {
        let scope = Scope { start: self.progress.position, ..self.scope.clone() };
        let next_page = self.next_page();
        let leapt_to = self.trouble.stuck.leapt_to.filter(|_| leaps);
        let from = leapt_to.unwrap_or(next_page);
        let observer = std::mem::take(&mut self.observer);
        let pending = self.progress.open.take().map(|open| open.pending);
        let end = Lsn(u64::MAX - 1);
        let reader = Reader::new(&scope, from, end, observer);
        let mut reader = if leaps { reader } else { reader.following(pending, self.progress.last) };
        let newest = self.progress.position;
        let mut walk = Walk { at: from, is_followed: false, is_at_end: true, newest };
        // What was read before is counted all the same.
        if let Err(error) = self.walk(&mut reader, &mut walk, until, leaps) {
            self.trouble.unread = Some(error);
        }
        let run = reader.finish();
        let Walk { at, is_followed, is_at_end, newest } = walk;
        Stretch { run, at, is_followed, is_at_end, newest }
    }

    fn walk(
        &mut self,
        reader: &mut Reader<'_>,
        walk: &mut Walk,
        until: Instant,
        leaps: bool,
    ) -> Result<(), InputError> {
        let page_bytes = self.scope.geometry.page_bytes as usize;
        let mut begun = None;
        loop {
            let key = self.key_at(walk.at);
            if !self.is_there(key)? {
                return Ok(());
            }
            if begun.replace(key) != Some(key) {
                reader.begin_segment(key.0);
                self.note_seen(key);
                self.files.held.retain(|held, _| held.1 >= key.1);
            }
            let (bytes, is_followed) = self.fill(key, walk.at, leaps)?;
            walk.is_followed = is_followed;
            let window = self.buffer.get(..bytes).unwrap_or_default();
            let Some(last) = bytes.checked_sub(page_bytes) else { return Ok(()) };
            // What lies behind the records of the last page may be old.
            if !leaps {
                walk.newest = Lsn(walk.at.0 + last as u64);
            }
            let (whole, rest) = window.split_at(if is_followed { bytes } else { last });
            let mut flow = reader.push(walk.at, whole);
            walk.at = Lsn(walk.at.0 + whole.len() as u64);
            // The last page may be written in part: what goes on after it is read with what follows.
            // Unless it does not go on: recovery gave the record up and wrote another one there.
            let goes_on = || PageHeader::parse(rest).is_some_and(|header| header.continues());
            let fits = |left: u32| left as usize + LONG_HEADER_BYTES <= page_bytes || !goes_on();
            if flow == Flow::Next && !rest.is_empty() && reader.pending_bytes().is_none_or(fits) {
                flow = reader.push(walk.at, rest);
                walk.at = Lsn(walk.at.0 + rest.len() as u64);
            }
            match flow {
                Flow::Done => return Ok(()),
                Flow::SkipSegment => {
                    let segment = self.segment_bytes();
                    walk.at = Lsn((key.1 + 1) * segment);
                    walk.is_followed = true;
                }
                Flow::Next if !is_followed => return Ok(()),
                Flow::Next => {}
            }
            // Where a leap stops within a record, its beginning would be read over the next time.
            let may_stop = !leaps || reader.pending_bytes().is_none();
            if may_stop && Instant::now() >= until {
                walk.is_at_end = false;
                return Ok(());
            }
        }
    }

    /// Fills the buffer with the pages that belong there, from `at` on: how many bytes, and whether others
    /// follow. `anything`: with whatever pages there are.
    fn fill(&mut self, key: Key, at: Lsn, anything: bool) -> Result<(usize, bool), InputError> {
        let page = self.scope.geometry.page_bytes as usize;
        let segment = self.segment_bytes();
        let offset = at.0 % segment;
        let room = usize::try_from(segment - offset).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
        let (mut filled, mut chunk) = (0, page);
        while filled < room {
            let next = Lsn(at.0 + filled as u64);
            if filled > 0 && !anything && !self.begins_page(key, next)? {
                return Ok((filled, false));
            }
            let wanted = chunk.min(room - filled);
            let read = self.read_at(key, offset + filled as u64, filled..filled + wanted)?;
            let pages = (0..read / page).take_while(|page_number| {
                let from = filled + page_number * page;
                let bytes = self.buffer.get(from..from + page).unwrap_or_default();
                anything || self.is_page(key, Lsn(at.0 + from as u64), bytes)
            });
            let sound = pages.count() * page;
            filled += sound;
            if sound < wanted {
                return Ok((filled, false));
            }
            chunk *= 2;
        }
        if offset + (filled as u64) < segment {
            return Ok((filled, true));
        }
        let next = Lsn(at.0 + filled as u64);
        let key = self.key_at(next);
        let is_followed = match self.is_there(key) {
            Ok(is_there) => is_there && self.begins_page(key, next)?,
            Err(error) => {
                self.trouble.unread = Some(error);
                false
            }
        };
        Ok((filled, is_followed))
    }

    fn read_at(&mut self, key: Key, offset: u64, place: Range<usize>) -> Result<usize, InputError> {
        let Some(held) = self.files.held.get_mut(&key) else { return Ok(0) };
        let window = self.buffer.get_mut(place).unwrap_or_default();
        let path = || self.files.shelf.segments.get(&key).map(|copy| copy.path.clone());
        held.read_at(offset, window)
            .map_err(|error| InputError::io(&path().unwrap_or_default(), error))
    }

    /// Whether a page that belongs there begins at `at`.
    pub(super) fn begins_page(&mut self, key: Key, at: Lsn) -> Result<bool, InputError> {
        let offset = at.0 % self.segment_bytes();
        let mut head = [0; LONG_HEADER_BYTES];
        let Some(held) = self.files.held.get_mut(&key) else { return Ok(false) };
        let read = held.read_at(offset, &mut head);
        let read = read.map_err(|error| InputError::io(self.files.shelf.root(), error))?;
        Ok(read == head.len() && self.is_page(key, at, &head))
    }

    fn is_page(&self, key: Key, at: Lsn, bytes: &[u8]) -> bool {
        let header = PageHeader::parse(bytes);
        header
            .is_some_and(|header| self.scope.geometry.check(&header, bytes, at, (0, key.0)).is_ok())
    }
}
