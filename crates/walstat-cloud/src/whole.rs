//! An object of a store that gives no parts of it: all of it comes, from its first byte on, whatever is asked
//! for. So it is asked for once, and read on as it comes; what is before the wanted bytes is let go at once.

use crate::fetch::{Answer, Object, Trying};
use crate::reason::Reason;
use crate::runtime::{Task, spawn};
use bytes::{Buf, Bytes};
use std::fmt;
use std::io;
use std::sync::Arc;

/// So much is read ahead of who reads it.
const PIECE_BYTES: u64 = 4 << 20;

/// Such an object, being read.
#[derive(Debug)]
pub(crate) struct Whole {
    object: Arc<Object>,
    under_way: Option<Task<Piece>>,
    /// What the next piece goes on with, and where.
    rest: Rest,
}

/// An answer that was read in part.
#[derive(Default)]
struct Rest {
    answer: Option<Answer>,
    /// So much of the object came of it.
    came: u64,
    /// From here on the object is wanted.
    at: u64,
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest")
            .field("came", &self.came)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// What came next, and what comes after it.
#[derive(Debug)]
struct Piece {
    chunks: Result<Vec<Bytes>, String>,
    rest: Rest,
}

impl Whole {
    /// Of an object, from a byte on.
    pub(crate) fn new(object: Arc<Object>, at: u64) -> Whole {
        Whole { object, under_way: None, rest: Rest { at, ..Rest::default() } }
    }

    /// Where the next piece begins that is not asked for yet.
    pub(crate) fn at(&self) -> u64 {
        self.rest.at
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Begins to read the next piece, unless one is under way.
    pub(crate) fn ahead(&mut self) -> io::Result<()> {
        if self.under_way.is_none() && self.rest.at < self.object.listed.bytes {
            let rest = std::mem::take(&mut self.rest);
            self.rest.at = rest.at;
            self.under_way = Some(spawn(piece(Arc::clone(&self.object), rest))?);
        }
        Ok(())
    }

    /// The next piece; none at the end of the object.
    pub(crate) fn next(&mut self) -> io::Result<Vec<Bytes>> {
        self.ahead()?;
        let Some(task) = self.under_way.take() else { return Ok(Vec::new()) };
        let piece = task.wait()?;
        self.rest = piece.rest;
        piece.chunks.map_err(io::Error::other)
    }
}

/// Reads a piece, tried again from where the last try came to.
async fn piece(object: Arc<Object>, mut rest: Rest) -> Piece {
    let end = rest.at.saturating_add(PIECE_BYTES).min(object.listed.bytes);
    let mut chunks = Vec::new();
    let mut trying = Trying::begin(&object);
    loop {
        let Err(reason) = trying.ask(rest.read_to(end, &object, &mut chunks)).await else {
            return Piece { chunks: Ok(chunks), rest };
        };
        rest.answer = None;
        if let Err(text) = trying.pause_after(reason).await {
            return Piece { chunks: Err(text), rest };
        }
    }
}

impl Rest {
    /// Reads on at least to `end`.
    async fn read_to(
        &mut self,
        end: u64,
        object: &Object,
        chunks: &mut Vec<Bytes>,
    ) -> Result<(), Reason> {
        if self.answer.is_none() {
            self.came = 0;
        }
        let answer = match &mut self.answer {
            Some(answer) => answer,
            none => none.insert(object.answer(None).await?),
        };
        while self.at < end {
            let Some(mut chunk) = object.next_chunk(answer).await? else {
                let (came, expected) = (self.came, object.listed.bytes);
                return Err(Reason::broken(format!("{came} bytes came, expected {expected}")));
            };
            let before =
                usize::try_from(self.at - self.came).unwrap_or(usize::MAX).min(chunk.len());
            self.came += chunk.len() as u64;
            chunk.advance(before);
            self.at = self.at.max(self.came);
            // A chunk without bytes in it keeps the memory of those that it had.
            if chunk.has_remaining() {
                chunks.push(chunk);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::tests::{answer, object, wait};

    #[test]
    fn nothing_is_held_of_what_is_before_the_wanted_bytes() {
        let object = object(50);
        let mut rest = Rest { answer: Some(answer(&[10, 10, 10, 10, 10])), came: 0, at: 25 };
        let mut chunks = Vec::new();
        wait(rest.read_to(31, &object, &mut chunks)).expect("chunks");
        assert_eq!(chunks.iter().map(Bytes::len).collect::<Vec<_>>(), [5, 10]);
        // It is read on in the same answer, up to its end and no further.
        wait(rest.read_to(50, &object, &mut chunks)).expect("chunks");
        assert_eq!(chunks.iter().map(Bytes::len).sum::<usize>(), 25);
        let failed = wait(rest.read_to(51, &object, &mut chunks)).expect_err("the end");
        assert_eq!(failed.text, "50 bytes came, expected 50");
    }
}
