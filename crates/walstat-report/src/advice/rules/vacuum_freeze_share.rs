//! What it looks at: the share of what vacuum writes: it frees, freezes and marks pages as visible, in
//! tables and indexes, with the images that this brings. Pruning by whoever reads or changes a page is not
//! among it.
//!
//! Why it matters: vacuum touches pages that nobody else does, and after a checkpoint each brings an image.
//! A table that is only filled is frozen in the end, page for page, a second time. From 12 % on that is
//! worth a look.
//!
//! What to do: COPY … FREEZE for loads; VACUUM right after a large change, while its pages have their images
//! already, and not after the next checkpoint. A table that is updated: fewer visits, and HOT updates, which
//! leave vacuum less to do. Of a table whose rows died before this WAL no more than the images would have
//! been saved. Never turn autovacuum off for it.
//!
//! When to ignore it: after a large delete or load that is over.
//!
//! Reference: routine vacuuming in the PostgreSQL manual.

use super::{
    LEAST_SHARE, Line, MOSTLY, autovacuum_off, evidence, label, plain_finding, saves_nothing_apart,
    worst_tables,
};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::percent::percent;
use crate::model::table::RecordRow;
use crate::model::threshold::Threshold;
use crate::model::who::WholeTableRow;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.12, 0.08, 0.25);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "vacuum-freeze-share",
    summary: "vacuum and freezing write 12 % of the bytes",
    text: include_str!("vacuum_freeze_share.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref()?;
    let sum = |of: fn(&WholeTableRow) -> u64| tables.rows.iter().map(of).sum::<u64>();
    let (bytes, images) = (sum(|row| row.vacuum_bytes), sum(|row| row.vacuum_fpi_bytes));
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let worst = worst_tables(report, |row| row.vacuum_bytes);
    let named = worst
        .iter()
        .map(|(row, _, share)| format!("{} ({})", label(report, row), percent(*share, 0)));
    let named: Vec<String> = named.collect();
    let removes = removes_rows(report);
    let mut advice = cures(report, &worst, removes);
    advice.extend(autovacuum_off(report));
    if images > 0 {
        let share = percent(images as f64 / bytes.max(1) as f64, 0);
        // Where they were tried and spare nothing, fpi-ratio says so.
        let fewer = ", which checkpoints further apart make fewer";
        let fewer = if saves_nothing_apart(report) { "" } else { fewer };
        advice.push(format!("{share} of that are page images{fewer}").into());
    }
    let mostly = worst.first().filter(|(.., share)| *share >= MOSTLY);
    // The title names it.
    let is_said = mostly.is_some() && named.len() == 1;
    if !named.is_empty() && !is_said {
        advice.push(format!("it was vacuum of {}", named.join(", ")).into());
    }
    let of =
        mostly.map_or_else(String::new, |(row, ..)| format!(", mostly of {},", label(report, row)));
    let title =
        format!("vacuum{of} wrote {} of the bytes, with its images", percent(found.share, 0));
    let finding = Finding {
        evidence: evidence([
            ("vacuum_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("vacuum_bytes", bytes.into()),
            ("vacuum_fpi_bytes", images.into()),
        ]),
        source: "PostgreSQL manual, routine vacuuming".into(),
        ..plain_finding(&RULE, title)
    };
    let finding = finding.advising(advice);
    Some(match saved(&tables.rows, removes) {
        0 => finding.spreading(bytes),
        saved => Finding { estimate: Some(saved), ..finding.explaining(bytes) },
    })
}

/// What to say of tables that nobody changed in this WAL.
const DIED_BEFORE: &str = "what was removed died before this WAL; VACUUM right after a large change finds \
                           pages that have their images already";

/// What became of the rows of a table that was vacuumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// They were inserted, if not before this WAL, and all are there.
    Filled,
    /// Some died in this WAL.
    Changed,
    /// Some died before this WAL.
    DiedBefore,
}

