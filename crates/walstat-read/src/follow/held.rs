//! A segment that is held open: what a server removes or renames meanwhile can be read on.

use super::shelf::ShelfFile;
use crate::input::names::Standing;
use crate::input::probe::probe;
use crate::input::source::Source;
use crate::input::storage::Ahead;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;
use walstat_format::page::Geometry;

/// A segment, held open.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Bytes,
    /// What tells its file from others.
    pub identity: Option<Identity>,
}

#[derive(Debug)]
enum Bytes {
    /// A file as a server writes it.
    File(File),
    /// What was compressed, unpacked as a whole.
    Unpacked(Vec<u8>),
}

impl Held {
    /// Opens a segment; `None`: it is not there, not whole yet, or of another cluster. `may_grow`: a server
    /// writes into files that have their whole length from the beginning.
    pub(super) fn open(
        copy: &ShelfFile,
        geometry: &Geometry,
        may_grow: bool,
    ) -> io::Result<Option<Held>> {
        let segment_bytes = geometry.segment_bytes;
        let may_grow = may_grow || copy.standing == Standing::Partial;
        let probe = match probe(&copy.path, &mut Ahead::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            probe => probe?,
        };
        // Its later pages do not say whose they are.
        let cluster = probe.first_page.as_ref().map(|page| page.long.system_identifier);
        if cluster.is_ok_and(|cluster| cluster != geometry.system_identifier) {
            return Ok(None);
        }
        match probe.source {
            Source::Raw(path) => {
                let is_whole =
                    probe.raw_bytes.is_some_and(|bytes| bytes >= u64::from(segment_bytes));
                // What is to be compressed begins as an empty file.
                if !is_whole && (copy.is_compressed || !may_grow) {
                    return Ok(None);
                }
                match File::open(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    file => {
                        let file = file?;
                        let identity = file.metadata().ok().as_ref().map(Identity::of);
                        Ok(Some(Held { bytes: Bytes::File(file), identity }))
                    }
                }
            }
            // It grows in blocks of its codec, and is read when it is whole.
            Source::Compressed(..) if copy.standing == Standing::Partial => Ok(None),
            source => {
                let mut bytes = Vec::new();
                let identity = Identity::at(&copy.path);
                let read = source.open(0).and_then(|packed| {
                    packed.into_reader().take(u64::from(segment_bytes)).read_to_end(&mut bytes)
                });
                // While it is being copied, its end is missing.
                let is_whole = read.is_ok() && bytes.len() == segment_bytes as usize;
                Ok(is_whole.then_some(Held { bytes: Bytes::Unpacked(bytes), identity }))
            }
        }
    }

    /// Whether another file lies at the path by now: a server that recovers puts whole segments in the place
    /// of those that it has prepared.
    pub(super) fn is_other_than(&self, path: &Path) -> bool {
        let there = Identity::at(path);
        there.is_some() && self.identity.is_some() && there != self.identity
    }

    /// Whether the file lies at the path.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.identity.is_some() && self.identity == Identity::at(path)
    }

    /// Fills `window` from byte `at` on; how many bytes there were.
    pub(super) fn read_at(&mut self, at: u64, window: &mut [u8]) -> io::Result<usize> {
        match &mut self.bytes {
            Bytes::File(file) => {
                file.seek(SeekFrom::Start(at))?;
                fill(file, window)
            }
            Bytes::Unpacked(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                rest.unwrap_or_default().read(window)
            }
        }
    }
}

fn fill(file: &mut File, window: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = window.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// What tells a file or folder from others, whatever its name is, and from one that was made later and may
/// have its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    #[cfg(unix)]
    number: (u64, u64),
    created: Option<SystemTime>,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Identity {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Identity {
            #[cfg(unix)]
            number: (metadata.dev(), metadata.ino()),
            created: metadata.created().ok(),
        }
    }

    /// That of the file at a path.
    pub(super) fn at(path: &Path) -> Option<Identity> {
        std::fs::metadata(path).ok().as_ref().map(Identity::of)
    }
}
