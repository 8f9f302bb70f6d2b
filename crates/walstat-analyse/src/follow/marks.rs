//! Places that WAL is measured from: redo points, and what was counted up to them; and what happened at a
//! place since the last telling.

use std::ops::Range;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::{xact, xlog};
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_read::scan::observe::Observe;

/// So many transactions that dropped files, and so many checkpoints, are noted between two tellings.
const NOTED_MAX: usize = 1000;
/// Places for which it is kept what was counted up to there, and how far they are from each other.
const PLACES_MAX: usize = 4096;
const SPACING: u64 = 256 << 10;

/// A transaction that dropped files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its end.
    pub lsn: Lsn,
    /// When.
    pub time: Time,
    /// Which.
    pub xid: u32,
    /// The files.
    pub files: Vec<RelFileLocator>,
}

/// A checkpoint whose end the follower has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedCheckpoint {
    /// Its redo point.
    pub redo: Lsn,
    /// When it began.
    pub time: Time,
    /// The redo point of the one before; nothing where that is not known.
    pub before: Option<Lsn>,
}

/// What was counted up to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    lsn: Lsn,
    /// Bytes of images before it.
    fpi_bytes: u64,
    /// Bytes of records before it.
    total_bytes: u64,
}

/// A redo point. Before 17 no record stands there, and it is not known before the checkpoint has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Redo {
    lsn: Lsn,
    /// What was counted up to there, exactly.
    place: Option<Place>,
    /// The sums up to there cannot be had any more: its WAL is gone.
    is_gone: bool,
}

/// Sums of records between two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Between {
    fpi_bytes: u64,
    total_bytes: u64,
}

impl Observe for Between {
    fn observe(&mut self, record: &Record<'_>) {
        self.fpi_bytes += u64::from(record.parts.fpi_bytes);
        self.total_bytes += u64::from(record.header.total_bytes);
    }

    fn merge(&mut self, later: Between) {
        self.fpi_bytes += later.fpi_bytes;
        self.total_bytes += later.total_bytes;
    }
}

/// Places that WAL is measured from.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    now: Place,
    /// Where counting began, and places of records after it, those of redo points among them, ascending.
    places: Vec<Place>,
    /// The last redo point: from 17 on that of a checkpoint that may still run, before that of the last one
    /// that has ended.
    redo: Option<Redo>,
    /// Where a server that is in recovery would begin again: its own restart point, which lies before the
    /// checkpoints in the WAL that it receives.
    restart: Option<Redo>,
    /// The redo point of the last checkpoint that has ended, if none may be missing after it.
    ended: Option<Lsn>,
    /// The last time that a transaction stated.
    pub time: Option<Time>,
    dropped: Vec<Dropped>,
    checkpoints: Vec<PassedCheckpoint>,
}

impl Marks {
    /// Where replay would begin.
    pub fn redo(&self) -> Option<Lsn> {
        self.restart.or(self.redo).map(|redo| redo.lsn)
    }

    /// The redo point of the last checkpoint that has ended.
    pub fn ended(&self) -> Option<Lsn> {
        self.ended
    }

    /// Bytes of images, and of all records, since the point where replay would begin.
    pub fn since_redo(&self) -> Option<(u64, u64)> {
        let Place { fpi_bytes, total_bytes, .. } = self.restart.or(self.redo)?.place?;
        let since = |now: u64, then: u64| now.wrapping_sub(then);
        Some((since(self.now.fpi_bytes, fpi_bytes), since(self.now.total_bytes, total_bytes)))
    }

    /// What has to be read once more for the sums since the point where replay would begin to be known:
    /// from a place before it to that point, or from there to where counting began.
    pub fn wanted(&self, position: Lsn) -> Option<Range<Lsn>> {
        let redo = self
            .restart
            .or(self.redo)
            .filter(|redo| redo.place.is_none() && !redo.is_gone && redo.lsn <= position)?;
        let place = self.nearest(redo.lsn, position);
        Some(place.lsn.min(redo.lsn)..place.lsn.max(redo.lsn))
    }

