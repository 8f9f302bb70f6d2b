//! The members of a tar, in the order they stand in, as they come from a pipe
//! or a decoder: nothing is looked up by seeking and nothing is unpacked.
//! Not for names or kinds of files: that a member is a segment, and which, is
//! judged by the caller.
#![forbid(unsafe_code)]

mod global;
mod sparse;

use global::Global;
use sparse::Sparse;
use std::cell::Cell;
use std::io::{self, Cursor, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What may be read between two members: headers, long names, extended
/// headers. A real tar has a few kilobytes there; the limit keeps a hostile
/// one from claiming a name of gigabytes, which would be held in memory.
const HEADERS_MAX: u64 = 1 << 20;
const BLOCK: u64 = 512;

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// Another name of an earlier member, whose content it has.
    HardLink(PathBuf),
    /// A symbolic link with what it says, from the directory in which it lies.
    Symlink(PathBuf),
    /// A pipe, a device: it has no content of its own.
    Special,
}

/// A file in a tar, or something in its place.
pub struct Member<'a> {
    /// As the tar has it, long names included.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// In bytes.
    pub size: u64,
    /// The content. Ends after `size` bytes; before that, the end of the tar is
    /// [`ErrorKind::UnexpectedEof`].
    pub bytes: &'a mut dyn Read,
}

/// Shows each member of a tar to `visit`, which need not read its bytes, until
/// there are no more or `visit` breaks.
///
/// # Errors
///
/// [`ErrorKind::UnexpectedEof`] if the tar ends before its end mark,
/// [`ErrorKind::InvalidData`] if a header is damaged; otherwise what the reader
/// or `visit` returned.
pub fn for_each_member(
    reader: impl Read,
    mut visit: impl FnMut(Member<'_>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let state = ReadState::default();
    state.allowed.set(HEADERS_MAX);
    let mut reader = TrackedReader { reader, state: &state };
    let begin = without_label(&mut reader)?;
    let mut archive = tar::Archive::new(Cursor::new(begin).chain(reader));
    let mut entries = archive.entries().map_err(|error| state.judge(error))?;
    let mut global = Global::default();
    loop {
        let Some(entry) = entries.next() else {
            return state.check_end_mark();
        };
        let mut entry = entry.map_err(|error| state.judge(error))?;
        let kind = entry.header().entry_type();
        let stored = if kind.is_gnu_sparse() {
            entry.header().entry_size().map_err(|error| state.judge(error))?
        } else {
            entry.size()
        };
        let after =
            (state.position.get()).saturating_add(stored.div_ceil(BLOCK).saturating_mul(BLOCK));
        global.look_at(&mut entry).map_err(|error| state.judge(error))?;
        if let Some(kind) = kind_of(kind, entry.path_bytes().ends_with(b"/")) {
            let path = entry.path().map_err(|error| state.judge(error))?.into_owned();
            let target = entry.link_name().map_err(|error| state.judge(error))?;
            let kind = match (kind, target) {
                (Kind::HardLink(_), Some(target)) => Kind::HardLink(target.into_owned()),
                (Kind::Symlink(_), Some(target)) => Kind::Symlink(target.into_owned()),
                (kind, _) => kind,
            };
            let holes = match kind {
                Kind::File => entry.pax_extensions().map_err(|error| state.judge(error))?,
                _ => None,
            };
            let holes = holes.and_then(Sparse::of);
            let size = entry.size();
            state.allowed.set(u64::MAX);
            let mut bytes = Bytes { entry: &mut entry, left: size };
            let flow = match holes {
                None => visit(Member { path, kind, size, bytes: &mut bytes }),
                Some(mut holes) => {
                    let (path, size) = (holes.path.take().unwrap_or(path), holes.size);
                    let bytes = &mut holes.filled(&mut bytes, stored);
                    visit(Member { path, kind, size, bytes })
                }
            };
            if flow?.is_break() {
                return Ok(());
            }
        }
        let unread = after.saturating_sub(state.position.get());
        state.allowed.set(unread.saturating_add(HEADERS_MAX));
    }
}

/// The first block; nothing if it is a volume's label (`tar -V`), a header without a member and often without
/// a size, which the crate wants of every header.
fn without_label(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut block = Vec::with_capacity(BLOCK as usize);
    reader.take(BLOCK).read_to_end(&mut block)?;
    if let Ok(bytes) = <[u8; BLOCK as usize]>::try_from(block.as_slice()) {
        let header = tar::Header::from_byte_slice(&bytes);
        let mut summed = header.clone();
        summed.set_cksum();
        let is_whole = header.cksum().ok() == summed.cksum().ok();
        if header.entry_type().as_byte() == b'V' && is_whole {
            block.clear();
        }
    }
    Ok(block)
}

/// What a member is to us; `None`: a header without a member of its own. Old tars know a directory
/// by the end of its name.
fn kind_of(kind: tar::EntryType, named_directory: bool) -> Option<Kind> {
    match kind {
        tar::EntryType::Directory => Some(Kind::Directory),
        _ if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() => {
            Some(if named_directory { Kind::Directory } else { Kind::File })
        }
        tar::EntryType::Link => Some(Kind::HardLink(PathBuf::new())),
        tar::EntryType::Symlink => Some(Kind::Symlink(PathBuf::new())),
        tar::EntryType::Char | tar::EntryType::Block | tar::EntryType::Fifo => Some(Kind::Special),
        _ => None,
    }
}

/// What is known of the reader below the tar crate, whose own errors don't
/// tell a short tar from a damaged one.
#[derive(Default)]
struct ReadState {
    position: Cell<u64>,
    /// Bytes that may still be read before the next member.
    allowed: Cell<u64>,
    ended: Cell<bool>,
    failed: Cell<bool>,
}

impl ReadState {
    fn judge(&self, error: io::Error) -> io::Error {
        if self.failed.get() {
            error
        } else if self.ended.get() {
            cut_off()
        } else {
            io::Error::new(ErrorKind::InvalidData, format!("tar: {error}"))
        }
    }

    /// Two blocks of zeros end a tar. The tar crate is content with one, and with none.
    fn check_end_mark(&self) -> io::Result<()> {
        if self.ended.get() { Err(cut_off()) } else { Ok(()) }
    }
}

fn cut_off() -> io::Error {
    let text = "tar: the input ends before the end of the archive";
    io::Error::new(ErrorKind::UnexpectedEof, text)
}

struct TrackedReader<'a, R> {
    reader: R,
    state: &'a ReadState,
}

