//! What it looks at: tables that are updated and whose TOAST is a large part of the WAL.
//!
//! Why it matters: an update that changes a large value writes it anew as a whole, in chunks of 2 kB, and the
//! old chunks are deleted. A column that changes often beside it does not matter, one that is large and
//! changes often does. It speaks where TOAST of a table with 1,000 updates is 20 % of all bytes.
//!
//! What to do: keep parts of a document that change in rows of their own, so that a change writes its part
//! alone; compress with lz4 (`default_toast_compression`, 14 and later). To split off the columns beside it
//! saves nothing: an update that leaves the large value as it is does not write it.
//!
//! When to ignore it: where the values are inserted once and the updates are of other columns.
//!
//! Reference: TOAST in the PostgreSQL manual.

use super::{Line, evidence, label, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::percent::percent;
use crate::model::threshold::{MIN_UPDATES, Threshold};
use crate::model::who::WholeTableRow;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

/// The rule.
pub(crate) const RULE: Rule = Rule {
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
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let share = percent(found.share, 0);
    let title = format!("large values of {} are {share} of the bytes", label(report, worst));
    let finding = Finding {
        evidence: evidence([
            ("table", label(report, worst).into()),
            ("toast_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("toast_bytes", bytes.into()),
            ("updates", worst.updates.into()),
        ]),
        source: "PostgreSQL manual, TOAST".into(),
        ..plain_finding(&RULE, title)
    };
    let lz4 = AdvisedSetting::to(SettingChange::Set, "default_toast_compression", "lz4");
    let text = format!("move the parts of a large value that change into rows of their own; {lz4}");
    let each = bytes / worst.updates;
    let each = format!("{}: {each} bytes of TOAST for each update", label(report, worst));
    let advice = [Line { text, settings: vec![lz4] }, each.into()];
    Some(finding.advising(advice).at_most(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::who::Part;
    use crate::model::{Numbers, sample};

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
            let found = check(&report);
            // Most readers see the first line only.
            assert!(found.iter().all(|finding| finding.advice[0].starts_with("move ")));
            found.is_some()
        };
        assert!(found(20, 100, 1000));
        assert!(!found(19, 100, 1000));
        assert!(!found(20, 100, 999));
        assert!(!found(10, 15, 1000));
    }
}
