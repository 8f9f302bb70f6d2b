//! What it looks at: transactions that wrote a good part of all the WAL.
//!
//! Why it matters: the WAL of one transaction comes at once and as a whole. Standbys and the archive fall
//! behind while it runs, logical decoding keeps it in memory or in files until it commits, vacuum cannot
//! remove what died meanwhile, and what it wrote was for nothing if it is rolled back. From 20 % of the bytes
//! on it is worth a look. Counted is what a transaction wrote where it had a sixteenth of the WAL or more: at
//! least so much. Subtransactions are counted by themselves.
//!
//! What to do: work in batches that commit; load in one transaction with CREATE TABLE or TRUNCATE where
//! wal_level is minimal; load first and index afterwards; stage in an unlogged table.
//!
//! When to ignore it: a migration or a load that is over.
//!
//! Reference: populating a database, in the PostgreSQL manual; `logical_decoding_work_mem`.

use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::threshold::Threshold;

/// From this share of all bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);
/// A transaction with less is not large, whatever its share.
const LEAST_BYTES: u64 = 16 << 20;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "large-transactions",
    summary: "a transaction wrote 20 % of all bytes",
    text: include_str!("large_transactions.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let rows = report.large_transactions.as_ref().filter(|_| !says_little(report))?;
    let threshold = RULE.limit(report);
    let share = |bytes: u64| bytes as f64 / report.totals.total_bytes.max(1) as f64;
    let is_large = |bytes: u64| bytes >= LEAST_BYTES && share(bytes) >= threshold;
    let count = rows.iter().filter(|row| is_large(row.total_bytes)).count();
    let largest = rows.first().filter(|_| count > 0)?;
    let percent = share(largest.total_bytes) * 100.0;
    Some(Finding {
        evidence: evidence([
            ("xid", largest.xid.as_str().into()),
            ("transaction_bytes", largest.total_bytes.into()),
            ("transaction_ratio", share(largest.total_bytes).into()),
            ("threshold", threshold.into()),
            ("large_transactions", count.into()),
        ]),
        advice: vec![
            "work in batches that commit; load first and index afterwards".into(),
            "where it was rolled back (walstat --stats=transaction says), all of that was for nothing"
                .into(),
            format!("walstat -x {} --stats=record shows what it did", largest.xid),
            format!(
                "walstat --stats=transaction,table -x {} shows when, and to which tables",
                largest.xid
            ),
        ],
        side_effects: vec!["a batch that committed stays when a later one fails".into()],
        ignore_when: "it was a load or a migration that is over".into(),
        source: "PostgreSQL manual, populating a database".into(),
        ..plain_finding(
            &RULE,
            format!(
                "transaction {} wrote at least {}, {percent:.0} % of all",
                largest.xid,
                format_args!("{}MB", largest.total_bytes >> 20)
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LargeTransactionRow, sample};

    fn found(bytes: u64, total: u64) -> Option<Finding> {
        let mut report = sample::report(0, total);
        let row = LargeTransactionRow { xid: "741".into(), total_bytes: bytes };
        report.large_transactions = Some(vec![row]);
        check(&report)
    }

    #[test]
    fn it_speaks_from_a_fifth_of_the_bytes_and_16_mb_on() {
        let found_20 = found(20 << 20, 100 << 20).expect("a finding");
        assert_eq!(found_20.title, "transaction 741 wrote at least 20MB, 20 % of all");
        assert!(found(19 << 20, 100 << 20).is_none());
        assert!(found(15 << 20, 20 << 20).is_none());
        assert!(found(15 << 20, 15 << 20).is_none());
    }
}
