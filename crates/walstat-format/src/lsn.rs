//! Log sequence numbers: byte positions in the WAL of one cluster.
//!
//! Not for file names, which depend on the segment size: see [`super::segment`].

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Records begin at multiples of that. (`crc.rs`, and `fast.rs` of walstat-read, whose instructions are
/// counted, have it as `& !7`.)
pub const MAXALIGN: usize = 8;

/// The bytes of a record with those up to the next one.
#[inline(always)]
pub const fn padded(bytes: u64) -> u64 {
    (bytes + 7) & !7
}

/// A byte position in the WAL, page headers included (`XLogRecPtr`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The end of a range that has none.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The text form of releases up to 18: `0/9015A0`, low half not padded.
    pub fn unpadded(self) -> impl fmt::Display {
        struct Unpadded(u64);
        impl fmt::Display for Unpadded {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
            }
        }
        Unpadded(self.0)
    }

    /// This position rounded up to the alignment of records (8 bytes).
    pub fn aligned(self) -> Lsn {
        Lsn(self.0.saturating_add(7) & !7)
    }
}

/// The text form of release 19 and of walstat: `0/009015A0`.
impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:08X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an LSN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected two hexadecimal numbers of up to 8 digits, like 16/B374D848")]
pub struct LsnError;

/// Reads both spellings, `16/B374D848` and `16/0B374D84`.
impl FromStr for Lsn {
    type Err = LsnError;

    fn from_str(text: &str) -> Result<Lsn, LsnError> {
        let (high, low) = text.split_once('/').ok_or(LsnError)?;
        let half = |digits: &str| {
            let plain =
                (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten().ok_or(LsnError)
        };
        Ok(Lsn(half(high)? << 32 | half(low)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        assert_eq!("0/9015A0".parse(), Ok(Lsn(0x9015A0)));
        assert_eq!("0/009015a0".parse(), Ok(Lsn(0x9015A0)));
        assert_eq!("16/B374D848".parse(), Ok(Lsn(0x16_B374_D848)));
    }

    #[test]
    fn both_spellings_are_written() {
        let lsn = Lsn(0x16_0B37_4D84);
        assert_eq!(lsn.to_string(), "16/0B374D84");
        assert_eq!(lsn.unpadded().to_string(), "16/B374D84");
    }

    #[test]
    fn what_is_not_an_lsn_is_refused() {
        for text in ["", "/", "0/", "/0", "0", "0/123456789", "g/0", "0/+1", "1/2/3", " 0/1"] {
            assert_eq!(text.parse::<Lsn>(), Err(LsnError), "{text:?}");
        }
    }
}
