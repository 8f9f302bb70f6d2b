//! The rules, one file each, named after what they find.

use crate::advice::Rule;
use crate::model::estimate::{EstimateRow, Predicted, WORTH_A_WORD};
use crate::model::finding::{AdvisedSetting, Certainty, Finding, SettingChange, Severity};
use crate::model::table::{RecordRow, TableRow};
use crate::model::threshold::{MIN_VOLUME_BYTES, MOSTLY};
use crate::model::who::{IndexOf, IndexPart, WholeTableRow};
use crate::model::{Report, Sums};
use crate::when::REPLAY_RATES;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use walstat_analyse::ratios::ratio;
use walstat_format::block::{BLOCK_HEADER_BYTES, DATA_HEADER_SHORT_BYTES, PLACE_BYTES};
use walstat_format::ordered::OrderBy;
use walstat_format::payload::heap::Lock;
use walstat_format::record_header::RECORD_HEADER_BYTES;

pub(super) mod backup_window;
pub(super) mod burst_after_checkpoint;
pub(super) mod checkpoint_spacing;
pub(super) mod commit_pressure;
pub(super) mod consistency_checking;
pub(super) mod ddl_churn;
pub(super) mod fpi_ratio;
pub(super) mod gin_fastupdate;
pub(super) mod hint_images;
pub(super) mod hot_ratio;
pub(super) mod index_cost;
pub(super) mod large_transactions;
pub(super) mod lock_traffic;
pub(super) mod logical_overhead;
pub(super) mod random_index;
pub(super) mod recovery_distance;
pub(super) mod replica_identity_full;
pub(super) mod sequence_cache;
pub(super) mod standby_lag;
pub(super) mod switch_waste;
pub(super) mod toast_rewrites;
pub(super) mod vacuum_freeze_share;
pub(super) mod wal_compression;
pub(super) mod write_amplification;

/// Settings that several rules speak of.
pub(super) const MAX_WAL_SIZE: &str = "max_wal_size";
pub(super) const CHECKPOINT_TIMEOUT: &str = "checkpoint_timeout";
const WAL_LEVEL: &str = "wal_level";

/// Where the first rules come from.
const CHEN_2017: &str = "Chen, WAL volume of pgbench under different settings, 2017";

/// What a server shows that was never tuned: so many bytes for each byte of change.
const UNTUNED_AMPLIFICATION: f64 = 20.0;

/// Checkpoints that are so far apart need not be further apart, in seconds.
pub(super) const FAR_APART: u64 = 1800;

/// A record that has no block, without its main data.
const BARE_BYTES: u64 = (RECORD_HEADER_BYTES + DATA_HEADER_SHORT_BYTES) as u64;

/// A record of Heap/LOCK without an image.
pub(super) const LOCK_BYTES: u64 =
    BARE_BYTES + (BLOCK_HEADER_BYTES + PLACE_BYTES) as u64 + Lock::BYTES as u64;

/// The end of a transaction that tells of its time alone (`xl_xact_commit`, `xl_xact_abort`).
const PLAIN_END_BYTES: u64 = BARE_BYTES + size_of::<i64>() as u64;

/// Fewer entries of an index are no habit.
const MIN_ENTRIES: u64 = 1000;

/// A table with less than this share of something is not named for it.
pub(super) const LEAST_SHARE: f64 = 0.10;

/// A share that a rule looks at, which has reached its threshold.
struct ReachedShare {
    share: f64,
    threshold: f64,
}

impl Rule {
    /// The share of `part` bytes in `whole`, if it has reached the rule's threshold in a report that has
    /// enough WAL.
    fn share(&self, report: &Report, part: u64, whole: u64) -> Option<ReachedShare> {
        self.share_from(1.0, report, part, whole)
    }

    /// The same from one of so many parts of the threshold on.
    fn share_from(
        &self,
        parts: f64,
        report: &Report,
        part: u64,
        whole: u64,
    ) -> Option<ReachedShare> {
        let (share, threshold) = (part as f64 / whole.max(1) as f64, self.limit(report) / parts);
        let has_reached = !says_little(report) && share >= threshold;
        has_reached.then_some(ReachedShare { share, threshold })
    }
}

/// A finding of a rule with what most findings have: it is for information, and nothing is estimated.
fn plain_finding(rule: &Rule, title: String) -> Finding {
    Finding {
        rule: rule.id.into(),
        severity: Severity::Info,
        title,
        evidence: Map::new(),
        advice: Vec::new(),
        advised_settings: Vec::new(),
        side_effects: Vec::new(),
        ignore_when: rule.ignore_when(),
        estimate: None,
        fewer_checkpoints_bytes: None,
        estimate_fpi_bytes: None,
        explains: None,
        certainty: Certainty::Nothing,
        saved_bytes_a_day: None,
        settings: Map::new(),
        predicted: None,
        source: String::new(),
    }
}

