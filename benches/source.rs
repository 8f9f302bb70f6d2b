//! How bytes come in: read() into one reused window, as walstat does it, against a mapping of
//! the whole file. Both hand the same pages to the same reader.

mod common;

use common::{Counted, Set, criterion, mixed, tiny};
use criterion::{Criterion, Throughput};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_read::scan::observer::Observer;
use walstat_read::scan::reader::Reader;

/// Whether the reader wants no more pages is its own affair: it takes all.
type Pages<'r> = Reader<'r>;

fn through_window(
    reader: &mut Pages<'_>,
    first: u64,
    path: &Path,
    window: &mut [u8],
) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut at = first;
    loop {
        let filled = file.read(window)?;
        if filled == 0 {
            return Ok(());
        }
        reader.push(Lsn(at), &window[..filled]);
        at += filled as u64;
    }
}

fn mapped(reader: &mut Pages<'_>, first: u64, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: nothing else writes to the files of the bench's own directory.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    reader.push(Lsn(first), &map);
    Ok(())
}

/// Reads all files through `bring` and checks what was counted.
fn count(
    set: &Set,
    files: &[(u64, PathBuf)],
    mut bring: impl FnMut(&mut Pages<'_>, u64, &Path) -> io::Result<()>,
) {
    let scope = set.scope(Some(Crc32c::detect()));
    let mut reader = Reader::new(
        &scope,
        set.disk.start(),
        set.disk.end(),
        Observer::at_once(Counted::default()),
    );
    for (first, path) in files {
        reader.begin_segment(u32::MAX);
        bring(&mut reader, *first, path).expect("a file of the bench's own");
    }
    let counted: Counted = reader.finish().observer.into_inner().expect("what was counted");
    assert_eq!(counted, set.expected);
}

fn source(criterion: &mut Criterion, set: &Set) {
    let directory = set.disk.write();
    let numbers = set.disk.files.keys();
    let files: Vec<(u64, PathBuf)> = numbers
        .map(|number| (number * set.disk.form.segment, set.disk.path(directory.path(), *number)))
        .collect();
    let mut group = criterion.benchmark_group(format!("source/{}", set.name));
    group.throughput(Throughput::Bytes(set.bytes()));
    for kilobytes in [64, 512, 4096] {
        let mut window = vec![0; kilobytes << 10];
        group.bench_function(format!("read() through {kilobytes} kB"), |bencher| {
            bencher.iter(|| {
                count(set, &files, |reader, first, path| {
                    through_window(reader, first, path, &mut window)
                });
            });
        });
    }
    group.bench_function("mapping", |bencher| bencher.iter(|| count(set, &files, mapped)));
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    for set in [mixed(), tiny()] {
        source(&mut criterion, &set);
    }
    criterion.final_summary();
}
