//! The model of advice: what a rule found. The rules are in `report::advice`.

use super::Report;
use super::estimate::Predicted;
use super::percent::percent;
use super::size::whole_megabytes;
use super::threshold::MIN_VOLUME_BYTES;
use super::who::WholeTableRow;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use walstat_names::catalog::row::kind::{INDEX, TOAST};

named! {
    /// How much a finding matters.
    pub enum Severity {
        Info "info" "Worth knowing";
        Warning "warning" "Worth a change";
        Critical "critical" "Worth a change today";
    }
}

named! {
    /// How certain it is what a change saves.
    pub enum Certainty {
        Computed "computed" "It was computed or tried: about `estimate` bytes";
        Possible "possible" "Less than `explains` bytes: it depends on what no WAL tells";
        Explained "explained" "It explains `explains` bytes; what changes is when and how they come";
        Nothing "nothing" "A change saves no bytes, or nobody can tell how many";
    }
}

named! {
    /// What is to be done with a setting.
    pub enum SettingChange {
        Set "set" "It is to have this value";
        Raise "raise" "It is to be larger than it is";
        Lower "lower" "It is to be smaller than it is";
    }
}

/// From this share of the bytes on it is said that their tables are not known: 20 %, as most rules about
/// tables speak from there on.
const UNKNOWN_TABLES: f64 = 0.2;

/// What a finding of an earlier release says.
fn unsaid() -> Certainty {
    Certainty::Nothing
}

impl Report {
    /// What there is to say of rules that are silent: all of them, or most for want of WAL, or those that
    /// have to know tables.
    pub fn silent_rules(&self) -> Option<String> {
        let findings = self.findings.as_ref()?;
        if self.totals.total_bytes < MIN_VOLUME_BYTES {
            return Some(format!(
                "most rules say nothing below {} of WAL, because shares of so little WAL mean little",
                whole_megabytes(MIN_VOLUME_BYTES)
            ));
        }
        let nothing = || "no rule found anything worth a change".to_owned();
        let said = [findings.is_empty().then(nothing), self.unknown_tables()];
        let said: Vec<String> = said.into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// That rules about tables see only a part of the bytes.
    fn unknown_tables(&self) -> Option<String> {
        let rows = self.tables.as_ref()?.rows.iter().filter(|row| is_of_unknown_table(row));
        let bytes: u64 = rows.map(|row| row.numbers.total_bytes).sum();
        let share = bytes as f64 / self.totals.total_bytes.max(1) as f64;
        (share >= UNKNOWN_TABLES).then(|| {
            format!(
                "rules about tables and indexes cannot judge {} of the bytes, because their tables are not \
                 known: give --data-directory or --names",
                percent(share, 0)
            )
        })
    }
}

/// Whether it is a file of which it is not known which table it is of: it has no name, or is an index or a
/// TOAST table on its own.
fn is_of_unknown_table(row: &WholeTableRow) -> bool {
    row.heap.is_some() && (row.kind.is_none() || row.is_of_kind(&[INDEX, TOAST]))
}

/// What an advice rule found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// The numbers compared, by names of the rule's own.
    pub evidence: Map<String, Value>,
    /// What to look at.
    pub advice: Vec<String>,
    /// Settings of the server that the advice says to change, in its order.
    #[serde(default)]
    pub advised_settings: Vec<AdvisedSetting>,
    /// What that costs.
    pub side_effects: Vec<String>,
    /// When it does not matter.
    pub ignore_when: String,
    /// What a change would save, in bytes, at most if that is merely possible; null where nobody can
    /// tell.
    pub estimate: Option<u64>,
    /// The part of `estimate` that fewer checkpoints by volume save; null where it has none.
    #[serde(default)]
    pub fewer_checkpoints_bytes: Option<u64>,
    /// How much of `estimate` is images, without those of `fewer_checkpoints_bytes`; `None` where that is
    /// not known. For the rules.
    #[serde(skip)]
    pub estimate_fpi_bytes: Option<u64>,
    /// Bytes that it is about: what it explains of the WAL. Null where it is about none.
    #[serde(default)]
    pub explains: Option<u64>,
    /// How certain it is what a change saves.
    #[serde(default = "unsaid")]
    pub certainty: Certainty,
    /// What a change would save in a day like the time of the report, in bytes; at most, if that is merely
    /// possible.
    #[serde(default)]
    pub saved_bytes_a_day: Option<u64>,
    /// The settings for which that is predicted.
    pub settings: Map<String, Value>,
    /// What the report's WAL would come to under them.
    pub predicted: Option<Predicted>,
    /// Where the rule comes from.
    pub source: String,
}

/// A setting of the server that a finding says to change: sentences about it are made of this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdvisedSetting {
    /// Its name in postgresql.conf.
    pub name: String,
    /// What to do with it.
    pub change: SettingChange,
    /// What it is to be, as postgresql.conf has it; null where it is not known how much is enough.
    pub value: Option<String>,
}

impl AdvisedSetting {
    /// One whose value is known.
    pub fn to(change: SettingChange, name: &str, value: impl Into<String>) -> AdvisedSetting {
        AdvisedSetting { name: name.into(), change, value: Some(value.into()) }
    }

    /// One of which it is known only which way to go.
    pub fn somewhat(change: SettingChange, name: &str) -> AdvisedSetting {
        AdvisedSetting { name: name.into(), change, value: None }
    }
}

impl std::fmt::Display for AdvisedSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}", self.name),
            None => write!(f, "{} {}", self.change, self.name),
        }
    }
}

/// All that is advised taken together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Together {
    /// The rules whose advice it is.
    pub rules: Vec<String>,
    /// What each of them says to set; the rule itself where that is no setting.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Their settings.
    pub settings: Map<String, Value>,
    /// What the report's WAL would come to.
    pub predicted: Predicted,
}
