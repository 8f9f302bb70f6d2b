//! A part of an object, tried again until it came whole. What comes is held against what was listed: an
//! object that is gone or has changed since then is not read.

use crate::bucket::{Bucket, Listed};
use crate::patience::Patience;
use crate::reason::{Reason, Then};
use crate::runtime::requests;
use bytes::{Buf, Bytes};
use futures_util::TryStreamExt;
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

/// What came of fetching a part, in the chunks in which it came; or why it did not.
pub(crate) type Fetched = Result<Vec<Bytes>, String>;

/// Fetches a part.
pub(crate) async fn fetch(object: Arc<Object>, range: Range<u64>) -> Fetched {
    let (bucket, key) = (&object.bucket, object.key.as_ref());
    let is_spent = bucket.is_spent(key);
    let mut patience = if is_spent { Patience::spent() } else { Patience::default() };
    loop {
        let permit = requests().acquire().await;
        let came = bucket.contact.ask(in_any_way(&object, &range)).await;
        drop(permit);
        let reason = match came {
            Ok(chunks) => {
                bucket.note_had(key);
                return Ok(chunks);
            }
            Err(reason) => reason,
        };
        match reason.then {
            Then::Absent => return Err(format!("gone since it was listed: {}", reason.text)),
            Then::Shorter => {
                return Err(format!("changed since it was listed: {}", reason.text));
            }
            _ => {}
        }
        let Some(pause) = patience.after(&reason, &bucket.contact) else {
            bucket.note_spent(key);
            return Err(reason.text);
        };
        tokio::time::sleep(pause).await;
    }
}

/// The part as such; where the store gives another one or everything, what is wanted of everything.
async fn in_any_way(object: &Object, range: &Range<u64>) -> Result<Vec<Bytes>, Reason> {
    let ignores_ranges = &object.bucket.ignores_ranges;
    let all = 0..object.listed.bytes;
    if *range == all || ignores_ranges.load(Ordering::Relaxed) {
        return once(object, range, &all).await;
    }
    match once(object, range, range).await {
        Err(reason) if reason.then == Then::AskForAll => {
            ignores_ranges.fetch_or(reason.says_that_all_came(), Ordering::Relaxed);
            once(object, range, &all).await
        }
        came => came,
    }
}

/// Asks once, for what is `asked`, in which the range lies.
async fn once(
    object: &Object,
    range: &Range<u64>,
    asked: &Range<u64>,
) -> Result<Vec<Bytes>, Reason> {
    let is_part = *asked != (0..object.listed.bytes);
    let options = GetOptions {
        range: is_part.then(|| GetRange::Bounded(asked.clone())),
        ..GetOptions::default()
    };
    let answer = object.bucket.objects.get_opts(&object.key, options).await;
    let answer = answer.map_err(|error| Reason::of(&error))?;
    check(&object.listed, &Listed::of(&answer.meta))?;
    let mut stream = answer.into_stream();
    let (mut chunks, mut at, mut came) = (Vec::new(), asked.start, 0);
    let expected = range.end - range.start;
    // What lies behind the range is not waited for. Behind all that was asked for nothing may come.
    while came < expected || range == asked {
        let next = stream.try_next().await;
        // Any failure in the middle of a body may be temporary.
        let next = next.map_err(|error| Reason { then: Then::Again, ..Reason::of(&error) })?;
        let Some(mut chunk) = next else { break };
        let before = chunk.len().min(to_usize(range.start.saturating_sub(at)));
        at += chunk.len() as u64;
        chunk.advance(before);
        if range != asked {
            chunk.truncate(to_usize(expected - came));
        }
        came += chunk.len() as u64;
        chunks.push(chunk);
    }
    if came == expected {
        return Ok(chunks);
    }
    Err(Reason::passing(format!("{came} bytes came, expected {expected}")))
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Whether an object is what was listed.
fn check(listed: &Listed, now: &Listed) -> Result<(), Reason> {
    let changed = |text: String| Reason {
        text: format!("changed since it was listed: {text}"),
        then: Then::GiveUp,
        is_answer: true,
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
