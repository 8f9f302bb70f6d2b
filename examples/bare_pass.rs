//! The least that a checking reader of WAL can do: read the files through one reused window and
//! checksum every byte, on one thread. `benches/compare.sh` holds walstat against it.
//!
//! It knows nothing of segments, pages or records, so its sums are not those of the records:
//! they are printed only so that the work cannot be optimised away.
//!
//! Usage: `bare_pass FILE...`

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::process::ExitCode;

use crc_fast::{CrcAlgorithm, checksum};

/// Bytes of the window: it stays in the second-level cache between `read` and the checksum.
const WINDOW_BYTES: usize = 512 * 1024;

/// Reads `file` to its end through `window`; gives its length in bytes and its pieces' sums.
fn pass(mut file: File, window: &mut [u8]) -> io::Result<(u64, u64)> {
    let (mut bytes, mut sum) = (0, 0);
    loop {
        let length = file.read(window)?;
        if length == 0 {
            return Ok((bytes, sum));
        }
        bytes += length as u64;
        sum ^= checksum(CrcAlgorithm::Crc32Iscsi, &window[..length]);
    }
}

fn main() -> ExitCode {
    let mut window = vec![0; WINDOW_BYTES];
    let (mut bytes, mut sum) = (0, 0);
    for path in env::args_os().skip(1) {
        match File::open(&path).and_then(|file| pass(file, &mut window)) {
            Ok((file_bytes, file_sum)) => {
                bytes += file_bytes;
                sum ^= file_sum;
            }
            Err(error) => {
                eprintln!("bare_pass: {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{bytes} bytes, CRC-32C of all pieces {sum:08x}");
    ExitCode::SUCCESS
}
