//! Some records of the trace, one after the other, as they are looked at.

use super::{Entry, RecordEffect, TracedBlock, WalLevelDelta};
use crate::blocks::Ordinal;

/// Records.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chunk {
    /// Ordinal of the first one.
    pub(crate) first: Ordinal,
    /// The records.
    pub(crate) entries: Vec<Entry>,
    /// Their block references, one record's after the other's.
    pub(crate) refs: Vec<TracedBlock>,
    /// What they mean beyond their blocks.
    pub(crate) effects: Vec<(Ordinal, RecordEffect)>,
    /// Those that differ at the other wal_level.
    pub(crate) deltas: Vec<(Ordinal, WalLevelDelta)>,
}

/// All that is noted of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TracedRecord<'c> {
    /// Which one it is.
    pub(crate) ordinal: Ordinal,
    /// The record.
    pub(crate) entry: &'c Entry,
    /// Its block references.
    pub(crate) refs: &'c [TracedBlock],
    /// What it means beyond its blocks.
    pub(crate) effect: Option<RecordEffect>,
    /// What differs at the other wal_level.
    pub(crate) delta: WalLevelDelta,
}

impl TracedRecord<'_> {
    /// Whether anything differs at the other wal_level.
    pub(crate) fn has_delta(&self) -> bool {
        self.delta != WalLevelDelta::default()
    }
}

/// The next record of a chunk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkPlace {
    entry: usize,
    first_ref: usize,
    effect: usize,
    delta: usize,
}

impl Chunk {
    /// Nothing is in it any more; the next record is `first`.
    pub(crate) fn clear(&mut self, first: Ordinal) {
        self.first = first;
        self.entries.clear();
        self.refs.clear();
        self.effects.clear();
        self.deltas.clear();
    }

    /// Adds a record.
    pub(crate) fn push(&mut self, traced: TracedRecord<'_>) {
        if self.entries.is_empty() {
            self.first = traced.ordinal;
        }
        self.entries.push(*traced.entry);
        self.refs.extend_from_slice(traced.refs);
        self.effects.extend(traced.effect.map(|effect| (traced.ordinal, effect)));
        if traced.has_delta() {
            self.deltas.push((traced.ordinal, traced.delta));
        }
    }

    /// The record at a place.
    pub(crate) fn at(&self, place: ChunkPlace) -> Option<TracedRecord<'_>> {
        let entry = self.entries.get(place.entry)?;
        let ordinal = self.first + place.entry as Ordinal;
        let end = place.first_ref + usize::from(entry.refs);
        let effect = self.effects.get(place.effect).filter(|(at, _)| *at == ordinal);
        let delta = self.deltas.get(place.delta).filter(|(at, _)| *at == ordinal);
        Some(TracedRecord {
            ordinal,
            entry,
            refs: self.refs.get(place.first_ref..end).unwrap_or_default(),
            effect: effect.map(|(_, effect)| *effect),
            delta: delta.map_or_else(WalLevelDelta::default, |(_, delta)| *delta),
        })
    }

    /// The records.
    pub(crate) fn records(&self) -> impl Iterator<Item = TracedRecord<'_>> {
        let mut place = ChunkPlace::default();
        std::iter::from_fn(move || {
            let traced = self.at(place)?;
            place.pass(&traced);
            Some(traced)
        })
    }
}

impl ChunkPlace {
    /// Goes on after a record.
    pub(crate) fn pass(&mut self, traced: &TracedRecord<'_>) {
        self.entry += 1;
        self.first_ref += traced.refs.len();
        self.effect += usize::from(traced.effect.is_some());
        self.delta += usize::from(traced.has_delta());
    }
}
