//! Writes WAL of the smallest records that matter, inserts of 59 bytes, without a server:
//! `benches/instructions.sh` counts the instructions that reading them takes.
//!
//! Usage: `tiny_wal DIRECTORY SEGMENTS`; segments have 1 MB.

#![allow(dead_code, reason = "the builder of the tests can do more than this needs")]

#[path = "../tests/common/builder.rs"]
mod builder;
#[path = "../tests/common/disk.rs"]
mod disk;
#[path = "../tests/common/record.rs"]
mod record;

use builder::{Form, Wal};
use record::{Block, HEAP, Rec};
use std::path::PathBuf;
use std::process::ExitCode;

/// The number of the first segment: LSNs begin behind 0.
const FIRST: u64 = 1;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().map(PathBuf::from);
    let segments = arguments.next().and_then(|text| text.to_str()?.parse::<u64>().ok());
    let (Some(directory), Some(segments)) = (directory, segments) else {
        eprintln!("usage: tiny_wal DIRECTORY SEGMENTS");
        return ExitCode::from(2);
    };
    let form = Form::of("15");
    let mut wal = Wal::new(form, FIRST);
    let insert = Rec::new(HEAP, 0x00, 3).block(Block::new(0).data(10));
    // The last record ends within the last segment, whatever page headers lie before it.
    while wal.at() + 128 < (FIRST + segments) * form.segment {
        wal.add(&insert);
    }
    let disk = wal.finish();
    for &number in disk.files.keys() {
        disk.write_segment(&directory, number);
    }
    ExitCode::SUCCESS
}
