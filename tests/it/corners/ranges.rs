//! Ranges and limits: they may begin and end anywhere.

use super::{begun, ends, read_in, sound};
use crate::common::builder::Form;
use crate::common::disk::Disk;
use crate::common::record::Rec;
use crate::common::{ALL, Ask, json, stats, stats_apart};
use walstat_format::lsn::Lsn;

/// Three records on one page, then one over two pages, then a last one.
fn five() -> (Disk, Vec<(Lsn, usize)>) {
    let mut wal = begun(Form::of("16"));
    wal.add(&Rec::data(101));
    wal.add(&Rec::data(102));
    wal.add(&Rec::data(9_000));
    wal.add(&Rec::data(104));
    let records = wal.records.clone();
    (wal.finish(), records)
}

#[test]
fn a_range_may_begin_inside_a_record() {
    let (disk, records) = five();
    let (second, bytes) = records[1];
    let ask = Ask { start: Some(Lsn(second.0 + 30)), ..ALL };
    let report = sound(&disk, &ask);
    assert_eq!(report.totals.count, 3);
    assert_eq!(report.range.start, records[2].0.to_string());
    assert_eq!(report.books.continuation_bytes, bytes as u64 - 30);
    let exactly = sound(&disk, &Ask { start: Some(second), ..ALL });
    assert_eq!((exactly.totals.count, exactly.books.continuation_bytes), (4, 0));
}

#[test]
fn a_range_may_begin_on_a_page_where_a_record_goes_on() {
    let (disk, records) = five();
    let page = records[3].0.0.next_multiple_of(8192);
    let report = sound(&disk, &Ask { start: Some(Lsn(page)), ..ALL });
    assert_eq!(report.totals.count, 1);
    let before = page - records[3].0.0;
    assert_eq!(report.books.continuation_bytes, records[3].1 as u64 - before);
}

#[test]
fn a_range_may_end_inside_a_record() {
    let (disk, records) = five();
    for inside in [1, 24, 60] {
        let end = Lsn(records[2].0.0 + inside);
        let report = sound(&disk, &Ask { end: Some(end), ..ALL });
        assert_eq!(report.totals.count, 2);
        assert_eq!(report.books.incomplete_bytes, inside);
        ends(&report, "complete", end.0);
    }
}

#[test]
fn a_range_may_end_with_a_record_or_in_the_padding_behind_it() {
    let (disk, records) = five();
    let (lsn, bytes) = records[1];
    let end = lsn.0 + bytes as u64;
    assert_ne!(end % 8, 0, "there is padding to end in");
    for padding in [0, 1] {
        let report = sound(&disk, &Ask { end: Some(Lsn(end + padding)), ..ALL });
        assert_eq!(report.totals.count, 2);
        ends(&report, "complete", end + padding);
    }
    let report = sound(&disk, &Ask { end: Some(Lsn(end - 1)), ..ALL });
    assert_eq!(report.totals.count, 1);
}

#[test]
fn a_limit_stops_behind_that_many_records() {
    let (disk, _) = five();
    for limit in 1..=5 {
        let report = sound(&disk, &Ask { limit: Some(limit), ..ALL });
        assert_eq!(report.totals.count, limit);
    }
    assert_eq!(sound(&disk, &Ask { limit: Some(6), ..ALL }).totals.count, 5);
}

#[test]
fn a_range_that_ends_behind_the_wal_ends_where_the_wal_does() {
    let (disk, records) = five();
    let (lsn, bytes) = records[4];
    let end = (lsn.0 + bytes as u64).next_multiple_of(8);
    let report = read_in(disk.write().path(), &Ask { end: Some(Lsn(end + 4096)), ..ALL });
    ends(&report, "zeroed", end);
}

#[test]
fn a_range_outside_the_input_is_refused() {
    let (disk, _) = five();
    let directory = disk.write();
    for (start, end) in [(Lsn(0), disk.start()), (disk.end(), Lsn(disk.end().0 + 1))] {
        let refused = stats(directory.path(), &ALL.range(start, end)).expect_err("nothing there");
        assert!(refused.contains("nothing in range"), "{refused}");
    }
}

/// Whatever begins or ends in a record of more than two segments: the answer does not depend on how the
/// segments are divided.
#[test]
fn a_range_may_end_with_a_segment_that_a_record_fills() {
    let mut wal = begun(Form::of("16"));
    let first = wal.add(&Rec::data(100));
    let long = wal.add(&Rec::data(2_700_000));
    let after = wal.add(&Rec::data(100));
    let directory = wal.finish().write();
    let segment = 1 << 20;
    let edges = (long.0 / segment + 1..=after.0 / segment).map(|number| Lsn(number * segment));
    let edges: Vec<Lsn> = edges.collect();
    assert!(edges.len() >= 2, "{edges:?}");
    let starts = [first, long, Lsn(long.0 + 8)].into_iter().chain(edges.iter().copied());
    for (start, end) in starts.flat_map(|start| edges.iter().map(move |end| (start, *end))) {
        if start >= end {
            continue;
        }
        let ask = ALL.range(start, end);
        let told = |report: Result<_, String>| report.map(|report| json(&report).to_string());
        let one = told(stats(directory.path(), &ask.threads(1)));
        assert_eq!(one.is_ok(), start <= long, "{start} to {end}: {one:?}");
        for threads in [2, 3, 8] {
            let other = told(stats(directory.path(), &ask.threads(threads)));
            assert_eq!(other, one, "{start} to {end}, {threads} threads");
        }
        let apart = told(stats_apart(directory.path(), &ask));
        assert_eq!(apart, one, "{start} to {end}, each by itself");
    }
}
