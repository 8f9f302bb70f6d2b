//! What it looks at: what is written for logical decoding alone: combo command ids of catalog rows, the
//! invalidations of each command, and messages of `pg_logical_emit_message`.
//!
//! Why it matters: with wal_level = logical every change of a catalog logs its command id once more, each
//! command logs what others have to forget of catalogs (from 14 on), and rows are written whole, with their
//! keys, and each commit names its database: that is not counted here, but in what is saved at most. Where
//! nobody decodes, all of that is for nothing. Messages are written whatever `wal_level` is. From 5 % on it
//! is worth a look.
//!
//! What to do: `wal_level = replica` where there is no logical slot; fewer temporary tables where there is.
//! Fewer and shorter messages, where these are a tenth of it.
//!
//! When to ignore it: where something decodes, and messages are how programs talk.
//!
//! Reference: `wal_level` in the PostgreSQL manual; `log_heap_new_cid` and `LogLogicalMessage` in its source.

use super::{LEAST_SHARE, Line, PLAIN_END_BYTES, WAL_LEVEL, evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::percent::percent;
use crate::model::threshold::Threshold;
use walstat_format::payload::xact::{DBINFO_BYTES, XINFO_BYTES};

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.05, 0.02, 0.10);

/// What a commit takes to name its database, and to say that it does.
const DATABASE_BYTES: u64 = (XINFO_BYTES + DBINFO_BYTES) as u64;

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
    let only_decoded = command_ids + invalidations;
    let bytes = only_decoded + messages;
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    // One of them is always a tenth.
    let matters = |part: u64| part as f64 >= LEAST_SHARE * bytes as f64;
    let (advises_level, advises_fewer) = (matters(only_decoded), matters(messages));
    let saved = only_decoded + longer_ends(report);
    let saved = saved + if command_ids > 0 { whole_rows(report) } else { 0 };
    let needed = "logical replication and decoding need wal_level = logical".to_owned();
    let decoded = "programs that decode messages get fewer".to_owned();
    let prices = [needed].into_iter().filter(|_| advises_level);
    let finding = Finding {
        evidence: evidence([
            ("logical_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("new_cid_bytes", command_ids.into()),
            ("invalidation_bytes", invalidations.into()),
            ("message_bytes", messages.into()),
        ]),
        side_effects: prices.chain(advises_fewer.then_some(decoded)).collect(),
        // Which messages are needed nobody can tell.
        estimate: advises_level.then_some(saved),
        source: "PostgreSQL manual, wal_level".into(),
        ..plain_finding(
            &RULE,
            format!("{} of the bytes are for logical decoding alone", percent(found.share, 0)),
        )
    };
    let replica = AdvisedSetting::to(SettingChange::Lower, WAL_LEVEL, "replica");
    let level = [
        Line::set(replica, ", if pg_replication_slots has no logical slot"),
        "walstat whatif --wal-level replica says exactly what that saves".into(),
    ];
    let fewer = format!(
        "fewer or shorter messages of pg_logical_emit_message, which are {} of the bytes: they are written \
         whatever wal_level is, and whether somebody decodes them or not",
        percent(messages as f64 / report.totals.total_bytes.max(1) as f64, 0)
    );
    let level = level.into_iter().filter(|_| advises_level);
    let advice = level.chain(advises_fewer.then(|| fewer.into()));
    Some(finding.advising(advice).explaining(bytes))
}

/// What ends of transactions have more than at other levels, at most: the database, and of those that were
/// prepared the name that they were given (`XactLogCommitRecord`).
fn longer_ends(report: &Report) -> u64 {
    let rows = report.records.iter().flat_map(|records| &records.rows);
    let longer = rows.map(|row| {
        let longer = row.sums.total_bytes.saturating_sub(row.sums.count * PLAIN_END_BYTES);
        match (row.rmgr.as_str(), row.record.as_str()) {
            ("Transaction", "COMMIT") => longer.min(row.sums.count * DATABASE_BYTES),
            ("Transaction", "COMMIT_PREPARED" | "ABORT_PREPARED") => longer,
            _ => 0,
        }
    });
    longer.sum()
}

