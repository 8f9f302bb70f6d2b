//! What one file is, by its first bytes; a name alone proves nothing.

use super::codec::Codec;
use super::recognise::{Content, Encryption, read_head, recognise};
use super::source::Source;
use super::stamp::Stamp;
use super::storage::{self, Ahead};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::time::SystemTime;
use walstat_format::page::{LONG_HEADER, LongHeader, PageHeader, SHORT_HEADER_BYTES};
use walstat_format::version::{Magic, Version};

/// How much of a file is likely read for that, decompressed or not.
pub(crate) const LOOK_BYTES: u64 = 64 << 10;

/// The first page of a segment, as far as its header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstPage {
    /// The header.
    pub header: PageHeader,
    /// What the first page of a segment adds.
    pub long: LongHeader,
}

/// A file that may be a segment.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Where its bytes are.
    pub source: Source,
    /// Whether the file itself is compressed, not only the tar that it lies in.
    pub compressed: bool,
    /// Its length, if it is not compressed.
    pub raw_bytes: Option<u64>,
    /// When it was last written to, before it was looked at.
    pub modified: Option<SystemTime>,
    /// What it was like, as far as that tells whether it is changed later. Of what is only listed there is
    /// none: so it takes no room in each.
    pub stamp: Option<Box<Stamp>>,
    /// Its first page, or why it is none.
    pub first_page: Result<FirstPage, NotWal>,
}

/// Why a file is not a segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NotWal {
    /// No byte in it.
    #[error("the file is empty")]
    Empty,
    /// Too short for a page header.
    #[error("{0} bytes are too short for a WAL page header (24 bytes)")]
    Short(usize),
    /// Never written.
    #[error("only zeros where a WAL page header should be")]
    Zeros,
    /// Older than 9.5.
    #[error("page magic 0x{0:04X} is of a PostgreSQL before 9.5, whose WAL has another format")]
    TooOld(u16),
    /// Newer than the newest release that is supported.
    #[error("page magic 0x{0:04X} is newer than PostgreSQL {1}, the newest release known")]
    TooNew(u16, Cow<'static, str>),
    /// A development version.
    #[error(
        "page magic 0x{0:04X} is of a pre-release of PostgreSQL {1}, whose WAL may differ from the release's"
    )]
    PreRelease(u16, Cow<'static, str>),
    /// The other byte order.
    #[error(
        "page magic 0x{0:04X} is PostgreSQL {1} with its bytes swapped: WAL of a big-endian server \
         is not supported"
    )]
    ByteSwapped(u16, Cow<'static, str>),
    /// Anything else.
    #[error(
        "not PostgreSQL WAL: found 0x{0:04X} where a page magic (0xD087 to 0x{1:04X}) should be"
    )]
    Unknown(u16, u16),
    /// A WAL page, but not the first of a segment.
    #[error("begins in mid segment: a WAL page without the long header of a segment's first page")]
    MidSegment,
    /// Sizes that no server has.
    #[error(
        "the first page says {0}, which no server has (a 32-bit server's WAL is not supported)"
    )]
    Sizes(LongHeader),
    /// An archive of files; read as a stream.
    #[error("a tar archive")]
    Tar,
    /// Encrypted.
    #[error("encrypted ({}); decrypt it and pipe it in: {} | walstat -", .0.name(), .0.decrypt())]
    Encrypted(Encryption),
    /// A format that is not supported.
    #[error("{0} is not supported")]
    Unsupported(Cow<'static, str>),
    /// No file at all: a pipe, a directory, a link to nothing.
    #[error("is a {0}, expected a file")]
    NoFile(Cow<'static, str>),
    /// Cannot be read.
    #[error("{0}")]
    Io(String),
    /// Compressed, and cut off before the first page: what is being stored begins so.
    #[error("{0}")]
    Cut(String),
}

/// Looks at a file.
pub fn probe(path: &Path, ahead: &mut Ahead) -> io::Result<Probe> {
    let mut file = ahead.open(path, 0, LOOK_BYTES)?;
    let metadata = file.metadata(path)?;
    let (raw_bytes, modified) = (metadata.bytes, metadata.modified);
    let stamp = Some(Box::new(Stamp::of(&metadata)));
    let head = read_head(&mut file)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let raw = |first_page| Probe {
        source: Source::Raw(path.into()),
        compressed: false,
        raw_bytes: Some(raw_bytes),
        modified,
        stamp: stamp.clone(),
        first_page,
    };
    Ok(match recognise(&head, &name) {
        Content::Compressed(codec) => {
            let whole = Cursor::new(head).chain(file);
            Probe { stamp, ..probe_compressed(path, whole, codec, modified)? }
        }
        Content::Encrypted(encryption) => raw(Err(NotWal::Encrypted(encryption))),
        Content::Unsupported(format) => raw(Err(NotWal::Unsupported(format.into()))),
        Content::Tar => raw(Err(NotWal::Tar)),
        Content::Plain => raw(first_page(&head)),
    })
}

fn probe_compressed(
    path: &Path,
    file: impl Read,
    codec: Codec,
    modified: Option<SystemTime>,
) -> io::Result<Probe> {
    let head = codec.decoder(file).and_then(|mut decoder| read_head(&mut decoder));
    let first_page = match head {
        Ok(head) if recognise(&head, "") == Content::Tar => Err(NotWal::Tar),
        Ok(head) => first_page(&head),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => return Err(error),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(NotWal::Cut(error.to_string()))
        }
        Err(error) => Err(NotWal::Io(error.to_string())),
    };
    let source = Source::Compressed(path.into(), codec);
    Ok(Probe { source, compressed: true, raw_bytes: None, modified, stamp: None, first_page })
}

