//! Records in one piece: their bytes put together over pages and segments, and their parts told
//! apart. Finds the records with the naive twin, so that nothing here depends on the reader.

use super::builder::Form;
use super::disk::Disk;
use super::naive;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;
use walstat_format::block::{BlockRef, walk};
use walstat_format::lsn::Lsn;
use walstat_format::record_header::{RECORD_HEADER_BYTES, RecordHeader};
use walstat_format::version::Version;

/// A block reference with what belongs to it.
pub struct Block {
    /// The reference.
    pub reference: BlockRef,
    /// The image as it is stored; empty if there is none.
    pub image: Vec<u8>,
    /// The block data; empty if there are none.
    pub data: Vec<u8>,
}

/// A whole record.
pub struct Whole {
    /// Where it starts.
    pub lsn: Lsn,
    /// After its last byte, rounded up to 8: what replay stamps on pages.
    pub end: Lsn,
    /// Its header.
    pub header: RecordHeader,
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// Its main data.
    pub main_data: Vec<u8>,
}

/// All records in a folder of segments, plain or packed with zstd.
pub fn records(folder: &Path, version: &'static Version, timeline: u32) -> Vec<Whole> {
    let plain = unpacked(folder);
    let first = std::fs::read_dir(plain.path())
        .expect("a folder")
        .map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a segment"))
        .find(|bytes| bytes.len() >= 40 && bytes[2] & 2 != 0)
        .expect("a segment with a long header");
    let number = |at: usize| u32::from_le_bytes(first[at..at + 4].try_into().expect("4 bytes"));
    let form = Form {
        version,
        page: u64::from(number(36)),
        segment: u64::from(number(32)),
        system: 0,
        timeline,
    };
    let mut disk = Disk::read(plain.path(), form);
    keep_one_stretch(&mut disk);
    let found = naive::read(&disk, None, None, None).expect("records");
    found
        .records
        .iter()
        .filter(|(lsn, _)| *lsn >= disk.start())
        .map(|(lsn, end)| parts(*lsn, *end, &bytes_between(&disk, lsn.0, end.0), version))
        .collect()
}

/// The newest segments that follow each other.
fn keep_one_stretch(disk: &mut Disk) {
    let mut numbers: Vec<u64> = disk.files.keys().copied().collect();
    numbers.reverse();
    let gap = numbers.windows(2).position(|pair| pair[0] != pair[1] + 1);
    let kept = gap.map_or(numbers.len(), |index| index + 1);
    for number in &numbers[kept..] {
        disk.files.remove(number);
    }
}

fn unpacked(folder: &Path) -> TempDir {
    let plain = TempDir::new().expect("a folder");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_segment =
            name.get(..24).is_some_and(|head| head.bytes().all(|b| b.is_ascii_hexdigit()));
        if !is_segment || !path.is_file() {
            continue;
        }
        let mut bytes = std::fs::read(&path).expect("a segment");
        if name.ends_with(".zst") {
            let packed = std::mem::take(&mut bytes);
            let mut decoder = zstd::Decoder::new(packed.as_slice()).expect("a decoder");
            decoder.read_to_end(&mut bytes).expect("a segment");
        }
        std::fs::write(plain.path().join(&name[..24]), bytes).expect("a segment written");
    }
    plain
}

/// The bytes of a record, page headers left out.
fn bytes_between(disk: &Disk, from: u64, to: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = from;
    while at < to {
        if at.is_multiple_of(disk.form.page) {
            at += disk.form.header(at);
        }
        let piece_end = to.min((at / disk.form.page + 1) * disk.form.page);
        let file = &disk.files[&(at / disk.form.segment)];
        let offset = (at % disk.form.segment) as usize;
        bytes.extend(&file[offset..offset + (piece_end - at) as usize]);
        at = piece_end;
    }
    bytes
}

fn parts(lsn: Lsn, end: Lsn, bytes: &[u8], version: &Version) -> Whole {
    let header = RecordHeader::parse(bytes.first_chunk::<RECORD_HEADER_BYTES>().expect("a header"));
    let mut references = Vec::new();
    let sums = walk(bytes, header.total_bytes, version, |block| references.push(*block));
    let mut at = sums.expect("a sound record").head_bytes as usize;
    let mut take = |count: usize| {
        at += count;
        bytes[at - count..at].to_vec()
    };
    let blocks = references.into_iter().map(|reference| {
        let image = take(reference.image.map_or(0, |image| usize::from(image.bytes)));
        Block { reference, image, data: take(usize::from(reference.data_bytes)) }
    });
    let blocks = blocks.collect();
    let main_data = bytes[at..].to_vec();
    Whole { lsn, end: end.aligned(), header, blocks, main_data }
}
