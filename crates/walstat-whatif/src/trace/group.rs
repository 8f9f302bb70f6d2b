//! A few records of the trace, one after the other, and what they come to where none of their pages
//! gets an image: a run that writes all of them so need not look at them.

use super::{PlainLength, RecordEffect, TracedRecord};
use crate::blocks::{FIRST, Ordinal};
use walstat_format::cursor::Cursor;
use walstat_format::lsn::Lsn;

/// So many records are one group: most groups hold no record that is special.
pub const GROUP_RECORDS: u8 = 32;

/// What holds for a group, as bits.
mod fact {
    pub const PLAIN: u8 = 0x01;
    pub const ROWS: u8 = 0x02;
    pub const DELTAS: u8 = 0x04;
    pub const LOOKS_AT: u8 = 0x08;
    pub const COMMITS: u8 = 0x10;
}

/// Up to 32 records that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordGroup {
    /// Ordinal of its first record.
    pub first: Ordinal,
    /// How many there are.
    pub count: u8,
    /// Where the first one starts.
    pub lsn: Lsn,
    /// The oldest stamp of their pages.
    pub oldest: Ordinal,
    /// Their lengths in the base, padded.
    pub bytes: u64,
    /// Pages that are made by them, and were never stamped before.
    pub new_pages: u16,
    /// What runs after the last commit among them.
    pub running: u32,
    facts: u8,
    /// Bytes of its packed records.
    length: u32,
}

impl RecordGroup {
    /// Bytes of one that is packed, but for its records.
    pub const BYTES: usize = 32;

    /// One without records yet.
    pub fn new(first: Ordinal, lsn: Lsn) -> RecordGroup {
        RecordGroup {
            first,
            count: 0,
            lsn,
            oldest: Ordinal::MAX,
            bytes: 0,
            new_pages: 0,
            running: 0,
            facts: fact::PLAIN,
            length: 0,
        }
    }

    /// Adds a record; `follows`: it begins where the one before ends.
    pub fn add(&mut self, traced: &TracedRecord<'_>, follows: bool) {
        let TracedRecord { entry, refs, effect, .. } = *traced;
        let plain = PlainLength::of(entry, refs);
        let set = |holds: bool, bit: u8| if holds { bit } else { 0 };
        let commit = match effect {
            Some(RecordEffect::Commit { running, .. }) => {
                self.running = running;
                true
            }
            _ => false,
        };
        let is_plain = follows
            && plain.is_plain
            && (effect.is_none() || commit)
            && (plain.more, plain.base_images) == (0, 0);
        if !is_plain {
            self.facts &= !fact::PLAIN;
        }
        self.facts |= set(entry.rows > 0, fact::ROWS)
            | set(traced.has_delta(), fact::DELTAS)
            | set(plain.looks_at, fact::LOOKS_AT)
            | set(commit, fact::COMMITS);
        self.oldest = self.oldest.min(plain.oldest);
        self.bytes += plain.bytes;
        self.new_pages += u16::from(plain.new_pages);
        self.count += 1;
    }

    /// Ordinal after the last record.
    pub fn end(&self) -> Ordinal {
        self.first + Ordinal::from(self.count)
    }

    /// Whether each record is written as in the base, one after the other, where no page of it was stamped
    /// before the redo point.
    pub fn is_plain(&self) -> bool {
        self.facts & fact::PLAIN != 0 && self.oldest >= FIRST
    }

    /// Whether rows are inserted.
    pub fn has_rows(&self) -> bool {
        self.facts & fact::ROWS != 0
    }

    /// Whether records differ at the other wal_level.
    pub fn has_deltas(&self) -> bool {
        self.facts & fact::DELTAS != 0
    }

    /// Whether rows of a page were looked at before.
    pub fn looks_at(&self) -> bool {
        self.facts & fact::LOOKS_AT != 0
    }

    /// Whether transactions commit.
    pub fn has_commits(&self) -> bool {
        self.facts & fact::COMMITS != 0
    }

    /// Packed; its records have so many bytes.
    pub fn packed(&self, length: u32) -> [u8; RecordGroup::BYTES] {
        let mut packed = [0; RecordGroup::BYTES];
        let parts: [&[u8]; 7] = [
            &[self.count, self.facts],
            &self.new_pages.to_le_bytes(),
            &length.to_le_bytes(),
            &self.lsn.0.to_le_bytes(),
            &self.oldest.to_le_bytes(),
            &self.running.to_le_bytes(),
            &self.bytes.to_le_bytes(),
        ];
        let bytes = parts.iter().copied().flatten();
        packed.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        packed
    }

    /// The group with which packed bytes begin; `None` where there is none.
    pub fn unpack(bytes: &[u8], first: Ordinal) -> Option<RecordGroup> {
        let mut from = Cursor::new(bytes);
        let (count, facts) = (from.field()?, from.field()?);
        let (new_pages, length) = (from.field()?, from.field()?);
        let (lsn, oldest, running) = (Lsn(from.field()?), from.field()?, from.field()?);
        let bytes = from.field()?;
        Some(RecordGroup { first, count, lsn, oldest, bytes, new_pages, running, facts, length })
    }

    /// Bytes of one that is packed, with its records.
    pub fn packed_bytes(&self) -> usize {
        RecordGroup::BYTES + self.length as usize
    }
}
