//! `--format junit`: test results as Jenkins, GitLab and most CI servers read them. Follows the
//! schema of Jenkins' xUnit plugin and the older one of Ant; `tests/formats` has the former.

use super::check_table::verified;
use super::screen::problem_line;
use crate::report::model::checked::SegmentGroup;
use crate::report::model::checked::{Check, Checked, Kind, Verdict};
use crate::report::model::{Problem, Report};
use std::borrow::Cow;
use std::io::{self, Write};

/// Problems told in one test case; the rest is counted.
const PROBLEMS_SHOWN: usize = 100;

/// Writes one suite: a case for each group of segments and for each check.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(checked) = &report.checked else { return Ok(()) };
    let groups = &checked.segment_groups;
    let checks: Vec<&Check> = checked.checks.iter().filter(|c| c.kind != Kind::Integrity).collect();
    let damaged = groups.iter().filter(|group| !group.problems.is_empty()).count();
    let broken = checks.iter().filter(|c| c.verdict == Verdict::Fail).count();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites>")?;
    writeln!(
        out,
        "  <testsuite id=\"0\" package=\"walstat\" name=\"walstat check\" tests=\"{}\" failures=\"{}\" \
         errors=\"0\" skipped=\"{}\" time=\"{:.3}\" timestamp=\"{}\" hostname=\"localhost\">",
        groups.len() + checks.len(),
        damaged + broken,
        checked.count(Verdict::Skipped),
        checked.verified.seconds,
        timestamp(checked),
    )?;
    properties(report, out)?;
    groups.iter().try_for_each(|group| segments(group, report, out))?;
    checks.iter().try_for_each(|check| case(check, out))?;
    writeln!(out, "    <system-out>{}</system-out>", escape(&verified(checked)))?;
    writeln!(out, "    <system-err></system-err>")?;
    writeln!(out, "  </testsuite>")?;
    writeln!(out, "</testsuites>")
}

/// Seconds, no time zone: the older schema allows neither fractions nor a zone.
fn timestamp(checked: &Checked) -> String {
    let time = jiff::Timestamp::from_microsecond(checked.verified.finished).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn properties(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let properties = [
        ("walstat", report.walstat),
        ("postgres", report.input.postgres),
        ("system_identifier", &report.input.system_identifier),
        ("start", &report.range.start),
        ("end", &report.range.end),
    ];
    writeln!(out, "    <properties>")?;
    for (name, value) in properties {
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escape(value))?;
    }
    writeln!(out, "    </properties>")
}

/// Integrity of a group of segments.
fn segments(group: &SegmentGroup, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let name = match (&group.first, &group.last) {
        (Some(first), Some(last)) => format!("{} segments, {first} to {last}", group.segments),
        _ => group.group.clone(),
    };
    let problems: Vec<&Problem> =
        group.problems.iter().filter_map(|&index| report.problems.get(index)).collect();
    begin_case("integrity", &name, out)?;
    let Some(first) = problems.first() else { return writeln!(out, "/>") };
    let mut body: Vec<String> =
        problems.iter().take(PROBLEMS_SHOWN).map(|problem| problem_line(problem)).collect();
    if problems.len() > PROBLEMS_SHOWN {
        body.push(format!("{} more", problems.len() - PROBLEMS_SHOWN));
    }
    let message = match problems.len() {
        1 => problem_line(first),
        count => format!("{count} problems, the first: {}", problem_line(first)),
    };
    failure("damage", &message, &body.join("\n"), out)
}

fn case(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let class = match check.kind {
        Kind::Integrity => "integrity",
        Kind::Restore => "restore",
        Kind::Budget => "budget",
        Kind::Rule => "rule",
    };
    begin_case(class, &check.check, out)?;
    match check.verdict {
        Verdict::Pass => writeln!(out, "/>"),
        Verdict::Fail => failure(class, &check.text, &check.text, out),
        Verdict::Skipped => {
            let text = escape(&check.text);
            writeln!(out, "><skipped message=\"{text}\">{text}</skipped></testcase>")
        }
    }
}

fn begin_case(class: &str, name: &str, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "    <testcase classname=\"walstat.{class}\" name=\"{}\" time=\"0\"", escape(name))
}

/// The text stands in the body too: some servers show only that, some only the attribute.
fn failure(kind: &str, message: &str, body: &str, out: &mut dyn Write) -> io::Result<()> {
    let (message, body) = (escape(message), escape(body));
    writeln!(out, "><failure type=\"{kind}\" message=\"{message}\">{body}</failure></testcase>")
}

/// Text for attributes and elements; what XML 1.0 cannot hold becomes U+FFFD.
fn escape(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\'') && allowed(c) && c != '\n';
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' => escaped.push_str("&#10;"),
            c if allowed(c) => escaped.push(c),
            _ => escaped.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(escaped)
}

/// `Char` of XML 1.0, surrogates being no `char`.
fn allowed(c: char) -> bool {
    match c {
        '\t' | '\n' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        c => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(escape("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;");
        assert_eq!(escape("\u{1b}[31m\0"), "\u{FFFD}[31m\u{FFFD}");
        assert_eq!(escape("plain – text"), "plain – text");
    }
}
