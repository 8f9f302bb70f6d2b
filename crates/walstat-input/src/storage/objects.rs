//! Objects as files.

use super::{Entry, File, Kind, Metadata, Options, is_elsewhere};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use walstat_cloud::Share;
pub(super) use walstat_cloud::{Body, begin, given_up, modified, open};

impl From<walstat_cloud::Entry> for Metadata {
    fn from(entry: walstat_cloud::Entry) -> Metadata {
        let walstat_cloud::Entry { kind, bytes, modified, tag } = entry;
        let kind = match kind {
            walstat_cloud::Kind::File => Kind::File,
            walstat_cloud::Kind::Directory => Kind::Directory,
        };
        Metadata { kind, bytes, modified, changed: None, tag }
    }
}

pub(super) fn configure(options: Options) {
    let Options { endpoint, connections } = options;
    let connections = connections.unwrap_or(walstat_cloud::CONNECTIONS);
    walstat_cloud::configure(walstat_cloud::Options { endpoint, connections });
}

pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
    let found = walstat_cloud::look(path)?.map(Metadata::from);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, nothing_at(path)))
}

fn nothing_at(path: &Path) -> &'static str {
    // It is not shown, since there may be a signature in it.
    if path.to_string_lossy().contains('?') {
        "no object of this name or prefix: a '?' and what is behind it are taken for a part of the name"
    } else {
        "no object of this name or prefix"
    }
}

pub(super) fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    let entries = walstat_cloud::entries(path)?.into_iter();
    Ok(entries.map(|(name, entry)| (name.into(), Ok(entry.into()))).collect())
}

/// Objects that will be read, in this order. The next ones are fetched while one is read, as far as the
/// reader's share of what may be held goes.
#[derive(Debug, Default)]
pub struct Ahead {
    share: Option<Share>,
    expected: VecDeque<(PathBuf, u64, u64)>,
    opened: VecDeque<(PathBuf, u64, Body)>,
}

impl Ahead {
    /// Says which files will be read next: path, first byte, how many bytes.
    pub fn announce(&mut self, files: impl IntoIterator<Item = (PathBuf, u64, u64)>) {
        self.expected = files.into_iter().filter(|(path, ..)| is_elsewhere(path)).collect();
        self.opened.clear();
        self.share = (!self.expected.is_empty()).then(Share::take);
    }

    /// Opens a file, the next one by rights.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(&mut self, path: &Path, from: u64, wanted: u64) -> io::Result<File> {
        let Some(share) = &self.share else { return super::open_at(path, from, wanted) };
        let most = share.parts();
        let is_it = |other: &Path, at: u64| other == path && at == from;
        let opened = self.opened.iter().position(|(other, at, _)| is_it(other, *at));
        let opened = opened.and_then(|place| self.opened.drain(..=place).next_back());
        let mut body = match opened {
            Some((.., body)) => body,
            None => {
                // Mostly it is the first. What was opened before is not looked for here: of many objects that
                // would be all those that come after it, for each.
                let place = self.expected.iter().position(|(other, at, _)| is_it(other, *at));
                place.map(|place| self.expected.drain(..=place));
                open(path, from, wanted)?
            }
        };
        let held = body.ahead(most)?;
        self.fetch_next(most, held);
        Ok(File::Elsewhere(body))
    }

    /// Opens those that come next, as far as `most` parts go, of which some are `held`.
    fn fetch_next(&mut self, most: usize, held: usize) {
        let mut held = held;
        for (.., body) in &mut self.opened {
            // What goes wrong is told when it is read.
            held += body.ahead(most.saturating_sub(held)).unwrap_or_default();
        }
        while held < most {
            let Some((path, from, wanted)) = self.expected.pop_front() else { return };
            let Ok(mut body) = open(&path, from, wanted) else { continue };
            held += body.ahead(most - held).unwrap_or_default().max(1);
            self.opened.push_back((path, from, body));
        }
    }
}
