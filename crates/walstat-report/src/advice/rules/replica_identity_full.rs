//! What it looks at: how much main data updates and deletes have: old rows are in it where a table has
//! REPLICA IDENTITY FULL.
//!
//! Why it matters: each update and delete then logs the old row as a whole beside the new one. With a key the
//! old row is logged where the key changes alone. It speaks where old rows are 5 % of all bytes.
//!
//! What to do: a primary key, or REPLICA IDENTITY USING INDEX. Where nothing decodes, `wal_level = replica`
//! saves as much and more: no old row is logged then, and of a new one in the same page what differs alone.
//!
//! When to ignore it: where subscribers need the old rows: without them they see old keys alone.
//!
//! Reference: `ALTER TABLE … REPLICA IDENTITY` in the PostgreSQL manual; `ExtractReplicaIdentity` in its
//! source.

use super::{Line, WAL_LEVEL, evidence, label, plain_finding, says_little, worst_tables};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;
use walstat_format::payload::heap::{Delete, Update};

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.05, 0.02, 0.10);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "replica-identity-full",
    summary: "old rows of updates and deletes are 5 % of the bytes",
    text: include_str!("replica_identity_full.rs"),
    threshold: SHARE,
    check,
};

/// A key of usual size, which a delete has at wal_level logical.
const KEY_BYTES: u64 = 32;

/// Bytes of old rows, and whether they were counted: where tables were not, it is what main data have beside
/// the change itself and keys of usual size.
fn old_row_bytes(report: &Report) -> Option<(u64, bool)> {
    if let Some(tables) = &report.tables {
        return Some((tables.rows.iter().map(|row| row.whole_old_row_bytes).sum(), true));
    }
    let records = report.records.as_ref()?;
    let old_rows = |row: &RecordRow| match (row.rmgr.as_str(), row.record.as_str()) {
        ("Heap", "UPDATE" | "UPDATE+INIT" | "HOT_UPDATE" | "HOT_UPDATE+INIT") => {
            row.sums.main_data_bytes.saturating_sub(row.sums.count * u64::from(Update::BYTES))
        }
        ("Heap", "DELETE") => {
            let each = u64::from(Delete::BYTES) + KEY_BYTES;
            row.sums.main_data_bytes.saturating_sub(row.sums.count * each)
        }
        _ => 0,
    };
    Some((records.rows.iter().map(old_rows).sum(), false))
}

fn check(report: &Report) -> Option<Finding> {
    let (bytes, is_exact) = old_row_bytes(report).filter(|_| !says_little(report))?;
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let tables = worst_tables(report, |row| row.whole_old_row_bytes);
    let names: Vec<String> = tables.iter().map(|(row, ..)| label(report, row)).collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
    let about = if is_exact { "" } else { "about " };
    let finding = Finding {
        evidence: evidence([
            ("old_row_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("old_row_bytes", bytes.into()),
            ("tables", names.into()),
        ]),
        source: "PostgreSQL manual, REPLICA IDENTITY".into(),
        ..plain_finding(
            &RULE,
            format!(
                "REPLICA IDENTITY FULL: old rows{of} are {about}{} of the bytes",
                percent(found.share, 0)
            ),
        )
    };
    let replica = AdvisedSetting::to(SettingChange::Lower, WAL_LEVEL, "replica");
    let without_decoding = format!(
        "where nothing decodes (pg_replication_slots has no logical slot) {replica} saves as much and more: \
         walstat whatif --wal-level replica says how much"
    );
    let advice = [
        "REPLICA IDENTITY DEFAULT with a primary key, or USING INDEX with a unique one".into(),
        Line { text: without_decoding, settings: vec![replica] },
        "SELECT relname FROM pg_class WHERE relreplident = 'f'; finds all such tables".into(),
    ];
    Some(finding.advising(advice).saving_images(bytes, 0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_record;
    use super::*;
    use crate::model::who::WholeTableRow;

    #[test]
    fn where_tables_were_not_counted_it_speaks_of_what_updates_have_beside_the_change() {
        let found = |count: u64, main: u64, total| {
            let mut report = with_record("Heap", "HOT_UPDATE", 90 << 20, total);
            for row in report.records.iter_mut().flat_map(|table| &mut table.rows) {
                (row.sums.count, row.sums.main_data_bytes) = (count, main);
            }
            check(&report).map(|finding| finding.estimate)
        };
        assert_eq!(found(100_000, 1_400_000 + (5 << 20), 100 << 20), Some(Some(5 << 20)));
        assert_eq!(found(100_000, 1_400_000 + (4 << 20), 100 << 20), None);
        assert_eq!(found(400_000, 5_600_000, 100 << 20), None);
        assert_eq!(found(100_000, 1_400_000 + (5 << 20), 15 << 20), None);
    }

    #[test]
    fn an_estimate_is_told_as_one() {
        let mut report = with_record("Heap", "DELETE", 90 << 20, 100 << 20);
        let sums = report.records.iter_mut().flat_map(|table| &mut table.rows);
        sums.for_each(|row| row.sums.main_data_bytes = 50 << 20);
        let title = check(&report).map(|finding| finding.title);
        let want = "REPLICA IDENTITY FULL: old rows are about 50 % of the bytes";
        assert_eq!(title.as_deref(), Some(want));
    }

    #[test]
    fn it_says_of_all_what_its_tables_have_and_nothing_of_keys() {
        let mut report = with_record("Heap", "DELETE", 90 << 20, 100 << 20);
        let sums = report.records.iter_mut().flat_map(|table| &mut table.rows);
        sums.for_each(|row| row.sums.main_data_bytes = 50 << 20);
        let with = |whole_old_row_bytes| WholeTableRow {
            old_row_bytes: 50 << 20,
            whole_old_row_bytes,
            ..WholeTableRow::default()
        };
        report.tables = Some(vec![with(7 << 20), with(1 << 20)].into());
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.evidence["old_row_bytes"], 8 << 20);
        assert_eq!(finding.estimate, Some(8 << 20));
        report.tables = Some(vec![with(0)].into());
        assert_eq!(check(&report), None, "wide keys are no old rows");
    }

    #[test]
    fn it_names_the_tables() {
        let mut report = with_record("Heap", "HOT_UPDATE", 90 << 20, 100 << 20);
        let table = |name: &str, whole_old_row_bytes| WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some(name.into()),
            whole_old_row_bytes,
            ..WholeTableRow::default()
        };
        report.tables = Some(vec![table("other", 4 << 20), table("wide", 46 << 20)].into());
        let title = check(&report).map(|finding| finding.title);
        let want = "REPLICA IDENTITY FULL: old rows of public.wide are 50 % of the bytes";
        assert_eq!(title.as_deref(), Some(want));
    }
}
