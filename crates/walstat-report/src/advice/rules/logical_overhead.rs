//! What it looks at: what is written for logical decoding alone: combo command ids of catalog rows, the
//! invalidations of each command, and messages of `pg_logical_emit_message`.
//!
//! Why it matters: with wal_level = logical every change of a catalog logs its command id once more, each
//! command logs what others have to forget of catalogs (from 14 on), and rows carry their keys, which is not
//! counted here. Where nobody decodes, all of that is for nothing. From 5 % on it is worth a look.
//!
//! What to do: `wal_level = replica` where there is no logical slot; fewer temporary tables where there is.
//!
//! When to ignore it: where something decodes, and messages are how programs talk.
//!
//! Reference: `wal_level` in the PostgreSQL manual; `log_heap_new_cid` in its source.

use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.05, 0.02, 0.10);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "logical-overhead",
    summary: "what only logical decoding needs is 5 % of the bytes",
    text: include_str!("logical_overhead.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let records = report.records.as_ref().filter(|_| !says_little(report))?;
    let bytes_of = |rmgr: &str, record: &str| -> u64 {
        let rows = records.rows.iter().filter(|row| row.rmgr == rmgr && row.record == record);
        rows.map(|row| row.sums.total_bytes).sum()
    };
    let (command_ids, messages) =
        (bytes_of("Heap2", "NEW_CID"), bytes_of("LogicalMessage", "MESSAGE"));
    // LogLogicalInvalidations: at other levels only the commit has them.
    let invalidations = bytes_of("Transaction", "INVALIDATION");
    let bytes = command_ids + invalidations + messages;
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let finding = Finding {
        evidence: evidence([
            ("logical_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("new_cid_bytes", command_ids.into()),
            ("invalidation_bytes", invalidations.into()),
            ("message_bytes", messages.into()),
        ]),
        advice: vec![
            "wal_level = replica, if pg_replication_slots has no logical slot".into(),
            "walstat whatif --wal-level replica says exactly what that saves".into(),
        ],
        side_effects: vec!["logical replication and decoding need wal_level = logical".into()],
        estimate: Some(command_ids + invalidations),
        source: "PostgreSQL manual, wal_level".into(),
        ..plain_finding(
            &RULE,
            format!("{} of the bytes are for logical decoding alone", percent(found.share, 0)),
        )
    };
    Some(finding.explaining(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_record;
    use super::*;

    #[test]
    fn it_speaks_from_a_twentieth_of_the_bytes_on() {
        let found = |bytes, total| check(&with_record("Heap2", "NEW_CID", bytes, total)).is_some();
        assert!(found(5 << 20, 100 << 20));
        assert!(!found(4 << 20, 100 << 20));
        assert!(!found(14 << 20, 15 << 20));
        let messages = check(&with_record("LogicalMessage", "MESSAGE", 50 << 20, 100 << 20));
        assert_eq!(messages.expect("a finding").estimate, Some(0));
    }

    #[test]
    fn invalidations_of_each_command_are_for_decoding_alone() {
        let found = check(&with_record("Transaction", "INVALIDATION", 10 << 20, 100 << 20));
        assert_eq!(found.expect("a finding").estimate, Some(10 << 20));
    }
}
