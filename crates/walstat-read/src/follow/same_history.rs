//! Whether the WAL that is there is the one that was counted: a folder may be replaced by an older copy of
//! itself, and the server goes on from there with other records in the same places.

use super::{Follower, Happening, Look};
use crate::input::error::InputError;
use walstat_format::lsn::Lsn;
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
    /// Whether reading may go on: what was counted last is there. Tells once where it is not.
    pub(super) fn is_same_history(&mut self, look: &mut Look) -> Result<bool, InputError> {
        if self.history == History::Same {
            return Ok(true);
        }
        let is_same = match self.has_last()? {
            Some(has_last) => has_last,
            None => !self.is_ahead(),
        };
        let now = if is_same { History::Same } else { History::Other };
        let before = std::mem::replace(&mut self.history, now);
        let at = self.last.map_or(self.position, |last| last.lsn);
        match (before, now) {
            (History::Unknown, History::Other) => {
                look.happenings.push(Happening::OtherHistory { at });
            }
            (History::Other, History::Same) => {
                look.happenings.push(Happening::Back { at: self.position });
            }
            _ => {}
        }
        Ok(is_same)
    }

    /// Whether the record that was counted last is where it was; `None`: its segment is not there, or its
    /// header goes on in the next page.
    pub(super) fn has_last(&mut self) -> Result<Option<bool>, InputError> {
        let Some(last) = self.last else { return Ok(None) };
        let key = self.key_at(last.lsn);
        let page = u64::from(self.scope.geometry.page_bytes);
        if last.lsn.0 % page + RECORD_HEADER_BYTES as u64 > page || !self.is_there(key)? {
            return Ok(None);
        }
        let offset = last.lsn.0 % u64::from(self.scope.geometry.segment_bytes);
        let mut header = [0; RECORD_HEADER_BYTES];
        let Some(held) = self.held.get_mut(&key) else { return Ok(None) };
        let read = held.read_at(offset, &mut header);
        let read = read.map_err(|error| InputError::io(self.shelf.root(), error))?;
        Ok(Some(read == header.len() && RecordHeader::parse(&header) == last.header))
    }

    /// Whether all segments that are there lie before the one that reading has come to the end of.
    fn is_ahead(&self) -> bool {
        let position = self.last.map_or(self.position, |last| last.next);
        let number =
            Lsn(position.0.saturating_sub(1)).0 / u64::from(self.scope.geometry.segment_bytes);
        let all = self.shelf.all().unwrap_or_default();
        let newest = all.keys().map(|key| key.1).max();
        newest.is_some_and(|newest| newest < number)
    }
}
