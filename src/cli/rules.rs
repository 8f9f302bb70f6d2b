//! `walstat rules`: the advice rules, with thresholds and sources.

use super::output::write_to;
use super::values::{When, nearest};
use super::{Exit, Failure};
use crate::report::advice::{RULES, Rule};

/// Lists the rules, or explains one.
pub fn run(id: Option<&str>) -> Result<Exit, Failure> {
    let Some(id) = id else {
        write_to(None, When::Auto, |out| {
            let widest = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
            let line = |rule: &Rule| format!("{:<widest$}  {}", rule.id, rule.summary);
            RULES.iter().try_for_each(|rule| writeln!(out, "{}", line(rule)))
        })?;
        return Ok(Exit::Done);
    };
    let rule = RULES.iter().find(|rule| rule.id == id).ok_or_else(|| {
        let near = nearest(id, RULES.iter().map(|rule| rule.id));
        Failure::Usage(format!("no rule is called \"{id}\"{near}"))
    })?;
    write_to(None, When::Auto, |out| writeln!(out, "{}\n\n{}", rule.id, rule.explanation()))?;
    Ok(Exit::Done)
}
