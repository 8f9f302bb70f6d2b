//! Images that are to be compressed, and the threads that do it.

use super::sample::Chosen;
use std::time::{Duration, Instant};
use walstat_analyse::image_compressor::ImageCompressor;
use walstat_format::image::Compression;

/// An image that is to be compressed.
pub(super) struct Job {
    /// The page without its hole; empty if it is not known.
    pub(super) source: Vec<u8>,
    pub(super) has_hole: bool,
    /// Not compressed, though it is known.
    pub(super) is_left_out: bool,
    pub(super) chosen: Option<Chosen>,
    /// `None`: it stays as it is.
    pub(super) compression: Option<Compression>,
    pub(super) stored: Option<u16>,
    pub(super) time: Duration,
}

/// Compresses side by side, each thread its share.
pub(super) fn compress(jobs: Vec<&mut Job>, compressors: &mut [ImageCompressor]) {
    let share = jobs.len().div_ceil(compressors.len().max(1)).max(1);
    let mut jobs = jobs;
    std::thread::scope(|threads| {
        for compressor in compressors {
            let rest = jobs.split_off(share.min(jobs.len()));
            let own = std::mem::replace(&mut jobs, rest);
            let work = move || own.into_iter().for_each(|job| job.run(compressor));
            if jobs.is_empty() { work() } else { drop(threads.spawn(work)) }
        }
    });
}

impl Job {
    fn run(&mut self, compressor: &mut ImageCompressor) {
        let Some(compression) = self.compression.filter(|_| !self.source.is_empty()) else {
            return;
        };
        let begun = Instant::now();
        self.stored = compressor.stored_bytes(compression, &self.source, self.has_hole);
        self.time = begun.elapsed();
    }

    /// Before and after.
    pub(super) fn lengths(&self) -> (u64, u64) {
        let before = self.source.len() as u64;
        (before, self.stored.map_or(before, u64::from))
    }
}
