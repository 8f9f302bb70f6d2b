//! One image: what a codec is given of its page, and how long it is as stored.

use super::Recoded;
use super::job::Job;
use crate::page::Page;
use crate::plan::{Certainty, ImageBytes};
use crate::trace::{TracedBlock, entry_fact};

/// A page without its hole; nothing if it is not known.
pub(super) fn source(reference: &TracedBlock, page: Option<&Page>) -> Vec<u8> {
    let Some(page) = page else { return Vec::new() };
    let hole = if reference.is(entry_fact::HOLE) { page.view().hole() } else { 0..0 };
    let (before, after) = (page.bytes().get(..hole.start), page.bytes().get(hole.end..));
    [before.unwrap_or_default(), after.unwrap_or_default()].concat()
}

pub(super) fn note(job: &Job, done: &mut Recoded, ratio: &mut (u64, u64)) -> ImageBytes {
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
pub(super) fn as_it_is(reference: &TracedBlock) -> ImageBytes {
    ImageBytes { stored: reference.image_bytes, compressed: false, certainty: Certainty::Estimated }
}

/// An image of a page that is not known: as well compressed as the others.
pub(super) fn guess(reference: &TracedBlock, (raw, stored): (u64, u64)) -> ImageBytes {
    let bytes = u64::from(reference.image_bytes);
    let guessed = (bytes * stored).checked_div(raw).unwrap_or(bytes).min(bytes);
    let stored = u16::try_from(guessed).unwrap_or(u16::MAX);
    ImageBytes { stored, compressed: true, certainty: Certainty::Estimated }
}
