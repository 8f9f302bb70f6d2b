//! What stands in the place of object stores where walstat is built without them: a sentence.

use super::{Entry, File, Metadata, Options};
use std::convert::Infallible;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The bytes of an object: there are none.
#[derive(Debug)]
pub struct Body(Infallible);

impl Read for Body {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

fn none<T>() -> io::Result<T> {
    Err(io::Error::other(
        "this walstat was built without object storage; the packages have it, and so has \
         'cargo install walstat --features cloud'",
    ))
}

pub(super) fn configure(_: Options) {}

pub(super) fn begin(_: &[PathBuf]) {}

pub(super) fn given_up(_: &Path) -> Option<String> {
    None
}

pub(super) fn metadata(_: &Path) -> io::Result<Metadata> {
    none()
}

pub(super) fn modified(_: &Path) -> Option<SystemTime> {
    None
}

pub(super) fn entries(_: &Path) -> io::Result<Vec<Entry>> {
    none()
}

pub(super) fn open(_: &Path, _: u64, _: u64) -> io::Result<Body> {
    none()
}

/// Files that will be read, in this order: nothing of what lies on disk is fetched ahead.
#[derive(Debug, Default)]
pub struct Ahead(());

impl Ahead {
    /// Says which files will be read next, and how much of each.
    pub fn announce(&mut self, _: impl IntoIterator<Item = (PathBuf, u64, u64)>) {}

    /// Opens the next one.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(&mut self, path: &Path, from: u64, wanted: u64) -> io::Result<File> {
        super::open_at(path, from, wanted)
    }
}
