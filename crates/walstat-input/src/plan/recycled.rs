//! Holes in a server's own directory that nobody fills: it recycles what the archiver has taken, and keeps an
//! older segment that waits for that, as the first of a base backup from which a standby was made, until the
//! standby is promoted (`RemoveOldXlogFiles` in `src/backend/access/transam/xlog.c`).

use super::Plan;
use crate::control;
use crate::input_kind::InputKind;
use std::ops::Range;
use walstat_format::lsn::Lsn;

impl Plan {
    /// Accepts holes between a server's own segments before the one in which its recovery would begin.
    pub(super) fn accept_recycled(&mut self) {
        let bytes = u64::from(self.geometry.segment_bytes);
        let holes = self.segments.windows(2).filter_map(|pair| match pair {
            [before, after]
                if before.number + 1 < after.number
                    && [before, after].iter().all(|it| it.taken_for == InputKind::PgWal) =>
            {
                Some(Lsn((before.number + 1) * bytes)..Lsn(after.number * bytes))
            }
            _ => None,
        });
        let mut holes: Vec<Range<Lsn>> = holes.collect();
        if holes.is_empty() {
            return;
        }
        let redo = self.redo().unwrap_or_default();
        holes.retain(|hole| hole.end.0 / bytes <= redo.0 / bytes);
        self.accepted_gaps.extend(holes.iter().cloned());
        self.recycled = holes;
    }

    /// Where recovery of the server begins whose WAL is read.
    fn redo(&self) -> Option<Lsn> {
        let control = control::read(self.data_directory_read.as_deref()?).ok()?;
        let is_own = control.system_identifier == self.geometry.system_identifier;
        is_own.then_some(control.checkpoint.redo)
    }
}