/// A line of advice, and the settings that it says to change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) settings: Vec<AdvisedSetting>,
}

impl Line {
    /// One that begins with what to set.
    pub(super) fn set(setting: AdvisedSetting, more: &str) -> Line {
        Line { text: format!("{setting}{more}"), settings: vec![setting] }
    }
}

impl<T: Into<String>> From<T> for Line {
    fn from(text: T) -> Line {
        Line { text: text.into(), settings: Vec::new() }
    }
}

/// The records of commits.
fn commits(report: &Report) -> Vec<&RecordRow> {
    let rows = report.records.iter().flat_map(|records| &records.rows);
    rows.filter(|row| row.rmgr == "Transaction" && row.record.starts_with("COMMIT")).collect()
}

/// Their bytes.
fn commit_bytes(report: &Report) -> u64 {
    commits(report).iter().map(|row| row.sums.total_bytes).sum()
}

/// What so many transactions wrote at most only because they had an xid, if one thing alone gave it to them:
/// one without an xid ends without a record (`RecordTransactionCommit`). The ends of all others are plain at
/// least. With the pages in which is noted how transactions end, of which fewer xids begin fewer.
fn xids_of(report: &Report, transactions: u64) -> u64 {
    if transactions == 0 {
        return 0;
    }
    let rows = || report.records.iter().flat_map(|records| &records.rows);
    let ends = ends(report);
    let others = ends.count.saturating_sub(transactions);
    let pages = rows().filter(|row| {
        ["CLOG", "CommitTs", "MultiXact"].contains(&&*row.rmgr) && row.record.starts_with("ZERO")
    });
    let pages: u64 = pages.map(|row| row.sums.total_bytes).sum();
    ends.total_bytes.saturating_sub(others.saturating_mul(PLAIN_END_BYTES)) + pages
}

/// The ends of all transactions that have an xid.
fn ends(report: &Report) -> Sums {
    let mut ends = Sums::default();
    let rows = report.records.iter().flat_map(|records| &records.rows);
    rows.filter(|row| is_end(row)).for_each(|row| ends.add(&row.sums));
    ends
}

/// Whether these are ends of transactions. One that is prepared has an xid whatever it does.
fn is_end(row: &RecordRow) -> bool {
    let ends = row.record.starts_with("COMMIT") || row.record.starts_with("ABORT");
    row.rmgr == "Transaction" && ends && !row.record.contains("PREPARED")
}

/// That nobody vacuums unless asked to, if the server's files say so.
fn autovacuum_off(report: &Report) -> Option<Line> {
    let is_off = report.settings.as_ref()?.values.autovacuum == Some(false);
    let on = AdvisedSetting::to(SettingChange::Set, "autovacuum", "on");
    let why = ": it is off now, so dead rows take room in tables and indexes until somebody runs VACUUM, and \
               what is old enough is frozen all at once, to prevent wraparound";
    is_off.then(|| Line::set(on, why))
}

/// Whether a report is of too little WAL for its shares to say anything.
fn says_little(report: &Report) -> bool {
    report.totals.total_bytes < MIN_VOLUME_BYTES
}

/// Which share of the images is for checking only; `None` without images.
fn checking_share(report: &Report) -> Option<f64> {
    ratio(report.totals.fpi_check_count, report.totals.fpi_count)
}

/// Whether most images are for checking only, which no other setting changes.
fn is_for_checking(report: &Report) -> bool {
    checking_share(report).is_some_and(|share| share >= MOSTLY)
}

/// Whether checkpoints are as far apart already as anybody advises.
fn is_far_apart(report: &Report) -> bool {
    let spacing = report.when.as_ref().and_then(|when| when.spacing_seconds.as_ref());
    // Times are cut to whole seconds.
    spacing.is_some_and(|spacing| spacing.median + 1 >= FAR_APART)
}

/// How many times further apart checkpoints may be until they are as far as anybody advises; four
/// times where nobody knows how far they are.
pub(super) fn times_apart(report: &Report) -> u64 {
    let spacing = report.when.as_ref().and_then(|when| when.spacing_seconds.as_ref());
    spacing.map_or(4, |spacing| FAR_APART.div_ceil(spacing.median.max(1)))
}

/// How much of all bytes a wider distance has to save to be worth it.
const WORTH_A_STEP: f64 = 0.01;

