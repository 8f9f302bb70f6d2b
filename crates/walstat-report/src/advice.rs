//! Advice: rules that look at a report and may find something worth a change.
//!
//! A rule is one file in `rules/`: what it looks at, its threshold, the volume below which it
//! is silent, its evidence, what to do and at what price, when to ignore it, its source.

mod cures;
mod fewer_checkpoints;
mod order;
mod rules;
mod workloads;

use super::model::finding::{AdvisedSetting, Finding, SettingChange};
use super::model::threshold::Threshold;
use super::model::{CommandName, Report};

/// An advice rule.
#[derive(Debug)]
pub struct Rule {
    /// Its id: also its file's name.
    pub id: &'static str,
    /// What it looks at, in one sentence.
    pub summary: &'static str,
    /// Its file: the doc comment at the top explains it.
    pub text: &'static str,
    /// From where on it speaks.
    pub threshold: Threshold,
    /// Looks at a report.
    pub(crate) check: fn(&Report) -> Option<Finding>,
}

/// All rules: first come those whose findings are told first where both save the same.
pub const RULES: &[Rule] = &[
    rules::consistency_checking::RULE,
    rules::checkpoint_spacing::RULE,
    rules::wal_compression::RULE,
    rules::fpi_ratio::RULE,
    rules::hint_images::RULE,
    rules::burst_after_checkpoint::RULE,
    rules::hot_ratio::RULE,
    rules::random_index::RULE,
    rules::gin_fastupdate::RULE,
    rules::index_cost::RULE,
    rules::sequence_cache::RULE,
    rules::replica_identity_full::RULE,
    rules::logical_overhead::RULE,
    rules::toast_rewrites::RULE,
    rules::ddl_churn::RULE,
    rules::vacuum_freeze_share::RULE,
    rules::lock_traffic::RULE,
    rules::large_transactions::RULE,
    rules::backup_window::RULE,
    rules::write_amplification::RULE,
    rules::recovery_distance::RULE,
    rules::standby_lag::RULE,
    rules::commit_pressure::RULE,
    rules::switch_waste::RULE,
];

/// Looks at a report that has all that was counted; the report and the check have advice.
pub(crate) fn advise(report: &mut Report) {
    let advises = [CommandName::Report, CommandName::Check].contains(&report.command);
    report.bytes_a_day = advises.then(|| order::bytes_a_day(report)).flatten();
    let (findings, little) = if advises { findings(report) } else { Default::default() };
    report.findings = advises.then_some(findings);
    report.notes.extend(note(report).filter(|_| advises));
    report.notes.extend(order::note(&little));
    report.advice_together = order::together(report);
}

/// Where the rules speak, if that is not the default: other findings are no other WAL.
fn note(report: &Report) -> Option<String> {
    let thresholds = &report.thresholds;
    let own = |rule: &Rule| {
        if thresholds.is_off(rule.id) {
            Some(format!("{} is off", rule.id))
        } else {
            let number = thresholds.set.get(rule.id)?;
            Some(format!("{} speaks {}", rule.id, rule.threshold.told(*number)))
        }
    };
    let preset = format!("advice rules speak by the preset {}", thresholds.ruleset);
    let all = std::iter::once(preset).chain(RULES.iter().filter_map(own));
    (!thresholds.are_default()).then(|| all.collect::<Vec<_>>().join("; "))
}

/// What all rules find in `report`, in the order in which it is told; and the rules that are silent, since
/// what they would save in a day is next to nothing.
fn findings(report: &Report) -> (Vec<Finding>, Vec<&'static str>) {
    let rules = RULES.iter().filter(|rule| !report.thresholds.is_off(rule.id));
    let found = rules.filter_map(|rule| (rule.check)(report));
    let found = found.map(|finding| fewer_checkpoints::counted(report, finding));
    let found = found.map(|finding| room_first(report, finding)).collect();
    order::ordered(report, found)
}

