//! Where the packed chunks lie: in memory up to a limit, then in a file that whoever asks makes.

use super::pack::{pack, unpack};
use super::{AtOther, Chunk, Entry, Ref};
use crate::analyse::whatif::blocks::{FIRST, Ordinal};
use crate::wal::lsn::Lsn;
use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

/// So many records are packed together.
const CHUNK_RECORDS: usize = 2048;

/// A file, or what is like one.
pub trait FileLike: Read + Write + Seek + Send + Debug {}

impl<T: Read + Write + Seek + Send + Debug> FileLike for T {}

/// Makes a file for what does not fit into memory; it goes away when it is closed.
pub type NewFile = fn() -> io::Result<Box<dyn FileLike>>;

/// All records of a trace.
#[derive(Debug, Default)]
pub struct Store {
    count: u32,
    packed: Vec<Packed>,
    /// The newest records, which are not packed yet.
    open: Chunk,
    /// Bytes in memory, and how many may be.
    held: u64,
    limit: Option<(u64, NewFile)>,
    file: Option<Mutex<Box<dyn FileLike>>>,
    /// Why the file could not be read: what is made of the trace then is void.
    failure: OnceLock<io::Error>,
    /// Memory that is used again.
    bytes: Vec<u8>,
}

/// A chunk.
#[derive(Debug)]
struct Packed {
    first: Ordinal,
    count: usize,
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
    pub fn within(bytes: u64, new_file: NewFile) -> Store {
        Store { limit: Some((bytes, new_file)), ..Store::default() }
    }

    /// The ordinal of the next record.
    pub fn next_ordinal(&self) -> Ordinal {
        FIRST + self.count
    }

    /// Where the first record starts.
    pub fn first_lsn(&self) -> Option<Lsn> {
        let packed = self.packed.first().map(|packed| packed.lsn);
        packed.or_else(|| self.open.entries.first().map(|entry| entry.lsn))
    }

    /// Adds a record.
    pub fn push(&mut self, entry: Entry, refs: &[Ref], other: Option<AtOther>) {
        let ordinal = self.next_ordinal();
        if ordinal == Ordinal::MAX {
            let most =
                "4,294,967,293 records can be simulated at a time: choose a range with -s and -e";
            self.failure.get_or_init(|| io::Error::other(most));
            return;
        }
        if self.open.entries.is_empty() {
            self.open.first = ordinal;
        }
        self.count += 1;
        self.open.entries.push(entry);
        self.open.refs.extend_from_slice(refs);
        self.open.others.extend(other.map(|other| (ordinal, other)));
        if self.open.entries.len() >= CHUNK_RECORDS {
            self.close();
        }
    }

    /// Packs what is left.
    pub fn close(&mut self) {
        let Some(first) = self.open.entries.first() else { return };
        let lsn = first.lsn;
        self.bytes.clear();
        pack(&self.open, lsn, &mut self.bytes);
        let (first, count) = (self.open.first, self.open.entries.len());
        let bytes = self.keep();
        self.packed.push(Packed { first, count, lsn, bytes });
        self.open.clear(first + count as Ordinal);
    }

    /// Keeps the packed bytes: in memory where the file cannot be written, too.
    fn keep(&mut self) -> Bytes {
        let length = self.bytes.len();
        let filed = self.limit.filter(|(limit, _)| self.held + length as u64 > *limit);
        if let Some(at) = filed.and_then(|(_, new_file)| self.file_away(new_file).ok()) {
            return Bytes::Filed { at, length };
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

    /// Why the trace could not be read to its end.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.get()
    }

    /// The chunk with a record, or with the last one before it.
    pub fn chunk_of(&self, ordinal: Ordinal) -> usize {
        self.packed.partition_point(|packed| packed.first <= ordinal).saturating_sub(1)
    }

    /// Unpacks a chunk, marks apart; `bytes` is memory for it. `None` after the last one, and where it
    /// cannot be read.
    pub(super) fn unpack(
        &self,
        index: usize,
        chunk: &mut Chunk,
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        let packed = self.packed.get(index)?;
        let bytes = match packed.bytes {
            Bytes::Held(ref bytes) => bytes,
            Bytes::Filed { at, length } => {
                bytes.resize(length, 0);
                if let Err(error) = self.read_back(at, bytes) {
                    self.failure.get_or_init(|| error);
                    return None;
                }
                bytes.as_slice()
            }
        };
        chunk.clear(packed.first);
        unpack(bytes, (packed.lsn, packed.count), chunk);
        Some(())
    }

    fn read_back(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)
    }

    /// The ordinal of the first record at or after `lsn`.
    pub fn ordinal_at(&self, lsn: Lsn) -> Ordinal {
        let within = |chunk: &Chunk| {
            let before = chunk.entries.partition_point(|entry| entry.lsn < lsn);
            chunk.first + before as Ordinal
        };
        if self.open.entries.first().is_some_and(|first| first.lsn < lsn) {
            return within(&self.open);
        }
        let after = self.packed.partition_point(|packed| packed.lsn < lsn);
        let Some(index) = after.checked_sub(1) else { return FIRST };
        let mut chunk = Chunk::default();
        self.unpack(index, &mut chunk, &mut Vec::new()).map_or(FIRST, |()| within(&chunk))
    }
}
