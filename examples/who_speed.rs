//! scratch
use std::num::NonZeroUsize;
use std::path::PathBuf;
fn cpu() -> f64 { std::fs::read_to_string("/proc/self/schedstat").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9 }
use walstat::analyse::clock::Clock;
use walstat::analyse::relation::Relations;
use walstat::analyse::finished::*;
use walstat::analyse::transaction::Transactions;
use walstat::analyse::totals::RecordTable;
use walstat::scan::pages::Progress;
use walstat::scan::read::read;
use walstat::scan::record::{Everything, Observe};
use walstat::scan::streamed::Wanted;
use walstat::wal::crc::Crc32c;
use walstat::wal::lsn::Lsn;
fn time<O: Observe>(name: &str, path: &str, proto: O) -> O {
    let mut best = f64::MAX;
    let mut last = None;
    for _ in 0..std::env::var("N").map_or(7, |n| n.parse().unwrap()) {
        let wanted = Wanted { crc: Some(Crc32c::detect()), range: (Lsn(0), Lsn::MAX), limit: None, timeline: None, select: Everything };
        let t = cpu();
        let (_, o) = read(&[PathBuf::from(path)], wanted, NonZeroUsize::MIN, &Progress::default(), &proto).expect("wal");
        best = best.min(cpu() - t);
        last = Some(o.observer);
    }
    eprintln!("{path} {name}: {best:.4}");
    last.unwrap()
}
fn main() {
    for path in std::env::args().skip(1) {
        let base = (RecordTable::default(), Clock::default());
        let t = time("base", &path, base.clone());
        let n = t.0.sum(|_| true).count;
        eprintln!("{n} records");
        let r = time("relations", &path, (base.clone(), Relations::default()));
        eprintln!("{} relations", r.1.len());
        let t = Transactions::new(FinishedRows::new(1_000_000, Order::Bytes));
        time("transactions", &path, (base.clone(), t.clone()));
        let r = time("both", &path, (base.clone(), (Relations::default(), t.clone())));
        eprintln!("{} transactions", r.1.1.finish(|_| None).0.summary.transactions());
    }
}
