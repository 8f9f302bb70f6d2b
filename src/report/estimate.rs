//! What other settings would have written, estimated from a sample of the images.
//!
//! Checkpoints k times as far apart: every k-th redo point stays, and an image that is due stays if
//! a redo point that stays lies between it and the image or first touch of its block before it. What
//! the image had replaced comes back, taken for as long as that of the record type's others. Images of
//! pages touched before the range stay. Another codec: the sampled images compressed with it.

use super::model::estimate::{EstimateRow, Estimates, Predicted};
use crate::analyse::checkpoint::Cycles;
use crate::analyse::sample::{Block, Found, Lengths, Touch};
use crate::analyse::totals::RecordTable;
use crate::wal::image::Compression;
use crate::wal::lsn::Lsn;
use crate::wal::rmgr::{self, RecordType};

/// How far apart checkpoints are tried, beside none at all.
const TIMES: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// The sample is divided into so many parts to see how much they differ.
const PARTS: usize = 16;
/// So many standard errors on each side.
const ERRORS: f64 = 2.0;
/// `XLogRecordBlockImageHeader`.
const IMAGE_HEADER_BYTES: f64 = 5.0;

/// What the server calls the codecs.
const CODECS: [(Compression, &str); 3] =
    [(Compression::Pglz, "pglz"), (Compression::Lz4, "lz4"), (Compression::Zstd, "zstd")];

/// Estimates for WAL with these cycles and sums; `None` where no image was sampled.
pub fn estimates(found: &Found, cycles: Option<&Cycles>, table: &RecordTable) -> Option<Estimates> {
    let all = table.sum(|_| true);
    if found.images.is_empty() || all.fpi_bytes == 0 {
        return None;
    }
    let base = Base { total: all.total_bytes as f64, images: all.fpi_bytes as f64 };
    let redo = redo_points(cycles);
    let mut apart: Vec<Option<u32>> = vec![Some(1)];
    apart.extend(TIMES.iter().filter(|times| **times as usize <= redo.len()).copied().map(Some));
    apart.extend((!redo.is_empty()).then_some(None));
    let codecs: Vec<(Option<&str>, Share)> = std::iter::once((None, Share::WHOLE))
        .chain(
            CODECS
                .iter()
                .filter_map(|(codec, name)| Some((Some(*name), compressed(found, *codec)?))),
        )
        .collect();
    let saved = Saved { redo: &redo, table };
    let mut scenarios = Vec::new();
    for apart in apart {
        let left = Share { value: 1.0, error: 0.0 }.less(saved.share(found, apart));
        for (name, stored) in &codecs {
            scenarios.push(EstimateRow {
                checkpoints_apart: apart,
                wal_compression: name.map(str::to_owned),
                predicted: base.predicted(left, *stored),
            });
        }
    }
    Some(Estimates {
        sampled_blocks: found.blocks.len() as u64,
        sampled_images: found.images.len() as u64,
        redo_points: redo.len() as u64,
        is_whole: found.all_blocks && found.all_images,
        scenarios,
    })
}

/// Redo points of the range, ascending.
fn redo_points(cycles: Option<&Cycles>) -> Vec<Lsn> {
    let cycles = cycles.map_or(&[][..], |cycles| &cycles.cycles);
    cycles.iter().skip(1).filter_map(|cycle| cycle.redo).collect()
}

/// A share with its standard error.
#[derive(Debug, Clone, Copy)]
struct Share {
    value: f64,
    error: f64,
}

impl Share {
    const WHOLE: Share = Share { value: 1.0, error: 0.0 };

    fn less(self, other: Share) -> Share {
        Share { value: self.value - other.value, error: self.error.hypot(other.error) }
    }

