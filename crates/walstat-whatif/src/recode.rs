//! Simulated runs whose images are compressed otherwise than the base's. They need the pages
//! themselves, so the WAL is read once more, with the trace at hand.
//!
//! The length of a compressed image decides where everything after it lies. But between two redo points no
//! image depends on another: each shows its page with the LSN that it got before the first of the two. So
//! the images of many records are compressed in parallel, and then the records are written in order.

mod image;
mod job;
mod sample;

pub use sample::{RULE_OF_THREE, STANDARD_ERRORS, Share};

use super::base::Base;
use super::blocks::FIRST;
use super::observe::Sink;
use super::outcome::RunOutcome;
use super::page_replayer::PageReplayer;
use super::plan::{ImageBytes, Plan};
use super::position::padded;
use super::range_walk::RangeWalk;
use super::replay::{Lengths, replay_one};
use super::settings::Settings;
use super::simulated_run::SimulatedRun;
use super::trace::{
    Chunk, RecordEffect, Trace, TraceCursor, TracedBlock, TracedRecord, entry_fact,
};
use super::whole_record::WholeRecord;
use image::{as_it_is, guess, note, source};
use job::{Job, compress};
use sample::Strata;
use std::time::Duration;
use walstat_analyse::image_compressor::ImageCompressor;
use walstat_format::block::{BlockRef, Image};
use walstat_format::image::Compression;
use walstat_format::image::{HOLE_HEADER_BYTES, IMAGE_HEADER_BYTES};

/// Images are compressed when there are as many bytes of them, a thread, or as many records wait.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RECORDS: usize = 1 << 16;

/// How the images of a run are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recoding {
    /// All with this codec.
    With(Compression),
    /// As the base does it where the image would be: its codec may change on the way.
    AsTheBase,
}

/// What a recoder may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Means {
    /// Threads that compress.
    pub(crate) threads: usize,
    /// Bytes of memory for pages.
    pub(crate) page_bytes: u64,
    /// Which part of the images is compressed.
    pub(crate) share: Share,
}

/// What another codec comes to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recoded {
    /// The run.
    pub(crate) outcome: RunOutcome,
    /// Time that the codec took, of one processor; `None` where none was run.
    pub(crate) codec_time: Option<Duration>,
    /// Bytes that it was given.
    pub(crate) codec_bytes: u64,
    /// How many images were compressed, where not all were.
    pub(crate) sampled_images: Option<u64>,
}

impl Recoded {
    /// Whether no image is compressed.
    pub(crate) fn needs_no_codec(&self) -> bool {
        self.outcome.uncertain.compressed_bytes == 0
    }
}

/// Reads the WAL again.
pub(crate) struct Recoder<'t> {
    trace: &'t Trace,
    base: &'t Base,
    replayer: PageReplayer,
    runs: Vec<CodecRun<'t>>,
    compressors: Vec<ImageCompressor>,
    cursor: TraceCursor<'t>,
    walk: RangeWalk,
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
    /// Whether a record came that the trace does not have there.
    is_other: bool,
}

struct CodecRun<'t> {
    run: SimulatedRun<'t>,
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

/// What the images of a record are made of.
struct ImageSources<'a> {
    record: &'a WholeRecord<'a>,
    /// The pages after it.
    replayer: &'a PageReplayer,
    /// How the base compresses images at this record.
    current: Option<Compression>,
}

/// Lengths of images as a sample tells them.
#[derive(Default)]
struct Sampled {
    strata: Strata,
    /// Images of the base stay as they are.
    is_base: bool,
}

impl Lengths for Sampled {
    fn of(&mut self, reference: &TracedBlock) -> ImageBytes {
        if self.is_base && reference.is(entry_fact::BASE_IMAGE) {
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
    /// For runs with these settings and codecs.
    pub(crate) fn new(
        trace: &'t Trace,
        base: &'t Base,
        runs: &[(Settings, Recoding)],
        means: Means,
    ) -> Recoder<'t> {
        let new = |(settings, recoding): &(Settings, Recoding)| CodecRun {
            run: SimulatedRun::new(trace, base, settings),
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
        };
        Recoder {
            trace,
            base,
            replayer: PageReplayer::within(means.page_bytes),
            runs: runs.iter().map(new).collect(),
            compressors: std::iter::repeat_with(ImageCompressor::default)
                .take(means.threads.max(1))
                .collect(),
            cursor: TraceCursor::new(trace),
            walk: RangeWalk::new(base),
            batch: Chunk::default(),
            batch_bytes: 0,
            one: Chunk::default(),
            share: means.share,
            follows_base: runs.iter().any(|(_, recoding)| *recoding == Recoding::AsTheBase),
            current: base.compression,
            is_other: false,
        }
    }

    /// The runs.
    pub(crate) fn finish(mut self) -> Vec<Recoded> {
        self.flush();
        let (trace, base, rest) = (self.trace, self.base, self.walk.rest());
        let whole = self.share == Share::ALL;
        let finish = |run: CodecRun<'_>| {
            if whole {
                Recoded { outcome: run.run.finish(rest), ..run.done }
            } else {
                run.simulate_again(trace, base)
            }
        };
        self.runs.into_iter().map(finish).collect()
    }

