//! The bytes of an object in order. Parts are fetched ahead, several at a time, and held until they are read;
//! who decompresses and analyses them is the reader's affair.

use crate::bucket::bucket;
use crate::fetch::{Fetched, Object, Part, fetch};
use crate::list::head;
use crate::options::options;
use crate::runtime::{Task, spawn};
use crate::url::Url;
use crate::whole::Whole;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A part is at most so long: long enough that its bytes take longer than the round trip, and short enough
/// that one for each connection is no burden.
const PART_BYTES_MAX: u64 = 4 << 20;
/// And at least so long, unless less is left of the object.
const PART_BYTES_MIN: u64 = 64 << 10;

/// How many parts of an object are held if the caller sets no limit.
const PARTS_ALONE: usize = 4;

/// The bytes of an object, being read.
#[derive(Debug)]
pub struct Body {
    object: Arc<Object>,
    /// Where the next part begins that is not asked for yet.
    next: u64,
    /// How far it is known that it will be read.
    wanted: u64,
    /// How long the next part is.
    part: u64,
    /// So many parts are held or under way, at most.
    most: usize,
    parts: VecDeque<(u64, Task<Fetched>)>,
    /// In the place of parts, where the store gives none.
    whole: Option<Whole>,
    chunks: VecDeque<Bytes>,
    /// Why no more can be read. Every later read says it again: what comes behind a part that is missing is
    /// not what comes next.
    failed: Option<String>,
}

/// Opens an object, to be read from byte `from` on; it is known that `wanted` bytes of it will be.
///
/// # Errors
///
/// In one line, why it cannot be opened.
pub fn open(path: &Path, from: u64, wanted: u64) -> io::Result<Body> {
    let url = Url::parse(path).map_err(io::Error::other)?;
    let bucket = bucket(&url).map_err(|reason| io::Error::other(reason.text))?;
    let key = object_store::path::Path::parse(&url.key).map_err(io::Error::other)?;
    let listed = match bucket.listed(&url.key) {
        Some(listed) => listed,
        None => head(&bucket, &url.key)?.ok_or_else(|| io::Error::other("no such object"))?,
    };
    let wanted = from.saturating_add(wanted).min(listed.bytes);
    let part = (wanted.saturating_sub(from)).clamp(PART_BYTES_MIN, PART_BYTES_MAX);
    let object = Arc::new(Object { bucket, key, listed });
    let (parts, chunks) = (VecDeque::new(), VecDeque::new());
    let most = options().connections.get().min(PARTS_ALONE);
    let (whole, failed) = (None, None);
    Ok(Body { object, next: from, wanted, part, most, parts, whole, chunks, failed })
}

impl Body {
    /// Asks for parts, until `most` are held or under way or all that is wanted is; says how many there are.
    ///
    /// # Errors
    ///
    /// When the system has no thread for it.
    pub fn ahead(&mut self, most: usize) -> io::Result<usize> {
        self.most = most;
        if self.failed.is_some() {
            return Ok(0);
        }
        while self.whole.is_none() && self.parts.len() < most && self.next < self.wanted {
            self.ask()?;
        }
        match &mut self.whole {
            Some(whole) => {
                if most > 0 && whole.at() < self.wanted {
                    whole.ahead();
                }
                Ok(usize::from(whole.is_under_way()))
            }
            None => Ok(self.parts.len()),
        }
    }

    /// Asks for the next part, or for the object.
    fn ask(&mut self) -> io::Result<()> {
        let bytes = self.object.listed.bytes;
        let end = self.next.saturating_add(self.part).min(bytes);
        let is_part = end - self.next < bytes;
        if is_part && self.object.bucket.gives_no_parts.load(Ordering::Relaxed) {
            self.read_whole_from(self.parts.front().map_or(self.next, |(first, _)| *first));
            return Ok(());
        }
        let part = spawn(fetch(Arc::clone(&self.object), self.next..end))?;
        self.parts.push_back((self.next, part));
        self.next = end;
        self.part = self.part.saturating_mul(2).min(PART_BYTES_MAX);
        Ok(())
    }

