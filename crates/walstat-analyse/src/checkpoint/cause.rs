//! Why a checkpoint began, as far as the WAL tells.
//!
//! Some causes are written down: a shutdown's own record type, the end of recovery, a backup that
//! starts from the redo point. The others follow from what cannot have been: a server begins no
//! checkpoint by time less than 30 seconds after the one before, and none by volume before a segment
//! is full. What is left over is told by regular spacing, in time or in segments (`by_spacing`), or by
//! the settings where they are known (`by_settings`); where that fits more than one cause, or none,
//! nothing is said.

use super::evidence::Evidence;
use super::server::Server;
use super::spacing::{Facts, Spacing};
use super::verdict::verdict;
use super::{Cycle, Cycles, EndedCheckpoint, OidStock};
use crate::deferred_log::FilesChange;
use crate::time_map::TimeMap;
use walstat_format::lsn::Lsn;

pub use super::by_spacing::InferredSettings;
pub use super::verdict::{Cause, Confidence, Verdict};

/// Why the checkpoints of a range began.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judged {
    /// Of each cycle, as far as anything tells.
    pub verdicts: Vec<Option<Verdict>>,
    /// The settings that they tell.
    pub settings: InferredSettings,
}

/// Causes of all checkpoints of a range, and the settings that they tell.
pub fn judge(found: &Cycles, clock: &TimeMap, server: &Server) -> Judged {
    let cycles = &found.cycles;
    let written: Vec<Option<Verdict>> = (0..cycles.len()).map(|i| written(cycles, i)).collect();
    let facts: Vec<Option<Facts>> = (0..cycles.len())
        .map(|i| Facts::of(found, i, server, clock).filter(|_| written[i].is_none()))
        .collect();
    let spacing = Spacing::of(facts.iter().flatten());
    let verdict = |(written, facts): (Option<Verdict>, &Option<Facts>)| {
        written.or_else(|| unwritten(&spacing, facts.as_ref()?, server))
    };
    let verdicts = written.into_iter().zip(&facts).map(verdict).collect();
    Judged { verdicts, settings: spacing.settings(server.segment_bytes, server.version) }
}

/// The cause of a checkpoint that no record states: what the known settings say of it, or what its spacing
/// says, if nothing was written before it or [`shows_other_settings`].
fn unwritten(spacing: &Spacing, facts: &Facts, server: &Server) -> Option<Verdict> {
    let by_spacing = spacing.judge(facts, server.version);
    let Some(by_settings) = server.pace.and_then(|pace| pace.judge(facts)) else {
        return by_spacing;
    };
    let shows_others = |told: &Verdict| {
        told.confidence >= Confidence::Likely && shows_other_settings(&by_settings, told, facts)
    };
    if facts.is_idle || by_spacing.as_ref().is_some_and(shows_others) {
        by_spacing
    } else {
        Some(by_settings)
    }
}

/// Whether the spacing of a checkpoint shows that it was made under other settings than the known ones:
///
/// | the settings say | its spacing says | the spacing is right |
/// | --- | --- | --- |
/// | requested | by volume | if it began with a segment, or waited in the queue |
/// | requested | by time | always |
/// | by volume | requested | if it did not begin with a segment, or was done at once |
/// | anything else | | never |
///
/// One by volume begins near the start of a segment and is spread out, however much was written before it.
fn shows_other_settings(by_settings: &Verdict, by_spacing: &Verdict, facts: &Facts) -> bool {
    use Cause::{Requested, Time, Wal};
    let may_be_wal = facts.began_with_segment() || facts.is_queued;
    let is_at_once = matches!(by_spacing.evidence, Evidence::DoneAtOnce { .. });
    match (by_settings.cause, by_spacing.cause) {
        (Requested, Wal) => may_be_wal,
        (Requested, Time) => true,
        (Wal, Requested) => !may_be_wal || is_at_once,
        _ => false,
    }
}

/// The cause of the checkpoint with which a cycle begins, where the WAL writes it down.
fn written(cycles: &[Cycle], index: usize) -> Option<Verdict> {
    let cycle = cycles.get(index)?;
    cycle.redo?;
    if cycle.began_backup {
        return verdict(Cause::Requested, Confidence::Certain, Evidence::BackupFromRedoPoint);
    }
    let ended = cycle.checkpoint.as_ref()?;
    if ended.seen.is_shutdown {
        let before = index.checked_sub(1).and_then(|before| cycles.get(before));
        let is_cut_off = before.is_some_and(|before| before.is_cut_off()) && !ended.since.lost;
        let never_ended = is_cut_off.then_some(Evidence::CheckpointNeverEnded);
        let recovered = never_ended
            .and_then(|evidence| verdict(Cause::EndOfRecovery, Confidence::Certain, evidence));
        recovered.or_else(|| stopped_or_recovered(ended, cycle.end <= ended.end))
    } else if ended.since.end_of_recovery {
        verdict(Cause::EndOfRecovery, Confidence::Certain, Evidence::AfterEndOfRecovery)
    } else {
        beside_files(cycle, ended)
    }
}