impl Rows {
    /// `removes`: see [`removes_rows`], which goes over the whole report.
    fn of(row: &WholeTableRow, removes: bool) -> Rows {
        if row.updates + row.deletes > 0 {
            Rows::Changed
        } else if row.inserts == 0 && removes {
            Rows::DiedBefore
        } else {
            Rows::Filled
        }
    }
}

/// Records of vacuum that remove rows and their index entries, by their names in all releases.
const REMOVALS: [(&str, &str); 5] = [
    ("Heap2", "CLEAN"),
    ("Heap2", "PRUNE"),
    ("Heap2", "VACUUM"),
    ("Heap2", "PRUNE_VACUUM_CLEANUP"),
    ("Btree", "VACUUM"),
];

/// Whether removing rows is a good part of what vacuum wrote.
fn removes_rows(report: &Report) -> bool {
    let records = report.records.iter().flat_map(|records| &records.rows);
    let is_removal = |row: &&RecordRow| REMOVALS.contains(&(&*row.rmgr, &*row.record));
    let removed: u64 = records.filter(is_removal).map(|row| row.sums.total_bytes).sum();
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    let all: u64 = tables.map(|row| row.vacuum_bytes).sum();
    removed as f64 >= LEAST_SHARE * all as f64
}

/// What is saved at most: of tables whose rows died before this WAL the images alone.
fn saved(tables: &[WholeTableRow], removes: bool) -> u64 {
    let of_table = |row: &WholeTableRow| match Rows::of(row, removes) {
        Rows::DiedBefore => row.vacuum_fpi_bytes,
        Rows::Filled | Rows::Changed => row.vacuum_bytes,
    };
    tables.iter().map(of_table).sum()
}

