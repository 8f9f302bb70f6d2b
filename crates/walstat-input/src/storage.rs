//! Files, wherever they lie: on disk, or in an object store that is asked by URL. Who lists and opens them
//! does not know which. Knows nothing of WAL.
//!
//! Without the feature `cloud` only what lies on disk can be read, `file:///DIR` too.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use walstat_format::ordered::OrderBy;

#[cfg(not(feature = "cloud"))]
mod nowhere;
#[cfg(feature = "cloud")]
mod objects;

pub use elsewhere::Ahead;
#[cfg(not(feature = "cloud"))]
use nowhere as elsewhere;
#[cfg(feature = "cloud")]
use objects as elsewhere;

/// So many symbolic links are followed on one way, as Linux does (`MAXSYMLINKS`).
pub const LINKS_MAX: usize = 40;

/// How object stores are reached.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The server to ask instead of the provider's own, or of the one that the environment names.
    pub endpoint: Option<String>,
    /// So many requests are under way at once, at most [default: 8].
    pub connections: Option<NonZeroUsize>,
}

/// Says how object stores are reached, once a process and before the first is.
pub fn configure(options: Options) {
    elsewhere::configure(options);
}

/// A new reading of these paths begins: all stores are asked again, also those from which nothing was had for
/// too long, and what was listed before is forgotten.
pub(super) fn begin(paths: &[PathBuf]) {
    elsewhere::begin(paths);
}

/// Why the store that a path lies in is not asked any more: nothing was had from it for too long. What is
/// told of its objects since then says nothing of them.
pub(crate) fn given_up(path: &Path) -> Option<io::Error> {
    let reason = if is_elsewhere(path) { elsewhere::given_up(path) } else { None };
    reason.map(io::Error::other)
}

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file, or an object.
    File,
    /// A directory, or what the keys of objects go on after.
    Directory,
    /// Neither, by what it is called.
    Other(&'static str),
}

/// What is known of a file before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: Kind,
    /// How long it is.
    pub bytes: u64,
    /// When it was last written to.
    pub modified: Option<SystemTime>,
    /// When anything of it was last changed: on disk, where the system says so.
    pub changed: Option<Changed>,
    /// An object's ETag, which is another one for other bytes.
    pub tag: Option<String>,
}

/// When anything of a file on disk was last changed, its times too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds.
    pub nanos: i64,
    /// The number of the file.
    pub inode: u64,
}

/// The bytes of a file, being read.
#[derive(Debug)]
pub enum File {
    /// On disk.
    Disk(fs::File),
    /// In an object store.
    Elsewhere(elsewhere::Body),
}

const SCHEMES: [&str; 3] = ["s3://", "gs://", "az://"];
const FILE: &str = "file://";

/// Whether a path is the URL of what lies in an object store.
pub fn is_elsewhere(path: &Path) -> bool {
    path.to_str().is_some_and(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}

/// A path as messages have it, which end in logs and mails: a URL without user, password and query, in which
/// keys and signatures are.
pub(super) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let url = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
    let Some((scheme, rest)) = url.filter(|_| !text.starts_with(FILE)) else { return text };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    let host_bytes = rest.find('/').unwrap_or(rest.len());
    let host = rest.get(..host_bytes).and_then(|host| host.rfind('@'));
    format!("{scheme}://{}", rest.get(host.map_or(0, |at| at + 1)..).unwrap_or_default())
}

/// Whether a path is a URL of any of these kinds.
pub fn is_url(path: &Path) -> bool {
    is_elsewhere(path) || path.to_str().is_some_and(|text| text.starts_with(FILE))
}

/// The path on disk of a URL that names one; any other path as it is.
pub(crate) fn on_disk(path: &Path) -> Cow<'_, Path> {
    let rest = path.to_str().and_then(|text| text.strip_prefix(FILE));
    match rest.map(|rest| rest.strip_prefix("localhost").unwrap_or(rest)) {
        Some(rest) if rest.starts_with('/') => Cow::Owned(PathBuf::from(rest)),
        _ => Cow::Borrowed(path),
    }
}

/// What lies at a path.
///
/// # Errors
///
/// When nothing does, or it cannot be told.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    if is_elsewhere(path) { elsewhere::metadata(path) } else { of_disk(&on_disk(path)) }
}

fn of_disk(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path).map(|metadata| Metadata::from(&metadata))
}

impl From<&fs::Metadata> for Metadata {
    fn from(metadata: &fs::Metadata) -> Metadata {
        let kind = match () {
            () if metadata.is_dir() => Kind::Directory,
            () if metadata.is_file() => Kind::File,
            () => Kind::Other(name_of_kind(metadata)),
        };
        let (bytes, modified) = (metadata.len(), metadata.modified().ok());
        Metadata { kind, bytes, modified, changed: changed(metadata), tag: None }
    }
}

