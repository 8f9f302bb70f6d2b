//! Simulated runs whose images are compressed otherwise than the base's. They need the pages
//! themselves, so the WAL is read once more, with the trace at hand.
//!
//! How long an image is compressed to decides where everything after it lies; but within a stretch
//! without a redo point no image depends on another, for each shows its page as it was stamped
//! before the redo point. So the images of a stretch are compressed side by side, and then its
//! records are written one after the other.

mod job;
mod sample;

pub use sample::Share;

use super::base::Base;
use super::blocks::FIRST;
use super::codec::Codec;
use super::condense::{HOLE_HEADER_BYTES, IMAGE_HEADER_BYTES};
use super::lane::Lane;
use super::observe::Sink;
use super::outcome::Outcome;
use super::outline::Outliner;
use super::page::Page;
use super::plan::{Certainty, ImageBytes, Plan};
use super::position::padded;
use super::replay::{Lengths, replay_one};
use super::roller::Roller;
use super::settings::Settings;
use super::trace::{Chunk, Cursor, Mark, Noted, Ref, Trace, fact};
use super::whole::Whole;
use crate::wal::block::{BlockRef, Image};
use crate::wal::image::Compression;
use job::{Job, compress};
use sample::Strata;
use std::time::Duration;

/// Images are compressed when there are as many bytes of them, a thread, or as many records wait.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RECORDS: usize = 1 << 16;

/// How the images of a run are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recoding {
    /// All with this codec.
    With(Compression),
    /// As the base does it where the image would be: its codec may change on the way.
    AsTheBase,
}

/// What another codec comes to.
#[derive(Debug, Clone, Default)]
pub struct Recoded {
    /// The run.
    pub outcome: Outcome,
    /// Time that the codec took, of one processor; `None` where none was run.
    pub codec_time: Option<Duration>,
    /// Bytes that it was given.
    pub codec_bytes: u64,
    /// How many images were compressed, where not all were.
    pub sampled_images: Option<u64>,
}

impl Recoded {
    /// Whether no image is compressed.
    pub fn needs_no_codec(&self) -> bool {
        self.outcome.compressed_bytes == 0
    }
}

/// Reads the WAL again.
pub struct Recoder<'t> {
    trace: &'t Trace,
    base: &'t Base,
    roller: Roller,
    lanes: Vec<CodecLane<'t>>,
    codecs: Vec<Codec>,
    cursor: Cursor<'t>,
    outliner: Outliner,
    /// The records whose images were not compressed yet, from this one on.
    batch: Chunk,
    batch_bytes: usize,
    /// The record at hand.
    one: Chunk,
    /// Which images are compressed.
    share: Share,
    /// Whether a run compresses as the base does it.
    follows_base: bool,
    /// How the base compresses images at this record.
    current: Option<Compression>,
    /// Records that are not those of the trace: the WAL changed between both readings.
    strangers: u64,
}

struct CodecLane<'t> {
    lane: Lane<'t>,
    settings: Settings,
    recoding: Recoding,
    /// What becomes of the records of the batch.
    plans: Vec<Plan>,
    jobs: Vec<Job>,
    /// Most that the queued records can come to.
    pending: u64,
    /// By block: what is stamped on its page, 0 where that was before the range.
    stamped: Vec<Stamp>,
    /// The batch, from 1.
    batch: u32,
    done: Recoded,
    /// Images before and after, to guess those of pages that are not known.
    ratio: (u64, u64),
    strata: Strata,
}

/// Lengths of images as a sample tells them.
#[derive(Default)]
struct Sampled {
    strata: Strata,
    /// Images of the base stay as they are.
    is_base: bool,
}

impl Lengths for Sampled {
    fn of(&mut self, reference: &Ref) -> ImageBytes {
        if self.is_base && reference.is(fact::BASE_IMAGE) {
            return ImageBytes::as_base(reference);
        }
        match self.strata.next(reference.block, reference.image_bytes.into()) {
            Some(bytes) => ImageBytes::sampled(bytes),
            None => as_it_is(reference),
        }
    }
}

/// The end of the record that changed a page last.
#[derive(Debug, Clone, Copy, Default)]
struct Stamp {
    simulated: u64,
    base: u64,
    /// The batch in which a newer one waits to be written.
    batch: u32,
}

