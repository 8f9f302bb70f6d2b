//! What all decoders share: failures that stay failures, and the loop that
//! drives a codec which works from one slice into another ([`Engine`]).
#![forbid(unsafe_code)]

use std::io::{self, BufRead, ErrorKind, Read};

/// Why a stream can't be read on. Kept, so that every later read says it again.
pub(super) struct StreamFault {
    kind: ErrorKind,
    text: String,
}

pub(super) type Decoded<T> = Result<T, StreamFault>;

impl StreamFault {
    /// The stream breaks the rules of its codec.
    pub(super) fn bad(text: &str) -> Self {
        StreamFault { kind: ErrorKind::InvalidData, text: text.to_owned() }
    }

    /// The input ends before the stream does.
    pub(super) fn cut_off(codec: &str) -> Self {
        StreamFault {
            kind: ErrorKind::UnexpectedEof,
            text: format!("{codec}: the input ends in the middle of the stream"),
        }
    }

    /// The system has no memory for the codec's own tables: that says nothing of the stream.
    pub(super) fn out_of_memory(codec: &str) -> Self {
        let text = format!("{codec}: out of memory");
        StreamFault { kind: ErrorKind::OutOfMemory, text }
    }

    pub(super) fn to_error(&self) -> io::Error {
        io::Error::new(self.kind, self.text.clone())
    }
}

impl From<io::Error> for StreamFault {
    fn from(error: io::Error) -> Self {
        StreamFault { kind: error.kind(), text: error.to_string() }
    }
}

/// What one call of [`Engine::step`] did.
pub(super) struct Step {
    /// Bytes of the input that were used up.
    pub consumed: usize,
    /// Bytes of the output that were written, also when `state` is a failure.
    pub produced: usize,
    pub state: Decoded<StreamState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    /// The stream goes on.
    Going,
    /// The stream, or this one of several, is complete and verified.
    Ended,
}

/// What may stand after a complete stream.
pub(super) enum Next {
    Stream,
    Padding,
    /// Whatever it is, the tool does not mind it.
    Ignored,
    Garbage,
}

/// A codec that decodes from slice to slice.
pub(super) trait Engine {
    const NAME: &'static str;

    /// Decodes some of `input` into `output`, which is not empty. An empty
    /// `input` means that there is no more.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step;

    /// Judges the first byte after a complete stream, and makes ready for
    /// another stream if that is one.
    fn next(&mut self, _first: u8) -> io::Result<Next> {
        Ok(Next::Garbage)
    }

    /// Judges the end of the input, after a complete stream and whatever padding.
    fn end(&self) -> Decoded<()> {
        Ok(())
    }
}

enum Phase {
    Inside,
    Between,
    Over,
    Failed(StreamFault),
}

/// The plain bytes of one stream after the other.
pub(super) struct Pump<R, E> {
    inner: R,
    engine: E,
    phase: Phase,
    /// Nothing behind the first stream is looked at.
    is_first_alone: bool,
}

impl<R: BufRead, E: Engine> Pump<R, E> {
    pub(super) fn new(inner: R, engine: E) -> Self {
        Pump { inner, engine, phase: Phase::Inside, is_first_alone: false }
    }

    /// The first stream alone, whatever follows it.
    pub(super) fn of_first(inner: R, engine: E) -> Self {
        Pump { is_first_alone: true, ..Pump::new(inner, engine) }
    }

    /// Looks at what follows a complete stream; `false` if nothing does.
    fn enter_next(&mut self) -> io::Result<bool> {
        loop {
            let first = match self.inner.fill_buf() {
                Ok(input) => input.first().copied(),
                Err(error) => return Err(self.keep(error)),
            };
            let Some(first) = first else {
                return match self.engine.end() {
                    Ok(()) => Ok(false),
                    Err(failure) => Err(self.fail(failure)),
                };
            };
            match self.engine.next(first).map_err(|error| self.keep(error))? {
                Next::Stream => {
                    self.phase = Phase::Inside;
                    return Ok(true);
                }
                Next::Padding => self.inner.consume(1),
                Next::Ignored => {
                    self.phase = Phase::Over;
                    return Ok(false);
                }
                Next::Garbage => {
                    let name = E::NAME;
                    return Err(self.fail(StreamFault::bad(&format!(
                        "{name}: something else follows the end of the stream"
                    ))));
                }
            }
        }
    }

    fn fail(&mut self, failure: StreamFault) -> io::Error {
        let error = failure.to_error();
        self.phase = Phase::Failed(failure);
        error
    }

    /// Keeps an error that is not the stream's own. What the inner reader gives next may come behind the
    /// bytes that could not be read, or be its end: neither may be decoded.
    fn keep(&mut self, error: io::Error) -> io::Error {
        // After this one the same bytes are asked for again.
        if error.kind() != ErrorKind::Interrupted {
            self.phase = Phase::Failed(StreamFault { kind: error.kind(), text: error.to_string() });
        }
        error
    }
}

impl<R: BufRead, E: Engine> Read for Pump<R, E> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Phase::Failed(failure) = &self.phase {
                return Err(failure.to_error());
            }
            if matches!(self.phase, Phase::Over)
                || matches!(self.phase, Phase::Between) && !self.enter_next()?
            {
                return Ok(0);
            }
            let input = match self.inner.fill_buf() {
                Ok(input) => input,
                Err(error) => return Err(self.keep(error)),
            };
            let at_end = input.is_empty();
            let step = self.engine.step(input, out);
            self.inner.consume(step.consumed);
            match step.state {
                Ok(StreamState::Going) if step.produced > 0 || step.consumed > 0 => {}
                Ok(StreamState::Going) if at_end => {
                    return Err(self.fail(StreamFault::cut_off(E::NAME)));
                }
                Ok(StreamState::Going) => {
                    let name = E::NAME;
                    return Err(
                        self.fail(StreamFault::bad(&format!("{name}: the stream is stuck")))
                    );
                }
                Ok(StreamState::Ended) if self.is_first_alone => self.phase = Phase::Over,
                Ok(StreamState::Ended) => self.phase = Phase::Between,
                Err(failure) => self.phase = Phase::Failed(failure),
            }
            if step.produced > 0 {
                return Ok(step.produced);
            }
        }
    }
}