impl<R: Read> Read for TrackedReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let state = self.state;
        if state.allowed.get() == 0 {
            return Err(io::Error::other("headers of more than 1 MiB before a member"));
        }
        let most = usize::try_from(state.allowed.get()).unwrap_or(usize::MAX);
        let len = out.len().min(most);
        let read = self.reader.read(&mut out[..len]);
        let count = match &read {
            Ok(count) => *count,
            Err(error) => {
                state.failed.set(error.kind() != ErrorKind::Interrupted);
                0
            }
        };
        state.ended.set(matches!(read, Ok(0)) && len > 0);
        state.position.set(state.position.get() + count as u64);
        state.allowed.set(state.allowed.get() - count as u64);
        read
    }
}

/// A member's bytes, which know how many they should be.
struct Bytes<'a, R: Read> {
    entry: &'a mut R,
    left: u64,
}

impl<R: Read> Read for Bytes<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.entry.read(out)?;
        if count == 0 && self.left > 0 && !out.is_empty() {
            return Err(cut_off());
        }
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: &str = "pg_wal/000000010000000000000001";

    fn sample(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/codecs/");
        std::fs::read(format!("{folder}{name}")).expect(name)
    }

    fn text() -> Vec<u8> {
        let numbers: String = (1..=800).map(|number| format!("{number}\n")).collect();
        numbers.into_bytes()[..3072].to_vec()
    }

    type Members = Vec<(String, Vec<u8>)>;

    fn walk(reader: impl Read) -> (Members, io::Result<()>) {
        let mut members = Vec::new();
        let result = for_each_member(reader, |member| {
            if member.kind != Kind::File {
                return Ok(ControlFlow::Continue(()));
            }
            let mut bytes = Vec::new();
            let result = member.bytes.read_to_end(&mut bytes);
            assert!(result.is_err() || bytes.len() as u64 == member.size);
            members.push((member.path.display().to_string(), bytes));
            result.map(|_| ControlFlow::Continue(()))
        });
        (members, result)
    }

    #[test]
    fn plain_files_are_shown_with_their_long_names() {
        let mut expected = vec![(SEGMENT.into(), text()), ("pg_wal/empty".into(), Vec::new())];
        for name in ["v7.tar", "ustar.tar"] {
            let (members, result) = walk(sample(name).as_slice());
            result.expect(name);
            assert!(members == expected, "{name}");
        }
        let long = "x".repeat(120);
        expected.push((format!("pg_wal/{long}/{long}"), text()));
        for name in ["gnu.tar", "pax.tar"] {
            let (members, result) = walk(sample(name).as_slice());
            result.expect(name);
            assert!(members == expected, "{name}");
        }
    }

    #[test]
    fn holes_come_as_zeros() {
        let (members, result) = walk(sample("sparse.tar").as_slice());
        result.expect("whole");
        let holes = [vec![0; 1 << 20], b"end".to_vec()].concat();
        let expected = [("holes".into(), holes), ("pg_wal/empty".into(), Vec::new())];
        assert!(members == expected);
        for version in ["0.0", "0.1", "1.0"] {
            let (members, result) = walk(sample(&format!("sparse-{version}.tar")).as_slice());
            result.expect("whole");
            assert!(members == expected, "{version}");
        }
    }

    #[test]
    fn a_wrong_map_of_holes_says_so() {
        let changes = [
            ("0.0", "numbytes=3", "numbytes=4"),
            ("0.0", "size=1048579", "size=1048578"),
            ("0.1", "map=1048576,3,", "map=1048576,x,"),
            ("0.1", "map=1048576,3,", "map=1048580,3,"),
            ("0.1", "map=1048576,3,1048579,0", "map=1048576,3,104857910"),
            ("1.0", "major=1", "major=2"),
            ("1.0", "\n1048576\n3\n", "\n1048576\n4\n"),
            ("1.0", "\n1048576\n3\n", "\n1048576\n-\n"),
            ("1.0", "2\n1048576\n3\n", "9\n1048576\n3\n"),
        ];
        for (version, old, new) in changes {
            let mut tar = sample(&format!("sparse-{version}.tar"));
            let at = tar.windows(old.len()).position(|bytes| bytes == old.as_bytes());
            let at = at.unwrap_or_else(|| panic!("{version}: no {old}"));
            tar[at..at + old.len()].copy_from_slice(new.as_bytes());
            let error = walk(tar.as_slice()).1.expect_err(new);
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{version} {new}: {error}");
        }
    }

    #[test]
    fn members_need_not_be_read_and_the_walk_can_stop() {
        let mut names = Vec::new();
        for_each_member(sample("gnu.tar").as_slice(), |member| {
            names.extend((member.kind == Kind::File).then_some(member.path));
            Ok(ControlFlow::Continue(()))
        })
        .expect("whole");
        assert_eq!(names.len(), 3);

        let mut count = 0;
        for_each_member(sample("gnu.tar").as_slice(), |_| {
            count += 1;
            Ok(ControlFlow::Break(()))
        })
        .expect("stopped");
        assert_eq!(count, 1);

        let own =
            for_each_member(sample("gnu.tar").as_slice(), |_| Err(ErrorKind::AddrInUse.into()));
        assert_eq!(own.expect_err("the visitor's").kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn a_tar_cut_off_anywhere_says_so() {
        let names =
            ["v7.tar", "gnu.tar", "pax.tar", "sparse.tar", "sparse-0.1.tar", "sparse-1.0.tar"];
        for name in names {
            let whole = sample(name);
            let (all, _) = walk(whole.as_slice());
            let content = whole.iter().rposition(|&byte| byte != 0).expect("content") + 1;
            let end_mark = content.next_multiple_of(BLOCK as usize);
            // Every place around the ends of blocks, and some within: all take a minute in an emulator.
            let tells = |len: &usize| (len + 4) % BLOCK as usize <= 8 || len.is_multiple_of(17);
            for len in (0..end_mark + BLOCK as usize).filter(tells) {
                let (members, result) = walk(&whole[..len]);
                let error = result.expect_err("cut off");
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{name} at {len}: {error}");
                let complete = members.len().saturating_sub(1);
                assert!(all.starts_with(&members[..complete]), "{name} at {len}");
            }
            walk(&whole[..end_mark + BLOCK as usize]).1.expect(name);
        }
    }

    #[test]
    fn a_damaged_header_says_so() {
        for at in [0, 100, 124, 148, 257] {
            let mut tar = sample("v7.tar");
            tar[at] ^= 0x40;
            let error = walk(tar.as_slice()).1.expect_err("damaged");
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{at}");
            assert!(error.to_string().starts_with("tar: "), "{error}");
        }
    }

    #[test]
    fn a_name_of_gigabytes_is_refused() {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(8 << 30);
        header.set_cksum();
        let endless = header.as_bytes().chain(io::repeat(b'x'));
        let error = walk(endless).1.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }

    #[test]
    fn the_readers_own_error_comes_through() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(ErrorKind::PermissionDenied.into())
            }
        }
        let tar = sample("v7.tar");
        for len in [0, 100, 600, 3700] {
            let error = walk(tar[..len].chain(Failing)).1.expect_err("not read");
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "at {len}");
        }
    }
}