impl<'t> Recoder<'t> {
    /// For runs with these settings and codecs, on so many threads, with pages in so many bytes; a share
    /// of the images is compressed.
    pub fn new(
        trace: &'t Trace,
        base: &'t Base,
        runs: &[(Settings, Recoding)],
        (threads, page_bytes, share): (usize, u64, Share),
    ) -> Recoder<'t> {
        let lanes = runs.iter().map(|(settings, recoding)| CodecLane {
            lane: Lane::new(trace, base, settings),
            settings: settings.clone(),
            recoding: *recoding,
            plans: Vec::new(),
            jobs: Vec::new(),
            pending: 0,
            stamped: Vec::new(),
            batch: 1,
            done: Recoded::default(),
            ratio: (0, 0),
            strata: Strata::default(),
        });
        Recoder {
            trace,
            base,
            roller: Roller::within(page_bytes),
            lanes: lanes.collect(),
            codecs: std::iter::repeat_with(Codec::default).take(threads.max(1)).collect(),
            cursor: Cursor::new(trace),
            outliner: Outliner::new(base),
            batch: Chunk::default(),
            batch_bytes: 0,
            one: Chunk::default(),
            share,
            follows_base: runs.iter().any(|(_, recoding)| *recoding == Recoding::AsTheBase),
            current: base.compression,
            strangers: 0,
        }
    }

    /// The runs.
    pub fn finish(mut self) -> Vec<Recoded> {
        self.flush();
        let (trace, base, rest) = (self.trace, self.base, self.outliner.rest());
        let whole = self.share == Share::ALL;
        let finish = |lane: CodecLane<'_>| match whole {
            true => Recoded { outcome: lane.lane.finish(rest), ..lane.done },
            false => lane.simulate_again(trace, base),
        };
        self.lanes.into_iter().map(finish).collect()
    }

    /// Records that are not those of the trace.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Takes a record, as it is noted in the trace.
    fn take(&mut self, record: &Whole<'_>, noted: Noted<'_>) {
        for (block, reference) in record.blocks.iter().zip(noted.refs) {
            let step = self.roller.roll(record, block, reference.block);
            self.roller.keep(reference.block, step.after);
            self.roller.reuse(step.before);
            if self.follows_base && noted.ordinal < self.base.last {
                self.watch(record, block, reference);
            }
        }
        if noted.ordinal < self.base.first {
            self.lanes.iter_mut().for_each(|lane| lane.lane.warm_up(&noted));
        } else if noted.ordinal < self.base.last {
            self.record(record, noted);
        }
    }

    /// Plans a record of the range, and queues its images.
    fn record(&mut self, record: &Whole<'_>, noted: Noted<'_>) {
        if self.lanes.iter().any(|lane| lane.must_wait(&noted)) {
            self.flush();
        }
        let gap = self.outliner.next(&noted).gap;
        for lane in &mut self.lanes {
            let plan = lane.lane.plan(&noted, gap);
            let own = (record, self.current, self.share);
            self.batch_bytes += lane.queue(&noted, plan, own, &self.roller);
        }
        self.batch.push(noted);
        // After these other records have images, or positions are others: they are planned when these are
        // written.
        let decides = matches!(
            noted.mark,
            Some(Mark::Checkpoint { .. } | Mark::FullPageWrites(_) | Mark::Switch)
        );
        let is_full = self.batch_bytes >= BATCH_BYTES * self.codecs.len()
            || self.batch.entries.len() >= BATCH_RECORDS;
        if decides || is_full {
            self.flush();
        }
    }

    /// Follows how the base compresses: an image that is stored as it is, though it could be smaller,
    /// shows that the codec was turned off.
    fn watch(&mut self, record: &Whole<'_>, block: &BlockRef, reference: &Ref) {
        let Some(image) = block.image else { return };
        match (own_codec(record, image), self.current) {
            (None, Some(codec)) => {
                let source = source(reference, self.roller.page(reference.block));
                let tried = self.codecs.first_mut().filter(|_| !source.is_empty());
                let could = tried
                    .and_then(|tried| tried.stored_bytes(codec, &source, reference.is(fact::HOLE)));
                self.current = self.current.filter(|_| could.is_none());
            }
            (Some(codec), _) => self.current = Some(codec),
            (None, None) => {}
        }
    }

    /// Compresses what waits, and writes it.
    fn flush(&mut self) {
        let jobs = self.lanes.iter_mut().flat_map(|lane| lane.jobs.iter_mut());
        compress(jobs.collect(), &mut self.codecs);
        for lane in &mut self.lanes {
            lane.write(&self.batch);
        }
        self.batch.clear(FIRST);
        self.batch_bytes = 0;
    }
}

