//! Cases of what is inside of segments: cut, zeroed, old, foreign, with bits turned over.

use super::case::Table;
use super::origin::SEGMENT;
use super::tree::{Layout, State, Tree, zeros};

use Layout::{Barman, Gzip, PgBackRest, PgBackRestZstd, Raw, Zstd};

/// Adds them.
pub fn add(table: &mut Table) {
    cut(table);
    zeroed(table);
    replaced(table);
    turned(table);
    headers(table);
    not_looked_at(table);
}

fn cut(table: &mut Table) {
    let half = |plain: &mut Vec<u8>| plain.truncate(SEGMENT / 2);
    table.red(&[Raw, Barman, PgBackRest], "first segment cut in half", move |tree| {
        tree.edit(&tree.first(), half);
    });
    table.red(&[Raw, Gzip], "middle segment cut in half", move |tree| {
        tree.edit(&tree.middle(), half);
    });
    table.red(&[Raw, Gzip, Zstd, Barman], "last segment cut in half", move |tree| {
        tree.edit(&tree.last(), half);
    });
    table.red(&[Raw, PgBackRestZstd], "last segment cut after its switch", |tree| {
        let page = tree.record_from_end(&tree.last(), 0).offset / 8192 * 8192 + 8192;
        tree.edit(&tree.last(), |plain| plain.truncate(page));
    });
    table.red(&[Raw], "last byte of the last segment missing", |tree| {
        tree.edit(&tree.last(), |plain| plain.truncate(SEGMENT - 1));
    });
    table.red(&[Raw, Gzip], "more bytes than a segment has", |tree| {
        tree.edit(&tree.middle(), |plain| plain.extend(zeros()));
    });
    table.red(&[Raw, Zstd, Barman], "empty middle segment", |tree| {
        tree.edit(&tree.middle(), Vec::clear);
    });
    table.red(&[Raw, Gzip], "file of no bytes at all", |tree| tree.overwrite(&tree.last(), b""));
}

fn zeroed(table: &mut Table) {
    table.red(&[Raw, Gzip, Zstd, Barman, PgBackRest], "last segment all zeros", |tree| {
        tree.store(&tree.last(), &zeros());
    });
    table.red(&[Raw, PgBackRestZstd], "middle segment all zeros", |tree| {
        tree.store(&tree.middle(), &zeros());
    });
    table.red(&[Raw], "first segment all zeros", |tree| tree.store(&tree.first(), &zeros()));
    table.red(&[Raw, Gzip, Barman], "zeros from the middle of the last segment on", |tree| {
        zeros_from(tree, &tree.last(), 8);
    });
    table.red(&[Raw, Zstd], "zeros at the end of the middle segment", |tree| {
        let record = tree.record_from_end(&tree.middle(), 6).offset;
        tree.edit(&tree.middle(), |plain| plain[record..].fill(0));
    });
    table.red(&[Raw], "a page of zeros inside the last segment", |tree| {
        let page = tree.record_from_end(&tree.last(), 60).offset / 8192 * 8192;
        tree.edit(&tree.last(), |plain| plain[page..page + 8192].fill(0));
    });
    table.red(&[Raw, Zstd], "zeros in place of the last segment's switch", |tree| {
        zeros_from(tree, &tree.last(), 0);
    });
}

/// Zeros from the record on that is the `n`-th from the end.
fn zeros_from(tree: &mut Tree<'_>, name: &str, n: usize) {
    let record = tree.record_from_end(name, n).offset;
    tree.edit(name, |plain| plain[record..].fill(0));
}

fn replaced(table: &mut Table) {
    table.red(&[Raw, Gzip, PgBackRestZstd], "last segment has an older one's content", |tree| {
        tree.store(&tree.last(), &tree.plain(&tree.other()));
    });
    table.red(&[Raw, Zstd], "middle segment has an older one's content", |tree| {
        tree.store(&tree.middle(), &tree.plain(&tree.first()));
    });
    table.red(&[Raw, Barman], "two segments have each other's content", |tree| {
        let (one, other) = (tree.middle(), tree.other());
        tree.store(&one, &tree.plain(&other));
        tree.store(&other, &tree.plain(&one));
    });
    table.red(&[Raw], "old content from the middle of the last segment on", |tree| {
        let page = tree.record_from_end(&tree.last(), 40).offset / 8192 * 8192;
        let old = tree.plain(&tree.other());
        tree.edit(&tree.last(), |plain| plain[page..].copy_from_slice(&old[page..]));
    });
    table.red(&[Raw, Gzip], "timeline 2 begins with timeline 1's segment", |tree| {
        tree.store(&tree.on_new(0), &tree.plain(&tree.left()));
    });
    table.in_state(State::Both);
    table.red(&[Raw], "a text file under a segment's name", |tree| {
        tree.overwrite(&tree.middle(), b"this is no WAL\n");
    });
}

/// One bit of the record that is the `n`-th from the end of `name`, at `offset` in it.
fn turn(tree: &mut Tree<'_>, name: &str, n: usize, offset: usize) {
    let record = tree.record_from_end(name, n);
    tree.edit(name, |plain| plain[record.offset + offset] ^= 0x10);
}

