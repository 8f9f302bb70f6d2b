//! What it looks at: tables that are updated and whose TOAST is a large part of the WAL.
//!
//! Why it matters: an update that changes a large value writes it anew as a whole, in chunks of 2 kB, and the
//! old chunks are deleted. A column that changes often beside it does not matter, one that is large and
//! changes often does. It speaks where TOAST of a table with 1,000 updates is 20 % of all bytes.
//!
//! What to do: put what changes often into a table of its own; store documents in parts; compress with lz4
//! (`default_toast_compression`, 14 and later).
//!
//! When to ignore it: where the values are inserted once and the updates are of other columns.
//!
//! Reference: TOAST in the PostgreSQL manual.

use super::{begun, evidence, says_little};
use crate::report::advice::Rule;
use crate::report::model::Report;
use crate::report::model::finding::{Finding, Severity};
use crate::report::model::table::TableRow;
use crate::report::model::threshold::{MIN_UPDATES, Speaks, Threshold, Unit};
use crate::report::model::who::WholeTableRow;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold =
    Threshold { speaks: Speaks::From, chen: 0.2, strict: 0.1, relaxed: 0.4, unit: Unit::Ratio };

/// The rule.
pub const RULE: Rule = Rule {
    id: "toast-rewrites",
    summary: "TOAST of a table that is updated is 20 % of the bytes",
    text: include_str!("toast_rewrites.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref().filter(|_| !says_little(report))?;
    let toast =
        |row: &WholeTableRow| row.toast.as_ref().map_or(0, |toast| toast.numbers.total_bytes);
    let updated = tables.rows.iter().filter(|row| row.updates >= MIN_UPDATES);
    let worst = updated.max_by_key(|row| toast(row))?;
    let bytes = toast(worst);
    let threshold = RULE.limit(report);
    let share = bytes as f64 / report.totals.total_bytes as f64;
    (share >= threshold).then(|| Finding {
        severity: Severity::Info,
        evidence: evidence([
            ("table", worst.label().into()),
            ("toast_ratio", share.into()),
            ("threshold", threshold.into()),
            ("toast_bytes", bytes.into()),
            ("updates", worst.updates.into()),
        ]),
        advice: vec![
            format!("{}: {} bytes of TOAST for each update", worst.label(), bytes / worst.updates),
            "large values that change often in a table of their own; default_toast_compression = lz4"
                .into(),
        ],
        ignore_when: "large values are inserted once, and other columns are updated".into(),
        source: "PostgreSQL manual, TOAST".into(),
        ..begun(&RULE, format!("large values of {} are {:.0} % of the bytes", worst.label(), share * 100.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::who::Part;
    use crate::report::model::{Numbers, sample};

    #[test]
    fn it_speaks_of_tables_that_are_updated() {
        let found = |bytes: u64, total: u64, updates| {
            let mut report = sample::report(0, total << 20);
            let numbers = Numbers { total_bytes: bytes << 20, ..Numbers::default() };
            let row = WholeTableRow {
                toast: Some(Part { numbers, ..Part::default() }),
                updates,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).is_some()
        };
        assert!(found(20, 100, 1000));
        assert!(!found(19, 100, 1000));
        assert!(!found(20, 100, 999));
        assert!(!found(10, 15, 1000));
    }
}
