//! The table `[rules]` of `walstat.toml`: a preset, and thresholds by the ids of their rules.

use crate::args::values::nearest;
use crate::config::name_of;
use toml::{Table, Value};
use walstat_report::advice::{RULES, Rule};
use walstat_report::model::threshold::{Ruleset, Thresholds};

/// The table.
pub const TABLE: &str = "rules";
/// In it, the key of the preset.
const RULESET: &str = "ruleset";

/// The ids of all rules: the keys of the table, besides that of the preset.
pub fn ids() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.id)
}

/// Reads the table.
pub fn thresholds(table: &Table) -> Result<Thresholds, String> {
    let mut thresholds = Thresholds::default();
    for (key, value) in table {
        match RULES.iter().find(|rule| rule.id == key) {
            Some(rule) => set(&mut thresholds, rule, value)?,
            None if key == RULESET => thresholds.ruleset = ruleset(value)?,
            None => {
                let near = nearest(key, ids().chain([RULESET]));
                return Err(format!("unknown key \"{TABLE}.{key}\"{near}"));
            }
        }
    }
    Ok(thresholds)
}

fn ruleset(value: &Value) -> Result<Ruleset, String> {
    let text = value.as_str().ok_or_else(|| {
        format!("{TABLE}.{RULESET} is {}, expected the name of a preset", name_of(value))
    })?;
    let names = || Ruleset::ALL.iter().map(|ruleset| ruleset.name());
    let found = Ruleset::ALL.iter().copied().find(|ruleset| ruleset.name() == text);
    found.ok_or_else(|| {
        let (all, near) = (names().collect::<Vec<_>>().join(", "), nearest(text, names()));
        format!("{TABLE}.{RULESET}: expected one of {all}, found \"{text}\"{near}")
    })
}

/// A number or a text is the rule's threshold; `false` switches it off.
fn set(thresholds: &mut Thresholds, rule: &Rule, value: &Value) -> Result<(), String> {
    let id = rule.id;
    let text = match value {
        Value::Boolean(true) => return Ok(()),
        Value::Boolean(false) => {
            thresholds.off.insert(id.to_owned());
            return Ok(());
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        other => {
            let found = name_of(other);
            return Err(format!("{TABLE}.{id} is {found}, expected a threshold, or false for off"));
        }
    };
    let number = rule.threshold.unit.read(&text);
    let number = number.map_err(|error| format!("{TABLE}.{id}: {error}, found \"{text}\""))?;
    thresholds.set.insert(id.to_owned(), number);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Thresholds, String> {
        thresholds(&text.parse().expect("TOML"))
    }

    #[test]
    fn every_unit_is_read_as_it_is_written_elsewhere() {
        let text = "ruleset = \"strict\"\nlock-traffic = \"30%\"\nhot-ratio = 0.5\n\
            recovery-distance = \"10min\"\nindex-cost = 2.5\ncommit-pressure = 800\n\
            ddl-churn = false\nfpi-ratio = true\n";
        let found = parsed(text).expect("thresholds");
        assert_eq!(found.ruleset, Ruleset::Strict);
        let set: Vec<(&str, f64)> = found.set.iter().map(|(id, n)| (id.as_str(), *n)).collect();
        let want = [
            ("commit-pressure", 800.0),
            ("hot-ratio", 0.5),
            ("index-cost", 2.5),
            ("lock-traffic", 0.3),
            ("recovery-distance", 600.0),
        ];
        assert_eq!(set, want);
        assert!(found.is_off("ddl-churn") && !found.is_off("fpi-ratio"));
        assert!(parsed("").expect("thresholds").are_default());
    }

    #[test]
    fn what_is_wrong_is_named_with_the_nearest_spelling() {
        for (text, words) in [
            (
                "lock-trafic = 0.3",
                "unknown key \"rules.lock-trafic\", did you mean \"lock-traffic\"?",
            ),
            ("rulset = \"strict\"", "did you mean \"ruleset\"?"),
            ("ruleset = \"strickt\"", "found \"strickt\", did you mean \"strict\"?"),
            ("ruleset = 5", "rules.ruleset is an integer"),
            ("lock-traffic = 30", "rules.lock-traffic: expected a ratio"),
            ("lock-traffic = 0", "above 0"),
            ("lock-traffic = [1]", "is an array, expected a threshold"),
            ("recovery-distance = 600", "rules.recovery-distance: expected a span"),
            ("standby-lag = \"1500ms\"", "whole seconds"),
            ("standby-lag = \"0s\"", "above 0"),
            ("index-cost = \"many\"", "expected a number above 0"),
            ("index-cost = -1.0", "expected a number above 0"),
            ("commit-pressure = 0.5", "expected a whole number above 0"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(words), "{error}");
        }
    }
}
