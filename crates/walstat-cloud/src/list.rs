//! What lies under a prefix, as in a directory, and what lies at a single key.

use crate::bucket::{Bucket, Listed, bucket};
use crate::patience::Patience;
use crate::reason::{Cause, Reason};
use crate::runtime::{requests, wait_for};
use crate::url::Url;
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// What something under a prefix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An object.
    File,
    /// What the keys of other objects go on after, behind a slash.
    Directory,
}

/// Something under a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// How long the object is.
    pub bytes: u64,
    /// When it was written.
    pub modified: Option<SystemTime>,
    /// Its ETag, which is another one for other bytes.
    pub tag: Option<String>,
}

const DIRECTORY: Entry = Entry { kind: Kind::Directory, bytes: 0, modified: None, tag: None };

impl Entry {
    fn of(listed: &Listed) -> Entry {
        let Listed { bytes, modified, tag } = listed.clone();
        let tag = tag.map(String::from);
        Entry { kind: Kind::File, bytes, modified: Some(modified), tag }
    }
}

/// All that lies directly under a prefix, by name.
///
/// # Errors
///
/// In one line, what the store said.
pub fn entries(path: &Path) -> io::Result<Vec<(String, Entry)>> {
    let url = Url::parse(path).map_err(io::Error::other)?;
    let bucket = bucket(&url).map_err(to_error)?;
    let prefix = prefix_of(&url);
    let mut all = BTreeMap::new();
    let mut token = None;
    loop {
        let page = page(&bucket, &prefix, token, None)?;
        all.extend(page.entries);
        token = page.token;
        if token.is_none() {
            return Ok(all.into_iter().collect());
        }
    }
}

/// What lies at a key: an object, or others below it. `None`: nothing.
///
/// # Errors
///
/// In one line, what the store said.
pub fn look(path: &Path) -> io::Result<Option<Entry>> {
    let url = Url::parse(path).map_err(io::Error::other)?;
    let bucket = bucket(&url).map_err(to_error)?;
    if let Some(listed) = bucket.listed(&url.key) {
        return Ok(Some(Entry::of(&listed)));
    }
    let object = head(&bucket, &url.key);
    if let Ok(Some(listed)) = &object {
        return Ok(Some(Entry::of(listed)));
    }
    // The reason for a failure is in the answer to a listing; the answer to a HEAD request has no body.
    let below = page(&bucket, &prefix_of(&url), None, Some(1))?;
    if below.is_empty { object.map(|_| None) } else { Ok(Some(DIRECTORY)) }
}

/// What the keys of all objects below a key begin with.
fn prefix_of(url: &Url) -> String {
    if url.key.is_empty() { String::new() } else { format!("{}/", url.key) }
}

/// When an object was written, as it was listed.
pub fn modified(path: &Path) -> Option<SystemTime> {
    listed(path).map(|listed| listed.modified)
}

fn listed(path: &Path) -> Option<Listed> {
    let url = Url::parse(path).ok()?;
    bucket(&url).ok()?.listed(&url.key)
}

/// An object that was not listed.
pub(crate) fn head(bucket: &Arc<Bucket>, key: &str) -> io::Result<Option<Listed>> {
    let Ok(path) = object_store::path::Path::parse(key) else { return Ok(None) };
    if key.is_empty() {
        return Ok(None);
    }
    let store = Arc::clone(&bucket.objects);
    let meta = tried(bucket, move || {
        let (store, path) = (Arc::clone(&store), path.clone());
        async move { store.head(&path).await }
    })?;
    match meta {
        Ok(meta) => {
            let listed = Listed::of(&meta);
            bucket.note(key, listed.clone());
            Ok(Some(listed))
        }
        Err(Reason { cause: Cause::Absent, .. }) => Ok(None),
        Err(reason) => Err(to_error(reason)),
    }
}

/// A page of a listing.
struct Page {
    entries: Vec<(String, Entry)>,
    is_empty: bool,
    token: Option<String>,
}

fn page(
    bucket: &Arc<Bucket>,
    prefix: &str,
    token: Option<String>,
    most: Option<usize>,
) -> io::Result<Page> {
    let (store, wanted) = (Arc::clone(&bucket.pages), prefix.to_owned());
    let listed = tried(bucket, move || {
        let (store, wanted, token) = (Arc::clone(&store), wanted.clone(), token.clone());
        let options = PaginatedListOptions {
            delimiter: Some("/".into()),
            page_token: token,
            max_keys: most,
            ..PaginatedListOptions::default()
        };
        async move { store.list_paginated(Some(&wanted).map(|s| s.as_str()), options).await }
    })?;
    let listed = listed.map_err(to_error)?;
    let is_empty = listed.result.objects.is_empty() && listed.result.common_prefixes.is_empty();
    let mut entries = Vec::new();
    for meta in &listed.result.objects {
        let key = meta.location.as_ref();
        // The mark of an empty directory has the prefix itself for its key.
        let Some(name) = key.strip_prefix(prefix).filter(|name| !name.is_empty()) else { continue };
        let listed = Listed::of(meta);
        entries.push((name.to_owned(), Entry::of(&listed)));
        bucket.note(key, listed);
    }
    for below in &listed.result.common_prefixes {
        let name = below.filename().unwrap_or_default();
        if !name.is_empty() {
            entries.push((name.to_owned(), DIRECTORY));
        }
    }
    Ok(Page { entries, is_empty, token: listed.page_token })
}

/// Asks the store until it answers, or patience ends.
fn tried<T, F>(
    bucket: &Arc<Bucket>,
    ask: impl Fn() -> F + Send + Sync + 'static,
) -> io::Result<Result<T, Reason>>
where
    T: Send + 'static,
    F: Future<Output = object_store::Result<T>> + Send,
{
    let bucket = Arc::clone(bucket);
    wait_for(async move {
        let mut patience = Patience::default();
        loop {
            let permit = requests().acquire().await;
            let asked = async { ask().await.map_err(|error| Reason::of(&error)) };
            let answer = bucket.contact.ask(asked).await;
            drop(permit);
            let Err(reason) = answer else { return answer };
            let Some(pause) = patience.after(&reason, &bucket.contact) else { return Err(reason) };
            tokio::time::sleep(pause).await;
        }
    })
}

fn to_error(reason: Reason) -> io::Error {
    io::Error::other(reason.text)
}
