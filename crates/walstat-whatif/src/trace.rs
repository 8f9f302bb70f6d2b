//! What the simulator keeps of the WAL: for each record its length without images and block data,
//! for each block reference what either would cost and when the block was stamped before.
//!
//! None of it depends on a setting. So any number of settings is simulated by reading the trace,
//! without a look at the WAL. It is read from front to back, so it is kept in packed chunks, beyond a limit
//! in a file; `docs/whatif.md` says how many bytes a record takes.

mod chunk;
mod entry;
mod group;
mod pack;
mod plain_length;
mod reader;
mod store;

pub(crate) use chunk::{Chunk, TracedRecord};
pub(crate) use entry::{Entry, RecordDelta, RecordEffect, TracedBlock, WalLevelDelta, entry_fact};
pub(crate) use group::RecordGroup;
pub(crate) use plain_length::PlainLength;
pub(crate) use reader::{Reader, TraceCursor};
pub(crate) use store::{NewFile, RECORDS_MAX, Store};

use super::blocks::{BEFORE, FIRST, ForkNumber, NEVER, Ordinal};
use super::images_seen::ImagesSeen;
use hashbrown::HashMap;
use walstat_format::image::Compression;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// A commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Its record.
    pub(crate) ordinal: Ordinal,
    /// Transactions and subtransactions that have an xid then and have not ended.
    pub(crate) running: u32,
    /// When.
    pub(crate) time: Time,
}

/// What is known of the WAL, in its order.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The records.
    pub(crate) records: Store,
    /// What records mean beyond their blocks, commits apart.
    pub(crate) effects: Vec<(Ordinal, RecordEffect)>,
    /// The commits.
    pub(crate) commits: Vec<Commit>,
    /// Records that prune a page, and how long an image of the page is before that, bytes.
    pub(crate) unpruned: Vec<(Ordinal, u16)>,
    /// The sequences.
    pub(crate) sequences: Vec<Sequence>,
    /// The sequence that gives a table's rows a value each: its place in `sequences`.
    pub(crate) feeds: HashMap<ForkNumber, u32>,
    /// Whether wal_level is logical: something is there that only logical decoding wants.
    pub(crate) is_logical: bool,
    /// Whether an image is there that only changes of hint bits bring.
    pub(crate) logs_hints: bool,
    /// Whether images are there for checking only.
    pub(crate) checks_consistency: bool,
    /// How the newest compressed image is compressed.
    pub(crate) compression: Option<Compression>,
    /// How all of them are.
    pub(crate) images_seen: ImagesSeen,
    /// `BLCKSZ`.
    pub(crate) page_bytes: usize,
    /// Pages that were given up for want of memory.
    pub(crate) given_up: u64,
    /// The first and the last record of a transaction during which another one committed: a range between
    /// the two need not have one.
    pub(crate) side_by_side: Option<(Ordinal, Ordinal)>,
    /// The same of transactions during which somebody else vacuumed.
    pub(crate) beside_vacuum: Option<(Ordinal, Ordinal)>,
    /// Whether a resource manager of an extension has records.
    pub(crate) has_custom_rmgrs: bool,
}

/// A sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Its fork.
    pub(crate) fork: ForkNumber,
    /// Bytes of a record that logs its values.
    pub(crate) bytes: u32,
    /// The table whose rows get its values, where that is known.
    pub(crate) table: Option<ForkNumber>,
    /// How many values a record of it covers, where no table is known and each of its records is there for
    /// the redo point before it, or because the values of the one before were used up.
    pub(crate) period: Option<u32>,
}

impl Trace {
    /// Adds the next record, whose ordinal is that of [`Store::next_ordinal`]; `follows`: it begins where the
    /// one before ends.
    pub(crate) fn push(&mut self, traced: &TracedRecord<'_>, follows: bool) {
        let ordinal = traced.ordinal;
        match traced.effect {
            Some(RecordEffect::Commit { time, running }) => {
                self.commits.push(Commit { ordinal, running, time });
            }
            Some(effect) => self.effects.push((ordinal, effect)),
            None => {}
        }
        let refs = traced.refs;
        let facts = refs.iter().fold(0, |facts, reference| facts | reference.facts);
        self.checks_consistency |= facts & entry_fact::CHECK_IMAGE != 0;
        self.logs_hints |= facts & entry_fact::WITH_HINTS != 0
            && refs
                .iter()
                .any(|reference| reference.is(entry_fact::WITH_HINTS | entry_fact::BASE_IMAGE));
        self.records.push(traced, follows);
    }

    /// The records from the one with this ordinal on, or from some before it.
    pub(crate) fn read_from(&self, ordinal: Ordinal) -> Reader<'_> {
        Reader::new(self, ordinal)
    }

    /// All records.
    pub(crate) fn read(&self) -> Reader<'_> {
        self.read_from(FIRST)
    }

    /// A record.
    pub(crate) fn entry_of(&self, ordinal: Ordinal) -> Option<Entry> {
        let mut reader = self.read_from(ordinal);
        let mut group = reader.group()?;
        while group.end() <= ordinal {
            reader.pass(&group);
            group = reader.group()?;
        }
        let index = ordinal.checked_sub(group.first)?;
        reader.records(&group).entries.get(index as usize).copied()
    }

    /// The ordinal of the first record at or after `lsn`.
    pub(crate) fn ordinal_at(&self, lsn: Lsn) -> Ordinal {
        self.records.ordinal_at(lsn)
    }

    /// The ordinal of the first record after a redo point; `BEFORE` if that lies before them all.
    pub(crate) fn redo_at(&self, redo: Lsn) -> Ordinal {
        match self.records.first_lsn() {
            Some(first) if first <= redo => self.ordinal_at(redo),
            _ => BEFORE,
        }
    }

    /// The ordinal of the last record before `lsn`.
    pub(crate) fn last_before(&self, lsn: Lsn) -> Ordinal {
        match self.ordinal_at(lsn) {
            FIRST => NEVER,
            ordinal => ordinal - 1,
        }
    }

    /// How long an image is of the page that a record prunes, before it is pruned; bytes.
    pub(crate) fn unpruned_bytes(&self, ordinal: Ordinal) -> Option<u16> {
        let place = self.unpruned.binary_search_by_key(&ordinal, |(pruned, _)| *pruned).ok()?;
        self.unpruned.get(place).map(|(_, bytes)| *bytes)
    }

    /// The first commit from a record on.
    pub(crate) fn commit_from(&self, ordinal: Ordinal) -> Option<&Commit> {
        self.commits.get(self.commits.partition_point(|commit| commit.ordinal < ordinal))
    }

    /// The last commit before a record.
    pub(crate) fn commit_before(&self, ordinal: Ordinal) -> Option<&Commit> {
        let after = self.commits.partition_point(|commit| commit.ordinal < ordinal);
        self.commits.get(after.checked_sub(1)?)
    }
}
