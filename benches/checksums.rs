//! CRC-32C of pieces as long as records and pages are, against the crates that compute it.

mod common;

use common::{criterion, record::Rec, tiny};
use criterion::{Criterion, Throughput};
use std::hint::black_box;
use walstat_format::crc::Crc32c;
use walstat_format::version::VERSIONS;

/// A short record, the powers of two between, and what a page holds besides its header.
const LENGTHS: [usize; 6] = [59, 128, 256, 1024, 4096, 8168];
/// Bytes of all pieces together: they stay in the second-level cache.
const TOTAL: usize = 512 << 10;

/// The state behind all bytes.
type Way<'a> = &'a dyn Fn(&[u8]) -> u32;

/// The state is carried from piece to piece, as over the pieces of one long record.
fn pieces(criterion: &mut Criterion) {
    let bytes: Vec<u8> = (0..TOTAL).map(|i| (i * 31 + i / 251) as u8).collect();
    let crc = Crc32c::detect();
    for length in LENGTHS {
        let whole = TOTAL / length * length;
        let expected = !crc32c::crc32c(&bytes[..whole]);
        let walstat = |bytes: &[u8]| {
            bytes.chunks_exact(length).fold(Crc32c::START, |state, piece| crc.update(state, piece))
        };
        let crate_crc32c =
            |bytes: &[u8]| !bytes.chunks_exact(length).fold(0, crc32c::crc32c_append);
        let crate_crc_fast = |bytes: &[u8]| {
            let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
            for piece in bytes.chunks_exact(length) {
                digest.update(piece);
            }
            !(digest.finalize() as u32)
        };
        let portable = |bytes: &[u8]| {
            let pieces = bytes.chunks_exact(length);
            pieces.fold(Crc32c::START, |state, piece| Crc32c::portable().update(state, piece))
        };
        let ways: [(&str, Way<'_>); 4] = [
            ("walstat", &walstat),
            ("walstat portable", &portable),
            ("crc32c", &crate_crc32c),
            ("crc-fast", &crate_crc_fast),
        ];
        let mut group = criterion.benchmark_group(format!("checksums/pieces of {length}"));
        group.throughput(Throughput::Bytes(whole as u64));
        for (name, way) in ways {
            group.bench_function(name, |bencher| {
                bencher.iter(|| assert_eq!(way(black_box(&bytes)), expected));
            });
        }
        group.finish();
    }
}

/// Whole records, one behind the other, each with a checksum of its own.
fn records(criterion: &mut Criterion) {
    let version = &VERSIONS[7];
    for length in LENGTHS {
        let record = Rec::sized(length).encode(version, 0x28);
        let mut page = Vec::new();
        while page.len() < TOTAL {
            page.extend(&record);
            page.resize(page.len().next_multiple_of(8), 0);
        }
        let mut group = criterion.benchmark_group(format!("checksums/records of {length}"));
        group.throughput(Throughput::Bytes(page.len() as u64));
        for (name, crc) in [("walstat", Crc32c::detect()), ("portable", Crc32c::portable())] {
            group.bench_function(name, |bencher| {
                bencher.iter(|| assert_eq!(crc.verified(black_box(&page)), page.len()));
            });
        }
        group.finish();
    }
}

/// What the checksums of real pages cost beside everything else.
fn scan(criterion: &mut Criterion) {
    let set = tiny();
    let mut group = criterion.benchmark_group("checksums/scan");
    group.throughput(Throughput::Bytes(set.bytes()));
    for (name, crc) in [("verified", Some(Crc32c::detect())), ("not verified", None)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let found = set.scan::<common::Counted>(black_box(crc));
                assert_eq!(found, set.expected);
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    pieces(&mut criterion);
    records(&mut criterion);
    scan(&mut criterion);
    criterion.final_summary();
}
