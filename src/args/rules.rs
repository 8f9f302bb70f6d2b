//! Arguments of `walstat rules`.

use super::values::named;
use clap::Args;
use walstat_report::model::threshold::Ruleset;

/// Arguments of `walstat rules`.
#[derive(Debug, Args)]
pub struct RulesArgs {
    /// Only this rule
    pub id: Option<String>,
    /// Thresholds of the rules in this preset
    #[arg(
        long,
        value_name = "NAME",
        value_parser = named(Ruleset::ALL, Ruleset::name, Ruleset::text),
        conflicts_with = "id"
    )]
    pub ruleset: Option<Ruleset>,
}
