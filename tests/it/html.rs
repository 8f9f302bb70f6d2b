//! `--format html`: a page that needs nothing else and holds what the report says. That a real browser
//! draws it without complaint is asked in `live/pages.rs`.

use crate::support::fixtures::{Sample, sample, samples};
use crate::support::{json_of, walstat};
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn page(sample: &Sample, more: &[&str]) -> String {
    let words = [&[text(&sample.wal), "-f", "html"], more].concat();
    walstat(&words).exits(0).stdout
}

fn count(page: &str, piece: &str) -> usize {
    page.matches(piece).count()
}

#[test]
fn the_page_needs_nothing_else_and_has_its_numbers() {
    for sample in samples() {
        let ran = walstat(&[text(&sample.wal), "-f", "html"]);
        let page = &ran.stdout;
        let (head, _) = page.split_once("</head>").expect("a head");
        for piece in ["<!DOCTYPE html>", "<html lang=\"en\">", "name=\"viewport\"", "<title>"] {
            assert_eq!(count(head, piece), 1, "{}: {piece}", sample.name);
        }
        for piece in ["http:", "https:", "src=", "<script", "@import", "url(", "&lt;span"] {
            assert!(!page.contains(piece), "{}: {piece}", sample.name);
        }
        let json = json_of(&[], &sample.wal);
        for place in ["/totals/total_bytes", "/totals/count", "/books/input_bytes"] {
            let number = json.pointer(place).expect(place).to_string();
            assert!(page.contains(&format!(">{number}<")), "{}: {place} {number}", sample.name);
        }
        let cluster = json["input"]["system_identifier"].as_str().expect("a text");
        assert!(page.contains(cluster), "{}", sample.name);
        for problem in json["problems"].as_array().into_iter().flatten() {
            for key in ["segment", "lsn"] {
                let told = problem[key].as_str().unwrap_or_default();
                assert!(page.contains(told), "{}: {problem}", sample.name);
            }
        }
        let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
        assert!(figures.len() >= 3, "{}: {} charts", sample.name, figures.len());
        for figure in figures {
            let (chart, behind) = figure.split_once("</figure>").expect("an end");
            assert!(count(chart, "<rect") + count(chart, "<path") > 0, "{}: {chart}", sample.name);
            assert!(behind.contains("<table>"), "{}: a chart without a table", sample.name);
        }
        assert!(page.len() < 3 << 20, "{}: {} bytes", sample.name, page.len());
    }
}

/// A chart has a scale, its axis says what a bar is, and whoever points at it sees the numbers.
#[test]
fn charts_can_be_read() {
    let page = page(&sample("pg15-mixed"), &[]);
    let part = |id: &str| {
        let (_, part) = page.split_once(&format!("<section id=\"{id}\">")).expect(id);
        part.split_once("</section>").expect("an end").0.to_owned()
    };
    let time = part("time");
    assert!(time.contains("<figcaption>WAL in each second, by time in UTC</figcaption>"), "{time}");
    assert!(time.contains("2026-11-21 04:40:57</span>"), "{time}");
    let (_, ticks) = time.split_once("<div class=\"axis ticks\">").expect("labels");
    assert!(ticks.contains(">04:40:58</span>"), "a label between the ends: {ticks}");
    // Curves are there where settings would move checkpoints.
    let moving = self::page(&sample("pages16k"), &[]);
    let (_, curves) = moving.split_once("<section id=\"what-if\">").expect("predictions");
    for chart in [time.as_str(), curves] {
        let (_, scale) = chart.split_once("<div class=\"scale\">").expect("a scale");
        let scale = scale.split_once("</div>").expect("an end").0;
        assert_eq!(count(scale, "<span>"), 3, "{scale}");
    }
    // A bar says what it is where the pointer rests, without a script.
    for id in ["why", "tables", "time", "what-if"] {
        let part = part(id);
        let (bars, titles) = (count(&part, "class=\"hover\""), count(&part, "<title>"));
        assert!(bars > 1 && bars == titles, "{id}: {bars} bars, {titles} titles");
    }
}

/// A tile is as wide as its longest word, and a number that is not exact has its range beside it.
#[test]
fn headline_numbers_have_their_ranges() {
    let page = page(&sample("pg15-mixed"), &[]);
    let (_, cards) = page.split_once("<div class=\"cards\">").expect("tiles");
    let cards = cards.split_once("</header>").expect("an end").0;
    for about in [
        "/s</b>on average, about ",
        "to replay after a crash at most: ",
        "; less than a second to ",
    ] {
        assert!(cards.contains(about), "{about}: {cards}");
    }
    let predicted = page.split("Predicted: <b>").skip(1);
    let ranges = predicted.map(|rest| rest.split_once("</p>").expect("an end").0);
    let ranges: Vec<&str> = ranges.collect();
    assert!(!ranges.is_empty());
    assert!(ranges.iter().all(|text| text.contains(" to ") && text.contains("instead of")));
}

