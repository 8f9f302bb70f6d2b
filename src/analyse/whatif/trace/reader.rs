//! The trace from front to back.

use super::chunk::Place;
use super::{Chunk, Commit, Mark, Noted, Trace};
use crate::analyse::whatif::blocks::Ordinal;

/// Reads chunk after chunk.
pub struct Reader<'t> {
    trace: &'t Trace,
    next: usize,
    chunk: Chunk,
    bytes: Vec<u8>,
}

impl<'t> Reader<'t> {
    /// From the chunk with this record on.
    pub(super) fn new(trace: &'t Trace, ordinal: Ordinal) -> Reader<'t> {
        let next = trace.records.chunk_of(ordinal);
        Reader { trace, next, chunk: Chunk::default(), bytes: Vec::new() }
    }

    /// The next chunk; `None` after the last one.
    pub fn next_chunk(&mut self) -> Option<&Chunk> {
        self.trace.records.unpack(self.next, &mut self.chunk, &mut self.bytes)?;
        self.next += 1;
        self.mark();
        Some(&self.chunk)
    }

    /// Calls `take` with each record that is left.
    pub fn for_each(mut self, mut take: impl FnMut(Noted<'_>)) {
        while let Some(chunk) = self.next_chunk() {
            chunk.records().for_each(&mut take);
        }
    }

    /// Puts the marks to their records.
    fn mark(&mut self) {
        let chunk = &mut self.chunk;
        let end = chunk.first + chunk.entries.len() as Ordinal;
        let of = |commit: &Commit| {
            let Commit { ordinal, running, time } = *commit;
            (ordinal, Mark::Commit { time, running })
        };
        chunk.marks.extend(between(&self.trace.marks, chunk.first..end, |mark| mark.0));
        let others = chunk.marks.len();
        let commits = between(&self.trace.commits, chunk.first..end, |commit| commit.ordinal);
        chunk.marks.extend(commits.iter().map(of));
        if others > 0 {
            chunk.marks.sort_by_key(|(ordinal, _)| *ordinal);
        }
    }
}

/// Those of a sorted list that belong to a range of records.
fn between<T>(
    list: &[T],
    range: std::ops::Range<Ordinal>,
    ordinal: impl Fn(&T) -> Ordinal,
) -> &[T] {
    let from = list.partition_point(|item| ordinal(item) < range.start);
    let to = list.partition_point(|item| ordinal(item) < range.end);
    list.get(from..to).unwrap_or_default()
}

/// Reads record after record.
pub struct Cursor<'t> {
    reader: Reader<'t>,
    place: Place,
}

impl<'t> Cursor<'t> {
    /// Before the first record.
    pub fn new(trace: &'t Trace) -> Cursor<'t> {
        Cursor { reader: trace.read(), place: Place::default() }
    }

    /// The record that is next; `None` after the last one.
    pub fn peek(&mut self) -> Option<Noted<'_>> {
        if self.reader.chunk.at(self.place).is_none() {
            self.reader.next_chunk()?;
            self.place = Place::default();
        }
        self.reader.chunk.at(self.place)
    }

    /// Goes on after the record that is next.
    pub fn pass(&mut self) {
        if let Some(noted) = self.reader.chunk.at(self.place) {
            self.place.pass(&noted);
        }
    }
}
