//! Texts that a spreadsheet would run as formulas: in CSV an apostrophe stands before them, which is
//! removed again when walstat reads such a file.

use std::borrow::Cow;

/// What a formula begins with.
const BEGINS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Whether a text is a formula, after any apostrophes: texts that begin with apostrophes are marked
/// too, so that each is read back as it was.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(BEGINS)
}

/// The text, with an apostrophe before it if it is a formula.
pub fn marked(text: &str) -> Cow<'_, str> {
    if is_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// The text without the apostrophe that [`marked`] has put before it.
pub fn unmarked(text: &str) -> &str {
    text.strip_prefix('\'').filter(|_| is_formula(text)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_off_again() {
        for text in ["a", "", "'", "'a", "=1", "'=1", "''@", "-1", "\tx"] {
            assert_eq!(unmarked(&marked(text)), text);
        }
        assert_eq!((marked("=1"), marked("'a")), ("'=1".into(), "'a".into()));
    }
}