    /// Reads all that is left of the object as it comes; what is under way is not waited for.
    fn read_whole_from(&mut self, first: u64) {
        self.parts.clear();
        self.whole = Some(Whole::new(Arc::clone(&self.object), first));
    }

    /// The chunks that come next; none at the end of the object, and before it is read in another way.
    fn next_chunks(&mut self) -> io::Result<Vec<Bytes>> {
        if let Some(whole) = &mut self.whole {
            return whole.next();
        }
        let Some((first, part)) = self.parts.pop_front() else { return Ok(Vec::new()) };
        match part.wait()?.map_err(io::Error::other)? {
            Part::Chunks(chunks) => Ok(chunks),
            Part::NotGiven => {
                self.read_whole_from(first);
                Ok(Vec::new())
            }
        }
    }

    /// Whether nothing comes any more.
    fn is_at_end(&self) -> bool {
        let (asked, is_under_way) = match &self.whole {
            Some(whole) => (whole.at(), whole.is_under_way()),
            None => (self.next, !self.parts.is_empty()),
        };
        !is_under_way && asked >= self.object.listed.bytes
    }
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(chunk) = self.chunks.front_mut().filter(|chunk| chunk.has_remaining()) {
                let count = chunk.remaining().min(out.len());
                chunk.copy_to_slice(out.get_mut(..count).unwrap_or_default());
                return Ok(count);
            }
            if self.chunks.pop_front().is_some() {
                continue;
            }
            if let Some(text) = &self.failed {
                return Err(io::Error::other(text.clone()));
            }
            if out.is_empty() || self.is_at_end() {
                return Ok(0);
            }
            self.ahead(self.most)?;
            if self.whole.is_none() && self.parts.is_empty() {
                self.ask()?;
            }
            match self.next_chunks() {
                Ok(chunks) => self.chunks = chunks.into(),
                Err(error) => {
                    self.failed = Some(error.to_string());
                    self.parts.clear();
                }
            }
        }
    }
}

/// The share that one reader has of what is fetched ahead: all readers together hold one part a connection.
#[derive(Debug)]
pub struct Share(());

static READERS: AtomicUsize = AtomicUsize::new(0);

impl Share {
    /// For one reader more.
    pub fn take() -> Share {
        READERS.fetch_add(1, Ordering::Relaxed);
        Share(())
    }

    /// How many parts it may hold.
    pub fn parts(&self) -> usize {
        (options().connections.get() / READERS.load(Ordering::Relaxed).max(1)).max(1)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::tests::object;

    /// A body of 4 bytes a part, of which this one fails.
    fn body(failing: u64) -> Body {
        let parts = (0..3).map(|number| {
            let part = if number == failing {
                Err("slow down".to_owned())
            } else {
                Ok(Part::Chunks(vec![Bytes::from(vec![number as u8; 4])]))
            };
            (number * 4, spawn(async { part }).expect("a thread"))
        });
        Body {
            parts: parts.collect(),
            object: Arc::new(object(12)),
            next: 12,
            wanted: 12,
            part: 4,
            most: 3,
            whole: None,
            chunks: VecDeque::new(),
            failed: None,
        }
    }

    #[test]
    fn nothing_is_given_behind_a_part_that_could_not_be_had() {
        for (failing, want) in [(0, &[][..]), (1, &[0; 4]), (2, &[0, 0, 0, 0, 1, 1, 1, 1])] {
            let mut body = body(failing);
            let mut came = Vec::new();
            let failed = body.read_to_end(&mut came).expect_err("a part failed");
            assert_eq!((came.as_slice(), failed.to_string().as_str()), (want, "slow down"));
            assert_eq!(body.ahead(3).expect("nothing is asked for"), 0);
            let again = body.read(&mut [0; 4]).expect_err("it stays so");
            assert_eq!(again.to_string(), "slow down");
        }
    }
}