#[cfg(unix)]
fn changed(metadata: &fs::Metadata) -> Option<Changed> {
    use std::os::unix::fs::MetadataExt;
    let (seconds, nanos) = (metadata.ctime(), metadata.ctime_nsec());
    Some(Changed { seconds, nanos, inode: metadata.ino() })
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> Option<Changed> {
    None
}

/// Whether a directory lies at a path.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.kind == Kind::Directory)
}

/// Whether a file lies at a path.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.kind == Kind::File)
}

/// Whether anything lies at a path.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// When a file was last written to; of an object, as it was listed.
pub fn modified(path: &Path) -> Option<SystemTime> {
    if is_elsewhere(path) {
        elsewhere::modified(path)
    } else {
        fs::metadata(on_disk(path)).and_then(|metadata| metadata.modified()).ok()
    }
}

/// Something in a directory: its name, and what it is as far as that can be told.
pub type Entry = (OsString, io::Result<Metadata>);

/// What lies in a directory, by name.
///
/// # Errors
///
/// When it cannot be listed.
pub fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    if is_elsewhere(path) {
        return elsewhere::entries(path);
    }
    let path = on_disk(path);
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(&path)?.collect::<io::Result<_>>()?;
    entries.order_by_key(fs::DirEntry::file_name);
    let named = entries.into_iter().map(|entry| (entry.file_name(), of_disk(&entry.path())));
    Ok(named.collect())
}

/// What identifies a directory, whichever path led to it: device and number, or else a path.
pub type Identity = (u64, u64, PathBuf);

/// What identifies this directory.
///
/// # Errors
/// When there is none.
pub fn identity(path: &Path) -> io::Result<Identity> {
    if is_elsewhere(path) {
        return Ok((0, 0, path.to_owned()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        Ok((metadata.dev(), metadata.ino(), PathBuf::new()))
    }
    #[cfg(not(unix))]
    fs::canonicalize(path).map(|path| (0, 0, path))
}

/// Opens a file.
///
/// # Errors
///
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    open_at(path, 0, u64::MAX)
}

/// Opens a file at byte `from`; so many bytes of it are `wanted`, as far as is known.
///
/// # Errors
///
/// When it cannot be opened.
pub fn open_at(path: &Path, from: u64, wanted: u64) -> io::Result<File> {
    if is_elsewhere(path) {
        return elsewhere::open(path, from, wanted).map(File::Elsewhere);
    }
    let mut file = fs::File::open(on_disk(path))?;
    if from > 0 {
        io::Seek::seek(&mut file, io::SeekFrom::Start(from))?;
    }
    Ok(File::Disk(file))
}

impl File {
    /// What is known of it; `path`: what it was opened by.
    ///
    /// # Errors
    ///
    /// When the system does not tell.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self {
            File::Disk(file) => file.metadata().map(|metadata| Metadata::from(&metadata)),
            File::Elsewhere(_) => elsewhere::metadata(path),
        }
    }
}

impl Read for File {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            File::Disk(file) => file.read(out),
            File::Elsewhere(body) => body.read(out),
        }
    }
}

#[cfg(unix)]
fn name_of_kind(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match () {
        () if kind.is_fifo() => "named pipe (to read it: walstat - < PIPE)",
        () if kind.is_char_device() => "character device",
        () if kind.is_block_device() => "block device",
        () if kind.is_socket() => "socket",
        () => "special file",
    }
}

#[cfg(not(unix))]
fn name_of_kind(_: &fs::Metadata) -> &'static str {
    "special file"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_is_secret_in_it() {
        for (path, want) in [
            ("s3://user:secret@bucket/wal/0?secret=1", "s3://bucket/wal/0"),
            ("s3://user:sec@ret@bucket", "s3://bucket"),
            ("az://container/p?sig=secret", "az://container/p"),
            ("https://user@host/a@b?c=d/e@f", "https://host/a@b"),
            ("s3://bucket/wal@2", "s3://bucket/wal@2"),
            ("a b://x@y?z", "a b://x@y?z"),
            ("file:///wal/a?b@c", "file:///wal/a?b@c"),
            ("wal/a?b@c", "wal/a?b@c"),
        ] {
            assert_eq!(shown(Path::new(path)), want);
        }
    }

    #[test]
    fn the_url_of_a_directory_is_its_path() {
        let path = |text: &str| on_disk(Path::new(text)).display().to_string();
        assert_eq!(path("file:///var/wal"), "/var/wal");
        assert_eq!(path("file://localhost/var/wal"), "/var/wal");
        assert_eq!(path("file://host/var"), "file://host/var");
        assert_eq!(path("wal"), "wal");
        assert_eq!(path("s3://bucket/wal"), "s3://bucket/wal");
    }
}
