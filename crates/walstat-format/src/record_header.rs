//! Record headers: the 24 bytes before every record (`XLogRecord` in
//! `src/include/access/xlogrecord.h`), the same in all releases.

use super::lsn::Lsn;
use super::payload::{rmgr_info, xact, xlog};
use super::version::{FIRST_CUSTOM_RMGR, Version};
use serde::{Deserialize, Serialize};

/// Bytes of a record header; only an `XLOG_SWITCH` is no longer than that.
pub const RECORD_HEADER_BYTES: usize = 24;
/// No server makes room for a longer record (`MaxAllocSize`; 1020 MB from 16 on).
const RECORD_BYTES_MAX: u32 = 1 << 30;
/// Where the checksum lies; the 20 bytes before it are covered by it, last of all.
pub const CRC_OFFSET: usize = 20;
/// Where `xl_prev` lies.
pub const PREVIOUS_OFFSET: usize = 8;

/// In `xl_info`, from 10 on: redo compares each block with an image of it (`XLR_CHECK_CONSISTENCY`).
pub const CHECK_CONSISTENCY: u8 = 0x02;

/// Lower xids are no transactions (`FirstNormalTransactionId`): 1 made the first catalogs, and initdb
/// writes its first records as it; 2 stands for any that is frozen.
pub const FIRST_NORMAL_XID: u32 = 3;

/// A record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// `xl_tot_len`: the record with its header, without page headers and alignment; bytes.
    pub total_bytes: u32,
    /// `xl_xid`: the inserting (sub)transaction, 0 if it had none.
    pub xid: u32,
    /// `xl_prev`: where the record before this one starts.
    pub previous: Lsn,
    /// `xl_info`: the high half belongs to the resource manager.
    pub info: u8,
    /// `xl_rmid`: the resource manager.
    pub rmgr: u8,
    /// `xl_crc`: CRC-32C of the rest of the record.
    pub crc: u32,
}

/// Why a record header cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeaderFault {
    /// Shorter than a header; 0 is what never-written space holds.
    Length {
        /// `xl_tot_len` as found.
        found: u32,
    },
    /// Another record lies in it, which links to it.
    Overlap {
        /// `xl_tot_len` as found.
        found: u32,
        /// Where the other one starts.
        next: Lsn,
    },
    /// A resource manager that the release does not have.
    Rmgr {
        /// `xl_rmid` as found.
        found: u8,
    },
    /// Does not link to the record before.
    Previous {
        /// `xl_prev` as found.
        found: Lsn,
        /// Where the record before starts, if it is known.
        expected: Option<Lsn>,
    },
}

impl RecordHeader {
    /// Reads a header.
    #[inline(always)]
    pub fn parse(bytes: &[u8; RECORD_HEADER_BYTES]) -> RecordHeader {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        RecordHeader {
            total_bytes: u32_at(0),
            xid: u32_at(4),
            previous: Lsn(u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32),
            info: bytes[16],
            rmgr: bytes[17],
            crc: u32_at(20),
        }
    }

    /// Checks in the order of the server's reader (`ValidXLogRecordHeader`). Without a known
    /// predecessor, `xl_prev` must at least lie before the record itself.
    #[inline(always)]
    pub fn check(
        &self,
        version: &Version,
        lsn: Lsn,
        previous: Option<Lsn>,
    ) -> Result<(), HeaderFault> {
        // One comparison: what is shorter than a header wraps around.
        if self.total_bytes.wrapping_sub(RECORD_HEADER_BYTES as u32) > RECORD_BYTES_MAX {
            return Err(HeaderFault::Length { found: self.total_bytes });
        }
        if !version.has_rmgr(self.rmgr) {
            return Err(HeaderFault::Rmgr { found: self.rmgr });
        }
        let linked = match previous {
            Some(expected) => self.previous == expected,
            None => self.previous < lsn,
        };
        if !linked {
            return Err(HeaderFault::Previous { found: self.previous, expected: previous });
        }
        Ok(())
    }

    /// The same check, of a record that is longer than its header and of a type that the release has, after
    /// the one at `previous`.
    #[inline(always)]
    pub fn follows(&self, previous: Lsn) -> bool {
        let more = self.total_bytes.wrapping_sub(RECORD_HEADER_BYTES as u32 + 1);
        more < RECORD_BYTES_MAX && self.previous == previous
    }

