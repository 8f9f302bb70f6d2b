//! What the trace shows of how the base was written: its redo points and what belongs to each
//! checkpoint, its settings, its clock.

mod by_volume;
mod certainty;
pub(crate) mod clock;
mod switches;
mod unfinished;

use super::base_checkpoint::{BaseCheckpoint, CauseReading};
use super::blocks::{BEFORE, Ordinal};
use super::causes::Causes;
use super::images_seen::ImagesSeen;
use super::position::{Geometry, padded};
use super::trace::{Entry, RecordEffect, Trace};
use std::collections::BTreeSet;
use std::ops::Range;
use switches::Switches;
use walstat_analyse::checkpoint::cause::{Cause, InferredSettings};
use walstat_analyse::checkpoint::server::KnownPace;
use walstat_format::image::Compression;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_format::payload::Time;
use walstat_format::version::Version;

/// The base.
#[derive(Debug, Clone)]
pub struct Base {
    /// The release that wrote it.
    pub version: &'static Version,
    /// Sizes of WAL pages and segments.
    pub(crate) geometry: Geometry,
    /// First byte of the range.
    pub start: Lsn,
    /// After its last byte.
    pub(crate) end: Lsn,
    /// Ordinal of the first record of the range.
    pub(crate) first: Ordinal,
    /// Ordinal after the last one.
    pub(crate) last: Ordinal,
    /// full_page_writes at the start.
    pub full_page_writes: bool,
    /// Whether changes of hint bits are logged.
    pub(crate) log_hints: bool,
    /// Whether wal_level is logical.
    pub(crate) logical: bool,
    /// How images are compressed.
    pub(crate) compression: Option<Compression>,
    /// Its checkpoints, before and after the range too.
    pub checkpoints: Vec<BaseCheckpoint>,
    /// What the spacing of its checkpoints says about its settings.
    pub(crate) shown: InferredSettings,
    /// After how many segments volume begins its checkpoints, where one number explains the whole range or
    /// the server's settings say it and nothing contradicts them.
    pub(crate) segments: Option<u64>,
    /// Whether checkpoints log the running transactions (wal_level replica or higher).
    pub(crate) logs_running: bool,
    /// How often the running transactions are logged in the range, by checkpoints too.
    pub(crate) snapshots: u64,
    /// Whether transactions ran side by side.
    pub is_concurrent: bool,
    /// Whether vacuum ran beside them: autovacuum comes by the clock, and so does whoever else vacuums.
    pub(crate) vacuums_beside_work: bool,
    /// How its images are compressed.
    pub(crate) images_seen: ImagesSeen,
    /// Whether settings change within the range.
    pub(crate) changes_settings: bool,
    /// Why its segments were closed early.
    pub switches: Switches,
    /// What its switches leave empty, bytes.
    pub(crate) switch_bytes: u64,
    /// Base backups: from the first record after the start of each up to its end.
    pub backups: Vec<Range<Ordinal>>,
    /// Those of them during whose checkpoint others went on to write.
    pub(crate) backups_beside_work: Vec<Range<Ordinal>>,
    /// Whether images are there for checking only.
    pub checks_consistency: bool,
    /// Pages that were given up for want of memory.
    pub given_up: u64,
    /// Whether a resource manager of an extension has records.
    pub has_custom_rmgrs: bool,
    /// Commits in the range.
    pub(crate) commits: Vec<(Ordinal, Time)>,
    /// How much time had passed at each of them, microseconds: it never goes back.
    passed: Vec<i64>,
}

impl Base {
    /// Looks through the trace.
    pub(crate) fn of(
        trace: &Trace,
        version: &'static Version,
        geometry: Geometry,
        range: Range<Lsn>,
    ) -> Base {
        let start = range.start;
        let (last, end) = whole_records(trace, geometry, range.end);
        let mut base = Base {
            version,
            geometry,
            start,
            end,
            first: trace.ordinal_at(start),
            last,
            full_page_writes: true,
            log_hints: trace.logs_hints,
            logical: trace.is_logical,
            compression: trace.compression,
            checkpoints: Vec::new(),
            shown: InferredSettings::default(),
            segments: None,
            logs_running: false,
            snapshots: 0,
            is_concurrent: false,
            vacuums_beside_work: false,
            images_seen: trace.images_seen,
            changes_settings: false,
            switches: Switches::default(),
            switch_bytes: 0,
            backups: Vec::new(),
            backups_beside_work: Vec::new(),
            checks_consistency: trace.checks_consistency,
            given_up: trace.given_up,
            has_custom_rmgrs: trace.has_custom_rmgrs,
            commits: Vec::new(),
            passed: Vec::new(),
        };
        base.read_marks(trace);
        base.find_backups_beside_work();
        base.switch_bytes = base.left_empty(trace);
        base.switches = Switches::of(trace, &base);
        let unfinished = unfinished::find(trace, &base);
        base.checkpoints.extend(unfinished);
        base.checkpoints.order_by_key(|checkpoint| checkpoint.first);
        base.logs_running |= base.checkpoints.iter().all(|checkpoint| !checkpoint.online);
        base
    }

