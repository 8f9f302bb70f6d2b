//! Damage is never silent, and costs no more than what is damaged: every bit that a checksum
//! covers is reported when it turns over, holes and strange pages are named, and all records
//! outside are still counted. Any number of threads says the same.

mod common;
mod support;

use common::builder::{Form, Wal};
use common::disk::Disk;
use common::record::Rec;
use common::xorshift::Xorshift;
use common::{ALL, Ask, json, kinds, naive, read};
use std::fs;
use std::path::Path;
use support::fixtures::sample;
use walstat::report::model::{Problem, Report};
use walstat::wal::lsn::Lsn;

/// Start and end of a record.
type Span = (Lsn, Lsn);

/// WAL on a disk, where its records are, and what is read from it while it is sound.
struct Sound {
    disk: Disk,
    directory: tempfile::TempDir,
    records: Vec<Span>,
    report: Report,
}

impl Sound {
    fn new(disk: Disk) -> Sound {
        let records = naive::read(&disk, None, None, None).expect("records").records;
        let directory = disk.write();
        let report = read(directory.path(), &ALL);
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        Sound { disk, directory, records, report }
    }

    /// Reads with one bit turned over.
    fn flipped(&mut self, lsn: Lsn, bit: u32, threads: usize) -> Report {
        let number = lsn.0 / self.disk.form.segment;
        self.disk.at(lsn, 1)[0] ^= 1 << bit;
        self.disk.write_segment(self.directory.path(), number);
        let report = read(self.directory.path(), &ALL.threads(threads));
        self.disk.at(lsn, 1)[0] ^= 1 << bit;
        self.disk.write_segment(self.directory.path(), number);
        report
    }

    fn looks_sound(&self, report: &Report) -> bool {
        report.problems.is_empty()
            && report.totals == self.report.totals
            && report.books == self.report.books
            && report.ending.lsn == self.report.ending.lsn
    }

    /// Where the byte lies in its page's header, if it does.
    fn in_header(&self, lsn: Lsn) -> Option<u64> {
        let Form { page, .. } = self.disk.form;
        Some(lsn.0 % page).filter(|&at| at < self.disk.form.header(lsn.0 / page * page))
    }

    fn in_record(&self, lsn: Lsn) -> bool {
        let after = self.records.partition_point(|(start, _)| *start <= lsn);
        let inside = after.checked_sub(1).is_some_and(|index| lsn < self.records[index].1);
        inside && self.in_header(lsn).is_none()
    }

    /// Whether nothing checks the bit: alignment behind a record, the slack and the padding of a
    /// page header, what follows a switch, what was never written.
    fn is_unchecked(&mut self, lsn: Lsn, bit: u32) -> bool {
        let continues = self.disk.page(lsn)[2] & 1 == 1;
        match self.in_header(lsn) {
            // XLP_BKP_REMOVABLE and the overwrite flag are hints on a page that stands alone.
            Some(2) => bit == 2 || bit == 3,
            // Without a record that goes on, xlp_rem_len says nothing.
            Some(16..20) => !continues,
            Some(20..24) => true,
            Some(_) => false,
            None => !self.in_record(lsn),
        }
    }

    /// Turns a bit over and sees to it that the damage is told, at the right place.
    fn check(&mut self, lsn: Lsn, bit: u32, threads: usize) {
        let report = self.flipped(lsn, bit, threads);
        if self.looks_sound(&report) {
            assert!(self.is_unchecked(lsn, bit), "bit {bit} at {lsn} turned over in silence");
            return;
        }
        let page = self.disk.form.page;
        let covers = |problem: &Problem| {
            let start: Lsn = problem.lsn.as_ref().and_then(|lsn| lsn.parse().ok()).expect("an LSN");
            let skipped = (start.0..start.0 + problem.skipped_bytes).contains(&lsn.0);
            skipped || start.0 / page == lsn.0 / page
        };
        let what = format!("bit {bit} at {lsn}: {:?}, {:?}", report.problems, report.ending);
        assert!(report.problems.iter().any(covers), "{what}");
    }
}

