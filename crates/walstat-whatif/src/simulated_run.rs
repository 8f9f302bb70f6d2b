//! One simulated run, record by record: every decision of the server made anew, in the simulated
//! WAL's own positions. It is told how long images are; where checkpoints begin is up to its
//! [`Pace`].

mod checkpoints;
mod hints;
mod switches;

use super::base::Base;
use super::blocks::{BEFORE, FIRST, NEVER, Ordinal};
use super::imaged_page::ImagedPage;
use super::level::{self, AppliedDelta};
use super::outcome::RunOutcome;
use super::pace::{Pace, moved_records};
use super::plan::{Certainty, ImageBytes, Plan};
use super::position::{Geometry, padded};
use super::sequence::Sequences;
use super::settings::{ArchiveTimeout, Settings};
use super::trace::{
    Entry, PlainLength, RecordEffect, RecordGroup, Trace, TracedBlock, TracedRecord, WalLevelDelta,
    entry_fact,
};
use checkpoints::LastCheckpoints;
use std::collections::VecDeque;
use switches::OpenSegment;
use walstat_format::block::{BLOCK_HEADER_BYTES, DATA_HEADER_SHORT_BYTES, PLACE_BYTES};
use walstat_format::image::{HOLE_HEADER_BYTES, IMAGE_HEADER_BYTES};
use walstat_format::lsn::Lsn;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_format::rmgr::RecordType;

/// Bytes of a record's header and of the short header of its main data.
const HEAD_BYTES: u32 = (RECORD_HEADER_BYTES + DATA_HEADER_SHORT_BYTES) as u32;
/// `RUNNING_XACTS` without xids; 4 more for each.
const RUNNING_XACTS_BYTES: u32 = HEAD_BYTES + 24;
/// `FPI_FOR_HINT` without its image.
const HINT_BYTES: u32 = (RECORD_HEADER_BYTES + BLOCK_HEADER_BYTES + PLACE_BYTES) as u32;
/// A redo point that marks itself (17 and later).
const CHECKPOINT_REDO_BYTES: u32 = HEAD_BYTES + 4;
/// A switch has no data.
const SWITCH_BYTES: u32 = RECORD_HEADER_BYTES as u32;

/// A simulated run.
pub(crate) struct SimulatedRun<'t> {
    trace: &'t Trace,
    base: &'t Base,
    geometry: Geometry,
    settings: InEffect,
    pace: Pace<'t>,
    open: OpenSegment,
    sequences: Sequences<'t>,
    /// Of the last redo point.
    redo: Ordinal,
    last: LastCheckpoints,
    /// Where the next record begins, without page headers (`position`).
    usable: u64,
    /// No checkpoint begins or ends before a record with a smaller ordinal and position.
    quiet: (Ordinal, u64),
    replaces_checkpoints: bool,
    /// Records of the base's checkpoints that do not stay.
    dropped: VecDeque<Ordinal>,
    /// Transactions that run, as of the last commit.
    running: u32,
    touched: Touched,
    /// Whether every redo point so far is one of the base's too.
    has_base_redo_points: bool,
    imaged: ImagedPage,
    outcome: RunOutcome,
}

/// Settings of this run.
#[derive(Debug, Clone, Copy)]
struct InEffect {
    log_hints: bool,
    full_page_writes: bool,
    /// Whether full_page_writes is that of the base.
    follows_base: bool,
    archive_timeout: Option<ArchiveTimeout>,
    /// The scenario's wal_level, if not the base's; `Some(true)`: logical.
    to_logical: Option<bool>,
}

impl InEffect {
    fn of(base: &Base, settings: &Settings) -> InEffect {
        InEffect {
            log_hints: settings.log_hints.unwrap_or(base.log_hints),
            full_page_writes: settings.full_page_writes.unwrap_or(base.full_page_writes),
            follows_base: settings.full_page_writes.is_none(),
            archive_timeout: settings.archive_timeout,
            to_logical: settings.logical.filter(|logical| *logical != base.logical),
        }
    }
}

/// Pages that were touched since the redo point, and since the one before.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    previous_redo: Ordinal,
    before: u64,
    since: u64,
    /// Those that were touched both before and since.
    again: u64,
    /// Pages that were touched before the range, and those of them that were touched in it.
    old: u64,
    old_again: u64,
}