fn turned(table: &mut Table) {
    let last = |n, offset| move |tree: &mut Tree<'_>| turn(tree, &tree.last(), n, offset);
    table.red(
        &[Raw, Zstd, Barman],
        "bit in the data of the fourth record from the end",
        last(3, 30),
    );
    table.red(&[Raw, Gzip], "bit in the data of the third record from the end", last(2, 30));
    table.red(&[Raw], "bit in the length of the fifth record from the end", last(4, 1));
    table.red(&[Raw], "bit in the xid of the third record from the end", last(2, 5));
    table.red(
        &[Raw, PgBackRestZstd],
        "bit in the link of the third record from the end",
        last(2, 9),
    );
    table.red(&[Raw], "bit in the resource manager of the third record from the end", last(2, 17));
    table.red(&[Raw, Barman], "bit in the checksum of the third record from the end", last(2, 21));
    table.red(&[Raw, Gzip], "bit in the last record, the switch", last(0, 21));
    table.red(&[Raw], "bit in the length of the switch", last(0, 0));
    table.red(&[Raw, PgBackRest], "bit in the data of a record of the middle segment", |tree| {
        turn(tree, &tree.middle(), 300, 30);
    });
    table.red(&[Raw], "bit in the last record that lies in the middle segment alone", |tree| {
        turn(tree, &tree.middle(), 0, 30);
    });
    table.red(&[Raw], "bit in the record that goes on in the next segment", |tree| {
        tree.edit(&tree.middle(), |plain| plain[SEGMENT - 3] ^= 1);
    });
    table.red(&[Raw, Zstd], "bit in the first segment's data", |tree| {
        turn(tree, &tree.first(), 2, 25);
    });
    table.red(&[Raw], "bit before the switch at the end of timeline 1's last segment", |tree| {
        let last = tree.on_old(tree.origin.numbers(1).len() - 1);
        turn(tree, &last, 3, 30);
    });
    table.in_state(State::Both);
    table.red(&[Gzip], "timeline 1's last segment is zeros, timeline 2 is well", |tree| {
        let last = tree.on_old(tree.origin.numbers(1).len() - 1);
        tree.store(&last, &zeros());
    });
    table.in_state(State::Both);
    table.red(&[Raw], "bit in what timeline 2's first segment repeats of timeline 1", |tree| {
        tree.edit(&tree.on_new(0), |plain| plain[8192 + 200] ^= 1);
    });
}

/// A bit of the header of page `page` in `name`.
fn header(tree: &mut Tree<'_>, name: &str, page: usize, offset: usize, bit: u8) {
    tree.edit(name, |plain| plain[page * 8192 + offset] ^= bit);
}

/// The page in which the last record of the last segment lies.
fn last_page(tree: &Tree<'_>) -> usize {
    tree.record_from_end(&tree.last(), 0).offset / 8192
}

fn headers(table: &mut Table) {
    table.red(&[Raw, Gzip], "magic of the last page", |tree| {
        header(tree, &tree.last(), last_page(tree), 0, 1);
    });
    table.red(&[Raw], "flags of the last page", |tree| {
        header(tree, &tree.last(), last_page(tree), 3, 1);
    });
    table.red(&[Raw, Barman], "address of the last page", |tree| {
        header(tree, &tree.last(), last_page(tree), 9, 0x20);
    });
    table.red(&[Raw], "timeline of the last page lower", |tree| {
        header(tree, &tree.last(), last_page(tree), 4, 3);
    });
    table.red(&[Raw], "timeline of the last page higher", |tree| {
        header(tree, &tree.last(), last_page(tree), 4, 4);
    });
    table.red(&[Raw], "timeline of a middle page higher", |tree| {
        header(tree, &tree.middle(), 40, 4, 2);
    });
    table.red(&[Raw, Zstd], "cluster in the last segment's header", |tree| {
        header(tree, &tree.last(), 0, 25, 1);
    });
    table.red(&[Raw], "segment size in the middle segment's header", |tree| {
        header(tree, &tree.middle(), 0, 34, 0x20);
    });
    table.red(&[Raw], "page size in the last segment's header", |tree| {
        header(tree, &tree.last(), 0, 37, 0x40);
    });
    table.red(&[Raw], "rest length of a page that goes on with a record", |tree| {
        let pages = tree.plain(&tree.middle());
        let goes_on = |page: &usize| pages[page * 8192 + 2] & 1 == 1;
        let page = (1..128).find(goes_on).expect("a record over two pages");
        header(tree, &tree.middle(), page, 16, 1);
    });
}

/// What no server looks at is no damage.
fn not_looked_at(table: &mut Table) {
    table.green(&[Raw, Gzip], "bytes changed after the switch", |tree| {
        tree.edit(&tree.last(), |plain| plain[SEGMENT - 100..SEGMENT - 50].fill(7));
    });
    table.green(&[Raw], "alignment between records is not zero", |tree| {
        let records = tree.records(&tree.middle()).iter().skip(20);
        let gap = |p: &&super::origin::Place| {
            !p.bytes.is_multiple_of(8) && p.offset % 8192 < 7000 && p.bytes < 900
        };
        let place = records.copied().find(|p| gap(&p)).expect("a record with padding");
        tree.edit(&tree.middle(), |plain| plain[place.offset + place.bytes] = 0x55);
    });
    table.green(&[Raw], "unused bytes of a page header", |tree| {
        header(tree, &tree.middle(), 40, 21, 0xFF);
    });
}
