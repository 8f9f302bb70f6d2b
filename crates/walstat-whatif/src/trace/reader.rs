//! The trace from front to back.

use super::chunk::ChunkPlace;
use super::store::unpack_group;
use super::{Chunk, Commit, RecordEffect, RecordGroup, Trace, TracedRecord};
use crate::blocks::Ordinal;

/// Reads group after group.
pub(crate) struct Reader<'t> {
    trace: &'t Trace,
    /// The packed chunk after the one that is read.
    next: usize,
    /// That one, from the next group on: in `room` where it is kept in a file.
    held: Option<&'t [u8]>,
    room: Vec<u8>,
    at: usize,
    first: Ordinal,
    /// The next ones.
    effect: usize,
    commit: usize,
    chunk: Chunk,
}

impl<'t> Reader<'t> {
    /// From the packed chunk with this record on.
    pub(super) fn new(trace: &'t Trace, ordinal: Ordinal) -> Reader<'t> {
        Reader {
            trace,
            next: trace.records.chunk_of(ordinal),
            held: None,
            room: Vec::new(),
            at: 0,
            first: ordinal,
            effect: 0,
            commit: 0,
            chunk: Chunk::default(),
        }
    }

    fn rest(&self) -> &[u8] {
        self.held.unwrap_or(&self.room).get(self.at..).unwrap_or_default()
    }

    /// The next group; `None` after the last one.
    pub(crate) fn group(&mut self) -> Option<RecordGroup> {
        loop {
            if let Some(group) = RecordGroup::unpack(self.rest(), self.first) {
                return Some(group);
            }
            (self.first, self.held) = self.trace.records.load(self.next, &mut self.room)?;
            self.next += 1;
            self.at = 0;
            self.find_marks();
        }
    }

    /// Goes on after the next group.
    pub(crate) fn pass(&mut self, group: &RecordGroup) {
        self.at += group.packed_bytes();
        self.first = group.end();
    }

    /// The records of the next group; goes on after it.
    pub(crate) fn records(&mut self, group: &RecordGroup) -> &Chunk {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear(group.first);
        unpack_group(group, self.rest(), &mut chunk);
        self.chunk = chunk;
        self.effect(group);
        self.pass(group);
        &self.chunk
    }

    /// The next group with its records; `None` after the last one.
    fn next_chunk(&mut self) -> Option<&Chunk> {
        let group = self.group()?;
        Some(self.records(&group))
    }

    /// Calls `take` with each record that is left.
    pub(crate) fn for_each(mut self, mut take: impl FnMut(TracedRecord<'_>)) {
        while let Some(chunk) = self.next_chunk() {
            chunk.records().for_each(&mut take);
        }
    }

    /// Finds the first marks of the chunk, without a walk over those of all chunks before it.
    fn find_marks(&mut self) {
        let Trace { effects, commits, .. } = self.trace;
        self.effect = effects.partition_point(|(ordinal, _)| *ordinal < self.first);
        self.commit = commits.partition_point(|commit| commit.ordinal < self.first);
    }

    /// Puts the marks to their records.
    fn effect(&mut self, group: &RecordGroup) {
        let own = group.first..group.end();
        let effects = between(&self.trace.effects, &mut self.effect, &own, |effect| effect.0);
        let commits = between(&self.trace.commits, &mut self.commit, &own, |commit| commit.ordinal);
        let of = |commit: &Commit| {
            let Commit { ordinal, running, time } = *commit;
            (ordinal, RecordEffect::Commit { time, running })
        };
        self.chunk.effects.extend(effects);
        self.chunk.effects.extend(commits.iter().map(of));
        if !effects.is_empty() {
            self.chunk.effects.sort_by_key(|(ordinal, _)| *ordinal);
        }
    }
}

/// Those of a sorted list, from `next` on, that belong to a range of records; `next` lies behind them then.
fn between<'l, T>(
    list: &'l [T],
    next: &mut usize,
    range: &std::ops::Range<Ordinal>,
    ordinal: impl Fn(&T) -> Ordinal,
) -> &'l [T] {
    let rest = list.get(*next..).unwrap_or_default();
    let from = rest.iter().take_while(|item| ordinal(item) < range.start).count();
    let rest = rest.get(from..).unwrap_or_default();
    let count = rest.iter().take_while(|item| ordinal(item) < range.end).count();
    *next += from + count;
    rest.get(..count).unwrap_or_default()
}

/// Reads record after record.
pub(crate) struct TraceCursor<'t> {
    reader: Reader<'t>,
    place: ChunkPlace,
}

impl<'t> TraceCursor<'t> {
    /// Before the first record.
    pub(crate) fn new(trace: &'t Trace) -> TraceCursor<'t> {
        TraceCursor { reader: trace.read(), place: ChunkPlace::default() }
    }

    /// The record that is next; `None` after the last one.
    pub(crate) fn peek(&mut self) -> Option<TracedRecord<'_>> {
        if self.reader.chunk.at(self.place).is_none() {
            self.reader.next_chunk()?;
            self.place = ChunkPlace::default();
        }
        self.reader.chunk.at(self.place)
    }

    /// Goes on after the record that is next.
    pub(crate) fn pass(&mut self) {
        if let Some(traced) = self.reader.chunk.at(self.place) {
            self.place.pass(&traced);
        }
    }
}
