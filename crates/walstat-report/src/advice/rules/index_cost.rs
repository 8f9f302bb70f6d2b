//! What it looks at: tables whose indexes write more than twice as much as the rows themselves.
//!
//! Why it matters: each index is one more record, and after a checkpoint one more image, for every row that
//! is inserted and for every update that is not HOT. An index that no query uses costs the same.
//!
//! What to do: drop indexes that are not used (`idx_scan` in `pg_stat_user_indexes` says how often each
//! was); put several into one. An index of a primary key or of a unique constraint is needed even where no
//! query uses it: the one that has the name of a primary key is not among what can be saved. It speaks where
//! indexes write twice what the heap does, and 20 % of all bytes. Index builds are not among them, and
//! neither are indexes that were dropped in the WAL.
//!
//! When to ignore it: where all of them are used, or the statistics were reset lately.
//!
//! Reference: Chen 2017; `pg_stat_user_indexes` in the PostgreSQL manual.

use super::{CHEN_2017, evidence, gin_fastupdate, index_label, label, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::{Speaks, Threshold, Unit};
use crate::model::who::{IndexPart, Part, WholeTableRow};
use std::cmp::Reverse;
use walstat_format::ordered::OrderBy;

/// Indexes write so many times what the heap does.
const TIMES: Threshold =
    Threshold { speaks: Speaks::From, chen: 2.0, strict: 1.5, relaxed: 3.0, unit: Unit::Times };
/// They are at least this share of all bytes: 20 %.
const SHARE: f64 = 0.2;
/// How PostgreSQL calls the index of a primary key, unless it is told otherwise.
pub(super) const PRIMARY_KEY: &str = "_pkey";

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "index-cost",
    summary: "the indexes of a table write twice what its rows do, and 20 % of the bytes",
    text: include_str!("index_cost.rs"),
    threshold: TIMES,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref().filter(|_| !says_little(report))?;
    let total = report.totals.total_bytes as f64;
    let threshold = RULE.limit(report);
    let dear = tables.rows.iter().filter(|row| {
        let bytes = index_bytes(row) as f64;
        standing(row).count() > 1
            && bytes >= threshold * heap_bytes(row) as f64
            && bytes >= SHARE * total
    });
    let worst = dear.max_by_key(|row| index_bytes(row))?;
    let named = |index: &IndexPart| index_label(report, worst, index);
    let (droppable, kept, why) = droppable(worst)?;
    let kept = format!("{}, {why}", named(kept));
    let (first, most) = droppable.first().map(|index| (named(index), bytes_of(index)))?;
    let times = index_bytes(worst) as f64 / heap_bytes(worst).max(1) as f64;
    let finding = Finding {
        evidence: evidence([
            ("table", label(report, worst).into()),
            ("indexes", standing(worst).count().into()),
            ("index_names", standing(worst).map(named).collect()),
            ("index_bytes", index_bytes(worst).into()),
            ("heap_bytes", heap_bytes(worst).into()),
            ("threshold", threshold.into()),
            ("largest", first.as_str().into()),
        ]),
        advice: advice(report, (&first, most as f64 / total), &kept),
        side_effects: vec!["queries that use an index are slow without it".into()],
        estimate: Some(droppable.iter().map(|index| bytes_of(index)).sum()),
        estimate_fpi_bytes: Some(droppable.iter().map(|index| images_of(index)).sum()),
        source: CHEN_2017.into(),
        ..plain_finding(
            &RULE,
            format!(
                "{} indexes of {} write {times:.1} times what its rows do",
                standing(worst).count(),
                label(report, worst)
            ),
        )
    };
    Some(finding.explaining(index_bytes(worst)))
}

/// The indexes of a table that may be dropped, the largest first; the one that is kept, and why: that of the
/// primary key, or else the smallest, since one at least is needed.
fn droppable(row: &WholeTableRow) -> Option<(Vec<&IndexPart>, &IndexPart, &'static str)> {
    let mut ranked: Vec<&IndexPart> = standing(row).collect();
    ranked.order_by_key(|index| (Reverse(bytes_of(index)), &index.name));
    let (kept, why) = match ranked.iter().position(|index| index.name.ends_with(PRIMARY_KEY)) {
        Some(at) => (ranked.remove(at), "the primary key"),
        None => (ranked.pop()?, "the smallest"),
    };
    Some((ranked, kept, why))
}

/// What to do: what keeps an index comes before what drops it.
fn advice(report: &Report, (first, share): (&str, f64), kept: &str) -> Vec<String> {
    let list = "ALTER INDEX … SET (fastupdate = on) makes those of GIN cheaper: try that before dropping any";
    let list = list.to_owned();
    let drop = "drop those that no query uses and no constraint needs: SELECT indexrelid::regclass, idx_scan \
                FROM pg_stat_user_indexes JOIN pg_index USING (indexrelid) WHERE NOT indisunique ORDER BY \
                idx_scan;";
    let largest = format!(
        "the largest is {first}, with {} of all bytes; the saving shown would be reached if all but {kept}, \
         were dropped",
        percent(share, 0)
    );
    let list = Some(list).filter(|_| gin_fastupdate::has_found(report));
    list.into_iter().chain([drop.to_owned(), largest]).collect()
}

/// Those that were not dropped meanwhile.
fn standing(row: &WholeTableRow) -> impl Iterator<Item = &IndexPart> {
    row.indexes.iter().filter(|index| !index.is_gone)
}

/// What changes of rows wrote into an index: it is not built for these.
pub(super) fn bytes_of(index: &IndexPart) -> u64 {
    let Part { numbers, new_page_fpi_bytes, .. } = &index.part;
    numbers.total_bytes.saturating_sub(*new_page_fpi_bytes)
}

