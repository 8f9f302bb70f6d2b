//! What is known of files that were read before: as long as they are the same, they are not looked into.

use super::codec::Codec;
use super::probe::{FirstPage, Probe};
use super::source::Source;
use super::stamp::Stamp;
use super::storage::{self, Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What is known of a segment's file that was read before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownFile {
    /// What the file was like.
    pub stamp: Stamp,
    first_page: FirstPage,
    /// How it is compressed.
    codec: Option<Codec>,
}

/// Files that were read before, by their paths as they are shown.
pub type KnownFiles = BTreeMap<String, KnownFile>;

impl KnownFile {
    /// What to remember of a file; `None` unless it is a segment whose first page is whole.
    pub fn of(probe: &Probe) -> Option<KnownFile> {
        let stamp = probe.stamp.as_deref().filter(|_| probe.source.is_file())?.clone();
        let first_page = *probe.first_page.as_ref().ok()?;
        Some(KnownFile { stamp, first_page, codec: probe.source.codec() })
    }

    /// What a look into the file would find, if it is still the same.
    pub(crate) fn probe(&self, path: &Path) -> Option<Probe> {
        let metadata = storage::metadata(path).ok().filter(|found| found.kind == Kind::File)?;
        (Stamp::of(&metadata) == self.stamp).then(|| Probe {
            source: match self.codec {
                Some(codec) => Source::Compressed(path.into(), codec),
                None => Source::Raw(path.into()),
            },
            compressed: self.codec.is_some(),
            raw_bytes: self.codec.is_none().then_some(metadata.bytes),
            modified: metadata.modified,
            stamp: Some(Box::new(self.stamp.clone())),
            first_page: Ok(self.first_page),
        })
    }
}