impl Sink for Recoder<'_> {
    fn gap(&mut self) {
        self.roller.forget();
    }

    fn push(&mut self, record: &Whole<'_>) {
        let Some(noted) = self.cursor.peek() else { return };
        let (lsn, refs) = (noted.entry.lsn, noted.refs.len());
        if lsn != record.lsn || refs != record.blocks.len() {
            self.strangers += 1;
            return;
        }
        // What is noted of it is in the way of all else as long as it is borrowed.
        let mut one = std::mem::take(&mut self.one);
        one.clear(noted.ordinal);
        one.push(noted);
        self.cursor.pass();
        if let Some(noted) = one.records().next() {
            self.take(record, noted);
        }
        self.one = one;
    }
}

/// How an image of the base is compressed.
fn own_codec(record: &Whole<'_>, image: Image) -> Option<Compression> {
    record.version.image_flags.compression(image.info)
}

impl CodecLane<'_> {
    /// The run, with what its sample tells.
    fn simulate_again(self, trace: &Trace, base: &Base) -> Recoded {
        let CodecLane { mut strata, settings, recoding, done, .. } = self;
        strata.begin_anew();
        let lengths = Sampled { strata, is_base: recoding == Recoding::AsTheBase };
        let (mut outcome, Sampled { strata, .. }) = replay_one(trace, base, &settings, lengths);
        outcome.sample_error = strata.error();
        let expansion = strata.expansion();
        Recoded {
            outcome,
            codec_time: done.codec_time.map(|time| time.mul_f64(expansion)),
            codec_bytes: (done.codec_bytes as f64 * expansion) as u64,
            sampled_images: Some(strata.compressed()),
        }
    }

    /// Whether a record can be planned only when all before it are written.
    fn must_wait(&self, noted: &Noted<'_>) -> bool {
        // An image tells where its page was stamped before, which has to be written by then.
        let has_stamp = |reference: &Ref| {
            let stamp = self.stamped.get(reference.block as usize);
            let waits = stamp.is_some_and(|stamp| stamp.batch == self.batch);
            waits && self.lane.may_take_image(noted.ordinal, reference)
        };
        self.lane.is_due(noted.ordinal, self.pending)
            || !self.plans.is_empty() && noted.refs.iter().any(has_stamp)
    }

    /// Queues a record; returns bytes that are to be compressed.
    fn queue(
        &mut self,
        noted: &Noted<'_>,
        plan: Plan,
        (record, current, share): (&Whole<'_>, Option<Compression>, Share),
        roller: &Roller,
    ) -> usize {
        let (mut most, mut sources) = (u64::from(noted.entry.fixed_bytes), 0);
        for (index, reference) in noted.refs.iter().enumerate() {
            most += u64::from(reference.data_bytes);
            if plan.has_image(index, reference) {
                let own = record.blocks.get(index).and_then(|block| block.image);
                let compression = match self.recoding {
                    Recoding::With(codec) => Some(codec),
                    Recoding::AsTheBase => own.map_or(current, |image| own_codec(record, image)),
                };
                let page = roller.page(reference.block);
                let chosen = (page.is_some() && compression.is_some() && share != Share::ALL)
                    .then(|| record.blocks.get(index))
                    .flatten()
                    .map(|block| {
                        self.strata.choose(share, block, (reference.block, noted.ordinal))
                    });
                let is_left_out = chosen.is_some_and(|chosen| !chosen.is_taken);
                let source = source(reference, page.filter(|_| !is_left_out));
                let job = Job {
                    is_left_out,
                    chosen,
                    ..self.job(reference, source, (compression, own.is_some()))
                };
                sources += job.source.len();
                most += u64::from(reference.image_bytes);
                most += u64::from(IMAGE_HEADER_BYTES + HOLE_HEADER_BYTES);
                self.jobs.push(job);
            }
        }
        if plan.images.is_some() {
            self.wait_for(noted.refs);
        }
        self.pending += plan.before;
        self.pending += if plan.images.is_some() { padded(most) } else { 0 };
        self.plans.push(plan);
        sources
    }

    fn job(
        &self,
        reference: &Ref,
        mut source: Vec<u8>,
        (compression, has_own): (Option<Compression>, bool),
    ) -> Job {
        let stamp = self.stamped.get(reference.block as usize).copied().unwrap_or_default();
        if let Some(lsn) = source.first_chunk_mut::<8>() {
            // Two numbers, the high one first. A page of the base that was stamped otherwise stays: some
            // index builds write pages before they log them.
            let own = u64::from_le_bytes(*lsn).rotate_left(32);
            let is_stamped = stamp.simulated > 0 && (!has_own || own == stamp.base);
            if is_stamped {
                *lsn = stamp.simulated.rotate_left(32).to_le_bytes();
            }
        }
        let has_hole = reference.is(fact::HOLE);
        Job {
            source,
            has_hole,
            is_left_out: false,
            chosen: None,
            compression,
            stored: None,
            time: Duration::ZERO,
        }
    }

    /// Writes the batch.
    fn write(&mut self, batch: &Chunk) {
        let jobs = std::mem::take(&mut self.jobs);
        for job in jobs.iter().filter(|job| !job.is_left_out) {
            if let Some(chosen) = job.chosen {
                self.strata.add(chosen, job.lengths());
            }
        }
        let mut jobs = jobs.into_iter();
        for (noted, plan) in batch.records().zip(std::mem::take(&mut self.plans)) {
            let (done, ratio, strata) = (&mut self.done, &mut self.ratio, &self.strata);
            let image = |_: usize, reference: &Ref| {
                let job = jobs.next();
                match job {
                    Some(job) if job.is_left_out => {
                        ImageBytes::sampled(strata.about(reference.image_bytes.into()))
                    }
                    Some(job) if !job.source.is_empty() => note(&job, done, ratio),
                    Some(Job { compression: Some(_), .. }) => guess(reference, *ratio),
                    _ => as_it_is(reference),
                }
            };
            self.lane.write(&noted, plan, image);
            if plan.images.is_some() {
                self.stamp(&noted);
            }
        }
        self.pending = 0;
        self.batch += 1;
    }

    /// Notes that pages are stamped by a record which is not written yet.
    fn wait_for(&mut self, refs: &[Ref]) {
        let batch = self.batch;
        self.each_stamp(refs, |stamp| stamp.batch = batch);
    }

    fn stamp(&mut self, noted: &Noted<'_>) {
        let (simulated, base) = (self.lane.end_position().0, self.lane.base_end(noted.entry).0);
        self.each_stamp(noted.refs, |stamp| *stamp = Stamp { simulated, base, ..*stamp });
    }

    /// Changes what is known of the pages that a record stamps.
    fn each_stamp(&mut self, refs: &[Ref], mut change: impl FnMut(&mut Stamp)) {
        for reference in refs.iter().filter(|reference| self.lane.stamps(reference)) {
            let index = reference.block as usize;
            if self.stamped.len() <= index {
                self.stamped.resize(index + 1, Stamp::default());
            }
            self.stamped.get_mut(index).map(&mut change);
        }
    }
}

