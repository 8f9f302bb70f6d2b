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
    state: State,
}

/// How far reading it has come.
#[derive(Debug)]
enum State {
    /// Nothing is under way. The next piece goes on with this.
    Idle(Rest),
    /// The piece that begins at this byte is.
    UnderWay { at: u64, task: Task<Piece> },
    /// The piece that begins at this byte could not be had, and why. What came behind it would not be what is
    /// asked for.
    Failed { at: u64, text: String },
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

/// What came next, and what comes after it; or in one line why nothing does.
type Piece = Result<(Vec<Bytes>, Rest), String>;

impl Whole {
    /// Of an object, from a byte on.
    pub(crate) fn new(object: Arc<Object>, at: u64) -> Whole {
        Whole { object, state: State::Idle(Rest { at, ..Rest::default() }) }
    }

    /// Where the piece begins that [`Whole::next`] gives.
    pub(crate) fn at(&self) -> u64 {
        match &self.state {
            State::Idle(rest) => rest.at,
            State::UnderWay { at, .. } | State::Failed { at, .. } => *at,
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.state, State::UnderWay { .. })
    }

    /// Begins to read the next piece, unless one is under way. What goes wrong is told by [`Whole::next`].
    pub(crate) fn ahead(&mut self) {
        let State::Idle(rest) = &mut self.state else { return };
        let at = rest.at;
        if at < self.object.listed.bytes {
            let task = spawn(piece(Arc::clone(&self.object), std::mem::take(rest)));
            self.state = match task {
                Ok(task) => State::UnderWay { at, task },
                Err(error) => State::Failed { at, text: error.to_string() },
            };
        }
    }

    /// The next piece; none at the end of the object. Of one that could not be had it is said each time.
    pub(crate) fn next(&mut self) -> io::Result<Vec<Bytes>> {
        self.ahead();
        let (at, piece) = match &self.state {
            State::Idle(_) => return Ok(Vec::new()),
            State::UnderWay { at, task } => (*at, task.wait().map_err(|error| error.to_string())),
            State::Failed { text, .. } => return Err(io::Error::other(text.clone())),
        };
        match piece.flatten() {
            Ok((chunks, rest)) => {
                self.state = State::Idle(rest);
                Ok(chunks)
            }
            Err(text) => {
                self.state = State::Failed { at, text: text.clone() };
                Err(io::Error::other(text))
            }
        }
    }
}

/// Reads a piece, tried again from where the last try came to.
async fn piece(object: Arc<Object>, mut rest: Rest) -> Piece {
    let end = rest.at.saturating_add(PIECE_BYTES).min(object.listed.bytes);
    let mut chunks = Vec::new();
    let mut trying = Trying::begin(&object);
    loop {
        let Err(reason) = trying.ask(rest.read_to(end, &object, &mut chunks)).await else {
            return Ok((chunks, rest));
        };
        rest.answer = None;
        trying.pause_after(reason).await?;
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

    #[test]
    fn a_piece_that_could_not_be_had_is_told_at_each_later_read() {
        let rest = Rest { answer: None, came: 0, at: 30 };
        let pieces = [Ok((vec![Bytes::from_static(&[7; 30])], rest)), Err("slow down".to_owned())];
        let mut whole = Whole::new(Arc::new(object(50)), 0);
        for (at, piece) in [0, 30].into_iter().zip(pieces) {
            let task = spawn(async { piece }).expect("a thread");
            whole.state = State::UnderWay { at, task };
            let came = whole.next().map(|chunks| chunks.len()).map_err(|error| error.to_string());
            let want = if at == 0 { Ok(1) } else { Err("slow down".to_owned()) };
            assert_eq!((came, whole.at()), (want, 30));
        }
        whole.ahead();
        assert!(!whole.is_under_way());
        assert_eq!(whole.next().expect_err("nothing").to_string(), "slow down");
    }
}
