//! What can only be read from front to back: tars and pipes, compressed or not, segments one
//! behind the other. Nothing is unpacked to disk; the items come as they lie.

use super::discover::{STANDARD_INPUT, file_name};
use super::names::{FileName, SegmentFile};
use super::plan::InputError;
use super::probe::{FirstPage, NotWal, first_page, read_head};
use super::recognise::{Content, recognise};
use super::tar::{Member, for_each_member};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// One thing in a stream.
pub enum Item<'a> {
    /// A segment, or what is called like one.
    Segment(StreamSegment<'a>),
    /// The history of a timeline: its text, and the file's name.
    History(u32, String, String),
    /// Something that was expected to be WAL and is not.
    NotWal(String, NotWal),
    /// Another file.
    Other(String),
    /// Something that ends before it should.
    Cut(String, String),
}

/// A segment in a stream.
pub struct StreamSegment<'a> {
    /// What to call it.
    pub file: String,
    /// What its name says, if it has one.
    pub name: Option<SegmentFile>,
    /// Its first page.
    pub first_page: Result<FirstPage, NotWal>,
    /// Its bytes, from the first one on. Not more than a segment has, if it has no name.
    pub bytes: &'a mut dyn Read,
}

/// Takes an item; says whether more are wanted.
pub type Visit<'v> = dyn FnMut(Item<'_>) -> ControlFlow<()> + 'v;

/// A tar in a compressed file in a tar is as far as it goes.
const DEPTH_MAX: usize = 4;
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Shows everything in the stream at `path` to `visit`.
pub fn for_each_item(path: &Path, visit: &mut Visit<'_>) -> Result<(), InputError> {
    let result = match path == Path::new(STANDARD_INPUT) {
        true => walk(io::stdin().lock(), STANDARD_INPUT, DEPTH_MAX, visit),
        false => File::open(path).and_then(|file| walk(file, &file_name(path), DEPTH_MAX, visit)),
    };
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let _ = visit(Item::Cut(path.display().to_string(), error.to_string()));
            Ok(())
        }
        Err(source) => Err(InputError::Io { path: path.to_owned(), source }),
    }
}

fn walk<'r>(
    mut reader: impl Read + 'r,
    name: &str,
    depth: usize,
    visit: &mut Visit<'_>,
) -> io::Result<ControlFlow<()>> {
    let head = read_head(&mut reader)?;
    let content = recognise(&head, name);
    let reader = Cursor::new(head.clone()).chain(reader);
    match content {
        Content::Compressed(codec) if depth > 0 => {
            walk(codec.decoder(reader)?, without_suffix(name), depth - 1, visit)
        }
        Content::Tar if depth > 0 => members(reader, depth - 1, visit),
        Content::Plain => segments(reader, name, visit),
        other => Ok(visit(Item::NotWal(name.to_owned(), not_wal(other)))),
    }
}

fn not_wal(content: Content) -> NotWal {
    match content {
        Content::Encrypted(encryption) => NotWal::Encrypted(encryption),
        Content::Unsupported(format) => NotWal::Unsupported(format),
        _ => NotWal::Unsupported("an archive inside of archives"),
    }
}

fn without_suffix(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(rest, _)| rest)
}

/// The members of a tar: segments and histories, wherever they lie in it.
fn members(reader: impl Read, depth: usize, visit: &mut Visit<'_>) -> io::Result<ControlFlow<()>> {
    let mut flow = ControlFlow::Continue(());
    for_each_member(reader, |member| {
        flow = take_member(member, depth, visit)?;
        Ok(flow)
    })?;
    Ok(flow)
}

fn take_member(
    member: Member<'_>,
    depth: usize,
    visit: &mut Visit<'_>,
) -> io::Result<ControlFlow<()>> {
    let file = file_name(&member.path);
    match FileName::parse(&file) {
        FileName::Other if is_data(&member.path) => Ok(ControlFlow::Continue(())),
        FileName::Other => Ok(visit(Item::Other(file))),
        FileName::History(timeline) => {
            let text = decoded(member.bytes, &file, depth).and_then(text_of);
            Ok(match text {
                Ok(text) => visit(Item::History(timeline, text, file)),
                Err(error) => visit(broken(file, &error)),
            })
        }
        FileName::Segment(name) => {
            // What is wrong with a member is its own affair: the others stand.
            let opened = decoded(member.bytes, &file, depth).and_then(|mut reader| {
                let head = read_head(&mut reader)?;
                Ok((head, reader))
            });
            let (head, reader) = match opened {
                Ok(opened) => opened,
                Err(error) => return Ok(visit(broken(file, &error))),
            };
            let first_page = match recognise(&head, "") {
                Content::Plain => first_page(&head),
                other => Err(not_wal(other)),
            };
            let mut bytes = Cursor::new(head).chain(reader);
            let name = Some(name);
            Ok(visit(Item::Segment(StreamSegment { file, name, first_page, bytes: &mut bytes })))
        }
    }
}

/// Whether a file lies where a data directory keeps anything but WAL: of a base backup there are
/// thousands.
fn is_data(path: &Path) -> bool {
    let directories = path.parent().into_iter().flat_map(Path::iter);
    directories.filter_map(OsStr::to_str).any(|name| match name {
        "pg_wal" | "pg_xlog" => false,
        "base" | "global" => true,
        _ => name.starts_with("pg_"),
    })
}

fn text_of(reader: Box<dyn Read + '_>) -> io::Result<String> {
    let mut text = Vec::new();
    reader.take(TEXT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn broken(file: String, error: &io::Error) -> Item<'static> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Item::Cut(file, error.to_string()),
        _ => Item::NotWal(file, NotWal::Io(error.to_string())),
    }
}

/// The plain bytes of a member.
fn decoded<'m>(
    bytes: &'m mut dyn Read,
    name: &str,
    depth: usize,
) -> io::Result<Box<dyn Read + 'm>> {
    let mut bytes = bytes;
    let head = read_head(&mut bytes)?;
    let content = recognise(&head, name);
    let reader = Cursor::new(head).chain(bytes);
    match content {
        Content::Compressed(codec) if depth > 0 => codec.decoder(reader),
        _ => Ok(Box::new(reader)),
    }
}

/// Segments one behind the other; the first one says how long each is.
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
        let said = first_page.as_ref().ok().map(|page| u64::from(page.long.segment_bytes));
        length = length.or(said);
        let Some(length) = length else {
            let reason = first_page.err().unwrap_or(NotWal::Empty);
            return Ok(visit(Item::NotWal(name.to_owned(), reason)));
        };
        let mut bytes = Cursor::new(head).chain(&mut reader).take(length);
        let file = name.to_owned();
        let segment = StreamSegment { file, name: None, first_page, bytes: &mut bytes };
        if visit(Item::Segment(segment)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        io::copy(&mut bytes, &mut io::sink())?;
    }
}