/// Three short segments, each closed by a switch: quick to read again and again.
fn short_segments() -> Sound {
    let mut wal = Wal::new(Form::of("16"), 5);
    let mut random = Xorshift::new(5);
    for _ in 0..3 {
        let end = wal.next().0 + 5 * 8192;
        while wal.at() < end {
            wal.add(&Rec::insert(1 + random.below(300) as usize));
        }
        wal.add(&Rec::insert(9_000));
        wal.switch();
    }
    let mut disk = wal.finish();
    // Behind a switch a file may be short.
    disk.files.values_mut().for_each(|file| file.truncate(8 * 8192));
    Sound::new(disk)
}

#[test]
fn no_bit_of_a_page_turns_over_in_silence() {
    let mut sound = short_segments();
    let page = sound.disk.start().0 + 2 * 8192;
    for at in 0..8192 {
        sound.check(Lsn(page + at), (at % 8) as u32, if at % 16 == 0 { 4 } else { 1 });
    }
}

#[test]
fn no_bit_of_a_page_header_turns_over_in_silence() {
    let mut sound = short_segments();
    let segment = sound.disk.start().0 + sound.disk.form.segment;
    for page in [segment + 8192, segment + 3 * 8192] {
        for bit in 0..24 * 8 {
            sound.check(Lsn(page + bit / 8), (bit % 8) as u32, 1);
        }
    }
}

#[test]
fn no_bit_anywhere_turns_over_in_silence() {
    let mut sound = short_segments();
    for number in 5..8 {
        // The long header of the first page has a test of its own.
        for at in (40..7 * 8192).step_by(397) {
            sound.check(Lsn((number << 20) + at), (at % 7) as u32, 1);
        }
    }
}

#[test]
fn no_bit_of_a_real_record_turns_over_in_silence() {
    let sample = sample("consistency");
    let mut disk = Disk::read(&sample.wal, Form::of(&sample.release));
    while disk.files.len() > 2 {
        disk.files.pop_last();
    }
    let mut sound = Sound::new(disk);
    let (first, last) = (sound.records[0].0.0, sound.records[sound.records.len() - 1].1.0);
    for at in (first..last).step_by(41_011) {
        sound.check(Lsn(at), (at % 8) as u32, 1);
    }
}

// ---- holes and strange pages ----

/// Four full segments of records of up to a page and a half.
fn full_segments() -> Sound {
    let mut wal = Wal::new(Form::of("15"), 5);
    let mut random = Xorshift::new(6);
    while wal.at() < (9 << 20) - 20_000 {
        wal.add(&Rec::insert(1 + random.below(12_000) as usize));
    }
    Sound::new(wal.finish())
}

/// Reads spoiled WAL on 1, 2 and 4 threads, and holds the records outside `[from, to)`, which is
/// what was spoiled, against those counted.
#[track_caller]
fn spoiled(sound: &Sound, directory: &Path, (from, to): (u64, u64), kind: &str) -> Report {
    let one = read(directory, &ALL);
    for threads in [2, 4] {
        assert_eq!(json(&read(directory, &ALL.threads(threads))), json(&one), "{threads} threads");
    }
    let outside = |&&(start, end): &&Span| end.0 <= from || to <= start.0;
    let expected = sound.records.iter().filter(outside).count();
    assert_eq!(kinds(&one), [kind], "{:?}", one.problems);
    assert_eq!(one.totals.count, expected as u64, "records outside {} to {}", Lsn(from), Lsn(to));
    assert_eq!(one.ending.lsn, sound.report.ending.lsn);
    one
}

/// The same for one page, which is written over with `content`.
#[track_caller]
fn spoiled_page(page: u64, kind: &str, content: impl Fn(&mut Disk) -> Vec<u8>) {
    let mut sound = full_segments();
    let content = content(&mut sound.disk);
    sound.disk.page(Lsn(page)).copy_from_slice(&content);
    let directory = sound.disk.write();
    let report = spoiled(&sound, directory.path(), (page, page + 8192), kind);
    assert!(report.books.damaged_bytes >= 8192, "{:?}", report.books);
}

