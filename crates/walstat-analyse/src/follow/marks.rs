//! Places that WAL is measured from: redo points, and what was counted up to them; and what happened at a
//! place since the last telling.

use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::{xact, xlog};
use walstat_format::record::Record;
use walstat_format::rmgr;

/// So many transactions that dropped files, and so many checkpoints, are noted between two tellings.
const NOTED_MAX: usize = 1000;
/// Places for which it is kept what was counted up to there.
const PLACES_MAX: usize = 4096;

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

/// A redo point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Redo {
    lsn: Lsn,
    /// What was counted up to there; nothing where it was not passed while counting.
    place: Option<Place>,
}

/// Places that WAL is measured from.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    now: Place,
    /// Where counting began, and places of looks and of redo points, ascending.
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
        Some((self.now.fpi_bytes - fpi_bytes, self.now.total_bytes - total_bytes))
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
            self.restart = restart.map(|lsn| Redo { lsn, place: self.place_of(lsn) });
        }
    }

    pub(super) fn take_news(&mut self) -> (Vec<Dropped>, Vec<PassedCheckpoint>) {
        (std::mem::take(&mut self.dropped), std::mem::take(&mut self.checkpoints))
    }

    /// WAL is missing: there may have been a checkpoint in it.
    pub(super) fn lost(&mut self) {
        (self.redo, self.ended) = (None, None);
        self.restart.iter_mut().for_each(|restart| restart.place = None);
        self.places.clear();
    }

    /// The WAL goes on before what was counted, on another timeline: what came after that place is no more.
    fn go_back(&mut self, to: Lsn) {
        self.redo = self.redo.filter(|redo| redo.lsn <= to);
        self.restart = self.restart.filter(|restart| restart.lsn <= to);
        self.ended = self.ended.filter(|redo| *redo <= to);
        self.places.retain(|place| place.lsn <= to);
    }

    fn place_of(&self, redo: Lsn) -> Option<Place> {
        let after = self.places.partition_point(|place| place.lsn < redo);
        let is_passed = self.places.first().is_some_and(|first| first.lsn <= redo);
        let place = self.places.get(after).copied().unwrap_or(self.now);
        is_passed.then_some(place)
    }

    fn redo_is(&mut self, redo: Lsn) {
        if self.redo.is_none_or(|known| known.lsn < redo) {
            self.redo = Some(Redo { lsn: redo, place: self.place_of(redo) });
        }
    }

    pub(super) fn note(&mut self, record: &Record<'_>) {
        if record.lsn < self.now.lsn {
            self.go_back(record.lsn);
        }
        let before = Place { lsn: record.lsn, ..self.now };
        if self.places.is_empty() {
            self.places.push(before);
        }
        match (record.header.rmgr, record.header.rmgr_info()) {
            (rmgr::XLOG, xlog::CHECKPOINT_REDO) => {
                self.now = before;
                self.places.push(before);
                self.redo_is(record.lsn);
            }
            (rmgr::XLOG, info @ (xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN)) => {
                if info == xlog::CHECKPOINT_SHUTDOWN {
                    self.places.push(before);
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
        if self.places.last().is_some_and(|last| last.lsn < self.now.lsn) {
            self.places.push(self.now);
        }
        if let Some(redo) = self.redo {
            let oldest = self.restart.map_or(redo.lsn, |restart| restart.lsn.min(redo.lsn));
            let old = self.places.partition_point(|place| place.lsn < oldest);
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
