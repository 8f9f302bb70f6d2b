//! Checkpoints that began and never ended: the server crashed, or the WAL stops before. Up to
//! release 16 no record marks their redo points, but images do: a page that was stamped since the last
//! known redo point has an image again.

use super::Base;
use crate::base_checkpoint::BaseCheckpoint;
use crate::blocks::Ordinal;
use crate::trace::{RecordEffect, Trace, TracedBlock, entry_fact};
use std::collections::BTreeSet;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::payload::Time;

/// What images tell of the records between two known redo points.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    /// The redo point lies after this record: the newest earlier change of a page that later got an image
    /// again.
    after: Ordinal,
    /// The redo point lies before this record: the first such image.
    before: Option<Ordinal>,
    /// Of pages changed without an image after that, the oldest earlier change: the redo point lies at it or
    /// before.
    oldest_kept: Option<Ordinal>,
}

impl Evidence {
    fn note(&mut self, ordinal: Ordinal, reference: &TracedBlock, redo: Ordinal, log_hints: bool) {
        let stamped = if log_hints { reference.stamped } else { reference.stamped_without_hints };
        if !reference.is(entry_fact::USUAL)
            || reference.is(entry_fact::CHECK_IMAGE)
            || stamped < redo
        {
            return;
        }
        if reference.is(entry_fact::BASE_IMAGE) {
            self.after = self.after.max(stamped);
            self.before.get_or_insert(ordinal);
        } else if self.before.is_some() {
            let oldest = self.oldest_kept.get_or_insert(stamped);
            *oldest = (*oldest).min(stamped);
        }
    }

    /// The first record after the redo point, if all that was seen fits to one. Where a segment begins among
    /// those that it may be, the first one in that: volume begins a checkpoint when one is full.
    fn redo(&self, trace: &Trace, segment: u64) -> Option<Ordinal> {
        let (earliest, latest) = (self.after + 1, self.before?);
        let latest = self.oldest_kept.map_or(latest, |kept| kept.min(latest));
        if earliest > latest {
            return None;
        }
        let lsn = trace.entry_of(earliest)?.lsn;
        let in_next = trace.ordinal_at(Lsn((lsn.0 / segment + 1) * segment));
        Some(if in_next <= latest { in_next } else { earliest })
    }
}

/// The checkpoints that never ended: before a crash, or before the end of the WAL.
pub(crate) fn find(trace: &Trace, base: &Base) -> Vec<BaseCheckpoint> {
    if base.version.pacing.marks_redo {
        return marked(trace, base);
    }
    if !base.full_page_writes {
        return Vec::new();
    }
    let segment = base.geometry.segment;
    let mut found = Vec::new();
    let mut cycles = cut_cycles(base).into_iter().peekable();
    let Some((begin, _)) = cycles.peek().copied() else { return found };
    let mut evidence = Evidence::default();
    trace.read_from(begin).for_each(|traced| {
        while cycles.next_if(|(_, end)| *end <= traced.ordinal).is_some() {
            found.extend(checkpoint(trace, std::mem::take(&mut evidence).redo(trace, segment)));
        }
        if let Some((redo, _)) = cycles.peek().filter(|(redo, _)| *redo <= traced.ordinal) {
            for reference in traced.refs {
                evidence.note(traced.ordinal, reference, *redo, base.log_hints);
            }
        }
    });
    found.extend(checkpoint(trace, evidence.redo(trace, segment)));
    found
}

/// Ranges of records from a redo point to the next, where the next is that of a shutdown or a recovery;
/// and the last one.
fn cut_cycles(base: &Base) -> Vec<(Ordinal, Ordinal)> {
    let crashes = base.checkpoints.windows(2).filter_map(|pair| match pair {
        [from, to] if !to.online => Some((from.first, to.first)),
        _ => None,
    });
    let last = base.checkpoints.last().map(|last| (last.first, Ordinal::MAX));
    crashes.chain(last).collect()
}

/// Redo points that mark themselves, and belong to no checkpoint.
fn marked(trace: &Trace, base: &Base) -> Vec<BaseCheckpoint> {
    let known: BTreeSet<Ordinal> = base.checkpoints.iter().map(|known| known.first).collect_set();
    let effects = trace.effects.iter().filter(|(_, effect)| *effect == RecordEffect::Redo);
    let unknown = effects.filter(|(ordinal, _)| !known.contains(ordinal));
    unknown.filter_map(|(ordinal, _)| checkpoint(trace, Some(*ordinal))).collect()
}

fn checkpoint(trace: &Trace, redo: Option<Ordinal>) -> Option<BaseCheckpoint> {
    let first = redo?;
    let lsn = trace.entry_of(first)?.lsn;
    let time = trace.commit_before(first).map_or(Time(0), |commit| commit.time);
    Some(BaseCheckpoint::begun(lsn, first, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{Kind, Made, base};

    const SEGMENT: u64 = 1 << 20;

    #[test]
    fn a_redo_point_lies_where_a_segment_begins_if_it_may() {
        let record = Made { fixed_bytes: 60_000, ..Made::new(Kind::Commit, 0) };
        let (trace, _) = base(&[record; 60]);
        // The WAL begins with a segment: this is where the next one does.
        let boundary = trace.ordinal_at(Lsn(2 * SEGMENT));
        let lsn = |ordinal| trace.entry_of(ordinal).expect("a record").lsn.0;
        assert!(lsn(boundary) >= 2 * SEGMENT && lsn(boundary - 1) < 2 * SEGMENT);
        let redo = |after, before| {
            let evidence = Evidence { after, before: Some(before), oldest_kept: None };
            evidence.redo(&trace, SEGMENT)
        };
        assert_eq!(redo(boundary - 4, boundary + 3), Some(boundary));
        // None begins among these.
        assert_eq!(redo(boundary + 1, boundary + 5), Some(boundary + 2));
        assert_eq!(redo(boundary + 5, boundary + 3), None, "no place fits");
    }
}
