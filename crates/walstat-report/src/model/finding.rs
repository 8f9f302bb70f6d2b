//! The model of advice: what a rule found. The rules are in `report::advice`.

use super::estimate::Predicted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

named! {
    /// How much a finding matters.
    pub enum Severity {
        Info "info" "Worth knowing";
        Warning "warning" "Worth a change";
        Critical "critical" "Worth a change today";
    }
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
    /// What that costs.
    pub side_effects: Vec<String>,
    /// When it does not matter.
    pub ignore_when: String,
    /// What a change would save, in bytes; null where nobody can tell.
    pub estimate: Option<u64>,
    /// The settings for which that is predicted.
    pub settings: Map<String, Value>,
    /// What the report's WAL would come to under them.
    pub predicted: Option<Predicted>,
    /// Where the rule comes from.
    pub source: String,
}

/// All that is advised taken together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Together {
    /// The rules whose advice it is.
    pub rules: Vec<String>,
    /// Their settings.
    pub settings: Map<String, Value>,
    /// What the report's WAL would come to.
    pub predicted: Predicted,
}
