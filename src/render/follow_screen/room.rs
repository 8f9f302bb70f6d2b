//! How the lines of the page are shared out, and how long texts fit.

use super::fit;
use textwrap::core::display_width;

/// The heading of a part of the page, and the empty line before it.
const HEADING: usize = 2;
/// Of tables, kinds of transactions and events, so many are shown before the next part has any.
const LEAST: [usize; 3] = [3, 2, 2];
/// How many more each gets in turn.
const TURNS: [usize; 3] = [2, 1, 1];
/// A text ends where a clause ends only if at least one of so many parts of the width is left.
const CLAUSE_PARTS: usize = 3;

/// How many rows of tables, kinds and events there is room for in so many lines, of those that there are.
pub(super) fn shares(lines: usize, there: [usize; 3]) -> [usize; 3] {
    let mut rows = [0; 3];
    let mut left = lines;
    for ((rows, there), least) in rows.iter_mut().zip(there).zip(LEAST) {
        if there > 0 && left > HEADING {
            *rows = there.min(least).min(left - HEADING);
            left -= HEADING + *rows;
        }
    }
    let mut before = usize::MAX;
    while left > 0 && left < before {
        before = left;
        for ((rows, there), turn) in rows.iter_mut().zip(there).zip(TURNS) {
            let more = if *rows == 0 { 0 } else { (there - *rows).min(turn).min(left) };
            *rows += more;
            left -= more;
        }
    }
    rows
}

/// How many lines the parts below want at least.
pub(super) fn least(there: [usize; 3]) -> usize {
    let of =
        |(there, least): (usize, usize)| if there == 0 { 0 } else { HEADING + there.min(least) };
    there.into_iter().zip(LEAST).map(of).sum()
}

/// Texts in at most so many lines: those that there is room for, as a whole or up to the end of a clause, and
/// how many more there are.
pub(super) fn texts(texts: &[String], lines: usize, width: usize) -> Vec<String> {
    let lines = lines.max(texts.len().min(2));
    let shown = if texts.len() <= lines { texts.len() } else { lines - 1 };
    let more = texts.len() - shown;
    let mut left = lines - shown - usize::from(more > 0);
    let mut fitted = Vec::new();
    for text in texts.iter().take(shown) {
        let options = textwrap::Options::new(width).initial_indent("  ").subsequent_indent("    ");
        let whole = textwrap::wrap(text, options);
        if whole.len() <= left + 1 {
            left -= whole.len().saturating_sub(1);
            fitted.extend(whole.into_iter().map(|line| line.into_owned()));
        } else {
            fitted.push(format!("  {}", clauses(text, width.saturating_sub(2))));
        }
    }
    if more > 0 {
        fitted.push(format!("  and {more} more"));
    }
    fitted
}

/// As much of a text as is so wide, up to the end of a clause if that is much of it.
pub(super) fn clauses(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let ends = ["; ", ": ", ", "].into_iter().flat_map(|end| text.match_indices(end));
    let clauses = ends.filter_map(|(at, _)| text.get(..at));
    let fitting = clauses.filter(|clause| display_width(clause) <= width);
    let longest = fitting.max_by_key(|clause| clause.len());
    let longest = longest.filter(|clause| display_width(clause) * CLAUSE_PARTS >= width);
    longest.map_or_else(|| fit(text, width), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_empty_where_something_is_to_be_shown() {
        assert_eq!(shares(6, [9, 9, 9]), [4, 0, 0], "tables first");
        assert_eq!(shares(6, [1, 9, 9]), [1, 1, 0], "one table leaves room");
        assert_eq!(shares(30, [40, 9, 9]), [12, 6, 6]);
        assert_eq!(shares(30, [1, 2, 9]), [1, 2, 9]);
        assert_eq!(shares(2, [9, 9, 9]), [0, 0, 0]);
        for lines in 3..80 {
            let rows = shares(lines, [90, 90, 90]);
            let all: usize = rows.iter().filter(|rows| **rows > 0).map(|rows| rows + HEADING).sum();
            assert_eq!(all, lines, "{rows:?}");
        }
    }

    #[test]
    fn all_texts_are_told_or_counted() {
        let text = "slot dead keeps 8 segments: it needs WAL since 0/3, 8 MB ago; drop it if nobody uses it";
        let all: Vec<String> = (0..5).map(|n| format!("{n} {text}")).collect();
        assert_eq!(texts(&all, 3, 40)[2], "  and 3 more");
        assert_eq!(texts(&all, 5, 40)[4], "  4 slot dead keeps 8 segments");
        assert_eq!(texts(&all, 1, 40).len(), 2, "one, and how many more");
        let whole = texts(&all, 15, 40);
        assert_eq!(whole.len(), 15);
        assert_eq!(whole[..3].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "), all[0]);
        assert!(texts(&[], 3, 40).is_empty());
        assert_eq!(clauses("x; yyyyyyyyyyyyyyyyyyyyyyy", 10), "x; yyyyyy…");
    }
}
