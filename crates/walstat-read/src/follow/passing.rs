//! How following goes on where the next record does not come: after segments that are gone, after damage, on
//! a newer timeline.

use super::same_history::History;
use super::{Follower, Happening, Look, Stuck};
use crate::input::control;
use crate::input::error::InputError;
use crate::input::input_kind::InputKind;
use crate::input::placing::Key;
use crate::input::timeline::Lineage;
use crate::scan::changing::SETTLING;
use crate::scan::observe::Observe;
use std::time::{Duration, Instant};
use walstat_format::lsn::Lsn;
use walstat_format::page::{PageHeader, SHORT_HEADER_BYTES};

/// Archivers may store segments in another order.
const ARCHIVE_SETTLING: Duration = Duration::from_secs(10);
/// Where no valid record has come for so long though WAL follows, that is damage: a server that writes there
/// would have written one.
const DAMAGE_AFTER: Duration = Duration::from_secs(5);
/// Of segments that a server has prepared for later none has WAL: so many are tried.
const LATER_MAX: usize = 16;

impl Follower {
    /// Goes on after segments that are gone; whether there were any.
    pub(super) fn pass_hole(&mut self, look: &mut Look) -> Result<bool, InputError> {
        let mut key = self.key_at(self.next_page());
        if self.is_there(key)? && !self.is_recycled(key)? {
            // A record that begins in its last page may go on in the next one.
            let end = Lsn(self.next_page().0 + u64::from(self.scope.geometry.page_bytes));
            let next = self.key_at(end);
            if next == key || self.is_there(next)? {
                self.trouble.hole_since = None;
                return Ok(false);
            }
            key = next;
        }
        let Some(later) = self.later_segment(key.1)? else {
            self.trouble.hole_since = None;
            return Ok(false);
        };
        let settling = if self.kind == InputKind::PgWal { SETTLING } else { ARCHIVE_SETTLING };
        let since = *self.trouble.hole_since.get_or_insert_with(Instant::now);
        if since.elapsed() < settling {
            // It may be there under its name by now.
            let root = self.shelf_root();
            self.files
                .shelf
                .list(self.first_wanted())
                .map_err(|error| InputError::io(&root, error))?;
            return Ok(false);
        }
        let next = Lsn(later * self.segment_bytes());
        self.lose(next);
        look.is_at_end = false;
        Ok(true)
    }

    /// Counts what lies before `next` as lost.
    fn lose(&mut self, next: Lsn) {
        self.trouble.hole_since = None;
        (self.progress.open, self.progress.last) = (None, None);
        self.progress.lost_from.get_or_insert(self.progress.position);
        self.progress.lost_bytes += next.0.saturating_sub(self.progress.position.0);
        // What was leapt over before was told then.
        let leapt_to = self.trouble.stuck.leapt_to.take();
        self.observer.lost(leapt_to.map_or(self.progress.position, |at| at.min(next))..next);
        self.progress.position = next;
    }

    /// Whether a segment that is held open was recycled, and no other file has its name.
    fn is_recycled(&mut self, key: Key) -> Result<bool, InputError> {
        if !self.is_overwritten(key)? && self.has_its_name(key) {
            return Ok(false);
        }
        self.files.held.remove(&key);
        Ok(!self.is_there(key)?)
    }

    /// Whether a segment that is held open holds a later one by now.
    fn is_overwritten(&mut self, key: Key) -> Result<bool, InputError> {
        let at = self.next_page();
        let mut head = [0; SHORT_HEADER_BYTES];
        let Some(held) = self.files.held.get_mut(&key) else { return Ok(false) };
        let read = held.read_at(at.0 % u64::from(self.scope.geometry.segment_bytes), &mut head);
        let read = read.map_err(|error| InputError::io(self.files.shelf.root(), error))?;
        let header = PageHeader::parse(&head).filter(|_| read == head.len());
        Ok(header.is_some_and(|header| {
            header.magic == self.scope.geometry.version.magic && header.address > at
        }))
    }

    /// The number of the first segment after `number` that is there and has WAL.
    fn later_segment(&mut self, number: u64) -> Result<Option<u64>, InputError> {
        Ok(self.later_segments(number)?.map(|(first, _)| first))
    }

