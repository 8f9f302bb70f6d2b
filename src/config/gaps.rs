//! Gaps that are accepted: `[[check.accept-gap]]`, one for each.

use super::{TABLE, name_of};
use crate::args::values::nearest;
use toml::{Table, Value};
use walstat_report::gap::{Gap, range};

/// In the table of `walstat check`, the list of gaps.
pub(super) const GAPS: &str = "accept-gap";
/// In an entry of that list, from where to where.
const RANGE: &str = "range";
/// And why.
const BECAUSE: &str = "because";

/// The gaps of a list.
pub(super) fn gaps(value: &Value) -> Result<Vec<Gap>, String> {
    let place = format!("{TABLE}.{GAPS}");
    let wrong = |found: &Value| format!("\"{place}\" is {}, expected [[{place}]]", name_of(found));
    let list = value.as_array().ok_or_else(|| wrong(value))?;
    list.iter().map(|value| gap(value.as_table().ok_or_else(|| wrong(value))?, &place)).collect()
}

fn gap(table: &Table, place: &str) -> Result<Gap, String> {
    if let Some(key) = table.keys().find(|key| ![RANGE, BECAUSE].contains(&key.as_str())) {
        let near = nearest(key, [RANGE, BECAUSE].into_iter());
        return Err(format!("unknown key \"{place}.{key}\"{near}"));
    }
    let text = |key: &str| match table.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("{place}.{key} is {}, expected a text", name_of(other))),
        None => Err(format!("[[{place}]] needs a {RANGE} and a {BECAUSE}")),
    };
    let (given, because) = (text(RANGE)?, text(BECAUSE)?);
    let range =
        range(given).map_err(|error| format!("{place}.{RANGE}: {error}, found \"{given}\""))?;
    Gap::new(range, because).map_err(|error| format!("{place}.{BECAUSE}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Gap>, String> {
        let table: Table = text.parse().expect("TOML");
        gaps(table.get(GAPS).expect("gaps"))
    }

    #[test]
    fn each_gap_has_a_range_and_a_reason() {
        let text = "[[accept-gap]]\nrange = \"0/5000000..0/7000000\"\nbecause = \"a lost disk\"\n";
        let found = parsed(&text.repeat(2)).expect("two gaps");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].range.start.0, &*found[0].because), (0x500_0000, "a lost disk"));
        for (text, words) in [
            ("accept-gap = 5", "expected [[check.accept-gap]]"),
            ("[[accept-gap]]\nrange = \"0/1..0/2\"", "needs a range and a because"),
            ("[[accept-gap]]\nbecause = \"x\"", "needs a range and a because"),
            ("[[accept-gap]]\nrange = \"0/1\"\nbecause = \"x\"", "expected two LSNs"),
            ("[[accept-gap]]\nrange = \"0/1..0/2\"\nbecause = \" \"", "expected a reason"),
            ("[[accept-gap]]\nrange = \"0/1..0/2\"\nbecause = 5", "is an integer"),
            ("[[accept-gap]]\nbecaus = \"x\"", "did you mean \"because\"?"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
