//! Any division of the work gives the same report: threads, and ranges put side by side.
//!
//! A record is counted in a range if it starts and ends in it, as `pg_waldump` does. So for
//! ranges cut at any place, the sums of the parts are those of the whole less the records that
//! cross a cut; cut between two records, nothing is lost. Input bytes always add up.

mod common;
mod support;

use common::builder::Form;
use common::disk::Disk;
use common::{ALL, Ask, assert_closed, json, naive, read, stats};
use std::path::Path;
use support::fixtures::{sample, sample_names};
use walstat::report::model::{Report, Sums};
use walstat::wal::lsn::Lsn;

#[test]
fn every_fixture_gives_one_report_on_any_number_of_threads() {
    for name in sample_names() {
        let sample = sample(&name);
        let one = json(&read(&sample.wal, &ALL));
        for threads in [2, 3, 8] {
            assert_eq!(
                json(&read(&sample.wal, &ALL.threads(threads))),
                one,
                "{name}, {threads} threads"
            );
        }
    }
}

/// Sums over reports.
fn total(parts: &[Report]) -> Sums {
    let mut sum = Sums::default();
    parts.iter().for_each(|part| sum.add(&part.totals));
    sum
}

/// Reads the ranges between neighbours of `edges`, with changing numbers of threads. A range
/// inside one record holds no record, which is told in a line and not in a report.
fn parts(directory: &Path, edges: &[Lsn]) -> Vec<Report> {
    let mut reports = Vec::new();
    for (index, edge) in edges.windows(2).enumerate() {
        match stats(directory, &ALL.threads(index % 3 + 1).range(edge[0], edge[1])) {
            Ok(report) => reports.push(report),
            Err(line) => assert!(line.contains("no WAL record"), "{line}"),
        }
    }
    reports.iter().for_each(|report| assert_closed(&report.books));
    reports
}

/// A real sample, the start and end of its records, and the whole between the first and the last.
fn real(name: &str) -> (Disk, tempfile::TempDir, Vec<(Lsn, Lsn)>, Report) {
    let sample = sample(name);
    let disk = Disk::read(&sample.wal, Form::of(&sample.release));
    let records = naive::read(&disk, None, None, None).expect("records").records;
    let directory = disk.write();
    let ask = Ask { start: Some(records[0].0), end: records.last().map(|(_, end)| *end), ..ALL };
    let whole = read(directory.path(), &ask);
    (disk, directory, records, whole)
}

#[test]
fn ranges_cut_between_records_add_up_to_the_whole() {
    for name in ["pg9.5-mixed", "overwrite", "consistency"] {
        let (_, directory, records, whole) = real(name);
        let mut edges: Vec<Lsn> =
            records.iter().map(|(start, _)| *start).step_by(records.len() / 7).collect();
        edges.push(records[records.len() - 1].1);
        let parts = parts(directory.path(), &edges);
        assert_eq!(total(&parts), whole.totals, "{name}");
        let input: u64 = parts.iter().map(|part| part.books.input_bytes).sum();
        assert_eq!(input, whole.books.input_bytes, "{name}");
    }
}

#[test]
fn ranges_cut_anywhere_lose_only_the_records_that_cross_a_cut() {
    for name in ["truncated", "overwrite", "consistency"] {
        let (_, directory, records, whole) = real(name);
        let (first, last) = (records[0].0, records[records.len() - 1].1);
        // Odd steps fall inside records, into padding and into page headers.
        let step = (last.0 - first.0) / 9 + 13;
        let mut edges: Vec<Lsn> = (0..9).map(|i| Lsn(first.0 + i * step)).collect();
        // One more in the middle of the longest record.
        let longest = records.iter().max_by_key(|(start, end)| end.0 - start.0).expect("records");
        edges.push(Lsn(u64::midpoint(longest.0.0, longest.1.0)));
        edges.push(last);
        edges.sort();
        let crosses = |(start, end): &&(Lsn, Lsn)| edges.iter().any(|cut| start < cut && cut < end);
        let lost: Vec<&(Lsn, Lsn)> = records.iter().filter(crosses).collect();
        assert!(!lost.is_empty(), "{name}: no cut is inside a record");
        let mut sum = total(&parts(directory.path(), &edges));
        for &&(start, end) in &lost {
            let alone = read(directory.path(), &ALL.range(start, end));
            assert_eq!(alone.totals.count, 1, "{name}: the record at {start}");
            sum.add(&alone.totals);
        }
        assert_eq!(sum, whole.totals, "{name}");
    }
}