    /// Takes why its checkpoints began.
    pub(crate) fn with_causes(mut self, causes: &Causes) -> Base {
        for checkpoint in &mut self.checkpoints {
            checkpoint.judge(causes.of_redo(checkpoint.redo));
        }
        self.recoveries_after_unfinished();
        self.shown = causes.shown.clone();
        self.switches = self.switches.of_server(causes.archive_timeout);
        by_volume::settle(&mut self);
        certainty::settle(&mut self, causes.pace);
        // What the WAL shows is of when it was written; the server's files are of now.
        if let Some(KnownPace { timeout, segments }) = causes.pace {
            self.shown.timeout_seconds = self.shown.timeout_seconds.or(timeout.try_into().ok());
            if self.shown.max_wal_size.is_none() && by_volume::allows(&self, segments) {
                self.segments = self.segments.or(Some(segments));
            }
        }
        self
    }

    /// A server that stops ends its checkpoint first: after one that never ended, images say, it had crashed.
    fn recoveries_after_unfinished(&mut self) {
        let mut is_unfinished = false;
        for checkpoint in &mut self.checkpoints {
            if is_unfinished && checkpoint.may_end_recovery() {
                checkpoint.settle(Cause::EndOfRecovery);
            }
            is_unfinished = checkpoint.record.is_none();
        }
    }

    fn read_marks(&mut self, trace: &Trace) {
        let (mut running, mut redo_mark, mut images) = (None, None, None);
        for (ordinal, effect) in &trace.effects {
            match *effect {
                RecordEffect::Checkpoint { redo, online, full_page_writes, time } => {
                    let first = trace.redo_at(redo);
                    let record = Some(*ordinal);
                    let ended = trace.entry_of(*ordinal).map(|entry| entry.lsn);
                    let mut own = Vec::new();
                    if online {
                        let running = running.take().filter(|running| *running >= first);
                        self.logs_running |= running.is_some();
                        own.extend(redo_mark.take().into_iter().chain(running));
                        own.push(*ordinal);
                    }
                    let begun = BaseCheckpoint::begun(redo, first, time);
                    self.checkpoints.push(BaseCheckpoint {
                        record,
                        ended,
                        records: own,
                        online,
                        ..begun
                    });
                    if first <= self.first || images.is_none() {
                        images = Some(full_page_writes);
                    }
                }
                RecordEffect::RunningXacts => {
                    running = Some(*ordinal);
                    self.snapshots += u64::from(self.contains(*ordinal));
                }
                RecordEffect::Redo => redo_mark = Some(*ordinal),
                RecordEffect::BackupEnd { start } => {
                    self.backups.push(trace.ordinal_at(start)..*ordinal);
                }
                RecordEffect::FullPageWrites(on) if *ordinal < self.first => images = Some(on),
                RecordEffect::FullPageWrites(_) => self.changes_settings |= self.contains(*ordinal),
                RecordEffect::Parameters { .. } => self.changes_settings |= self.contains(*ordinal),
                RecordEffect::Hint { .. } => self.log_hints = true,
                _ => {}
            }
        }
        self.full_page_writes = images.unwrap_or(true);
        let commits = trace.commits.iter().filter(|commit| self.contains(commit.ordinal));
        self.commits = commits.map(|commit| (commit.ordinal, commit.time)).collect();
        self.passed = clock::passed(&self.commits);
        let meets = |(first, last): (Ordinal, Ordinal)| first < self.last && last >= self.first;
        self.is_concurrent = trace.side_by_side.is_some_and(meets);
        self.vacuums_beside_work = trace.beside_vacuum.is_some_and(meets);
        self.sharpen_times(trace);
    }

    fn find_backups_beside_work(&mut self) {
        let beside_work = self.checkpoints.iter().filter(|own| own.is_beside_work());
        let begun: BTreeSet<Ordinal> = beside_work.map(|own| own.first).collect_set();
        let all = self.backups.iter().filter(|backup| begun.contains(&backup.start));
        self.backups_beside_work = all.cloned().collect();
    }

    fn left_empty(&self, trace: &Trace) -> u64 {
        let switches = trace.effects.iter().filter(|(_, effect)| *effect == RecordEffect::Switch);
        let own = switches.filter(|(ordinal, _)| self.contains(*ordinal));
        let entries = own.filter_map(|(ordinal, _)| trace.entry_of(*ordinal));
        let end = |entry: Entry| self.geometry.usable(entry.lsn) + padded(u64::from(entry.bytes));
        entries.map(|entry| self.geometry.left_of_segment(end(entry))).sum()
    }

