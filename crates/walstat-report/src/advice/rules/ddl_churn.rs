//! What it looks at: the share of the catalogs (pg_class, pg_attribute, …) in all bytes.
//!
//! Why it matters: each temporary table, and each partition made or dropped, writes some dozen rows of
//! catalogs, with their indexes; that is logged even where the table itself is not. From 10 % on it is worth
//! a look, and from a fifth of that on where 1,000 relations and more were made and dropped again, as
//! temporary tables are. What `CREATE DATABASE` copies of its template's catalogs is no change of catalogs:
//! `large-transactions` tells of it. Neither is what initdb wrote, nor are large objects, which are rows of
//! users in a catalog.
//!
//! What such a habit wrote is that, the locks of what is made and dropped (Standby/LOCK), and of commits what
//! they are longer than a plain one, since they carry what other sessions have to forget; with wal_level =
//! logical also the command ids of catalog rows and what each command has others forget (Heap2/NEW_CID,
//! Transaction/INVALIDATION). At most all of that is saved, with the plain part of two commits for each
//! relation, its file and its first page; and where less WAL means fewer checkpoints by volume, their images
//! too. Where it is no habit nobody knows whose locks and commits they are, so all are in what is saved at
//! most.
//!
//! What to do: make temporary tables once a session (ON COMMIT DELETE ROWS), or use CTEs; partitions in
//! larger steps.
//!
//! When to ignore it: while a migration runs.
//!
//! Reference: CREATE TABLE in the PostgreSQL manual.