/// A server writes the same record when it stops and when it has recovered from a crash.
fn stopped_or_recovered(ended: &EndedCheckpoint, is_last: bool) -> Option<Verdict> {
    use Cause::{EndOfRecovery, Shutdown, ShutdownOrRecovery};
    use Confidence::{Certain, Likely, Possible};
    let (says, since) = (&ended.seen.says, &ended.since);
    let (now, before) = (says.timeline, says.previous_timeline);
    if ended.seen.previous.0 == 0 {
        // The first record of all: initdb wrote it.
        return None;
    }
    if now != before {
        return verdict(EndOfRecovery, Certain, Evidence::BeginsTimeline(now));
    }
    if since.overwrite {
        return verdict(EndOfRecovery, Certain, Evidence::TornRecordReplaced);
    }
    if since.never_ended > 0 {
        let evidence = Evidence::TransactionsNeverEnded(since.never_ended);
        return verdict(EndOfRecovery, Certain, evidence);
    }
    match since.oids {
        OidStock::GivenBack => return verdict(Shutdown, Certain, Evidence::OidsGivenBack),
        OidStock::Lost => return verdict(EndOfRecovery, Likely, Evidence::OidsLost),
        OidStock::Unknown => {}
    }
    if since.after_switch {
        return verdict(Shutdown, Likely, Evidence::AfterSwitch);
    }
    if is_last {
        return verdict(Shutdown, Possible, Evidence::NothingAfterIt);
    }
    verdict(ShutdownOrRecovery, Certain, Evidence::ShutdownCheckpoint)
}

/// How far, in bytes, the record about a database's files may lie from the record or redo point of the
/// checkpoint that it requested.
const NEAR: u64 = 1 << 20;

/// CREATE DATABASE by copying files orders a checkpoint before and one after; DROP DATABASE one
/// before.
fn beside_files(cycle: &Cycle, ended: &EndedCheckpoint) -> Option<Verdict> {
    use Confidence::Likely;
    let redo = cycle.redo?;
    let is_near =
        |later: Lsn, earlier: Lsn| later.0.checked_sub(earlier.0).is_some_and(|d| d < NEAR);
    if ended.since.copied.is_some_and(|copied| is_near(redo, copied)) {
        return verdict(Cause::Requested, Likely, Evidence::AfterDatabaseCopied);
    }
    let (change, lsn) = cycle.files?;
    if !is_near(lsn, ended.lsn) {
        return None;
    }
    let evidence = match change {
        FilesChange::Copied => Evidence::BeforeDatabaseCopied,
        FilesChange::Dropped => Evidence::BeforeDatabaseDropped,
    };
    verdict(Cause::Requested, Likely, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::EventsSince;
    use crate::checkpoint::server::KnownPace;
    use crate::deferred_log::CheckpointSeen;
    use walstat_format::version::VERSIONS;

    #[test]
    fn a_checkpoint_that_never_ended_tells_a_crash() {
        let cut_off = Cycle { redo: Some(Lsn(100)), ..Cycle::default() };
        let shutdown = |lost| {
            let seen =
                CheckpointSeen { is_shutdown: true, previous: Lsn(8), ..CheckpointSeen::sample() };
            let since = EventsSince { lost, ..EventsSince::default() };
            let ended = EndedCheckpoint { lsn: Lsn(500), end: Lsn(600), seen, since };
            Cycle {
                redo: Some(Lsn(500)),
                end: Lsn(900),
                checkpoint: Some(ended),
                ..Cycle::default()
            }
        };
        let told = |cycles: &[Cycle]| written(cycles, 1).map(|v| (v.cause, v.confidence));
        let recovery = Some((Cause::EndOfRecovery, Confidence::Certain));
        assert_eq!(told(&[cut_off.clone(), shutdown(false)]), recovery);
        let either = Some((Cause::ShutdownOrRecovery, Confidence::Certain));
        assert_eq!(told(&[cut_off, shutdown(true)]), either, "its record may be missing");
        assert_eq!(told(&[shutdown(false), shutdown(false)]), either);
    }

    /// What is said beside known settings of the first of some checkpoints.
    fn beside(facts: &[Facts], segments: u64) -> Option<Cause> {
        let version = VERSIONS.last().expect("a release");
        let pace = Some(KnownPace { timeout: 300, segments });
        let server = Server { segment_bytes: 16 << 20, version, pace, archive_timeout: None };
        unwritten(&Spacing::of(facts.iter()), facts.first()?, &server).map(|told| told.cause)
    }

    #[test]
    fn where_the_volume_was_reached_one_may_have_been_asked_for() {
        let facts = [56, 40 << 20].map(|bytes| Facts::sample(5, 4, 0.1, 0.0).with_meanwhile(bytes));
        let [at_once, takes_its_time] = facts;
        assert_eq!(beside(&[at_once, takes_its_time], 3), Some(Cause::Requested));
        assert_eq!(beside(&[takes_its_time, at_once], 3), Some(Cause::Wal));
    }

    #[test]
    fn short_of_the_volume_one_is_by_volume_only_where_it_begins_with_a_segment() {
        let load = |place| {
            let load = [(0, 3), (1, 5), (0, 2), (2, 3)];
            load.map(|(a, b)| Facts::sample(a, b, place, 0.0).under_load())
        };
        assert_eq!(beside(&load(0.6), 40), Some(Cause::Requested));
        assert_eq!(beside(&load(0.05), 40), Some(Cause::Wal));
    }
}
