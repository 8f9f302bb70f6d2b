use std::num::NonZeroUsize;
use walstat::analyse::relation::Relations;
use walstat::scan::pages::Progress;
use walstat::scan::read::read;
use walstat::scan::record::Everything;
use walstat::scan::streamed::Wanted;
use walstat::wal::crc::Crc32c;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let wanted = Wanted { crc: Some(Crc32c::detect()), range: (a[2].parse().unwrap(), a[3].parse().unwrap()), limit: None, timeline: None, select: Everything };
    let (_, o) = read(&[a[1].clone().into()], wanted, NonZeroUsize::new(2).unwrap(), &Progress::default(), &Relations::default()).expect("wal");
    let mut r = o.observer;
    use walstat::scan::record::Observe;
    r.settle();
    for row in r.rows() {
        if let Some(k) = row.key {
            println!("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", k.relation.relfilenode, k.relation.database, k.relation.tablespace, k.fork, row.block_refs, row.block_data_bytes, row.amounts.fpi_bytes, row.amounts.fpi_count, row.distinct_blocks);
            if a.len() > 4 { eprintln!("{} {:?} {:?} leaf {:?}", k.relation.relfilenode, row.operations, row.substance, row.leaves.map(|l| (l.inserts, l.blocks.len(), l.rightmost_inserts()))); }
        }
    }
}
