//! A month of WAL in 200 segments, of 5,000 relations, some of them with names that mean something to a
//! shell, a browser, a spreadsheet, a terminal.

use super::walstat;
use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, HEAP, Image, Rec, TRANSACTION};
use std::sync::LazyLock;
use tempfile::TempDir;

pub const RELATIONS: u32 = 5000;
const SEGMENTS: u64 = 200;
const FIRST: u32 = 16_384;
/// 2025-12-31, in microseconds since 2000.
const BEGIN: i64 = 820_454_400_000_000;
const DAYS: i64 = 30;
const DATABASE: &str = "shop 🐘 <b>\"&'";
pub const SCHEMA: &str = "=1+1|`x`";

/// Names of the first relations, which have most of the WAL.
pub const ODD: [&str; 14] = [
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

pub fn name(number: u32) -> String {
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

pub fn said(format: &str, more: &[&str]) -> String {
    let path = |directory: &TempDir, file: &str| directory.path().join(file).display().to_string();
    let (wal, names) = (path(&MONTH.directory, ""), path(&MONTH.names, "names.csv"));
    let ran = walstat(&[&["-f", format, "--names", &names, &wal][..], more].concat()).exits(0);
    assert_eq!(ran.stderr, "");
    ran.stdout
}
