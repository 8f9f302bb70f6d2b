//! What it looks at: transactions that wrote a good part of all the WAL.
//!
//! Why it matters: the WAL of one transaction comes at once and as a whole. Standbys and the archive fall
//! behind while it runs, logical decoding keeps it in memory or in files until it commits, vacuum cannot
//! remove what died meanwhile, and what it wrote was for nothing if it is rolled back. From 20 % of the bytes
//! on it is worth a look. Counted is what a transaction wrote where it had a sixteenth of the WAL or more: at
//! least so much. Subtransactions are counted by themselves.
//!
//! What to do: that depends on what it did. Updates and deletes go into batches that commit; a partition
//! can be dropped instead of deleting its rows. A load into a table with indexes writes less if they are
//! dropped before and built after it. A refresh of a materialized view, an index build or a rewrite is one
//! transaction by its nature: less often, or when little else is written.
//!
//! When to ignore it: a migration or a load that is over.
//!
//! Reference: populating a database, in the PostgreSQL manual; `logical_decoding_work_mem`.

use super::{MOSTLY, evidence, plain_finding};
use crate::advice::Rule;
use crate::maintenance::{refreshed, views};
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::table::TableRow;
use crate::model::threshold::Threshold;
use crate::model::{LargeTransactionRow, Report};

