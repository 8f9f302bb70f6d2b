//! Timeline history files: `NNNNNNNN.history`, one line per ancestor
//! (`src/backend/access/transam/timeline.c`).

use crate::wal::lsn::Lsn;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{digit1, multispace0, space1};
use nom::combinator::map_res;
use nom::{IResult, Parser};

/// One ancestor of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestor {
    /// The ancestor.
    pub timeline: u32,
    /// Where it ended and the next one began.
    pub end: Lsn,
}

/// `TLI <TAB> LSN …`; what follows is free text.
fn ancestor(line: &str) -> IResult<&str, Ancestor> {
    let timeline = map_res(digit1, str::parse::<u32>);
    let hex = || take_while1(|c: char| c.is_ascii_hexdigit());
    let lsn = map_res(nom::combinator::recognize((hex(), tag("/"), hex())), str::parse::<Lsn>);
    (multispace0, timeline, space1, lsn)
        .map(|(_, timeline, _, end)| Ancestor { timeline, end })
        .parse(line)
}

/// Reads a history file: the ancestors, oldest first. `None` if a line is not an ancestor or
/// the timelines do not rise.
pub fn parse(text: &str) -> Option<Vec<Ancestor>> {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let ancestors: Option<Vec<_>> = lines.map(|l| ancestor(l).ok().map(|(_, a)| a)).collect();
    ancestors.filter(|all| all.windows(2).all(|w| w[0].timeline < w[1].timeline))
}

/// The timeline that a history file is about, from its name.
pub fn timeline_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".history")?;
    let plain = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
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
        assert_eq!(parse(text), Some(want));
        assert_eq!(parse(""), Some(vec![]));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(parse("one\t0/0"), None);
        assert_eq!(parse("2\t0/10\n1\t0/20\n"), None);
        assert_eq!(parse("1\t0-10"), None);
    }

    #[test]
    fn names_tell_the_timeline() {
        assert_eq!(timeline_of("0000000A.history"), Some(10));
        assert_eq!(timeline_of("A.history"), None);
        assert_eq!(timeline_of("00000001.backup"), None);
    }
}
