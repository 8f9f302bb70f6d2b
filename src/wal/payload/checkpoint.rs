//! Checkpoint records (`CHECKPOINT_SHUTDOWN`, `CHECKPOINT_ONLINE`): the `CheckPoint` struct of
//! `src/include/catalog/pg_control.h`, whose layout moved in 12 and 19.

use super::Time;
use crate::wal::lsn::Lsn;
use nom::bytes::complete::take;
use nom::number::complete::{le_i64, le_u32, le_u64};
use nom::{IResult, Parser};
use serde::{Deserialize, Serialize};

/// Where the fields that move lie in the main data.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointLayout {
    time: usize,
}

impl CheckpointLayout {
    /// 9.5 to 11.
    pub const V9_5: CheckpointLayout = CheckpointLayout { time: 56 };
    /// 12 to 18.
    pub const V12: CheckpointLayout = CheckpointLayout { time: 64 };
    /// 19.
    pub const V19: CheckpointLayout = CheckpointLayout { time: 72 };
}

/// The fields of a checkpoint that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Where recovery from this checkpoint begins.
    pub redo: Lsn,
    /// Timeline that goes on.
    pub timeline: u32,
    /// When the checkpoint was begun.
    pub time: Time,
}

impl Checkpoint {
    /// Reads the main data of a checkpoint record; `None` if it is too short.
    pub fn parse(main_data: &[u8], layout: CheckpointLayout) -> Option<Checkpoint> {
        let fields = |input| -> IResult<&[u8], (u64, u32, &[u8], i64)> {
            // 12 bytes precede the bytes that are skipped: redo and ThisTimeLineID.
            (le_u64, le_u32, take(layout.time - 12), le_i64).parse(input)
        };
        let (_, (redo, timeline, _, time)) = fields(main_data).ok()?;
        Some(Checkpoint { redo: Lsn(redo), timeline, time: Time::from_pg_time(time) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_each_layout() {
        for (layout, size) in
            [(CheckpointLayout::V9_5, 80), (CheckpointLayout::V12, 88), (CheckpointLayout::V19, 96)]
        {
            let mut data = vec![0xEEu8; size];
            data[0..8].copy_from_slice(&0x1234u64.to_le_bytes());
            data[8..12].copy_from_slice(&7u32.to_le_bytes());
            data[layout.time..layout.time + 8].copy_from_slice(&1_500_000_000i64.to_le_bytes());
            let want =
                Checkpoint { redo: Lsn(0x1234), timeline: 7, time: Time(1_500_000_000_000_000) };
            assert_eq!(Checkpoint::parse(&data, layout), Some(want));
            assert_eq!(Checkpoint::parse(&data[..layout.time + 7], layout), None);
        }
    }
}
