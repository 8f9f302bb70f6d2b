//! What the base shows of the settings that time its checkpoints.

use crate::base::Base;
use walstat_format::lsn::Lsn;
use walstat_format::payload::SECOND;
use walstat_format::version::Pacing;

/// checkpoint_timeout where neither it nor the base says anything.
const USUAL_TIMEOUT: i64 = Pacing::DEFAULT_TIMEOUT_SECONDS * SECOND;

/// After so many segments volume begins a checkpoint, as the base shows it: every distance has as many; or,
/// where there are others too, three have the most there are, and the clock began none of them.
pub fn segments_of(base: &Base) -> Option<u64> {
    let shown = base.shown.max_wal_size.map(|size| {
        let pacing = base.version.pacing;
        let between = size.least_bytes.midpoint(size.most_bytes);
        pacing.checkpoint_segments(between, base.geometry.segment, pacing.completion_target)
    });
    base.segments.or(shown).or_else(|| segments_by_distance(base))
}

fn segments_by_distance(base: &Base) -> Option<u64> {
    let segment = |lsn: Lsn| lsn.0 / base.geometry.segment;
    let pairs: Vec<(u64, i64)> = base
        .checkpoints
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some((
                segment(b.redo).saturating_sub(segment(a.redo)),
                b.time.0.saturating_sub(a.time.0),
            )),
            _ => None,
        })
        .collect();
    let most = pairs.iter().map(|(segments, _)| *segments).max().filter(|most| *most > 1)?;
    let full: Vec<&(u64, i64)> = pairs.iter().filter(|(segments, _)| *segments == most).collect();
    if pairs.len() > 2 && full.len() == pairs.len() {
        return Some(most);
    }
    let times = || full.iter().map(|(_, time)| *time);
    let spread = times().max()?.saturating_sub(times().min()?);
    (full.len() > 2 && spread > 2 * SECOND).then_some(most)
}

/// checkpoint_timeout as the base shows it; else none of its checkpoints began later than that.
pub(crate) fn timeout_of(base: &Base) -> i64 {
    if let Some(seconds) = base.shown.timeout_seconds {
        return i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(SECOND);
    }
    let times: Vec<i64> = base.checkpoints.iter().map(|checkpoint| checkpoint.time.0).collect();
    let longest = times.windows(2).filter_map(|pair| match pair {
        [earlier, later] => Some(later.saturating_sub(*earlier)),
        _ => None,
    });
    longest.max().unwrap_or(0).max(USUAL_TIMEOUT)
}
