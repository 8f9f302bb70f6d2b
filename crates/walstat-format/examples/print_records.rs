//! Prints the records of a WAL segment, a line each:
//! `cargo run -p walstat-format --example print_records -- 000000010000000000000001`

use walstat_format::rmgr;
use walstat_format::segment_records::records_of;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("expected the path of a segment")?;
    let segment = std::fs::read(path)?;
    for record in records_of(&segment).ok_or("found no WAL segment")? {
        let record = record.view();
        let (manager, name) =
            (rmgr::name(record.header.rmgr), record.record_type().name(record.version));
        print!("{} {manager}/{name} {} bytes", record.lsn, record.header.total_bytes);
        for block in record.blocks() {
            let image = if block.image.is_some() { " with image" } else { "" };
            print!(", {} fork {} block {}{image}", block.relation, block.fork, block.block);
        }
        println!();
    }
    Ok(())
}