/// From this share of all bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);
/// A transaction with less is not large, whatever its share.
const LEAST_BYTES: u64 = 16 << 20;
/// A view is what a transaction refreshed if it has this share of the transaction's bytes.
const NEARLY_ALL: f64 = 0.8;
/// Indexes that are filled while a table is loaded are worth a word from this share of the bytes on.
const INDEXES: f64 = 0.1;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "large-transactions",
    summary: "a transaction wrote 20 % of all bytes",
    text: include_str!("large_transactions.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let rows = report.large_transactions.as_ref()?;
    let share = |row: &LargeTransactionRow| {
        let found = RULE.share(report, row.total_bytes, report.totals.total_bytes);
        found.filter(|_| row.total_bytes >= LEAST_BYTES)
    };
    let count = rows.iter().filter(|row| share(row).is_some()).count();
    let largest = rows.first()?;
    let found = share(largest)?;
    let (bytes, xid) = (largest.total_bytes, largest.xid.as_str());
    let (did, mut advice, side_effects) = what_it_did(report, largest);
    advice.push(format!(
        "walstat --stats=transaction,table -x {xid} says when it was, how it ended, and which tables it \
         changed"
    ));
    let title = format!(
        "transaction {xid}{did} wrote at least {} MB, {} of the bytes",
        bytes >> 20,
        percent(found.share, 0)
    );
    let finding = Finding {
        evidence: evidence([
            ("xid", xid.into()),
            ("transaction_bytes", bytes.into()),
            ("transaction_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("insert_bytes", largest.insert_bytes.into()),
            ("update_bytes", largest.update_bytes.into()),
            ("delete_bytes", largest.delete_bytes.into()),
            ("index_bytes", largest.index_bytes.into()),
            ("new_page_bytes", largest.new_page_bytes.into()),
            ("large_transactions", count.into()),
        ]),
        advice,
        side_effects,
        ignore_when: "it was a load or a migration that is over".into(),
        source: "PostgreSQL manual, populating a database".into(),
        ..plain_finding(&RULE, title)
    };
    Some(finding.spreading(bytes))
}

/// What a transaction did, as a part of the title; what to do about it, and at what price.
fn what_it_did(report: &Report, row: &LargeTransactionRow) -> (String, Vec<String>, Vec<String>) {
    let share = |bytes: u64| bytes as f64 / row.total_bytes.max(1) as f64;
    if let Some(view) = refreshed_view(report, row) {
        let told = format!(", a refresh of {view},");
        let advice = "refresh it less often, or when little else is written; CONCURRENTLY writes less \
                      where few rows differ, and more where most do";
        return (told, vec![advice.to_owned()], Vec::new());
    }
    if share(row.new_page_bytes) >= MOSTLY {
        let advice = "it built an index, rewrote a table or copied one: do that when little else is \
                      written";
        return (String::new(), vec![advice.to_owned()], Vec::new());
    }
    let is_load = row.insert_bytes > row.update_bytes + row.delete_bytes;
    if is_load && share(row.index_bytes) >= INDEXES {
        let advice = format!(
            "indexes that were there before the load are {} of it: drop them before, and build them \
             after the load",
            percent(share(row.index_bytes), 0)
        );
        let price = "without its indexes the table is slow to search while it is loaded";
        return (", a load,".to_owned(), vec![advice], vec![price.to_owned()]);
    }
    let price = vec!["a batch that committed stays when a later one fails".to_owned()];
    if is_load {
        let advice =
            "load in batches that commit; or into an unlogged table, where it can be repeated";
        return (", a load,".to_owned(), vec![advice.to_owned()], price);
    }
    if share(row.delete_bytes) >= MOSTLY {
        let advice = "delete in batches that commit; or drop a partition, or TRUNCATE, instead";
        return (", a delete,".to_owned(), vec![advice.to_owned()], price);
    }
    (String::new(), vec!["work in batches that commit".to_owned()], price)
}

/// The materialized view that a transaction refreshed: nothing else changes rows of one, and no refresh
/// updates them.
fn refreshed_view(report: &Report, row: &LargeTransactionRow) -> Option<String> {
    let least = NEARLY_ALL * row.total_bytes as f64;
    let is_it = |bytes: u64| bytes as f64 >= least && row.update_bytes * 10 < row.total_bytes;
    views(report).find(|view| is_it(refreshed(view).0)).map(|view| view.label())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::who::WholeTableRow;
    use crate::model::{Numbers, sample};

    fn found_of(row: LargeTransactionRow, total: u64) -> Option<Finding> {
        let mut report = sample::report(0, total);
        report.large_transactions = Some(vec![row]);
        check(&report)
    }

    fn found(bytes: u64, total: u64) -> Option<Finding> {
        let xid = "741".into();
        let row = LargeTransactionRow { xid, total_bytes: bytes, ..Default::default() };
        found_of(row, total)
    }

    #[test]
    fn it_speaks_from_a_fifth_of_the_bytes_and_16_mb_on() {
        let found_20 = found(20 << 20, 100 << 20).expect("a finding");
        assert_eq!(found_20.title, "transaction 741 wrote at least 20 MB, 20 % of the bytes");
        assert_eq!(found_20.explains, Some(20 << 20));
        assert!(found(19 << 20, 100 << 20).is_none());
        assert!(found(15 << 20, 20 << 20).is_none());
        assert!(found(15 << 20, 15 << 20).is_none());
    }

    #[test]
    fn what_to_do_depends_on_what_it_did() {
        let told = |change: fn(&mut LargeTransactionRow)| {
            let mut row = LargeTransactionRow { total_bytes: 50 << 20, ..Default::default() };
            change(&mut row);
            let finding = found_of(row, 100 << 20).expect("a finding");
            format!("{} {}", finding.title, finding.advice[0])
        };
        let load = told(|row| (row.insert_bytes, row.index_bytes) = (30 << 20, 20 << 20));
        assert!(load.contains("a load,") && load.contains("build them after the load"), "{load}");
        let plain = told(|row| row.insert_bytes = 50 << 20);
        assert!(!plain.contains("build them"), "{plain}");
        let delete = told(|row| row.delete_bytes = 50 << 20);
        assert!(delete.contains("a delete,") && delete.contains("partition"), "{delete}");
        let build = told(|row| row.new_page_bytes = 50 << 20);
        assert!(build.contains("built an index") && !build.contains("batches"), "{build}");
    }

    #[test]
    fn a_refresh_is_not_told_to_commit_in_batches() {
        let told = |kind: &str, updates: u64, bytes: u64| {
            let mut report = sample::report(0, 100 << 20);
            let row = LargeTransactionRow {
                xid: "741".into(),
                total_bytes: 50 << 20,
                insert_bytes: 25 << 20,
                delete_bytes: 25 << 20,
                update_bytes: updates,
                ..Default::default()
            };
            report.large_transactions = Some(vec![row]);
            let view = WholeTableRow {
                kind: Some(kind.into()),
                schema: Some("public".into()),
                name: Some("sums".into()),
                numbers: Numbers { total_bytes: bytes, ..Numbers::default() },
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![view].into());
            let finding = check(&report).expect("a finding");
            finding.title.contains("a refresh of public.sums")
                && !finding.advice.concat().contains("batches")
        };
        assert!(told("m", 0, 40 << 20));
        assert!(!told("m", 0, 39 << 20));
        assert!(!told("m", 5 << 20, 50 << 20));
        assert!(!told("r", 0, 50 << 20));
    }
}
