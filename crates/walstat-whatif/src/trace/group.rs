//! A few records of the trace, one after the other, and what they come to where none of their pages
//! gets an image: a run that writes all of them so need not look at them.

use super::{PlainLength, RecordEffect, TracedRecord};
use crate::blocks::{FIRST, Ordinal};
use walstat_format::cursor::Cursor;
use walstat_format::lsn::Lsn;

/// So many records are one group: most groups hold no record that is special.
pub(crate) const GROUP_RECORDS: u8 = 32;

/// What holds for a group, as bits.
mod group_fact {
    pub(crate) const PLAIN: u8 = 0x01;
    pub(crate) const ROWS: u8 = 0x02;
    pub(crate) const DELTAS: u8 = 0x04;
    pub(crate) const LOOKS_AT: u8 = 0x08;
    pub(crate) const COMMITS: u8 = 0x10;
}

/// Up to 32 records that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordGroup {
    /// Ordinal of its first record.
    pub(crate) first: Ordinal,
    /// How many there are.
    pub(crate) count: u8,
    /// Where the first one starts.
    pub(crate) lsn: Lsn,
    /// The oldest stamp of their pages.
    pub(crate) oldest: Ordinal,
    /// Their lengths in the base, padded.
    pub(crate) bytes: u64,
    /// Pages that are made by them, and were never stamped before.
    pub(crate) new_pages: u16,
    /// What runs after the last commit among them.
    pub(crate) running: u32,
    facts: u8,
    /// Bytes of its packed records.
    length: u32,
}

impl RecordGroup {
    /// Bytes of one that is packed, but for its records.
    pub(crate) const BYTES: usize = 32;

    /// One without records yet.
    pub(crate) fn new(first: Ordinal, lsn: Lsn) -> RecordGroup {
        RecordGroup {
            first,
            count: 0,
            lsn,
            oldest: Ordinal::MAX,
            bytes: 0,
            new_pages: 0,
            running: 0,
            facts: group_fact::PLAIN,
            length: 0,
        }
    }

    /// Adds a record; `follows`: it begins where the one before ends.
    #[inline(always)]
    pub(crate) fn add(&mut self, traced: &TracedRecord<'_>, follows: bool) {
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
            self.facts &= !group_fact::PLAIN;
        }
        self.facts |= set(entry.rows > 0, group_fact::ROWS)
            | set(traced.has_delta(), group_fact::DELTAS)
            | set(plain.looks_at, group_fact::LOOKS_AT)
            | set(commit, group_fact::COMMITS);
        self.oldest = self.oldest.min(plain.oldest);
        self.bytes += plain.bytes;
        self.new_pages += u16::from(plain.new_pages);
        self.count += 1;
    }

    /// Ordinal after the last record.
    pub(crate) fn end(&self) -> Ordinal {
        self.first + Ordinal::from(self.count)
    }

    /// Whether each record is written as in the base, one after the other, where no page of it was stamped
    /// before the redo point.
    pub(crate) fn is_plain(&self) -> bool {
        self.facts & group_fact::PLAIN != 0 && self.oldest >= FIRST
    }

    /// Whether rows are inserted.
    pub(crate) fn has_rows(&self) -> bool {
        self.facts & group_fact::ROWS != 0
    }

    /// Whether records differ at the other wal_level.
    pub(crate) fn has_deltas(&self) -> bool {
        self.facts & group_fact::DELTAS != 0
    }

    /// Whether rows of a page were looked at before.
    pub(crate) fn looks_at(&self) -> bool {
        self.facts & group_fact::LOOKS_AT != 0
    }

    /// Whether transactions commit.
    pub(crate) fn has_commits(&self) -> bool {
        self.facts & group_fact::COMMITS != 0
    }

    /// Packed; its records have so many bytes.
    pub(crate) fn packed(&self, length: u32) -> [u8; RecordGroup::BYTES] {
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
    pub(crate) fn unpack(bytes: &[u8], first: Ordinal) -> Option<RecordGroup> {
        let mut from = Cursor::new(bytes);
        let (count, facts) = (from.field()?, from.field()?);
        let (new_pages, length) = (from.field()?, from.field()?);
        let (lsn, oldest, running) = (Lsn(from.field()?), from.field()?, from.field()?);
        let bytes = from.field()?;
        Some(RecordGroup { first, count, lsn, oldest, bytes, new_pages, running, facts, length })
    }

    /// Bytes of one that is packed, with its records.
    pub(crate) fn packed_bytes(&self) -> usize {
        RecordGroup::BYTES + self.length as usize
    }
}
