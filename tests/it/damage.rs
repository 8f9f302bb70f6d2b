//! Damage is never silent, and costs no more than what is damaged: every bit that a checksum
//! covers is reported when it turns over, holes and strange pages are named, and all records
//! outside are still counted. Any number of threads says the same.

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::Rec;
use crate::common::xorshift::Xorshift;
use crate::common::{ALL, Ask, json, kinds, naive, read};
use crate::support::fixtures::sample;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::time::UNIX_EPOCH;
use walstat_format::lsn::Lsn;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_report::model::{Problem, Report};

/// Start and end of a record.
type Span = (Lsn, Lsn);

/// WAL, where its records are, and what is read from it while it is sound.
#[derive(Clone)]
struct Sound {
    disk: Disk,
    records: Vec<Span>,
    report: Report,
}

impl Sound {
    fn new(disk: Disk) -> Sound {
        let records = naive::read(&disk, None, None, None).expect("records").records;
        let report = read(disk.write().path(), &ALL);
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        Sound { disk, records, report }
    }

    /// Reads the files in `directory` with one bit turned over.
    fn flipped(&self, directory: &Path, lsn: Lsn, bit: u32, threads: usize) -> Report {
        let (number, offset) = (lsn.0 / self.disk.form.segment, lsn.0 % self.disk.form.segment);
        let path = self.disk.path(directory, number);
        let file = fs::OpenOptions::new().write(true).open(path).expect("a segment");
        let byte = self.disk.files[&number][offset as usize];
        let put = |mut file: &File, byte: u8| {
            file.seek(SeekFrom::Start(offset)).expect("a place in the file");
            file.write_all(&[byte]).expect("a byte written");
        };
        put(&file, byte ^ 1 << bit);
        // A file that was written a moment ago is looked at again when it ends in damage.
        file.set_modified(UNIX_EPOCH).expect("a time set");
        let report = read(directory, &ALL.threads(threads));
        put(&file, byte);
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

    fn in_record_header(&self, lsn: Lsn) -> bool {
        let after = self.records.partition_point(|(start, _)| *start <= lsn);
        let record = after.checked_sub(1).and_then(|index| self.records.get(index));
        record.is_some_and(|(start, _)| lsn.0 - start.0 < RECORD_HEADER_BYTES as u64)
    }

    /// Whether nothing checks the bit: alignment behind a record, the slack and the padding of a
    /// page header, what follows a switch, what was never written.
    fn is_unchecked(&mut self, lsn: Lsn, bit: u32) -> bool {
        let (_, end) = self.records[self.records.len() - 1];
        if lsn.0 / self.disk.form.page > end.0 / self.disk.form.page {
            return true;
        }
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

    /// Turns a bit over and sees to it that the damage is told, at the right place: as a problem,
    /// or, in the last record, as an ending before it.
    fn check(&mut self, directory: &Path, lsn: Lsn, bit: u32, threads: usize) {
        let report = self.flipped(directory, lsn, bit, threads);
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
        // Nothing valid follows on the last page: the WAL just ends earlier.
        let (last, _) = self.records[self.records.len() - 1];
        let earlier = report.ending.lsn < self.report.ending.lsn;
        let ends_before = earlier && lsn.0 / page >= last.0 / page;
        let what = format!("bit {bit} at {lsn}: {:?}, {:?}", report.problems, report.ending);
        assert!(ends_before || report.problems.iter().any(covers), "{what}");
    }
}

/// How many bytes the short file has: three pages.
const SHORT: u64 = 3 * 8192;

/// One short file: records, some of them over page edges, a switch. Quick to read again and
/// again.
fn short_segment() -> Sound {
    let mut wal = Wal::new(Form::of("16"), 5);
    let mut random = Xorshift::new(5);
    let mut some = |wal: &mut Wal, until: u64| {
        while wal.at() < (5 << 20) + until {
            wal.add(&Rec::data(1 + random.below(300) as usize));
        }
    };
    some(&mut wal, 8192 - 2000);
    wal.add(&Rec::data(9_000));
    some(&mut wal, SHORT - 2000);
    wal.switch();
    // Behind the last switch the file may be short.
    Sound::new(wal.finish().cut(Lsn((5 << 20) + SHORT)))
}

/// Every byte of the segment's used bytes, but for its long header: that says what the whole input
/// is and is discovery's business. Of page headers and record headers every bit, since each means
/// something else; of what only the checksum looks at, one in each byte.
#[test]
fn no_bit_turns_over_in_silence() {
    let mut sound = short_segment();
    let directory = sound.disk.write();
    for byte in 40..SHORT {
        let at = Lsn((5 << 20) + byte);
        let means_something = sound.in_header(at).is_some() || sound.in_record_header(at);
        let bits = if means_something { 0..8 } else { byte % 8..byte % 8 + 1 };
        for bit in bits {
            let threads = if byte % 128 == 0 { 4 } else { 1 };
            sound.check(directory.path(), at, bit as u32, threads);
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
    let directory = sound.disk.write();
    let (first, last) = (sound.records[0].0.0, sound.records[sound.records.len() - 1].1.0);
    for at in (first..last).step_by(83_011) {
        sound.check(directory.path(), Lsn(at), (at % 8) as u32, 1);
    }
}

// ---- holes and strange pages ----

/// Three full segments of records of up to a page and a half.
static FULL: LazyLock<Sound> = LazyLock::new(|| {
    let mut wal = Wal::new(Form::of("15"), 5);
    let mut random = Xorshift::new(6);
    while wal.at() < (8 << 20) - 20_000 {
        wal.add(&Rec::data(1 + random.below(12_000) as usize));
    }
    Sound::new(wal.finish())
});

fn full_segments() -> Sound {
    FULL.clone()
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
fn each_file_that_is_damaged_inside_of_one_record_is_named() {
    let mut wal = Wal::new(Form::of("15"), 5);
    wal.add(&Rec::data(5_000));
    wal.add(&Rec::data(4 << 20));
    let lost = wal.next();
    wal.leave_in_segment(24);
    wal.add(&Rec::data(5_000));
    wal.leave_in_segment(0);
    let sound = Sound::new(wal.finish());
    let mut disk = sound.disk.clone();
    let pages = [(5 << 20) + 5 * 8192, (7 << 20) + 6 * 8192, 8 << 20];
    pages.iter().for_each(|&page| disk.page(Lsn(page)).fill(0));
    disk.page(Lsn((7 << 20) + 20 * 8192)).fill(0xA5);
    let directory = disk.write();
    let one = read(directory.path(), &ALL);
    assert_eq!(kinds(&one), ["zero_page"; 3]);
    let place = |problem: &Problem| {
        let lsn: Option<Lsn> = problem.lsn.as_deref().and_then(|lsn| lsn.parse().ok());
        lsn.expect("a place").0
    };
    let places: Vec<u64> = one.problems.iter().map(place).collect();
    assert_eq!(places[1..], pages[1..]);
    let skipped: u64 = one.problems.iter().map(|problem| problem.skipped_bytes).sum();
    assert_eq!(skipped, one.books.damaged_bytes);
    assert_eq!(skipped, lost.0 - places[0]);
    for threads in [2, 4] {
        assert_eq!(json(&read(directory.path(), &ALL.threads(threads))), json(&one));
    }
}

#[test]
fn damage_on_the_last_page_of_a_range_is_told() {
    let mut sound = short_segment();
    let page = sound.disk.start().0 + 8192;
    let (start, end) = *sound.records.iter().find(|(start, _)| start.0 > page).expect("a record");
    sound.disk.at(Lsn(start.0 + 25), 1)[0] ^= 1;
    let ask = Ask { end: Some(Lsn(end.0 + 1000)), ..ALL };
    let report = read(sound.disk.write().path(), &ask);
    assert_eq!(kinds(&report), ["checksum"], "{:?}", report.ending);
}

#[test]
fn a_compressed_file_that_breaks_off_is_told() {
    let sound = full_segments();
    let directory = sound.disk.write();
    let path = sound.disk.path(directory.path(), 6);
    let mut packed = zstd::encode_all(&sound.disk.files[&6][..], 1).expect("a compressed segment");
    packed.truncate(packed.len() / 2);
    fs::remove_file(&path).expect("the plain segment removed");
    fs::write(path.with_extension("zst"), packed).expect("half a compressed segment");
    let report = read(directory.path(), &ALL);
    // Compressed segments are an archive's, in which the last one may not be open either.
    assert_eq!(kinds(&report), ["truncated", "open_segment"]);
    assert_eq!(json(&read(directory.path(), &ALL.threads(4))), json(&report));
}

#[test]
fn a_program_may_do_without_checksums() {
    let mut sound = short_segment();
    // In the main data of a record: nothing but its checksum covers that.
    let (start, _) = sound.records[sound.records.len() / 3];
    sound.disk.at(Lsn(start.0 + 40), 1)[0] ^= 1;
    let directory = sound.disk.write();
    let scan = walstat::Scan::paths([directory.path()]);
    let verified = scan.clone().report().expect("a report");
    assert_eq!(kinds(&verified), ["checksum"]);
    let trusted = scan.verify_checksums(false).report().expect("a report");
    assert!(kinds(&trusted).is_empty() && !trusted.input.checksums_verified);
    assert_eq!(trusted.totals.count, verified.totals.count + 1);
}
