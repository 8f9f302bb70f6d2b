//! Why a checkpoint began, where its distance from others tells: regular spacing, in time or in segments,
//! and what cannot have been. What the WAL writes down is judged elsewhere.

use super::evidence::{Evidence, MaxWalSize};
use super::spacing::{Facts, Spacing};
use super::verdict::{Cause, Confidence, Verdict, verdict};
use walstat_format::version::Version;

/// What the spacing says about the server's settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InferredSettings {
    /// checkpoint_timeout, in seconds.
    pub timeout_seconds: Option<u64>,
    /// max_wal_size, if checkpoint_completion_target is the default.
    pub max_wal_size: Option<MaxWalSize>,
}

impl Spacing {
    /// The cause of a checkpoint that no record states, by its distance from the one before.
    pub(super) fn judge(&self, facts: &Facts, version: &Version) -> Option<Verdict> {
        use Confidence::{Certain, Likely, Possible};
        if facts.is_idle {
            return verdict(Cause::Requested, Likely, Evidence::NothingBefore);
        }
        let distance = self.longest_bytes(facts);
        if let Some(bytes) = facts.done_at_once(distance).filter(|_| !facts.excludes_all()) {
            return verdict(Cause::Requested, Likely, Evidence::DoneAtOnce { bytes });
        }
        if facts.is_paced_by_volume(distance) {
            return verdict(Cause::Wal, Likely, took_its_time(facts));
        }
        let may_be_time = self.may_be_time(facts);
        let may_be_wal = self.may_be_wal(facts);
        if facts.is_late_in_segment() && facts.seconds.is_none() && self.timeout.is_none() {
            // The first one of the range: nothing is known of a clock. But nobody waits for one so long.
            return if facts.is_paced(distance) {
                verdict(Cause::Time, Possible, spread_late(facts))
            } else {
                verdict(Cause::Requested, Possible, neither(facts))
            };
        }
        match (may_be_time, may_be_wal) {
            (false, false) => {
                let confidence = if facts.excludes_all() {
                    Certain
                } else if self.knows_volume() {
                    Likely
                } else {
                    Possible
                };
                verdict(Cause::Requested, confidence, neither(facts))
            }
            (true, false) => {
                let support = self.time_support(facts)?;
                let is_regular = support >= 3 || (support == 2 && facts.is_spread());
                let is_sure = is_regular && self.is_timeout(facts) || self.is_habit_of_time(facts);
                let confidence = if is_sure { Likely } else { Possible };
                verdict(Cause::Time, confidence, regular_time(facts, support))
            }
            (false, true) => {
                if let Some(checkpoints) = self.load_support(facts) {
                    return verdict(Cause::Wal, Likely, under_load(facts, checkpoints));
                }
                let support = self.wal_support(facts)?;
                let is_regular = support >= 3 && facts.began_with_segment();
                let confidence = if is_regular { Likely } else { Possible };
                verdict(Cause::Wal, confidence, regular_wal(facts, support, version))
            }
            (true, true) => self.judge_both(facts, version),
        }
    }

    /// Both the time and the volume fit: the more regular of the two.
    fn judge_both(&self, facts: &Facts, version: &Version) -> Option<Verdict> {
        use Confidence::{Likely, Possible};
        let (time, wal) =
            (self.time_support(facts).unwrap_or(0), self.wal_support(facts).unwrap_or(0));
        let is_of_clock = time >= 3 && self.is_timeout(facts) && facts.is_slow();
        let by_time = self.begins_anywhere() && (is_of_clock || self.is_habit_of_time(facts));
        let by_wal = wal >= 3 && time < 2 && facts.began_with_segment();
        if by_time {
            verdict(Cause::Time, Likely, regular_time(facts, time))
        } else if by_wal {
            verdict(Cause::Wal, Likely, regular_wal(facts, wal, version))
        } else if time > wal && time >= 2 {
            verdict(Cause::Time, Possible, regular_time(facts, time))
        } else {
            None
        }
    }

    /// The settings that regular spacing tells.
    pub(super) fn settings(&self, segment_bytes: u64, version: &Version) -> InferredSettings {
        let timeout_seconds = self.timeout.and_then(|seconds| u64::try_from(seconds).ok());
        let max_wal_size = self.segments.map(|count| max_wal_size(count, segment_bytes, version));
        InferredSettings { timeout_seconds, max_wal_size }
    }
}

fn neither(facts: &Facts) -> Evidence {
    let seconds = facts.seconds.unwrap_or(0);
    if facts.excludes_all() {
        return Evidence::NeitherTimeNorVolume { seconds };
    }
    if facts.is_late_in_segment() {
        return Evidence::LateInSegment { seconds: facts.seconds_in_segment };
    }
    Evidence::SoonerThanOthers { seconds, segments: facts.segments.unwrap_or(0) }
}