    /// The ratio of two sums over a sample in parts, and how much it differs where one part is left
    /// out (the jackknife); no error where the sample is everything.
    fn of(parts: &[(f64, f64); PARTS], is_whole: bool) -> Share {
        let sum = |without: Option<usize>| {
            let kept = parts.iter().enumerate().filter(|(place, _)| Some(*place) != without);
            kept.fold((0.0, 0.0), |(a, b), (_, (c, d))| (a + c, b + d))
        };
        let ratio = |(part, whole): (f64, f64)| if whole > 0.0 { part / whole } else { 0.0 };
        let value = ratio(sum(None));
        if is_whole {
            return Share { value, error: 0.0 };
        }
        let others: Vec<f64> = (0..PARTS).map(|place| ratio(sum(Some(place)))).collect();
        let mean = others.iter().sum::<f64>() / PARTS as f64;
        let squares: f64 = others.iter().map(|other| (other - mean).powi(2)).sum();
        Share { value, error: (squares * (PARTS as f64 - 1.0) / PARTS as f64).sqrt() }
    }
}

/// The WAL as it is, in bytes.
struct Base {
    total: f64,
    images: f64,
}

impl Base {
    /// With such a share of the images left, each stored in such a share of its bytes.
    fn predicted(&self, left: Share, stored: Share) -> Predicted {
        let images = self.images * left.value * stored.value;
        let predicted = self.total - self.images + images;
        let error = self.images * (left.error * stored.value).hypot(left.value * stored.error);
        let bytes = |value: f64| value.max(0.0).round() as u64;
        Predicted {
            predicted_bytes: bytes(predicted),
            change_ratio: (predicted - self.total) / self.total,
            low_bytes: bytes(predicted - ERRORS * error),
            high_bytes: bytes(predicted + ERRORS * error),
        }
    }
}

/// How much of their bytes images take with a codec; `None` where the release does not have it.
fn compressed(found: &Found, codec: Compression) -> Option<Share> {
    let mut parts = [(0.0, 0.0); PARTS];
    for image in &found.images {
        let part = parts.get_mut(part_of(image.hash))?;
        part.0 += f64::from(Lengths::with(image, Some(codec))?);
        part.1 += f64::from(image.stored);
    }
    Some(Share::of(&parts, found.all_images))
}

fn part_of(hash: u32) -> usize {
    hash as usize % PARTS
}

/// What images save that are not there.
struct Saved<'w> {
    redo: &'w [Lsn],
    table: &'w RecordTable,
}

impl Saved<'_> {
    /// Their share in the bytes of all images, with checkpoints so many times as far apart.
    fn share(&self, found: &Found, apart: Option<u32>) -> Share {
        let mut parts = [(0.0, 0.0); PARTS];
        for block in &found.blocks {
            if let Some(part) = parts.get_mut(part_of(block.hash)) {
                part.0 += self.of_block(block, apart);
                part.1 += block.images.iter().map(|image| f64::from(image.bytes)).sum::<f64>();
            }
        }
        Share::of(&parts, found.all_blocks)
    }

    fn of_block(&self, block: &Block, apart: Option<u32>) -> f64 {
        let mut before = self.cycle(block.first);
        let mut saved = 0.0;
        for image in &block.images {
            let cycle = self.cycle(Lsn(block.first.0 + image.after));
            // One in the cycle in which the block was touched before is there for another reason.
            if image.is_due && cycle > before && !stays(apart, before, cycle) {
                saved += self.bytes(image);
            }
            before = cycle;
        }
        saved
    }

    /// How many redo points lie before.
    fn cycle(&self, lsn: Lsn) -> u32 {
        self.redo.partition_point(|redo| *redo <= lsn) as u32
    }

    /// The image and its header, less what it had replaced; of a hint bit's the whole record.
    fn bytes(&self, image: &Touch) -> f64 {
        let totals = self.table.sum(|record| record == image.record);
        let bytes = f64::from(image.bytes);
        if is_hint(image.record) {
            return bytes + totals.record_bytes() as f64 / totals.count.max(1) as f64;
        }
        let without = totals.count - totals.fpi_records;
        let replaced = match without {
            0 => 0.0,
            count => totals.block_data_bytes as f64 / count as f64,
        };
        (bytes + IMAGE_HEADER_BYTES - replaced).max(0.0)
    }
}

/// Whether a redo point that stays lies between two cycles.
fn stays(apart: Option<u32>, before: u32, cycle: u32) -> bool {
    apart.is_some_and(|times| cycle / times > before / times)
}

fn is_hint(record: RecordType) -> bool {
    record.rmgr == rmgr::XLOG && record.info() == rmgr::XLOG_FPI_FOR_HINT
}
