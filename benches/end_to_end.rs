//! A directory of segments → statistics, as the command does it: look, plan, read, count, join.

mod common;

use common::{Counted, Set, criterion, mixed, tiny};
use criterion::{Criterion, Throughput};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use walstat_analyse::clock::Clock;
use walstat_analyse::totals::RecordTable;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_read::Scan;
use walstat_read::scan::streamed::Wanted;

fn count(paths: &[PathBuf], threads: NonZeroUsize) -> Counted {
    let wanted = Wanted {
        crc: Some(Crc32c::detect()),
        range: Lsn(0)..Lsn::MAX,
        map_files: true,
        limit: None,
        timeline: None,
        ..Wanted::default()
    };
    let prototype = <(RecordTable, Clock)>::default();
    let scan = Scan { wanted, threads, ..Scan::paths(paths) };
    let (_, outcome) = scan.count(&prototype).expect("WAL");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let sum = outcome.observer.0.sum(|_| true);
    Counted { records: sum.count, bytes: sum.total_bytes }
}

fn end_to_end(criterion: &mut Criterion, set: &Set) {
    let directory = set.disk.write();
    let paths = [directory.path().to_owned()];
    let mut group = criterion.benchmark_group(format!("end to end/{}", set.name));
    group.throughput(Throughput::Bytes(set.bytes()));
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).expect("at least one thread");
        group.bench_function(format!("{threads} threads"), |bencher| {
            bencher.iter(|| assert_eq!(count(&paths, threads), set.expected));
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    for set in [mixed(), tiny()] {
        end_to_end(&mut criterion, &set);
    }
    criterion.final_summary();
}
