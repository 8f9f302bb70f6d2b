//! Tests of the `TraceBuilder`.

use super::*;
use crate::hand_over::read_here;
use crate::made_up::Bytes;
use crate::observe::Sink;
use crate::page::Page;
use crate::trace::Reader;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use walstat_format::version::VERSIONS;
use walstat_read::Scan;

/// Null bitmap, header's end, and eight bytes of columns: a row from byte 18 of its header on.
const ROW: [u8; 14] = [1, 0, 0, 8, 24, 0, 1, 2, 3, 4, 5, 6, 7, 8];

fn build(records: Vec<Bytes>) -> Trace {
    let mut builder = TraceBuilder::within(1 << 20, || Err(std::io::ErrorKind::Unsupported.into()));
    for mut record in records {
        builder.push(&record.parse());
    }
    let geometry = Geometry { page: 8192, segment: 1 << 20 };
    builder.finish(&VERSIONS[8], geometry, Lsn(1 << 20)..Lsn((1 << 20) + 40_000)).0
}

fn blocks(trace: &Trace) -> Vec<TracedBlock> {
    let mut blocks = Vec::new();
    trace.read().for_each(|traced| blocks.extend_from_slice(traced.refs));
    blocks
}

/// Takes every record the general way.
struct AnyWay(TraceBuilder);

impl Sink for AnyWay {
    fn push(&mut self, record: &WholeRecord<'_>) {
        self.0.push_any(record);
    }

    fn gap(&mut self) {
        self.0.gap();
    }
}

/// The trace of the WAL in a folder.
fn scanned<S: Sink + 'static>(
    folder: &Path,
    make: impl Fn(TraceBuilder) -> S + Send + Sync + 'static,
    builder: impl Fn(S) -> TraceBuilder,
) -> Trace {
    let within = || TraceBuilder::within(16 << 20, || Err(std::io::ErrorKind::Unsupported.into()));
    let read = read_here(&Scan::paths([folder]), (), move || make(within()));
    let (_, _, sink) = read.expect("WAL");
    let mut trace = builder(sink).trace;
    trace.records.close();
    trace
}

/// Real WAL: what an archive of samples holds, a folder each.
fn unpacked(archive: &str) -> (TempDir, Vec<PathBuf>) {
    let file = File::open(fixtures().join(archive)).expect("an archive");
    let directory = TempDir::new().expect("a directory");
    let decoder = zstd::Decoder::new(file).expect("a decoder");
    tar::Archive::new(decoder).unpack(directory.path()).expect("a tar");
    let entries = std::fs::read_dir(directory.path()).expect("folders");
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    (directory, folders)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// How many records of a sample are noted alike.
fn noted_alike(folder: &Path) -> u32 {
    let short = scanned(folder, |builder| builder, |builder| builder);
    let general = scanned(folder, AnyWay, |any| any.0);
    let (mut read, mut other) = (short.read(), general.read());
    while let Some(group) = read.group() {
        assert_eq!(Some(group), other.group(), "{}", folder.display());
        let (own, other) = (read.records(&group), other.records(&group));
        for (own, other) in own.records().zip(other.records()) {
            assert_eq!(format!("{own:?}"), format!("{other:?}"), "{}", folder.display());
        }
    }
    assert_eq!(other.group(), None);
    assert_eq!((short.commits, short.effects), (general.commits, general.effects));
    assert_eq!((short.unpruned, short.sequences), (general.unpruned, general.sequences));
    assert_eq!(
        (short.side_by_side, short.beside_vacuum),
        (general.side_by_side, general.beside_vacuum)
    );
    short.records.next_ordinal() - FIRST
}

#[test]
fn the_short_way_notes_what_the_general_way_does() {
    assert_eq!(noted_alike(&fixtures().join("pg15-mixed")), 72_170);
    let archives = ["mixed-9.5-14", "pg16-workload", "mixed-17-19", "pg18-workload", "pages16k"];
    let mut samples = 0;
    for archive in archives {
        let (_directory, folders) = unpacked(&format!("{archive}/wal.tar.zst"));
        for folder in folders {
            assert!(noted_alike(&folder) > 1000, "{}", folder.display());
            samples += 1;
        }
    }
    assert_eq!(samples, 12, "all other releases, and pages of 16 kB");
}

#[test]
fn from_anywhere_the_trace_reads_the_same() {
    let folder = fixtures().join("pg15-mixed");
    let trace = scanned(&folder, |builder| builder, |builder| builder);
    let noted = |reader: Reader<'_>| {
        let mut noted = Vec::new();
        reader.for_each(|traced| noted.push(format!("{traced:?}")));
        noted
    };
    let all = noted(trace.read());
    for place in [0, 2047, 2048, 40_000, 72_169] {
        let rest = noted(trace.read_from(FIRST + place));
        assert!(all.ends_with(&rest) && rest.len() >= all.len() - place as usize, "{place}");
    }
}

