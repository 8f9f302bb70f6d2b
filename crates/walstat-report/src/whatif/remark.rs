//! What has to be said beside a prediction: side effects of the settings, and what of the number is
//! not certain and why.

use super::uncertainty;
use crate::model::size::whole_megabytes;
use crate::when::REPLAY_RATES;
use walstat_format::payload::SECOND;
use walstat_whatif::base::Base;
use walstat_whatif::outcome::RunOutcome;
use walstat_whatif::predict::Prediction;
use walstat_whatif::segments_of;
use walstat_whatif::settings::{ArchiveTimeout, Checkpoints, Settings, Timed};

/// Bytes of images that are compressed, by which CPU is told.
const GB: f64 = 1e9;

/// What else the settings change.
pub(crate) fn side_effects(
    settings: &Settings,
    done: &Prediction,
    recovery_bytes: u64,
    own: &RunOutcome,
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

fn recovery(bytes: u64, own: &RunOutcome) -> Option<String> {
    let more = bytes.checked_sub(own.recovery_bytes).filter(|more| *more > 0)?;
    let seconds = more as f64 / REPLAY_RATES.0 as f64;
    Some(format!(
        "crash recovery replays up to {more} bytes more: up to {seconds:.1} s longer (at {} a second)",
        whole_megabytes(REPLAY_RATES.0)
    ))
}

/// Why parts of a prediction are not certain.
pub(crate) fn notes(settings: &Settings, done: &Prediction, base: &Base) -> Vec<String> {
    let said = done.uncertainties.iter().filter_map(|one| uncertainty::sentence(&one.kind));
    said.chain(volume_limit(settings, base)).collect()
}

/// What begins checkpoints by volume where nobody said it.
fn volume_limit(settings: &Settings, base: &Base) -> Option<String> {
    let Checkpoints::Timed(Timed { max_wal_size: None, .. }) = settings.checkpoints else {
        return None;
    };
    Some(match segments_of(base) {
        Some(segments) => format!(
            "checkpoints still begin after {segments} segments, by max_wal_size as it is \
             (--max-wal-size changes that)"
        ),
        None => {
            "the WAL does not show max_wal_size, so no limit is assumed: give it with --max-wal-size"
                .to_owned()
        }
    })
}

/// What is said of the base, for all predictions.
pub(crate) fn of_base(base: &Base, sees_start: bool) -> Vec<String> {
    let all = [
        (
            !sees_start,
            "the WAL begins in the middle of a checkpoint cycle: blocks changed before it look unchanged, so \
             the gain from checkpoints farther apart is overstated (begin at a redo point with -s for an \
             exact figure)",
        ),
        (
            !base.checkpoints.iter().filter_map(|c| c.record).any(|record| base.contains(record)),
            "no checkpoint ended in the range: its settings are taken for the usual ones",
        ),
        (
            !base.full_page_writes,
            "full_page_writes was off: the number of images can be predicted, their size cannot",
        ),
        (
            base.checks_consistency,
            "images for checking only (wal_consistency_checking) stay as they are",
        ),
        (
            base.has_custom_rmgrs,
            "for records of custom resource managers, whether a page gets an image is concluded from their \
             images in this WAL",
        ),
        (
            base.is_concurrent,
            "transactions ran concurrently and would interleave differently in another run: ranges are wider \
             for that",
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
    let before = base.checkpoint_before().map(|checkpoint| checkpoint.redo);
    let before = before.filter(|redo| sees_start && *redo < base.start).map(|redo| {
        format!(
            "the other settings apply from the start of the range: the checkpoint before it, at {redo}, \
             stays, and so do the images up to there (with an earlier -s they apply earlier)"
        )
    });
    let closed = base.switches.timeout.map(|timeout| {
        format!(
            "segments were closed every {} s, as archive_timeout does: other settings leave that as it is \
             (--archive-timeout changes it)",
            timeout / SECOND
        )
    });
    said.chain(given_up).chain(before).chain(closed).collect()
}
