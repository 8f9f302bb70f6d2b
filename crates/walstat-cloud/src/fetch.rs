//! A part of an object, tried again until it came whole. What comes is held against what was listed: an
//! object that is gone or has changed since then is not read. Stores that give no parts are read by `whole`.

use crate::bucket::{Bucket, Listed};
use crate::patience::Patience;
use crate::reason::{Cause, Reason};
use crate::runtime::requests;
use bytes::Bytes;
use futures_util::stream::{BoxStream, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An object as it was listed.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: Path,
    pub(crate) listed: Listed,
}

/// What came of asking for a part.
#[derive(Debug)]
pub(crate) enum Part {
    /// The part, in the chunks in which it came.
    Chunks(Vec<Bytes>),
    /// Nothing: the store gives all of the object, or another part.
    NotGiven,
}

/// The same, or in one line why there is none.
pub(crate) type Fetched = Result<Part, String>;

/// Fetches a part.
pub(crate) async fn fetch(object: Arc<Object>, range: Range<u64>) -> Fetched {
    let mut trying = Trying::begin(&object);
    loop {
        let reason = match trying.ask(once(&object, &range)).await {
            Ok(chunks) => return Ok(Part::Chunks(chunks)),
            Err(reason) if reason.cause.is_not_the_part() => {
                let gives_none = reason.cause == Cause::AllCame;
                object.bucket.gives_no_parts.fetch_or(gives_none, Ordering::Relaxed);
                return Ok(Part::NotGiven);
            }
            Err(reason) => reason,
        };
        trying.pause_after(reason).await?;
    }
}

/// Asks for a part once.
async fn once(object: &Object, range: &Range<u64>) -> Result<Vec<Bytes>, Reason> {
    let is_part = *range != (0..object.listed.bytes);
    let mut stream = object.answer(is_part.then(|| range.clone())).await?;
    let (mut chunks, mut came) = (Vec::new(), 0);
    while let Some(chunk) = object.next_chunk(&mut stream).await? {
        came += chunk.len() as u64;
        chunks.push(chunk);
    }
    let expected = range.end - range.start;
    if came == expected {
        return Ok(chunks);
    }
    Err(Reason::broken(format!("{came} bytes came, expected {expected}")))
}

/// A body as it comes.
pub(crate) type Answer = BoxStream<'static, object_store::Result<Bytes>>;

impl Object {
    /// The answer to a request for a part; `None`: for all of the object.
    pub(crate) async fn answer(&self, part: Option<Range<u64>>) -> Result<Answer, Reason> {
        let options = GetOptions { range: part.map(GetRange::Bounded), ..GetOptions::default() };
        let answer = self.bucket.objects.get_opts(&self.key, options).await;
        let answer = answer.map_err(|error| Reason::of(&error))?;
        check(&self.listed, &Listed::of(&answer.meta))?;
        Ok(answer.into_stream())
    }

    /// What comes next of an answer.
    pub(crate) async fn next_chunk(&self, answer: &mut Answer) -> Result<Option<Bytes>, Reason> {
        let next = answer.try_next().await;
        // Any failure in the middle of a body may be temporary.
        let next = next.map_err(|error| Reason { cause: Cause::Broken, ..Reason::of(&error) })?;
        if next.is_some() {
            self.bucket.contact.note_bytes();
        }
        Ok(next)
    }
}

/// Trying to get something of an object, again and again.
pub(crate) struct Trying<'o> {
    object: &'o Object,
    patience: Patience,
}

impl Trying<'_> {
    pub(crate) fn begin(object: &Object) -> Trying<'_> {
        let is_spent = object.bucket.is_spent(object.key.as_ref());
        let patience = if is_spent { Patience::spent() } else { Patience::default() };
        Trying { object, patience }
    }

    /// Asks once, when it is its turn among all requests.
    pub(crate) async fn ask<T>(
        &self,
        request: impl Future<Output = Result<T, Reason>>,
    ) -> Result<T, Reason> {
        let bucket = &self.object.bucket;
        let _permit = requests().acquire().await;
        let came = bucket.contact.ask(request).await;
        if came.is_ok() {
            bucket.note_had(self.object.key.as_ref());
        }
        came
    }

    /// Waits until it may be tried again; in one line, why it may not.
    pub(crate) async fn pause_after(&mut self, reason: Reason) -> Result<(), String> {
        let text = reason.text.as_str();
        match reason.cause {
            Cause::Absent => return Err(format!("gone since it was listed: {text}")),
            Cause::Shorter => return Err(format!("changed since it was listed: {text}")),
            _ => {}
        }
        let Some(pause) = self.patience.after(&reason, &self.object.bucket.contact) else {
            self.object.bucket.note_spent(self.object.key.as_ref());
            return Err(reason.text);
        };
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// Whether an object is what was listed.
fn check(listed: &Listed, now: &Listed) -> Result<(), Reason> {
    let changed = |text: String| Reason {
        text: format!("changed since it was listed: {text}"),
        cause: Cause::Refused,
    };
    if now.bytes != listed.bytes {
        return Err(changed(format!("{} bytes, expected {}", now.bytes, listed.bytes)));
    }
    match (&now.tag, &listed.tag) {
        (Some(now), Some(listed)) if now != listed => {
            Err(changed(format!("ETag {now}, expected {listed}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::url::Url;
    use futures_util::stream::{self, StreamExt};
    use std::time::{Duration, Instant, SystemTime};

    /// An object that is not there, of so many bytes.
    pub(crate) fn object(bytes: u64) -> Object {
        let url = Url::parse(std::path::Path::new("s3://fetched/a")).expect("a URL");
        let bucket = crate::bucket::bucket(&url).expect("a client");
        let listed = Listed { bytes, modified: SystemTime::UNIX_EPOCH, tag: None };
        Object { bucket, key: Path::from("a"), listed }
    }

    /// What comes in chunks of so many bytes.
    pub(crate) fn answer(chunks: &'static [usize]) -> Answer {
        stream::iter(chunks.iter().map(|bytes| Ok(Bytes::from(vec![7; *bytes])))).boxed()
    }

    pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn as_long_as_chunks_come_the_store_is_not_given_up() {
        let (object, begun) = (object(8), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let reset = Reason::broken("reset".to_owned());
        let contact = &object.bucket.contact;
        contact.note_bytes();
        assert!(contact.left(&reset, after(0)).is_some());
        let mut answer = answer(&[4, 4]);
        assert!(wait(object.next_chunk(&mut answer)).expect("a chunk").is_some());
        assert_eq!(contact.left(&reset, after(130)), Some(Duration::from_secs(120)));
    }
}
