//! Made-up WAL for tests: records of chosen kinds, whose images are where a server would have them.

use crate::base::Base;
use crate::blocks::{FIRST, NEVER, Ordinal};
use crate::position::{Geometry, padded};
use crate::redo::Unfrozen;
use crate::trace::{
    Entry, RecordDelta, RecordEffect, Sequence, Trace, TracedBlock, TracedRecord, WalLevelDelta,
    entry_fact,
};
use proptest::prelude::*;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::rmgr::RecordType;
use walstat_format::version::VERSIONS;

const GEOMETRY: Geometry = Geometry { page: 8192, segment: 1 << 20 };
const BLOCKS: usize = 40;
/// Bytes of each image, and with its header.
const IMAGE_BYTES: u16 = 2000;
/// The table that the first sequence feeds.
const FED_TABLE: u32 = 5;

/// What a record is, beside its lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Change,
    ChangeOfLookedAt,
    NewPage,
    Commit,
    /// A redo point, and later the record of its checkpoint.
    Redo,
    CheckpointEnd,
    /// Bytes before it that hold no record.
    AfterGap,
    Hint,
    WithHints,
    Always,
    Unsaid,
    Checked,
    Estimated,
    Prunes,
    FreezesForImage,
    FreezesForHint(Unfrozen),
    MapTruncated,
    FreeSpace,
    Switch,
    FullPageWrites(bool),
    Rows,
    Sequence(u32),
}

/// One made-up record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) kind: Kind,
    pub(crate) block: usize,
    pub(crate) data_bytes: u16,
    pub(crate) fixed_bytes: u16,
    pub(crate) delta: WalLevelDelta,
}

impl Made {
    pub(crate) fn new(kind: Kind, block: usize) -> Made {
        let delta = WalLevelDelta::default();
        Made { kind, block, data_bytes: 40, fixed_bytes: 39, delta }
    }
}

/// Kinds: most records are changes, few are special.
pub(crate) fn any_record() -> impl Strategy<Value = Made> {
    use Kind::*;
    let unfrozen = prop_oneof![Just(Unfrozen::NoRecord), (0u16..40).prop_map(Unfrozen::Data)];
    let special = prop_oneof![
        Just(Redo),
        Just(CheckpointEnd),
        Just(AfterGap),
        Just(Hint),
        Just(WithHints),
        Just(Always),
        Just(Unsaid),
        Just(Checked),
        Just(Estimated),
        Just(Prunes),
        Just(FreezesForImage),
        unfrozen.prop_map(FreezesForHint),
        Just(MapTruncated),
        Just(FreeSpace),
        Just(Switch),
        any::<bool>().prop_map(FullPageWrites),
        Just(Rows),
        (0u32..2).prop_map(Sequence),
    ];
    let kind = prop_oneof![
        40 => Just(Change), 5 => Just(ChangeOfLookedAt), 5 => Just(NewPage), 5 => Just(Commit),
        4 => special,
    ];
    let block = prop_oneof![9 => 0usize..3, 1 => 0..BLOCKS];
    let more = (-20i32..40, 0i32..20).prop_map(|(more, guess)| RecordDelta::More { more, guess });
    let record = prop_oneof![Just(None), Just(Some(RecordDelta::NotWritten)), more.prop_map(Some)];
    let delta = (record, any::<Option<u8>>(), 0u16..100).prop_map(|(record, data, old_row)| {
        WalLevelDelta { record, data: data.map(u16::from), old_row }
    });
    let delta = prop_oneof![60 => Just(WalLevelDelta::default()), 1 => delta];
    (kind, block, 0u16..300, 30u16..430, delta).prop_map(
        |(kind, block, data_bytes, fixed_bytes, delta)| Made {
            kind,
            block,
            data_bytes,
            fixed_bytes,
            delta,
        },
    )
}

/// What is known while records are made up.
struct Maker {
    stamped: [Ordinal; BLOCKS],
    redo: (Ordinal, Lsn),
    value: i64,
}

impl Maker {
    /// What the record means beyond its block.
    fn effect(&mut self, kind: Kind, ordinal: Ordinal) -> Option<RecordEffect> {
        let time = Time(i64::from(ordinal) * 9_000);
        Some(match kind {
            Kind::Commit => RecordEffect::Commit { time, running: 1 },
            Kind::CheckpointEnd => RecordEffect::Checkpoint {
                redo: self.redo.1,
                online: true,
                full_page_writes: true,
                time,
            },
            Kind::Hint => RecordEffect::Hint { is_main: true },
            Kind::Prunes => RecordEffect::PrunesAfterHint,
            Kind::FreezesForHint(unfrozen) => RecordEffect::FreezesForHint { unfrozen },
            Kind::MapTruncated => RecordEffect::MapTruncated,
            Kind::FreeSpace => RecordEffect::FreeSpace { page: NEVER, above: self.redo.0 },
            Kind::Switch => RecordEffect::Switch,
            Kind::FullPageWrites(on) => RecordEffect::FullPageWrites(on),
            Kind::Sequence(sequence) => {
                self.value += 33;
                RecordEffect::Sequence { fork: sequence, value: self.value, sequence }
            }
            _ => return None,
        })
    }

