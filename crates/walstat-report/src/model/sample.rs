//! A report for the tests of what reads one.

use super::filters::Filters;
use super::threshold::Thresholds;
use super::{
    Books, CommandName, Ending, EndingKind, Input, InputKind, Range, Ratios, Report, SCHEMA, Sums,
};

/// A report with so many image bytes of so many bytes in all.
pub fn report(fpi_bytes: u64, total_bytes: u64) -> Report {
    let record_bytes = total_bytes - fpi_bytes;
    Report {
        walstat: "0".into(),
        schema: SCHEMA.into(),
        command: CommandName::Report,
        input: input(),
        range: Range {
            start: "0/01000028".into(),
            end: "0/02000000".into(),
            first_time: None,
            last_time: None,
        },
        books: Books { record_bytes, fpi_bytes, ..Books::default() },
        totals: Sums { record_bytes, fpi_bytes, total_bytes, ..Sums::default() },
        ratios: Ratios {
            fpi_ratio: walstat_analyse::ratios::ratio(fpi_bytes, total_bytes),
            compression_ratio: Some(1.0),
            ..Ratios::default()
        },
        why: None,
        maintenance: None,
        rmgrs: None,
        records: None,
        relations: None,
        names: None,
        tables: None,
        databases: None,
        tablespaces: None,
        forks: None,
        blocks: None,
        transactions: None,
        kinds: None,
        when: None,
        estimates: None,
        large_transactions: None,
        large_work: None,
        bytes_a_day: None,
        settings: None,
        thresholds: Thresholds::default(),
        advice_together: None,
        timeline: None,
        checkpoints: None,
        checkpoint_summary: None,
        recovery: None,
        replication: None,
        commits: None,
        whatif: None,
        ending: Ending {
            kind: EndingKind::Zeroed,
            lsn: "0/0".into(),
            segment: "".into(),
            text: "".into(),
        },
        problems: vec![],
        findings: None,
        notes: vec![],
        checks: None,
        segment_groups: None,
    }
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
        checksums_verified: true,
        taken_for: InputKind::Copy,
        filters: Filters::default(),
        other_files: vec![],
    }
}
