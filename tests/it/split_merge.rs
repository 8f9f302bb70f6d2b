//! Any division of the work gives the same report: threads, and ranges put side by side.
//!
//! A record is counted in a range if it starts and ends in it, as `pg_waldump` does. So for
//! ranges cut at any place, the sums of the parts are those of the whole less the records that
//! cross a cut; cut between two records, nothing is lost. Input bytes always add up.

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::Rec;
use crate::common::xorshift::Xorshift;
use crate::common::{ALL, Ask, assert_closed, json, naive, read, stats, stats_apart};
use crate::support::fixtures::{sample, sample_names};
use std::path::Path;
use walstat_analyse::replay_points::ReplayPoints;
use walstat_format::lsn::Lsn;
use walstat_report::model::{Report, Sums};

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

/// The range ends where the segment does, which the switch has closed; the next one is there or not.
#[test]
fn a_range_that_ends_with_a_switch_is_complete_whatever_follows() {
    let mut wal = Wal::new(Form::of("15"), 3);
    wal.add(&Rec::data(40));
    wal.switch();
    wal.add(&Rec::data(40));
    wal.switch();
    let mut disk = wal.finish();
    let ask = Ask { end: Some(Lsn(4 << 20)), ..ALL };
    let more = json(&read(disk.write().path(), &ask));
    disk.files.pop_last();
    let report = read(disk.write().path(), &ask);
    assert_eq!(report.ending.kind.name(), "complete");
    assert_eq!(json(&report), more);
}

/// Four segments with records of all lengths, some of which cross from one into the next.
fn four() -> (Disk, Vec<Lsn>) {
    let mut wal = Wal::new(Form::of("16"), 1);
    let mut numbers = Xorshift::new(16);
    while wal.at() < 4 << 20 {
        let bytes = match numbers.below(12) {
            0 => 20_000,
            1 => 9_000,
            _ => 40 + numbers.below(900),
        };
        wal.add(&Rec::data(bytes as usize));
        if (2 << 20) - 60_000 < wal.at() && wal.at() < (2 << 20) - 50_000 {
            // One that begins in the first segment and ends far in the second.
            wal.add(&Rec::data(150_000));
        }
    }
    let records = wal.records.iter().map(|(lsn, _)| *lsn).collect();
    (wal.finish(), records)
}

#[test]
fn how_far_replay_comes_does_not_depend_on_where_runs_end() {
    let (disk, _) = four();
    let directory = disk.write();
    let reach = |threads: usize| {
        let scan = walstat::Scan::paths([directory.path()]).threads(threads);
        let points = scan.observe(ReplayPoints::default()).expect("points");
        let places = (1 << 20..5 << 20_u64).step_by(1000).map(Lsn);
        places.map(|lsn| (lsn, points.before(lsn))).collect::<Vec<_>>()
    };
    let one = reach(1);
    for threads in [2, 3, 4, 8] {
        assert_eq!(reach(threads), one, "{threads} threads");
    }
}

/// What may be wrong around the edge of two segments.
fn spoiled(disk: &Disk, kind: usize) -> Disk {
    let mut disk = disk.clone();
    let edge = 3 << 20;
    match kind {
        0..3 => {
            for page in 1..=1 << kind {
                disk.page(Lsn(edge - page * 8192)).fill(0);
            }
        }
        3 => disk.page(Lsn(edge - 8192)).fill(0x5A),
        4 => disk.page(Lsn(edge)).fill(0),
        5 => {
            disk.page(Lsn(edge - 8192)).fill(0);
            disk.page(Lsn(edge)).fill(0x5A);
        }
        // A bit in the last record of a segment, and one in a record over half of the next.
        6 => disk.at(Lsn(edge - 100), 1)[0] ^= 1,
        7 => disk.at(Lsn((2 << 20) + 100_000), 1)[0] ^= 1,
        8 => disk.page(Lsn((2 << 20) - 8192)).fill(0),
        // Nothing follows in that segment.
        _ => {
            disk.page(Lsn(edge - 8192)).fill(0);
            disk.at(Lsn(edge), 1 << 20).fill(0);
        }
    }
    disk
}

#[test]
fn a_range_that_ends_after_damage_gives_one_report_however_it_is_divided() {
    let (sound, records) = four();
    for kind in 0..10 {
        let disk = spoiled(&sound, kind);
        let directory = disk.write();
        for edge in [2 << 20, 3 << 20] {
            let next = records.iter().find(|lsn| lsn.0 > edge).expect("a record").0;
            let after = [1, 39, 40, 48, 8191, 8192, 8200, 8216, 8300, 140_000, 160_000, 500_000];
            let around = [next - 8, next, next + 8, next + 24, next + 40].map(|lsn| lsn - edge);
            for end in after.into_iter().chain(around).map(|bytes| Lsn(edge + bytes)) {
                for start in [None, Some(Lsn(edge - 20_000))] {
                    let ask = Ask { start, end: Some(end), ..ALL };
                    let form = |report: Result<Report, String>| {
                        report.map(|report| {
                            assert_closed(&report.books);
                            json(&report)
                        })
                    };
                    let one = form(stats(directory.path(), &ask));
                    let case = format!("damage {kind}, range {start:?} to {end}");
                    let many = form(stats(directory.path(), &ask.threads(8)));
                    assert_eq!(many, one, "{case}: threads");
                    assert_eq!(form(stats_apart(directory.path(), &ask)), one, "{case}: apart");
                }
            }
        }
    }
}
