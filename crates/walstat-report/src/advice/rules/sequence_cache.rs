//! What it looks at: the share of what sequences write in all bytes.
//!
//! Why it matters: a sequence logs 32 values (`SEQ_LOG_VALS`) beyond those that it gives out, so each 33
//! values cost a record, and the first one after each checkpoint costs one at once. With a cache of more than
//! 32 a record comes for each block of the cache alone. From 10 % of the bytes on, and from 1,000 records, it
//! is worth a look.
//!
//! What to do: `ALTER SEQUENCE … CACHE 100`; for an identity column the sequence is that of
//! `pg_get_serial_sequence`. What is saved at most is reckoned with the default, CACHE 1: no WAL tells it. A
//! transaction that only draws a number has a record of its end where a record of the sequence gave it an
//! xid: with each record that is saved goes the end of a transaction at most.
//!
//! When to ignore it: where the cache is that large already (`cache_size` in `pg_sequences`), or sessions
//! take a few numbers each and end: every block begins with a record, too.
//!
//! Reference: CREATE SEQUENCE in the PostgreSQL manual; `nextval_internal` in its source.

use super::{evidence, label, plain_finding, worst_tables, xids_of};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;
use crate::model::who::WholeTableRow;
use walstat_format::payload::seq::SEQ_LOG_VALS;
use walstat_names::catalog::row::kind::SEQUENCE;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.1, 0.05, 0.2);
/// Fewer records are no habit.
const MIN_RECORDS: u64 = 1000;
/// Values of a record with the default cache: the one that is given out, and `SEQ_LOG_VALS` more.
const VALUES_LOGGED: u64 = 1 + SEQ_LOG_VALS as u64;
/// The cache that is advised: more than `SEQ_LOG_VALS`, so that it decides.
const CACHE: u64 = 100;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "sequence-cache",
    summary: "sequences write 10 % of the bytes",
    text: include_str!("sequence_cache.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let rows = || report.records.iter().flat_map(|records| &records.rows).filter(is_of_sequence);
    let bytes: u64 = rows().map(|row| row.sums.total_bytes).sum();
    let records: u64 = rows().map(|row| row.sums.count).sum();
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    if records < MIN_RECORDS {
        return None;
    }
    let worst = worst_tables(report, bytes_of_sequence);
    let names: Vec<String> = worst.iter().map(|(row, ..)| label(report, row)).collect();
    let of = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
    let title = format!("sequences wrote {} of the bytes", percent(found.share, 0));
    let finding = Finding {
        evidence: evidence([
            ("sequence_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("sequence_bytes", bytes.into()),
            ("sequence_records", records.into()),
            ("sequences", names.into()),
        ]),
        advice: vec![format!(
            "{of}ALTER SEQUENCE … CACHE {CACHE}, unless it is more already (pg_sequences): with CACHE 1 a \
             record is written for each {VALUES_LOGGED} values"
        )],
        side_effects: vec![
            "each session takes a block of numbers: those of several come out of order, and what is left of \
             a block when its session ends is a gap"
                .into(),
        ],
        source: "PostgreSQL manual, CREATE SEQUENCE".into(),
        ..plain_finding(&RULE, title)
    };
    let less = |of: u64| of - of * VALUES_LOGGED / CACHE;
    let saved = (less(bytes) + xids_of(report, less(records))).min(report.totals.total_bytes);
    Some(Finding { estimate: Some(saved), ..finding.explaining(bytes) })
}

fn is_of_sequence(row: &&RecordRow) -> bool {
    row.rmgr == "Sequence"
}

fn bytes_of_sequence(row: &WholeTableRow) -> u64 {
    if row.is_of_kind(&[SEQUENCE]) { row.numbers.total_bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::tests::{add_record, with_record};
    use crate::model::Numbers;

    fn found(megabytes: u64, records: u64) -> Option<Finding> {
        let mut report = with_record("Sequence", "LOG", megabytes << 20, 100 << 20);
        let rows = report.records.iter_mut().flat_map(|records| &mut records.rows);
        rows.for_each(|row| row.sums.count = records);
        let row = |name: &str, kind: &str| WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some(name.into()),
            kind: Some(kind.into()),
            numbers: Numbers { total_bytes: megabytes << 20, ..Numbers::default() },
            ..WholeTableRow::default()
        };
        report.tables = Some(vec![row("orders_id_seq", "S"), row("orders", "r")].into());
        check(&report)
    }

    #[test]
    fn it_speaks_from_a_tenth_of_the_bytes_and_1000_records_on() {
        assert!(found(10, 1000).is_some());
        assert!(found(9, 1000).is_none() && found(10, 999).is_none());
    }

    /// 2,000,000 transactions that only drew a number wrote 21,376,331 bytes, and 15,975,570 with CACHE 100.
    /// It said 17,356,268 at least.
    #[test]
    fn transactions_that_only_draw_a_number_end_without_a_record_then() {
        let mut report = with_record("Sequence", "LOG", 6_000_093, 21_376_331);
        let rows = report.records.iter_mut().flat_map(|records| &mut records.rows);
        rows.for_each(|row| row.sums.count = 60_607);
        add_record(&mut report, "Transaction", "COMMIT", 60_608, 60_608 * 34 + 200);
        add_record(&mut report, "CLOG", "ZEROPAGE", 2, 60);
        let finding = check(&report).expect("a finding");
        let (saved, real) = (finding.estimate.expect("a figure"), 21_376_331 - 15_975_570);
        assert!((real..real + 1000).contains(&saved), "{saved} {real}");
    }

    /// 11.5 million values wrote 37,856,496 bytes of WAL, and 13,460,344 with CACHE 100: 64 % less.
    #[test]
    fn a_cache_of_100_saves_two_thirds_of_the_records() {
        let finding = found(97, 350_000).expect("a finding");
        assert_eq!(finding.estimate.map(|bytes| bytes >> 20), Some(64));
        assert!(finding.advice[0].starts_with("public.orders_id_seq: ALTER SEQUENCE … CACHE 100"));
    }
}
