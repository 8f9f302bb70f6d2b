//! What it looks at: how many writes to disk the commits may need in the busiest second, where those
//! that come within a millisecond share one. `--stats=commit` counts them by each commit's time.
//!
//! Why it matters: a session waits at its commit until the disk has its WAL. From 500 writes a second
//! on the disk decides how fast the application is; many disks and most network storage do not reach
//! it.
//!
//! The rule says nothing where a data directory has `synchronous_commit = off`, or where commit records are
//! less than 10 % of the bytes: then the changes are the cost. Above that, many small transactions write a
//! good part of the WAL for their commits alone. At most all commits are saved, and all row locks without
//! their images: a transaction that locks a row again, as for several rows that refer to it, logs that once.
//!
//! What to do: put several changes into one transaction: `--stats=kind` says which transactions are many
//! and small; `synchronous_commit = off` for those whose last moments may be lost; a write cache with a
//! battery.
//!
//! When to ignore it: where the commits were asynchronous already, which the WAL does not tell.
//!
//! Reference: `synchronous_commit` and `commit_delay` in the PostgreSQL manual; `pg_test_fsync`.

use super::lock_traffic::is_lock;
use super::{Line, commit_bytes, evidence, plain_finding, xids_of};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::kind::{KindRow, KindSample};
use crate::model::percent::percent;
use crate::model::threshold::{Speaks, Threshold, Unit};

/// From so many writes in a second on it is worth a look.
const SYNCS: Threshold = Threshold {
    speaks: Speaks::From,
    chen: 500.0,
    strict: 200.0,
    relaxed: 2000.0,
    unit: Unit::PerSecond,
};
/// Where their records are a smaller share of the bytes, commits are not what costs: 10 %.
const LEAST_SHARE: f64 = 0.1;
/// Fewer commits are no load, however fast they came.
const COMMITS: u64 = 5000;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "commit-pressure",
    summary: "commits need up to 500 writes to disk in a second, group commit included",
    text: include_str!("commit_pressure.rs"),
    threshold: SYNCS,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let when = report.when.as_ref()?;
    let threshold = RULE.whole_limit(report);
    let syncs = when.peak_syncs.filter(|syncs| *syncs >= threshold)?;
    let settings = report.settings.as_ref();
    let is_asynchronous =
        settings.is_some_and(|settings| settings.values.synchronous_commit == Some(false));
    if report.ratios.commits < COMMITS || is_asynchronous {
        return None;
    }
    let bytes = commit_bytes(report);
    let share = bytes as f64 / report.totals.total_bytes.max(1) as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let finding = Finding {
        evidence: evidence([
            ("syncs_per_second", syncs.into()),
            ("threshold", threshold.into()),
            ("commits_per_second", when.peak_commits.into()),
            ("commits_per_second_mean", when.mean_commits.into()),
            ("bytes_per_commit", report.ratios.bytes_per_commit.into()),
            ("commit_bytes", bytes.into()),
            ("commit_ratio", share.into()),
        ]),
        side_effects: vec![
            "with synchronous_commit = off a crash loses up to three times wal_writer_delay".into(),
        ],
        source: "PostgreSQL manual, asynchronous commit".into(),
        ..plain_finding(
            &RULE,
            format!(
                "commits are {} of the bytes: transactions are small and many, {} in a second",
                percent(share, 0),
                when.peak_commits.unwrap_or(syncs)
            ),
        )
    };
    let off = AdvisedSetting::to(SettingChange::Set, "synchronous_commit", "off");
    let asynchronous = Line::set(
        off,
        " (if it is not yet) where losing the last commits in a crash is acceptable; it saves waiting, not \
         WAL",
    );
    let finding = finding.advising([batch(report).into(), asynchronous]);
    Some(Finding { estimate: Some(most_saved(report, bytes)), ..finding.explaining(bytes) })
}

/// What fewer transactions save at most, where commits wrote so much: all of these, with the pages in which
/// is noted how transactions end, and row locks, which a transaction logs once however often it needs them.
fn most_saved(report: &Report, commit_bytes: u64) -> u64 {
    let rows = report.records.iter().flat_map(|records| &records.rows);
    let locks: u64 = rows.filter(is_lock).map(|row| row.sums.record_bytes).sum();
    let most = commit_bytes.max(xids_of(report, report.ratios.commits)) + locks;
    most.min(report.totals.total_bytes)
}

