//! The bytes of one segment, in order, into a buffer of the caller's.
//!
//! Whoever reads them does not know whether they were in a file, compressed, or came through a pipe. Files
//! that nobody writes to any more are mapped; what a server may be writing is read into a reused buffer.

use super::codec::Codec;
use super::mapped::Mapped;
use super::names::file_name;
use super::recognise::{Content, read_head, recognise};
use super::storage::{self, File};
use super::unpacking::decoder;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use walstat_format::page::PageHeader;
use walstat_format::segment::PAGE_BYTES_MIN;
use walstat_format::version::Magic;

/// Where the bytes of a segment are. Copies share the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file as the server wrote it.
    Raw(Arc<Path>),
    /// A compressed file.
    Compressed(Arc<Path>, Codec),
    /// A file that was listed and not looked into: how it is compressed shows when it is.
    Listed(Arc<Path>),
    /// The bytes came through a stream and are gone; the path of the stream and the member, and how they were
    /// compressed in it.
    Streamed(Arc<Path>, Option<Codec>),
    /// The bytes came through a stream and were kept, no longer compressed.
    Kept(Arc<Path>, Option<Codec>, Arc<KeptBytes>),
}

/// Bytes of a stream that were kept in memory.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBytes {
    /// Zeros before all others.
    pub zeros: u64,
    /// The others.
    pub rest: Vec<u8>,
    /// The error that the bytes ended with, if any.
    #[serde(with = "kept_error")]
    pub error: Option<(io::ErrorKind, String)>,
}

/// The bytes of a segment, being read.
pub enum Bytes<'a> {
    /// A file as the server wrote it.
    Raw(File),
    /// The same, mapped.
    Mapped(Mapped),
    /// A decoder, or a part of a stream.
    Read(Box<dyn Read + 'a>),
}

impl Source {
    /// The file.
    pub fn path(&self) -> &Path {
        self.path_in_it()
    }

    /// The same, for whoever keeps it: there are many, and each is kept in several places.
    pub(crate) fn shared_path(&self) -> Arc<Path> {
        Arc::clone(self.path_in_it())
    }

    fn path_in_it(&self) -> &Arc<Path> {
        match self {
            Source::Raw(path)
            | Source::Compressed(path, _)
            | Source::Listed(path)
            | Source::Streamed(path, _)
            | Source::Kept(path, ..) => path,
        }
    }

    /// How the file is compressed, as far as that is known.
    pub fn codec(&self) -> Option<Codec> {
        match self {
            Source::Compressed(_, codec) => Some(*codec),
            Source::Streamed(_, codec) | Source::Kept(_, codec, _) => *codec,
            Source::Raw(_) | Source::Listed(_) => None,
        }
    }

    /// The same file, when its bytes have passed by.
    pub fn streamed(&self) -> Source {
        Source::Streamed(self.shared_path(), self.codec())
    }

    /// The same file, whose bytes were kept when they passed by.
    pub fn kept(&self, kept: KeptBytes) -> Source {
        Source::Kept(self.shared_path(), self.codec(), Arc::new(kept))
    }

    /// Whether the bytes are in a file, and can be read again.
    pub fn is_file(&self) -> bool {
        matches!(self, Source::Raw(_) | Source::Compressed(..) | Source::Listed(_))
    }

    /// When the file was last written to, as far as that can be told. Of what came through a stream, or was
    /// read elsewhere, the path is a name and no more.
    pub fn modified(&self) -> Option<SystemTime> {
        if !self.is_file() {
            return None;
        }
        storage::modified(self.path())
    }

    /// Whether it was a file, and there is nothing any more under its name.
    pub fn is_gone(&self) -> bool {
        let path = self.path();
        let is_here = self.is_file() && !storage::is_elsewhere(path);
        let found = is_here.then(|| fs::symlink_metadata(path));
        found.is_some_and(|it| it.is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
    }

    /// The segment mapped, to be read from byte `from` on; `None`: it is to be read otherwise.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn map(&self, from: u64) -> io::Result<Option<Bytes<'static>>> {
        match self {
            Source::Raw(path) if !storage::is_elsewhere(path) => {
                Ok(Mapped::open(path, from)?.map(Bytes::Mapped))
            }
            _ => Ok(None),
        }
    }

    /// Opens the segment and goes to byte `from` of it.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(&self, from: u64) -> io::Result<Bytes<'static>> {
        self.open_through(&mut storage::Ahead::default(), from, u64::MAX)
    }

    /// The same through what was fetched ahead; so many bytes of it are `wanted`, as far as is known.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open_through(
        &self,
        ahead: &mut storage::Ahead,
        from: u64,
        wanted: u64,
    ) -> io::Result<Bytes<'static>> {
        match self {
            Source::Raw(path) => Ok(Bytes::Raw(ahead.open(path, from, wanted)?)),
            Source::Compressed(path, codec) => {
                let file = ahead.open(path, 0, wanted.saturating_add(from))?;
                let mut bytes = Bytes::Read(decoder(*codec, &file_name(path), file)?);
                bytes.skip(from)?;
                Ok(bytes)
            }
            Source::Listed(path) => open_listed(path, from, wanted),
            Source::Streamed(..) => Err(io::Error::other("a stream cannot be read again")),
            Source::Kept(_, _, kept) => {
                let mut bytes = Bytes::Read(Box::new(KeptReader { kept: kept.clone(), at: 0 }));
                bytes.skip(from)?;
                Ok(bytes)
            }
        }
    }
}