/// What rows have more than at other levels, at most: keys and rows as they were; of an update also what its
/// row has in common with the old one; and rows that stand beside an image.
fn whole_rows(report: &Report) -> u64 {
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    let old: u64 = tables.map(|row| row.old_row_bytes).sum();
    let rows = report.records.iter().flat_map(|records| &records.rows);
    let new = rows.map(|row| match (row.rmgr.as_str(), row.record.as_str()) {
        ("Heap", "UPDATE" | "HOT_UPDATE") => row.sums.block_data_bytes,
        ("Heap", "INSERT") | ("Heap2", "MULTI_INSERT") => {
            // In a week the product has more than 64 bits.
            let [bytes, imaged, all] =
                [row.sums.block_data_bytes, row.sums.fpi_records, row.sums.count.max(1)]
                    .map(u128::from);
            u64::try_from(bytes * imaged / all).unwrap_or(u64::MAX)
        }
        _ => 0,
    });
    old + new.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{add_record, with_record};
    use super::*;

    #[test]
    fn it_speaks_from_a_twentieth_of_the_bytes_on() {
        let found = |bytes, total| check(&with_record("Heap2", "NEW_CID", bytes, total)).is_some();
        assert!(found(5 << 20, 100 << 20));
        assert!(!found(4 << 20, 100 << 20));
        assert!(!found(14 << 20, 15 << 20));
    }

    /// They were told to lower wal_level, at any of which messages are written.
    #[test]
    fn where_only_messages_count_no_wal_level_is_advised() {
        let with = |messages: u64, command_ids: u64| {
            let mut report = with_record("LogicalMessage", "MESSAGE", messages << 20, 100 << 20);
            let others = with_record("Heap2", "NEW_CID", command_ids << 20, 100 << 20).records;
            let mut rows: Vec<_> = others.into_iter().flat_map(|records| records.rows).collect();
            report.records.iter_mut().for_each(|records| records.rows.append(&mut rows));
            let Finding { advice, advised_settings, side_effects, estimate, .. } =
                check(&report).expect("a finding");
            let lowers = advice.concat().contains("wal_level = replica");
            let fewer = advice.concat().contains("messages of pg_logical_emit_message");
            assert_eq!(advised_settings.len(), usize::from(lowers));
            assert_eq!(side_effects.len(), usize::from(lowers) + usize::from(fewer));
            (lowers, fewer, estimate.map(|bytes| bytes >> 20))
        };
        assert_eq!(with(50, 0), (false, true, None));
        assert_eq!(with(50, 5), (false, true, None));
        assert_eq!(with(40, 10), (true, true, Some(10)));
        assert_eq!(with(1, 50), (true, false, Some(50)));
    }

    /// A server with wal_level = replica wrote 7.64 % less where 7.19 % were promised at most.
    #[test]
    fn rows_are_smaller_where_nobody_decodes() {
        let mut report = with_record("Heap2", "NEW_CID", 10 << 20, 100 << 20);
        let updates = with_record("Heap", "HOT_UPDATE", 5 << 20, 100 << 20).records;
        let mut rows: Vec<_> = updates.into_iter().flat_map(|records| records.rows).collect();
        rows.iter_mut().for_each(|row| row.sums.block_data_bytes = 2 << 20);
        report.records.iter_mut().for_each(|records| records.rows.append(&mut rows));
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.explains, finding.estimate), (Some(10 << 20), Some(12 << 20)));
    }

    #[test]
    fn commits_are_shorter_where_nobody_decodes() {
        let mut report = with_record("Heap2", "NEW_CID", 10 << 20, 100 << 20);
        let saved = |report: &Report| check(report).and_then(|finding| finding.estimate);
        add_record(&mut report, "Transaction", "COMMIT", 1000, 46_000);
        assert_eq!(saved(&report), Some((10 << 20) + 12_000));
        // One with what others have to forget names its database at any level.
        add_record(&mut report, "Transaction", "COMMIT", 10, 5000);
        assert_eq!(saved(&report), Some((10 << 20) + 12_000 + 120));
        add_record(&mut report, "Transaction", "COMMIT_PREPARED", 10, 800);
        assert_eq!(saved(&report), Some((10 << 20) + 12_000 + 120 + 460));
    }

    /// 200 GB of rows and 10⁸ records with images are more than 64 bits multiplied.
    #[test]
    fn many_rows_beside_images_are_counted_too() {
        let mut report = with_record("Heap", "INSERT", 300 << 30, 1 << 40);
        for row in report.records.iter_mut().flat_map(|records| &mut records.rows) {
            row.sums.block_data_bytes = 200 << 30;
            (row.sums.count, row.sums.fpi_records) = (400_000_000, 100_000_000);
        }
        assert_eq!(whole_rows(&report), 50 << 30);
    }

    #[test]
    fn invalidations_of_each_command_are_for_decoding_alone() {
        let found = check(&with_record("Transaction", "INVALIDATION", 10 << 20, 100 << 20));
        assert_eq!(found.expect("a finding").estimate, Some(10 << 20));
    }
}