    /// The same, and the number of the last one that follows it without a segment between that has none.
    fn later_segments(&mut self, number: u64) -> Result<Option<(u64, u64)>, InputError> {
        let keys = self.files.shelf.segments.keys();
        let mut numbers: Vec<u64> = keys.map(|key| key.1).filter(|later| *later > number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let is_written = self.kind == InputKind::PgWal;
        let tried = if is_written { LATER_MAX } else { usize::MAX };
        let (mut found, mut misses) = (None, 0);
        for number in numbers {
            // What is stored has WAL, and may have to be unpacked to be looked into.
            if (found.is_some() && !is_written) || self.has_wal(number)? {
                found = Some((found.map_or(number, |(first, _)| first), number));
            } else {
                misses += 1;
            }
            if misses >= tried || (misses > 0 && found.is_some()) {
                break;
            }
        }
        Ok(found)
    }

    /// Whether a segment begins with WAL that belongs there. A server may have prepared more of them than
    /// there may be open files.
    fn has_wal(&mut self, number: u64) -> Result<bool, InputError> {
        let first = Lsn(number * self.segment_bytes());
        let key = self.key_at(first);
        let was_held = self.files.held.contains_key(&key);
        let has_wal = self.is_there(key)? && self.begins_page(key, first)?;
        if !was_held && self.kind == InputKind::PgWal {
            self.files.held.remove(&key);
        }
        Ok(has_wal)
    }

    /// Takes note of how far the WAL goes that lies beyond a place which reading does not get over.
    pub(super) fn note_beyond(&mut self) -> Result<(), InputError> {
        let number = self.next_page().0 / self.segment_bytes();
        if (self.trouble.hole_since.is_some() || self.has_wal(number + 1)?)
            && let Some((_, last)) = self.later_segments(number)?
        {
            self.progress.newest = self.progress.newest.max(Lsn(last * self.segment_bytes()));
        }
        Ok(())
    }

    /// Whether WAL that is there will be read after what is missing or damaged before it, in a moment.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn is_held_up(&mut self) -> Result<bool, InputError> {
        // What cannot be read is waited for, and told meanwhile.
        if !self.is_readable() {
            return Ok(false);
        }
        // What is not passed by then is the end.
        let waits =
            self.trouble.stuck.since.is_some_and(|since| since.elapsed() < 2 * DAMAGE_AFTER);
        let number = self.next_page().0 / self.segment_bytes();
        let is_hole = self.trouble.hole_since.is_some();
        Ok(is_hole
            || waits && (self.trouble.stuck.is_followed || self.later_segment(number)?.is_some()))
    }

    /// Goes on after what no server is writing any more; whether it has got on.
    pub(super) fn pass_damage(
        &mut self,
        until: Instant,
        look: &mut Look,
    ) -> Result<bool, InputError> {
        let is_old = self.trouble.stuck.since.is_some_and(|since| since.elapsed() > DAMAGE_AFTER);
        // A segment that is missing is waited for by itself.
        if !is_old || self.trouble.hole_since.is_some() {
            return Ok(false);
        }
        let number = self.next_page().0 / self.segment_bytes();
        if !self.trouble.stuck.is_followed && self.later_segment(number)?.is_none() {
            return Ok(false);
        }
        if self.has_last()? == Some(false) {
            self.history = History::Unknown;
            self.is_same_history(look)?;
            return Ok(false);
        }
        // What lies before the first record after a loss is told and counted with the loss.
        let was_lost = self.progress.lost_from.is_some();
        let from = self.progress.position;
        let Stuck { found, leapt_to, .. } = self.trouble.stuck.clone();
        let newest = self.progress.newest;
        let stretch = self.read_stretch(until, true);
        let (first, is_at_end, at) = (stretch.run.first_in_range, stretch.is_at_end, stretch.at);
        let moved = self.take(stretch, look);
        if !moved && !is_at_end {
            // The next look goes on there: what counts is told in the order of the WAL.
            self.observer.lost(leapt_to.unwrap_or(from)..at);
            self.trouble.stuck.leapt_to = Some(at);
            self.progress.newest = self.progress.newest.max(newest);
            return Ok(true);
        }
        if !moved && self.trouble.unread.is_some() {
            return Ok(false);
        }
        if !moved {
            // Nothing in this segment: the next one may have a record.
            let Some(later) = self.later_segment(number)? else { return Ok(false) };
            self.lose(Lsn(later * self.segment_bytes()));
            return Ok(true);
        }
        let Some(to) = first else { return Ok(false) };
        if was_lost {
            return Ok(true);
        }
        self.progress.lost_bytes += to.0.saturating_sub(from.0);
        look.happenings.push(Happening::Damaged { from, to, found });
        Ok(true)
    }

    /// Follows a newer timeline from where it leaves the one that is followed.
    pub(super) fn take_newer_timeline(&mut self, look: &mut Look) {
        let ours = self.lineage.timeline();
        if self.timeline.is_some() {
            return;
        }
        let Some(newer) = self.files.shelf.newest_begun().filter(|newer| *newer > ours) else {
            return;
        };
        // Somebody may have put it there: a primary says which one it is on.
        let servers = self.data_directory.as_deref().and_then(control::timeline_of_primary);
        if servers.is_some_and(|(_, servers)| servers < newer) {
            return;
        }
        let lineage = Lineage::of(newer, &self.files.shelf.histories);
        let Some(at) = lineage.leaves(ours) else { return };
        let counted_to = (at < self.progress.position).then_some(self.progress.position);
        if counted_to.is_some() {
            (self.progress.position, self.progress.open, self.progress.last) = (at, None, None);
            // What lies before the position was not listed.
            _ = self.files.shelf.list(at.0 / self.segment_bytes());
        }
        self.lineage = lineage;
        let still =
            |key: &Key| self.lineage.of_file(key.1, self.scope.geometry.segment_bytes) == key.0;
        self.files.held.retain(|key, _| still(key));
        look.happenings.push(Happening::Timeline { timeline: newer, at, counted_to });
    }
}
