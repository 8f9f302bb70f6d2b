//! The order in which findings are told: what saves most comes first, weighed by how certain that is and
//! what it costs; then what explains bytes without a figure of what is saved of them; then what says how the
//! server does.

use super::RULES;
use crate::amount::DAY;
use crate::model::Report;
use crate::model::estimate::WORTH_A_WORD;
use crate::model::finding::{AdvisedSetting, Certainty, Finding, Together};
use crate::model::size::whole_megabytes;
use serde_json::{Map, Value};
use walstat_format::ordered::OrderBy;

/// Weight of a finding that saves so much at most.
const POSSIBLE: f64 = 0.9;
/// Weight of a finding whose prediction includes saving nothing.
const UNSURE: f64 = 0.5;
/// Weight of a finding whose change has side effects.
const WITH_PRICE: f64 = 0.8;
/// A shorter time, in seconds, says nothing of a day.
const TIME_LEAST: f64 = 600.0;
/// A finding that saves less in a day is silent: some 1.2 kB a second.
const SILENT_A_DAY: u64 = 100 << 20;
/// One that saves less in a day says that it is little.
const LITTLE_A_DAY: u64 = 1 << 30;

/// The findings in the order in which they are told; and the rules of those that save next to nothing.
pub(super) fn ordered(report: &Report, found: Vec<Finding>) -> (Vec<Finding>, Vec<&'static str>) {
    let mut findings = without_same_indexes(say_once(found));
    if let Some(day) = report.bytes_a_day {
        let days = day as f64 / report.totals.total_bytes.max(1) as f64;
        findings.iter_mut().for_each(|finding| in_a_day(finding, days));
    }
    let is_little = |finding: &Finding| finding.saved_bytes_a_day.is_some_and(|b| b < SILENT_A_DAY);
    let (little, mut told): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(is_little);
    told.order_by(|a, b| {
        let by_figure = has_figure(report, b).cmp(&has_figure(report, a));
        let by_weight = weight(report, b).total_cmp(&weight(report, a));
        by_figure.then(by_weight).then(b.severity.cmp(&a.severity))
    });
    let rules = RULES.iter().filter(|rule| little.iter().any(|finding| finding.rule == rule.id));
    (told, rules.map(|rule| rule.id).collect())
}

/// How much WAL a day has that is like the time of the report, if that is long enough.
pub(super) fn bytes_a_day(report: &Report) -> Option<u64> {
    let when = report.when.as_ref()?;
    let seconds = (when.growth_seconds * when.growth.len() as u64) as f64;
    let rate = when.running_rate?;
    // A server that was down says nothing of a day either.
    let running = seconds * when.mean_rate? / rate;
    (running >= TIME_LEAST).then_some((rate * DAY) as u64)
}

/// What is to be known of rules that are silent.
pub(super) fn note(rules: &[&str]) -> Option<String> {
    (!rules.is_empty()).then(|| {
        format!(
            "not shown, because they would save less than {} a day: {}",
            whole_megabytes(SILENT_A_DAY),
            rules.join(", ")
        )
    })
}

/// Whether it is told how much a change saves, and that is worth a word. What only explains bytes comes after
/// that, however many they are: nobody can tell what of them goes.
fn has_figure(report: &Report, finding: &Finding) -> bool {
    let saves = matches!(finding.certainty, Certainty::Computed | Certainty::Possible);
    saves && share(report, finding.estimate) >= WORTH_A_WORD
}

/// The share of so many bytes in the WAL: of records, and of what switches left empty.
fn share(report: &Report, bytes: Option<u64>) -> f64 {
    let all = report.totals.total_bytes + report.books.switch_bytes;
    bytes.unwrap_or(0) as f64 / all.max(1) as f64
}

/// The share of the WAL that a finding counts for.
fn weight(report: &Report, finding: &Finding) -> f64 {
    let share = |bytes: Option<u64>| share(report, bytes);
    let price = if finding.side_effects.is_empty() { 1.0 } else { WITH_PRICE };
    match finding.certainty {
        Certainty::Computed => {
            let middle = share(finding.estimate);
            let least = finding.predicted.and_then(|predicted| predicted.saved_at_least());
            price * least.map_or(middle, |least| middle.midpoint(share(Some(least))))
        }
        Certainty::Possible if finding.predicted.is_some() => {
            UNSURE * price * share(finding.estimate)
        }
        Certainty::Possible if finding.estimate.is_some() => {
            POSSIBLE * price * share(finding.estimate)
        }
        Certainty::Possible | Certainty::Explained => share(finding.explains),
        Certainty::Nothing => 0.0,
    }
}

