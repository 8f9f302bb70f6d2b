//! Text that comes from outside, for people: names of files may hold what moves the cursor, turns
//! the line around or hides. All of that is shown, so that a line is a line.

use std::borrow::Cow;

/// Marks without a width or with one of their own: zero-width, bidirectional, line and paragraph
/// ends, tags.
const MARKS: [(char, char); 9] = [
    ('\u{AD}', '\u{AD}'),
    ('\u{61C}', '\u{61C}'),
    ('\u{180E}', '\u{180E}'),
    ('\u{200B}', '\u{200F}'),
    ('\u{2028}', '\u{202E}'),
    ('\u{2060}', '\u{206F}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFF9}', '\u{FFFB}'),
    ('\u{E0000}', '\u{E007F}'),
];

/// `text` with control characters, bidirectional and zero-width marks as escapes: `\n`,
/// `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hides(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn hides(c: char) -> bool {
    c.is_control() || MARKS.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_shown_and_nothing_else_is_changed() {
        assert_eq!(visible("00000001.gz"), "00000001.gz");
        assert_eq!(visible("größe – 大\\n"), "größe – 大\\n");
        assert_eq!(visible("a\nb\r\t\u{1b}[31m\0"), "a\\nb\\r\\t\\u{1b}[31m\\u{0}");
        assert_eq!(visible("a\u{202E}b\u{200B}\u{9b}"), "a\\u{202e}b\\u{200b}\\u{9b}");
        assert_eq!(visible("\u{2028}"), "\\u{2028}");
    }
}
