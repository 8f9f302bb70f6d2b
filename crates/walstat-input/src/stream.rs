//! What can only be read from front to back: tars and pipes, compressed or not, segments one after the
//! other. Nothing is unpacked to disk; items come in the order in which they lie.

mod links;

use super::codec::Codec;
use super::inherited::{STANDARD_INPUT, is_read_once};
use super::label;
use super::names::{FileName, SegmentFile, backup_start};
use super::names::{file_name, is_called_like_a_tar};
use super::probe::{FirstPage, NotWal, TEXT_BYTES_MAX, Text, first_page};
use super::recognise::{Content, read_head, recognise};
use super::storage;
use super::tar::{Kind, Member, for_each_member};
use super::unpacking::decoder;
use links::{Links, READ_AS_MAX, Taken};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// One thing in a stream.
pub enum Item<'a> {
    /// A segment, or a file with a segment's name.
    Segment(StreamSegment<'a>),
    /// The history of a timeline.
    History(StreamHistory),
    /// The history of a base backup, by its path in the tar: its text or why it cannot be read.
    BackupHistory(PathBuf, io::Result<Vec<u8>>),
    /// Something that was expected to be WAL and is not.
    NotWal(String, NotWal),
    /// Another file, by its path in the tar.
    Other(PathBuf),
    /// A directory in a tar.
    Directory(PathBuf),
    /// Something in a tar with the name of a segment or of a history that is no file.
    NoFile(PathBuf, Cow<'static, str>),
    /// Something that ends too early or cannot be read; its name and the error.
    Broken(String, io::Error),
}

impl Item<'_> {
    /// The same in a tar that lies in another one.
    fn within(self, tar: &Path) -> Self {
        let within = |path: PathBuf| tar.join(path);
        match self {
            Item::Segment(it) => Item::Segment(StreamSegment { path: within(it.path), ..it }),
            Item::History(it) => Item::History(StreamHistory { path: within(it.path), ..it }),
            Item::BackupHistory(path, text) => Item::BackupHistory(within(path), text),
            Item::Other(path) => Item::Other(within(path)),
            Item::Directory(path) => Item::Directory(within(path)),
            Item::NoFile(path, kind) => Item::NoFile(within(path), kind),
            Item::NotWal(..) | Item::Broken(..) => self,
        }
    }
}

/// A segment in a stream.
pub struct StreamSegment<'a> {
    /// The path of a tar's member; else a name to show.
    pub path: PathBuf,
    /// What its name says, if it has one.
    pub name: Option<SegmentFile>,
    /// Whether the member itself is compressed.
    pub compressed: bool,
    /// How, if it can be decoded.
    pub codec: Option<Codec>,
    /// How long it is, if that is known and it is not compressed.
    pub raw_bytes: Option<u64>,
    /// Its first page.
    pub first_page: Result<FirstPage, NotWal>,
    /// Its bytes, from the first one on. Not more than a segment has, if it has no name.
    pub bytes: &'a mut dyn Read,
    /// Whether a member of this path came before in the same tar: `tar -x` leaves the last one.
    pub is_again: bool,
}

/// The history of a timeline in a tar.
pub struct StreamHistory {
    /// The timeline that it is called after.
    pub timeline: u32,
    /// The path of the member.
    pub path: PathBuf,
    /// Its text, or why it cannot be read.
    pub text: io::Result<Text>,
    /// As that of [`StreamSegment`].
    pub is_again: bool,
}

/// Takes an item; says whether more are wanted.
pub type Visit<'v> = dyn FnMut(Item<'_>) -> ControlFlow<()> + 'v;

/// How deep things may be packed: a compressed file in a tar in a compressed file.
const DEPTH_MAX: usize = 4;
/// How much is read after a tar's end mark, at most.
const TRAILER_BYTES_MAX: u64 = 16 << 20;

/// Shows everything in the stream at `path` to `visit`.
pub fn for_each_item(path: &Path, visit: &mut Visit<'_>) {
    let mut links = Links::default();
    if let Err(error) = walk_path(path, &mut links, visit) {
        let _ = visit(Item::Broken(path.display().to_string(), error));
    }
    links.resolve();
    for _ in 0..READ_AS_MAX {
        if is_read_once(path) || !links.reads_again() {
            break;
        }
        // What is wrong with the others was said the first time.
        let _ = walk_path(path, &mut links, &mut |item| match item {
            Item::Segment(_) | Item::History(_) => visit(item),
            _ => ControlFlow::Continue(()),
        });
    }
    links.tell_rest(visit);
}

fn walk_path(path: &Path, links: &mut Links, visit: &mut Visit<'_>) -> io::Result<ControlFlow<()>> {
    if path == Path::new(STANDARD_INPUT) {
        return walk(io::stdin().lock(), STANDARD_INPUT, DEPTH_MAX, links, visit);
    }
    walk(storage::open(path)?, &file_name(path), DEPTH_MAX, links, visit)
}

