//! What it looks at: the share of records with which vacuum frees, freezes and marks pages as visible, with
//! their images. Pruning by whoever reads or changes a page is not among them.
//!
//! Why it matters: vacuum touches pages that nobody else does, and after a checkpoint each brings an image.
//! A table that is only filled is frozen in the end, page for page, a second time. From 30 % on that is
//! a large part of the WAL.
//!
//! What to do: COPY … FREEZE for loads; a larger `vacuum_freeze_min_age` for tables whose rows die before
//! they are frozen; vacuum in quiet hours, after a checkpoint and not around one.
//!
//! When to ignore it: after a large delete or load that is over. Never turn autovacuum off for it.
//!
//! Reference: routine vacuuming in the PostgreSQL manual.

use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.3, 0.2, 0.5);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "vacuum-freeze-share",
    summary: "vacuum and freezing write 30 % of the bytes",
    text: include_str!("vacuum_freeze_share.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let records = report.records.as_ref().filter(|_| !says_little(report))?;
    let of_vacuum = |record: &str| {
        // Up to 13 pruning on access is CLEAN too, as vacuum's is: it is left out.
        let exact = ["CLEANUP_INFO", "FREEZE_PAGE", "VISIBLE", "VACUUM"];
        exact.contains(&record) || record.starts_with("PRUNE_VACUUM")
    };
    let rows = records
        .rows
        .iter()
        .filter(|row| (row.rmgr == "Heap2" || row.rmgr == "Btree") && of_vacuum(&row.record));
    let (bytes, images) = rows.fold((0, 0), |(bytes, images), row| {
        (bytes + row.sums.total_bytes, images + row.sums.fpi_bytes)
    });
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    Some(Finding {
        evidence: evidence([
            ("vacuum_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("vacuum_bytes", bytes.into()),
            ("vacuum_fpi_bytes", images.into()),
        ]),
        advice: vec![
            format!(
                "{} of that are page images: checkpoints further apart make them fewer",
                percent(images as f64 / bytes.max(1) as f64, 0)
            ),
            "COPY … FREEZE for loads; vacuum_freeze_min_age for rows that die young".into(),
        ],
        ignore_when: "it follows a large load or delete that is over".into(),
        source: "PostgreSQL manual, routine vacuuming".into(),
        ..plain_finding(
            &RULE,
            format!("{} of the bytes are vacuum and freezing", percent(found.share, 0)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_record;
    use super::*;

    #[test]
    fn it_speaks_from_three_tenths_of_the_bytes_on() {
        let found = |bytes, total| {
            check(&with_record("Heap2", "PRUNE_VACUUM_SCAN", bytes, total)).is_some()
        };
        assert!(found(30 << 20, 100 << 20));
        assert!(!found(29 << 20, 100 << 20));
        assert!(!found(14 << 20, 15 << 20));
        assert!(check(&with_record("Heap2", "PRUNE", 90 << 20, 100 << 20)).is_none());
        assert!(check(&with_record("Heap", "INSERT", 90 << 20, 100 << 20)).is_none());
    }
}
