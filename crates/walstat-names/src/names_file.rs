//! A file of names: TSV as `COPY` writes it, CSV with headings, JSON, or the mapping of another
//! tool. What cannot be read, or contradicts itself, is left out with a warning that names file
//! and line: a file number is better than a wrong name.

mod contradictions;
mod json;
mod text;

use crate::catalog::listing::{Listed, Listing};
use crate::catalog::row::Source;
use contradictions::without_contradictions;
use std::path::Path;
use walstat_input::limited;

/// What a server is asked in each of its databases: it answers with a names file.
pub const QUERY: &str = include_str!("names_file/names.sql");
/// The columns without which no row has a name.
const NEEDED: [&str; 3] = ["database", "oid", "name"];
/// Warnings shown one by one for one file; the rest is only counted.
const WARNINGS_MAX: usize = 20;
/// Characters of a line that a warning shows.
const SHOWN_CHARS: usize = 200;
/// No longer files are read: a million relations take a quarter of that.
const BYTES_MAX: u64 = 1 << 30;

/// Reads a file of names; `None` if it cannot be read. `warnings` gets what is left out of it.
pub fn read(path: &Path, warnings: &mut Vec<String>) -> Option<Listing> {
    let bytes = bytes_of(path, warnings)?;
    Some(parse(&bytes, Source::File, &path.display().to_string(), warnings))
}

/// The bytes of a file of names; `None` if it cannot be read, which is added to `warnings`.
pub fn bytes_of(path: &Path, warnings: &mut Vec<String>) -> Option<Vec<u8>> {
    limited::read_plain(path, BYTES_MAX)
        .map_err(|what| warnings.push(format!("{}: {what}", path.display())))
        .ok()
}

/// The list that these bytes are; `place`: where they are from, for people.
pub fn parse(bytes: &[u8], source: Source, place: &str, warnings: &mut Vec<String>) -> Listing {
    let mut file_warnings =
        FileWarnings { place: place.to_owned(), texts: Vec::new(), not_shown: 0 };
    let listing = listing(bytes, source, &mut file_warnings);
    warnings.extend(file_warnings.into_texts());
    listing
}

fn listing(bytes: &[u8], source: Source, warnings: &mut FileWarnings) -> Listing {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut listing = Listing::new(source);
    let rows = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => json::rows(bytes, &mut listing, warnings),
        _ if first_line.contains(&b'\t') => text::tsv(bytes, warnings),
        _ => text::csv(bytes, warnings),
    };
    listing.with_rows(without_contradictions(rows, warnings))
}

/// A row with the line that it begins in.
struct Placed {
    line: u64,
    row: Listed,
}

/// What is wrong with a file, line by line.
struct FileWarnings {
    place: String,
    texts: Vec<String>,
    not_shown: usize,
}

impl FileWarnings {
    fn add(&mut self, line: u64, what: &str) {
        if self.texts.len() < WARNINGS_MAX {
            let mut text: String = what.chars().take(SHOWN_CHARS).collect();
            if text.len() < what.len() {
                text.push('…');
            }
            self.texts.push(format!("{}:{line}: {text}", self.place));
        } else {
            self.not_shown += 1;
        }
    }

    /// The row, if it is one.
    fn row(&mut self, line: u64, row: Result<Listed, String>) -> Option<Placed> {
        match row {
            Ok(row) => Some(Placed { line, row }),
            Err(what) => {
                self.add(line, &what);
                None
            }
        }
    }