    /// What of `xl_info` belongs to the resource manager.
    #[inline(always)]
    pub fn rmgr_info(&self) -> u8 {
        rmgr_info(self.info)
    }

    /// Whether a transaction commits here: `COMMIT` or `COMMIT_PREPARED`.
    #[inline(always)]
    pub fn is_commit(&self) -> bool {
        self.rmgr == super::rmgr::TRANSACTION && xact::commits(self.info)
    }

    /// Whether settings change here that recovery depends on: an `XLOG_PARAMETER_CHANGE`.
    #[inline(always)]
    pub fn is_parameter_change(&self) -> bool {
        // One comparison: the two bytes lie side by side.
        let kind = u16::from_le_bytes([self.rmgr_info(), self.rmgr]);
        kind == u16::from_le_bytes([xlog::PARAMETER_CHANGE, super::rmgr::XLOG])
    }

    /// Whether this is an `XLOG_SWITCH`: the rest of the segment holds nothing.
    pub fn is_switch(&self) -> bool {
        self.total_bytes as usize == RECORD_HEADER_BYTES
            && self.rmgr == super::rmgr::XLOG
            && self.rmgr_info() == xlog::SWITCH
    }
}

impl HeaderFault {
    /// What stood there, for a reader of the report.
    pub fn found(&self) -> String {
        match self {
            HeaderFault::Length { found } | HeaderFault::Overlap { found, .. } => {
                format!("record length {found}")
            }
            HeaderFault::Rmgr { found } => format!("resource manager {found}"),
            HeaderFault::Previous { found, .. } => format!("prev-link {found}"),
        }
    }

    /// What should have stood there.
    pub fn expected(&self, version: &Version) -> String {
        match self {
            HeaderFault::Length { .. } => format!("{RECORD_HEADER_BYTES} to {RECORD_BYTES_MAX}"),
            HeaderFault::Overlap { next, .. } => format!("an end before the next record at {next}"),
            HeaderFault::Rmgr { .. } if version.custom_rmgrs => {
                format!("0 to {} or {FIRST_CUSTOM_RMGR} to 255", version.rmgr_max)
            }
            HeaderFault::Rmgr { .. } => format!("0 to {}", version.rmgr_max),
            HeaderFault::Previous { expected: Some(lsn), .. } => format!("prev-link {lsn}"),
            HeaderFault::Previous { expected: None, .. } => "a prev-link before the record".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn header() -> RecordHeader {
        let mut bytes = [0u8; 24];
        bytes[0] = 30;
        bytes[4] = 5;
        bytes[8] = 0x28;
        bytes[16] = 0x61;
        bytes[17] = 10;
        bytes[20..].copy_from_slice(&0xDEAD_BEEFu32.to_le_bytes());
        RecordHeader::parse(&bytes)
    }

    #[test]
    fn fields_lie_where_the_server_puts_them() {
        let want = RecordHeader {
            total_bytes: 30,
            xid: 5,
            previous: Lsn(0x28),
            info: 0x61,
            rmgr: 10,
            crc: 0xDEAD_BEEF,
        };
        assert_eq!(header(), want);
    }

    #[test]
    fn each_check_fails_on_its_own_field() {
        let v15 = &VERSIONS[7];
        assert_eq!(header().check(v15, Lsn(0x100), Some(Lsn(0x28))), Ok(()));
        assert_eq!(header().check(v15, Lsn(0x100), None), Ok(()));
        let short = RecordHeader { total_bytes: 23, ..header() };
        assert_eq!(short.check(v15, Lsn(9), None), Err(HeaderFault::Length { found: 23 }));
        for (rmgr, ok) in [(21, true), (22, false), (127, false), (128, true), (255, true)] {
            let result = RecordHeader { rmgr, ..header() }.check(v15, Lsn(0x100), None);
            assert_eq!(result.is_ok(), ok, "{rmgr}");
        }
        assert!(header().check(v15, Lsn(0x28), None).is_err());
        assert!(header().check(v15, Lsn(0x100), Some(Lsn(0x30))).is_err());
    }
}