/// The page as the first insertion leaves it.
fn page() -> Page {
    let mut tuple = [0; 18].to_vec();
    tuple.extend(ROW);
    let mut page = Page::new(8192, 0).expect("a page");
    page.append(&tuple).expect("room");
    page
}

#[test]
fn data_that_an_image_replaced_are_put_back() {
    let at = (1 << 20) + 40;
    let trace = build(vec![
        Bytes::insert(1, Some(&page()), &[]).at(at),
        Bytes::insert(2, None, &ROW).at(at + 9000),
    ]);
    let [imaged, plain] = blocks(&trace)[..] else { panic!("two blocks") };
    assert_eq!((imaged.data_bytes, imaged.stored_bytes), (ROW.len() as u16, 8192));
    assert!(imaged.is(entry_fact::BASE_IMAGE | entry_fact::USUAL | entry_fact::STAMPS));
    assert!(!imaged.is(entry_fact::DATA_ESTIMATED) && !plain.is(entry_fact::BASE_IMAGE));
    // The page is rolled forward: an image of it would leave out its hole.
    assert_eq!((plain.data_bytes, plain.stored_bytes), (ROW.len() as u16, 0));
    assert_eq!(plain.image_bytes, 24 + 2 * 4 + 2 * 32);
    assert!(plain.is(entry_fact::HOLE) && !plain.is(entry_fact::IMAGE_ESTIMATED));
}

#[test]
fn a_page_knows_when_it_was_stamped_before() {
    let at = (1 << 20) + 40;
    let trace =
        build(vec![Bytes::insert(1, None, &ROW).at(at), Bytes::insert(2, None, &ROW).at(at + 80)]);
    let [first, second] = blocks(&trace)[..] else { panic!("two blocks") };
    assert_eq!(
        (first.stamped, second.stamped),
        (BEFORE, FIRST),
        "without an image: before the WAL"
    );
    assert!(first.is(entry_fact::IMAGE_ESTIMATED), "nothing is known of the page");
}

#[test]
fn after_a_gap_pages_are_not_known_any_more() {
    let mut builder = TraceBuilder::within(1 << 20, || Err(std::io::ErrorKind::Unsupported.into()));
    let at = (1 << 20) + 40;
    builder.push(&Bytes::insert(1, Some(&page()), &[]).at(at).parse());
    builder.gap();
    builder.push(&Bytes::insert(2, None, &ROW).at(at + 9000).parse());
    builder.trace.records.close();
    assert!(blocks(&builder.trace)[1].is(entry_fact::IMAGE_ESTIMATED));
}

/// It says so of these loads.
#[test]
fn a_record_takes_as_many_bytes_as_the_paper_says() {
    let paper = include_str!("../../../../docs/whatif.md");
    assert!(paper.contains("beside its pages takes 17 to 21 bytes"));
    for name in ["pg15-mixed", "pg16-workload", "pg18-workload"] {
        let sample = format!("{}/../../tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        let within =
            || TraceBuilder::within(16 << 20, || Err(std::io::ErrorKind::Unsupported.into()));
        let read = read_here(&Scan::paths([sample]), (), within);
        let mut records = read.expect("WAL").2.trace.records;
        records.close();
        let (bytes, count) = records.held();
        assert!((17..21).contains(&(bytes / u64::from(count))), "{name}: {bytes} of {count}");
    }
}
