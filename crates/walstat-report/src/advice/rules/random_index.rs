//! What it looks at: B-trees whose entries go everywhere, as those of random keys do (UUIDv4, hashes).
//!
//! Why it matters: each entry then touches another leaf, and after a checkpoint nearly each brings an image
//! of 8 kB for an entry of some 30 bytes. Entries in order (a sequence, a time, UUIDv7) fill one leaf after
//! the other. It speaks of each index whose images are 10 % of all bytes, where less than half of its entries
//! went into the right-most leaf, and there were 1,000 of them. Where no record tells which leaf that is, as
//! in a short range or where images are compressed, it was not split, and the leaf that got most entries
//! stands for it.
//!
//! An update that is not HOT puts an entry into each index, wherever its key is. Where all entries may come
//! from such updates, they say nothing about the order of keys, and `hot-ratio` covers them.
//!
//! What to do: drop an index that nobody needs; else keys in the order of time.
//! What it would save: entries in order fill leaves that are new, which are logged without an image; after
//! each checkpoint the last leaf and the page above it get one. And a leaf that is split at its end moves a
//! tenth of its entries where others move half of them.
//!
//! When to ignore it: where keys have to be unpredictable.
//!
//! Reference: Vondra, On the impact of full-page writes, 2016; RFC 9562 for UUIDv7.

use super::index_cost::PRIMARY_KEY;
use super::{MIN_ENTRIES, evidence, index_label, plain_finding};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{Finding, Severity};
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;
use crate::model::who::{IndexPart, WholeTableRow};
use serde_json::json;
use std::cmp::Reverse;
use walstat_format::ordered::OrderBy;

/// Its images are at least this share of all bytes.
const IMAGES: Threshold = Threshold::from_share(0.10, 0.05, 0.20);
/// Fewer of its entries than this went into the right-most leaf.
pub(super) const IN_ORDER: f64 = 0.5;
/// What is usable of a leaf, filled to 90 %.
const LEAF_BYTES: u64 = 7300;
/// What the split of a leaf at its end writes: the other tenth of its entries, and headers.
const LAST_SPLIT_BYTES: u64 = 900;

/// Pages that entries in order change again after a checkpoint: the last leaf, and the one above it.
const CHANGED_AGAIN: u64 = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "random-index",
    summary: "the images of an index with keys in random order are 10 % of the bytes",
    text: include_str!("random_index.rs"),
    threshold: IMAGES,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let total = report.totals.total_bytes;
    let tables = report.tables.as_ref()?;
    let indexes = tables.rows.iter().flat_map(|row| row.indexes.iter().map(move |i| (row, i)));
    let random =
        indexes.filter(|(row, index)| is_filled_by_inserts(row, index) && is_random(index));
    let images = |index: &IndexPart| index.part.numbers.fpi_bytes;
    let mut random: Vec<(&WholeTableRow, &IndexPart)> =
        random.filter(|(_, index)| RULE.share(report, images(index), total).is_some()).collect();
    random.order_by_key(|(_, index)| (Reverse(images(index)), &index.name));
    let random: Vec<Random> = random
        .into_iter()
        .map(|(row, index)| Random {
            index,
            label: index_label(report, row, index),
            in_order: InOrder::of(report, index),
        })
        .collect();
    let found = RULE.share(report, random.iter().map(|of| images(of.index)).sum(), total)?;
    let worst = random.first()?;
    let names: Vec<&str> = random.iter().map(|of| of.label.as_str()).collect();
    let finding = Finding {
        severity: Severity::Warning,
        evidence: evidence([
            ("index", worst.label.as_str().into()),
            ("indexes", json!(names)),
            ("fpi_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("leaf_inserts", entries(worst.index).into()),
            ("rightmost_ratio", worst.index.rightmost_ratio.into()),
            ("images_an_entry", json!(images_an_entry(worst.index))),
            ("leaves_if_in_order", worst.in_order.leaves.into()),
            ("images_if_in_order", worst.in_order.images.into()),
            ("split_bytes_more", worst.in_order.split_bytes_saved.into()),
        ]),
        advice: advice(&random),
        side_effects: vec!["keys tell when they were made".into()],
        source: "Vondra, On the impact of full-page writes, 2016".into(),
        ..plain_finding(
            &RULE,
            format!(
                "keys of {} come in random order: {} images are {} of the bytes",
                names.join(" and "),
                if names.len() == 1 { "its" } else { "their" },
                percent(found.share, 0)
            ),
        )
    };
    let fpi_bytes: u64 = random.iter().map(|of| of.in_order.saved_fpi_bytes).sum();
    let split_bytes: u64 = random.iter().map(|of| of.in_order.split_bytes_saved).sum();
    Some(finding.saving_images(fpi_bytes + split_bytes, fpi_bytes))
}