/// A page without its hole; nothing if it is not known.
fn source(reference: &Ref, page: Option<&Page>) -> Vec<u8> {
    let Some(page) = page else { return Vec::new() };
    let hole = if reference.is(fact::HOLE) { page.hole() } else { 0..0 };
    let (before, after) = (page.bytes().get(..hole.start), page.bytes().get(hole.end..));
    [before.unwrap_or_default(), after.unwrap_or_default()].concat()
}

fn note(job: &Job, done: &mut Recoded, ratio: &mut (u64, u64)) -> ImageBytes {
    let raw = job.source.len();
    let stored = job.stored.map_or(raw, usize::from);
    *done.codec_time.get_or_insert_default() += job.time;
    if job.compression.is_some() {
        done.codec_bytes += raw as u64;
        *ratio = (ratio.0 + raw as u64, ratio.1 + stored as u64);
    }
    let stored = u16::try_from(stored).unwrap_or(u16::MAX);
    ImageBytes { stored, compressed: job.stored.is_some(), certainty: Certainty::Known }
}

/// An image of a page that is not known, and not compressed.
fn as_it_is(reference: &Ref) -> ImageBytes {
    ImageBytes { stored: reference.image_bytes, compressed: false, certainty: Certainty::Estimated }
}

/// An image of a page that is not known: as well compressed as the others.
fn guess(reference: &Ref, (raw, stored): (u64, u64)) -> ImageBytes {
    let bytes = u64::from(reference.image_bytes);
    let guessed = (bytes * stored).checked_div(raw).unwrap_or(bytes).min(bytes);
    let stored = u16::try_from(guessed).unwrap_or(u16::MAX);
    ImageBytes { stored, compressed: true, certainty: Certainty::Estimated }
}
