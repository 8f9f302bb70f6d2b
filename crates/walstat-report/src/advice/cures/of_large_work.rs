//! What to say of large transactions: who they are, what to do about what they did, and what that costs.

use crate::advice::workloads::bulk_updates::BulkUpdates;
use crate::model::large::{LargeWork, LargeWorkRow};
use crate::model::percent::percent;

/// Indexes that are filled while a table is loaded are worth a word from this share of the bytes on.
pub(in crate::advice) const INDEXES: f64 = 0.1;

/// Whether indexes were filled that are worth a word.
pub(in crate::advice) fn has_indexes(row: &LargeWorkRow) -> bool {
    index_share(row) >= INDEXES
}

fn index_share(row: &LargeWorkRow) -> f64 {
    row.index_bytes as f64 / row.total_bytes.max(1) as f64
}

/// Whether it is more than one transaction.
pub(in crate::advice) fn is_repeated(row: &LargeWorkRow) -> bool {
    row.transactions > 1 || row.deletes > 0
}

/// What to say of transactions.
pub(in crate::advice) struct Wording {
    /// Who they are, in the title.
    pub(in crate::advice) subject: String,
    /// What to do.
    pub(in crate::advice) advice: Vec<String>,
    /// What that costs.
    pub(in crate::advice) price: Option<&'static str>,
}

const BATCHES: &str = "a batch that committed stays when a later one fails";
const REPLACED: &str = "write only rows that differ: MERGE, or INSERT … ON CONFLICT DO UPDATE … WHERE … IS \
                        DISTINCT FROM, rather than DELETE and INSERT";
/// What it costs to load without indexes.
pub(in crate::advice) const WITHOUT_INDEXES: &str =
    "without its indexes the table is slow to search while it is loaded";
/// What an unlogged table costs.
pub(in crate::advice) const UNLOGGED: &str =
    "an unlogged table is emptied by a crash, and is empty on standbys";

/// What to say of those that a row tells of.
pub(in crate::advice) fn wording(row: &LargeWorkRow, bulk: Option<BulkUpdates>) -> Wording {
    let (advice, price) = match row.work {
        _ if row.is_aborted => {
            ("it was for nothing: the log says why it was rolled back".to_owned(), None)
        }
        LargeWork::Refresh if row.deletes > 0 => {
            ("refresh it less often: it is done CONCURRENTLY already".to_owned(), None)
        }
        LargeWork::Refresh => (
            "REFRESH … CONCURRENTLY writes only rows that differ (it needs a unique index); or refresh it \
             less often"
                .to_owned(),
            Some("CONCURRENTLY takes longer, and writes more where most rows differ"),
        ),
        LargeWork::NewPages => {
            ("do that less often, or when little else is written".to_owned(), None)
        }
        LargeWork::Rewrite => (
            "put what rewrites a table into one ALTER TABLE, which writes it once; and do it when little \
             else is written"
                .to_owned(),
            None,
        ),
        LargeWork::Load => load(row),
        LargeWork::Mixed if is_repeated(row) => (REPLACED.to_owned(), None),
        LargeWork::Delete if is_repeated(row) => (
            "drop or TRUNCATE partitions rather than delete their rows".to_owned(),
            Some("the table has to be partitioned by what is deleted"),
        ),
        LargeWork::Delete => (
            "delete in batches that commit; or drop a partition, or TRUNCATE, instead".to_owned(),
            Some(BATCHES),
        ),
        LargeWork::Update if is_repeated(row) => (same_values(bulk), None),
        LargeWork::Update | LargeWork::Mixed => {
            ("work in batches that commit".to_owned(), Some(BATCHES))
        }
    };
    Wording { subject: subject(row), advice: vec![advice], price }
}

/// What to do about updates that come again and again.
fn same_values(bulk: Option<BulkUpdates>) -> String {
    let rows = bulk.filter(|bulk| bulk.are_most()).map_or_else(String::new, |bulk| {
        format!(": each changed about {} rows, a good part of its table", bulk.rows_each)
    });
    format!("change only rows that differ, WHERE … IS DISTINCT FROM the new value{rows}")
}

/// What to do about a load of which indexes are such a share.
pub(in crate::advice) fn indexes_there_before(share: f64) -> String {
    format!(
        "indexes that were there before the load are {} of it: drop them before, and build them after the \
         load",
        percent(share, 0)
    )
}