/// An index with keys in random order.
struct Random<'r> {
    index: &'r IndexPart,
    label: String,
    in_order: InOrder,
}

fn advice(random: &[Random<'_>]) -> Vec<String> {
    let what = "use keys that rise with time: UUIDv7 instead of UUIDv4, a sequence, or a timestamp as the \
                first column";
    let told = random.iter().map(|Random { index, label, in_order }| {
        format!(
            "{label}: {:.2} images for each entry; keys in the order of time need {:.4}",
            images_an_entry(index),
            in_order.images as f64 / entries(index).max(1) as f64
        )
    });
    let may_go = random.iter().filter(|of| !of.index.name.ends_with(PRIMARY_KEY));
    let names: Vec<&str> = may_go.map(|of| of.label.as_str()).collect();
    let drop = format!(
        "drop {}, if it is not unique and no query uses it (idx_scan = 0 in pg_stat_user_indexes)",
        names.join(" and ")
    );
    let drop = Some(drop).filter(|_| !names.is_empty());
    drop.into_iter().chain([what.to_owned()]).chain(told).collect()
}

/// What an index would write with its entries in order.
struct InOrder {
    /// Leaves that they fill.
    leaves: u64,
    /// Images of the last leaf and the page above it.
    images: u64,
    /// What is saved where a split moves fewer entries.
    split_bytes_saved: u64,
    /// What is saved of images.
    saved_fpi_bytes: u64,
}

impl InOrder {
    fn of(report: &Report, index: &IndexPart) -> InOrder {
        let numbers = &index.part.numbers;
        let leaves = index.part.block_data_bytes.div_ceil(LEAF_BYTES).max(1);
        let images = leaves.min(CHANGED_AGAIN * (1 + checkpoints(report)));
        let image = numbers.fpi_bytes / numbers.fpi_count.max(1);
        let split_bytes_saved =
            split_bytes(report, index).saturating_sub(leaves * LAST_SPLIT_BYTES);
        let saved_fpi_bytes = numbers.fpi_bytes.saturating_sub(images * image);
        InOrder { leaves, images, split_bytes_saved, saved_fpi_bytes }
    }
}

fn entries(index: &IndexPart) -> u64 {
    index.leaf_inserts.unwrap_or(0)
}

fn images_an_entry(index: &IndexPart) -> f64 {
    index.part.numbers.fpi_count as f64 / entries(index).max(1) as f64
}

fn checkpoints(report: &Report) -> u64 {
    report.when.as_ref().map_or(0, |when| when.checkpoints)
}

/// What the page splits of an index write: its records without those of entries, which are alike.
fn split_bytes(report: &Report, index: &IndexPart) -> u64 {
    let records = report.records.as_ref().map_or(&[][..], |records| records.rows.as_slice());
    let is_entry = |row: &&RecordRow| row.rmgr == "Btree" && row.record == "INSERT_LEAF";
    let Some(entry) = records.iter().find(is_entry).filter(|row| row.sums.count > 0) else {
        return 0;
    };
    let entries = entries(index) as f64;
    let bytes = entries * entry.sums.record_bytes as f64 / entry.sums.count as f64;
    index.part.numbers.record_bytes.saturating_sub(bytes as u64)
}

/// Whether most entries came with new rows: each update that is not HOT may have brought one, into the leaf
/// where its key is, whatever the order of keys.
fn is_filled_by_inserts(row: &WholeTableRow, index: &IndexPart) -> bool {
    let by_updates = row.updates.saturating_sub(row.hot_updates);
    index.leaf_inserts.is_some_and(|entries| entries >= 2 * by_updates)
}

/// Whether an index has keys in no order.
fn is_random(index: &IndexPart) -> bool {
    entries(index) >= MIN_ENTRIES && index.rightmost_ratio.is_some_and(|ratio| ratio < IN_ORDER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Numbers;
    use crate::model::sample;
    use crate::model::who::Part;

    fn index(name: &str, fpi: u64, entries: u64, rightmost: f64) -> IndexPart {
        let numbers = Numbers { fpi_bytes: fpi, fpi_count: fpi / 8192, ..Numbers::default() };
        IndexPart {
            name: name.into(),
            leaf_inserts: Some(entries),
            rightmost_ratio: Some(rightmost),
            part: Part { numbers, block_data_bytes: entries * 24, ..Part::default() },
            ..IndexPart::default()
        }
    }

    fn found_of(indexes: Vec<IndexPart>, total: u64) -> Option<Finding> {
        let mut report = sample::report(total / 2, total);
        report.tables = Some(vec![WholeTableRow { indexes, ..Default::default() }].into());
        check(&report)
    }

    fn found(fpi: u64, entries: u64, rightmost: f64, total: u64) -> Option<Finding> {
        found_of(vec![index("orders_key", fpi, entries, rightmost)], total)
    }

    fn found_in(change: impl FnOnce(&mut WholeTableRow)) -> Option<Finding> {
        let mut report = sample::report(50 << 20, 100 << 20);
        let fpi_bytes = 20 << 20;
        let numbers = Numbers { fpi_bytes, fpi_count: fpi_bytes / 8192, ..Numbers::default() };
        let index = IndexPart {
            name: "orders_key".into(),
            leaf_inserts: Some(4000),
            rightmost_ratio: Some(0.1),
            part: Part { numbers, ..Part::default() },
            ..IndexPart::default()
        };
        let mut row = WholeTableRow { indexes: vec![index], inserts: 4000, ..Default::default() };
        change(&mut row);
        report.tables = Some(vec![row].into());
        check(&report)
    }

    #[test]
    fn splits_are_what_the_records_of_an_index_have_beside_its_entries() {
        let mut report = super::super::tests::with_record("Btree", "INSERT_LEAF", 7000, 100 << 20);
        if let Some(records) = &mut report.records {
            records.rows.iter_mut().for_each(|row| row.sums.count = 100);
        }
        let numbers = Numbers { record_bytes: 100_000, ..Numbers::default() };
        let index = IndexPart {
            leaf_inserts: Some(1000),
            part: Part { numbers, ..Part::default() },
            ..IndexPart::default()
        };
        assert_eq!(split_bytes(&report, &index), 100_000 - 1000 * 70);
        report.records = None;
        assert_eq!(split_bytes(&report, &index), 0, "where entries are not counted");
    }

    /// pgbench: the primary key was built after the load, and all of its entries are from updates.
    #[test]
    fn entries_of_updates_that_are_not_hot_say_nothing_of_the_order_of_keys() {
        let updated =
            |not_hot| found_in(|row| (row.inserts, row.updates) = (1_000_000, not_hot)).is_some();
        assert!(!updated(4000) && !updated(2001) && updated(2000));
    }

    #[test]
    fn it_speaks_of_many_images_for_entries_in_no_order() {
        let finding = found(10 << 20, 1000, 0.49, 100 << 20).expect("a finding");
        // The leaf that is there, and the page above it; others of the four that entries fill are new.
        assert_eq!(finding.estimate, Some((10 << 20) - 2 * 8192));
        assert!(finding.advice[0].starts_with("drop orders_key, if"), "{:?}", finding.advice);
        assert!(finding.advice[2].starts_with("orders_key: 1.28 images"), "{:?}", finding.advice);
        assert!(found(10 << 20, 1000, 0.5, 100 << 20).is_none());
        assert!(found(10 << 20, 999, 0.1, 100 << 20).is_none());
        assert!(found(9 << 20, 1000, 0.1, 100 << 20).is_none());
        assert!(found(10 << 20, 1000, 0.1, 15 << 20).is_none());
    }

    #[test]
    fn all_that_matter_are_named() {
        let indexes = [("a", 10, 0.1), ("b", 20, 0.1), ("c", 9, 0.1), ("d", 30, 0.9)];
        let indexes = indexes.map(|(name, images, last)| index(name, images << 20, 1000, last));
        let finding = found_of(indexes.into(), 100 << 20).expect("a finding");
        assert_eq!(
            finding.title,
            "keys of b and a come in random order: their images are 30 % of the bytes"
        );
        assert_eq!(finding.estimate, Some((30 << 20) - 4 * 8192));
        assert!(finding.advice.iter().any(|line| line.starts_with("a: ")), "{:?}", finding.advice);
        let pkey = found_of(vec![index("a_pkey", 10 << 20, 1000, 0.1)], 100 << 20).expect("one");
        assert!(pkey.advice[0].starts_with("use keys"), "a primary key stays: {:?}", pkey.advice);
    }
}
