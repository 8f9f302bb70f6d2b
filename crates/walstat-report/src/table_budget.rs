//! Budgets of single tables: what `[[check.table]]` in `walstat.toml` asks of those whose names it
//! has. The limits are those of all WAL, held against one row.

use super::budget::{Budgets, OPTIONS, Words, hold};
use super::model::Report;
use super::model::checked::{Check, Verdict};
use super::model::table::TableRow;
use super::model::threshold::{MIN_UPDATES, MIN_VOLUME_BYTES};
use super::model::who::WholeTableRow;
use walstat_analyse::ratios::ratio;

/// What is asked of the tables of a name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableBudget {
    /// `schema.table` or `database.schema.table`; `*` stands for any characters, `?` for one.
    pub name: String,
    /// The limits, of which [`TABLE_OPTIONS`] count.
    pub budgets: Budgets,
}

/// A limit on a number of a table.
struct TableLimit {
    /// The option of the same name.
    option: &'static str,
    value: fn(&WholeTableRow) -> Option<f64>,
    gate: fn(&WholeTableRow, &Budgets) -> Option<String>,
}

/// Options that can be asked of a table.
pub const TABLE_OPTIONS: [&str; 5] =
    ["max-fpi-ratio", "min-hot-ratio", "max-wal-bytes", "min-volume", "min-updates"];

const LIMITS: [TableLimit; 3] = [
    TableLimit {
        option: "max-fpi-ratio",
        value: |row| ratio(row.numbers.fpi_bytes, row.numbers.total_bytes),
        gate: little_volume,
    },
    TableLimit {
        option: "min-hot-ratio",
        value: |row| ratio(row.hot_updates, row.updates),
        gate: |row, budgets| little_volume(row, budgets).or_else(|| few_updates(row, budgets)),
    },
    TableLimit {
        option: "max-wal-bytes",
        value: |row| Some(row.numbers.total_bytes as f64),
        gate: |_, _| None,
    },
];

fn little_volume(row: &WholeTableRow, budgets: &Budgets) -> Option<String> {
    let least = budgets.min_volume.map_or(MIN_VOLUME_BYTES, |size| size.0);
    let volume = row.numbers.total_bytes;
    (volume < least).then(|| format!("{volume} bytes of records are less than min-volume {least}"))
}

fn few_updates(row: &WholeTableRow, budgets: &Budgets) -> Option<String> {
    let least = budgets.min_updates.unwrap_or(MIN_UPDATES);
    (row.updates < least)
        .then(|| format!("fewer updates ({}) than min-updates {least}", row.updates))
}

impl TableBudget {
    /// Holds the tables of a report against what is asked. A name that no table has is said.
    pub(crate) fn checks(&self, report: &Report) -> Vec<Check> {
        let rows = report.tables.as_ref().map_or(&[][..], |tables| &tables.rows);
        let rows: Vec<_> = rows.iter().filter(|row| self.is_of(row)).collect();
        let asked = LIMITS.iter().filter_map(|limit| {
            let option = OPTIONS.iter().find(|option| option.name == limit.option)?;
            let general = option.limit.as_ref()?;
            Some((limit, general.words, (general.limit)(&self.budgets)?))
        });
        asked
            .flat_map(|(limit, words, wanted)| {
                if rows.is_empty() {
                    vec![self.no_table(limit, &words, wanted)]
                } else {
                    rows.iter().map(|row| self.check(limit, &words, wanted, row)).collect()
                }
            })
            .collect()
    }

    fn check(&self, limit: &TableLimit, words: &Words, wanted: f64, row: &WholeTableRow) -> Check {
        let value = (limit.value)(row);
        let name = format!("{} {}", limit.option, row.label());
        let check = hold(&name, words, value, wanted);
        match value.and_then(|_| (limit.gate)(row, &self.budgets)) {
            Some(why) => {
                Check { verdict: Verdict::Skipped, text: format!("not judged: {why}"), ..check }
            }
            None => check,
        }
    }

    fn no_table(&self, limit: &TableLimit, words: &Words, wanted: f64) -> Check {
        let check = hold(&format!("{} {}", limit.option, self.name), words, None, wanted);
        Check { text: "nothing to judge: no table of this name has WAL here".to_owned(), ..check }
    }

    fn is_of(&self, row: &WholeTableRow) -> bool {
        let (Some(schema), Some(name)) = (&row.schema, &row.name) else { return false };
        let in_schema = format!("{schema}.{name}");
        let database = row.database_name.as_deref().unwrap_or_default();
        let whole = format!("{database}.{in_schema}");
        matches(&self.name, &in_schema) || matches(&self.name, &whole)
    }
}

/// Whether a text is of a pattern; steps are bounded by the product of their lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // Where the last star stands, and up to where it stands for the text.
    let mut star = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || text.get(place) == Some(wanted) => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((star_at, up_to)) = star else { return false };
                star = Some((star_at, up_to + 1));
                (at, place) = (star_at + 1, up_to + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Size;
    use crate::model::sample;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, text, want) in [
            ("public.orders", "public.orders", true),
            ("public.*", "public.orders", true),
            ("*.order?", "public.orders", true),
            ("*o*r*", "public.orders", true),
            ("*", "", true),
            ("public.?", "public.orders", false),
            ("orders", "public.orders", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }

    fn report() -> Report {
        let row = |name: &str, total_bytes| {
            let mut row = WholeTableRow {
                database: Some(5),
                database_name: Some("shop".into()),
                schema: Some("public".into()),
                name: Some(name.into()),
                updates: 2000,
                hot_updates: 500,
                ..WholeTableRow::default()
            };
            row.numbers.total_bytes = total_bytes;
            row.numbers.fpi_bytes = total_bytes / 2;
            row
        };
        let mut report = sample::report(0, 1 << 30);
        report.tables = Some(vec![row("orders", 100 << 20), row("notes", 1 << 20)].into());
        report
    }

    #[test]
    fn each_table_of_the_name_is_judged_by_its_own_row() {
        let mut budget = TableBudget { name: "public.*".into(), ..TableBudget::default() };
        budget.budgets.min_hot_ratio = "50%".parse().ok();
        budget.budgets.max_wal_bytes = Some(Size(2 << 20));
        let verdicts: Vec<_> =
            budget.checks(&report()).into_iter().map(|c| (c.check, c.verdict)).collect();
        let want = [
            ("min-hot-ratio public.orders", Verdict::Fail),
            ("min-hot-ratio public.notes", Verdict::Skipped),
            ("max-wal-bytes public.orders", Verdict::Fail),
            ("max-wal-bytes public.notes", Verdict::Pass),
        ];
        assert_eq!(verdicts, want.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn a_name_that_no_table_has_is_said() {
        let mut budget = TableBudget { name: "shop.public.order".into(), ..TableBudget::default() };
        budget.budgets.max_wal_bytes = Some(Size(1));
        let checks = budget.checks(&report());
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].verdict, Verdict::Skipped);
        assert!(checks[0].text.contains("no table of this name"), "{}", checks[0].text);
        budget.name = "shop.public.orders".into();
        assert_eq!(budget.checks(&report())[0].verdict, Verdict::Fail);
    }
}