/// What it saves at most.
fn most(finding: &Finding) -> Option<u64> {
    match finding.certainty {
        Certainty::Computed => finding.estimate,
        Certainty::Possible => finding.estimate.or(finding.explains),
        Certainty::Explained | Certainty::Nothing => None,
    }
}

/// Says what a finding saves in a day, where the WAL of a day is so many times that of the report.
fn in_a_day(finding: &mut Finding, days: f64) {
    let saved = most(finding).map(|bytes| (bytes as f64 * days) as u64);
    finding.saved_bytes_a_day = saved;
    if let Some(bytes) = saved.filter(|bytes| *bytes < LITTLE_A_DAY) {
        finding
            .advice
            .push(format!("saves {} a day at most, which is little", whole_megabytes(bytes)));
    }
}

/// Settings that are all quoted by findings before it are not quoted again: what is saved by them would
/// stand there twice.
fn say_once(found: Vec<Finding>) -> Vec<Finding> {
    let mut said: Vec<Finding> = Vec::new();
    for finding in found.into_iter() {
        let others: Vec<&Finding> = said
            .iter()
            .filter(|other| other.settings.iter().any(|(k, v)| finding.settings.get(k) == Some(v)))
            .collect();
        let is_said = |(name, value): (&String, &Value)| {
            others.iter().any(|other| other.settings.get(name) == Some(value))
        };
        if finding.settings.is_empty() || !finding.settings.iter().all(is_said) {
            said.push(finding);
            continue;
        }
        let rules: Vec<String> = others.iter().map(|other| other.rule.clone()).collect();
        said.push(said_before(finding, &rules.join(" and ")));
    }
    said
}

/// What random-index has said of an index, index-cost does not say again: it is left out if it names no other
/// index, and its advice goes to random-index.
fn without_same_indexes(mut found: Vec<Finding>) -> Vec<Finding> {
    let names = |rule: &str, key: &str| {
        let finding = found.iter().find(|finding| finding.rule == rule);
        finding.and_then(|finding| finding.evidence.get(key)?.as_array().cloned())
    };
    let (random, dear) = (names("random-index", "indexes"), names("index-cost", "index_names"));
    let (Some(random), Some(dear)) = (random, dear) else { return found };
    if !dear.iter().all(|name| random.contains(name)) {
        return found;
    }
    let dear = found.extract_if(.., |finding| finding.rule == "index-cost");
    let drop: Vec<String> = dear.filter_map(|finding| finding.advice.into_iter().next()).collect();
    for random in found.iter_mut().filter(|finding| finding.rule == "random-index") {
        random.advice.extend(drop.iter().cloned());
    }
    found
}

/// A finding whose settings stand with other rules.
fn said_before(finding: Finding, rules: &str) -> Finding {
    let mut advice = finding.advice;
    advice.push(format!("what that saves is counted under {rules}"));
    Finding {
        advice,
        estimate: None,
        certainty: Certainty::Nothing,
        settings: Map::new(),
        predicted: None,
        ..finding
    }
}

/// What all that is advised comes to, which is not the sum of what each advice saves.
pub(super) fn together(report: &Report) -> Option<Together> {
    let findings = report.findings.as_ref()?;
    let quoting = findings.iter().filter(|finding| !finding.settings.is_empty());
    let setting = |name: &str| quoting.clone().find_map(|finding| finding.settings.get(name));
    let (apart, codec) = (setting("checkpoints_apart")?, setting("wal_compression")?);
    let apart = apart.as_u64().map(|times| u32::try_from(times).unwrap_or(u32::MAX));
    let row = report.estimates.as_ref()?.of(apart, codec.as_str())?;
    let settings: Map<String, Value> =
        quoting.clone().flat_map(|finding| finding.settings.clone()).collect();
    // One of them says it already.
    if quoting.clone().any(|finding| finding.settings == settings) {
        return None;
    }
    // Or one of the two settings adds nothing: the combined figure would repeat that of the other one.
    let is_said = |finding: &Finding| {
        finding
            .predicted
            .is_some_and(|alone| alone.predicted_bytes <= row.predicted.predicted_bytes)
    };
    if quoting.clone().any(is_said) {
        return None;
    }
    let rules = quoting.clone().map(|finding| finding.rule.clone()).collect();
    let changes = quoting.clone().map(change).collect();
    Some(Together { rules, changes, settings, predicted: row.predicted })
}