    /// The sums of a range that was wanted; `None`: they cannot be had.
    pub fn found(&mut self, range: &Range<Lsn>, between: Option<Between>, position: Lsn) {
        if self.wanted(position).as_ref() != Some(range) {
            return;
        }
        let Some(lsn) = self.redo() else { return };
        let place = self.nearest(lsn, position);
        let is_before = place.lsn <= lsn;
        let sum = |of: u64, between: u64| {
            if is_before { of.wrapping_add(between) } else { of.wrapping_sub(between) }
        };
        let found = between.map(|between| Place {
            lsn,
            fpi_bytes: sum(place.fpi_bytes, between.fpi_bytes),
            total_bytes: sum(place.total_bytes, between.total_bytes),
        });
        let redo = self.restart.as_mut().or(self.redo.as_mut());
        if let Some(redo) = redo {
            (redo.place, redo.is_gone) = (found, found.is_none());
        }
    }

    /// The last place up to a point, or the first one.
    fn nearest(&self, lsn: Lsn, position: Lsn) -> Place {
        let after = self.places.partition_point(|place| place.lsn <= lsn);
        let begin = Place { lsn: position, ..self.now };
        let place = after.checked_sub(1).and_then(|before| self.places.get(before));
        place.or(self.places.first()).copied().unwrap_or(begin)
    }

    /// The redo point of a checkpoint that has ended, known otherwise, before WAL says one.
    pub fn begin_at(&mut self, redo: Lsn) {
        if self.redo.is_none() {
            self.redo_is(redo);
        }
        self.ended.get_or_insert(redo);
    }

    /// The restart point of a server that is in recovery; of any other none.
    pub fn restart_at(&mut self, restart: Option<Lsn>) {
        if self.restart.map(|restart| restart.lsn) != restart {
            self.restart = restart.map(|lsn| self.redo_at(lsn));
        }
    }

    pub(super) fn take_news(&mut self) -> (Vec<Dropped>, Vec<PassedCheckpoint>) {
        (std::mem::take(&mut self.dropped), std::mem::take(&mut self.checkpoints))
    }

    /// WAL is missing: there may have been a checkpoint in it.
    pub(super) fn lost(&mut self) {
        (self.redo, self.ended) = (None, None);
        self.begin_places();
    }

    /// The WAL goes on before what was counted, on another timeline: what came after that place is no more.
    fn go_back(&mut self, to: Lsn) {
        self.redo = self.redo.filter(|redo| redo.lsn <= to);
        self.restart = self.restart.filter(|restart| restart.lsn <= to);
        self.ended = self.ended.filter(|redo| *redo <= to);
        self.begin_places();
    }

    /// The sums go on, but not from those before.
    fn begin_places(&mut self) {
        self.places.clear();
        let points = self.redo.iter_mut().chain(&mut self.restart);
        points.for_each(|redo| (redo.place, redo.is_gone) = (None, false));
    }

    fn redo_at(&self, lsn: Lsn) -> Redo {
        let found = self.places.binary_search_by_key(&lsn, |place| place.lsn);
        let place = found.ok().and_then(|index| self.places.get(index)).copied();
        Redo { lsn, place, is_gone: false }
    }

    fn redo_is(&mut self, redo: Lsn) {
        if self.redo.is_none_or(|known| known.lsn < redo) {
            self.redo = Some(self.redo_at(redo));
        }
    }

    pub(super) fn note(&mut self, record: &Record<'_>) {
        if record.lsn < self.now.lsn {
            self.go_back(record.lsn);
        }
        let before = Place { lsn: record.lsn, ..self.now };
        if self.places.last().is_none_or(|last| record.lsn.0 >= last.lsn.0 + SPACING) {
            self.places.push(before);
        }
        match (record.header.rmgr, record.header.rmgr_info()) {
            (rmgr::XLOG, xlog::CHECKPOINT_REDO) => {
                self.note_place(before);
                self.redo_is(record.lsn);
            }
            (rmgr::XLOG, info @ (xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN)) => {
                if info == xlog::CHECKPOINT_SHUTDOWN {
                    self.note_place(before);
                }
                let layout = record.version.checkpoint;
                let checkpoint = Checkpoint::parse(record.main_data_start(), layout);
                checkpoint.iter().for_each(|checkpoint| self.note_checkpoint(checkpoint));
            }
            (rmgr::TRANSACTION, _) => self.note_end(record),
            _ => {}
        }
        self.now = Place {
            lsn: record.end,
            fpi_bytes: self.now.fpi_bytes + u64::from(record.parts.fpi_bytes),
            total_bytes: self.now.total_bytes + u64::from(record.header.total_bytes),
        };
    }