/// What to put together: as all kinds of transactions tell, or else a sample of them.
fn batch(report: &Report) -> String {
    let kinds = report.kinds.as_ref().map(|kinds| kinds.rows.as_slice()).unwrap_or_default();
    let changes_rows = |kind: &&KindRow| !kind.operations.is_empty();
    let most = kinds.iter().filter(changes_rows).max_by_key(|kind| kind.transactions);
    let counted = most
        .filter(|most| most.transactions > 1)
        .map(|most| format!("most are {}, {} of them", most.short(), most.transactions));
    let told = counted.or_else(|| sampled(report.kind_sample.as_ref()?));
    match told {
        Some(told) => format!("put several changes into one transaction: {told}"),
        None => "put several changes into one transaction; --stats=kind shows the most frequent \
                 transactions"
            .into(),
    }
}

/// The most frequent kind of a sample.
fn sampled(sample: &KindSample) -> Option<String> {
    let most = sample.kinds.iter().max_by_key(|kind| kind.transactions)?;
    let share = most.transactions as f64 / sample.transactions.max(1) as f64;
    Some(format!("{} are {}, {} bytes each", percent(share, 0), most.kind, most.mean_bytes))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{add_record, with_record};
    use super::*;
    use crate::model::kind::{KindOfWork, KindOperation, SampledKind};
    use crate::model::sample;
    use crate::model::settings::Settings;
    use crate::model::when::Overview;

    /// A report in which commits are so many hundredths of the bytes.
    fn pressed(hundredths: u64) -> Report {
        let mut report = with_record("Transaction", "COMMIT", hundredths << 20, 100 << 20);
        report.ratios.commits = 5000;
        let (peak_syncs, peak_commits) = (Some(1000), Some(7321));
        report.when = Some(Overview { peak_syncs, peak_commits, ..Overview::default() });
        report
    }

    #[test]
    fn it_speaks_where_commits_cost_and_says_how_many_there_are() {
        assert!(check(&pressed(9)).is_none());
        let finding = check(&pressed(10)).expect("a finding");
        assert_eq!(
            finding.title,
            "commits are 10 % of the bytes: transactions are small and many, 7321 in a second"
        );
        assert_eq!(finding.estimate, Some(10 << 20));
    }

    /// 100 rows with a foreign key to the same row lock it 100 times in 100 transactions, and once in one.
    #[test]
    fn locks_go_with_the_transactions_that_took_them_again() {
        let mut report = pressed(10);
        add_record(&mut report, "Heap", "LOCK", 5000, 270_000);
        let finding = check(&report).expect("a finding");
        assert_eq!(
            (finding.explains, finding.estimate),
            (Some(10 << 20), Some((10 << 20) + 270_000))
        );
    }

    #[test]
    fn a_sample_tells_what_to_put_together() {
        let kind = |kind: &str, transactions| SampledKind {
            kind: kind.into(),
            transactions,
            median_bytes: 105,
            mean_bytes: 185,
        };
        let kinds = vec![kind("UPDATE wide", 2), kind("INSERT sensor", 98)];
        let mut report = pressed(10);
        report.kind_sample = Some(KindSample { transactions: 100, kinds });
        assert!(batch(&report).ends_with("98 % are INSERT sensor, 185 bytes each"));
    }

    #[test]
    fn it_speaks_from_500_writes_and_5000_commits_on() {
        let found = |syncs, commits| {
            let mut report = pressed(10);
            report.ratios.commits = commits;
            report.when = Some(Overview { peak_syncs: Some(syncs), ..Overview::default() });
            check(&report).is_some()
        };
        assert!(found(500, 5000));
        assert!(!found(499, 5000));
        assert!(!found(500, 4999));
    }

    #[test]
    fn commits_that_wait_for_no_disk_press_on_none() {
        let found = |synchronous_commit| {
            let mut report = pressed(10);
            let mut settings = Settings::default();
            settings.values.synchronous_commit = synchronous_commit;
            report.settings = Some(settings);
            check(&report).is_some()
        };
        assert!(found(None) && found(Some(true)) && !found(Some(false)));
    }

    #[test]
    fn the_most_frequent_kind_is_named_where_kinds_are_known() {
        let operation = |table: &str| KindOperation {
            operation: KindOfWork::Insert,
            schema: Some("public".into()),
            table: Some(table.into()),
            relation: None,
        };
        let kind = |table: &str, transactions| KindRow {
            operations: vec![operation(table)],
            transactions,
            ..KindRow::default()
        };
        let mut report = sample::report(0, 1 << 20);
        assert!(batch(&report).contains("--stats=kind"));
        let none = KindRow { transactions: 9000, ..KindRow::default() };
        report.kinds = Some(vec![none, kind("few", 2), kind("events", 5000)].into());
        assert!(batch(&report).ends_with("most are INSERT events, 5000 of them"));
    }
}
