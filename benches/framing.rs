//! Pages → records: headers, links and block headers checked; no checksums, no statistics.

mod common;

use common::{Counted, Set, criterion, mixed, tiny};
use criterion::{Criterion, Throughput};
use std::hint::black_box;

fn framing(criterion: &mut Criterion, set: &Set) {
    let mut group = criterion.benchmark_group("framing");
    group.throughput(Throughput::Bytes(set.bytes()));
    group.bench_function(set.name, |bencher| {
        bencher.iter(|| {
            let found = black_box(set).scan::<Counted>(None);
            assert_eq!(found, set.expected);
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    for set in [mixed(), tiny()] {
        framing(&mut criterion, &set);
    }
    criterion.final_summary();
}
