//! Compressed and archived bytes: every decoder and the walk over streams stay within bounds and
//! fail as they promise. Not for what the decoded bytes mean.

use std::cell::RefCell;
use std::fs;
use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;
use tempfile::TempDir;
use walstat_read::input::codec::Codec;
use walstat_read::input::recognise::{Content, recognise};
use walstat_read::input::stream::{Item, for_each_item};
use walstat_read::input::tar::{Kind, for_each_member};

const CODECS: [Codec; 9] = [
    Codec::Gzip,
    Codec::Lz4,
    Codec::Zstd,
    Codec::Lz4OrZstd,
    Codec::Bzip2,
    Codec::Xz,
    Codec::Lzma,
    Codec::Lzip,
    Codec::Brotli,
];

/// Nothing is read beyond that, so that a bomb takes no time here.
const BYTES_MAX: u64 = 4 << 20;
const MEMBERS_MAX: usize = 1000;
/// More at a time than a decoder's own blocks have, and no power of two.
const WINDOW: usize = 100_003;

thread_local! {
    static DIRECTORY: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Fails if the bytes show something wrong.
pub fn run(data: &[u8]) {
    if let Content::Compressed(codec) = recognise(data, "") {
        decode(codec, data);
    }
    // The last byte chooses one that the content does not ask for.
    if let Some((choice, rest)) = data.split_last() {
        decode(CODECS[usize::from(*choice) % CODECS.len()], rest);
    }
    members(data);
    items(data, if data.len().is_multiple_of(2) { "stream" } else { "stream.br" });
}

/// Decodes until the end, an error, or the limit; what came last comes again.
fn decode(codec: Codec, data: &[u8]) {
    let Ok(mut decoder) = codec.decoder(data) else { return };
    let mut window = vec![0; WINDOW];
    let mut total = 0;
    while total < BYTES_MAX {
        match decoder.read(&mut window) {
            Ok(0) => {
                let again = decoder.read(&mut window);
                return assert!(matches!(again, Ok(0)), "{codec:?} goes on behind its end");
            }
            Ok(bytes) => {
                assert!(bytes <= window.len());
                total += bytes as u64;
            }
            Err(error) => {
                let kinds = [ErrorKind::UnexpectedEof, ErrorKind::InvalidData];
                assert!(kinds.contains(&error.kind()), "{codec:?}: {:?} {error}", error.kind());
                let again = decoder.read(&mut window).expect_err("a decoder that has failed");
                return assert_eq!(again.kind(), error.kind(), "{codec:?}");
            }
        }
    }
}

/// A member has as many bytes as its header says, or fails.
fn members(data: &[u8]) {
    let (mut count, mut total) = (0, 0);
    let _ = for_each_member(data, |member| {
        count += 1;
        if member.kind != Kind::File {
            return Ok(ControlFlow::Continue(()));
        }
        let size = member.size;
        let read = std::io::copy(&mut member.bytes.take(BYTES_MAX), &mut std::io::sink())?;
        assert_eq!(read, size.min(BYTES_MAX), "{}", member.path.display());
        total += read;
        Ok(match count < MEMBERS_MAX && total < BYTES_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    });
}

/// Walks over the bytes as a file that can only be read from front to back.
fn items(data: &[u8], name: &str) {
    DIRECTORY.with_borrow_mut(|directory| {
        let directory = directory.get_or_insert_with(|| TempDir::new().expect("a directory"));
        let path = directory.path().join(name);
        fs::write(&path, data).expect("a file");
        let (mut count, mut total) = (0, 0);
        for_each_item(&path, &mut |item| {
            count += 1;
            if let Item::Segment(segment) = item {
                let mut bytes = segment.bytes.take(BYTES_MAX);
                total += std::io::copy(&mut bytes, &mut std::io::sink()).unwrap_or(0);
            }
            match count < MEMBERS_MAX && total < BYTES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
    });
}