    /// LSN distance of the range.
    pub fn bytes(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// What of it was written, beside what switches left empty.
    pub fn written_bytes(&self) -> u64 {
        self.bytes().saturating_sub(self.switch_bytes)
    }

    /// Checkpoints tell whole seconds: the first commit after one tells the part, if it lies in that
    /// second.
    fn sharpen_times(&mut self, trace: &Trace) {
        for checkpoint in &mut self.checkpoints {
            let commit = trace.commit_from(checkpoint.first).map(|commit| commit.time);
            let second = checkpoint.time.0..checkpoint.time.0.saturating_add(1_000_000);
            if let Some(time) = commit.filter(|time| second.contains(&time.0)) {
                checkpoint.time = time;
            }
        }
    }

    /// Whether a base backup forced images at a record.
    pub(crate) fn is_in_backup(&self, ordinal: Ordinal) -> bool {
        self.backups.iter().any(|backup| backup.contains(&ordinal))
    }

    /// Whether that backup ran beside work.
    pub(crate) fn is_in_backup_beside_work(&self, ordinal: Ordinal) -> bool {
        self.backups_beside_work.iter().any(|backup| backup.contains(&ordinal))
    }

    /// Whether a record lies in the range.
    pub fn contains(&self, ordinal: Ordinal) -> bool {
        self.first <= ordinal && ordinal < self.last
    }

    /// When the next transaction of the range commits.
    pub(crate) fn next_commit(&self, after: Ordinal) -> Option<Time> {
        let next = self.commits.partition_point(|(ordinal, _)| *ordinal <= after);
        self.commits.get(next).map(|(_, time)| *time)
    }

    /// How long it took, by the clock of its commits.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let (first, last) = (self.commits.first()?.1, self.commits.last()?.1);
        Some(last.0.checked_sub(first.0).filter(|micros| *micros > 0)? as f64 / 1e6)
    }

    /// How fast it was written.
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        let seconds = self.seconds()?;
        Some(self.end.0.saturating_sub(self.start.0) as f64 / seconds)
    }

    /// The checkpoints whose redo point lies after the start and not after the end.
    pub(crate) fn own_checkpoints(&self) -> impl Iterator<Item = &BaseCheckpoint> {
        self.checkpoints.iter().filter(|c| c.redo > self.start && c.redo <= self.end)
    }

    /// Whether volume or the clock began one of them, as far as that is likely.
    pub(crate) fn has_checkpoints_by(&self, cause: Cause) -> bool {
        let began = |own: &BaseCheckpoint| {
            own.is_sure() && own.moved_by(CauseReading::Likely) == Some(cause)
        };
        self.own_checkpoints().any(began)
    }

    /// Whether somebody asked for one while others went on to write.
    pub(crate) fn has_checkpoints_beside_work(&self) -> bool {
        self.own_checkpoints().any(|own| {
            let is_asked = own.online && own.moved_by(CauseReading::Likely).is_none();
            is_asked && own.is_beside_work()
        })
    }

    /// The last checkpoint that began before the range.
    pub fn checkpoint_before(&self) -> Option<&BaseCheckpoint> {
        self.checkpoints.iter().rfind(|checkpoint| checkpoint.redo <= self.start)
    }

    /// The first record after the redo point that is in force at a record of the base.
    pub(crate) fn redo_at(&self, ordinal: Ordinal) -> Ordinal {
        let after = self.checkpoints.partition_point(|checkpoint| checkpoint.first <= ordinal);
        let before = after.checked_sub(1).and_then(|index| self.checkpoints.get(index));
        before.map_or(BEFORE, |checkpoint| checkpoint.first)
    }

    /// The first record after the redo point from which a crash before this record was recovered.
    pub(crate) fn recovers_from(&self, ordinal: Ordinal) -> Ordinal {
        let is_complete = |own: &&BaseCheckpoint| own.record.is_some_and(|record| record < ordinal);
        self.checkpoints.iter().rfind(is_complete).map_or(BEFORE, |own| own.first)
    }

    /// Whether the redo point that is in force at the start lies in the WAL.
    pub fn sees_cycle(&self) -> bool {
        self.checkpoint_before().is_some_and(|checkpoint| checkpoint.first > BEFORE)
    }

    /// The first record after the redo point that is in force at the start.
    pub(crate) fn redo_at_start(&self) -> Ordinal {
        self.checkpoint_before().map_or(BEFORE, |checkpoint| checkpoint.first)
    }
}

/// The range up to `end`, without its last record if that ends after `end`.
fn whole_records(trace: &Trace, geometry: Geometry, end: Lsn) -> (Ordinal, Lsn) {
    let after = trace.ordinal_at(end);
    let last = after.checked_sub(1).and_then(|last| trace.entry_of(last));
    let is_cut =
        |entry: &Entry| geometry.end(geometry.usable(entry.lsn) + u64::from(entry.bytes)) > end;
    match last.filter(is_cut) {
        Some(entry) => (after - 1, entry.lsn),
        None => (after, end),
    }
}
