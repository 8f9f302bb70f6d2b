//! Writes WAL of very many relations or transactions, without a server, to measure what reading them
//! takes of memory and time.
//!
//! Usage: `scale_wal DIRECTORY relations|transactions|kinds|overlapping|open COUNT`; segments have 1 MB. A
//! relation has two inserts, in two blocks; a transaction an insert and its commit, or no end. Of kinds there
//! are 100,000, of two inserts each; of transactions that overlap 200,000 are open at a time.

#![allow(dead_code, reason = "the builder of the tests can do more than this needs")]

#[path = "../tests/common/builder.rs"]
mod builder;
#[path = "../tests/common/disk.rs"]
mod disk;
#[path = "../tests/common/record.rs"]
mod record;

use builder::{Form, Wal};
use record::{Block, HEAP, Rec, TRANSACTION};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The first xid, and the first file number.
const FIRST: u32 = 16_384;

/// So many transactions that overlap are open at a time.
const OVERLAPPING: u32 = 200_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().map(PathBuf::from);
    let kind = arguments.next().and_then(|kind| kind.into_string().ok());
    let count = arguments.next().and_then(|text| text.to_str()?.parse::<u32>().ok());
    let (Some(directory), Some(kind), Some(count)) = (directory, kind, count) else {
        eprintln!("usage: scale_wal DIRECTORY relations|transactions|kinds|overlapping|open COUNT");
        return ExitCode::from(2);
    };
    write(&directory, &kind, count);
    ExitCode::SUCCESS
}

fn insert(relfilenode: u32, number: u32, xid: u32) -> Rec {
    let block = Block { relation: Some([1663, 5, relfilenode]), number, ..Block::new(0).data(10) };
    Rec { xid, ..Rec::new(HEAP, 0x00, 3) }.block(block)
}

/// The records of one relation, or of one transaction.
fn records(kind: &str, number: u32) -> Vec<Rec> {
    let id = FIRST + number;
    // A commit: its time, and nothing else.
    let commit = |xid| Rec { xid, main: vec![1; 8], ..Rec::new(TRANSACTION, 0x00, 0) };
    match kind {
        "relations" => [0, 1].map(|block| insert(id, block, 700)).into(),
        "transactions" => vec![insert(FIRST + number % 50, number % 1000, id), commit(id)],
        "kinds" => {
            let (table, other) = (number % 400, number / 400 % 250);
            let inserts = [FIRST + table, FIRST + 400 + other].map(|file| insert(file, 0, id));
            inserts.into_iter().chain([commit(id)]).collect()
        }
        "overlapping" => {
            let ended = number.checked_sub(OVERLAPPING).map(|ended| commit(FIRST + ended));
            Some(insert(FIRST + number % 50, number % 1000, id)).into_iter().chain(ended).collect()
        }
        _ => vec![insert(FIRST + number % 50, number % 1000, id)],
    }
}

fn write(directory: &Path, kind: &str, count: u32) {
    let mut wal = Wal::new(Form::of("15"), 1);
    for number in 0..count {
        records(kind, number).iter().for_each(|record| _ = wal.add(record));
    }
    let disk = wal.finish();
    for &number in disk.files.keys() {
        disk.write_segment(directory, number);
    }
}
