//! What it looks at: the share of row locks in the bytes that are no images.
//!
//! Why it matters: SELECT … FOR UPDATE or FOR SHARE, foreign keys and updates that move a row write a record
//! for each row that is locked, and one more for several lockers together. An image that comes with such a
//! record may otherwise come with the next change of the page, if there is one before the next checkpoint;
//! that of a row which the same transaction updates next does. A transaction that locks rows and changes
//! nothing has a record of its end for that alone; how many do, a sample of the transactions tells. At most
//! the records of locks are saved, with all other images that came with them, and the ends of as many
//! transactions as may do that. From 20 % on it is worth a look.
//!
//! What to do: lock fewer rows, or none where an update follows at once; FOR NO KEY UPDATE for rows that
//! others refer to; room in pages (fillfactor), for an update that moves its row locks it first. How strong
//! locks are, pg_waldump says of each: KEYSHR_LOCK is FOR KEY SHARE, which a foreign key takes; with
//! EXCL_LOCK it is FOR SHARE; EXCL_LOCK is FOR NO KEY UPDATE; with KEYS_UPDATED it is FOR UPDATE.
//!
//! When to ignore it: where the locks are needed.
//!
//! Reference: explicit locking in the PostgreSQL manual; `log_heap_update` in its source.

use super::{LOCK_BYTES, evidence, label, plain_finding, says_little, worst_tables, xids_of};
use crate::advice::Rule;
use crate::model::finding::Finding;
use crate::model::kind::KindOfWork;
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;
use crate::model::who::WholeTableRow;
use crate::model::{Report, Sums};

/// From this share of the bytes without images on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

