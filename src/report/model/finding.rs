//! The model of advice: what a rule found. The rules are in `report::advice`.

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
    /// What a change would save, in bytes, once it can be computed.
    pub estimate: Option<u64>,
    /// Where the rule comes from.
    pub source: String,
}
