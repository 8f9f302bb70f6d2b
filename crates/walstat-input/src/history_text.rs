//! The text of a timeline history, `NNNNNNNN.history`: one line per ancestor, read as a server reads it
//! (`readTimeLineHistory` in `src/backend/access/transam/timeline.c`).

use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;

/// One ancestor of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ancestor {
    /// The ancestor.
    pub timeline: u32,
    /// Where it ended and the next one began.
    pub end: Lsn,
}

/// A server reads so many bytes of a line at most (`MAXPGPATH` in `src/include/pg_config_manual.h`,
/// less one), and takes the rest for another line.
const LINE_BYTES_MAX: usize = 1023;

/// What is wrong with a history, as far as it matters what a server makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HistoryFault {
    /// A server refuses it, and ends (`syntax error in history file`, `invalid data in history file`).
    Refused,
    /// No line counts. To a server that reads it, all there ever was is of its timeline.
    NoAncestor,
    /// A server reads it, and finds no way from a backup of an ancestor.
    NoWay,
    /// Several of one name differ, of which a server gets one.
    Rivals,
    /// It does not begin with the history of the timeline that it leaves. Without a place, nothing tells
    /// which of the two is right.
    OtherAncestors,
}

/// A history that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WrongHistory {
    /// What is wrong with it.
    pub fault: HistoryFault,
    /// What was found. Not what stands there: the name may lead to a file that is none of the reader's
    /// business.
    pub found: String,
}

/// Reads the history of `timeline`: its ancestors, oldest first. `Err`: what is wrong with it. A server
/// refuses to start with such a history, or finds no way through it from a backup of an ancestor.
pub fn parse(timeline: u32, text: impl AsRef<[u8]>) -> Result<Vec<Ancestor>, WrongHistory> {
    let wrong = |fault, found: String| Err(WrongHistory { fault, found });
    let lines = (1..).zip(text.as_ref().split(|byte| *byte == b'\n'));
    let lines = lines.flat_map(|(number, line)| as_read(line).map(move |part| (number, part)));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#"));
    let mut ancestors: Vec<Ancestor> = Vec::new();
    for (number, line) in lines {
        let Some(next) = ancestor(line) else {
            return wrong(HistoryFault::Refused, format!("something else in line {number}"));
        };
        let is_after = ancestors.last().is_none_or(|last| last.timeline < next.timeline);
        if !is_after || next.timeline >= timeline {
            let found = format!("timeline {} where it cannot be an ancestor", next.timeline);
            return wrong(HistoryFault::Refused, found);
        }
        ancestors.push(next);
    }
    match ancestors.last() {
        None => wrong(HistoryFault::NoAncestor, "no ancestor".to_owned()),
        // A server finds nothing of that timeline.
        Some(Ancestor { timeline: 0, .. }) => {
            wrong(HistoryFault::NoWay, "timeline 0 as the parent".to_owned())
        }
        // To a server, this timeline has always been there (`tliOfPointInHistory`).
        Some(Ancestor { timeline, end: Lsn(0) }) => {
            wrong(HistoryFault::NoWay, format!("timeline {timeline} left at 0/0"))
        }
        Some(_) => Ok(ancestors),
    }
}

/// A line as a server reads it: up to a zero byte, and without the blanks in front.
fn as_read(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.chunks(LINE_BYTES_MAX).map(|part| {
        let to_zero = part.iter().position(|byte| *byte == 0).unwrap_or(part.len());
        Scanned { left: part.get(..to_zero).unwrap_or_default() }.after_blanks().left
    })
}

/// `sscanf(line, "%u\t%X/%X")`: what follows is free text.
fn ancestor(line: &[u8]) -> Option<Ancestor> {
    let mut line = Scanned { left: line };
    let timeline = line.number(10)?;
    Some(Ancestor { timeline, end: line.lsn()? })
}

/// What is left of a line.
pub(super) struct Scanned<'a> {
    pub left: &'a [u8],
}