impl<'t> SimulatedRun<'t> {
    /// A run that is about to begin.
    pub(crate) fn new(trace: &'t Trace, base: &'t Base, settings: &Settings) -> SimulatedRun<'t> {
        let segment = settings.segment_bytes.unwrap_or(base.geometry.segment);
        let geometry = Geometry { segment, ..base.geometry };
        let pace = Pace::new(trace, base, settings, geometry);
        SimulatedRun {
            trace,
            base,
            geometry,
            settings: InEffect::of(base, settings),
            open: OpenSegment::first_of(base, segment),
            replaces_checkpoints: !pace.is_base(),
            sequences: Sequences::new(trace, !pace.is_base()),
            pace,
            redo: base.redo_at_start(),
            last: LastCheckpoints::before(base),
            usable: geometry.usable(base.start),
            quiet: (NEVER, 0),
            dropped: moved_records(base, &settings.checkpoints).into(),
            running: 0,
            touched: Touched::default(),
            has_base_redo_points: true,
            imaged: ImagedPage::default(),
            outcome: RunOutcome::default(),
        }
    }

    /// Where the next record begins.
    pub(crate) fn position(&self) -> Lsn {
        self.geometry.start(self.usable)
    }

    /// The end of what was written last, as it is stamped on pages.
    pub(crate) fn end_position(&self) -> Lsn {
        self.geometry.end(self.usable)
    }

    /// Where a record of the base ends there, as it is stamped on its pages.
    pub(crate) fn base_end(&self, entry: &Entry) -> Lsn {
        let geometry = self.base.geometry;
        geometry.end(geometry.usable(entry.lsn) + padded(u64::from(entry.bytes)))
    }

    /// Whether the page of a reference is stamped by its record.
    pub(crate) fn stamps(&self, reference: &TracedBlock) -> bool {
        reference.is(entry_fact::STAMPS)
            && (self.settings.log_hints || !reference.is(entry_fact::WITH_HINTS))
    }

    /// Whether something happens before this record that depends on where it begins, or will when
    /// `more` bytes are written.
    pub(crate) fn is_due(&self, ordinal: Ordinal, more: u64) -> bool {
        self.pace.is_due(ordinal, self.usable + more)
    }

    /// Sees a record before the range.
    pub(crate) fn warm_up(&mut self, traced: &TracedRecord<'_>) {
        self.sequences.before(traced, self.base.redo_at(traced.ordinal));
        let is_new = |r: &&TracedBlock| self.stamps(r) && self.stamped(r) < FIRST;
        self.touched.old += traced.refs.iter().filter(is_new).count() as u64;
    }

    /// Takes the next record, and writes it; `image` says how long each image is.
    pub(crate) fn take(
        &mut self,
        traced: &TracedRecord<'_>,
        plain: &PlainLength,
        image: impl FnMut(usize, &TracedBlock) -> ImageBytes,
    ) {
        if self.is_plain_here(traced, plain) {
            self.follow(traced.entry, plain);
        } else {
            let plan = self.plan(traced, plain.gap);
            self.write(traced, plan, image);
        }
    }

    /// Whether this run writes the record with its plain length.
    #[inline]
    fn is_plain_here(&self, traced: &TracedRecord<'_>, plain: &PlainLength) -> bool {
        plain.is_plain
            && plain.oldest >= self.redo
            && traced.ordinal < self.quiet.0
            && self.usable + plain.gap < self.quiet.1
            && (traced.entry.rows == 0 || !self.sequences.heed_rows())
            && (self.settings.to_logical.is_none() || !traced.has_delta())
    }

    #[inline]
    fn follow(&mut self, entry: &Entry, plain: &PlainLength) {
        self.usable += plain.gap + plain.bytes;
        self.outcome.uncertain.unknown_bytes += plain.gap;
        self.outcome.records += 1;
        self.touched.since += u64::from(plain.new_pages);
        self.outcome.differ(entry.kind, plain.more, -plain.base_images);
        if plain.looks_at {
            self.imaged.look_without_image();
        }
    }

    /// Whether all records of a group are written as in the base: then [`SimulatedRun::skip`] does the same
    /// as taking each.
    pub(crate) fn skips(&self, group: &RecordGroup) -> bool {
        group.is_plain()
            && group.oldest >= self.redo
            && group.end() <= self.quiet.0
            && self.usable + group.bytes < self.quiet.1
            && (!group.has_rows() || !self.sequences.heed_rows())
            && (!group.has_deltas() || self.settings.to_logical.is_none())
            && (!group.has_commits() || !self.heeds_commits())
    }

    /// Writes the records of a group.
    pub(crate) fn skip(&mut self, group: &RecordGroup) {
        self.usable += group.bytes;
        self.outcome.records += u64::from(group.count);
        self.touched.since += u64::from(group.new_pages);
        if group.looks_at() {
            self.imaged.look_without_image();
        }
        if group.has_commits() {
            self.running = group.running;
        }
    }

    /// Whether something may happen after a commit.
    fn heeds_commits(&self) -> bool {
        self.pace.heeds_commits()
            || matches!(self.settings.archive_timeout, Some(ArchiveTimeout::After(_)))
    }

    /// Decides what becomes of the next record, before which so many bytes hold none. Records are written
    /// with [`SimulatedRun::write`] in the order in which they were planned.
    pub(crate) fn plan(&mut self, traced: &TracedRecord<'_>, gap: u64) -> Plan {
        let TracedRecord { ordinal, entry, refs, effect, delta } = *traced;
        let mut plan = Plan { before: gap, images: None, hints: 0, level: AppliedDelta::SAME };
        self.outcome.uncertain.unknown_bytes += gap;
        while let Some(event) = self.pace.next(ordinal, self.usable + plan.before) {
            self.checkpoint(event, traced, &mut plan.before);
        }
        self.quiet = self.pace.quiet();
        let level = self.at_level(delta);
        plan.level = level;
        let is_not_frozen = self.skips_freezing(refs);
        self.outcome.uncertain.freezes_lost += u64::from(is_not_frozen);
        if level.is_gone
            || is_not_frozen
            || self.drops(ordinal, effect)
            || self.skips_hint(effect, refs)
        {
            if effect == Some(RecordEffect::Hint { is_main: true }) {
                self.imaged.look_without_image();
            }
            return plan;
        }
        let log = self.sequences.before(traced, self.redo);
        (0..log.added).for_each(|_| self.add(entry.kind, log.bytes, &mut plan.before));
        if !log.replaces {
            let mask = |taken: &dyn Fn(&TracedBlock) -> bool| {
                let places = refs.iter().enumerate().filter(|(_, reference)| taken(reference));
                places.fold(0, |mask, (index, _)| mask | 1 << index)
            };
            plan.hints = mask(&|reference| self.is_hinted_first(reference));
            let images = mask(&|r| self.takes_image(ordinal, r)) & !plan.hints;
            plan.images = Some(images);
            if let Some(first) = refs.first() {
                self.freeze(effect, first, &mut plan);
            }
        }
        plan
    }

    fn at_level(&self, delta: WalLevelDelta) -> AppliedDelta {
        self.settings
            .to_logical
            .map_or(AppliedDelta::SAME, |to_logical| level::at(delta, to_logical))
    }

    /// A record that the base does not have here.
    fn add(&mut self, kind: RecordType, bytes: u32, before: &mut u64) {
        let bytes = padded(u64::from(bytes));
        *before += bytes;
        self.outcome.records += 1;
        self.outcome.differ(kind, bytes as i64, 0);
    }

    fn kind(&self, rmgr: u8, info: u8) -> RecordType {
        RecordType::of(rmgr, info, self.base.version)
    }

    /// Whether a record of the base is not written here: of a checkpoint that is elsewhere, or a switch by
    /// the clock. Counts switches of which it is not known why they were made.
    fn drops(&mut self, ordinal: Ordinal, effect: Option<RecordEffect>) -> bool {
        while self.dropped.front().is_some_and(|next| *next < ordinal) {
            self.dropped.pop_front();
        }
        let of_checkpoint = self.dropped.front() == Some(&ordinal);
        let is_switch = effect == Some(RecordEffect::Switch)
            && self.settings.archive_timeout.is_some()
            && !self.base.switches.is_asked(ordinal);
        let is_unknown = is_switch && self.base.switches.is_unknown(ordinal);
        self.outcome.switches_dropped += u64::from(is_unknown);
        of_checkpoint || is_switch
    }

    /// When the page was stamped before.
    fn stamped(&self, reference: &TracedBlock) -> Ordinal {
        if self.settings.log_hints { reference.stamped } else { reference.stamped_without_hints }
    }

    fn is_stale(&self, reference: &TracedBlock) -> bool {
        let stamped = self.stamped(reference);
        // Where no images were taken, a page without one tells nothing.
        stamped < self.redo || stamped == BEFORE && !self.base.full_page_writes
    }

    /// Whether an image of a reference's page may be taken, before or with the record.
    pub(crate) fn may_take_image(&self, ordinal: Ordinal, reference: &TracedBlock) -> bool {
        reference.is(entry_fact::CHECK_IMAGE)
            || self.is_hinted_first(reference)
            || self.takes_image(ordinal, reference)
    }

    fn takes_image(&self, ordinal: Ordinal, reference: &TracedBlock) -> bool {
        let writes = self.settings.full_page_writes || self.base.is_in_backup(ordinal);
        let usual = writes && self.is_stale(reference);
        if reference.is(entry_fact::USUAL) {
            usual
        } else if reference.is(entry_fact::WITH_HINTS) {
            self.settings.log_hints && usual
        } else if reference.is(entry_fact::UNSAID) {
            let explained = reference.stamped < self.base.redo_at(ordinal);
            usual || reference.is(entry_fact::BASE_IMAGE) && !explained
        } else {
            reference.is(entry_fact::ALWAYS)
        }
    }

    /// Writes what was planned; `image` says how long each image is.
    pub(crate) fn write(
        &mut self,
        traced: &TracedRecord<'_>,
        plan: Plan,
        mut image: impl FnMut(usize, &TracedBlock) -> ImageBytes,
    ) {
        let TracedRecord { ordinal, entry, refs, effect, .. } = *traced;
        self.usable += plan.before;
        let base_images = refs.iter().filter(|reference| has_base_image(reference)).count() as i64;
        let base_bytes = padded(u64::from(entry.bytes)) as i64;
        let Some(mask) = plan.images else {
            self.outcome.differ(entry.kind, -base_bytes, -base_images);
            return;
        };
        let images_before = self.outcome.images;
        let mut bytes = entry.fixed_bytes.saturating_add_signed(plan.level.more);
        for (index, reference) in refs.iter().enumerate() {
            if plan.hints >> index & 1 != 0 {
                let unpruned = self.unpruned(ordinal, reference);
                self.hint(ordinal, reference, image(index, &unpruned));
            }
            let taken = mask >> index & 1 != 0;
            if taken || reference.is(entry_fact::CHECK_IMAGE) {
                bytes += self.image(ordinal, reference, image(index, reference));
            }
            let lost = !taken
                && reference.is(entry_fact::BASE_IMAGE
                    | entry_fact::LOOKED_AT
                    | entry_fact::DATA_ESTIMATED);
            self.outcome.uncertain.freezes_lost +=
                u64::from(lost && self.base.version.pages.freezes_with_pruning);
            if !taken || self.keeps_data(reference) {
                let elsewhere = plan.level.data.filter(|_| index == 0);
                bytes += u32::from(elsewhere.unwrap_or(reference.data_bytes));
                if reference.is(entry_fact::DATA_ESTIMATED) {
                    self.outcome.uncertain.estimated_bytes += u64::from(reference.data_bytes);
                    self.outcome.uncertain.estimated_data_bytes += u64::from(reference.data_bytes);
                }
            }
        }
        self.outcome.uncertain.estimated_bytes += u64::from(plan.level.guessed);
        self.outcome.uncertain.old_rows_possible += u64::from(plan.level.old_row);
        let length = padded(u64::from(bytes));
        self.usable += length;
        self.outcome.records += 1;
        self.touch(refs);
        let hints = u64::from(plan.hints.count_ones());
        let images = (self.outcome.images - images_before - hints) as i64;
        self.outcome.differ(entry.kind, length as i64 - base_bytes, images - base_images);
        self.after(ordinal, effect);
    }

    fn keeps_data(&self, reference: &TracedBlock) -> bool {
        match self.settings.to_logical {
            None => reference.is(entry_fact::KEEPS_DATA),
            Some(_) => !self.base.logical && reference.is(entry_fact::KEPT_AT_LOGICAL),
        }
    }

    fn image(&mut self, ordinal: Ordinal, reference: &TracedBlock, image: ImageBytes) -> u32 {
        let stored = u32::from(image.stored);
        let hole = image.compressed && reference.is(entry_fact::HOLE);
        self.outcome.images += 1;
        self.outcome.image_bytes += u64::from(stored);
        if image.compressed {
            self.outcome.uncertain.compressed_bytes += u64::from(stored);
            if !reference.is(entry_fact::BASE_IMAGE) {
                self.outcome.uncertain.added_compressed_bytes += u64::from(stored);
            }
        }
        match image.certainty {
            Certainty::Known => {}
            Certainty::Sampled => self.outcome.uncertain.sampled_bytes += u64::from(stored),
            Certainty::Estimated => {
                self.outcome.uncertain.estimated_images += 1;
                self.outcome.uncertain.estimated_bytes += u64::from(stored);
            }
        }
        if !self.settings.full_page_writes && self.base.is_in_backup_beside_work(ordinal) {
            self.outcome.uncertain.backup_image_bytes += u64::from(stored);
        }
        if self.is_unseen(ordinal, reference) {
            self.outcome.uncertain.unseen_bytes += u64::from(stored);
        }
        stored + IMAGE_HEADER_BYTES + if hole { HOLE_HEADER_BYTES } else { 0 }
    }

    /// Whether nothing says when the block was stamped before: without the base's checkpoints it
    /// may have been after the redo point, before the WAL that is there.
    fn is_unseen(&self, ordinal: Ordinal, reference: &TracedBlock) -> bool {
        let is_new = reference.is(entry_fact::USUAL) && self.stamped(reference) == NEVER;
        is_new && self.redo == BEFORE && self.base.redo_at(ordinal) != BEFORE
    }

    fn after(&mut self, ordinal: Ordinal, effect: Option<RecordEffect>) {
        match effect {
            Some(RecordEffect::Checkpoint { online, .. }) => self.base_checkpoint(ordinal, online),
            Some(RecordEffect::FullPageWrites(on)) if self.settings.follows_base => {
                self.settings.full_page_writes = on
            }
            Some(RecordEffect::FreeSpace { page, above }) => self.map_space(ordinal, page, above),
            Some(RecordEffect::Switch) => {
                self.leave_segment(self.base.switches.moves(ordinal));
            }
            Some(RecordEffect::Commit { time, running }) => {
                self.running = running;
                if self.heeds_commits() {
                    self.pace.after_commit(time, self.geometry.end(self.usable));
                    self.quiet = (NEVER, 0);
                    self.switch_by_time(ordinal, time);
                }
            }
            _ => {}
        }
    }

    /// The end of the range, so many bytes after its last record.
    pub(crate) fn finish(mut self, rest: u64) -> RunOutcome {
        self.note_recovery(0);
        self.note_unread();
        self.note_old();
        if self.base.log_hints && self.has_base_redo_points {
            // What was read after one of these changed hint bits in the base too, and has its image there.
            self.outcome.uncertain.hint_images_possible = 0;
        }
        self.usable += rest;
        self.outcome.uncertain.unknown_bytes += rest;
        self.outcome.uncertain.open_sequence_bytes = self.sequences.open_bytes();
        let distance = |run: &SimulatedRun<'_>| run.geometry.start(run.usable).0 as i64;
        let own = self.base.geometry.start(self.base.geometry.usable(self.base.end)).0 as i64;
        let base_bytes = self.base.end.0.saturating_sub(self.base.start.0) as i64;
        self.outcome.bytes = (base_bytes + distance(&self) - own).max(0) as u64;
        self.outcome
    }
}

fn has_base_image(reference: &TracedBlock) -> bool {
    reference.is(entry_fact::BASE_IMAGE) || reference.is(entry_fact::CHECK_IMAGE)
}

#[cfg(test)]
mod tests;
