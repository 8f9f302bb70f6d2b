//! A checkpoint of the base, and which settings would have moved it.

use super::blocks::Ordinal;
use walstat_analyse::checkpoint::cause::{Cause, Confidence, Verdict};
use walstat_analyse::checkpoint::evidence::Evidence;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// While a checkpoint goes on, the server itself writes no more records than that.
const RECORDS_OF_NOBODY: usize = 8;

/// A checkpoint of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseCheckpoint {
    /// Its redo point.
    pub redo: Lsn,
    /// The first record after that.
    pub(crate) first: Ordinal,
    /// Its record; `None` where it never ended.
    pub record: Option<Ordinal>,
    /// Where that lies.
    pub(crate) ended: Option<Lsn>,
    /// What was logged for an online one: its redo point's mark, the running transactions, its record.
    pub(crate) records: Vec<Ordinal>,
    /// When it began.
    pub(crate) time: Time,
    /// Whether the server ran on.
    pub(crate) online: bool,
    /// Why it began, as far as that is known.
    pub(crate) cause: Option<Cause>,
    /// How sure that is.
    pub(crate) confidence: Confidence,
    /// What it was told from.
    pub(crate) evidence: Option<Evidence>,
    /// Whether a base backup began with it.
    pub(crate) is_of_backup: bool,
}

/// How a checkpoint is taken whose cause is not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CauseReading {
    /// Each has its likely cause; one without any is taken for a checkpoint by volume.
    #[default]
    Likely,
    /// Settings would have moved each.
    Moving,
    /// Each stays: somebody asked for it.
    Staying,
}

impl CauseReading {
    /// Both ends of what may be, beside what is likely.
    pub const ENDS: [CauseReading; 2] = [CauseReading::Moving, CauseReading::Staying];
}

impl BaseCheckpoint {
    /// One of a running server of which it is not known whether it ended, nor why it began.
    pub(crate) fn begun(redo: Lsn, first: Ordinal, time: Time) -> BaseCheckpoint {
        BaseCheckpoint {
            redo,
            first,
            record: None,
            ended: None,
            records: Vec::new(),
            time,
            online: true,
            cause: None,
            confidence: Confidence::Possible,
            evidence: None,
            is_of_backup: false,
        }
    }

    /// Whether others went on to write while it ran.
    pub(crate) fn is_beside_work(&self) -> bool {
        let meanwhile = self.record.map_or(0, |record| record.saturating_sub(self.first));
        meanwhile as usize > self.records.len() + RECORDS_OF_NOBODY
    }

    /// Takes what the WAL says of its cause.
    pub(crate) fn judge(&mut self, verdict: Option<Verdict>) {
        self.cause = verdict.map(|verdict| verdict.cause);
        self.confidence = verdict.map_or(Confidence::Possible, |verdict| verdict.confidence);
        self.evidence = verdict.map(|verdict| verdict.evidence);
        self.is_of_backup =
            verdict.is_some_and(|verdict| verdict.evidence == Evidence::BackupFromRedoPoint);
    }

    /// Begun for this, without any doubt.
    pub(crate) fn settle(&mut self, cause: Cause) {
        (self.cause, self.confidence) = (Some(cause), Confidence::Certain);
    }

    /// Whether its cause is more than possible.
    pub(crate) fn is_sure(&self) -> bool {
        self.confidence > Confidence::Possible
    }

    /// Whether that leaves no doubt.
    pub(crate) fn is_certain(&self) -> bool {
        self.confidence == Confidence::Certain
    }

    /// Whether the server had recovered, and began it for that.
    pub(crate) fn ends_recovery(&self) -> bool {
        self.cause == Some(Cause::EndOfRecovery)
    }

    /// Whether recovery may have ended with it, as far as its own record and those before it tell.
    pub(crate) fn may_end_recovery(&self) -> bool {
        let is_either = self.cause == Some(Cause::ShutdownOrRecovery);
        !self.online && (is_either || !self.is_sure())
    }

    /// Whether that is read two ways.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.online && !self.is_certain()
    }

    /// The cause that settings move, if one of those began it: the volume or the clock.
    pub(crate) fn moved_by(&self, reading: CauseReading) -> Option<Cause> {
        mover(self.cause, self.is_certain(), reading).filter(|_| self.online)
    }
}

/// The cause that settings move, if one of those began an online checkpoint with this cause.
pub fn mover(cause: Option<Cause>, is_sure: bool, reading: CauseReading) -> Option<Cause> {
    let likely = match cause {
        None => Some(Cause::Wal),
        Some(cause @ (Cause::Time | Cause::Wal)) => Some(cause),
        Some(
            Cause::Requested | Cause::Shutdown | Cause::EndOfRecovery | Cause::ShutdownOrRecovery,
        ) => None,
    };
    match reading {
        CauseReading::Moving if !is_sure => likely.or(Some(Cause::Wal)),
        CauseReading::Staying if !is_sure => None,
        _ => likely,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_hold_what_is_likely_and_what_is_certain_is_read_one_way() {
        let [moving, staying] = CauseReading::ENDS;
        let of = |cause, is_sure| {
            [CauseReading::Likely, moving, staying].map(|reading| mover(cause, is_sure, reading))
        };
        let [wal, time, asked] = [Cause::Wal, Cause::Time, Cause::Requested].map(Some);
        assert_eq!(of(asked, false), [None, wal, None]);
        assert_eq!(of(time, false), [time, time, None]);
        assert_eq!(of(None, false), [wal, wal, None]);
        assert_eq!((of(asked, true), of(wal, true)), ([None; 3], [wal; 3]));
    }

    #[test]
    fn what_is_likely_is_not_certain() {
        let of = |confidence| {
            let begun = BaseCheckpoint::begun(Lsn(8), 1, Time(0));
            let own = BaseCheckpoint { cause: Some(Cause::Requested), confidence, ..begun };
            (own.is_doubtful(), own.moved_by(CauseReading::Moving))
        };
        assert_eq!(of(Confidence::Likely), (true, Some(Cause::Wal)));
        assert_eq!(of(Confidence::Certain), (false, None));
    }
}