const MULTIXACT: &str = "MultiXact";

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "lock-traffic",
    summary: "row locks are 20 % of the bytes that are no images",
    text: include_str!("lock_traffic.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let records = report.records.as_ref().filter(|_| !says_little(report))?;
    let mut locks = Sums::default();
    let rows = || records.rows.iter().filter(is_lock);
    rows().for_each(|row| locks.add(&row.sums));
    // One of several lockers together stands beside the lock of the row.
    let of_rows: u64 = rows().filter(|row| row.rmgr != MULTIXACT).map(|row| row.sums.count).sum();
    let ends = xids_of(report, of_rows.min(lock_alone(report)));
    let found = RULE.share(report, locks.record_bytes, report.totals.record_bytes)?;
    let images = locks.fpi_bytes.saturating_sub(images_of_updates(report));
    let worst = worst_tables(report, |row| row.locks);
    let finding = Finding {
        evidence: evidence([
            ("lock_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("locks", locks.count.into()),
            ("lock_bytes", locks.record_bytes.into()),
            ("lock_fpi_bytes", images.into()),
            ("end_bytes", ends.into()),
            ("tables", worst.iter().map(|(row, ..)| label(report, row)).collect()),
        ]),
        advice: worst
            .iter()
            .map(|(row, ..)| told(report, row))
            .chain([
                "SELECT … FOR UPDATE or FOR SHARE, foreign keys, INSERT … ON CONFLICT DO UPDATE, and updates \
                 that move their row write these"
                    .into(),
                "walstat --stats=relation says which tables: column locks of its JSON".into(),
            ])
            .collect(),
        source: "PostgreSQL manual, explicit locking".into(),
        ..plain_finding(
            &RULE,
            format!("row locks are {} of the bytes, images left out", percent(found.share, 0)),
        )
    };
    let bytes = locks.record_bytes + images;
    let most = (bytes + ends).min(report.totals.total_bytes);
    Some(Finding { estimate: Some(most), ..finding.explaining(bytes) })
}

/// Whether this is a row lock.
pub(super) fn is_lock(row: &&RecordRow) -> bool {
    match &*row.rmgr {
        "Heap" => row.record == "LOCK",
        "Heap2" => row.record == "LOCK_UPDATED",
        MULTIXACT => row.record.starts_with("CREATE_ID"),
        _ => false,
    }
}

/// A smaller sample says nothing about rare transactions.
const SAMPLE: u64 = 100;
/// A measured share is hardly off by more than this many standard errors.
const ERRORS: f64 = 3.0;

/// How many transactions may lock rows and change nothing: as many of all as of the sample, where those count
/// that no kind of it names, and as many more as chance may hide.
fn lock_alone(report: &Report) -> u64 {
    let all = super::ends(report).count;
    let Some(sample) = report.kind_sample.as_ref().filter(|one| one.transactions >= SAMPLE) else {
        return all;
    };
    let named: u64 = sample.kinds.iter().map(|kind| kind.transactions).sum();
    let alone = sample.kinds.iter().filter(|kind| is_lock_alone(&kind.kind));
    let alone: u64 = alone.map(|kind| kind.transactions).sum();
    let size = sample.transactions as f64;
    let share = (alone + sample.transactions.saturating_sub(named)) as f64 / size;
    let error = ERRORS * (share * (1.0 - share).max(0.0) / size).sqrt() + ERRORS * ERRORS / size;
    (all as f64 * (share + error).min(1.0)).ceil() as u64
}

/// Whether a kind of transactions, as people are told of it, locked rows and did nothing else to any.
fn is_lock_alone(kind: &str) -> bool {
    let does = |work: KindOfWork| format!("{} ", work.text());
    let locks = does(KindOfWork::Lock);
    kind.starts_with(&locks) && !kind.contains(&format!(", {}", does(KindOfWork::Ddl)))
}

/// Images that came with the lock of a row that its transaction updated next: they would have come with the
/// update.
fn images_of_updates(report: &Report) -> u64 {
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    let costs = tables.flat_map(|row| [&row.update_bytes.hot, &row.update_bytes.non_hot]);
    costs.map(|cost| cost.lock_bytes.saturating_sub(LOCK_BYTES * cost.updates)).sum()
}

/// What is locked in a table, and why.
fn told(report: &Report, row: &WholeTableRow) -> String {
    let (label, locks) = (label(report, row), row.locks);
    if row.updates + row.deletes > 0 {
        return format!("{label}: {locks} locks of rows");
    }
    format!(
        "{label}: {locks} locks of rows that nobody changes, as each row with a foreign key to them takes \
         (KEYSHR_LOCK alone in pg_waldump), or SELECT … FOR SHARE (with EXCL_LOCK) or FOR UPDATE (EXCL_LOCK \
         with KEYS_UPDATED)"
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{add_record, with_record};
    use super::*;
    use crate::model::kind::{KindSample, SampledKind};

    #[test]
    fn it_speaks_from_a_fifth_of_the_record_bytes_on() {
        let found = |bytes, total| check(&with_record("Heap", "LOCK", bytes, total)).is_some();
        assert!(found(20 << 20, 100 << 20));
        assert!(!found(19 << 20, 100 << 20));
        assert!(!found(14 << 20, 15 << 20));
        assert!(check(&with_record("MultiXact", "CREATE_ID", 20 << 20, 100 << 20)).is_some());
    }

    /// 250,000 transactions that locked a row each wrote 32,129,936 bytes, and the same without the locks
    /// 7,319,621: their commits went too. It said 15,819,931 at least.
    #[test]
    fn transactions_that_only_lock_end_without_a_record_where_they_do_not() {
        let mut report = with_record("Heap", "LOCK", 13_500_000, 32_129_936);
        let locks = report.records.iter_mut().flat_map(|records| &mut records.rows);
        locks.for_each(|row| (row.sums.count, row.sums.fpi_bytes) = (250_000, 2_810_005));
        add_record(&mut report, "Transaction", "COMMIT", 250_001, 8_500_234);
        add_record(&mut report, "CLOG", "ZEROPAGE", 8, 240);
        let finding = check(&report).expect("a finding");
        let (saved, real) = (finding.estimate.expect("a figure"), 32_129_936 - 7_319_621);
        assert!((real..real + 1000).contains(&saved), "{saved} {real}");
        assert_eq!(
            finding.explains,
            Some(16_310_005),
            "which commits are of locks alone, nobody counted"
        );
        // Ten transactions, each with many locks.
        for row in report.records.iter_mut().flat_map(|records| &mut records.rows) {
            if row.rmgr == "Transaction" {
                (row.sums.count, row.sums.total_bytes) = (10, 340);
            }
        }
        assert_eq!(
            check(&report).and_then(|finding| finding.estimate),
            Some(16_310_005 + 340 + 240)
        );
    }

    /// Of rows with a foreign key, each inserted by a transaction of its own, −20.3 % were saved.
    #[test]
    fn transactions_that_change_something_end_with_a_record_all_the_same() {
        let mut report = with_record("Heap", "LOCK", 6_000_000, 20 << 20);
        let locks = report.records.iter_mut().flat_map(|records| &mut records.rows);
        locks.for_each(|row| row.sums.count = 100_000);
        add_record(&mut report, "Transaction", "COMMIT", 100_000, 3_400_000);
        let mut ends = |kinds: &[(&str, u64)]| {
            let kind = |(kind, transactions): &(&str, u64)| SampledKind {
                kind: (*kind).into(),
                transactions: *transactions,
                ..SampledKind::default()
            };
            let kinds = kinds.iter().map(kind).collect();
            report.kind_sample = Some(KindSample { transactions: 1000, kinds });
            check(&report).and_then(|finding| finding.estimate).expect("a figure") - 6_000_000
        };
        let of_inserts = ends(&[("INSERT child, LOCK parent", 1000)]);
        assert_eq!(of_inserts, 900 * 34, "none of 1,000, so hardly more than 9 of 1,000");
        assert_eq!(ends(&[("LOCK acct", 1000)]), 3_400_000);
        assert_eq!(ends(&[]), 3_400_000);
        let half = ends(&[("LOCK acct", 500), ("LOCK acct, DDL pg_class", 500)]);
        assert!((1_700_000..1_900_000).contains(&half), "{half}");
    }

    /// 60,000 locks of rows that were never changed had images of 101 MB: without the foreign key they were
    /// not written, where 3 MB were promised at most.
    #[test]
    fn images_are_saved_but_for_those_of_rows_that_are_updated_next() {
        let mut report = with_record("Heap", "LOCK", 20 << 20, 100 << 20);
        let locks = report.records.iter_mut().flat_map(|records| &mut records.rows);
        locks.for_each(|row| row.sums.fpi_bytes = 50 << 20);
        let table = |name: &str, locks, updates| {
            let mut row =
                WholeTableRow { database: Some(5), name: Some(name.into()), ..Default::default() };
            (row.locks, row.updates) = (locks, updates);
            row
        };
        let mut updated = table("acct", 200, 100);
        let cost = &mut updated.update_bytes.non_hot;
        (cost.updates, cost.lock_bytes) = (100, (10 << 20) + 100 * LOCK_BYTES);
        report.tables = Some(vec![table("par", 1000, 0), updated].into());
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.estimate, Some((20 + 50 - 10) << 20));
        assert!(finding.advice[0].starts_with("par: 1000 locks"), "{:?}", finding.advice);
        // What locks them this report does not tell: shared locks were called FOR UPDATE.
        for words in ["foreign key", "FOR SHARE", "FOR UPDATE"] {
            assert!(finding.advice[0].contains(words), "{:?}", finding.advice);
        }
        assert_eq!(finding.advice[1], "acct: 200 locks of rows");
    }
}