fn walk<'r>(
    mut reader: impl Read + 'r,
    name: &str,
    depth: usize,
    links: &mut Links,
    visit: &mut Visit<'_>,
) -> io::Result<ControlFlow<()>> {
    let head = read_head(&mut reader)?;
    let content = recognise(&head, name);
    let reader = Cursor::new(head.clone()).chain(reader);
    match content {
        Content::Compressed(codec) if depth > 0 => {
            walk(codec.decoder(reader)?, without_suffix(name), depth - 1, links, visit)
        }
        Content::Tar if depth > 0 => members(reader, name, depth - 1, links, visit),
        Content::Plain => segments(reader, name, visit),
        other => Ok(visit(Item::NotWal(name.to_owned(), not_wal(other)))),
    }
}

fn not_wal(content: Content) -> NotWal {
    match content {
        Content::Encrypted(encryption) => NotWal::Encrypted(encryption),
        Content::Unsupported(format) => NotWal::Unsupported(format.into()),
        _ => NotWal::Unsupported("an archive inside of archives".into()),
    }
}

fn without_suffix(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(rest, _)| rest)
}

/// The members of a tar: segments and histories, wherever they lie in it.
fn members(
    mut reader: impl Read,
    name: &str,
    depth: usize,
    links: &mut Links,
    visit: &mut Visit<'_>,
) -> io::Result<ControlFlow<()>> {
    let mut flow = ControlFlow::Continue(());
    let mut seen = BTreeSet::new();
    for_each_member(&mut reader, |member| {
        let is_again = has_come(&member, &mut seen);
        flow = take_member(member, is_again, depth, links, visit)?;
        Ok(flow)
    })?;
    // Reading on also checks the codec's last checksum, which comes after the end mark.
    if flow.is_continue() && another_follows(reader.take(TRAILER_BYTES_MAX))? {
        let error = io::Error::new(io::ErrorKind::InvalidData, "tar: another one after its end");
        flow = visit(Item::Broken(name.to_owned(), error));
    }
    Ok(flow)
}

/// Whether a segment or a history of this path came before, and takes note of it.
fn has_come(member: &Member<'_>, seen: &mut BTreeSet<PathBuf>) -> bool {
    let is_wal = FileName::parse(&file_name(&member.path)) != FileName::Other;
    is_wal && member.kind == Kind::File && !seen.insert(without_dots(&member.path))
}

/// A member's path without single dots: `./pg_wal` is `pg_wal`.
pub fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|part| part.as_os_str() != ".").collect()
}

/// Reads to the end of what follows a tar, and says whether that is another one: a second tar written
/// after the first is read by no tool.
fn another_follows(mut reader: impl Read) -> io::Result<bool> {
    const MAGIC: std::ops::Range<usize> = 257..262;
    let mut found = false;
    loop {
        let mut block = Vec::with_capacity(512);
        if reader.by_ref().take(512).read_to_end(&mut block)? == 0 {
            return Ok(found);
        }
        found |= block.get(MAGIC) == Some(b"ustar");
    }
}

fn take_member(
    member: Member<'_>,
    is_again: bool,
    depth: usize,
    links: &mut Links,
    visit: &mut Visit<'_>,
) -> io::Result<ControlFlow<()>> {
    let file = file_name(&member.path);
    let is_file = member.kind == Kind::File && FileName::parse(&file) == FileName::Other;
    if depth > 0 && is_file && is_called_like_a_tar(&file) {
        let tar = member.path;
        let walked = walk(member.bytes, &file, depth, links, &mut |item| visit(item.within(&tar)));
        return Ok(walked.unwrap_or_else(|error| visit(Item::Broken(file, error))));
    }
    let member = match links.take(member) {
        Taken::Read(member) => member,
        Taken::Passed => return Ok(ControlFlow::Continue(())),
        Taken::Refused(link, kind) => return Ok(visit(Item::NoFile(link, kind))),
    };
    let file = file_name(&member.path);
    let name = FileName::parse(&file);
    let no_file = match (&member.kind, &name) {
        (Kind::File, _) => None,
        (Kind::Directory, FileName::Segment(_)) => Some(NotWal::DIRECTORY),
        (Kind::Directory, _) => return Ok(visit(Item::Directory(member.path))),
        (_, FileName::Segment(_) | FileName::History(_)) => Some("pipe or device"),
        (_, FileName::Other) => return Ok(ControlFlow::Continue(())),
    };
    if let Some(kind) = no_file {
        return Ok(visit(Item::NoFile(member.path, kind.into())));
    }
    match name {
        FileName::Other if is_data(&member.path) => Ok(ControlFlow::Continue(())),
        FileName::Other if backup_start(&file).is_some() => {
            let text = decoded_text(member.bytes, &file, depth, label::MAX_BYTES);
            Ok(visit(Item::BackupHistory(member.path, text.map(|text| text.bytes))))
        }
        FileName::Other => Ok(visit(Item::Other(member.path))),
        FileName::History(timeline) => {
            let text = decoded_text(member.bytes, &file, depth, TEXT_BYTES_MAX);
            let path = member.path;
            Ok(visit(Item::History(StreamHistory { timeline, path, text, is_again })))
        }
        FileName::Segment(name) => Ok(take_segment(member, name, is_again, depth, visit)),
    }
}

