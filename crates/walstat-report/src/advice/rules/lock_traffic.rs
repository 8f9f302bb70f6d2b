//! What it looks at: the share of row locks in the bytes that are no images.
//!
//! Why it matters: SELECT … FOR UPDATE, foreign keys and updates that move a row write a record for each row
//! that is locked, and one more for several lockers together. An image that comes with such a record would
//! otherwise come with the next change of the page; the record itself would not be written. From 20 % on it
//! is worth a look.
//!
//! What to do: lock fewer rows, or none where an update follows at once; FOR NO KEY UPDATE for rows that
//! others refer to; room in pages (fillfactor), for an update that moves its row locks it first.
//!
//! When to ignore it: where the locks are needed.
//!
//! Reference: explicit locking in the PostgreSQL manual; `log_heap_update` in its source.

use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share of the bytes without images on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

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
    let is_lock = |rmgr: &str, record: &str| match rmgr {
        "Heap" => record == "LOCK",
        "Heap2" => record == "LOCK_UPDATED",
        "MultiXact" => record.starts_with("CREATE_ID"),
        _ => false,
    };
    let rows = records.rows.iter().filter(|row| is_lock(&row.rmgr, &row.record));
    let (bytes, count) = rows.fold((0, 0), |(bytes, count), row| {
        (bytes + row.sums.record_bytes, count + row.sums.count)
    });
    let found = RULE.share(report, bytes, report.totals.record_bytes)?;
    let finding = Finding {
        evidence: evidence([
            ("lock_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("locks", count.into()),
            ("lock_bytes", bytes.into()),
        ]),
        advice: vec![
            "SELECT … FOR UPDATE, foreign keys, and updates that move their row write these".into(),
            "walstat --stats=relation says which tables: column locks of its JSON".into(),
        ],
        estimate: Some(bytes),
        source: "PostgreSQL manual, explicit locking".into(),
        ..plain_finding(
            &RULE,
            format!("row locks are {} of the bytes, images left out", percent(found.share, 0)),
        )
    };
    Some(finding.explaining(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_record;
    use super::*;

    #[test]
    fn it_speaks_from_a_fifth_of_the_record_bytes_on() {
        let found = |bytes, total| check(&with_record("Heap", "LOCK", bytes, total)).is_some();
        assert!(found(20 << 20, 100 << 20));
        assert!(!found(19 << 20, 100 << 20));
        assert!(!found(14 << 20, 15 << 20));
        assert!(check(&with_record("MultiXact", "CREATE_ID", 20 << 20, 100 << 20)).is_some());
    }
}
