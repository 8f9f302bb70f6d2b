//! A part of an object, tried again until it came whole. What comes is held against what was listed: an
//! object that is gone or has changed since then is not read.

use crate::bucket::{Bucket, Listed};
use crate::patience::{Patience, note_answer};
use crate::reason::{Reason, Then};
use crate::runtime::requests;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use std::ops::Range;
use std::sync::Arc;

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
    let mut patience = Patience::default();
    loop {
        let permit = requests().acquire().await;
        let came = once(&object, &range).await;
        drop(permit);
        let reason = match came {
            Ok(chunks) => return Ok(chunks),
            Err(reason) => reason,
        };
        match reason.then {
            Then::Absent => return Err(format!("gone since it was listed: {}", reason.text)),
            Then::Shorter => {
                return Err(format!("changed since it was listed: {}", reason.text));
            }
            _ => {}
        }
        let Some(pause) = patience.after(&reason) else { return Err(reason.text) };
        tokio::time::sleep(pause).await;
    }
}

async fn once(object: &Object, range: &Range<u64>) -> Result<Vec<Bytes>, Reason> {
    let is_whole = *range == (0..object.listed.bytes);
    let options = GetOptions {
        range: (!is_whole).then(|| GetRange::Bounded(range.clone())),
        ..GetOptions::default()
    };
    let answer = object.bucket.objects.get_opts(&object.key, options).await;
    let answer = answer.map_err(|error| Reason::of(&error))?;
    note_answer();
    check(&object.listed, &Listed::of(&answer.meta))?;
    let chunks = answer.into_stream().try_collect::<Vec<Bytes>>().await;
    let chunks = chunks.map_err(|error| {
        let reason = Reason::of(&error);
        // Any failure in the middle of a body may be temporary.
        Reason { then: Then::Again, ..reason }
    })?;
    let came: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let expected = range.end - range.start;
    if came == expected {
        return Ok(chunks);
    }
    Err(Reason::passing(format!("{came} bytes came, expected {expected}")))
}

/// Whether an object is what was listed.
fn check(listed: &Listed, now: &Listed) -> Result<(), Reason> {
    let changed = |text: String| Reason {
        text: format!("changed since it was listed: {text}"),
        then: Then::GiveUp,
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
