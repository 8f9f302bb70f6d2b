//! Where the packed chunks lie: in memory up to a limit, then in a file that whoever asks makes.

use super::group::{GROUP_RECORDS, RecordGroup};
use super::pack::{Before, pack, unpack};
use super::{Chunk, TracedRecord};
use crate::blocks::{FIRST, Ordinal};
use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use walstat_format::lsn::Lsn;

/// So many records a trace can have: there are no more ordinals.
pub(crate) const RECORDS_MAX: u32 = Ordinal::MAX - FIRST;

/// So many records are packed together.
const CHUNK_RECORDS: u32 = 2048;

/// A file, or what is like one.
pub(crate) trait FileLike: Read + Write + Seek + Send + Debug {}

impl<T: Read + Write + Seek + Send + Debug> FileLike for T {}

/// Makes a file for what does not fit into memory; it goes away when it is closed.
pub(crate) type NewFile = fn() -> io::Result<Box<dyn FileLike>>;

/// All records of a trace.
#[derive(Debug, Default)]
pub(crate) struct Store {
    count: u32,
    /// Whether there were more.
    is_full: bool,
    packed: Vec<Packed>,
    /// The chunk with the newest records, which is not full yet; its bytes are in `bytes`.
    open: Option<Open>,
    /// Bytes in memory, and how many may be.
    held: u64,
    limit: Option<(u64, NewFile)>,
    file: Option<Mutex<Box<dyn FileLike>>>,
    /// Why no file could be written: all is in memory then.
    unfiled: Option<io::Error>,
    /// Why the file could not be read: what is made of the trace then is void.
    failure: OnceLock<io::Error>,
    /// The open chunk, packed.
    bytes: Vec<u8>,
}

/// A chunk to which records are added.
#[derive(Debug)]
struct Open {
    first: Ordinal,
    lsn: Lsn,
    group: RecordGroup,
    /// Where its bytes begin.
    at: usize,
    before: Before,
}

impl Open {
    /// Begins a chunk.
    #[inline(never)]
    fn begin(bytes: &mut Vec<u8>, first: Ordinal, lsn: Lsn) -> Open {
        bytes.clear();
        let (group, at, before) = Open::begin_group(bytes, first, lsn);
        Open { first, lsn, group, at, before }
    }

    /// Ends the group, and begins the next one.
    #[inline(never)]
    fn begin_next_group(&mut self, bytes: &mut Vec<u8>, first: Ordinal, lsn: Lsn) {
        self.end_group(bytes);
        (self.group, self.at, self.before) = Open::begin_group(bytes, first, lsn);
    }

    /// Writes the group's header before its records.
    fn end_group(&self, bytes: &mut [u8]) {
        let own = bytes.get_mut(self.at..).unwrap_or_default();
        let length = own.len().saturating_sub(RecordGroup::BYTES);
        if let Some(head) = own.first_chunk_mut() {
            *head = self.group.packed(u32::try_from(length).unwrap_or(u32::MAX));
        }
    }

    /// Begins one at the end of the bytes.
    fn begin_group(bytes: &mut Vec<u8>, first: Ordinal, lsn: Lsn) -> (RecordGroup, usize, Before) {
        let at = bytes.len();
        bytes.extend([0; RecordGroup::BYTES]);
        (RecordGroup::new(first, lsn), at, Before::new(lsn))
    }
}

/// A chunk.
#[derive(Debug)]
struct Packed {
    first: Ordinal,
    lsn: Lsn,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Held(Box<[u8]>),
    Filed { at: u64, length: usize },
}

impl Store {
    /// Keeps so many bytes in memory, and what is more in a file.
    pub(crate) fn within(bytes: u64, new_file: NewFile) -> Store {
        Store { limit: Some((bytes, new_file)), ..Store::default() }
    }

    /// The ordinal of the next record.
    pub(crate) fn next_ordinal(&self) -> Ordinal {
        FIRST + self.count
    }