/// What checkpoints further apart would come to: the widest distance that is not wider than anybody
/// advises, and saves a point more than the one before that did. `None` where nothing was tried, or
/// none does.
pub(super) fn worth_apart(report: &Report) -> Option<&EstimateRow> {
    let estimates = report.estimates.as_ref()?;
    let widest = estimates.widest(times_apart(report));
    let is_near = |row: &&EstimateRow| match (row.checkpoints_apart, widest) {
        (Some(times), Some(widest)) => times > 1 && times <= widest,
        (Some(times), None) => times > 1,
        (None, widest) => widest.is_none(),
    };
    let tried = estimates.scenarios.iter().filter(|row| row.wal_compression.is_none());
    let step = |best: Option<&'_ EstimateRow>, row: &'_ EstimateRow| {
        let saved = best.map_or(0.0, |best| -best.predicted.change_ratio);
        -row.predicted.change_ratio >= saved + WORTH_A_STEP
    };
    let mut rows: Vec<&EstimateRow> = tried.filter(is_near).collect();
    rows.order_by_key(|row| row.checkpoints_apart.unwrap_or(u32::MAX));
    rows.into_iter().fold(None, |best, row| if step(best, row) { Some(row) } else { best })
}

/// The same with a codec or without.
fn further_apart<'r>(report: &'r Report, codec: Option<&str>) -> Option<&'r EstimateRow> {
    report.estimates.as_ref()?.of(worth_apart(report)?.checkpoints_apart, codec)
}

/// Whether checkpoints further apart would save next to nothing, as was tried; or there is none among them
/// that a setting would move.
pub(super) fn saves_nothing_apart(report: &Report) -> bool {
    let is_tried = |row: &EstimateRow| row.checkpoints_apart != Some(1);
    let Some(estimates) = &report.estimates else { return false };
    let is_known = estimates.moving_redo_points == 0 || estimates.scenarios.iter().any(is_tried);
    is_known && worth_apart(report).is_none()
}

impl Finding {
    /// The same with this advice.
    fn advising(self, lines: impl IntoIterator<Item = Line>) -> Finding {
        let (advice, settings): (Vec<String>, Vec<_>) =
            lines.into_iter().map(|line| (line.text, line.settings)).unzip();
        Finding { advice, advised_settings: settings.concat(), ..self }
    }

    /// The same, where a change would save so many bytes.
    fn saving(self, bytes: u64) -> Finding {
        Finding { estimate: Some(bytes), certainty: Certainty::Computed, ..self }
    }

    /// The same, where so many of them are images.
    fn saving_images(self, bytes: u64, fpi_bytes: u64) -> Finding {
        Finding { estimate_fpi_bytes: Some(fpi_bytes), ..self.saving(bytes) }
    }

    /// The same, where it explains so many bytes, and a change only spreads them.
    fn spreading(self, bytes: u64) -> Finding {
        Finding { explains: Some(bytes), certainty: Certainty::Explained, ..self }
    }

    /// The same, where it explains so many bytes, and a change may save a part of them.
    fn explaining(self, bytes: u64) -> Finding {
        Finding { explains: Some(bytes), certainty: Certainty::Possible, ..self }
    }

    /// The same, where it explains so many bytes, and a change saves no more than these.
    fn at_most(self, bytes: u64) -> Finding {
        Finding { estimate: Some(bytes), ..self.explaining(bytes) }
    }

    /// The same with what its settings come to, if that was estimated.
    pub(super) fn quoting(self, report: &Report, row: Option<&EstimateRow>) -> Finding {
        let Some(row) = row else { return self };
        let mut settings = Map::new();
        if row.checkpoints_apart != Some(1) {
            settings.insert("checkpoints_apart".into(), row.checkpoints_apart.into());
        }
        if let Some(codec) = &row.wal_compression {
            settings.insert("wal_compression".into(), codec.as_str().into());
        }
        Finding { settings, ..self.predicting(report, row.predicted) }
    }

    /// The same with what the change that it advises comes to; for information, if that is nothing.
    fn predicting(self, report: &Report, predicted: Predicted) -> Finding {
        if predicted.best_change_ratio() > -WORTH_A_WORD {
            return Finding { severity: Severity::Info, ..self };
        }
        let saved = report.totals.total_bytes.saturating_sub(predicted.predicted_bytes);
        let certainty =
            if predicted.may_save_nothing() { Certainty::Possible } else { Certainty::Computed };
        Finding { predicted: Some(predicted), certainty, ..self.saving(saved) }
    }
}

/// How the report calls a table.
pub(super) fn label(report: &Report, row: &WholeTableRow) -> String {
    report.tables.as_ref().map_or_else(|| row.label(), |tables| tables.label_of(row))
}

