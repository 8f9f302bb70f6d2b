//! Whether the history of a base backup says what a server wrote into it. No server reads it again: where one
//! was cut, or has a digit changed, nothing else is wrong.

use super::{Label, Places};
use crate::names::backup_start;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;

/// Sizes that a segment may have, as powers of two: 1 MB to 1 GB.
const SEGMENT_BITS: std::ops::RangeInclusive<u32> = 20..=30;

/// What in a history cannot be; `file`: its name.
pub(super) fn contradiction(
    text: &str,
    label: &Label,
    places: &Places,
    file: &str,
) -> Option<&'static str> {
    let stop = label.stop?;
    // Written as one, with a line at its end.
    if !text.ends_with('\n') || !text.lines().any(|line| line.starts_with("STOP TIME: ")) {
        return Some("it is cut");
    }
    if label.checkpoint < label.start || stop < label.start {
        return Some("the backup would end, or have its checkpoint, before it begins");
    }
    let begun = [places.start, backup_start(file)].into_iter().flatten();
    let begun: Vec<SegmentName> = begun.collect();
    let agrees = |bits: u32| {
        let is_in = |name: SegmentName, lsn: Lsn| name.number(1 << bits) == Some(lsn.0 >> bits);
        // A place at the end of a segment is that segment's (`XLByteToPrevSeg`).
        begun.iter().all(|name| is_in(*name, label.start))
            && places.stop.is_none_or(|name| is_in(name, Lsn(stop.0.saturating_sub(1))))
    };
    (!SEGMENT_BITS.into_iter().any(agrees))
        .then_some("an LSN does not lie in the file that is named for it")
}