    /// Where the first record starts.
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        let packed = self.packed.first().map(|packed| packed.lsn);
        packed.or_else(|| self.open.as_ref().map(|open| open.lsn))
    }

    /// Bytes that are kept in memory, and how many records they are of.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (u64, u32) {
        (self.held, self.count)
    }

    /// Adds a record; `follows`: it begins where the one before ends. A part of its caller, which may know
    /// that the record is of the usual form.
    #[inline(always)]
    pub(crate) fn push(&mut self, traced: &TracedRecord<'_>, follows: bool) {
        if self.count == RECORDS_MAX {
            return self.refuse();
        }
        let ordinal = self.next_ordinal();
        self.count += 1;
        let Store { open, bytes, .. } = self;
        let open = match open {
            Some(open) => open,
            None => open.insert(Open::begin(bytes, ordinal, traced.entry.lsn)),
        };
        if open.group.count == GROUP_RECORDS {
            open.begin_next_group(bytes, ordinal, traced.entry.lsn);
        }
        open.group.add(traced, follows);
        pack(bytes, &mut open.before, traced);
        if ordinal + 1 - open.first >= CHUNK_RECORDS {
            self.close();
        }
    }

    #[cold]
    fn refuse(&mut self) {
        self.is_full = true;
    }

    /// Whether there were more records than [`RECORDS_MAX`].
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Ends the open chunk.
    pub(crate) fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        open.end_group(&mut self.bytes);
        let bytes = self.keep();
        self.packed.push(Packed { first: open.first, lsn: open.lsn, bytes });
    }

    /// Keeps the packed bytes: in memory where the file cannot be written, too.
    fn keep(&mut self) -> Bytes {
        let length = self.bytes.len();
        let limit = self.limit.filter(|(limit, _)| self.held + length as u64 > *limit);
        match limit.filter(|_| self.unfiled.is_none()).map(|(_, new_file)| self.file_away(new_file))
        {
            Some(Ok(at)) => return Bytes::Filed { at, length },
            Some(Err(error)) => self.unfiled = Some(error),
            None => {}
        }
        self.held += length as u64;
        Bytes::Held(self.bytes.as_slice().into())
    }

    fn file_away(&mut self, new_file: NewFile) -> io::Result<u64> {
        if self.file.is_none() {
            self.file = Some(Mutex::new(new_file()?));
        }
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let file = file.get_mut().unwrap_or_else(PoisonError::into_inner);
        let at = file.seek(SeekFrom::End(0))?;
        file.write_all(&self.bytes)?;
        Ok(at)
    }

    /// Why what is beyond the limit could not be put into a file.
    pub(crate) fn unfiled(&self) -> Option<&io::Error> {
        self.unfiled.as_ref()
    }

    /// Why the trace could not be read to its end.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.get()
    }

    /// The chunk with a record, or with the last one before it.
    pub(crate) fn chunk_of(&self, ordinal: Ordinal) -> usize {
        self.packed.partition_point(|packed| packed.first <= ordinal).saturating_sub(1)
    }

    /// The first ordinal of a chunk and its packed bytes: `None` where `room` has them. Nothing after the
    /// last one, and where they cannot be read.
    pub(super) fn load(
        &self,
        index: usize,
        room: &mut Vec<u8>,
    ) -> Option<(Ordinal, Option<&[u8]>)> {
        let packed = self.packed.get(index)?;
        match packed.bytes {
            Bytes::Held(ref bytes) => Some((packed.first, Some(bytes))),
            Bytes::Filed { at, length } => {
                room.resize(length, 0);
                if let Err(error) = self.read_back(at, room) {
                    self.failure.get_or_init(|| error);
                    return None;
                }
                Some((packed.first, None))
            }
        }
    }

    fn read_back(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)
    }

    /// The ordinal of the first record at or after `lsn`.
    pub(crate) fn ordinal_at(&self, lsn: Lsn) -> Ordinal {
        let within = |bytes: &[u8], first: Ordinal| {
            let mut chunk = Chunk { first, ..Chunk::default() };
            unpack_all(bytes, &mut chunk);
            first + chunk.entries.partition_point(|entry| entry.lsn < lsn) as Ordinal
        };
        if let Some(open) = self.open.as_ref().filter(|open| open.lsn < lsn) {
            let mut bytes = self.bytes.clone();
            open.end_group(&mut bytes);
            return within(&bytes, open.first);
        }
        let after = self.packed.partition_point(|packed| packed.lsn < lsn);
        let Some(index) = after.checked_sub(1) else { return FIRST };
        let mut room = Vec::new();
        let Some((first, bytes)) = self.load(index, &mut room) else { return FIRST };
        within(bytes.unwrap_or(&room), first)
    }
}

/// Unpacks all groups of a chunk, without their effects.
fn unpack_all(bytes: &[u8], chunk: &mut Chunk) {
    let (mut rest, mut first) = (bytes, chunk.first);
    while let Some(group) = RecordGroup::unpack(rest, first) {
        unpack_group(&group, rest, chunk);
        first = group.end();
        rest = rest.get(group.packed_bytes()..).unwrap_or_default();
    }
}

/// Unpacks the group with which `bytes` begin, without their effects.
pub(super) fn unpack_group(group: &RecordGroup, bytes: &[u8], chunk: &mut Chunk) {
    let records = bytes.get(RecordGroup::BYTES..).unwrap_or_default();
    unpack(records, Before::new(group.lsn), group.first, group.count.into(), chunk);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{Kind, Made, base};

    #[test]
    fn one_record_more_than_there_are_ordinals_is_noticed() {
        let (made, _) = base(&[Made::new(Kind::Commit, 0); 2]);
        let mut store = Store { count: RECORDS_MAX - 1, ..Store::default() };
        made.read().for_each(|traced| {
            assert!(!store.is_full());
            store.push(&traced, true);
        });
        assert_eq!((store.is_full(), store.next_ordinal()), (true, Ordinal::MAX));
    }
}