use super::{PLAIN_END_BYTES, commits, evidence, label, plain_finding};
use crate::advice::Rule;
use crate::advice::workloads::copied_databases::{copied_bytes, copied_databases};
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;
use crate::model::who::{TEMPLATE1, WholeTableRow};
use walstat_names::catalog::row::{CATALOG_SCHEMA_NAME, holds_large_objects};

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.1, 0.05, 0.2);
/// So many relations that were made and dropped again are a habit.
const MADE_AND_DROPPED: u64 = 1000;
/// Such a habit is worth a look from one of so many parts of the threshold on.
const PARTS_OF_A_HABIT: f64 = 5.0;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "ddl-churn",
    summary: "catalogs are 10 % of the bytes",
    text: include_str!("ddl_churn.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let tables = report.tables.as_ref()?;
    let has_initdb = report.when.as_ref().is_some_and(|when| when.has_initdb);
    let is_catalog = |row: &&WholeTableRow| {
        row.schema.as_deref() == Some(CATALOG_SCHEMA_NAME)
            && !row.oid.is_some_and(holds_large_objects)
            // The database that initdb fills.
            && !(has_initdb && row.database == Some(TEMPLATE1))
    };
    let catalogs: Vec<&WholeTableRow> = tables.rows.iter().filter(is_catalog).collect();
    let copied = copied_databases(report);
    let changed = |row: &WholeTableRow| match copied.contains(&row.database) {
        true => row.numbers.total_bytes.saturating_sub(copied_bytes(row)),
        false => row.numbers.total_bytes,
    };
    let bytes: u64 = catalogs.iter().map(|row| changed(row)).sum();
    let dropped = made_and_dropped(&catalogs);
    let is_habit = dropped >= MADE_AND_DROPPED;
    let from = if is_habit { PARTS_OF_A_HABIT } else { 1.0 };
    let found = RULE.share_from(from, report, bytes, report.totals.total_bytes)?;
    let first = catalogs.iter().max_by_key(|row| changed(row))?;
    let beside = Beside::of(report, relations_changed(&catalogs));
    let all = bytes + if is_habit { beside.of_a_habit() } else { 0 };
    let told = percent(all as f64 / report.totals.total_bytes.max(1) as f64, 0);
    let title = title(&told, is_habit, &beside);
    let most = if is_habit {
        format!(
            "{dropped} rows were added to pg_class and removed again: one for each table, index and TOAST \
             table"
        )
    } else {
        format!("most of it is {}", label(report, first))
    };
    let finding = Finding {
        evidence: evidence([
            ("catalog_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("catalog_bytes", bytes.into()),
            ("lock_bytes", beside.locks.into()),
            ("long_commit_bytes", beside.long_commits.into()),
            ("decoding_bytes", beside.decoded.into()),
            ("made_and_dropped", dropped.into()),
            ("most", label(report, first).into()),
        ]),
        advice: vec![
            "temporary tables once a session (ON COMMIT DELETE ROWS), partitions in larger steps"
                .into(),
            most,
        ],
        source: "PostgreSQL manual, CREATE TABLE".into(),
        ..plain_finding(&RULE, title)
    };
    let most = bytes + beside.of_a_habit() + beside.plain_commits + beside.files;
    let most = most.min(report.totals.total_bytes);
    Some(Finding { estimate: Some(most), ..finding.explaining(all) })
}

/// What is so large a share of the bytes.
fn title(share: &str, is_habit: bool, beside: &Beside) -> String {
    if !is_habit {
        return format!("{share} of the bytes are changes of the catalogs");
    }
    let what = match beside.decoded {
        0 => "catalogs, locks and commits",
        _ => "catalogs, locks, commits and what decoding needs of them",
    };
    format!("{share} of the bytes are {what}, as temporary tables write them")
}

/// What relations that are made and dropped write beside catalogs.
#[derive(Debug, Clone, Copy, Default)]
struct Beside {
    /// Their locks, for standbys.
    locks: u64,
    /// What commits are longer by than a plain one.
    long_commits: u64,
    /// What logical decoding needs to know of changes of catalogs, and standbys of what is to be forgotten.
    decoded: u64,
    /// What the rest of their commits comes to at most.
    plain_commits: u64,
    /// Their files and first pages, at most.
    files: u64,
}

impl Beside {
    /// Of so many relations.
    fn of(report: &Report, relations: u64) -> Beside {
        let bytes_of = |wanted: fn(&str, &str) -> bool| -> u64 {
            let rows = report.records.iter().flat_map(|records| &records.rows);
            let rows = rows.filter(|row| wanted(&row.rmgr, &row.record));
            rows.map(|row| row.sums.total_bytes).sum()
        };
        let commits = commits(report);
        let count: u64 = commits.iter().map(|row| row.sums.count).sum();
        let bytes: u64 = commits.iter().map(|row| row.sums.total_bytes).sum();
        // One makes it and one drops it, if not the same one does both.
        let own = count.min(relations.saturating_mul(2));
        let pages = relations.saturating_mul(report.data_page_bytes().into());
        Beside {
            locks: bytes_of(|rmgr, record| (rmgr, record) == ("Standby", "LOCK")),
            long_commits: bytes.saturating_sub(count * PLAIN_END_BYTES),
            decoded: bytes_of(is_decoded),
            plain_commits: own * PLAIN_END_BYTES,
            files: bytes_of(|rmgr, _| rmgr == "Storage") + new_pages(report).min(pages),
        }
    }

    /// What a habit wrote for nothing else.
    fn of_a_habit(&self) -> u64 {
        self.locks + self.long_commits + self.decoded
    }
}

/// Whether a record tells of changes of catalogs what others need: `log_heap_new_cid`,
/// `LogLogicalInvalidations`, `LogStandbyInvalidations`.
fn is_decoded(rmgr: &str, record: &str) -> bool {
    let all = [("Heap2", "NEW_CID"), ("Transaction", "INVALIDATION"), ("Standby", "INVALIDATIONS")];
    all.contains(&(rmgr, record))
}

/// New pages of tables of users, such as the first one of each index.
fn new_pages(report: &Report) -> u64 {
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    let tables = tables.filter(|row| row.schema.as_deref() != Some(CATALOG_SCHEMA_NAME));
    tables.map(copied_bytes).sum()
}

/// Relations that were made or dropped.
fn relations_changed(catalogs: &[&WholeTableRow]) -> u64 {
    let relations = catalogs.iter().filter(|row| row.name.as_deref() == Some("pg_class"));
    relations.map(|row| row.inserts + row.deletes).sum()
}

/// Relations that were made and dropped again: pg_class has a row of each.
fn made_and_dropped(catalogs: &[&WholeTableRow]) -> u64 {
    let relations = catalogs.iter().filter(|row| row.name.as_deref() == Some("pg_class"));
    relations.map(|row| row.inserts.min(row.deletes)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::tests::add_record;
    use crate::advice::workloads::copied_databases::tests::copied;
    use crate::model::table::RecordRow;
    use crate::model::when::Overview;
    use crate::model::who::Part;
    use crate::model::{Numbers, Sums, sample};

    #[test]
    fn it_speaks_from_a_tenth_of_the_bytes_on() {
        let found = |bytes: u64, total: u64, schema: &str| {
            let mut report = sample::report(0, total << 20);
            let row = WholeTableRow {
                schema: Some(schema.into()),
                name: Some("pg_attribute".into()),
                numbers: Numbers { total_bytes: bytes << 20, ..Numbers::default() },
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).is_some()
        };
        assert!(found(10, 100, "pg_catalog"));
        assert!(!found(9, 100, "pg_catalog"));
        assert!(!found(50, 100, "public"));
        assert!(!found(10, 15, "pg_catalog"));
    }

    /// Of eight databases it said that 20 % of the bytes were changes of catalogs, and 21 % copies.
    #[test]
    fn catalogs_that_were_copied_are_not_changed() {
        let mut report = copied(3, 60);
        assert_eq!(check(&report), None);
        let row = WholeTableRow {
            database: Some(5),
            schema: Some("pg_catalog".into()),
            name: Some("pg_attribute".into()),
            numbers: Numbers { total_bytes: 10 << 20, ..Numbers::default() },
            ..WholeTableRow::default()
        };
        report.tables.iter_mut().for_each(|tables| tables.rows.push(row.clone()));
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.explains, Some(10 << 20));
        assert!(finding.advice[1].ends_with("pg_attribute"), "{:?}", finding.advice);
        // Where no database was made, new pages are a rewrite of catalogs, which is a change.
        assert!(check(&copied(0, 60)).is_some());
    }

    /// 500 calls of lo_from_bytea were told as temporary tables, which would save all of it.
    #[test]
    fn large_objects_are_rows_of_users() {
        let found = |oid| {
            let mut report = sample::report(0, 100 << 20);
            let row = WholeTableRow {
                oid: Some(oid),
                schema: Some("pg_catalog".into()),
                numbers: Numbers { total_bytes: 90 << 20, ..Numbers::default() },
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).is_some()
        };
        let [pg_class, pg_largeobject, pg_largeobject_metadata] = [1259, 2613, 2995].map(found);
        assert!(pg_class && !pg_largeobject && !pg_largeobject_metadata);
    }

    /// 15 to 38 % of the first segments of new clusters were told as temporary tables.
    #[test]
    fn what_initdb_wrote_is_no_habit() {
        let found = |has_initdb, database| {
            let mut report = sample::report(0, 100 << 20);
            let row = WholeTableRow {
                database: Some(database),
                schema: Some("pg_catalog".into()),
                numbers: Numbers { total_bytes: 30 << 20, ..Numbers::default() },
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            report.when = Some(Overview { has_initdb, ..Overview::default() });
            check(&report).is_some()
        };
        assert!(!found(true, TEMPLATE1));
        assert!(found(true, 5) && found(false, TEMPLATE1));
    }

    /// A server of 15 with 6,000 temporary tables beside pgbench wrote 237,894,778 bytes, and 133,631,379 for
    /// the same pgbench alone: 43.8 % less. It said 37 % of the bytes, and −43 % at most.
    #[test]
    fn what_temporary_tables_wrote_is_what_goes_without_them() {
        const TOTAL: u64 = 237_894_778;
        let row = |rmgr: &str, record: &str, count, total_bytes| RecordRow {
            rmgr: rmgr.into(),
            record: record.into(),
            info: "0x00".into(),
            sums: Sums { count, total_bytes, ..Sums::default() },
        };
        let found = |dropped| {
            let records = vec![
                row("Transaction", "COMMIT", 42_000, 16_176_064),
                row("Standby", "LOCK", 48_000, 2_016_000),
            ];
            let mut report = Report { records: Some(records.into()), ..sample::report(0, TOTAL) };
            let row = WholeTableRow {
                schema: Some("pg_catalog".into()),
                name: Some("pg_class".into()),
                numbers: Numbers { total_bytes: 86_889_300, ..Numbers::default() },
                inserts: dropped,
                deletes: dropped,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding")
        };
        let finding = found(24_000);
        let share = |bytes: Option<u64>| bytes.expect("bytes") as f64 / TOTAL as f64;
        let real = 1.0 - 133_631_379.0 / TOTAL as f64;
        let (told, most) = (share(finding.explains), share(finding.estimate));
        assert!(told <= real && real <= most && most - told < 0.01, "{told} {real} {most}");
        assert!(finding.title.contains(&percent(real, 0)), "{}", finding.title);
        // Of less than a habit nobody knows whose commits they are.
        let few = found(999);
        assert_eq!(few.explains, Some(86_889_300));
        assert!(share(few.estimate) >= 0.4, "{:?}", few.estimate);
    }

    /// With wal_level = logical 1,500 temporary tables and 40,000 rows wrote 43,355,309 bytes, and 7,161,002
    /// with one table a session: 83.5 % less. It said −60 % at most.
    #[test]
    fn what_decoding_needs_of_temporary_tables_goes_with_them() {
        let mut report = sample::report(0, 43_355_309);
        report.records = Some(Vec::new().into());
        add_record(&mut report, "Transaction", "COMMIT", 1503, 3_500_000);
        add_record(&mut report, "Heap2", "NEW_CID", 80_000, 5_000_000);
        add_record(&mut report, "Transaction", "INVALIDATION", 12_000, 5_500_000);
        let row = WholeTableRow {
            schema: Some("pg_catalog".into()),
            name: Some("pg_class".into()),
            numbers: Numbers { total_bytes: 22_300_000, ..Numbers::default() },
            inserts: 6000,
            deletes: 6000,
            ..WholeTableRow::default()
        };
        report.tables = Some(vec![row].into());
        let finding = check(&report).expect("a finding");
        assert!(finding.title.contains("what decoding needs of them"), "{}", finding.title);
        assert!(finding.estimate >= Some(43_355_309 - 7_161_002), "{:?}", finding.estimate);
    }

    /// Partitions that were made and dropped saved 39.6 % where 31 % were promised at most.
    #[test]
    fn files_and_first_pages_go_with_their_relations() {
        let mut report = sample::report(0, 100 << 20);
        report.records = Some(Vec::new().into());
        add_record(&mut report, "Storage", "CREATE", 1200, 50_000);
        let catalog = WholeTableRow {
            schema: Some("pg_catalog".into()),
            name: Some("pg_class".into()),
            numbers: Numbers { total_bytes: 30 << 20, ..Numbers::default() },
            inserts: 600,
            deletes: 600,
            ..WholeTableRow::default()
        };
        let most = |pages: u64| {
            let mut report = report.clone();
            let fpi_bytes = pages * 8192;
            let numbers = Numbers { fpi_bytes, total_bytes: fpi_bytes, ..Numbers::default() };
            let heap = Some(Part { numbers, new_page_fpi_bytes: fpi_bytes, ..Part::default() });
            let built = WholeTableRow { heap, ..WholeTableRow::default() };
            report.tables = Some(vec![catalog.clone(), built].into());
            check(&report).and_then(|finding| finding.estimate)
        };
        assert_eq!(most(500), Some((30 << 20) + 50_000 + 500 * 8192));
        // An index build of others is none of theirs.
        assert_eq!(most(5000), Some((30 << 20) + 50_000 + 1200 * 8192));
    }

    #[test]
    fn temporary_tables_get_a_word_from_a_fiftieth_of_the_bytes_on() {
        let found = |bytes: u64, inserts, deletes| {
            let mut report = sample::report(0, 100 << 20);
            let row = WholeTableRow {
                schema: Some("pg_catalog".into()),
                name: Some("pg_class".into()),
                numbers: Numbers { total_bytes: bytes << 20, ..Numbers::default() },
                inserts,
                deletes,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).map(|finding| finding.title)
        };
        let title = found(2, 1000, 1000).expect("a finding");
        assert!(title.contains("temporary tables"), "{title}");
        assert_eq!(found(1, 1000, 1000), None);
        assert_eq!(found(9, 1000, 999), None);
        let plain = found(10, 1000, 999).expect("a finding");
        assert!(!plain.contains("temporary"), "{plain}");
    }
}