fn spread_late(facts: &Facts) -> Evidence {
    Evidence::SpreadLateInSegment { seconds: facts.seconds_in_segment }
}

fn took_its_time(facts: &Facts) -> Evidence {
    let (seconds, segments) = (facts.seconds.unwrap_or(0), facts.segments.unwrap_or(0));
    Evidence::TookItsTime { seconds, segments }
}

fn under_load(facts: &Facts, checkpoints: usize) -> Evidence {
    let (seconds, segments) = (facts.seconds.unwrap_or(0), facts.segments.unwrap_or(0));
    Evidence::UnderLoad { seconds, segments, checkpoints }
}

fn regular_time(facts: &Facts, checkpoints: usize) -> Evidence {
    Evidence::RegularTime { seconds: facts.seconds.unwrap_or(0), checkpoints }
}

fn regular_wal(facts: &Facts, checkpoints: usize, version: &Version) -> Evidence {
    let segments = facts.segments.unwrap_or(0);
    let max_wal_size = max_wal_size(segments, facts.segment_bytes, version);
    Evidence::RegularVolume { segments, checkpoints, max_wal_size }
}

fn max_wal_size(segments: u64, segment_bytes: u64, version: &Version) -> MaxWalSize {
    let (least_bytes, most_bytes) = version.pacing.max_wal_size(segments, segment_bytes);
    MaxWalSize { least_bytes, most_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::version::VERSIONS;

    /// The causes of checkpoints of these distances, in seconds and segments, each at a place in its
    /// segment and so many seconds long.
    fn judged(checkpoints: &[(i64, u64, f64, f64)]) -> Vec<Option<(Cause, Confidence)>> {
        let facts = checkpoints.iter().map(|&(a, b, c, d)| Facts::sample(a, b, c, d));
        judged_of(&facts.collect::<Vec<_>>())
    }

    fn judged_of(facts: &[Facts]) -> Vec<Option<(Cause, Confidence)>> {
        let spacing = Spacing::of(facts.iter());
        let version = VERSIONS.last().expect("a release");
        let verdict = |facts| spacing.judge(facts, version);
        facts.iter().map(|facts| verdict(facts).map(|v| (v.cause, v.confidence))).collect()
    }

    #[test]
    fn by_time_is_regular_in_time_and_begins_anywhere() {
        let places = [0.3, 0.7, 0.05, 0.9, 0.4];
        let timed = places.map(|place| (300, 2, place, 250.0));
        assert_eq!(judged(&timed), vec![Some((Cause::Time, Confidence::Likely)); 5]);
        // An idle server has nothing to spread.
        let idle = places.map(|place| Facts::sample(60, 1, place, 0.0));
        assert_eq!(judged_of(&idle), vec![Some((Cause::Time, Confidence::Likely)); 5]);
        // Those that begin with a minute may have been asked for by a clock of its own.
        let asked = idle.map(|facts| facts.begun_at(0));
        assert!(judged_of(&asked).iter().flatten().all(|found| found.1 == Confidence::Possible));
        // One that somebody asks for in between says nothing of those.
        let stray = Facts::sample(17, 0, 0.2, 0.0).begun_at(17);
        let with_stray: Vec<Facts> = asked.into_iter().chain([stray]).collect();
        let told = judged_of(&with_stray);
        let is_sure = |found: &(Cause, Confidence)| found.1 > Confidence::Possible;
        assert!(!told.iter().take(5).flatten().any(is_sure), "{told:?}");
        // A busy machine is late, and writes much.
        let busy = [30, 31, 30, 30, 32].map(|seconds| Facts::sample(seconds, 40, 0.6, 0.0));
        let by_time = |found: &Option<(Cause, _)>| found.is_some_and(|(c, _)| c == Cause::Time);
        assert!(judged_of(&busy).iter().all(by_time), "{:?}", judged_of(&busy));
    }

    #[test]
    fn too_soon_under_load_is_by_volume() {
        let load = [(0, 3), (1, 5), (0, 2), (2, 3)];
        let load = load.map(|(a, b)| Facts::sample(a, b, 0.6, 0.0).under_load());
        assert_eq!(judged_of(&load), vec![Some((Cause::Wal, Confidence::Likely)); 4]);
        // Who waits for each of them asked for it.
        let alone = [3, 5, 2, 3].map(|segments| Facts::sample(1, segments, 0.6, 0.0));
        assert!(judged_of(&alone).iter().flatten().all(|found| found.1 == Confidence::Possible));
    }

    #[test]
    fn long_after_its_segment_began_it_is_not_by_volume() {
        let late = |facts: Facts| Facts { seconds_in_segment: 3, ..facts };
        // As many under load would be by volume; the last two began 3 s after their segments.
        let load = [(7, 2, 0.0), (6, 2, 0.8), (24, 2, 0.8)];
        let [volume, asked, other] = load.map(|(a, b, c)| Facts::sample(a, b, c, 0.0).under_load());
        let told = judged_of(&[volume, volume, volume, late(asked), late(other)]);
        let causes: Vec<Cause> = told.iter().flatten().map(|found| found.0).collect();
        let [wal, requested] = [Cause::Wal, Cause::Requested];
        assert_eq!(causes, [wal, wal, wal, requested, requested]);
        // The first one of a range, with nothing before it.
        let first = late(Facts { seconds: None, segments: None, ..asked });
        assert_eq!(judged_of(&[first]), [Some((Cause::Requested, Confidence::Possible))]);
        // Nobody waits for one that is spread out: there is nothing left but the clock.
        let spread = Facts { took: 26.0, ..first };
        assert_eq!(judged_of(&[spread]), [Some((Cause::Time, Confidence::Possible))]);
    }

    #[test]
    fn where_nothing_was_written_somebody_asked() {
        let idle =
            [60; 4].map(|seconds| Facts { is_idle: true, ..Facts::sample(seconds, 0, 0.5, 0.0) });
        assert_eq!(judged_of(&idle), vec![Some((Cause::Requested, Confidence::Likely)); 4]);
    }

    #[test]
    fn by_volume_is_regular_in_segments_and_begins_with_one() {
        let by_volume = [41, 55, 47, 62].map(|seconds| (seconds, 21, 0.01, 30.0));
        assert_eq!(judged(&by_volume), vec![Some((Cause::Wal, Confidence::Likely)); 4]);
        // As regular in time: then both fit.
        let steady = [40; 5].map(|seconds| (seconds, 20, 0.01, 30.0));
        assert!(judged(&steady).iter().flatten().all(|found| found.1 == Confidence::Possible));
    }

    #[test]
    fn what_is_neither_was_asked_for() {
        let found = judged(&[(3, 0, 0.5, 0.0), (1, 0, 0.6, 0.0)]);
        assert_eq!(found, vec![Some((Cause::Requested, Confidence::Certain)); 2]);
        let mut mixed = [31, 35, 33, 38].map(|seconds| (seconds, 21, 0.01, 20.0)).to_vec();
        mixed.push((12, 7, 0.5, 0.0));
        assert_eq!(judged(&mixed).pop(), Some(Some((Cause::Requested, Confidence::Likely))));
    }

    #[test]
    fn how_much_is_written_meanwhile_tells_who_takes_its_time() {
        let facts = [40 << 20, 56].map(|bytes| Facts::sample(5, 4, 0.1, 0.0).with_meanwhile(bytes));
        let spacing = Spacing::of(facts.iter());
        let version = VERSIONS.last().expect("a release");
        let told =
            facts.map(|facts| spacing.judge(&facts, version).map(|v| (v.cause, v.confidence)));
        let likely = |cause| Some((cause, Confidence::Likely));
        assert_eq!(told, [likely(Cause::Wal), likely(Cause::Requested)]);
    }

    /// The last one of a range, which began with a segment that a switch had begun.
    #[test]
    fn what_is_written_after_the_last_one_tells_too_who_takes_its_time() {
        let last = |meanwhile, after| {
            let facts = Facts { meanwhile, ..Facts::sample(1, 13, 0.0, 0.0) };
            judged_of(&[facts.with_written_soon(after)])
        };
        let of = |cause, confidence| [Some((cause, confidence))];
        let asked = of(Cause::Requested, Confidence::Likely);
        let either = of(Cause::Wal, Confidence::Possible);
        assert_eq!([last(56, 25 << 20), last(56, 20 << 20)], [asked, either]);
        assert_eq!(last(40 << 20, 150 << 20), of(Cause::Wal, Confidence::Likely));
    }

    #[test]
    fn a_setting_that_was_lowered_is_no_request() {
        let mut found = [40, 45, 51, 57].map(|seconds| (seconds, 21, 0.01, 20.0)).to_vec();
        found.extend([9, 11, 14].map(|seconds| (seconds, 8, 0.01, 5.0)));
        let sure = |found: &Option<(Cause, Confidence)>| {
            found.is_none_or(|(cause, how)| cause == Cause::Wal || how == Confidence::Possible)
        };
        assert!(judged(&found).iter().all(sure), "{:?}", judged(&found));
    }
}
