//! Gaps that are accepted: segments that may be missing, and why.

use super::model::checked::AcceptedGap;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_read::input::problem::Problem;

/// Segments that may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// From the first byte of one to that of a later one.
    pub range: Range<Lsn>,
    /// Why.
    pub because: String,
}

/// Reads `LSN..LSN`.
///
/// # Errors
///
/// When it is something else, or nothing lies between the two.
pub fn range(text: &str) -> Result<(Lsn, Lsn), &'static str> {
    let expected = "expected two LSNs, like 0/5000000..0/7000000";
    let (start, end) = text.split_once("..").ok_or(expected)?;
    let (start, end): (Lsn, Lsn) =
        (start.parse().map_err(|_| expected)?, end.parse().map_err(|_| expected)?);
    if start < end { Ok((start, end)) } else { Err("expected an end that is after the start") }
}

impl Gap {
    /// A gap and the reason for it.
    ///
    /// # Errors
    ///
    /// When there is no reason.
    pub fn new((start, end): (Lsn, Lsn), because: &str) -> Result<Gap, &'static str> {
        let because = because.trim().to_owned();
        if because.is_empty() {
            Err("expected a reason")
        } else {
            Ok(Gap { range: start..end, because })
        }
    }

    /// As it is told; `accepted`: what would be problems without any gap.
    pub fn told(&self, accepted: &[Problem]) -> AcceptedGap {
        let Gap { range, because } = self;
        let is_in = |problem: &Problem| problem.lsn.is_some_and(|lsn| range.contains(&lsn));
        AcceptedGap {
            start_lsn: range.start.to_string(),
            end_lsn: range.end.to_string(),
            because: because.clone(),
            used: accepted.iter().any(is_in),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_has_a_start_before_its_end() {
        assert_eq!(range("0/5000000..1/0"), Ok((Lsn(0x500_0000), Lsn(1 << 32))));
        for wrong in ["", "0/1", "0/2..0/1", "0/1..0/1", "0/1..x", "0/1...0/2", "0/1-0/2"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
        assert!(Gap::new((Lsn(0), Lsn(1)), "  ").is_err());
    }
}