/// What applies to the tables: those that are filled alone, and those whose rows die. Both where none is
/// known.
fn cures(report: &Report, worst: &[(&WholeTableRow, u64, f64)], removes: bool) -> Vec<Line> {
    let named = |rows: Rows| -> Vec<String> {
        let of = worst.iter().filter(|(row, ..)| Rows::of(row, removes) == rows);
        of.map(|(row, ..)| label(report, row)).collect()
    };
    let of = |names: Vec<String>| match names.as_slice() {
        [] => String::new(),
        _ => format!("{}: ", names.join(", ")),
    };
    let (filled, changed, before) =
        (named(Rows::Filled), named(Rows::Changed), named(Rows::DiedBefore));
    let is_known = !worst.is_empty();
    let mut cures = Vec::new();
    if !is_known || !changed.is_empty() {
        let scale =
            AdvisedSetting::somewhat(SettingChange::Raise, "autovacuum_vacuum_scale_factor");
        // A server that never vacuums by itself does not come less often for it.
        let scale = Some(scale).filter(|_| autovacuum_off(report).is_none());
        let larger = scale.as_ref().map_or_else(String::new, |scale| {
            format!(", or a larger {} where autovacuum does it,", scale.name)
        });
        let text = format!(
            "{}HOT updates leave vacuum less to do; fewer VACUUM commands{larger} have it come less often; \
             right after a checkpoint each page that it changes brings an image",
            of(changed)
        );
        cures.push(Line { text, settings: scale.into_iter().collect() });
    }
    if !is_known || !filled.is_empty() {
        cures.push(format!(
            "{}COPY … FREEZE, or VACUUM (FREEZE) right after a load, while its pages have their images \
             already",
            of(filled)
        )
        .into());
    }
    if !before.is_empty() {
        cures.push(format!("{}{}", of(before), DIED_BEFORE).into());
    }
    cures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::tests::with_record;
    use crate::model::estimate::Estimates;
    use crate::model::sample;
    use crate::model::settings::{SettingValues, Settings};

    #[test]
    fn it_speaks_from_12_percent_of_the_bytes_on_and_names_the_table() {
        let found_of = |bytes: u64, total: u64, updates: u64| {
            let mut report = sample::report(0, total << 20);
            let row = WholeTableRow {
                database: Some(5),
                name: Some("hist".into()),
                updates,
                vacuum_bytes: bytes << 20,
                vacuum_fpi_bytes: bytes << 19,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report)
        };
        let found = |bytes, total| found_of(bytes, total, 0);
        let finding = found(15, 100).expect("a finding");
        assert!(finding.advice[0].starts_with("hist: COPY … FREEZE"), "{:?}", finding.advice);
        let updated = found_of(15, 100, 1000).expect("a finding").advice;
        assert!(updated[0].starts_with("hist: HOT updates"), "{updated:?}");
        assert!(!updated.concat().contains("COPY"), "{updated:?}");
        assert!(finding.advice[1].contains("50 % of that are page images"), "{:?}", finding.advice);
        assert_eq!(finding.advice.len(), 2, "the title names the table");
        assert_eq!(
            finding.title,
            "vacuum, mostly of hist, wrote 15 % of the bytes, with its images"
        );
        assert_eq!((finding.explains, finding.estimate), (Some(15 << 20), Some(15 << 20)));
        assert!(found(12, 100).is_some() && found(11, 100).is_none());
        assert!(found(14, 15).is_none());
    }

    /// After a delete of 25 % COPY … FREEZE was advised, though nothing was loaded.
    #[test]
    fn of_rows_that_died_before_no_load_is_told() {
        let found = |record: &str, inserts| {
            let mut report = with_record("Heap2", record, 40 << 20, 100 << 20);
            let row = WholeTableRow {
                database: Some(5),
                name: Some("accounts".into()),
                inserts,
                vacuum_bytes: 80 << 20,
                vacuum_fpi_bytes: 30 << 20,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            let finding = check(&report).expect("a finding");
            (finding.advice[0].contains("COPY"), finding.estimate.map(|bytes| bytes >> 20))
        };
        for record in ["PRUNE", "CLEAN", "VACUUM", "PRUNE_VACUUM_CLEANUP"] {
            assert_eq!(found(record, 0), (false, Some(30)), "{record}");
            assert_eq!(found(record, 9), (true, Some(80)), "{record}");
        }
        assert_eq!(found("FREEZE_PAGE", 0), (true, Some(80)), "nothing died");
    }

    #[test]
    fn where_nobody_vacuums_unless_asked_that_is_said() {
        let told = |autovacuum| {
            let mut report = sample::report(0, 100 << 20);
            let row = WholeTableRow { vacuum_bytes: 50 << 20, updates: 9, ..Default::default() };
            report.tables = Some(vec![row].into());
            let values = SettingValues { autovacuum, ..SettingValues::default() };
            report.settings = Some(Settings { values, ..Settings::default() });
            let finding = check(&report).expect("a finding");
            let names = finding.advised_settings.iter().map(|setting| setting.to_string());
            (names.collect::<Vec<_>>(), finding.advice.concat())
        };
        let (set, advice) = told(Some(false));
        assert_eq!(set, ["autovacuum = on"]);
        assert!(!advice.contains("scale_factor") && advice.contains("it is off now"), "{advice}");
        for on in [Some(true), None] {
            let (set, advice) = told(on);
            assert_eq!(set, ["raise autovacuum_vacuum_scale_factor"]);
            assert!(!advice.contains("it is off now"), "{advice}");
        }
    }

    #[test]
    fn of_checkpoints_that_would_spare_nothing_nothing_is_said() {
        let told = |moving_redo_points| {
            let mut report = sample::report(0, 100 << 20);
            report.estimates = Some(Estimates { moving_redo_points, ..Estimates::default() });
            let (vacuum_bytes, vacuum_fpi_bytes) = (50 << 20, 40 << 20);
            let row = WholeTableRow { vacuum_bytes, vacuum_fpi_bytes, ..Default::default() };
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding").advice.concat()
        };
        assert!(told(1).contains("80 % of that are page images, which checkpoints further apart"));
        assert!(told(0).contains("80 % of that are page images") && !told(0).contains("apart"));
    }
}
