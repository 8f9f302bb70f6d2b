//! Whether the history of a base backup says what a server wrote into it. No server reads it again: where one
//! was cut, or has a digit changed, nothing else is wrong.

use super::{Label, Places};
use crate::names::backup_start;
use walstat_format::lsn::Lsn;
use walstat_format::segment::{SegmentName, is_segment_size};

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
    if [places.start, backup_start(file)]
        .into_iter()
        .flatten()
        .any(|name| name.timeline != label.timeline)
    {
        return Some("it names two timelines");
    }
    // A place at the end of a segment is that segment's (`XLByteToPrevSeg`).
    let last = Lsn(stop.0.saturating_sub(1));
    let named =
        [(places.start, label.start), (backup_start(file), label.start), (places.stop, last)];
    let agrees = |bytes: u32| {
        let is_in =
            |name: SegmentName, lsn: Lsn| name.number(bytes) == Some(lsn.0 / u64::from(bytes));
        named.iter().all(|(name, lsn)| name.is_none_or(|name| is_in(name, *lsn)))
    };
    let mut sizes = (0..u32::BITS).map(|bits| 1 << bits).filter(|size| is_segment_size(*size));
    (!sizes.any(agrees)).then_some("an LSN does not lie in the file that is named for it")
}
