//! Simulated runs that need nothing but the trace, since how long images are is known.

use super::base::Base;
use super::lane::Lane;
use super::outcome::Outcome;
use super::outline::{Outline, Outliner};
use super::plan::ImageBytes;
use super::settings::Settings;
use super::trace::{Chunk, Ref, Trace};

/// How long images are.
pub trait Lengths {
    /// The next image.
    fn of(&mut self, reference: &Ref) -> ImageBytes;
}

/// As in the base, or not compressed where it has none.
struct AsBase {
    /// None is compressed.
    is_raw: bool,
}

impl Lengths for AsBase {
    fn of(&mut self, reference: &Ref) -> ImageBytes {
        if self.is_raw { ImageBytes::raw(reference) } else { ImageBytes::as_base(reference) }
    }
}

/// Simulates several runs, side by side: the trace is read once.
pub fn replay(trace: &Trace, base: &Base, runs: &[Settings]) -> Vec<Outcome> {
    let plain = |settings: &Settings| PlainLane {
        lane: Lane::new(trace, base, settings),
        lengths: AsBase { is_raw: settings.compression == Some(None) },
    };
    let lanes = run(trace, base, runs.iter().map(plain).collect());
    lanes.into_iter().map(|(outcome, _)| outcome).collect()
}

/// Simulates one run with images of other lengths.
pub fn replay_one<L: Lengths + Default>(
    trace: &Trace,
    base: &Base,
    settings: &Settings,
    lengths: L,
) -> (Outcome, L) {
    let lane = PlainLane { lane: Lane::new(trace, base, settings), lengths };
    run(trace, base, vec![lane]).pop().unwrap_or_default()
}

fn run<L: Lengths>(
    trace: &Trace,
    base: &Base,
    mut lanes: Vec<PlainLane<'_, L>>,
) -> Vec<(Outcome, L)> {
    let mut outliner = Outliner::new(base);
    let mut outlines = Vec::new();
    let mut reader = trace.read();
    while let Some(stretch) = reader.stretch().filter(|stretch| stretch.first < base.last) {
        // Before the first record of the range anything may be.
        let is_inside = base.first < stretch.first && stretch.end() <= base.last;
        if is_inside && lanes.iter().all(|lane| lane.lane.skips(&stretch)) {
            lanes.iter_mut().for_each(|lane| lane.lane.skip(&stretch));
            outliner.pass(stretch.bytes);
            reader.pass(&stretch);
            continue;
        }
        let chunk = reader.records(&stretch);
        outlines.clear();
        let own = chunk.records().filter(|noted| base.contains(noted.ordinal));
        outlines.extend(own.map(|noted| outliner.next(&noted)));
        for lane in &mut lanes {
            if is_inside && lane.lane.skips(&stretch) {
                lane.lane.skip(&stretch);
            } else {
                lane.take(base, chunk, &outlines);
            }
        }
    }
    let rest = outliner.rest();
    lanes.into_iter().map(|lane| (lane.lane.finish(rest), lane.lengths)).collect()
}

struct PlainLane<'t, L> {
    lane: Lane<'t>,
    lengths: L,
}

