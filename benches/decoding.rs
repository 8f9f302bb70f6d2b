//! The walk over block headers alone: records that lie ready in memory, one after the other.

mod common;

use common::{Set, criterion, mixed, tiny};
use criterion::{Criterion, Throughput};
use std::hint::black_box;
use walstat_format::block::{Parts, walk};

/// Records one behind the other, and where each ends.
struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    fn of(set: &Set) -> Records {
        let mut records = Records { bytes: Vec::new(), ends: Vec::new() };
        set.for_each_whole_record(|record| {
            records.bytes.extend(record);
            records.ends.push(records.bytes.len());
        });
        assert!(records.ends.len() > 10_000, "{} whole records", records.ends.len());
        records
    }
}

/// Headers, main data, block data and images of all records: the whole of them.
fn sum(records: &Records, set: &Set, mut visit: impl FnMut(&Parts, u32)) -> u64 {
    let version = set.disk.form.version;
    let (mut start, mut sum) = (0, 0);
    for &end in &records.ends {
        let record = &records.bytes[start..end];
        let mut blocks = 0;
        let parts = walk(record, record.len() as u32, version, |block| blocks ^= block.block);
        let parts = parts.expect("a record that the reader took");
        let payload = parts.main_data_bytes + parts.block_data_bytes + parts.fpi_bytes;
        sum += u64::from(parts.head_bytes + payload);
        visit(&parts, blocks);
        start = end;
    }
    sum
}

fn decoding(criterion: &mut Criterion, set: &Set) {
    let records = Records::of(set);
    let mut group = criterion.benchmark_group("decoding");
    group.throughput(Throughput::Bytes(records.bytes.len() as u64));
    let whole = records.bytes.len() as u64;
    group.bench_function(format!("{}/sums", set.name), |bencher| {
        bencher.iter(|| assert_eq!(sum(black_box(&records), set, |_, _| ()), whole));
    });
    group.bench_function(format!("{}/blocks", set.name), |bencher| {
        bencher.iter(|| {
            let found = sum(black_box(&records), set, |_, blocks| _ = black_box(blocks));
            assert_eq!(found, whole);
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    for set in [mixed(), tiny()] {
        decoding(&mut criterion, &set);
    }
    criterion.final_summary();
}