impl Scanned<'_> {
    /// An LSN as `%X/%X` takes it.
    pub(super) fn lsn(&mut self) -> Option<Lsn> {
        let high = self.number(16)?;
        self.left = self.left.strip_prefix(b"/")?;
        let low = self.number(16)?;
        Some(Lsn(u64::from(high) << 32 | u64::from(low)))
    }

    /// Blanks are those of `isspace`: no-break spaces and the like are none.
    fn after_blanks(self) -> Self {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
        let text = self.left.iter().position(|byte| !is_blank(byte)).unwrap_or(self.left.len());
        Scanned { left: self.left.get(text..).unwrap_or_default() }
    }

    /// A number as `%u` and `%X` take it: after any blanks or none, with a sign, and in hexadecimal with `0x`
    /// before it. One that is too large for 64 bits is the largest, of which 32 bits count (`strtoul`).
    fn number(&mut self, radix: u32) -> Option<u32> {
        let left = Scanned { left: self.left }.after_blanks().left;
        let is_negative = left.starts_with(b"-");
        let left = left.strip_prefix(b"-").or(left.strip_prefix(b"+")).unwrap_or(left);
        let prefix = left.strip_prefix(b"0x").or(left.strip_prefix(b"0X"));
        let prefix = prefix.filter(|_| radix == 16);
        let digits = prefix.unwrap_or(left);
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let count = digits.iter().position(|byte| !is_digit(byte)).unwrap_or(digits.len());
        // `0x` without a digit is 0.
        if count == 0 && prefix.is_none() {
            return None;
        }
        let (digits, rest) = digits.split_at_checked(count)?;
        let value = digits.iter().try_fold(0_u64, |value, digit| {
            let digit = char::from(*digit).to_digit(radix)?;
            value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
        });
        let value = match value {
            Some(value) if is_negative => value.wrapping_neg(),
            Some(value) => value,
            None => u64::MAX,
        };
        self.left = rest;
        Some(value as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_read_in_order() {
        let text = "# why\n\n1\t0/892E18\tno recovery target specified\n 2\t1/0\treason\n";
        let want = vec![
            Ancestor { timeline: 1, end: Lsn(0x892E18) },
            Ancestor { timeline: 2, end: Lsn(1 << 32) },
        ];
        assert_eq!(parse(3, text), Ok(want));
    }

    #[test]
    fn nonsense_is_refused() {
        let lines =
            ["", "# nothing", "one\t0/10", "2\t0/10\n1\t0/20\n", "1\t0-10", "3\t0/10", "0\t0/10"];
        for text in lines {
            assert!(parse(3, text).is_err(), "{text}");
        }
        for text in ["1\t0/0\tx", "1\t0/10\tx\n2\t0/0\tx"] {
            assert!(parse(3, text).is_err_and(|it| it.found.ends_with("left at 0/0")), "{text}");
        }
        assert!(parse(3, "1\t0/0\tx\n2\t0/10\tx").is_ok(), "only timeline 1 is without a place");
    }

    /// A reason (pg_create_restore_point, recovery_target_name) is short; only by hand is it longer.
    #[test]
    fn what_a_line_has_too_much_is_another_line() {
        let line = |reason: usize| format!("1\t0/10\t{}\n", "x".repeat(reason));
        assert!(parse(2, line(1016)).is_ok(), "1023 bytes");
        assert!(parse(2, line(1017)).is_err(), "1024 bytes");
        assert!(parse(2, format!("# {}\n1\t0/10\tx", "x".repeat(1021))).is_ok());
        assert!(parse(2, format!("# {}\n1\t0/10\tx", "x".repeat(1022))).is_err());
        // A reason need not be UTF-8: its bytes count, and not what is shown in their place.
        assert!(parse(2, [line(0).as_bytes().trim_ascii_end(), &[0xE9; 1016]].concat()).is_ok());
    }

    /// As the file system leaves the end of a file after a crash.
    #[test]
    fn zero_bytes_end_a_line() {
        assert!(parse(2, format!("1\t0/10\tx\n{}", "\0".repeat(4096))).is_ok());
        assert!(parse(2, "1\t0/\0").is_err());
        assert!(parse(2, "\0\0\0").is_err());
    }

    /// What 10, 15 and 18 start with, and restore to the end with.
    #[test]
    fn spellings_that_a_server_takes_are_taken() {
        let want = Ancestor { timeline: 1, end: Lsn(0xB0_29E0) };
        for text in [
            "1   0/B029E0   x",
            "1\t0x0/0xB029E0",
            "0001\t0X0/0XB029E0",
            "1\t00000000/0000000B029E0",
            "1\t0/b029e0",
            "  1\t0/B029E0",
            "+1\t+0/+B029E0",
            "1\t0/ B029E0",
            "\x0b\x0c1\x0b0/B029E0",
            "1\r0/B029E0",
            "1\t0/B029E0zzz",
            "1\t0/B029E0 # x",
            "1\t0/B029E0\tx\r\n",
            "-4294967295\t0/B029E0",
            "4294967297\t0/B029E0",
            "1\t100000000/B029E0",
            "1\t0/100B029E0",
            "\r\n1\t0/B029E0",
            "1\t0x/B029E0",
        ] {
            assert_eq!(parse(2, text), Ok(vec![want]), "{text:?}");
        }
        let zero = parse(2, "0\t0/100\n1\t0/B029E0").expect("a timeline 0 first");
        assert_eq!(zero.last(), Some(&want));
        let other = |text| parse(2, text).map(|all| all.last().map(|last| last.end));
        assert_eq!(other("1a/B029E0"), Ok(Some(Lsn(0xA_00B0_29E0))));
        assert_eq!(other("1\t0/-1"), Ok(Some(Lsn(0xFFFF_FFFF))));
    }

    /// What they do not start with.
    #[test]
    fn spellings_that_a_server_refuses_are_refused() {
        for text in [
            "1\t0 /B029E0",
            "0x1\t0/B029E0",
            "1\tB029E0",
            "\u{feff}1\t0/B029E0",
            "1\u{a0}0/B029E0",
            "\u{a0}\n1\t0/B029E0",
            "1\t0g/B029E0",
            "1\t0/0x\n",
            "1\t0/B029E0\n5\n",
            "08\t0/B029E0",
            "1\t0/B029E0\n1\t0/B029E0",
            "1\t0/",
        ] {
            assert!(parse(2, text).is_err(), "{text:?}");
        }
    }
}
