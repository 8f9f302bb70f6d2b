//! Texts that are formulas where people open a file: CSV has a mark before them, which is taken
//! off again where walstat reads what it wrote.

use std::borrow::Cow;

/// What a formula begins with.
const BEGINS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// What would be a formula without marks. With them counted in, every marked text has one way back.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(BEGINS)
}

/// The text with a mark before it if it is a formula.
pub fn marked(text: &str) -> Cow<'_, str> {
    match is_formula(text) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// The text that was marked.
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