/// A larger `max_wal_size` fills the disk that what is kept in `pg_wal` may have filled already.
fn room_first(report: &Report, mut finding: Finding) -> Finding {
    let is_raised = |setting: &AdvisedSetting| {
        setting.name == rules::MAX_WAL_SIZE && setting.change == SettingChange::Raise
    };
    let is_kept = report.pg_wal.as_ref().is_some_and(|pg_wal| pg_wal.kept_segments > 0);
    if is_kept && finding.advised_settings.iter().any(is_raised) {
        finding.side_effects.insert(
            0,
            "segments are kept in pg_wal beyond what is needed after a crash: make room on its disk first"
                .into(),
        );
    }
    finding
}

/// All rules as a paper: `docs/advice.md`.
pub fn paper() -> String {
    let mut text = String::from(
        "# Advice\n\nThe rules behind WHAT TO DO, from their own files (`walstat rules ID` prints one). \
         Shares of little WAL mean little, so\nmost rules begin at 16 MB. Where settings are named, what a \
         change saves is estimated from a sample of\nthe images; elsewhere it follows from the rule, as \
         stated.\n",
    );
    for rule in RULES {
        text.push_str(&format!(
            "\n## {}\n\n*{}*\n\n{}\n\n{}\n",
            rule.id,
            rule.summary,
            rule.explanation(),
            rule.threshold.presets()
        ));
    }
    text
}

impl Rule {
    /// The threshold in force.
    fn limit(&self, report: &Report) -> f64 {
        report.thresholds.of(self.id, &self.threshold)
    }

    /// The same of what is counted in whole numbers.
    fn whole_limit(&self, report: &Report) -> u64 {
        self.limit(report) as u64
    }

    /// When a finding of it does not matter, to be read after "ignore it": the text is told in its file.
    fn ignore_when(&self) -> String {
        let text = self.explanation();
        let paragraphs = text.split("\n\n");
        let when = paragraphs.filter_map(|text| text.strip_prefix("When to ignore it: ")).next();
        when.map(|text| text.trim_end_matches('.').replace('\n', " ")).unwrap_or_default()
    }