#[test]
fn all_tables_are_there_if_they_are_asked_for() {
    let sample = sample("pg15-mixed");
    let page = page(&sample, &["--top", "0"]);
    let json = json_of(&["--stats=table", "--by", "parent"], &sample.wal);
    let tables = json["tables"].as_array().expect("tables");
    assert!(tables.len() > 20, "{}", tables.len());
    for table in tables {
        let name = table["name"].as_str().unwrap_or("(no block)");
        // Characters that mean something are escaped.
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || " _()".contains(c));
        assert!(!is_plain || page.contains(name), "no {name}");
    }
}

#[test]
fn one_run_writes_several_outputs() {
    let sample = sample("pg15-mixed");
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let (json, html) = (file("a.json"), file("a.html"));
    let words = ["-f", "json", "-o", text(&json), "-f", "html", "-o", text(&html)];
    let ran = walstat(&[&[text(&sample.wal)][..], &words].concat()).exits(0);
    assert_eq!(ran.stdout, "");
    let read = |path: &Path| std::fs::read_to_string(path).expect("written");
    let alone = walstat(&[text(&sample.wal), "-f", "json"]).exits(0).stdout;
    let value = |text: &str| -> serde_json::Value { serde_json::from_str(text).expect("JSON") };
    let (beside, alone) = (value(&read(&json)), value(&alone));
    for key in ["totals", "books", "rmgrs", "records", "tables", "why", "estimates"] {
        assert_eq!(beside[key], alone[key], "{key} is the same, whatever else is written");
    }
    assert!(beside.get("timeline").is_none(), "what only the page needs is on the page alone");
    assert_eq!(read(&html), page(&sample, &[]));
}

/// What the report tells in a few numbers is counted in stretches of 16 kB, and record by record where a
/// chart needs that: it has to be the same thing.
#[test]
fn the_overview_is_that_of_the_charts() {
    let mut seen = 0;
    for sample in samples() {
        let directory = tempfile::tempdir().expect("a directory");
        let json = directory.path().join("a.json");
        let html = directory.path().join("a.html");
        let words = ["-f", "json", "-o", text(&json), "-f", "html", "-o", text(&html)];
        walstat(&[&[text(&sample.wal)][..], &words].concat());
        let file = std::fs::read_to_string(&json).expect("written");
        let beside: serde_json::Value = serde_json::from_str(&file).expect("JSON");
        let alone = json_of(&[], &sample.wal);
        for (key, value) in alone["when"].as_object().expect("an overview") {
            let other = &beside["when"][key];
            // Everything else is counted in stretches; one of them is a good part of a sample of some
            // megabytes.
            let is_exact = ["checkpoints", "causes", "spacing_seconds", "spacing_bytes", "backups"];
            let is_exact = is_exact.contains(&key.as_str());
            let numbers = value.as_f64().zip(other.as_f64()).filter(|_| !is_exact);
            let is_same = numbers.map_or(!is_exact || value == other, |(value, other)| {
                let allowed = if key.ends_with("_ratio") { 0.1 } else { value * 0.1 + 32_768.0 };
                (value - other).abs() <= allowed
            });
            assert!(is_same, "{}: {key}: {value} and {other}", sample.name);
            seen += 1;
        }
        let one = json_of(&["-j", "1"], &sample.wal);
        let many = json_of(&["-j", "5"], &sample.wal);
        assert_eq!(one["when"], many["when"], "{}", sample.name);
    }
    assert!(seen > 100, "{seen}");
}

/// What is drawn as images of vacuum are those that it wrote, and all images are drawn.
#[test]
fn images_have_their_causes() {
    let mut vacuums = 0;
    for sample in samples() {
        let report = json_of(&[], &sample.wal);
        let rows = |table: &str| report[table].as_array().cloned().unwrap_or_default();
        let why = rows("why").into_iter().find(|row| row["cause"] == "vacuum").expect("its row");
        let work = rows("maintenance").into_iter().find(|row| row["work"] == "vacuum");
        if let Some(work) = work {
            assert_eq!(why["fpi_bytes"], work["fpi_bytes"], "{}: {why} {work}", sample.name);
            vacuums += usize::from(why["fpi_bytes"].as_u64() > Some(0));
        }
        let images: u64 = rows("why").iter().filter_map(|row| row["fpi_bytes"].as_u64()).sum();
        assert_eq!(report["totals"]["fpi_bytes"], images, "{}", sample.name);
    }
    assert!(vacuums > 0, "{vacuums}");
}