    fn block(&mut self, made: &Made, ordinal: Ordinal) -> Option<TracedBlock> {
        use Kind::*;
        let facts = match made.kind {
            Commit | Redo | CheckpointEnd | AfterGap | Switch | FullPageWrites(_) => return None,
            Change | Rows | Sequence(_) | MapTruncated | FreeSpace => entry_fact::USUAL,
            ChangeOfLookedAt | Prunes | FreezesForHint(_) => {
                entry_fact::USUAL | entry_fact::LOOKED_AT
            }
            FreezesForImage => {
                entry_fact::USUAL | entry_fact::LOOKED_AT | entry_fact::FREEZES_FOR_IMAGE
            }
            Hint => entry_fact::USUAL,
            NewPage => 0,
            WithHints => entry_fact::WITH_HINTS,
            Always => entry_fact::ALWAYS,
            Unsaid => entry_fact::UNSAID,
            Checked => entry_fact::USUAL | entry_fact::CHECK_IMAGE,
            Estimated => {
                entry_fact::USUAL | entry_fact::DATA_ESTIMATED | entry_fact::IMAGE_ESTIMATED
            }
        };
        let stamped = std::mem::replace(self.stamped.get_mut(made.block)?, ordinal);
        let has_image = facts & (entry_fact::ALWAYS | entry_fact::CHECK_IMAGE) != 0
            || facts & entry_fact::USUAL != 0 && stamped < self.redo.0;
        let image = if has_image { entry_fact::BASE_IMAGE | entry_fact::HOLE } else { 0 };
        Some(TracedBlock {
            block: made.block as u32,
            stamped,
            stamped_without_hints: stamped,
            data_bytes: made.data_bytes,
            image_bytes: IMAGE_BYTES,
            stored_bytes: if has_image { IMAGE_BYTES } else { 0 },
            facts: facts | entry_fact::STAMPS | image,
        })
    }
}

/// A base of these records, with its trace.
pub(crate) fn base(records: &[Made]) -> (Trace, Base) {
    let mut trace = Trace { page_bytes: 8192, ..Trace::default() };
    let mut maker = Maker { stamped: [NEVER; BLOCKS], redo: (FIRST, Lsn(0)), value: 0 };
    let start = GEOMETRY.usable(Lsn(1 << 20));
    let mut usable = start;
    for (ordinal, made) in (FIRST..).zip(records) {
        if made.kind == Kind::AfterGap {
            usable += 4096;
        }
        let lsn = GEOMETRY.start(usable);
        if made.kind == Kind::Redo {
            maker.redo = (ordinal, lsn);
        }
        let effect = maker.effect(made.kind, ordinal);
        let block = maker.block(made, ordinal);
        let refs = block.as_slice();
        let own = block.map_or(0, |block| match block.stored_bytes {
            0 => u32::from(made.data_bytes),
            stored => u32::from(stored) + 5,
        });
        let fixed_bytes = u32::from(made.fixed_bytes);
        let is_rows = made.kind == Kind::Rows;
        let entry = Entry {
            lsn,
            bytes: fixed_bytes + own,
            fixed_bytes,
            kind: RecordType { rmgr: 10, slot: refs.len() as u8 },
            refs: refs.len() as u8,
            rows: if is_rows { 3 } else { 0 },
            table: if is_rows { FED_TABLE } else { 0 },
        };
        let traced = TracedRecord { ordinal, entry: &entry, refs, effect, delta: made.delta };
        trace.push(&traced, made.kind != Kind::AfterGap);
        usable += padded(u64::from(entry.bytes));
        if made.kind == Kind::Switch {
            usable = GEOMETRY.next_segment(usable);
        }
    }
    trace.records.close();
    let sequence = |fork, table, period| Sequence { fork, bytes: 99, table, period };
    trace.sequences = vec![sequence(0, Some(FED_TABLE), None), sequence(1, None, Some(33))];
    trace.feeds.insert(FED_TABLE, 0);
    let range = GEOMETRY.start(start)..GEOMETRY.end(usable);
    let base = Base::of(&trace, &VERSIONS[7], GEOMETRY, range);
    (trace, base)
}
