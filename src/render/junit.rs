//! `--format junit`: test results as Jenkins, GitLab and most CI servers read them. Follows the
//! schema of Jenkins' xUnit plugin and the older one of Ant; `tests/formats` has the former.

use super::closing::{problem_line, verified};
use super::number::counted;
use std::borrow::Cow;
use std::io::{self, Write};
use walstat_report::model::checked::{Check, CheckKind, SegmentGroup, Verdict};
use walstat_report::model::view::View;
use walstat_report::model::{Problem, Report, Unreadable};

/// Problems told in one test case; the rest is counted.
const PROBLEMS_SHOWN: usize = 100;

/// What the suite says of itself.
struct Suite {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    seconds: f64,
    /// Microseconds since 1970-01-01 UTC.
    finished: i64,
}

/// Writes one suite: a case for each group of segments and for each check.
pub fn render(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    let groups = report.segment_groups.as_deref().unwrap_or_default();
    let checks: Vec<&Check> =
        report.checks().iter().filter(|c| c.kind != CheckKind::Integrity).collect();
    let damaged = groups.iter().filter(|group| !group.problems.is_empty()).count();
    let suite = Suite {
        tests: groups.len() + checks.len(),
        failures: damaged + checks.iter().filter(|c| c.verdict == Verdict::Fail).count(),
        errors: 0,
        skipped: report.checks_that(Verdict::Skipped).count(),
        seconds: view.elapsed_seconds,
        finished: view.finished,
    };
    begin(&suite, out)?;
    properties(report, out)?;
    groups.iter().try_for_each(|group| segments(group, report, out))?;
    checks.iter().try_for_each(|check| case(check, out))?;
    end(&verified(view), out)
}

/// Writes why nothing could be checked: a suite with one error.
pub fn unreadable(answer: &Unreadable, finished: i64, out: &mut dyn Write) -> io::Result<()> {
    let suite = Suite { tests: 1, failures: 0, errors: 1, skipped: 0, seconds: 0.0, finished };
    begin(&suite, out)?;
    list_properties(&[("walstat", answer.walstat.as_str())], out)?;
    begin_case("integrity", "input", out)?;
    let error = escape(&answer.error);
    writeln!(out, "><error type=\"unreadable\" message=\"{error}\">{error}</error></testcase>")?;
    end("", out)
}

fn begin(suite: &Suite, out: &mut dyn Write) -> io::Result<()> {
    let Suite { tests, failures, errors, skipped, seconds, finished } = *suite;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites>")?;
    writeln!(
        out,
        "  <testsuite id=\"0\" package=\"walstat\" name=\"walstat check\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\" \
         timestamp=\"{}\" hostname=\"localhost\">",
        timestamp(finished),
    )
}

fn end(said: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "    <system-out>{}</system-out>", escape(said))?;
    writeln!(out, "    <system-err></system-err>")?;
    writeln!(out, "  </testsuite>")?;
    writeln!(out, "</testsuites>")
}

/// Seconds, no time zone: the older schema allows neither fractions nor a zone.
fn timestamp(finished: i64) -> String {
    let time = jiff::Timestamp::from_microsecond(finished).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn properties(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut properties = vec![
        ("walstat", report.walstat.as_str()),
        ("postgres", &report.input.postgres),
        ("system_identifier", &report.input.system_identifier),
        ("start", &report.range.start),
        ("end", &report.range.end),
    ];
    let gaps: Vec<(&str, &str)> = report
        .checks()
        .iter()
        .filter(|check| check.kind == CheckKind::Gap)
        .map(|gap| (gap.check.as_str(), gap.text.as_str()))
        .collect();
    properties.extend(gaps);
    let filters = report.input.filters.options();
    properties.extend(filters.as_deref().map(|filters| ("filters", filters)));
    properties.extend(report.notes.iter().map(|note| ("note", note.as_str())));
    list_properties(&properties, out)
}

fn list_properties(properties: &[(&str, &str)], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "    <properties>")?;
    for (name, value) in properties {
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escape(value))?;
    }
    writeln!(out, "    </properties>")
}

/// Integrity of a group of segments.
fn segments(group: &SegmentGroup, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let name = match (&group.first, &group.last) {
        (Some(first), Some(last)) => {
            format!("{}, {first} to {last}", counted(group.segments as u64, "segment"))
        }
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
    let class = check.kind.name();
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
            '\r' => escaped.push_str("&#13;"),
            '\t' => escaped.push_str("&#9;"),
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
