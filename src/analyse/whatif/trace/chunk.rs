//! Some records of the trace, one after the other, as they are looked at.

use super::{AtOther, Entry, Mark, Ref};
use crate::analyse::whatif::blocks::Ordinal;

/// Records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chunk {
    /// Ordinal of the first one.
    pub first: Ordinal,
    /// The records.
    pub entries: Vec<Entry>,
    /// Their block references, one record's after the other's.
    pub refs: Vec<Ref>,
    /// The marked ones.
    pub marks: Vec<(Ordinal, Mark)>,
    /// Those that differ at the other wal_level.
    pub others: Vec<(Ordinal, AtOther)>,
}

/// All that is noted of a record.
#[derive(Debug, Clone, Copy)]
pub struct Noted<'c> {
    /// Which one it is.
    pub ordinal: Ordinal,
    /// The record.
    pub entry: &'c Entry,
    /// Its block references.
    pub refs: &'c [Ref],
    /// What it means beyond its blocks.
    pub mark: Option<Mark>,
    /// What differs at the other wal_level.
    pub other: AtOther,
}

/// The next record of a chunk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    entry: usize,
    first_ref: usize,
    mark: usize,
    other: usize,
}

impl Chunk {
    /// Nothing is in it any more; the next record is `first`.
    pub fn clear(&mut self, first: Ordinal) {
        self.first = first;
        self.entries.clear();
        self.refs.clear();
        self.marks.clear();
        self.others.clear();
    }

    /// Adds a record.
    pub fn push(&mut self, noted: Noted<'_>) {
        if self.entries.is_empty() {
            self.first = noted.ordinal;
        }
        self.entries.push(*noted.entry);
        self.refs.extend_from_slice(noted.refs);
        self.marks.extend(noted.mark.map(|mark| (noted.ordinal, mark)));
        if noted.other != AtOther::default() {
            self.others.push((noted.ordinal, noted.other));
        }
    }

    /// The record at a place.
    pub fn at(&self, place: Place) -> Option<Noted<'_>> {
        let entry = self.entries.get(place.entry)?;
        let ordinal = self.first + place.entry as Ordinal;
        let end = place.first_ref + usize::from(entry.refs);
        let mark = self.marks.get(place.mark).filter(|(at, _)| *at == ordinal);
        let other = self.others.get(place.other).filter(|(at, _)| *at == ordinal);
        Some(Noted {
            ordinal,
            entry,
            refs: self.refs.get(place.first_ref..end).unwrap_or_default(),
            mark: mark.map(|(_, mark)| *mark),
            other: other.map_or_else(AtOther::default, |(_, other)| *other),
        })
    }

    /// The records.
    pub fn records(&self) -> impl Iterator<Item = Noted<'_>> {
        let mut place = Place::default();
        std::iter::from_fn(move || {
            let noted = self.at(place)?;
            place.pass(&noted);
            Some(noted)
        })
    }
}

impl Place {
    /// Goes on after a record.
    pub fn pass(&mut self, noted: &Noted<'_>) {
        self.entry += 1;
        self.first_ref += noted.refs.len();
        self.mark += usize::from(noted.mark.is_some());
        self.other += usize::from(noted.other != AtOther::default());
    }
}