/// What a finding says to set, `max_wal_size = 1GB`; its rule, if it knows no value.
fn change(finding: &Finding) -> String {
    let known = finding.advised_settings.iter().filter(|setting| setting.value.is_some());
    let told: Vec<String> = known.map(AdvisedSetting::to_string).collect();
    if told.is_empty() { finding.rule.clone() } else { told.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::finding_of;
    use super::*;
    use crate::model::estimate::{EstimateRow, Predicted};
    use crate::model::finding::{SettingChange, Severity};
    use crate::model::sample;
    use crate::model::when::Overview;

    const TOTAL: u64 = 100 << 30;

    fn told(found: Vec<Finding>) -> Vec<String> {
        let (told, _) = ordered(&sample::report(0, TOTAL), found);
        told.into_iter().map(|finding| finding.rule).collect()
    }

    fn saving(rule: &str, percent: u64) -> Finding {
        Finding {
            estimate: Some(percent << 30),
            certainty: Certainty::Computed,
            ..finding_of(rule)
        }
    }

    fn explaining(rule: &str, percent: u64) -> Finding {
        Finding {
            explains: Some(percent << 30),
            certainty: Certainty::Possible,
            ..finding_of(rule)
        }
    }

    #[test]
    fn what_saves_most_comes_first_whatever_its_severity() {
        let nothing = Finding { severity: Severity::Critical, ..saving("checkpoint-spacing", 0) };
        assert_eq!(told(vec![nothing, saving("random-index", 79)])[0], "random-index");
    }

    #[test]
    fn what_may_save_nothing_counts_for_half() {
        let predicted = |saved: f64, high_bytes| Predicted {
            predicted_bytes: ((1.0 - saved) * TOTAL as f64) as u64,
            change_ratio: -saved,
            low_bytes: ((1.0 - saved) * TOTAL as f64) as u64,
            high_bytes,
        };
        let told = |high_bytes| {
            let mut report = sample::report(0, TOTAL);
            let row = EstimateRow {
                checkpoints_apart: Some(4),
                wal_compression: None,
                predicted: predicted(0.6, high_bytes),
            };
            report.bytes_a_day = None;
            let unsure = finding_of("checkpoint-spacing").quoting(&report, Some(&row));
            let (told, _) = ordered(&report, vec![unsure, saving("wal-compression", 50)]);
            told[0].rule.clone()
        };
        assert_eq!(
            (told(TOTAL / 2), told(TOTAL)),
            ("checkpoint-spacing".into(), "wal-compression".into())
        );
    }

    #[test]
    fn what_is_possible_and_what_has_a_price_count_for_less() {
        let computed = saving("wal-compression", 60);
        let without_figure = explaining("backup-window", 95);
        assert_eq!(told(vec![without_figure.clone(), computed.clone()])[0], "wal-compression");
        assert_eq!(
            told(vec![without_figure.clone(), saving("lock-traffic", 1)])[0],
            "lock-traffic"
        );
        assert_eq!(told(vec![saving("lock-traffic", 0), without_figure])[0], "backup-window");
        let most = Finding { estimate: Some(70 << 30), ..explaining("hot-ratio", 70) };
        assert_eq!(told(vec![computed, most])[0], "hot-ratio");
        let dear = Finding { side_effects: vec!["time".into()], ..saving("wal-compression", 60) };
        assert_eq!(told(vec![dear, saving("lock-traffic", 55)])[0], "lock-traffic");
        let known = Finding { severity: Severity::Warning, ..finding_of("standby-lag") };
        let rules = told(vec![finding_of("recovery-distance"), known, saving("lock-traffic", 1)]);
        assert_eq!(rules, ["lock-traffic", "standby-lag", "recovery-distance"]);
    }

    #[test]
    fn settings_are_quoted_by_one_rule() {
        let quoting = |rule: &str, settings: serde_json::Value| Finding {
            settings: settings.as_object().cloned().unwrap_or_default(),
            ..saving(rule, 50)
        };
        let (told, _) = ordered(
            &sample::report(0, TOTAL),
            vec![
                quoting("checkpoint-spacing", serde_json::json!({"checkpoints_apart": 4})),
                quoting("wal-compression", serde_json::json!({"wal_compression": "lz4"})),
                quoting("fpi-ratio", serde_json::json!({"checkpoints_apart": 4})),
                quoting(
                    "write-amplification",
                    serde_json::json!({"checkpoints_apart": 4, "wal_compression": "lz4"}),
                ),
                quoting("other", serde_json::json!({"checkpoints_apart": 8})),
            ],
        );
        let quoted = told.iter().filter(|finding| finding.estimate.is_some());
        let rules: Vec<&str> = quoted.map(|finding| finding.rule.as_str()).collect();
        assert_eq!(rules, ["checkpoint-spacing", "wal-compression", "other"]);
        let both = told.iter().find(|finding| finding.rule == "write-amplification");
        let advice = both.map(|finding| finding.advice.concat()).unwrap_or_default();
        assert!(
            advice.ends_with("counted under checkpoint-spacing and wal-compression"),
            "{advice}"
        );
    }

    #[test]
    fn what_is_to_be_set_is_said_of_findings_that_are_not_shown() {
        let told = |advised_settings| {
            // What the sentence is like does not matter.
            let advice = vec!["take fillfactor = 90: more".into()];
            change(&Finding { advice, advised_settings, ..finding_of("checkpoint-spacing") })
        };
        let size = AdvisedSetting::to(SettingChange::Raise, "max_wal_size", "384MB");
        let time = AdvisedSetting::to(SettingChange::Raise, "checkpoint_timeout", "30min");
        assert_eq!(told(vec![size.clone()]), "max_wal_size = 384MB");
        assert_eq!(told(vec![time, size]), "checkpoint_timeout = 30min and max_wal_size = 384MB");
        let unknown = AdvisedSetting::somewhat(SettingChange::Raise, "max_wal_size");
        assert_eq!(told(vec![unknown]), "checkpoint-spacing");
        assert_eq!(told(Vec::new()), "checkpoint-spacing");
    }

    #[test]
    fn the_same_indexes_are_told_once() {
        let of = |rule: &str, key: &str, names: &[&str]| {
            let evidence = [(key.to_owned(), serde_json::json!(names))].into_iter().collect();
            Finding { evidence, advice: vec![format!("{rule} says so")], ..saving(rule, 50) }
        };
        let told = |dear: &[&str]| {
            let random = of("random-index", "indexes", &["a", "b"]);
            let found = vec![random, of("index-cost", "index_names", dear)];
            ordered(&sample::report(0, TOTAL), found).0
        };
        let same = told(&["b", "a"]);
        assert_eq!((same.len(), same[0].rule.as_str()), (1, "random-index"));
        assert_eq!(same[0].advice, ["random-index says so", "index-cost says so"]);
        assert_eq!(told(&["a", "b", "c"]).len(), 2);
    }

    /// So many minutes at a rate.
    fn when(rate: f64, minutes: usize) -> Overview {
        let growth = vec![0; minutes];
        let (mean_rate, running_rate) = (Some(rate), Some(rate));
        Overview { mean_rate, running_rate, growth_seconds: 60, growth, ..Overview::default() }
    }

    #[test]
    fn a_short_time_says_nothing_of_a_day() {
        let of = |minutes| {
            let when = Some(when(1000.0, minutes));
            bytes_a_day(&crate::model::Report { when, ..sample::report(0, TOTAL) })
        };
        assert_eq!((of(9), of(10)), (None, Some(86_400_000)));
    }

    #[test]
    fn the_time_that_a_server_was_down_says_nothing_of_a_day() {
        let of = |minutes| {
            let running_rate = Some(4000.0);
            let when = Some(Overview { running_rate, ..when(1000.0, minutes) });
            bytes_a_day(&crate::model::Report { when, ..sample::report(0, TOTAL) })
        };
        // It ran for a quarter of the time.
        assert_eq!((of(39), of(40)), (None, Some(4 * 86_400_000)));
    }

    #[test]
    fn what_saves_little_in_a_day_says_so_or_is_silent() {
        let found = |rate: f64| {
            let mut report = sample::report(0, TOTAL);
            report.when = Some(when(rate, 10));
            report.bytes_a_day = bytes_a_day(&report);
            ordered(&report, vec![saving("wal-compression", 50), finding_of("standby-lag")])
        };
        // Half of the WAL: at 2 kB a second some 82 MB a day.
        let (told, silent) = found(2000.0);
        assert_eq!((told.len(), silent), (1, vec!["wal-compression"]));
        assert!(note(&["wal-compression"]).is_some() && note(&[]).is_none());
        let (told, silent) = found(4000.0);
        assert_eq!((told[0].saved_bytes_a_day, silent.len()), (Some(172_800_000), 0));
        assert_eq!(told[0].advice, ["saves 164 MB a day at most, which is little"]);
        let (told, _) = found(40_000.0);
        assert_eq!(told[0].advice, Vec::<String>::new());
    }
}
