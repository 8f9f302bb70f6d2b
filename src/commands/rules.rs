//! `walstat rules`: the advice rules, with thresholds and sources.

use crate::args::rules::RulesArgs;
use crate::args::values::{When, nearest};
use crate::failure::{Exit, Failure};
use crate::output::write_to;
use walstat_report::advice::{RULES, Rule};
use walstat_report::model::threshold::Ruleset;

/// Lists the rules, or explains one.
pub fn run(args: &RulesArgs) -> Result<Exit, Failure> {
    let Some(id) = args.id.as_deref() else { return list(args.ruleset) };
    let rule = RULES.iter().find(|rule| rule.id == id).ok_or_else(|| {
        let near = nearest(id, RULES.iter().map(|rule| rule.id));
        Failure::Usage(format!("no rule is called \"{id}\"{near}"))
    })?;
    write_to(None, When::Auto, |out| {
        writeln!(out, "{}\n\n{}\n\n{}", rule.id, rule.explanation(), rule.threshold.presets())
    })?;
    Ok(Exit::Done)
}

/// The rules, with what they look at or with their thresholds in a preset.
fn list(ruleset: Option<Ruleset>) -> Result<Exit, Failure> {
    let widest = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let words = |rule: &Rule| match ruleset {
        None => rule.summary.to_owned(),
        Some(ruleset) => rule.threshold.told(rule.threshold.of(ruleset)),
    };
    let line = |rule: &Rule| format!("{:<widest$}  {}", rule.id, words(rule));
    write_to(None, When::Auto, |out| {
        RULES.iter().try_for_each(|rule| writeln!(out, "{}", line(rule)))
    })?;
    Ok(Exit::Done)
}
