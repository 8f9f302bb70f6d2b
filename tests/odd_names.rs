//! A month of WAL in 200 segments, of 5,000 relations, some of them with names that mean something to a
//! shell, a browser, a spreadsheet, a terminal: every format shows each name, and none obeys it.

#[allow(dead_code, reason = "the builder can do more than this needs")]
#[path = "common/builder.rs"]
mod builder;
#[allow(dead_code, reason = "the builder can do more than this needs")]
#[path = "common/disk.rs"]
mod disk;
#[allow(dead_code, reason = "the builder can do more than this needs")]
#[path = "common/record.rs"]
mod record;
mod support;

use builder::{Form, Wal};
use record::{Block, HEAP, Image, Rec, TRANSACTION};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use support::browser::seen;
use support::walstat;
use tempfile::TempDir;

const RELATIONS: u32 = 5000;
const SEGMENTS: u64 = 200;
const FIRST: u32 = 16_384;
/// 2025-12-31, in microseconds since 2000.
const BEGIN: i64 = 820_454_400_000_000;
const DAYS: i64 = 30;
const DATABASE: &str = "shop 🐘 <b>\"&'";
const SCHEMA: &str = "=1+1|`x`";

/// Names of the first relations, which have most of the WAL.
const ODD: [&str; 14] = [
    "<script>alert(1)</script>",
    "\"quoted\" 'and' `ticked`",
    "=cmd|' /C calc'!A0",
    "+1-1@SUM(A1)",
    "@import",
    "pipe|and\\backslash",
    "line\nbreak\r\nand\ttab",
    "\u{1b}[31mred\u{1b}]0;title\u{7}",
    "\u{202e}drowssap\u{2066}\u{200b}",
    "separators\u{2028}\u{2029}",
    "elephants 🐘🐘",
    "大大大大大大大大大大大大大大大大大大大大大",
    "&lt;b&gt; https://example.org/x [a](b) ![i](j) *c* _d_",
    "</title></style><img src=x onerror=alert(1)>",
];

struct Month {
    directory: TempDir,
    names: TempDir,
}

static MONTH: LazyLock<Month> = LazyLock::new(|| {
    let names = tempfile::tempdir().expect("a directory");
    let mut writer = csv::Writer::from_path(names.path().join("names.csv")).expect("a file");
    let headings = "database,database_name,tablespace,tablespace_name,relfilenode,oid,schema,name,kind,\
                    table,parent";
    writer.write_record(headings.split(',')).expect("written");
    for number in 0..RELATIONS {
        let file = (FIRST + number).to_string();
        let row = [
            "5",
            DATABASE,
            "1663",
            "pg_default",
            &file,
            &file,
            SCHEMA,
            &name(number),
            "r",
            &file,
            "",
        ];
        writer.write_record(row).expect("written");
    }
    writer.flush().expect("written");
    Month { directory: wal(), names }
});

fn name(number: u32) -> String {
    ODD.get(number as usize).map_or_else(|| format!("relation_{number}"), |name| (*name).to_owned())
}

fn wal() -> TempDir {
    let mut wal = Wal::new(Form::of("15"), 1);
    let mut number = 0;
    while wal.at() >> 20 <= SEGMENTS {
        let odd = number % 3 == 0;
        let relation = if odd { number / 3 % ODD.len() as u32 } else { number % RELATIONS };
        let block = Block {
            relation: Some([1663, 5, FIRST + relation]),
            number: number / RELATIONS,
            ..Block::new(0)
        };
        wal.add(
            &Rec { xid: FIRST + number, ..Rec::new(HEAP, 0x00, 3) }
                .block(block.data(40).image(Image::WHOLE)),
        );
        let passed = DAYS * 86_400_000 * (wal.at() >> 10) as i64 / (SEGMENTS << 10) as i64 * 1000;
        let main = (BEGIN + passed).to_le_bytes().to_vec();
        wal.add(&Rec { xid: FIRST + number, main, ..Rec::new(TRANSACTION, 0x00, 0) });
        number += 1;
    }
    wal.finish().write()
}

fn said(format: &str, more: &[&str]) -> String {
    let path = |directory: &TempDir, file: &str| directory.path().join(file).display().to_string();
    let (wal, names) = (path(&MONTH.directory, ""), path(&MONTH.names, "names.csv"));
    let ran = walstat(&[&["-f", format, "--names", &names, &wal][..], more].concat()).exits(0);
    assert_eq!(ran.stderr, "");
    ran.stdout
}

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
        let Some(seen) = seen(&page) else { continue };
        assert!(seen.complaints.is_empty(), "{:?}", seen.complaints);
        assert!(seen.width <= 390, "{} pixels", seen.width);
        assert!(seen.marks >= 3, "{} marks", seen.marks);
        for tag in ["<script", "<img", "onerror=\""] {
            assert!(!seen.document.contains(tag), "{tag} in the document");
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
