//! What it looks at: the share of the catalogs (pg_class, pg_attribute, …) in all bytes.
//!
//! Why it matters: each temporary table, and each partition made or dropped, writes some dozen rows of
//! catalogs, with their indexes; that is logged even where the table itself is not. From 10 % on it is worth
//! a look, and from a fifth of that on where 1,000 relations and more were made and dropped again, as
//! temporary tables are. What `CREATE DATABASE` copies of its template's catalogs is no change of catalogs:
//! `large-transactions` tells of it.
//!
//! What to do: make temporary tables once a session (ON COMMIT DELETE ROWS), or use CTEs; partitions in
//! larger steps.
//!
//! When to ignore it: while a migration runs.
//!
//! Reference: CREATE TABLE in the PostgreSQL manual.

use super::{commit_bytes, evidence, label, plain_finding};
use crate::advice::Rule;
use crate::advice::copied_databases::{copied_bytes, copied_databases};
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;
use crate::model::who::WholeTableRow;
use walstat_names::catalog::row::CATALOG_SCHEMA_NAME;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.1, 0.05, 0.2);
/// So many relations that were made and dropped again are a habit.
const MADE_AND_DROPPED: u64 = 1000;
/// Such a habit is worth a look from one of so many parts of the threshold on.
const PARTS_OF_A_HABIT: f64 = 5.0;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "ddl-churn",
    summary: "catalogs are 10 % of the bytes",
    text: include_str!("ddl_churn.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref()?;
    let is_catalog = |row: &&WholeTableRow| row.schema.as_deref() == Some(CATALOG_SCHEMA_NAME);
    let catalogs: Vec<&WholeTableRow> = tables.rows.iter().filter(is_catalog).collect();
    let copied = copied_databases(report);
    let changed = |row: &WholeTableRow| match copied.contains(&row.database) {
        true => row.numbers.total_bytes.saturating_sub(copied_bytes(row)),
        false => row.numbers.total_bytes,
    };
    let bytes: u64 = catalogs.iter().map(|row| changed(row)).sum();
    let dropped = made_and_dropped(&catalogs);
    let is_habit = dropped >= MADE_AND_DROPPED;
    let from = if is_habit { PARTS_OF_A_HABIT } else { 1.0 };
    let found = RULE.share_from(from, report, bytes, report.totals.total_bytes)?;
    let first = catalogs.iter().max_by_key(|row| changed(row))?;
    let told = percent(found.share, 0);
    let title = if is_habit {
        format!(
            "temporary tables, or others made and dropped, change the catalogs: {told} of the bytes"
        )
    } else {
        format!("{told} of the bytes are changes of the catalogs")
    };
    let most = if is_habit {
        format!(
            "{dropped} rows were added to pg_class and removed again: one for each table, index and TOAST \
             table"
        )
    } else {
        format!("most of it is {}", label(report, first))
    };
    let finding = Finding {
        evidence: evidence([
            ("catalog_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("catalog_bytes", bytes.into()),
            ("made_and_dropped", dropped.into()),
            ("most", label(report, first).into()),
        ]),
        advice: vec![
            "temporary tables once a session (ON COMMIT DELETE ROWS), partitions in larger steps"
                .into(),
            most,
        ],
        source: "PostgreSQL manual, CREATE TABLE".into(),
        ..plain_finding(&RULE, title)
    };
    // Commits of these carry what other sessions have to forget.
    let commits = if is_habit { commit_bytes(report) } else { 0 };
    let most = (bytes + commits).min(report.totals.total_bytes);
    Some(Finding { estimate: Some(most), ..finding.explaining(bytes) })
}

/// Relations that were made and dropped again: pg_class has a row of each.
fn made_and_dropped(catalogs: &[&WholeTableRow]) -> u64 {
    let relations = catalogs.iter().filter(|row| row.name.as_deref() == Some("pg_class"));
    relations.map(|row| row.inserts.min(row.deletes)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_record;
    use super::*;
    use crate::advice::copied_databases::tests::copied;
    use crate::model::{Numbers, sample};

    #[test]
    fn it_speaks_from_a_tenth_of_the_bytes_on() {
        let found = |bytes: u64, total: u64, schema: &str| {
            let mut report = sample::report(0, total << 20);
            let row = WholeTableRow {
                schema: Some(schema.into()),
                name: Some("pg_attribute".into()),
                numbers: Numbers { total_bytes: bytes << 20, ..Numbers::default() },
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).is_some()
        };
        assert!(found(10, 100, "pg_catalog"));
        assert!(!found(9, 100, "pg_catalog"));
        assert!(!found(50, 100, "public"));
        assert!(!found(10, 15, "pg_catalog"));
    }

    /// Of eight databases it said that 20 % of the bytes were changes of catalogs, and 21 % copies.
    #[test]
    fn catalogs_that_were_copied_are_not_changed() {
        let mut report = copied(3, 60);
        assert_eq!(check(&report), None);
        let row = WholeTableRow {
            database: Some(5),
            schema: Some("pg_catalog".into()),
            name: Some("pg_attribute".into()),
            numbers: Numbers { total_bytes: 10 << 20, ..Numbers::default() },
            ..WholeTableRow::default()
        };
        report.tables.iter_mut().for_each(|tables| tables.rows.push(row.clone()));
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.explains, Some(10 << 20));
        assert!(finding.advice[1].ends_with("pg_attribute"), "{:?}", finding.advice);
        // Where no database was made, new pages are a rewrite of catalogs, which is a change.
        assert!(check(&copied(0, 60)).is_some());
    }

    #[test]
    fn commits_of_temporary_tables_may_go_with_them() {
        let most = |dropped| {
            let mut report = with_record("Transaction", "COMMIT", 12 << 20, 100 << 20);
            let row = WholeTableRow {
                schema: Some("pg_catalog".into()),
                name: Some("pg_class".into()),
                numbers: Numbers { total_bytes: 70 << 20, ..Numbers::default() },
                inserts: dropped,
                deletes: dropped,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).map(|finding| (finding.explains, finding.estimate))
        };
        assert_eq!(most(1000), Some((Some(70 << 20), Some(82 << 20))));
        assert_eq!(most(999), Some((Some(70 << 20), Some(70 << 20))));
    }

    #[test]
    fn temporary_tables_get_a_word_from_a_fiftieth_of_the_bytes_on() {
        let found = |bytes: u64, inserts, deletes| {
            let mut report = sample::report(0, 100 << 20);
            let row = WholeTableRow {
                schema: Some("pg_catalog".into()),
                name: Some("pg_class".into()),
                numbers: Numbers { total_bytes: bytes << 20, ..Numbers::default() },
                inserts,
                deletes,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).map(|finding| finding.title)
        };
        let title = found(2, 1000, 1000).expect("a finding");
        assert!(title.starts_with("temporary tables"), "{title}");
        assert_eq!(found(1, 1000, 1000), None);
        assert_eq!(found(9, 1000, 999), None);
        let plain = found(10, 1000, 999).expect("a finding");
        assert!(!plain.contains("temporary"), "{plain}");
    }
}
