//! A report for the tests of what reads one.

use super::filters::Filters;
use super::{
    Books, CommandName, Ending, EndingKind, Input, InputKind, Range, Ratios, Report, Sums,
};

/// A report with so many image bytes of so many bytes in all.
pub fn report(fpi_bytes: u64, total_bytes: u64) -> Report {
    let record_bytes = total_bytes - fpi_bytes;
    let range = Range {
        start: "0/01000028".into(),
        end: "0/02000000".into(),
        first_time: None,
        last_time: None,
    };
    let books = Books { record_bytes, fpi_bytes, ..Books::default() };
    let totals = Sums { record_bytes, fpi_bytes, total_bytes, ..Sums::default() };
    let ratios = Ratios {
        fpi_ratio: walstat_analyse::ratios::ratio(fpi_bytes, total_bytes),
        compression_ratio: Some(1.0),
        ..Ratios::default()
    };
    let ending =
        Ending { kind: EndingKind::Zeroed, lsn: "0/0".into(), segment: "".into(), text: "".into() };
    Report::of(CommandName::Report, input(), range, books, (totals, ratios), ending)
}

fn input() -> Input {
    Input {
        paths: vec![],
        segments: 1,
        timelines: vec![1],
        system_identifier: "1".into(),
        postgres: "15".into(),
        magic: "0xD110".into(),
        segment_bytes: 16 << 20,
        page_bytes: 8192,
        data_page_bytes: None,
        checksums_verified: true,
        taken_for: InputKind::Copy,
        filters: Filters::default(),
        other_files: vec![],
    }
}
