//! A month of WAL in 200 segments, of 5,000 relations, some of them with names that mean something to a
//! shell, a browser, a spreadsheet, a terminal: every format shows each name, and none obeys it. What a
//! browser makes of the page is asked in `live/pages.rs`.

use crate::support::month::{ODD, RELATIONS, SCHEMA, name, said};
use std::collections::BTreeSet;

/// Nothing that a terminal or a reader would follow rather than show.
fn is_harmless(text: &str) -> bool {
    let marks = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}', '\u{2029}'];
    !text.contains(|c: char| c.is_control() && c != '\n' || marks.contains(&c))
}

#[test]
fn a_page_of_a_month_is_small_and_obeys_no_name() {
    for more in [&[][..], &["--top", "0"]] {
        let page = said("html", more);
        assert!(page.len() < 3 << 20, "{more:?}: {} bytes", page.len());
        assert!(is_harmless(&page), "{more:?}");
        for piece in ["<script", "<img", "</b>\"&'"] {
            assert!(!page.contains(piece), "{more:?}: {piece}");
        }
        let shown = ["&lt;script&gt;alert(1)&lt;/script&gt;", "\\u{202e}drowssap", "🐘🐘", ODD[11]];
        for name in shown {
            assert!(page.contains(name), "{more:?}: no {name}");
        }
    }
}

#[test]
fn every_table_is_on_the_page_that_shows_all() {
    let page = said("html", &["--top", "0"]);
    for number in ODD.len() as u32..RELATIONS {
        assert!(page.contains(&format!("{}<", name(number))), "{number}");
    }
}

#[test]
fn data_has_every_name_as_it_is() {
    let wanted: BTreeSet<String> = (0..RELATIONS).map(name).collect();
    let json: serde_json::Value =
        serde_json::from_str(&said("json", &["--stats=table"])).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let rows = json["tables"].as_array().expect("tables");
    assert_eq!(rows.iter().filter_map(|row| text(&row["name"])).collect::<BTreeSet<_>>(), wanted);
    assert!(rows.iter().all(|row| row["name"].is_null() || row["schema"] == SCHEMA));
    let lines = said("ndjson", &["--stats=table"]);
    let rows = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let names: BTreeSet<String> =
        rows.filter_map(|row: serde_json::Value| text(&row["name"])).collect();
    assert_eq!(names, wanted);
    let mut names = BTreeSet::new();
    let table = said("csv", &["--stats=relation"]);
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let place = reader.headers().expect("headings").iter().position(|key| key == "name");
    for row in reader.records() {
        let row = row.expect("a row");
        let formula = row.iter().find(|field| field.starts_with(['=', '+', '@', '\t', '\r']));
        assert_eq!(formula, None);
        let name = &row[place.expect("a name")];
        names.insert(name.strip_prefix('\'').unwrap_or(name).to_owned());
    }
    names.remove("");
    assert_eq!(names, wanted);
}

#[test]
fn labels_are_read_back_as_the_names() {
    let text = said("openmetrics", &["--stats=table", "--top", "20"]);
    let family = text.lines().filter_map(|line| line.strip_prefix("walstat_table_total_bytes{"));
    let tables: Vec<String> = family
        .filter_map(|line| line.split_once(",table=\"")?.1.rsplit_once("\"}"))
        .map(|(label, _)| label.replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\"))
        .collect();
    for name in ODD {
        assert!(tables.iter().any(|table| table == name), "no {name:?} in {tables:?}");
    }
}

#[test]
fn people_see_names_that_do_nothing() {
    for format in ["table", "markdown"] {
        for more in
            [&[][..], &["--stats=table", "--top", "30"], &["--stats=relation", "--top", "30"]]
        {
            let text = said(format, more);
            assert!(is_harmless(&text), "{format} {more:?}:\n{text}");
            assert!(more.is_empty() || text.contains("drowssap"), "{format} {more:?}:\n{text}");
        }
    }
    let text = said("markdown", &["--stats=table", "--top", "30"]);
    let text = without_escapes(&text);
    for piece in ["<script", "<img", "](b)", "`ticked"] {
        assert!(!text.contains(piece), "{piece} in {text}");
    }
    let cells: BTreeSet<usize> = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.matches('|').count())
        .collect();
    assert_eq!(cells.len(), 1, "{text}");
}

/// What is left where a backslash takes the character after it along.
fn without_escapes(text: &str) -> String {
    let mut chars = text.chars();
    let mut left = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            c => left.push(c),
        }
    }
    left
}
