//! The point where replay would begin, and what was written since then.

use super::Reporter;
use std::time::{Duration, Instant};
use walstat_analyse::follow::{Between, Following, Marks};
use walstat_format::lsn::Lsn;
use walstat_read::follow::{Follower, Recounted};
use walstat_read::input::control;

/// What is read once more is read for so long at a telling: after a start that may be much.
const RECOUNT: Duration = Duration::from_millis(200);

impl Reporter {
    /// Finds out what was counted up to the last redo point. What is not there any more for that leaves it
    /// unknown.
    pub(super) fn note_redo(&mut self, follower: &mut Follower) {
        let position = follower.position();
        let wanted = follower.counted(|following: &mut Following| {
            self.note_control(&mut following.marks, position);
            following.marks.wanted(position)
        });
        let Some(range) = wanted.flatten() else {
            self.recount = None;
            return;
        };
        let recount = self.recount.take().filter(|recount| *recount.range() == range);
        let mut recount =
            recount.unwrap_or_else(|| follower.recount(range.clone(), Between::default()));
        let is_empty = range.is_empty();
        let found = match recount.go_on::<Between>(Instant::now() + RECOUNT) {
            _ if is_empty => Some(Between::default()),
            Recounted::Whole(between) => Some(between),
            // It may come back.
            Recounted::Gone if !follower.is_readable() => return,
            Recounted::Gone => None,
            Recounted::GoesOn => {
                self.recount = Some(recount);
                return;
            }
        };
        follower.counted(|following: &mut Following| {
            following.marks.found(&range, found, position);
        });
    }

    /// Takes over what only pg_control knows: where a standby would begin again, and the redo point where no
    /// WAL that was read tells one.
    fn note_control(&self, marks: &mut Marks, position: Lsn) {
        let control = self.directory.as_deref().and_then(|path| control::read(path).ok());
        let Some(control) = control.filter(|control| control.system_identifier == self.cluster)
        else {
            return;
        };
        let redo = control.checkpoint.redo;
        let is_standby = control.state.is_standby();
        marks.restart_at(Some(redo).filter(|_| is_standby));
        // A checkpoint whose record is still to come is told when it comes.
        if !is_standby && control.checkpoint_lsn < position {
            marks.begin_at(redo);
        }
    }
}