/// Opens a file of which it is not known how it is compressed.
fn open_listed(path: &Path, from: u64, wanted: u64) -> io::Result<Bytes<'static>> {
    let mut file = storage::open_at(path, 0, wanted.saturating_add(from))?;
    let head = read_head(&mut file)?;
    let content = recognise(&head, &path.file_name().unwrap_or_default().to_string_lossy());
    let whole = Cursor::new(head).chain(file);
    let reader: Box<dyn Read> = match content {
        Content::Compressed(codec) => codec.decoder(whole)?,
        _ if from == 0 => Box::new(whole),
        _ => return storage::open_at(path, from, wanted).map(Bytes::Raw),
    };
    let mut bytes = Bytes::Read(reader);
    bytes.skip(from)?;
    Ok(bytes)
}

/// Of the kind of an error only whether the bytes were cut off is written: nothing else matters.
mod kept_error {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::io::ErrorKind;

    type Error = Option<(ErrorKind, String)>;

    pub(super) fn serialize<S: Serializer>(
        error: &Error,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let form = error.as_ref().map(|(kind, text)| (*kind == ErrorKind::UnexpectedEof, text));
        form.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Error, D::Error> {
        let form = Option::<(bool, String)>::deserialize(deserializer)?;
        Ok(form.map(|(is_cut, text)| {
            if is_cut { (ErrorKind::UnexpectedEof, text) } else { (ErrorKind::Other, text) }
        }))
    }
}

impl KeptBytes {
    /// No bytes, but an error.
    pub fn failing(kind: io::ErrorKind, text: String) -> KeptBytes {
        KeptBytes { zeros: 0, rest: Vec::new(), error: Some((kind, text)) }
    }

    /// What may be handed to others: of bytes without any page of WAL in them only where they are zero, and
    /// what stands in the place of a page magic. That is all that a reader of WAL sees in them.
    pub fn without_foreign_bytes(mut self) -> KeptBytes {
        if !self.has_a_page() {
            let magic_bytes = if self.zeros == 0 { size_of::<u16>() } else { 0 };
            let foreign = self.rest.iter_mut().skip(magic_bytes);
            foreign.for_each(|byte| *byte = u8::from(*byte != 0));
        }
        self
    }

    /// Whether a page of WAL begins where one of any size can.
    fn has_a_page(&self) -> bool {
        let before = usize::try_from(self.zeros.next_multiple_of(PAGE_BYTES_MIN) - self.zeros);
        let rest = before.ok().and_then(|before| self.rest.get(before..)).unwrap_or_default();
        let mut headers = rest.chunks(PAGE_BYTES_MIN as usize).filter_map(PageHeader::parse);
        headers.any(|header| {
            let is_known = matches!(Magic::of(header.magic), Magic::Known(_));
            is_known && header.address.0.is_multiple_of(PAGE_BYTES_MIN)
        })
    }
}

/// Reads kept bytes again.
struct KeptReader {
    kept: Arc<KeptBytes>,
    at: u64,
}

impl Read for KeptReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let zeros = usize::try_from(self.kept.zeros.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let count = if zeros > 0 {
            let count = zeros.min(out.len());
            out.iter_mut().take(count).for_each(|byte| *byte = 0);
            count
        } else {
            let from = usize::try_from(self.at - self.kept.zeros).unwrap_or(usize::MAX);
            self.kept.rest.get(from..).unwrap_or_default().read(out)?
        };
        self.at += count as u64;
        match &self.kept.error {
            Some((kind, text)) if count == 0 && !out.is_empty() => {
                Err(io::Error::new(*kind, text.clone()))
            }
            _ => Ok(count),
        }
    }
}

impl<'a> Bytes<'a> {
    /// The bytes as a reader of any kind.
    pub fn into_reader(self) -> Box<dyn Read + 'a> {
        match self {
            Bytes::Raw(file) => Box::new(file),
            Bytes::Mapped(mapped) => Box::new(mapped),
            Bytes::Read(reader) => reader,
        }
    }

    /// Fills `window` from where the last call ended; fewer bytes only at the end. The bytes
    /// before an error are delivered, the error with the next call.
    pub fn fill(&mut self, window: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < window.len() {
            let rest = &mut window[filled..];
            let read = match self {
                Bytes::Raw(file) => file.read(rest),
                Bytes::Mapped(mapped) => mapped.read(rest),
                Bytes::Read(reader) => reader.read(rest),
            };
            match read {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Skips up to `bytes` bytes, and returns how many there were.
    pub fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        match self {
            Bytes::Raw(file) => io::copy(&mut file.take(bytes), &mut io::sink()),
            Bytes::Mapped(mapped) => io::copy(&mut mapped.take(bytes), &mut io::sink()),
            Bytes::Read(reader) => io::copy(&mut reader.take(bytes), &mut io::sink()),
        }
    }

    /// Whether the rest of the segment need not be read to know how long it is.
    pub fn is_file(&self) -> bool {
        matches!(self, Bytes::Raw(_) | Bytes::Mapped(_))
    }
}