const MIDDLE: u64 = (6 << 20) + 40 * 8192;

#[test]
fn a_zero_page_in_the_middle_is_a_hole() {
    spoiled_page(MIDDLE, "zero_page", |_| vec![0; 8192]);
}

#[test]
fn a_zero_page_at_the_edge_of_a_segment_is_a_hole() {
    spoiled_page((7 << 20) - 8192, "zero_page", |_| vec![0; 8192]);
}

#[test]
fn a_page_with_another_address_is_told() {
    spoiled_page(MIDDLE, "page_address", |disk| {
        let mut page = disk.page(Lsn(MIDDLE)).to_vec();
        page[10] ^= 0x40;
        page
    });
}

#[test]
fn a_page_written_twice_is_told() {
    spoiled_page(MIDDLE, "page_address", |disk| disk.page(Lsn(MIDDLE - 8192)).to_vec());
}

#[test]
fn a_page_of_garbage_is_told() {
    spoiled_page(MIDDLE, "page_magic", |_| vec![0xA5; 8192]);
}

#[test]
fn a_missing_segment_is_told() {
    let sound = full_segments();
    let directory = sound.disk.clone().without(6).write();
    spoiled(&sound, directory.path(), (6 << 20, 7 << 20), "missing_segment");
}

#[test]
fn a_segment_of_garbage_is_told() {
    let mut sound = full_segments();
    sound.disk.from(Lsn(6 << 20)).fill(0xA5);
    let directory = sound.disk.write();
    let report = spoiled(&sound, directory.path(), (6 << 20, 7 << 20), "page_magic");
    assert!(report.books.damaged_bytes >= 1 << 20);
}

#[test]
fn a_segment_cut_off_in_the_middle_is_told() {
    for cut in [MIDDLE, MIDDLE + 4000] {
        let sound = full_segments();
        let directory = sound.disk.clone().cut(Lsn(cut)).write();
        spoiled(&sound, directory.path(), (cut, 7 << 20), "truncated");
    }
}

#[test]
fn two_holes_are_two_problems() {
    let mut sound = full_segments();
    let pages = [MIDDLE, (7 << 20) + 5 * 8192];
    for page in pages {
        sound.disk.page(Lsn(page)).fill(0);
    }
    let directory = sound.disk.write();
    let one = read(directory.path(), &ALL);
    assert_eq!(kinds(&one), ["zero_page", "zero_page"]);
    for threads in [2, 4] {
        assert_eq!(json(&read(directory.path(), &ALL.threads(threads))), json(&one));
    }
}

#[test]
fn damage_on_the_last_page_of_a_range_is_told() {
    let mut sound = full_segments();
    let on_page = |&&(start, end): &&Span| start.0 > MIDDLE && end.0 < MIDDLE + 8192 - 200;
    let (start, end) = *sound.records.iter().find(on_page).expect("a record inside the page");
    sound.disk.at(Lsn(start.0 + 30), 1)[0] ^= 1;
    let ask = Ask { end: Some(Lsn(end.0 + 100)), ..ALL };
    let report = read(sound.disk.write().path(), &ask);
    assert_eq!(kinds(&report), ["checksum"], "{:?}", report.ending);
}

#[test]
fn a_file_that_cannot_be_opened_is_told() {
    let sound = full_segments();
    let directory = sound.disk.write();
    let path = sound.disk.path(directory.path(), 6);
    // A compressed file that breaks off can be opened but not read to its end.
    let packed = zstd::encode_all(&sound.disk.files[&6][..], 1).expect("a compressed segment");
    fs::remove_file(&path).expect("the plain segment removed");
    let half = packed.len() / 2;
    fs::write(path.with_extension("zst"), &packed[..half]).expect("half a compressed segment");
    let report = read(directory.path(), &ALL);
    assert_eq!(kinds(&report), ["unreadable"]);
    assert_eq!(json(&read(directory.path(), &ALL.threads(4))), json(&report));
}