/// A member that cannot be read does not stop the others from being read.
fn take_segment(
    member: Member<'_>,
    name: SegmentFile,
    is_again: bool,
    depth: usize,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let opened =
        decoded(member.bytes, &file_name(&member.path), depth).and_then(|(codec, mut reader)| {
            let head = read_head(&mut reader)?;
            Ok((codec, head, reader))
        });
    let (path, size) = (member.path, member.size);
    let name = Some(name);
    let (codec, head, reader) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let first_page = Err(NotWal::Io(error.to_string()));
            let mut bytes = Failing(Some(error));
            return visit(Item::Segment(StreamSegment {
                path,
                name,
                compressed: true,
                codec: None,
                raw_bytes: None,
                first_page,
                bytes: &mut bytes,
                is_again,
            }));
        }
    };
    let first_page = match recognise(&head, "") {
        Content::Plain => first_page(&head),
        other => Err(not_wal(other)),
    };
    let compressed = codec.is_some();
    visit(Item::Segment(StreamSegment {
        path,
        name,
        compressed,
        codec,
        raw_bytes: (!compressed).then_some(size),
        first_page,
        bytes: &mut Cursor::new(head).chain(reader),
        is_again,
    }))
}

/// A reader that fails with the error of a member that cannot be read.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Directories of a data directory that hold anything but WAL, of all releases.
const DATA_DIRECTORIES: [&str; 18] = [
    "base",
    "global",
    "pg_clog",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_log",
    "pg_logical",
    "pg_multixact",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_xact",
];

/// Whether a file lies in one of them: of a base backup there are thousands.
fn is_data(path: &Path) -> bool {
    let mut directories = path.parent().into_iter().flat_map(Path::iter);
    directories.any(|name| name.to_str().is_some_and(|name| DATA_DIRECTORIES.contains(&name)))
}

/// The text of a member; or why it cannot be read.
fn decoded_text(bytes: &mut dyn Read, name: &str, depth: usize, most: u64) -> io::Result<Text> {
    let (codec, reader) = decoded(bytes, name, depth)?;
    let mut bytes = Vec::new();
    reader.take(most).read_to_end(&mut bytes)?;
    Ok(Text { bytes, codec })
}

/// The plain bytes of a member, and how it is compressed.
fn decoded<'m>(
    bytes: &'m mut dyn Read,
    name: &str,
    depth: usize,
) -> io::Result<(Option<Codec>, Box<dyn Read + 'm>)> {
    let mut bytes = bytes;
    let head = read_head(&mut bytes)?;
    let content = recognise(&head, name);
    let reader = Cursor::new(head).chain(bytes);
    match content {
        Content::Compressed(codec) if depth > 0 => Ok((Some(codec), decoder(codec, name, reader)?)),
        _ => Ok((None, Box::new(reader))),
    }
}

/// Segments one after the other; the first one says how long each is.
fn segments(
    mut reader: impl Read,
    name: &str,
    visit: &mut Visit<'_>,
) -> io::Result<ControlFlow<()>> {
    let mut length = None;
    loop {
        let head = read_head(&mut reader)?;
        if head.is_empty() && length.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let first_page = first_page(&head);
        let said = match &first_page {
            Ok(page) => u64::from(page.long.segment_bytes),
            Err(reason) if length.is_none() && (reason.is_final() || head.is_empty()) => {
                return Ok(visit(Item::NotWal(name.to_owned(), reason.clone())));
            }
            // Nothing says where the next one begins: one segment, of which later pages may be whole.
            Err(_) => u64::MAX,
        };
        let length = *length.get_or_insert(said);
        let mut bytes = Cursor::new(head).chain(&mut reader).take(length);
        let segment = StreamSegment {
            path: PathBuf::from(name),
            name: None,
            compressed: false,
            codec: None,
            raw_bytes: None,
            first_page,
            bytes: &mut bytes,
            is_again: false,
        };
        if visit(Item::Segment(segment)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        io::copy(&mut bytes, &mut io::sink())?;
    }
}
