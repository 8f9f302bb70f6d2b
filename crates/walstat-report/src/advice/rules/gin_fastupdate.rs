//! What it looks at: what is written into GIN indexes where nothing of it goes through a pending list.
//!
//! Why it matters: a row has an entry in a GIN index for each of its words or keys, and each entry is a
//! record of its own, in another page. With `fastupdate`, which is on by default, the entries of many rows
//! are put into a list first, and go into the index together. Where it is off, there are many records of
//! entries, and none of a list: that is how it is known. From 10 % of the bytes on, and from 1,000 entries,
//! it is worth a look.
//!
//! What to do: `ALTER INDEX … SET (fastupdate = on)`. The list is emptied by vacuum, or when it has grown to
//! `gin_pending_list_limit`.
//!
//! When to ignore it: where searches have to be as fast as they can, since they read the list as well.
//!
//! Reference: GIN indexes, in the PostgreSQL manual.

use super::{MIN_ENTRIES, MOSTLY, evidence, index_label, plain_finding};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{Finding, Severity};
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;
use crate::model::who::{IndexPart, WholeTableRow};

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.1, 0.05, 0.2);
/// Vacuum writes an index's meta page too, once each time; with a list every row does.
const ENTRIES_A_META_PAGE: u64 = 100;
/// Indexes that are neither B-trees nor GIN: a report does not tell which index is of which kind.
const OTHERS: [&str; 5] = ["Hash", "Gist", "SPGist", "BRIN", "Generic"];

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "gin-fastupdate",
    summary: "entries of GIN indexes without fastupdate are 10 % of the bytes",
    text: include_str!("gin_fastupdate.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let entries = entries(report)?;
    let found = RULE.share(report, entries.total_bytes, report.totals.total_bytes)?;
    let index = index(report, entries.total_bytes);
    let name = index.map_or("…".to_owned(), |(_, index)| index.sql_name());
    let label = index.map(|(table, index)| index_label(report, table, index));
    let which =
        label.as_ref().map_or("a GIN index".to_owned(), |label| format!("the GIN index {label}"));
    let finding = Finding {
        severity: Severity::Warning,
        evidence: evidence([
            ("gin_entry_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("gin_entries", entries.count.into()),
            ("gin_entry_bytes", entries.total_bytes.into()),
            ("index", label.into()),
        ]),
        advice: vec![format!(
            "ALTER INDEX {name} SET (fastupdate = on): there are {} entries, and no record of a pending \
             list",
            entries.count
        )],
        side_effects: vec!["searches read the pending list too, until vacuum empties it".into()],
        source: "PostgreSQL manual, GIN indexes".into(),
        ..plain_finding(
            &RULE,
            format!(
                "{which} has fastupdate off, and its entries are {} of the bytes",
                percent(found.share, 0)
            ),
        )
    };
    Some(finding.at_most(entries.total_bytes))
}

/// What entries of GIN indexes came to.
struct Entries {
    count: u64,
    total_bytes: u64,
}

/// Entries that went into GIN indexes one by one; `None` where there are few, or some went through a list.
fn entries(report: &Report) -> Option<Entries> {
    let rows = || report.records.iter().flat_map(|records| &records.rows);
    let of = |name: &str| {
        let named = |row: &&RecordRow| row.rmgr == "Gin" && row.record == name;
        let rows = rows().filter(named);
        rows.fold(Entries { count: 0, total_bytes: 0 }, |sum, row| Entries {
            count: sum.count + row.sums.count,
            total_bytes: sum.total_bytes + row.sums.total_bytes,
        })
    };
    let entries = of("INSERT");
    let lists = of("INSERT_LISTPAGE").count + of("DELETE_LISTPAGE").count;
    // Up to release 11 an index build writes entries, too.
    let is_built = of("CREATE_INDEX").count > 0;
    let metas = of("UPDATE_META_PAGE").count;
    let has_list = lists > 0 || metas * ENTRIES_A_META_PAGE > entries.count;
    (entries.count >= MIN_ENTRIES && !has_list && !is_built).then_some(entries)
}

/// Whether it speaks of a report: the cure is another one than to drop the index.
pub(super) fn has_found(report: &Report) -> bool {
    check(report).is_some()
}

/// The index that most of them went into, where no other kind of index can be meant.
fn index(report: &Report, bytes: u64) -> Option<(&WholeTableRow, &IndexPart)> {
    let rows = report.records.iter().flat_map(|records| &records.rows);
    if rows.clone().any(|row| OTHERS.contains(&row.rmgr.as_str())) {
        return None;
    }
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    let indexes = tables.flat_map(|row| row.indexes.iter().map(move |index| (row, index)));
    let others =
        indexes.filter(|(_, index)| index.leaf_inserts.is_none() && !index.name.is_empty());
    let bytes_of = |index: &IndexPart| index.part.numbers.total_bytes;
    let largest = others.max_by_key(|(_, index)| bytes_of(index))?;
    (bytes_of(largest.1) as f64 >= MOSTLY * bytes as f64).then_some(largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::who::{Part, WholeTableRow};
    use crate::model::{Numbers, Sums, sample};

    /// A report of 100 MB in which GIN has so many records of these types, of so many MB.
    fn report(records: &[(&str, u64, u64)]) -> Report {
        let row = |(record, count, megabytes): &(&str, u64, u64)| RecordRow {
            rmgr: "Gin".into(),
            record: (*record).into(),
            info: "0x20".into(),
            sums: Sums { count: *count, total_bytes: megabytes << 20, ..Sums::default() },
        };
        let rows: Vec<RecordRow> = records.iter().map(row).collect();
        Report { records: Some(rows.into()), ..sample::report(0, 100 << 20) }
    }

    fn found(records: &[(&str, u64, u64)]) -> Option<Finding> {
        check(&report(records))
    }

    #[test]
    fn it_speaks_of_entries_that_went_through_no_list() {
        let finding = found(&[("INSERT", 1000, 10)]).expect("a finding");
        assert_eq!((finding.estimate, finding.explains), (Some(10 << 20), Some(10 << 20)));
        assert!(finding.advice[0].starts_with("ALTER INDEX … SET (fastupdate = on)"));
        assert!(found(&[("INSERT", 1000, 9)]).is_none() && found(&[("INSERT", 999, 10)]).is_none());
        for other in ["INSERT_LISTPAGE", "DELETE_LISTPAGE", "CREATE_INDEX"] {
            assert!(found(&[("INSERT", 1000, 10), (other, 1, 0)]).is_none(), "{other}");
        }
        // Vacuum came ten times; a list would have had a row each.
        assert!(found(&[("INSERT", 1000, 10), ("UPDATE_META_PAGE", 10, 0)]).is_some());
        assert!(found(&[("INSERT", 1000, 10), ("UPDATE_META_PAGE", 11, 0)]).is_none());
    }

    #[test]
    fn the_index_is_named_where_it_is_the_only_one_that_can_be() {
        let index = |name: &str, megabytes: u64, leaf_inserts| {
            let numbers = Numbers { total_bytes: megabytes << 20, ..Numbers::default() };
            let part = Part { numbers, ..Part::default() };
            let schema = Some("docs".into());
            IndexPart { schema, name: name.into(), part, leaf_inserts, ..IndexPart::default() }
        };
        let indexes = vec![index("pkey", 20, Some(9)), index("words", 10, None)];
        let mut report = report(&[("INSERT", 1000, 10)]);
        let row = WholeTableRow { indexes, ..WholeTableRow::default() };
        report.tables = Some(vec![row].into());
        let title = |report: &Report| check(report).expect("a finding").title;
        assert!(title(&report).starts_with("the GIN index docs.words has"), "{}", title(&report));
        let advice = check(&report).expect("a finding").advice;
        assert!(advice[0].starts_with("ALTER INDEX docs.words SET"), "{advice:?}");
        report.records.iter_mut().for_each(|records| {
            let mut gist = records.rows[0].clone();
            gist.rmgr = "Gist".into();
            records.rows.push(gist);
        });
        assert!(title(&report).starts_with("a GIN index has"), "{}", title(&report));
    }
}
