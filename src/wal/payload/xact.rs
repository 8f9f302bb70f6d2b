//! Transaction records: commit and abort carry their time first (`xl_xact_commit`,
//! `xl_xact_abort` in `src/include/access/xact.h`).

use super::Time;
use nom::number::complete::le_i64;
use nom::{IResult, Parser};

/// Bits of `xl_info` that hold the opcode; 0x80 says that an `xinfo` word follows the time.
pub const OPCODE_MASK: u8 = 0x70;
/// A transaction commits.
pub const COMMIT: u8 = 0x00;
/// A transaction aborts.
pub const ABORT: u8 = 0x20;
/// A prepared transaction commits.
pub const COMMIT_PREPARED: u8 = 0x30;
/// A prepared transaction aborts.
pub const ABORT_PREPARED: u8 = 0x40;

/// When a transaction ended, from the main data of a record of these four types; `None` for
/// the other types and for main data that is too short.
pub fn end_time(info: u8, main_data: &[u8]) -> Option<Time> {
    let opcode = info & OPCODE_MASK;
    if ![COMMIT, ABORT, COMMIT_PREPARED, ABORT_PREPARED].contains(&opcode) {
        return None;
    }
    let parsed: IResult<&[u8], i64> = le_i64.parse(main_data);
    parsed.ok().map(|(_, time)| Time::from_timestamptz(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_2000() {
        assert_eq!(end_time(COMMIT | 0x80, &[0; 9]), Some(Time(946_684_800_000_000)));
        assert_eq!(end_time(COMMIT, &[0; 7]), None);
        assert_eq!(end_time(0x10, &[0; 8]), None);
    }
}
