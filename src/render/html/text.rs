//! Text and tables of a page. Names may hold anything: all of it is shown, none of it means anything.

use super::super::number::{fraction, grouped, human_bytes};
use super::super::visible::visible;

/// A text as it is.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for c in visible(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The same, which may go on in another line after a dot: the parts of a name stay whole.
pub fn breakable(text: &str) -> String {
    escaped(text).replace('.', ".<wbr>")
}

/// A size in units, with its digits where the pointer rests.
pub fn size(bytes: u64) -> String {
    format!("<span title=\"{bytes}\">{}</span>", human_bytes(bytes))
}

/// A size in digits.
pub fn exact(bytes: u64) -> String {
    grouped(bytes)
}

/// A share in percent.
pub fn share(part: u64, whole: u64) -> String {
    fraction((whole > 0).then(|| part as f64 / whole as f64))
}

/// A table below a line that opens it; cells are HTML already.
pub fn details(summary: &str, headings: &[&str], rows: &[Vec<String>]) -> String {
    format!("<details><summary>{summary}</summary>\n{}</details>\n", table(headings, rows))
}

/// A table; cells are HTML already.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let heading = |text: &&str| format!("<th scope=\"col\">{text}</th>");
    let headings: String = headings.iter().map(heading).collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_on_after_a_dot() {
        assert_eq!(breakable("shop.public.\"a\""), "shop.<wbr>public.<wbr>&quot;a&quot;");
    }

    #[test]
    fn names_mean_nothing() {
        assert_eq!(
            escaped("<script>\"a'\"&\u{202E}\n"),
            "&lt;script&gt;&quot;a&#39;&quot;&amp;\\u{202e}\\n"
        );
    }
}
