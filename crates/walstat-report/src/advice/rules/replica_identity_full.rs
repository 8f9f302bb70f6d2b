//! What it looks at: how much main data updates and deletes have: old rows are in it where a table has
//! REPLICA IDENTITY FULL.
//!
//! Why it matters: each update and delete then logs the old row as a whole beside the new one. With a key the
//! old row is logged where the key changes alone. It speaks where old rows are 5 % of all bytes.
//!
//! What to do: a primary key, or REPLICA IDENTITY USING INDEX.
//!
//! When to ignore it: where subscribers need the old rows.
//!
//! Reference: `ALTER TABLE … REPLICA IDENTITY` in the PostgreSQL manual; `ExtractReplicaIdentity` in its
//! source.

use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.05, 0.02, 0.10);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "replica-identity-full",
    summary: "old rows of updates and deletes are 5 % of the bytes",
    text: include_str!("replica_identity_full.rs"),
    threshold: SHARE,
    check,
};

/// Main data of an update without an old row: `xl_heap_update`.
const UPDATE_BYTES: u64 = 14;
/// The same of a delete, which has its key at wal_level logical: `xl_heap_delete` and a key of usual size.
const DELETE_BYTES: u64 = 8 + 32;

fn check(report: &Report) -> Option<Finding> {
    let records = report.records.as_ref().filter(|_| !says_little(report))?;
    let old_rows = |row: &RecordRow| match (row.rmgr.as_str(), row.record.as_str()) {
        ("Heap", "UPDATE" | "UPDATE+INIT" | "HOT_UPDATE" | "HOT_UPDATE+INIT") => {
            row.sums.main_data_bytes.saturating_sub(row.sums.count * UPDATE_BYTES)
        }
        ("Heap", "DELETE") => {
            row.sums.main_data_bytes.saturating_sub(row.sums.count * DELETE_BYTES)
        }
        _ => 0,
    };
    let bytes: u64 = records.rows.iter().map(old_rows).sum();
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    Some(Finding {
        evidence: evidence([
            ("old_row_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("old_row_bytes", bytes.into()),
        ]),
        advice: vec![
            "SELECT relname FROM pg_class WHERE relreplident = 'f';".into(),
            "a primary key, or ALTER TABLE … REPLICA IDENTITY USING INDEX …".into(),
        ],
        side_effects: vec!["subscribers see the old key only, no longer the old row".into()],
        ignore_when: "subscribers need the old rows".into(),
        estimate: Some(bytes),
        source: "PostgreSQL manual, REPLICA IDENTITY".into(),
        ..plain_finding(
            &RULE,
            format!("{} of the bytes are old rows of updates and deletes", percent(found.share, 0)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_record;
    use super::*;

    #[test]
    fn it_speaks_of_old_rows_and_not_of_what_every_update_has() {
        let found = |count: u64, main: u64, total| {
            let mut report = with_record("Heap", "HOT_UPDATE", 90 << 20, total);
            for row in report.records.iter_mut().flat_map(|table| &mut table.rows) {
                (row.sums.count, row.sums.main_data_bytes) = (count, main);
            }
            check(&report).map(|finding| finding.estimate)
        };
        assert_eq!(found(100_000, 1_400_000 + (5 << 20), 100 << 20), Some(Some(5 << 20)));
        assert_eq!(found(100_000, 1_400_000 + (4 << 20), 100 << 20), None);
        assert_eq!(found(400_000, 5_600_000, 100 << 20), None);
        assert_eq!(found(100_000, 1_400_000 + (5 << 20), 15 << 20), None);
    }
}