fn load(row: &LargeWorkRow) -> (String, Option<&'static str>) {
    if has_indexes(row) {
        return (indexes_there_before(index_share(row)), Some(WITHOUT_INDEXES));
    }
    let advice = "load into an unlogged table, where it can be repeated";
    let advice = if is_repeated(row) {
        advice.to_owned()
    } else {
        format!("{advice}; or in batches that commit, which standbys follow more easily")
    };
    (advice, Some(UNLOGGED))
}

/// `transaction 731, a load of public.orders that was rolled back,`.
fn subject(row: &LargeWorkRow) -> String {
    let LargeWorkRow { work, table, transactions, xid, .. } = row;
    let of = table.as_ref().map_or_else(String::new, |table| format!(" of {table}"));
    let undone = if row.is_aborted { " rolled back" } else { "" };
    let was_undone = if row.is_aborted { " that was rolled back" } else { "" };
    match (work, transactions, xid) {
        (LargeWork::Refresh, 2.., _) => format!("{transactions} refreshes{of}"),
        (LargeWork::Refresh, ..) if row.deletes > 0 => format!("refreshes{of}"),
        (LargeWork::Refresh, ..) => format!("a refresh{of}"),
        (LargeWork::NewPages, 2.., _) => {
            format!("{transactions} index builds, rewrites or copies{of}{undone}")
        }
        (LargeWork::Mixed, 2.., _) => {
            format!("{transactions} transactions that delete and insert rows{of}{undone}")
        }
        (_, 2.., _) => format!("{transactions} {}s{of}{undone}", work.text()),
        (LargeWork::Mixed, _, Some(xid)) if row.is_aborted => {
            format!("transaction {xid}, which was rolled back,")
        }
        (LargeWork::Mixed, _, Some(xid)) => format!("transaction {xid}"),
        (_, _, Some(xid)) => {
            format!("transaction {xid}, {} {}{of}{was_undone},", article(work), work.text())
        }
        (_, _, None) => format!("{} {}{of}", article(work), work.text()),
    }
}

fn article(work: &LargeWork) -> &'static str {
    if work.text().starts_with(['i', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::large_transactions::tests::{found_of, row};

    fn told_of(work: LargeWork, transactions: u64, change: fn(&mut LargeWorkRow)) -> String {
        let mut row = row(work, transactions, 50 << 20);
        change(&mut row);
        let finding = found_of(row, 100 << 20).expect("a finding");
        let price = finding.side_effects.concat();
        format!("{}: {}; price {price}", finding.title, finding.advice.join("; "))
    }

    #[test]
    fn what_to_do_depends_on_what_it_did() {
        let load = told_of(LargeWork::Load, 1, |row| row.index_bytes = 20 << 20);
        assert!(load.starts_with("transaction 741, a load of public.t, wrote"), "{load}");
        assert!(load.contains("build them after the load"), "{load}");
        let plain = told_of(LargeWork::Load, 1, |_| {});
        assert!(plain.contains("batches") && !plain.contains("build them"), "{plain}");
        assert!(plain.contains("emptied by a crash"), "{plain}");
        let delete = told_of(LargeWork::Delete, 1, |_| {});
        assert!(
            delete.contains("a delete of public.t,") && delete.contains("partition"),
            "{delete}"
        );
        let build = told_of(LargeWork::NewPages, 1, |_| {});
        assert!(build.contains("an index build") && !build.contains("batches"), "{build}");
    }

    #[test]
    fn several_that_did_the_same_are_told_as_one() {
        let refreshes = told_of(LargeWork::Refresh, 8, |row| row.xid = None);
        assert!(refreshes.starts_with("8 refreshes of public.t wrote 50 MB"), "{refreshes}");
        assert!(refreshes.contains("CONCURRENTLY writes only rows that differ"), "{refreshes}");
        let concurrent = told_of(LargeWork::Refresh, 0, |row| row.deletes = 9);
        assert!(concurrent.contains("CONCURRENTLY already"), "{concurrent}");
        assert!(found_of(row(LargeWork::Load, 4, 50 << 20), 100 << 20).is_none(), "small ones");
        let loads = told_of(LargeWork::Load, 3, |_| {});
        assert!(
            loads.starts_with("3 loads of public.t wrote") && !loads.contains("batches"),
            "{loads}"
        );
    }

    #[test]
    fn what_was_rolled_back_is_called_so() {
        let load = told_of(LargeWork::Load, 1, |row| row.is_aborted = true);
        let want = "transaction 741, a load of public.t that was rolled back, wrote at least 50 MB";
        assert!(load.starts_with(want) && load.contains("for nothing"), "{load}");
    }
}
