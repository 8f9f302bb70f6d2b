//! Which likely causes are certain: those that the WAL writes down, or one checkpoint_timeout explains, or
//! the server's settings where nothing in the range contradicts them.

use super::{Base, by_volume};
use walstat_analyse::checkpoint::cause::Confidence;
use walstat_analyse::checkpoint::evidence::Evidence;
use walstat_analyse::checkpoint::server::KnownPace;

/// Marks those as certain. What only looks like a request or like volume stays likely, and is read both ways.
pub(crate) fn settle(base: &mut Base, pace: Option<KnownPace>) {
    let is_in_force = pace.is_some_and(|pace| by_volume::is_in_force(base, pace.segments));
    for own in base.checkpoints.iter_mut().filter(|own| own.is_sure()) {
        if own.evidence.is_some_and(|evidence| leaves_no_doubt(evidence, is_in_force)) {
            own.confidence = Confidence::Certain;
        }
    }
}

fn leaves_no_doubt(evidence: Evidence, is_in_force: bool) -> bool {
    use Evidence::*;
    match evidence {
        AfterDatabaseCopied | BeforeDatabaseCopied | BeforeDatabaseDropped => true,
        RegularTime { .. } => true,
        SettingsExclude { .. } | TimeoutOver { .. } => is_in_force,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base_checkpoint::BaseCheckpoint;
    use crate::blocks::Ordinal;
    use crate::made_up;
    use walstat_analyse::checkpoint::cause::Cause;
    use walstat_format::lsn::Lsn;
    use walstat_format::payload::Time;

    const PACE: KnownPace = KnownPace { timeout: 300, segments: 4 };

    /// How sure the cause is of the last of some checkpoints so many segments apart.
    fn confidence(evidence: Evidence, segments: u64, pace: Option<KnownPace>) -> Confidence {
        let (_, mut base) = made_up::base(&[]);
        let lsn = |number: u64| Lsn((1 + number * segments) << 20);
        base.checkpoints = (0..3)
            .map(|number| {
                let begun = BaseCheckpoint::begun(lsn(number), number as Ordinal, Time(0));
                let (cause, confidence) = (Some(Cause::Requested), Confidence::Likely);
                BaseCheckpoint { cause, confidence, evidence: Some(evidence), ..begun }
            })
            .collect();
        (base.start, base.end) = (lsn(0), Lsn(lsn(2).0 + 1));
        settle(&mut base, pace);
        base.checkpoints[2].confidence
    }

    #[test]
    fn known_settings_leave_no_doubt_where_nothing_contradicts_them() {
        use Confidence::{Certain, Likely};
        let excluded =
            Evidence::SettingsExclude { seconds: 9, timeout: 300, segments: 1, needed: 4 };
        assert_eq!(confidence(excluded, 1, Some(PACE)), Certain);
        assert_eq!(confidence(excluded, 7, Some(PACE)), Likely, "volume came later than they say");
        assert_eq!(confidence(excluded, 1, None), Likely);
    }

    #[test]
    fn what_was_done_at_once_may_have_had_nothing_to_write() {
        let at_once = Evidence::DoneAtOnce { bytes: 0 };
        assert_eq!(confidence(at_once, 1, Some(PACE)), Confidence::Likely);
        let copied = Evidence::AfterDatabaseCopied;
        assert_eq!(confidence(copied, 1, None), Confidence::Certain);
    }
}
