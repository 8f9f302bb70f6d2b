//! What each dimension of the statistics costs, and that one that was not asked for costs nothing.
//!
//! The dimensions counted here are a type, so the loop is compiled for them. [`Relations`] stands
//! for any later one: it is added here, from outside, without touching the loop, and it looks at
//! every block of every record. [`Absent`] stands for one that was not asked for: it has no
//! size, and `RecordTable + absent` must take as long as `RecordTable`.

mod common;

use common::{Counted, Set, criterion, mixed, tiny};
use criterion::{Criterion, Throughput};
use std::collections::HashMap;
use std::hint::black_box;
use walstat_analyse::clock::Clock;
use walstat_analyse::totals::RecordTable;
use walstat_format::block::RelFileLocator;
use walstat_format::crc::Crc32c;
use walstat_format::record::Record;
use walstat_read::scan::observe::Observe;

/// A dimension that was not asked for.
#[derive(Clone, Default)]
struct Absent;

const _: () = assert!(size_of::<(RecordTable, Absent)>() == size_of::<RecordTable>());

impl Observe for Absent {
    #[inline(always)]
    fn observe(&mut self, _: &Record<'_>) {}

    fn merge(&mut self, _: Absent) {}
}

/// Block references by relation, as a later dimension may count them: a row of references to one
/// relation is added to the table at its end.
#[derive(Clone, Default)]
struct Relations {
    last: RelFileLocator,
    in_row: u64,
    all: HashMap<RelFileLocator, u64>,
}

impl Relations {
    fn end_row(&mut self) {
        *self.all.entry(self.last).or_default() += std::mem::take(&mut self.in_row);
    }
}

impl Observe for Relations {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        record.blocks().for_each(|block| {
            if block.relation != self.last {
                self.end_row();
                self.last = block.relation;
            }
            self.in_row += 1;
        });
    }

    fn merge(&mut self, mut later: Relations) {
        later.end_row();
        let add = |(relation, count)| *self.all.entry(relation).or_default() += count;
        later.all.into_iter().for_each(add);
    }
}

/// What a table must add up to.
trait Check {
    fn counted(&self) -> Counted;
}

impl Check for RecordTable {
    fn counted(&self) -> Counted {
        let sum = self.sum(|_| true);
        Counted { records: sum.count, bytes: sum.total_bytes }
    }
}

impl<A: Check, B> Check for (A, B) {
    fn counted(&self) -> Counted {
        self.0.counted()
    }
}

fn dimension<O: Observe + Check + Default>(criterion: &mut Criterion, set: &Set, name: &str) {
    let mut group = criterion.benchmark_group(format!("statistics/{}", set.name));
    group.throughput(Throughput::Bytes(set.bytes()));
    let crc = Some(Crc32c::detect());
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let found: O = black_box(set).scan(crc);
            assert_eq!(found.counted(), set.expected);
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    for set in [mixed(), tiny()] {
        dimension::<RecordTable>(&mut criterion, &set, "records");
        dimension::<(RecordTable, Absent)>(&mut criterion, &set, "records + absent");
        dimension::<(RecordTable, Clock)>(&mut criterion, &set, "records + clock");
        let name = "records + clock + relations";
        dimension::<((RecordTable, Clock), Relations)>(&mut criterion, &set, name);
    }
    criterion.final_summary();
}
