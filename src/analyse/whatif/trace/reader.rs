//! The trace from front to back.

use super::chunk::Place;
use super::store::unpack_stretch;
use super::{Chunk, Commit, Mark, Noted, Stretch, Trace};
use crate::analyse::whatif::blocks::Ordinal;

/// Reads stretch after stretch.
pub struct Reader<'t> {
    trace: &'t Trace,
    /// The packed chunk after the one that is read.
    next: usize,
    /// That one, from the next stretch on: in `room` where it is kept in a file.
    held: Option<&'t [u8]>,
    room: Vec<u8>,
    at: usize,
    first: Ordinal,
    /// The next ones.
    mark: usize,
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
            mark: 0,
            commit: 0,
            chunk: Chunk::default(),
        }
    }

    fn rest(&self) -> &[u8] {
        self.held.unwrap_or(&self.room).get(self.at..).unwrap_or_default()
    }

    /// The next stretch; `None` after the last one.
    pub fn stretch(&mut self) -> Option<Stretch> {
        loop {
            if let Some(stretch) = Stretch::unpack(self.rest(), self.first) {
                return Some(stretch);
            }
            (self.first, self.held) = self.trace.records.load(self.next, &mut self.room)?;
            self.next += 1;
            self.at = 0;
        }
    }

    /// Goes on after the next stretch.
    pub fn pass(&mut self, stretch: &Stretch) {
        self.at += stretch.packed_bytes();
        self.first = stretch.end();
    }

    /// The records of the next stretch; goes on after it.
    pub fn records(&mut self, stretch: &Stretch) -> &Chunk {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear(stretch.first);
        unpack_stretch(stretch, self.rest(), &mut chunk);
        self.chunk = chunk;
        self.mark(stretch);
        self.pass(stretch);
        &self.chunk
    }

    /// The next stretch with its records; `None` after the last one.
    pub fn next_chunk(&mut self) -> Option<&Chunk> {
        let stretch = self.stretch()?;
        Some(self.records(&stretch))
    }

    /// Calls `take` with each record that is left.
    pub fn for_each(mut self, mut take: impl FnMut(Noted<'_>)) {
        while let Some(chunk) = self.next_chunk() {
            chunk.records().for_each(&mut take);
        }
    }

    /// Puts the marks to their records.
    fn mark(&mut self, stretch: &Stretch) {
        let own = stretch.first..stretch.end();
        let marks = between(&self.trace.marks, &mut self.mark, &own, |mark| mark.0);
        let commits = between(&self.trace.commits, &mut self.commit, &own, |commit| commit.ordinal);
        let of = |commit: &Commit| {
            let Commit { ordinal, running, time } = *commit;
            (ordinal, Mark::Commit { time, running })
        };
        self.chunk.marks.extend(marks);
        self.chunk.marks.extend(commits.iter().map(of));
        if !marks.is_empty() {
            self.chunk.marks.sort_by_key(|(ordinal, _)| *ordinal);
        }
    }
}

/// Those of a sorted list that belong to a range of records, none of which lies before `next`; that is the
/// one after them then.
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
