//! Why a checkpoint began, where the server's settings are known: those of now, which need not be those
//! of when the WAL was written.

use super::evidence::Evidence;
use super::server::KnownPace;
use super::spacing::Facts;
use super::verdict::{Cause, Confidence, Verdict, verdict};
use walstat_format::version::Pacing;

/// A checkpoint by time begins so many seconds late, at most, where nothing holds it up.
const SECONDS_LATE: i64 = 5;

impl KnownPace {
    /// The cause that the settings leave.
    pub(super) fn judge(&self, facts: &Facts) -> Option<Verdict> {
        use Confidence::{Likely, Possible};
        let (seconds, segments) = (facts.seconds?, facts.segments?);
        let KnownPace { timeout, segments: needed } = *self;
        let by_time = Evidence::TimeoutOver { seconds, timeout };
        let by_wal = Evidence::SegmentsFilled { segments, needed };
        // Times are cut to whole seconds.
        match (seconds + 1 >= timeout, segments >= needed) {
            (false, false) => {
                let confidence = if facts.excludes_all() { Confidence::Certain } else { Likely };
                let evidence = Evidence::SettingsExclude { seconds, timeout, segments, needed };
                verdict(Cause::Requested, confidence, evidence)
            }
            (true, false) if self.is_due(facts, seconds) => verdict(Cause::Time, Likely, by_time),
            (true, false) => verdict(Cause::Time, Possible, by_time),
            (false, true) => verdict(Cause::Wal, Likely, by_wal),
            // Either may have come first; where the checkpoint was late, the server's log names both.
            (true, true) if facts.began_with_segment() && facts.is_slow() => {
                verdict(Cause::Wal, Likely, by_wal)
            }
            (true, true) if seconds <= timeout + 1 && !facts.began_with_segment() => {
                verdict(Cause::Time, Likely, by_time)
            }
            (true, true) => verdict(Cause::Wal, Possible, by_wal),
        }
    }

    /// Whether it began when the timeout was over, or as soon after it as a server does that was held up by
    /// the checkpoint before, or had nothing to do. The WAL does not tell when the server was started; its
    /// first write afterwards is taken for that moment.
    fn is_due(&self, facts: &Facts, seconds: i64) -> bool {
        let is_near = |since: Option<i64>, most: i64| since.is_some_and(|since| since <= most);
        if facts.after_start {
            let around = self.timeout - SECONDS_LATE..=self.timeout + 1;
            return facts.since_first_write.is_some_and(|since| around.contains(&since));
        }
        (seconds <= self.timeout + SECONDS_LATE)
            || is_near(facts.since_before_ended, SECONDS_LATE)
            || is_near(facts.since_first_write, Pacing::IDLE_SECONDS + SECONDS_LATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: KnownPace = KnownPace { timeout: 30, segments: 4 };

    fn judged(seconds: i64, segments: u64, in_segment: f64) -> Option<(Cause, Confidence)> {
        let facts = Facts::sample(seconds, segments, in_segment, 0.0);
        PACE.judge(&facts).map(|verdict| (verdict.cause, verdict.confidence))
    }

    #[test]
    fn what_the_settings_exclude_was_asked_for() {
        use Confidence::{Certain, Likely};
        assert_eq!(judged(10, 1, 0.5), Some((Cause::Requested, Likely)));
        assert_eq!(judged(10, 0, 0.5), Some((Cause::Requested, Certain)));
    }

    #[test]
    fn what_is_over_first_begins_it() {
        use Confidence::{Likely, Possible};
        assert_eq!(judged(30, 1, 0.5), Some((Cause::Time, Likely)));
        assert_eq!(judged(33, 3, 0.5), Some((Cause::Time, Likely)), "a busy machine is late");
        assert_eq!(judged(7, 4, 0.7), Some((Cause::Wal, Likely)));
        assert_eq!(judged(30, 40, 0.7), Some((Cause::Time, Likely)));
        assert_eq!(judged(44, 40, 0.7), Some((Cause::Wal, Possible)));
    }

    #[test]
    fn later_than_that_only_what_holds_it_up_explains_it() {
        use Confidence::{Likely, Possible};
        assert_eq!(judged(47, 1, 0.5), Some((Cause::Time, Possible)));
        let late = Facts::sample(47, 1, 0.5, 0.0);
        let told = |facts: &Facts| PACE.judge(facts).map(|verdict| verdict.confidence);
        assert_eq!(told(&Facts { since_first_write: Some(11), ..late }), Some(Likely));
        assert_eq!(told(&Facts { since_before_ended: Some(1), ..late }), Some(Likely));
        let after_start = Facts { seconds: Some(1990), after_start: true, ..late };
        assert_eq!(told(&after_start), Some(Possible));
        let first = |since| told(&Facts { since_first_write: Some(since), ..after_start });
        assert_eq!([24, 25, 31, 32].map(first), [Possible, Likely, Likely, Possible].map(Some));
    }
}
