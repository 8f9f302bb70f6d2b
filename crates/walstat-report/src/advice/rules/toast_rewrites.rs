//! What it looks at: tables whose updates replace large values, where that is a large part of the WAL.
//!
//! Why it matters: an update that changes a large value writes it anew as a whole, in chunks of 2 kB, and the
//! old chunks are deleted. A column that changes often beside it does not matter, one that is large and
//! changes often does. It speaks where what 1,000 updates or more replaced is 20 % of all bytes.
//!
//! The chunks tell how much that is: an update that leaves the large value as it is touches none, and an
//! insert deletes none. Where rows are both inserted and deleted, updates have at most their part of the
//! chunks, by the number of rows, if all values are about as large.
//!
//! What to do: keep parts of a document that change in rows of their own, so that a change writes its part
//! alone; compress with lz4 (`default_toast_compression`, 14 and later). To split off the columns beside it
//! saves nothing: an update that leaves the large value as it is does not write it.
//!
//! When to ignore it: where rows are inserted, updated in other columns, and deleted, all of them as often.
//!
//! Reference: TOAST in the PostgreSQL manual; `heap_toast_insert_or_update` in its source.

use super::{Line, evidence, label, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::percent::percent;
use crate::model::threshold::{MIN_UPDATES, Threshold};
use crate::model::who::WholeTableRow;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

/// An update logs the pointer to its large value, too, if that is a new one (`varatt_external`, its header).
const POINTER_BYTES: u64 = 18;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "toast-rewrites",
    summary: "large values that updates replaced are 20 % of the bytes",
    text: include_str!("toast_rewrites.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref().filter(|_| !says_little(report))?;
    let updated = tables.rows.iter().filter(|row| row.updates >= MIN_UPDATES);
    let worst = updated.max_by_key(|row| replaced_bytes(row))?;
    let bytes = replaced_bytes(worst);
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let share = percent(found.share, 0);
    let table = label(report, worst);
    let at_most = if worst.inserts.min(worst.deletes) > 0 { "at most " } else { "" };
    let finding = Finding {
        evidence: evidence([
            ("table", table.as_str().into()),
            ("toast_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("toast_bytes", bytes.into()),
            ("updates", worst.updates.into()),
            ("chunks_inserted", worst.toast_inserts.into()),
            ("chunks_deleted", worst.toast_deletes.into()),
        ]),
        source: "PostgreSQL manual, TOAST".into(),
        ..plain_finding(
            &RULE,
            format!(
                "large values that updates of {table} replaced are {at_most}{share} of the bytes"
            ),
        )
    };
    let lz4 = AdvisedSetting::to(SettingChange::Set, "default_toast_compression", "lz4");
    let text = format!("move the parts of a large value that change into rows of their own; {lz4}");
    let each = bytes / worst.updates;
    let each = format!("{table}: {at_most}{each} bytes of TOAST for each update");
    let advice = [Line { text, settings: vec![lz4] }, each.into()];
    let pointers = POINTER_BYTES * worst.updates.min(worst.toast_deletes);
    let most = (bytes + pointers).min(report.totals.total_bytes);
    Some(Finding { estimate: Some(most), ..finding.advising(advice).explaining(bytes) })
}

/// What updates wrote of large values in place of others, at most.
fn replaced_bytes(row: &WholeTableRow) -> u64 {
    let bytes = row.toast.as_ref().map_or(0, |toast| toast.numbers.total_bytes);
    let (inserted, deleted) = (row.toast_inserts as f64, row.toast_deletes as f64);
    let of_updates = |others: u64| row.updates as f64 / (row.updates + others).max(1) as f64;
    // The fewer other rows there are, the less it matters how large their values are.
    let replaced = if row.deletes <= row.inserts {
        deleted * of_updates(row.deletes)
    } else {
        inserted * of_updates(row.inserts)
    };
    // A value that becomes larger has chunks that replace nothing, one that becomes smaller writes fewer.
    let replaced = replaced.min(inserted).min(deleted);
    (bytes as f64 * replaced / inserted.max(1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::who::Part;
    use crate::model::{Numbers, sample};

    /// What it finds of a table with so many MB of TOAST in a report of so many.
    fn found(megabytes: u64, total: u64, row: WholeTableRow) -> Option<Finding> {
        let numbers = Numbers { total_bytes: megabytes << 20, ..Numbers::default() };
        let toast = Some(Part { numbers, ..Part::default() });
        let tables = Some(vec![WholeTableRow { toast, ..row }].into());
        let finding = check(&Report { tables, ..sample::report(0, total << 20) });
        // Most readers see the first line only.
        assert!(finding.iter().all(|finding| finding.advice[0].starts_with("move ")));
        finding
    }

    /// Updates of rows, inserts and deletes beside them, and the same of chunks.
    fn row([updates, inserts, deletes]: [u64; 3], chunks: [u64; 2]) -> WholeTableRow {
        let [toast_inserts, toast_deletes] = chunks;
        WholeTableRow { updates, inserts, deletes, toast_inserts, toast_deletes, ..<_>::default() }
    }

    #[test]
    fn it_speaks_of_large_values_that_updates_replace() {
        let replacing = |updates| row([updates, 0, 0], [9000, 9000]);
        assert!(found(20, 100, replacing(1000)).is_some());
        assert!(found(19, 100, replacing(1000)).is_none());
        assert!(found(20, 100, replacing(999)).is_none());
        assert!(found(10, 15, replacing(1000)).is_none());
    }

    /// All TOAST of a table with updates was put down to them.
    #[test]
    fn what_inserts_wrote_is_not_replaced() {
        let saved = |rows, chunks| {
            let finding = found(80, 100, row(rows, chunks));
            finding.and_then(|finding| finding.estimate).map_or(0, |bytes| bytes >> 20)
        };
        // Documents are filled in, and a status beside them is updated.
        assert_eq!(saved([1000, 10_000_000, 0], [40_000_000, 0]), 0);
        // A quarter of what was written replaced something.
        assert_eq!(saved([1000, 3000, 0], [16_000, 4000]), 20);
        // Values that are set for the first time, and such as become smaller.
        assert_eq!(saved([5000, 0, 0], [9000, 0]), 0);
        assert_eq!(saved([5000, 0, 0], [9000, 18_000]), 80);
        // What DELETE removed was not updated; where nothing was inserted, updates wrote all.
        assert_eq!(saved([1000, 0, 50_000], [4000, 204_000]), 80);
        // A queue: each row is inserted, updated in other columns, and deleted.
        assert_eq!(saved([1000, 1_000_000, 1_000_000], [4_000_000, 4_000_000]), 0);
        assert_eq!(saved([1000, 1000, 1000], [4000, 4000]), 40);
    }

    #[test]
    fn pointers_go_with_their_values() {
        let finding = found(80, 100, row([3000, 0, 0], [9000, 9000])).expect("a finding");
        assert_eq!(finding.explains, Some(80 << 20));
        assert_eq!(finding.estimate, Some((80 << 20) + 3000 * 18));
    }

    #[test]
    fn what_is_not_certain_is_told_as_the_most() {
        let told = |rows| {
            let finding = found(80, 100, row(rows, [4000, 4000])).expect("a finding");
            (finding.title.contains("at most"), finding.advice[1].contains("at most"))
        };
        assert_eq!(told([1000, 0, 0]), (false, false));
        assert_eq!(told([1000, 1, 0]), (false, false));
        assert_eq!(told([1000, 1, 1]), (true, true));
    }
}
