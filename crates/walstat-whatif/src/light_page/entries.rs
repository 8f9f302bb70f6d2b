//! Entries of a B-tree's page, by their lengths and the places that they lead to.

use super::{OFFSET, Places, Pointers, Shape, normal, refill};
use walstat_format::cursor::at;
use walstat_format::data_page::btree_page::PLACE_BYTES;
use walstat_format::data_page::index_tuple::{AM_RESERVED, HEADER_BYTES, INFO_AT};

/// The entries of a page, in order, and its place in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Entries {
    place: [u8; PLACE_BYTES],
    runs: Vec<EntryRun>,
    /// What is kept of the entries, one after the other.
    kept: Vec<u8>,
}

/// Bytes of an entry that say where it leads (`ItemPointerData`); two others end its header.
const LEADS_BYTES: usize = INFO_AT;

/// So many bytes more are taken where what is kept has to grow: an entry seldom comes alone.
const SPARE_BYTES: usize = 16 * LEADS_BYTES;

/// Entries that follow each other and have line pointer and flags in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryRun {
    /// The line pointer, without the offset if there is an entry.
    pointer: u32,
    /// `t_info`.
    info: u16,
    count: u16,
}

impl EntryRun {
    #[inline(always)]
    fn is_like(&self, other: &EntryRun) -> bool {
        (self.pointer, self.info) == (other.pointer, other.info)
    }

    /// Bytes that are kept of each.
    fn kept_bytes(&self) -> usize {
        let shape = Shape::of(self.pointer);
        match (shape.has_storage, is_whole(self.info)) {
            (false, _) => 0,
            (true, true) => shape.bytes,
            (true, false) => LEADS_BYTES,
        }
    }
}

/// Whether all of an entry is kept: a posting list, or one that leads to another page.
fn is_whole(info: u16) -> bool {
    info & AM_RESERVED != 0
}

impl Entries {
    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<EntryRun>() + self.kept.capacity()
    }

    /// The page's special space.
    pub(super) fn place(&self) -> &[u8; PLACE_BYTES] {
        &self.place
    }

    /// Takes over the entries of a page.
    pub(super) fn read(&mut self, page: &Pointers<'_>, own: &[u8]) -> Option<()> {
        self.place = *own.first_chunk()?;
        self.runs.clear();
        self.kept.clear();
        let (mut shape, mut stored) = (Shape::default(), 0);
        for pointer in page.pointers {
            let pointer = u32::from_le_bytes(*pointer);
            if pointer & !OFFSET != shape.pointer {
                shape = Shape::of(pointer);
            }
            stored += shape.room;
            if !shape.has_storage {
                self.push(EntryRun { pointer, info: 0, count: 1 });
                continue;
            }
            let entry = page.item(pointer, &shape)?;
            let header: &[u8; HEADER_BYTES] = entry.first_chunk()?;
            let info = at(header, INFO_AT)?;
            self.push(EntryRun { pointer: shape.pointer, info, count: 1 });
            if is_whole(info) {
                self.kept.extend_from_slice(entry);
            } else {
                self.kept.extend_from_slice(header.first_chunk::<LEADS_BYTES>()?);
            }
        }
        page.have_room(stored)
    }

    /// Puts the entries into a page that is made anew.
    pub(super) fn write(&self, mut places: Places<'_>) -> Option<()> {
        let mut kept = self.kept.as_slice();
        for run in &self.runs {
            let shape = Shape::of(run.pointer);
            for _ in 0..run.count {
                if !shape.has_storage {
                    places.set(run.pointer)?;
                    continue;
                }
                let (own, rest) = kept.split_at_checked(run.kept_bytes())?;
                kept = rest;
                let entry = places.next(&shape)?;
                entry.get_mut(..own.len())?.copy_from_slice(own);
                entry.get_mut(INFO_AT..HEADER_BYTES)?.copy_from_slice(&run.info.to_le_bytes());
            }
        }
        Some(())
    }

    pub(super) fn become_like(&mut self, other: &Entries) {
        self.place = other.place;
        refill(&mut self.runs, &other.runs);
        refill(&mut self.kept, &other.kept);
    }

    #[inline(always)]
    fn push(&mut self, run: EntryRun) {
        match self.runs.last_mut() {
            Some(last) if last.is_like(&run) => last.count += 1,
            _ => self.runs.push(run),
        }
    }

    /// Puts an entry in behind so many others.
    pub(super) fn insert(&mut self, behind: usize, entry: &[u8]) -> Option<()> {
        let info = at(entry, INFO_AT)?;
        let run = EntryRun { pointer: normal(entry.len())?, info, count: 1 };
        let (index, before, place) = self.find(behind);
        let own = entry.get(..run.kept_bytes())?;
        self.insert_run(index, before, run);
        let after = place..self.kept.len();
        if self.kept.capacity() - self.kept.len() < own.len() {
            self.kept.reserve_exact(own.len() + SPARE_BYTES);
        }
        self.kept.extend_from_slice(own);
        self.kept.copy_within(after, place + own.len());
        self.kept.get_mut(place..)?.get_mut(..own.len())?.copy_from_slice(own);
        Some(())
    }

    /// The run behind so many entries, how many of its own are among them, and where what is kept of the next
    /// one lies.
    fn find(&self, behind: usize) -> (usize, usize, usize) {
        let (mut before, mut place) = (behind, 0);
        for (index, run) in self.runs.iter().enumerate() {
            let count = usize::from(run.count);
            if before < count {
                return (index, before, place + before * run.kept_bytes());
            }
            before -= count;
            place += count * run.kept_bytes();
        }
        (self.runs.len(), 0, place)
    }

    fn insert_run(&mut self, index: usize, before: usize, run: EntryRun) {
        let left = index.checked_sub(usize::from(before == 0));
        if let Some(own) = self.runs.get_mut(index).filter(|own| own.is_like(&run)) {
            own.count += 1;
        } else if let Some(own) = left.and_then(|left| self.runs.get_mut(left))
            && own.is_like(&run)
        {
            own.count += 1;
        } else if before == 0 {
            self.runs.insert(index, run);
        } else if let Some(own) = self.runs.get_mut(index) {
            let rest = EntryRun { count: own.count - before as u16, ..*own };
            own.count = before as u16;
            self.runs.splice(index + 1..=index, [run, rest]);
        }
    }
}