    /// Whether all records of the base have come, and no others: else the WAL changed between the two
    /// readings.
    pub(crate) fn saw_the_base(&mut self) -> bool {
        let next = self.cursor.peek().map(|traced| traced.ordinal);
        !self.is_other && next.is_none_or(|next| next >= self.base.last)
    }

    /// Takes a record, as it is noted in the trace.
    fn take(&mut self, record: &WholeRecord<'_>, traced: TracedRecord<'_>) {
        for (block, reference) in record.blocks.iter().zip(traced.refs) {
            self.replayer.roll(record, block, reference.block, |_, _| {});
            if self.follows_base && traced.ordinal < self.base.last {
                self.watch(record, block, reference);
            }
        }
        if traced.ordinal < self.base.first {
            self.runs.iter_mut().for_each(|run| run.run.warm_up(&traced));
        } else if traced.ordinal < self.base.last {
            self.record(record, traced);
        }
    }

    /// Plans a record of the range, and queues its images.
    fn record(&mut self, record: &WholeRecord<'_>, traced: TracedRecord<'_>) {
        if self.runs.iter().any(|run| run.must_wait(&traced)) {
            self.flush();
        }
        let gap = self.walk.next(&traced).gap;
        for run in &mut self.runs {
            let plan = run.run.plan(&traced, gap);
            let sources = ImageSources { record, replayer: &self.replayer, current: self.current };
            self.batch_bytes += run.queue(&traced, plan, &sources, self.share);
        }
        self.batch.push(traced);
        // After these other records have images, or positions are others: they are planned when these are
        // written.
        let decides = matches!(
            traced.effect,
            Some(
                RecordEffect::Checkpoint { .. }
                    | RecordEffect::FullPageWrites(_)
                    | RecordEffect::Switch
            )
        );
        let is_full = self.batch_bytes >= BATCH_BYTES * self.compressors.len()
            || self.batch.entries.len() >= BATCH_RECORDS;
        if decides || is_full {
            self.flush();
        }
    }

    /// Follows how the base compresses: an image that is stored as it is, though it could be smaller,
    /// shows that the codec was turned off.
    fn watch(&mut self, record: &WholeRecord<'_>, block: &BlockRef, reference: &TracedBlock) {
        let Some(image) = block.image else { return };
        match (own_codec(record, image), self.current) {
            (None, Some(codec)) => {
                let source = source(reference, self.replayer.page(reference.block));
                let tried = self.compressors.first_mut().filter(|_| !source.is_empty());
                let could = tried.and_then(|tried| {
                    tried.stored_bytes(codec, &source, reference.is(entry_fact::HOLE))
                });
                self.current = self.current.filter(|_| could.is_none());
            }
            (Some(codec), _) => self.current = Some(codec),
            (None, None) => {}
        }
    }

    /// Compresses what waits, and writes it.
    fn flush(&mut self) {
        let jobs = self.runs.iter_mut().flat_map(|run| run.jobs.iter_mut());
        compress(jobs.collect(), &mut self.compressors);
        for run in &mut self.runs {
            run.write(&self.batch);
        }
        self.batch.clear(FIRST);
        self.batch_bytes = 0;
    }
}

impl Sink for Recoder<'_> {
    fn gap(&mut self) {
        self.replayer.forget();
    }

    fn push(&mut self, record: &WholeRecord<'_>) {
        let Some(traced) = self.cursor.peek() else { return };
        let (lsn, refs) = (traced.entry.lsn, traced.refs.len());
        if lsn != record.lsn || refs != record.blocks.len() {
            self.is_other = true;
            return;
        }
        // Copied, since the cursor cannot go on while its record is borrowed.
        let mut one = std::mem::take(&mut self.one);
        one.clear(traced.ordinal);
        one.push(traced);
        self.cursor.pass();
        if let Some(traced) = one.records().next() {
            self.take(record, traced);
        }
        self.one = one;
    }
}

/// How an image of the base is compressed.
fn own_codec(record: &WholeRecord<'_>, image: Image) -> Option<Compression> {
    record.version.image_flags.compression(image.info)
}