    /// The doc comment of its file.
    pub fn explanation(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimate::{EstimateRow, Estimates, Predicted};
    use crate::model::large::{LargeWork, LargeWorkRow};
    use crate::model::table::RecordRow;
    use crate::model::threshold::{Ruleset, Speaks, Unit};
    use crate::model::when::{Overview, Spacing};
    use crate::model::who::{IndexPart, Part, WholeTableRow};
    use crate::model::{Numbers, Sums, sample};

    /// So much that any rule speaks of it.
    const TOTAL: u64 = 10_000 << 20;

    /// A share of it, in bytes.
    fn bytes(share: f64) -> u64 {
        ((share * 10_000.0).round() as u64) << 20
    }

    fn report() -> Report {
        sample::report(0, TOTAL)
    }

    fn with_when(change: impl FnOnce(&mut Overview)) -> Report {
        let mut overview = Overview::default();
        change(&mut overview);
        Report { when: Some(overview), ..report() }
    }

    fn with_record(rmgr: &str, record: &str, sums: Sums) -> Report {
        let row = RecordRow { rmgr: rmgr.into(), record: record.into(), info: "0x00".into(), sums };
        Report { records: Some(vec![row].into()), ..report() }
    }

    fn with_table(row: WholeTableRow) -> Report {
        Report { tables: Some(vec![row].into()), ..report() }
    }

    fn sums(bytes: u64) -> Sums {
        Sums { record_bytes: bytes, total_bytes: bytes, ..Sums::default() }
    }

    fn numbers(bytes: u64) -> Numbers {
        Numbers { total_bytes: bytes, fpi_bytes: bytes, ..Numbers::default() }
    }

    fn part(bytes: u64) -> Part {
        Part { numbers: numbers(bytes), ..Part::default() }
    }

    fn index(bytes: u64) -> IndexPart {
        let (leaf_inserts, rightmost_ratio) = (Some(1000), Some(0.1));
        IndexPart { part: part(bytes), leaf_inserts, rightmost_ratio, ..IndexPart::default() }
    }

    fn with_codec(saved: f64) -> Report {
        let predicted =
            Predicted { predicted_bytes: 0, change_ratio: -saved, low_bytes: 0, high_bytes: 0 };
        let row = EstimateRow {
            checkpoints_apart: Some(1),
            wal_compression: Some("lz4".into()),
            predicted,
        };
        let estimates = Estimates { scenarios: vec![row], ..Estimates::default() };
        Report { estimates: Some(estimates), ..report() }
    }

    /// A report on which a rule measures just this number.
    fn measured(id: &str, number: f64) -> Report {
        let mut report = report();
        let spacing = |median| Spacing { count: 10, median, ..Spacing::default() };
        match id {
            "consistency-checking" => {
                (report.totals.fpi_count, report.totals.fpi_check_count) =
                    (1000, bytes(number) / 10485760);
            }
            "checkpoint-spacing" => {
                return with_when(|when| when.spacing_seconds = Some(spacing(number as u64)));
            }
            "wal-compression" => return with_codec(number),
            "fpi-ratio" => report.ratios.fpi_ratio = Some(number),
            "hint-images" => report.ratios.hint_fpi_ratio = Some(number),
            "burst-after-checkpoint" => {
                let mut report = with_when(|when| {
                    (when.fpi_first_quarter_ratio, when.checkpoints) = (Some(number), 5);
                });
                report.ratios.fpi_ratio = Some(0.4);
                return report;
            }
            "hot-ratio" => (report.ratios.hot_ratio, report.ratios.updates) = (Some(number), 5000),
            "random-index" => {
                let indexes = vec![index(bytes(number))];
                return with_table(WholeTableRow { indexes, ..WholeTableRow::default() });
            }
            "gin-fastupdate" => {
                let sums = Sums { count: 5000, ..sums(bytes(number)) };
                return with_record("Gin", "INSERT", sums);
            }
            "index-cost" => {
                let heap = Some(part(bytes(0.2)));
                // Of the order of their keys nothing is known.
                let part = part(bytes(0.1 * number));
                let index = IndexPart { part, ..IndexPart::default() };
                let indexes = vec![index.clone(), index];
                return with_table(WholeTableRow { heap, indexes, ..WholeTableRow::default() });
            }
            "sequence-cache" => {
                let sums = Sums { count: 5000, ..sums(bytes(number)) };
                return with_record("Sequence", "LOG", sums);
            }
            "replica-identity-full" => {
                let sums = Sums { main_data_bytes: bytes(number), ..Sums::default() };
                return with_record("Heap", "UPDATE", sums);
            }
            "logical-overhead" => return with_record("Heap2", "NEW_CID", sums(bytes(number))),
            "toast-rewrites" => {
                return with_table(WholeTableRow {
                    toast: Some(part(bytes(number))),
                    updates: 5000,
                    toast_inserts: 5000,
                    toast_deletes: 5000,
                    ..WholeTableRow::default()
                });
            }
            "ddl-churn" => {
                let (schema, numbers) = (Some("pg_catalog".into()), numbers(bytes(number)));
                return with_table(WholeTableRow { schema, numbers, ..WholeTableRow::default() });
            }
            "vacuum-freeze-share" => {
                let vacuum_bytes = bytes(number);
                return with_table(WholeTableRow { vacuum_bytes, ..WholeTableRow::default() });
            }
            "lock-traffic" => return with_record("Heap", "LOCK", sums(bytes(number))),
            "large-transactions" => {
                report.large_work = Some(vec![LargeWorkRow {
                    work: LargeWork::Mixed,
                    table: None,
                    is_aborted: false,
                    transactions: 1,
                    xid: Some("7".into()),
                    total_bytes: bytes(number),
                    index_bytes: 0,
                    deletes: 0,
                }]);
            }
            "backup-window" => {
                return with_when(|when| {
                    (when.backup_fpi_bytes, when.backups) = (bytes(number), 1)
                });
            }
            "write-amplification" => report.ratios.write_amplification = Some(number),
            "recovery-distance" => {
                let bytes = number as u64 * (50 << 20);
                return with_when(|when| when.worst_recovery_bytes = Some(bytes));
            }
            "standby-lag" => return with_when(|when| when.slow_replay_lag_seconds = Some(number)),
            "commit-pressure" => {
                let mut report = with_record("Transaction", "COMMIT", sums(bytes(0.1)));
                let peak_syncs = Some(number as u64);
                report.when = Some(Overview { peak_syncs, ..Overview::default() });
                report.ratios.commits = 50_000;
                return report;
            }
            "switch-waste" => {
                (report.books.switch_bytes, report.books.input_bytes) = (bytes(number), TOTAL);
                report.input.segments = 100;
            }
            _ => panic!("{id}: say what it measures"),
        }
        report
    }

    /// What a rule finds in a report.
    fn found(id: &str, mut report: Report) -> Option<Finding> {
        advise(&mut report);
        report.findings.into_iter().flatten().find(|finding| finding.rule == id)
    }

    #[test]
    fn where_segments_are_kept_the_disk_needs_room_first() {
        let price = |rule: &str, pg_wal| {
            let mut report = measured(rule, if rule == "checkpoint-spacing" { 30.0 } else { 0.9 });
            report.pg_wal = pg_wal;
            found(rule, report).expect("a finding").side_effects.concat()
        };
        let of =
            |kept_segments| Some(crate::model::follow::PgWal { kept_segments, ..<_>::default() });
        let kept = || of(3);
        assert!(price("checkpoint-spacing", kept()).contains("make room on its disk first"));
        assert!(!price("checkpoint-spacing", of(0)).contains("room"));
        assert!(!price("checkpoint-spacing", None).contains("room"));
        assert!(!price("wal-compression", kept()).contains("room"));
        let mut lower = measured("recovery-distance", 5000.0);
        lower.pg_wal = kept();
        let lower = found("recovery-distance", lower).expect("a finding");
        assert!(!lower.side_effects.concat().contains("room"), "{lower:?}");
    }

    /// The nearest number at which a rule speaks, and the nearest at which it is silent.
    fn edges(threshold: &Threshold, number: f64) -> (f64, f64) {
        let step = match threshold.unit {
            Unit::Ratio => 0.005,
            Unit::Times => 0.1,
            Unit::Seconds | Unit::PerSecond => 1.0,
        };
        match threshold.speaks {
            Speaks::From => (number, number - step),
            Speaks::Above => (number + step, number),
            Speaks::Below => (number - step, number),
        }
    }

    #[test]
    fn strict_speaks_earlier_and_relaxed_later() {
        for rule in RULES {
            let Threshold { speaks, chen, strict, relaxed, .. } = rule.threshold;
            let is_ordered = match speaks {
                Speaks::From | Speaks::Above => strict < chen && chen < relaxed,
                Speaks::Below => strict > chen && chen > relaxed,
            };
            assert!(is_ordered && strict > 0.0 && relaxed > 0.0, "{}", rule.id);
            for (earlier, later) in
                [(Ruleset::Strict, Ruleset::Chen), (Ruleset::Chen, Ruleset::Relaxed)]
            {
                let (spoken, _) = edges(&rule.threshold, rule.threshold.of(earlier));
                let speaks = |ruleset| {
                    let mut report = measured(rule.id, spoken);
                    report.thresholds.ruleset = ruleset;
                    found(rule.id, report).is_some()
                };
                assert!(speaks(earlier) && !speaks(later), "{} {earlier} {later}", rule.id);
            }
        }
    }

    #[test]
    fn every_rule_speaks_from_the_threshold_in_force_on_and_names_it() {
        for rule in RULES {
            let more = if rule.threshold.chen < 1.0 { 0.02 } else { 10.0 };
            let own = ((rule.threshold.relaxed + more) * 100.0).round() / 100.0;
            let set = Ruleset::ALL.iter().map(|ruleset| (*ruleset, None));
            for (ruleset, set) in set.chain([(Ruleset::Strict, Some(own))]) {
                let number = set.unwrap_or(rule.threshold.of(ruleset));
                let find = |measured_number| {
                    let mut report = measured(rule.id, measured_number);
                    report.thresholds.ruleset = ruleset;
                    report.thresholds.set.extend(set.map(|number| (rule.id.to_owned(), number)));
                    found(rule.id, report)
                };
                let (spoken, silent) = edges(&rule.threshold, number);
                let finding =
                    find(spoken).unwrap_or_else(|| panic!("{} {ruleset} {spoken}", rule.id));
                assert!(find(silent).is_none(), "{} {ruleset} {silent}", rule.id);
                let told =
                    ["threshold", "reachable"].iter().find_map(|key| finding.evidence.get(*key));
                assert_eq!(
                    told.and_then(|told| told.as_f64()),
                    Some(number),
                    "{} {ruleset}",
                    rule.id
                );
            }
        }
    }

    #[test]
    fn when_to_ignore_a_finding_is_told_by_its_rule() {
        for rule in RULES {
            let (spoken, _) = edges(&rule.threshold, rule.threshold.chen);
            let finding = found(rule.id, measured(rule.id, spoken)).expect("a finding");
            let first = finding.ignore_when.split(' ').next().unwrap_or_default();
            assert!(["where", "while", "after"].contains(&first), "{}: {first}", rule.id);
            assert!(!finding.ignore_when.contains(['\n', '.']), "{}", finding.ignore_when);
        }
    }

    #[test]
    fn little_wal_is_said_whatever_else_is_found() {
        let of = |total| {
            let mut report = sample::report(0, total);
            advise(&mut report);
            report.silent_rules().is_some_and(|text| text.contains("16 MB"))
        };
        assert!(of((16 << 20) - 1) && !of(16 << 20));
    }

    #[test]
    fn that_tables_are_not_known_is_said() {
        let of = |kind: Option<&str>, share: f64| {
            let mut report = report();
            let numbers = Numbers { total_bytes: bytes(share), ..Numbers::default() };
            let heap = Some(Part { numbers, ..Part::default() });
            let kind = kind.map(str::to_owned);
            report.tables =
                Some(vec![WholeTableRow { kind, heap, numbers, ..Default::default() }].into());
            advise(&mut report);
            report.silent_rules().is_some_and(|text| text.contains("--data-directory"))
        };
        assert!(of(Some("i"), 0.2) && of(None, 0.9) && of(Some("t"), 0.5));
        assert!(!of(Some("i"), 0.19) && !of(Some("r"), 0.9));
    }

    /// What was found of an index of one tenant swallowed what was found of another tenant's, by their names.
    #[test]
    fn indexes_of_one_name_in_two_schemas_are_two() {
        let told = |schemas: [&str; 2], databases: [u32; 2]| {
            let table = |at: usize, is_random: bool| {
                let index = |name: &str| IndexPart {
                    schema: Some(schemas[at].into()),
                    name: name.into(),
                    leaf_inserts: Some(1000).filter(|_| is_random),
                    ..index(bytes(0.2))
                };
                let indexes = vec![index("by_day"), index("by_name")];
                let heap = Some(part(bytes(if is_random { 0.3 } else { 0.0 })));
                let database = Some(databases[at]);
                WholeTableRow { database, indexes, heap, ..WholeTableRow::default() }
            };
            let tables = Some(vec![table(0, true), table(1, false)].into());
            let report = Report { tables, ..report() };
            assert!(found("random-index", report.clone()).is_some());
            found("index-cost", report).is_some()
        };
        assert!(told(["a", "b"], [5, 5]) && told(["a", "a"], [5, 6]));
        assert!(!told(["a", "a"], [5, 5]));
    }

    /// A report on which rules quote these settings.
    fn quoting(settings: &[serde_json::Value]) -> Report {
        let mut report = with_codec(0.5);
        let rows = report.estimates.iter_mut().flat_map(|tried| &mut tried.scenarios);
        rows.for_each(|row| row.checkpoints_apart = Some(4));
        let finding = |settings: &serde_json::Value| Finding {
            settings: settings.as_object().cloned().unwrap_or_default(),
            ..rules::tests::finding_of("fpi-ratio")
        };
        Report { findings: Some(settings.iter().map(finding).collect()), ..report }
    }

    #[test]
    fn all_together_is_told_where_no_finding_says_it() {
        let apart = serde_json::json!({"checkpoints_apart": 4});
        let codec = serde_json::json!({"wal_compression": "lz4"});
        let both = serde_json::json!({"checkpoints_apart": 4, "wal_compression": "lz4"});
        assert!(order::together(&quoting(&[apart.clone(), codec.clone()])).is_some());
        assert!(order::together(&quoting(&[apart.clone(), codec.clone(), both])).is_none());
        // The figure of one of them alone.
        let mut report = quoting(&[apart, codec]);
        let row = report.estimates.as_ref().map(|tried| tried.scenarios[0].predicted);
        report.findings.iter_mut().for_each(|findings| findings[0].predicted = row);
        assert!(order::together(&report).is_none());
    }

    #[test]
    fn a_rule_that_is_off_says_nothing_and_that_is_noted() {
        for rule in RULES {
            let (spoken, _) = edges(&rule.threshold, rule.threshold.chen);
            let mut report = measured(rule.id, spoken);
            assert!(found(rule.id, report.clone()).is_some(), "{}", rule.id);
            report.thresholds.off.insert(rule.id.to_owned());
            assert_eq!(found(rule.id, report.clone()), None);
            advise(&mut report);
            assert!(
                report.notes.concat().contains(&format!("{} is off", rule.id)),
                "{:?}",
                report.notes
            );
        }
    }

    #[test]
    fn what_is_not_the_default_is_noted_and_stands_in_the_json() {
        let mut report = measured("lock-traffic", 0.3);
        advise(&mut report);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
        assert!(serde_json::to_value(&report).expect("JSON").get("thresholds").is_none());
        report.thresholds.ruleset = Ruleset::Strict;
        report.thresholds.set.insert("lock-traffic".into(), 0.07);
        advise(&mut report);
        let note = "advice rules speak by the preset strict; lock-traffic speaks from 7 % on";
        assert_eq!(report.notes, [note]);
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(
            json["thresholds"],
            serde_json::json!({"ruleset": "strict", "set": {"lock-traffic": 0.07}})
        );
        let back: Report = serde_json::from_value(json).expect("a report");
        assert_eq!(back.thresholds, report.thresholds);
    }

    /// Where the text of a rule says from which share on it speaks, that is the default. One that speaks
    /// above a share may be critical from another one on.
    #[test]
    fn texts_tell_the_default() {
        let mut said = 0;
        for rule in RULES.iter().filter(|rule| matches!(rule.threshold.speaks, Speaks::From)) {
            let told = rule.threshold.told(rule.threshold.chen);
            for begun in rule.explanation().split("From ").skip(1) {
                let mut words = begun.split_whitespace();
                let (Some(number), Some("%")) = (words.next(), words.next()) else { continue };
                assert!(told.contains(&format!(" {number} %")), "{}: {told}", rule.id);
                said += 1;
            }
        }
        assert!(said > 5, "{said}");
    }

    /// What a rule's summary says of its threshold is the default.
    #[test]
    fn summaries_tell_the_default() {
        for rule in RULES {
            let told = rule.threshold.told(rule.threshold.chen);
            let number =
                told.split(' ').find(|word| word.parse::<f64>().is_ok()).unwrap_or_default();
            let number = if rule.id == "index-cost" { "twice" } else { number };
            assert!(rule.summary.contains(number), "{}: {told}", rule.id);
        }
    }
}