    fn note_place(&mut self, place: Place) {
        if self.places.last().is_none_or(|last| last.lsn < place.lsn) {
            self.places.push(place);
        }
    }

    fn note_checkpoint(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { redo, time, .. } = *checkpoint;
        self.redo_is(redo);
        // pg_control may have told of it before its record was read.
        if self.ended.is_some_and(|ended| ended >= redo) {
            return;
        }
        let before = self.ended.replace(redo);
        if self.checkpoints.len() < NOTED_MAX {
            self.checkpoints.push(PassedCheckpoint { redo, time, before });
        }
    }

    fn note_end(&mut self, record: &Record<'_>) {
        let info = record.header.info;
        if let Some(time) = xact::stated_time(info, record.main_data_start()) {
            self.time = self.time.max(Some(time));
        }
        if xact::ends_alone(info).is_some() || self.dropped.len() >= NOTED_MAX {
            return;
        }
        let main_data = record.main_data().unwrap_or_default();
        let Some(end) = xact::End::parse(info, &main_data, record.version) else { return };
        let files: Vec<RelFileLocator> = end.dropped.iter().collect();
        if end.commits && !files.is_empty() {
            let xid = end.prepared_xid.unwrap_or(record.header.xid);
            self.dropped.push(Dropped { lsn: record.lsn, time: end.time, xid, files });
        }
    }

    pub(super) fn settle(&mut self) {
        if let Some(redo) = self.redo {
            let oldest = self.restart.map_or(redo.lsn, |restart| restart.lsn.min(redo.lsn));
            let old = self.places.partition_point(|place| place.lsn <= oldest);
            self.places.drain(..old.saturating_sub(1));
        }
        if self.places.len() > PLACES_MAX {
            let mut is_kept = false;
            self.places.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> Marks {
        let place = |lsn: u64| Place { lsn: Lsn(lsn), fpi_bytes: lsn, total_bytes: 2 * lsn };
        Marks {
            now: place(900),
            places: [100, 300, 500, 700].map(place).into(),
            ..Marks::default()
        }
    }

    fn checkpoint(redo: u64) -> Checkpoint {
        let layout = walstat_format::payload::checkpoint::CheckpointLayout::V17;
        let mut bytes = vec![0; 200];
        bytes[..8].copy_from_slice(&redo.to_le_bytes());
        Checkpoint::parse(&bytes, layout).expect("a checkpoint")
    }

    fn befores(marks: &mut Marks) -> Vec<Option<u64>> {
        let told = marks.take_news().1;
        told.iter().map(|checkpoint| checkpoint.before.map(|lsn| lsn.0)).collect()
    }

    #[test]
    fn after_a_loss_neither_redo_point_nor_the_checkpoint_before_is_known() {
        let mut marks = marks();
        marks.note_checkpoint(&checkpoint(300));
        marks.note_checkpoint(&checkpoint(500));
        assert_eq!(befores(&mut marks), [None, Some(300)]);
        marks.lost();
        assert_eq!((marks.redo(), marks.since_redo()), (None, None));
        marks.note_checkpoint(&checkpoint(700));
        assert_eq!(befores(&mut marks), [None]);
        assert_eq!(marks.since_redo(), None, "it lies before what is counted without a gap");
    }

    #[test]
    fn a_timeline_that_left_before_knows_no_later_redo_point() {
        let mut marks = marks();
        marks.note_checkpoint(&checkpoint(700));
        marks.go_back(Lsn(400));
        assert_eq!((marks.redo(), marks.ended()), (None, None));
        marks.note_checkpoint(&checkpoint(500));
        assert_eq!((marks.redo(), befores(&mut marks)), (Some(Lsn(500)), vec![None, None]));
    }

    #[test]
    fn a_server_in_recovery_would_begin_at_its_own_restart_point() {
        let mut marks = marks();
        marks.note_checkpoint(&checkpoint(700));
        assert_eq!(marks.since_redo(), Some((200, 400)));
        marks.restart_at(Some(Lsn(300)));
        assert_eq!((marks.redo(), marks.since_redo()), (Some(Lsn(300)), Some((600, 1200))));
        marks.settle();
        marks.restart_at(Some(Lsn(500)));
        assert_eq!(marks.since_redo(), Some((400, 800)), "it is still known what came before");
        marks.restart_at(None);
        assert_eq!(marks.redo(), Some(Lsn(700)), "after a promotion");
    }
}
