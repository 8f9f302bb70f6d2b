//! Cases of compressed files: cut, changed, with something behind.

use super::case::Table;
use super::origin::SEGMENT;
use super::tree::{Layout, gzip, zstd};

use Layout::{Barman, Gzip, LongGzip, PgBackRestZstd, Zstd};

/// Adds them.
pub fn add(table: &mut Table) {
    cut(table);
    changed(table);
    with_more(table);
}

fn cut(table: &mut Table) {
    table.red(
        &[Gzip, LongGzip, Zstd, Barman],
        "compressed file of the last segment cut in half",
        |tree| {
            tree.edit_stored(&tree.last(), |stored| stored.truncate(stored.len() / 2));
        },
    );
    table.red(
        &[Gzip, PgBackRestZstd],
        "compressed file of the middle segment cut in half",
        |tree| {
            tree.edit_stored(&tree.middle(), |stored| stored.truncate(stored.len() / 2));
        },
    );
    table.red(&[Gzip, Barman], "last segment without gzip's checksum and size", |tree| {
        tree.edit_stored(&tree.last(), |stored| stored.truncate(stored.len() - 8));
    });
    table.red(&[Gzip, Zstd], "last byte of the compressed file missing", |tree| {
        tree.edit_stored(&tree.last(), |stored| stored.truncate(stored.len() - 1));
    });
}

/// One bit of a stored file, counted from its end.
fn turn(stored: &mut [u8], from_end: usize) {
    let at = stored.len() - from_end;
    stored[at] ^= 1;
}

fn changed(table: &mut Table) {
    table.red(&[Gzip], "bit in gzip's checksum, last segment", |tree| {
        tree.edit_stored(&tree.last(), |stored| turn(stored, 8));
    });
    table.red(&[Gzip, Barman], "bit in gzip's size, middle segment", |tree| {
        tree.edit_stored(&tree.middle(), |stored| turn(stored, 4));
    });
    table.red(&[Zstd], "bit in zstd's checksum, last segment", |tree| {
        tree.edit_stored(&tree.last(), |stored| turn(stored, 2));
    });
    table.red(
        &[Gzip, Zstd, PgBackRestZstd],
        "bit in the compressed data, middle segment",
        |tree| {
            tree.edit_stored(&tree.middle(), |stored| {
                let half = stored.len() / 2;
                turn(stored, half);
            });
        },
    );
    table.red(&[Gzip, Zstd], "first byte of the compressed file", |tree| {
        tree.edit_stored(&tree.last(), |stored| stored[0] ^= 1);
    });
}

fn with_more(table: &mut Table) {
    table.red(&[Gzip, Zstd, Barman], "text behind the compressed data", |tree| {
        tree.edit_stored(&tree.middle(), |stored| stored.extend(b"something else"));
    });
    table.red(&[Gzip], "a second member behind a whole segment", |tree| {
        tree.edit_stored(&tree.last(), |stored| stored.extend(gzip(b"more")));
    });
    table.green(&[Gzip, Barman], "two members, half a segment each", |tree| {
        let plain = tree.plain(&tree.middle());
        let (one, other) = plain.split_at(SEGMENT / 2);
        tree.overwrite(&tree.middle(), &[gzip(one), gzip(other)].concat());
    });
    table.green(&[Zstd], "two frames and a skippable one between them", |tree| {
        let plain = tree.plain(&tree.middle());
        let (one, other) = plain.split_at(300_001);
        let skipped = [&[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        tree.overwrite(&tree.middle(), &[zstd(one, true), skipped, zstd(other, false)].concat());
    });
    table.green(&[Gzip], "zeros behind the compressed data", |tree| {
        tree.edit_stored(&tree.middle(), |stored| stored.extend([0; 512]));
    });
    table.green(&[Gzip], "bits of gzip's header that mean nothing", |tree| {
        tree.edit_stored(&tree.middle(), |stored| {
            stored[4..10].copy_from_slice(&[9, 9, 9, 9, 2, 7])
        });
    });
}