    fn into_texts(mut self) -> Vec<String> {
        if self.not_shown > 0 {
            self.texts.push(format!("{}: {} more warnings", self.place, self.not_shown));
        }
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const HEADINGS: &str = "database,database_name,tablespace,tablespace_name,relfilenode,oid,\
                            schema,name,kind,table,parent";

    fn parsed(text: impl AsRef<[u8]>) -> (Listing, Vec<String>) {
        let mut warnings = Vec::new();
        let listing = parse(text.as_ref(), Source::File, "names", &mut warnings);
        (listing, warnings)
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn every_form_gives_the_same_rows() {
        let name = "a\"b\n\t\\,=\u{202E}ü";
        let csv = format!(
            "{HEADINGS}\n5,shop,1663,pg_default,16390,16385,public,\"a\"\"b\n\t\\,=\u{202E}ü\",r,16385,\n"
        );
        let tsv = format!(
            "{}\n5\tshop\t1663\tpg_default\t16390\t16385\tpublic\ta\"b\\n\\t\\\\,=\u{202E}ü\tr\t16385\t\\N\n",
            HEADINGS.replace(',', "\t")
        );
        let (from_csv, warnings) = parsed(&csv);
        assert_eq!((names(&from_csv), warnings), (vec![name], vec![]));
        let row = serde_json::to_string(&from_csv.rows[0]).expect("JSON");
        let object = format!("{{\"walstat\": \"1\", \"names\": [\n{row}]}}");
        for text in [csv.replace("\n5", "\r\n5"), tsv, row.clone(), format!("[{row}]"), object] {
            let (listing, warnings) = parsed(&text);
            assert!(warnings.is_empty(), "{text}: {warnings:?}");
            assert_eq!(listing.rows, from_csv.rows, "{text}");
            assert_eq!(listing.databases, BTreeMap::from([(5, "shop".to_owned())]));
        }
    }

    #[test]
    fn a_bad_row_is_left_out_with_its_line() {
        let row = |oid: &str, name: &str| {
            format!("5,shop,1663,pg_default,{oid},{oid},public,{name},r,{oid},")
        };
        let text = [
            HEADINGS.to_owned(),
            row("1", "one"),
            row("x", "two"),
            "5,shop".to_owned(),
            row("4", &"n".repeat(64)),
            row("5", "five"),
            row("5", "other"),
            row("7", "seven"),
            row("7", "seven"),
            HEADINGS.to_owned(),
            "0,,1663,pg_default,9,9,public,nine,r,9,".to_owned(),
        ];
        let (listing, warnings) = parsed(text.join("\n"));
        assert_eq!(names(&listing), ["one", "seven"]);
        let lines: Vec<&str> = warnings.iter().filter_map(|text| text.split(": ").next()).collect();
        assert_eq!(
            lines,
            ["names:3", "names:4", "names:5", "names:11", "names:7", "names:9"],
            "{warnings:?}"
        );
    }

    #[test]
    fn a_shared_relation_may_stand_in_every_database() {
        let row = "0,,1664,pg_global,1262,1262,pg_catalog,pg_database,r,1262,";
        let (listing, warnings) = parsed(format!("{HEADINGS}\n{row}\n{HEADINGS}\n{row}\n"));
        assert_eq!((names(&listing), warnings), (vec!["pg_database"], vec![]));
    }

    #[test]
    fn what_is_no_names_file_says_so() {
        for text in ["", "a,b\n1,2\n", "a\tb\n1\t2\n", "{", "[1]", "{\"a\": 1}", "null\0\u{1}"] {
            let (listing, warnings) = parsed(text);
            assert!(listing.rows.is_empty(), "{text}");
            assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
            assert!(warnings[0].starts_with("names:1: "), "{warnings:?}");
        }
        let (_, warnings) = parsed([HEADINGS.as_bytes(), b"\n5,,,,,1,,\xFF,r,,\n"].concat());
        assert_eq!(warnings, ["names:2: name: found bytes that are no UTF-8"]);
    }

    #[test]
    fn a_mapping_has_relations_of_some_database() {
        let text = r#"{"tablespaces": {"fast": "16400"}, "databases": {"shop": "5", "a": "6", "b": "6"},
            "relations": {"public.orders": "16385",
                          "odd.name.x": "16386", "public.a": "7", "public.b": "7", "public.c": "c"}}"#;
        let (listing, warnings) = parsed(text);
        let orders = ("public".to_owned(), "orders".to_owned());
        assert_eq!(listing.without_database, BTreeMap::from([(16385, orders)]));
        assert_eq!(listing.databases, BTreeMap::from([(5, "shop".to_owned())]));
        assert_eq!(listing.tablespaces, BTreeMap::from([(16400, "fast".to_owned())]));
        let lines: Vec<&str> = warnings.iter().filter_map(|text| text.split(": ").next()).collect();
        assert_eq!(lines, ["names:1", "names:3", "names:3", "names:3"], "{warnings:?}");
    }

    /// Were the lines before a row counted anew for each row, this would take minutes.
    #[test]
    fn a_long_list_of_json_names_the_line_of_its_last_row() {
        const ROWS: u64 = 100_000;
        let row = |oid: u64| format!(r#"{{"database": 5, "oid": {oid}, "name": "orders_{oid}"}}"#);
        let mut rows: Vec<String> = (1..ROWS).map(row).collect();
        rows.push("{}".to_owned());
        let rows = rows.join(",\n");
        let mapping = |section: &str| {
            let entries = (1..ROWS).map(|oid| format!("\"public.t{oid}\": \"{oid}\""));
            let entries: Vec<String> = entries.chain(["\"public.t\": \"\"".to_owned()]).collect();
            format!("{{\n\"{section}\": {{\n{}}}}}", entries.join(",\n"))
        };
        let texts =
            [format!("[\n{rows}]"), format!("{{\n\"names\": [{rows}]}}"), mapping("relations")];
        for (text, line) in texts.into_iter().zip([ROWS + 1, ROWS + 1, ROWS + 2]) {
            let (_, warnings) = parsed(text);
            assert!(warnings[0].starts_with(&format!("names:{line}: ")), "{warnings:?}");
        }
    }

    #[test]
    fn a_list_of_walstats_own_has_marks_before_formulas() {
        let text =
            format!("{HEADINGS},names_source\n5,shop,,,,16385,public,'=1,p,16385,,datadir\n");
        assert_eq!(names(&parsed(text).0), ["=1"]);
        let text = format!("{HEADINGS}\n5,shop,,,,16385,public,'=1,p,16385,\n");
        assert_eq!(names(&parsed(text).0), ["'=1"]);
    }
}
