//! Whether the WAL that is there is the one that was counted: a folder may be replaced by an older copy of
//! itself, and the server goes on from there with other records in the same places.

use super::held::Identity;
use super::{Follower, Happening, Look};
use crate::input::error::InputError;
use crate::input::input_kind::InputKind;
use crate::input::names::Standing;
use crate::input::placing::Key;
use walstat_format::lsn::Lsn;
use walstat_format::page::{LONG_HEADER_BYTES, PageHeader};
use walstat_format::record_header::{RECORD_HEADER_BYTES, RecordHeader};

/// What is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum History {
    /// It is to be looked at: reading begins, or a file has taken the place of one that was read.
    #[default]
    Unknown,
    /// What was counted is there.
    Same,
    /// Something else is there in its place, or nothing yet.
    Other,
}

impl Follower {
    /// Whether reading may go on: what was counted last is there, or is gone. Tells once where it is not.
    pub(super) fn is_same_history(&mut self, look: &mut Look) -> Result<bool, InputError> {
        if self.history == History::Same {
            return Ok(true);
        }
        let is_same = match self.has_last()? {
            Some(has_last) => has_last,
            None => !self.is_ahead() && !self.is_on_older() && self.next_links()? != Some(false),
        };
        let now = if is_same { History::Same } else { History::Other };
        let before = std::mem::replace(&mut self.history, now);
        let at = self.progress.last.map_or(self.progress.position, |last| last.lsn);
        let was_read = self.progress.start.is_some();
        match (before, now) {
            (History::Unknown, History::Other) => {
                look.happenings.push(Happening::OtherHistory { at, was_read });
            }
            (History::Other, History::Same) => {
                look.happenings.push(Happening::Back { at: self.progress.position });
            }
            _ => {}
        }
        Ok(is_same)
    }

    /// Has it looked at again where the file with the record that was counted last was taken away or
    /// replaced.
    pub(super) fn doubt_history(&mut self) {
        let key = self.progress.last.map(|last| self.key_at(last.lsn));
        let Some((key, seen)) = key.and_then(|key| Some((key, self.files.seen.get(&key)?))) else {
            return;
        };
        let copy = self.files.shelf.segments.get(&key);
        if self.history == History::Same
            && copy.and_then(|copy| Identity::at(&copy.path)).as_ref() != Some(seen)
        {
            self.history = History::Unknown;
        }
    }

    /// Takes note of the file that is read for a segment.
    pub(super) fn note_seen(&mut self, key: Key) {
        let identity = self.files.held.get(&key).and_then(|held| held.identity.clone());
        self.files.seen.extend(identity.map(|identity| (key, identity)));
    }

    /// Whether the record that was counted last is where it was; `None`: its segment is not there any more,
    /// or its header goes on in the next page.
    pub(super) fn has_last(&mut self) -> Result<Option<bool>, InputError> {
        let Some(last) = self.progress.last else { return Ok(None) };
        let key = self.key_at(last.lsn);
        let page = u64::from(self.scope.geometry.page_bytes);
        if last.lsn.0 % page + RECORD_HEADER_BYTES as u64 > page {
            return Ok(None);
        }
        if self.files.held.contains_key(&key) && !self.has_its_name(key) {
            if !self.files.shelf.segments.contains_key(&key) {
                // It was recycled, and may be read on as long as nobody writes over it.
                return Ok(None);
            }
            self.files.held.remove(&key);
        }
        if !self.is_there(key)? {
            return Ok(None);
        }
        let offset = last.lsn.0 % u64::from(self.scope.geometry.segment_bytes);
        let mut header = [0; RECORD_HEADER_BYTES];
        let Some(held) = self.files.held.get_mut(&key) else { return Ok(None) };
        let read = held.read_at(offset, &mut header);
        let read = read.map_err(|error| InputError::io(self.files.shelf.root(), error))?;
        let has_last = read == header.len() && RecordHeader::parse(&header) == last.header;
        // Recycled while it was read, it holds later WAL.
        if !has_last && !self.has_its_name(key) {
            return Ok(None);
        }
        self.note_seen(key);
        Ok(Some(has_last))
    }

    /// Whether the file that is held open for a segment is the one of that name: what was recycled is not.
    pub(super) fn has_its_name(&mut self, key: Key) -> bool {
        let has_it = |of: &Follower| {
            let held = of.files.held.get(&key).zip(of.files.shelf.segments.get(&key));
            held.is_some_and(|(held, copy)| held.is_at(&copy.path))
        };
        // Where the folder is away nothing has a name.
        if !self.folder.is_there() || has_it(self) {
            return true;
        }
        // What is finished is given its name by pg_receivewal. What cannot be listed is told later.
        _ = self.files.shelf.list(self.first_wanted());
        has_it(self)
    }

    /// Whether the next record links to the one that was counted last, where it begins a page; `None`: that
    /// cannot be told.
    pub(super) fn next_links(&mut self) -> Result<Option<bool>, InputError> {
        let (at, key) = (self.progress.position, self.key_at(self.progress.position));
        let Some(last) = self.progress.last.filter(|_| at == self.page_of(at)) else {
            return Ok(None);
        };
        if !self.is_there(key)? || !self.begins_page(key, at)? || !self.is_page_whole(key, at)? {
            return Ok(None);
        }
        let mut head = [0; LONG_HEADER_BYTES + RECORD_HEADER_BYTES];
        let Some(held) = self.files.held.get_mut(&key) else { return Ok(None) };
        let read = held.read_at(at.0 % u64::from(self.scope.geometry.segment_bytes), &mut head);
        let read = read.map_err(|error| InputError::io(self.files.shelf.root(), error))?;
        let Some(page) = PageHeader::parse(&head).filter(|_| read == head.len()) else {
            return Ok(None);
        };
        if page.continues() {
            return Ok(Some(false));
        }
        let header = head.get(page.bytes()..).and_then(|rest| rest.first_chunk());
        let next = header.map(RecordHeader::parse).filter(|next| next.total_bytes > 0);
        Ok(next.map(|next| next.previous == last.lsn))
    }

    /// Whether nobody writes into a page any more.
    fn is_page_whole(&mut self, key: Key, at: Lsn) -> Result<bool, InputError> {
        let copy = self.files.shelf.segments.get(&key);
        if self.kind != InputKind::PgWal
            && copy.is_some_and(|copy| copy.standing != Standing::Partial)
        {
            return Ok(true);
        }
        let next = Lsn(at.0 + u64::from(self.scope.geometry.page_bytes));
        self.begins_page(key, next)
    }

    /// Whether all segments that are there are of older timelines, as where a standby was promoted for a
    /// test, and then built anew.
    fn is_on_older(&self) -> bool {
        let ours = self.lineage.timeline();
        self.files.shelf.newest_timeline().is_some_and(|newest| newest < ours)
    }

    /// Whether all segments that are there lie before the one that reading has come to the end of.
    fn is_ahead(&self) -> bool {
        let position = self.progress.last.map_or(self.progress.position, |last| last.next);
        let number =
            Lsn(position.0.saturating_sub(1)).0 / u64::from(self.scope.geometry.segment_bytes);
        self.files.shelf.newest().is_some_and(|newest| newest < number)
    }
}
