//! Records after the last checkpoint record, where no record marks redo points: the next checkpoint
//! record will say where among them it began.

use super::piece::Piece;
use crate::analyse::tape::{Chunk, Touch};
use crate::wal::lsn::Lsn;
use hashbrown::HashSet;

/// So much memory is taken; then what hardly holds a redo point is summed up.
const BYTES: usize = 8 << 20;

/// A stretch of WAL.
#[derive(Debug, Clone)]
enum Stretch {
    /// Can be divided at any record.
    Chunk(Chunk),
    /// From a record in `[from, to)` on; cannot be divided.
    Piece { from: Lsn, to: Lsn, piece: Box<Piece> },
}

/// Records that wait for the next checkpoint record.
#[derive(Debug, Clone, Default)]
pub struct Held {
    stretches: Vec<Stretch>,
    bytes: usize,
}

impl Held {
    /// Adds a chunk.
    pub fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes();
        self.stretches.push(Stretch::Chunk(chunk));
        if self.bytes > BYTES {
            self.sum_up();
        }
    }

    /// Hands all records before `lsn` to one piece and the others to another one. Whether every
    /// record came to its own: else the place lies among records that were summed up.
    pub fn divide(&mut self, lsn: Lsn, before: &mut Piece, after: &mut Piece) -> bool {
        let mut is_exact = true;
        for stretch in self.take() {
            match stretch {
                Stretch::Chunk(chunk) if chunk.end <= lsn => before.add_chunk(&chunk),
                Stretch::Chunk(chunk) if chunk.start >= lsn => after.add_chunk(&chunk),
                Stretch::Chunk(chunk) => {
                    let (first, second) = chunk.divide(lsn);
                    before.add_part(&first);
                    after.add_part(&second);
                }
                Stretch::Piece { from, piece, .. } if from >= lsn => after.append(*piece),
                Stretch::Piece { to, piece, .. } => {
                    is_exact &= to <= lsn;
                    before.append(*piece);
                }
            }
        }
        is_exact
    }

    /// Hands all records to one piece.
    pub fn drain_into(&mut self, piece: &mut Piece) {
        for stretch in self.take() {
            match stretch {
                Stretch::Chunk(chunk) => piece.add_chunk(&chunk),
                Stretch::Piece { piece: later, .. } => piece.append(*later),
            }
        }
    }

    fn take(&mut self) -> Vec<Stretch> {
        self.bytes = 0;
        std::mem::take(&mut self.stretches)
    }

    /// Sums up chunks that do not look like holding a redo point. If all look alike, or those that do
    /// are still too many, the first ones.
    fn sum_up(&mut self) {
        let mut keeps = self.candidates();
        let candidates = keeps.iter().filter(|keeps| **keeps).count();
        // Without images, or with images everywhere, it cannot be told.
        if !(1..=keeps.len() / 2).contains(&candidates) {
            keeps.fill(true);
        }
        let mut room = BYTES / 2;
        for (stretch, keeps) in self.stretches.iter().zip(&mut keeps).rev() {
            let Stretch::Chunk(chunk) = stretch else { continue };
            let is_last = room == BYTES / 2;
            room = room.saturating_sub(if *keeps || is_last { chunk.bytes() } else { 0 });
            *keeps = is_last || (*keeps && room > 0);
        }
        for (stretch, keeps) in self.take().into_iter().zip(keeps) {
            match stretch {
                Stretch::Chunk(chunk) if keeps => {
                    self.bytes += chunk.bytes();
                    self.stretches.push(Stretch::Chunk(chunk));
                }
                Stretch::Chunk(chunk) => self.add_to_piece(&chunk),
                piece => self.stretches.push(piece),
            }
        }
    }

    /// Which stretches may hold a redo point: after one, pages that were touched shortly before
    /// are imaged again.
    fn candidates(&self) -> Vec<bool> {
        let mut previous = HashSet::new();
        let mut candidates = vec![false; self.stretches.len()];
        for (index, stretch) in self.stretches.iter().enumerate() {
            let Stretch::Chunk(chunk) = stretch else {
                previous.clear();
                continue;
            };
            let block = |touch: &Touch| (touch.file, touch.block);
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

    fn add_to_piece(&mut self, chunk: &Chunk) {
        if !matches!(self.stretches.last(), Some(Stretch::Piece { .. })) {
            let piece = Box::default();
            self.stretches.push(Stretch::Piece { from: chunk.start, to: chunk.start, piece });
        }
        if let Some(Stretch::Piece { to, piece, .. }) = self.stretches.last_mut() {
            *to = chunk.end;
            piece.add_chunk(chunk);
        }
    }
}