/// No text file is longer, a history, a label or a configuration: what lies behind is not read.
pub const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The text of a small file.
#[derive(Debug, Clone)]
pub struct Text {
    /// It, in whatever encoding.
    pub bytes: Vec<u8>,
    /// What the file is packed by.
    pub codec: Option<Codec>,
}

/// The text of a small file, which may be compressed.
pub fn read_text(path: &Path) -> io::Result<Text> {
    let mut file = storage::open_at(path, 0, LOOK_BYTES)?;
    let head = read_head(&mut file)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let content = recognise(&head, &name);
    let whole = Cursor::new(head).chain(file);
    let (reader, codec): (Box<dyn Read>, _) = match content {
        Content::Compressed(codec) => (codec.decoder(whole)?, Some(codec)),
        _ => (Box::new(whole), None),
    };
    let mut bytes = Vec::new();
    reader.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Text { bytes, codec })
}

impl Probe {
    /// A file that cannot be opened or read. If it can be read later, how it is compressed shows then.
    pub fn failed(path: &Path, reason: NotWal) -> Probe {
        let source = match reason {
            NotWal::Io(_) => Source::Listed(path.into()),
            _ => Source::Raw(path.into()),
        };
        Probe {
            source,
            compressed: false,
            raw_bytes: None,
            modified: None,
            stamp: None,
            first_page: Err(reason),
        }
    }

    /// Whether the file was only listed: what stands here is what its name says.
    pub fn is_presumed(&self) -> bool {
        matches!(self.source, Source::Listed(_)) && self.first_page.is_ok()
    }

    /// Whether the file is as long as several segments, one after the other.
    pub(crate) fn holds_several(&self, page: &FirstPage) -> bool {
        self.raw_bytes.is_some_and(|bytes| bytes > u64::from(page.long.segment_bytes))
    }
}

impl NotWal {
    /// What kind of thing a directory is called.
    pub(crate) const DIRECTORY: &str = "directory";

    /// Whether it may be there beside the segment of its name: a copy that cannot be read, encrypted or in
    /// an unsupported format; or a directory, as Synology's file systems have one for each file in `@eaDir`.
    pub(crate) fn may_be_beside_a_segment(&self) -> bool {
        match self {
            NotWal::NoFile(kind) => kind == NotWal::DIRECTORY,
            other => matches!(other, NotWal::Encrypted(_) | NotWal::Unsupported(_)),
        }
    }

    /// Whether no record can be in the file. A file whose first page is damaged may hold records on
    /// later pages, and one that was never written is normal.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            NotWal::Zeros
                | NotWal::Unknown(..)
                | NotWal::MidSegment
                | NotWal::Sizes(_)
                | NotWal::Short(_)
                | NotWal::Empty
                | NotWal::TooOld(_)
                | NotWal::TooNew(..)
                | NotWal::PreRelease(..)
                | NotWal::ByteSwapped(..)
                | NotWal::Io(_)
                | NotWal::Cut(_)
        )
    }
}

/// Judges the first bytes of a segment.
pub fn first_page(head: &[u8]) -> Result<FirstPage, NotWal> {
    if head.is_empty() {
        return Err(NotWal::Empty);
    }
    let Some(header) = PageHeader::parse(head) else { return Err(NotWal::Short(head.len())) };
    if head.iter().take(SHORT_HEADER_BYTES).all(|&b| b == 0) {
        return Err(NotWal::Zeros);
    }
    let magic = header.magic;
    match Magic::of(magic) {
        Magic::Known(_) => {}
        Magic::PreRelease(release) => return Err(NotWal::PreRelease(magic, release.into())),
        Magic::TooOld => return Err(NotWal::TooOld(magic)),
        Magic::TooNew => return Err(NotWal::TooNew(magic, Version::newest().name.into())),
        Magic::ByteSwapped(version) => return Err(NotWal::ByteSwapped(magic, version.name.into())),
        Magic::Unknown => return Err(NotWal::Unknown(magic, Version::newest().magic)),
    }
    if header.info & LONG_HEADER == 0 {
        return Err(NotWal::MidSegment);
    }
    match LongHeader::parse(head) {
        None => Err(NotWal::Short(head.len())),
        Some(long) if !long.is_plausible() => Err(NotWal::Sizes(long)),
        Some(long) => Ok(FirstPage { header, long }),
    }
}
