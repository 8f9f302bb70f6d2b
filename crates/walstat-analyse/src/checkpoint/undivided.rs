//! Records that cannot be assigned to a checkpoint cycle yet: before 17 no record marks a redo point,
//! and only the next checkpoint's record says where among them it began.

use super::cycle_sums::CycleSums;
use crate::deferred_log::{BlockTouch, Chunk};
use hashbrown::HashSet;
use walstat_format::lsn::Lsn;

/// Bytes of memory; beyond that, chunks that hardly have a redo point in them are summed up.
const MEMORY_MAX: usize = 8 << 20;

/// A portion of the records.
#[derive(Debug, Clone)]
enum Portion {
    /// Can be divided at any record.
    Chunk(Chunk),
    /// From a record in `[from, to)` on; cannot be divided.
    Sums { from: Lsn, to: Lsn, sums: Box<CycleSums> },
}

/// Records that wait for the next checkpoint record.
#[derive(Debug, Clone, Default)]
pub(super) struct UndividedRecords {
    portions: Vec<Portion>,
    bytes: usize,
}

impl UndividedRecords {
    /// Adds a chunk.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes();
        self.portions.push(Portion::Chunk(chunk));
        if self.bytes > MEMORY_MAX {
            self.sum_up();
        }
    }

    /// Adds all records before `lsn` to `before` and the others to `after`. Returns whether that is exact:
    /// it is not where `lsn` lies among records that were summed up.
    pub(super) fn divide(
        &mut self,
        lsn: Lsn,
        before: &mut CycleSums,
        after: &mut CycleSums,
    ) -> bool {
        let mut is_exact = true;
        for portion in self.take() {
            match portion {
                Portion::Chunk(chunk) if chunk.end <= lsn => before.add_chunk(&chunk),
                Portion::Chunk(chunk) if chunk.start >= lsn => after.add_chunk(&chunk),
                Portion::Chunk(chunk) => {
                    let (first, second) = chunk.divide(lsn);
                    before.add_part(&first);
                    after.add_part(&second);
                }
                Portion::Sums { from, sums, .. } if from >= lsn => after.append(*sums),
                Portion::Sums { to, sums, .. } => {
                    is_exact &= to <= lsn;
                    before.append(*sums);
                }
            }
        }
        is_exact
    }

    /// Adds all records to `sums`.
    pub(super) fn drain_into(&mut self, sums: &mut CycleSums) {
        for portion in self.take() {
            match portion {
                Portion::Chunk(chunk) => sums.add_chunk(&chunk),
                Portion::Sums { sums: later, .. } => sums.append(*later),
            }
        }
    }

    fn take(&mut self) -> Vec<Portion> {
        self.bytes = 0;
        std::mem::take(&mut self.portions)
    }

    /// Sums up chunks that do not look as if a redo point lay in them. If all look alike, or those that do
    /// are still too many, the first ones.
    fn sum_up(&mut self) {
        let mut keeps = self.candidates();
        let candidates = keeps.iter().filter(|keeps| **keeps).count();
        // Without images, or with images everywhere, it cannot be told.
        if !(1..=keeps.len() / 2).contains(&candidates) {
            keeps.fill(true);
        }
        let mut room = MEMORY_MAX / 2;
        for (portion, keeps) in self.portions.iter().zip(&mut keeps).rev() {
            let Portion::Chunk(chunk) = portion else { continue };
            let is_last = room == MEMORY_MAX / 2;
            room = room.saturating_sub(if *keeps || is_last { chunk.bytes() } else { 0 });
            *keeps = is_last || (*keeps && room > 0);
        }
        for (portion, keeps) in self.take().into_iter().zip(keeps) {
            match portion {
                Portion::Chunk(chunk) if keeps => {
                    self.bytes += chunk.bytes();
                    self.portions.push(Portion::Chunk(chunk));
                }
                Portion::Chunk(chunk) => self.add_to_sums(&chunk),
                sums => self.portions.push(sums),
            }
        }
    }

    /// Which portions may hold a redo point: after one, pages that were touched shortly before
    /// are imaged again.
    fn candidates(&self) -> Vec<bool> {
        let mut previous = HashSet::new();
        let mut candidates = vec![false; self.portions.len()];
        for (index, portion) in self.portions.iter().enumerate() {
            let Portion::Chunk(chunk) = portion else {
                previous.clear();
                continue;
            };
            let block = |touch: &BlockTouch| (touch.file, touch.block);
            let imaged = chunk.touches().iter().filter(|touch| touch.has_image());
            let again = imaged.map(block).any(|block| previous.contains(&block));
            let from = index.saturating_sub(usize::from(again));
            if again || chunk.images_again() {
                candidates.get_mut(from..=index).unwrap_or_default().fill(true);
            }
            previous = chunk.touches().iter().map(block).collect();
        }
        candidates
    }

    fn add_to_sums(&mut self, chunk: &Chunk) {
        if !matches!(self.portions.last(), Some(Portion::Sums { .. })) {
            let sums = Box::default();
            self.portions.push(Portion::Sums { from: chunk.start, to: chunk.start, sums });
        }
        if let Some(Portion::Sums { to, sums, .. }) = self.portions.last_mut() {
            *to = chunk.end;
            sums.add_chunk(chunk);
        }
    }
}