impl<L: Lengths> PlainLane<'_, L> {
    fn take(&mut self, base: &Base, chunk: &Chunk, outlines: &[Outline]) {
        let mut outlines = outlines.iter();
        for noted in chunk.records() {
            if noted.ordinal < base.first {
                self.lane.warm_up(&noted);
                continue;
            }
            let Some(outline) = outlines.next() else { break };
            self.lane.take(&noted, outline, |_, reference| self.lengths.of(reference));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::whatif::blocks::{FIRST, NEVER, Ordinal};
    use crate::analyse::whatif::position::{Geometry, padded};
    use crate::analyse::whatif::settings::{ArchiveTimeout, Checkpoints, Timed};
    use crate::analyse::whatif::trace::{Entry, Mark, fact};
    use crate::wal::lsn::Lsn;
    use crate::wal::payload::Time;
    use crate::wal::rmgr::RecordType;
    use crate::wal::version::VERSIONS;
    use proptest::prelude::*;

    const GEOMETRY: Geometry = Geometry { page: 8192, segment: 1 << 20 };
    const BLOCKS: usize = 40;

    /// What one record is made of.
    type Made = (u8, usize, u16, bool, u16);

    /// A base with checkpoints, whose images are where the server would have them.
    fn trace(records: &[Made]) -> (Trace, Base) {
        let mut trace = Trace { page_bytes: 8192, ..Trace::default() };
        let (mut stamped, mut redo) = ([NEVER; BLOCKS], (FIRST, Lsn(0)));
        let mut usable = GEOMETRY.usable(Lsn(1 << 20));
        for (ordinal, &(what, block, data, is_apart, length)) in (FIRST..).zip(records) {
            if is_apart && what == 9 {
                usable += 4096;
            }
            let lsn = GEOMETRY.start(usable);
            let mut facts = fact::STAMPS;
            let mut mark = None;
            match what {
                0..6 => facts |= fact::USUAL,
                6 => facts |= fact::USUAL | fact::LOOKED_AT,
                7 => {}
                8 => {
                    mark = Some(Mark::Commit { time: Time(i64::from(ordinal) * 9_000), running: 1 })
                }
                _ if is_apart => {
                    let time = Time(i64::from(ordinal) * 9_000);
                    let (full_page_writes, online) = (true, true);
                    mark = Some(Mark::Checkpoint { redo: redo.1, online, full_page_writes, time });
                }
                _ => redo = (ordinal, lsn),
            }
            let has_block = what < 8;
            let before = stamped.get_mut(block).map_or(NEVER, |at| std::mem::replace(at, ordinal));
            let image = has_block && facts & fact::USUAL != 0 && before < redo.0;
            let reference = Ref {
                block: block as u32,
                stamped: before,
                stamped_without_hints: before,
                data_bytes: data,
                image_bytes: 2000,
                stored_bytes: if image { 2000 } else { 0 },
                facts: facts | if image { fact::BASE_IMAGE | fact::HOLE } else { 0 },
            };
            let refs: &[Ref] = if has_block { &[reference] } else { &[] };
            let fixed_bytes = 30 + u32::from(length);
            let own = if image { 2005 } else { u32::from(data) };
            let bytes = fixed_bytes + if has_block { own } else { 0 };
            let kind = RecordType { rmgr: 10, slot: what };
            let (refs_count, rows, table) = (refs.len() as u8, 0, 0);
            let entry = Entry { lsn, bytes, fixed_bytes, kind, refs: refs_count, rows, table };
            trace.push((&entry, refs), (mark, None, !(is_apart && what == 9)));
            usable += padded(u64::from(bytes));
        }
        trace.records.close();
        let range = (GEOMETRY.start(GEOMETRY.usable(Lsn(1 << 20))), GEOMETRY.end(usable));
        let base = Base::of(&trace, &VERSIONS[7], GEOMETRY, range);
        (trace, base)
    }

    /// The same run without stretches.
    fn one_by_one(trace: &Trace, base: &Base, settings: &Settings) -> Outcome {
        let (mut lane, mut outliner) = (Lane::new(trace, base, settings), Outliner::new(base));
        trace.read().for_each(|noted| {
            if base.contains(noted.ordinal) {
                let outline = outliner.next(&noted);
                lane.take(&noted, &outline, |_, reference| ImageBytes::as_base(reference));
            }
        });
        lane.finish(outliner.rest())
    }

    fn settings() -> Vec<Settings> {
        let timed =
            Timed { max_wal_size: Some(3 << 20), timeout: Some(400_000), ..Timed::default() };
        let checkpoints = [
            Checkpoints::AsBase,
            Checkpoints::Factor(2.0),
            Checkpoints::Factor(0.5),
            Checkpoints::At(Vec::new()),
            Checkpoints::Bytes(100_000),
            Checkpoints::Time(300_000),
            Checkpoints::Timed(timed),
        ];
        let with = |checkpoints| Settings { checkpoints, ..Settings::default() };
        let mut all: Vec<Settings> = checkpoints.into_iter().map(with).collect();
        all.push(Settings { full_page_writes: Some(false), ..Settings::default() });
        all.push(Settings { log_hints: Some(true), ..Settings::default() });
        let archive_timeout = Some(ArchiveTimeout::After(100_000));
        all.push(Settings { archive_timeout, ..Settings::default() });
        all
    }

    proptest! {
        #[test]
        fn stretches_come_to_what_their_records_come_to(
            records in proptest::collection::vec(
                // Few of them are special.
                (
                    prop_oneof![30 => 0u8..9, 1 => Just(9)],
                    prop_oneof![9 => 0usize..3, 1 => 0..BLOCKS],
                    0u16..300,
                    any::<bool>(),
                    0u16..400,
                ),
                0..900,
            ),
        ) {
            let (trace, base) = trace(&records);
            let settings = settings();
            let single: Vec<_> =
                settings.iter().map(|settings| one_by_one(&trace, &base, settings)).collect();
            prop_assert_eq!(replay(&trace, &base, &settings), single);
        }
    }

    #[test]
    fn records_that_change_what_was_changed_are_not_looked_at() {
        let records: Vec<Made> = (0..Ordinal::from(200u8)).map(|_| (0, 1, 40, false, 9)).collect();
        let (trace, base) = trace(&records);
        let lane = Lane::new(&trace, &base, &Settings::default());
        let mut reader = trace.read();
        let first = reader.stretch().expect("there");
        assert!(!first.is_plain(), "its first record has an image");
        reader.pass(&first);
        let second = reader.stretch().expect("there");
        assert!(
            second.is_plain() && !lane.skips(&second),
            "nothing is known of the checkpoints yet"
        );
    }
}
