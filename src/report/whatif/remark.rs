//! What has to be said beside a prediction: side effects of the settings, and what of the number is
//! not certain and why.

use super::REPLAY_RATES;
use crate::analyse::whatif::base::Base;
use crate::analyse::whatif::outcome::Outcome;
use crate::analyse::whatif::pace::timed::segments_of;
use crate::analyse::whatif::predict::Prediction;
use crate::analyse::whatif::settings::{ArchiveTimeout, Checkpoints, Settings, Timed};

/// Bytes of images that are compressed, by which CPU is told.
const GB: f64 = 1e9;

/// What else the settings change.
pub fn side_effects(
    settings: &Settings,
    done: &Prediction,
    recovery_bytes: u64,
    own: &Outcome,
) -> Vec<String> {
    let recovery = recovery(recovery_bytes, own);
    let codec = done.codec_time.filter(|_| done.codec_bytes > 0).map(|time| {
        let rate = time.as_secs_f64() / (done.codec_bytes as f64 / GB);
        format!("compression takes about {rate:.1} s of CPU a GB of images")
    });
    let fixed = [
        (
            settings.full_page_writes == Some(false),
            "a page that a crash tears stays torn: only for storage that writes whole pages at once",
        ),
        (
            settings.log_hints == Some(false),
            "hint images go away only where neither data checksums nor wal_log_hints are left; without \
             checksums a page that storage spoils is not noticed, without either pg_rewind cannot be used",
        ),
        (settings.logical == Some(false), "logical replication and decoding stop"),
        (
            matches!(settings.archive_timeout, Some(ArchiveTimeout::Off)),
            "an archive lags by up to a segment, however long that takes to fill",
        ),
    ];
    let fixed = fixed.iter().filter(|(holds, _)| *holds).map(|(_, text)| (*text).to_owned());
    recovery.into_iter().chain(codec).chain(fixed).collect()
}

fn recovery(bytes: u64, own: &Outcome) -> Option<String> {
    let more = bytes.checked_sub(own.recovery_bytes).filter(|more| *more > 0)?;
    let seconds = more as f64 / REPLAY_RATES.0;
    Some(format!(
        "crash recovery replays up to {more} bytes more: up to {seconds:.1} s longer (at {:.0} MB a second)",
        REPLAY_RATES.0 / 1e6
    ))
}

/// Why parts of a prediction are not certain.
pub fn notes(settings: &Settings, done: &Prediction, base: &Base) -> Vec<String> {
    let outcome = &done.outcome;
    let logs_hints = settings.log_hints.unwrap_or(base.log_hints);
    let is_timed = matches!(settings.checkpoints, Checkpoints::Timed(_) | Checkpoints::Time(_));
    let all = [
        (
            done.is_crowded,
            "checkpoints lie less than a second apart: a server does not keep up and skips some, which it \
             does not repeat; the range goes down to none by volume"
                .to_owned(),
        ),
        (
            done.low_other < outcome.bytes || done.high_other > outcome.bytes,
            "a checkpoint that is asked for while another runs may be skipped or late, which a server \
             does not repeat: the range has both"
                .to_owned(),
        ),
        (
            is_timed && base.commits.is_empty(),
            "no commit tells the time, so nothing happens by the clock".to_owned(),
        ),
        (
            settings.logical == Some(true) && !base.logical,
            "what is logged of old rows depends on their tables' replica identity, which this WAL does not \
             show: taken is one integer for a deleted row, as of a small primary key; the range has FULL, \
             but for what TOAST keeps"
                .to_owned(),
        ),
        (
            outcome.switches_dropped > 0,
            format!(
                "{} switches of the base are left out; those that somebody asked for would stay, which is \
                 in the range",
                outcome.switches_dropped
            ),
        ),
        (
            done.sampled_images.is_some(),
            format!(
                "{} of {} images were compressed, and tell how long the others are: {} bytes more or less, \
                 in 99 of 100 cases",
                done.sampled_images.unwrap_or(0),
                outcome.images,
                outcome.sample_error
            ),
        ),
        (
            settings.compression.is_some_and(|codec| codec.is_some()),
            "compressed lengths vary by some bytes with the times that rows hold and with the \
             release of the codec's library"
                .to_owned(),
        ),
    ];
    let all = of_images(outcome, base, logs_hints).into_iter().chain(all);
    let said = all.filter(|(holds, _)| *holds).map(|(_, text)| text);
    said.chain(volume_limit(settings, base)).collect()
}

/// What is not certain of images and of the pages that they show.
fn of_images(outcome: &Outcome, base: &Base, logs_hints: bool) -> [(bool, String); 5] {
    [
        (
            outcome.unseen_bytes > 0,
            format!(
                "{} bytes are images of blocks that were not seen before: they may have been touched \
                 before the WAL that is there",
                outcome.unseen_bytes
            ),
        ),
        (
            outcome.unknown_bytes > 0,
            format!("{} bytes of the range hold no readable record", outcome.unknown_bytes),
        ),
        (
            outcome.estimated_images > outcome.hint_images && !base.full_page_writes,
            "the WAL has no images: how long they would be is not known, and taken for whole pages"
                .to_owned(),
        ),
        (
            logs_hints && outcome.hint_images_possible > 0,
            format!(
                "{} images for hint bits are expected; {} more pages may have one, which depends on \
                 who reads them",
                outcome.hint_images, outcome.hint_images_possible
            ),
        ),
        (
            outcome.freezes_lost > 0,
            format!(
                "rows of {} pages were frozen because their page got an image: without it a later vacuum \
                 may have to freeze them, which is in the range only",
                outcome.freezes_lost
            ),
        ),
    ]
}

/// What begins checkpoints by volume where nobody said it.
fn volume_limit(settings: &Settings, base: &Base) -> Option<String> {
    let Checkpoints::Timed(Timed { max_wal_size: None, .. }) = settings.checkpoints else {
        return None;
    };
    Some(match segments_of(base) {
        Some(segments) => format!(
            "checkpoints begin after {segments} segments too, as they did (--max-wal-size changes that)"
        ),
        None => {
            "max_wal_size is taken for unlimited, for the WAL does not show it: --max-wal-size \
                 says it"
                .to_owned()
        }
    })
}

/// What is said of the base, for all predictions.
pub fn of_base(base: &Base, sees_start: bool) -> Vec<String> {
    let all = [
        (
            !sees_start,
            "the WAL begins in the middle of a checkpoint cycle: blocks touched before it look \
             untouched, and gains of checkpoints farther apart are overstated (-s at a redo point is exact)",
        ),
        (
            !base.checkpoints.iter().filter_map(|c| c.record).any(|record| base.contains(record)),
            "no checkpoint ended in the range: its settings are taken for the usual ones",
        ),
        (
            !base.full_page_writes,
            "full_page_writes was off: the number of images is told, not their length",
        ),
        (
            base.checks_consistency,
            "images for checking only (wal_consistency_checking) stay as they are",
        ),
        (
            base.has_custom_rmgrs,
            "records of custom resource managers are taken as their images show them",
        ),
        (
            base.is_concurrent,
            "transactions ran side by side: how they do is not the same twice, and not in the ranges",
        ),
        (
            !base.backups.is_empty(),
            "a base backup ran: its images stay whatever full_page_writes says",
        ),
    ];
    let said = all.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text.to_owned());
    let given_up = (base.given_up > 0).then(|| {
        format!(
            "{} pages were given up to stay within --memory: their images are estimates",
            base.given_up
        )
    });
    said.chain(given_up).collect()
}
