//! What it looks at: the share of the catalogs (pg_class, pg_attribute, …) in all bytes.
//!
//! Why it matters: each temporary table, and each partition made or dropped, writes some dozen rows of
//! catalogs, with their indexes; that is logged even where the table itself is not. From 10 % on it is worth
//! a look.
//!
//! What to do: make temporary tables once a session (ON COMMIT DELETE ROWS), or use CTEs; partitions in
//! larger steps.
//!
//! When to ignore it: during a migration.
//!
//! Reference: CREATE TABLE in the PostgreSQL manual.

use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::table::TableRow;
use crate::model::threshold::Threshold;
use crate::model::who::WholeTableRow;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.1, 0.05, 0.2);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "ddl-churn",
    summary: "catalogs are 10 % of the bytes",
    text: include_str!("ddl_churn.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref().filter(|_| !says_little(report))?;
    let is_catalog = |row: &&WholeTableRow| row.schema.as_deref() == Some("pg_catalog");
    let catalogs: Vec<&WholeTableRow> = tables.rows.iter().filter(is_catalog).collect();
    let bytes: u64 = catalogs.iter().map(|row| row.numbers.total_bytes).sum();
    let threshold = RULE.limit(report);
    let share = bytes as f64 / report.totals.total_bytes as f64;
    let first = catalogs.iter().max_by_key(|row| row.numbers.total_bytes)?;
    (share >= threshold).then(|| Finding {
        evidence: evidence([
            ("catalog_ratio", share.into()),
            ("threshold", threshold.into()),
            ("catalog_bytes", bytes.into()),
            ("most", first.label().into()),
        ]),
        advice: vec![
            format!("most of it is {}", first.label()),
            "temporary tables once a session (ON COMMIT DELETE ROWS), partitions in larger steps"
                .into(),
        ],
        ignore_when: "a migration runs".into(),
        estimate: Some(bytes),
        source: "PostgreSQL manual, CREATE TABLE".into(),
        ..plain_finding(
            &RULE,
            format!("{} of the bytes are changes of the catalogs", percent(share, 0)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
