//! Records with which a timeline begins: `CHECKPOINT_SHUTDOWN` and `END_OF_RECOVERY` have both
//! timelines at the same place (`CheckPoint` in `src/include/catalog/pg_control.h`,
//! `xl_end_of_recovery` in `src/include/access/xlog_internal.h`), in all releases.

use serde::{Deserialize, Serialize};

/// The timelines that such a record names; the same ones where none begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// `PrevTimeLineID`.
    pub from: u32,
    /// `ThisTimeLineID`.
    pub to: u32,
}

impl Switch {
    /// Main data that is needed, bytes.
    pub const BYTES: usize = 16;

    /// Reads the first bytes of the main data: 8 for something else, then `ThisTimeLineID` and
    /// `PrevTimeLineID`.
    pub fn parse(main_data: [u8; Switch::BYTES]) -> Switch {
        let [_, _, _, _, _, _, _, _, to0, to1, to2, to3, from0, from1, from2, from3] = main_data;
        Switch {
            from: u32::from_le_bytes([from0, from1, from2, from3]),
            to: u32::from_le_bytes([to0, to1, to2, to3]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_timelines_follow_the_first_eight_bytes() {
        let data = [9, 9, 9, 9, 9, 9, 9, 9, 2, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(Switch::parse(data), Switch { from: 1, to: 2 });
    }
}