/// How the report calls an index: with its schema, and with its database where tables are told with theirs.
fn index_label(report: &Report, table: &WholeTableRow, index: &IndexPart) -> String {
    let index = IndexOf { table, index };
    let tables = report.tables.as_ref();
    tables.map_or_else(|| index.label(), |tables| tables.labelling().label_of(&index))
}

/// Tables that a finding names.
const TABLES_NAMED: usize = 3;

/// Of the tables that were counted those with most of what `amount` says, as far as each has a
/// tenth of it all: with their amounts and shares.
fn worst_tables(
    report: &Report,
    amount: impl Fn(&WholeTableRow) -> u64,
) -> Vec<(&WholeTableRow, u64, f64)> {
    let rows = report.tables.as_ref().map_or(&[][..], |tables| &tables.rows);
    let all: u64 = rows.iter().map(&amount).sum();
    let mut worst: Vec<_> = rows
        .iter()
        .filter(|row| row.database.is_some())
        .map(|row| (row, amount(row), amount(row) as f64 / all.max(1) as f64))
        .filter(|(_, _, share)| *share >= LEAST_SHARE)
        .collect();
    worst.order_by_key(|(row, amount, _)| (Reverse(*amount), row.label()));
    worst.truncate(TABLES_NAMED);
    worst
}

/// Evidence: names and numbers.
fn evidence<const N: usize>(numbers: [(&str, Value); N]) -> Map<String, Value> {
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

/// What larger distances between checkpoints cost.
pub(super) fn recovery_price() -> String {
    let (slow, fast) = REPLAY_RATES;
    let seconds = |rate: u64| (1u64 << 30).div_ceil(rate);
    format!(
        "crash recovery {} to {} s longer for each GB since the last checkpoint",
        seconds(fast),
        seconds(slow)
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::percent::percent;
    use crate::model::sample;
    use crate::model::threshold::{FPI_RATIO, MIN_UPDATES};

    /// A finding that says nothing.
    pub(crate) fn finding_of(rule: &str) -> Finding {
        Finding { rule: rule.into(), ..plain_finding(&fpi_ratio::RULE, String::new()) }
    }

    /// A report with one record type of so many bytes, none of them images.
    pub(crate) fn with_record(rmgr: &str, record: &str, bytes: u64, total: u64) -> Report {
        let mut report = sample::report(0, total);
        let sums = Sums { record_bytes: bytes, total_bytes: bytes, ..Sums::default() };
        let row = RecordRow { rmgr: rmgr.into(), record: record.into(), info: "0x00".into(), sums };
        report.records = Some(vec![row].into());
        report
    }

    /// Adds a record type to such a report.
    pub(crate) fn add_record(
        report: &mut Report,
        rmgr: &str,
        record: &str,
        count: u64,
        bytes: u64,
    ) {
        let mut more = with_record(rmgr, record, bytes, bytes);
        let more = more.records.iter_mut().flat_map(|records| records.rows.drain(..));
        let more: Vec<RecordRow> =
            more.map(|row| RecordRow { sums: Sums { count, ..row.sums }, ..row }).collect();
        report.records.iter_mut().for_each(|records| records.rows.extend(more.iter().cloned()));
    }

    #[test]
    fn all_other_ends_are_plain_at_least() {
        let mut report = sample::report(0, 100 << 20);
        report.records = Some(Vec::new().into());
        add_record(&mut report, "Transaction", "COMMIT", 100, 100 * PLAIN_END_BYTES + 500);
        add_record(&mut report, "Transaction", "ABORT", 20, 20 * PLAIN_END_BYTES);
        add_record(&mut report, "Transaction", "COMMIT_PREPARED", 50, 5000);
        add_record(&mut report, "CLOG", "ZEROPAGE", 2, 60);
        assert_eq!(xids_of(&report, 0), 0);
        // The 500 bytes may be of these.
        assert_eq!(xids_of(&report, 10), 10 * PLAIN_END_BYTES + 500 + 60);
        assert_eq!(xids_of(&report, 1000), 120 * PLAIN_END_BYTES + 500 + 60);
    }

    /// Thresholds that stand in texts are those of the code.
    #[test]
    fn texts_tell_the_thresholds() {
        let critical = 1.0 - 1.0 / UNTUNED_AMPLIFICATION;
        for words in [percent(FPI_RATIO.chen, 0), percent(critical, 0)] {
            assert!(fpi_ratio::RULE.summary.contains(&words), "{words}");
            assert!(fpi_ratio::RULE.text.contains(&words), "{words}");
        }
        let updates = MIN_UPDATES.to_string();
        let updates = format!("{},{}", &updates[..1], &updates[1..]);
        assert!(hot_ratio::RULE.text.contains(&updates), "{updates}");
    }
}