impl CodecRun<'_> {
    /// The run, with what its sample tells.
    fn simulate_again(self, trace: &Trace, base: &Base) -> Recoded {
        let CodecRun { mut strata, settings, recoding, done, .. } = self;
        strata.begin_anew();
        let lengths = Sampled { strata, is_base: recoding == Recoding::AsTheBase };
        let (mut outcome, Sampled { strata, .. }) = replay_one(trace, base, &settings, lengths);
        outcome.uncertain.sample_error = strata.error();
        let expansion = strata.expansion();
        Recoded {
            outcome,
            codec_time: done.codec_time.map(|time| time.mul_f64(expansion)),
            codec_bytes: (done.codec_bytes as f64 * expansion) as u64,
            sampled_images: Some(strata.compressed()),
        }
    }

    /// Whether a record can be planned only when all before it are written.
    fn must_wait(&self, traced: &TracedRecord<'_>) -> bool {
        // An image tells where its page was stamped before, which has to be written by then.
        let has_stamp = |reference: &TracedBlock| {
            let stamp = self.stamped.get(reference.block as usize);
            let waits = stamp.is_some_and(|stamp| stamp.batch == self.batch);
            waits && self.run.may_take_image(traced.ordinal, reference)
        };
        self.run.is_due(traced.ordinal, self.pending)
            || !self.plans.is_empty() && traced.refs.iter().any(has_stamp)
    }

    /// Queues a record; returns bytes that are to be compressed.
    fn queue(
        &mut self,
        traced: &TracedRecord<'_>,
        plan: Plan,
        sources: &ImageSources<'_>,
        share: Share,
    ) -> usize {
        let ImageSources { record, replayer, current } = *sources;
        let (mut most, mut source_bytes) = (u64::from(traced.entry.fixed_bytes), 0);
        for (index, reference) in traced.refs.iter().enumerate() {
            most += u64::from(reference.data_bytes);
            if plan.has_image(index, reference) {
                let own = record.blocks.get(index).and_then(|block| block.image);
                let compression = match self.recoding {
                    Recoding::With(codec) => Some(codec),
                    Recoding::AsTheBase => own.map_or(current, |image| own_codec(record, image)),
                };
                let page = replayer.page(reference.block);
                let chosen = (page.is_some() && compression.is_some() && share != Share::ALL)
                    .then(|| record.blocks.get(index))
                    .flatten()
                    .map(|block| self.strata.choose(share, block, reference.block, traced.ordinal));
                let is_left_out = chosen.is_some_and(|chosen| !chosen.is_taken);
                let source = source(reference, page.filter(|_| !is_left_out));
                let job = Job {
                    is_left_out,
                    chosen,
                    ..self.job(reference, source, compression, own.is_some())
                };
                source_bytes += job.source.len();
                most += u64::from(reference.image_bytes);
                most += u64::from(IMAGE_HEADER_BYTES + HOLE_HEADER_BYTES);
                self.jobs.push(job);
            }
        }
        if plan.images.is_some() {
            self.wait_for(traced.refs);
        }
        self.pending += plan.before;
        self.pending += if plan.images.is_some() { padded(most) } else { 0 };
        self.plans.push(plan);
        source_bytes
    }

    fn job(
        &self,
        reference: &TracedBlock,
        mut source: Vec<u8>,
        compression: Option<Compression>,
        has_own: bool,
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
        let has_hole = reference.is(entry_fact::HOLE);
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
        for (traced, plan) in batch.records().zip(std::mem::take(&mut self.plans)) {
            let (done, ratio, strata) = (&mut self.done, &mut self.ratio, &self.strata);
            let image = |_: usize, reference: &TracedBlock| {
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
            self.run.write(&traced, plan, image);
            if plan.images.is_some() {
                self.stamp(&traced);
            }
        }
        self.pending = 0;
        self.batch += 1;
    }

    /// Notes that pages are stamped by a record which is not written yet.
    fn wait_for(&mut self, refs: &[TracedBlock]) {
        let batch = self.batch;
        self.each_stamp(refs, |stamp| stamp.batch = batch);
    }

    fn stamp(&mut self, traced: &TracedRecord<'_>) {
        let (simulated, base) = (self.run.end_position().0, self.run.base_end(traced.entry).0);
        self.each_stamp(traced.refs, |stamp| *stamp = Stamp { simulated, base, ..*stamp });
    }

    /// Changes what is known of the pages that a record stamps.
    fn each_stamp(&mut self, refs: &[TracedBlock], mut change: impl FnMut(&mut Stamp)) {
        for reference in refs.iter().filter(|reference| self.run.stamps(reference)) {
            let index = reference.block as usize;
            if self.stamped.len() <= index {
                self.stamped.resize(index + 1, Stamp::default());
            }
            self.stamped.get_mut(index).map(&mut change);
        }
    }
}

#[cfg(test)]
mod tests;