/// How much of that is images.
pub(super) fn images_of(index: &IndexPart) -> u64 {
    let Part { numbers, new_page_fpi_bytes, .. } = &index.part;
    numbers.fpi_bytes.saturating_sub(*new_page_fpi_bytes)
}

fn index_bytes(row: &WholeTableRow) -> u64 {
    standing(row).map(bytes_of).sum()
}

fn heap_bytes(row: &WholeTableRow) -> u64 {
    row.heap.as_ref().map_or(0, |heap| heap.numbers.total_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Numbers;
    use crate::model::sample;

    /// A table with two indexes that write most of 100 MB, and so many entries of GIN indexes.
    fn with_gin(entries: u64) -> Vec<String> {
        let numbers = |bytes: u64| Numbers { total_bytes: bytes << 20, ..Numbers::default() };
        let part = |bytes| Part { numbers: numbers(bytes), ..Part::default() };
        let index = |name: &str, bytes| IndexPart {
            name: name.into(),
            part: part(bytes),
            ..IndexPart::default()
        };
        let indexes = vec![index("words", 60), index("pkey", 10)];
        let row = WholeTableRow { heap: Some(part(10)), indexes, ..Default::default() };
        let mut report = super::super::tests::with_record("Gin", "INSERT", 60 << 20, 100 << 20);
        let rows = report.records.iter_mut().flat_map(|records| &mut records.rows);
        rows.for_each(|row| row.sums.count = entries);
        report.tables = Some(vec![row].into());
        check(&report).expect("a finding").advice
    }

    #[test]
    fn what_keeps_an_index_comes_before_what_drops_it() {
        let plain = with_gin(0);
        assert!(plain.len() == 2 && plain[0].starts_with("drop"), "{plain:?}");
        let largest = "the largest is words, with 60 % of all bytes";
        assert!(plain[1].starts_with(largest), "{plain:?}");
        assert!(plain[1].ends_with("if all but pkey, the smallest, were dropped"), "{plain:?}");
        let gin = with_gin(5000);
        assert!(
            gin.len() == 3 && gin[0].starts_with("ALTER INDEX … SET (fastupdate = on)"),
            "{gin:?}"
        );
    }

    #[test]
    fn a_primary_key_is_not_among_what_can_be_dropped() {
        let index = |name: &str, bytes: u64| {
            let (total_bytes, fpi_bytes) = (bytes << 20, bytes << 19);
            let numbers = Numbers { total_bytes, fpi_bytes, ..Numbers::default() };
            let part = Part { numbers, ..Part::default() };
            IndexPart { name: name.into(), part, ..IndexPart::default() }
        };
        let found = |names: [&str; 3]| {
            let indexes = names.into_iter().zip([40, 20, 10]);
            let indexes = indexes.map(|(name, bytes)| index(name, bytes)).collect();
            let row = WholeTableRow { indexes, ..Default::default() };
            let tables = Some(vec![row].into());
            check(&Report { tables, ..sample::report(0, 100 << 20) }).expect("a finding")
        };
        let finding = found(["orders_pkey", "orders_ref", "orders_at"]);
        assert_eq!(finding.estimate, Some(30 << 20));
        // Fewer checkpoints spare no image that is not there any more.
        assert_eq!(finding.estimate_fpi_bytes, Some(15 << 20));
        assert!(finding.advice[0].contains("NOT indisunique"), "{:?}", finding.advice);
        let told = &finding.advice[1];
        assert!(told.starts_with("the largest is orders_ref, with 20 %"), "{told}");
        assert!(told.ends_with("all but orders_pkey, the primary key, were dropped"), "{told}");
        assert_eq!(found(["a", "b", "c"]).estimate, Some(60 << 20), "the smallest is kept");
    }

    #[test]
    fn builds_and_indexes_that_are_gone_are_no_cost_of_rows() {
        let found = |built: u64, is_gone| {
            let numbers = Numbers { total_bytes: 40 << 20, ..Numbers::default() };
            let part = Part { numbers, new_page_fpi_bytes: built << 20, ..Part::default() };
            let index = IndexPart { part, ..IndexPart::default() };
            let indexes = vec![index.clone(), IndexPart { is_gone, ..index }];
            let row = WholeTableRow { indexes, ..Default::default() };
            let tables = Some(vec![row].into());
            check(&Report { tables, ..sample::report(0, 100 << 20) }).is_some()
        };
        assert!(found(0, false) && found(30, false));
        assert!(!found(31, false) && !found(0, true));
    }

    #[test]
    fn it_speaks_of_several_indexes_that_write_more_than_the_rows() {
        let part = |bytes: u64| Part {
            numbers: Numbers { total_bytes: bytes << 20, ..Numbers::default() },
            ..Part::default()
        };
        let found = |heap, indexes: &[u64], total: u64| {
            let mut report = sample::report(0, total << 20);
            let index = |bytes: &u64| IndexPart { part: part(*bytes), ..IndexPart::default() };
            let indexes = indexes.iter().map(index).collect();
            let heap = Some(part(heap));
            report.tables =
                Some(vec![WholeTableRow { heap, indexes, ..Default::default() }].into());
            check(&report).map(|finding| finding.estimate)
        };
        assert_eq!(found(10, &[12, 8], 100), Some(Some(12 << 20)));
        assert_eq!(found(10, &[12, 9, 8], 100), Some(Some(21 << 20)));
        assert_eq!(found(11, &[12, 8], 100), None);
        assert_eq!(found(9, &[11, 8], 100), None);
        assert_eq!(found(10, &[20], 100), None);
        assert_eq!(found(1, &[12, 2], 15), None);
    }
}
