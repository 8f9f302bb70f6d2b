//! `walstat check` held against what PostgreSQL restores: an archive is damaged in one way, a real
//! server restores it from a base backup with a `restore_command`, and the check must be green exactly
//! where the server reaches the end that the names in the archive promise.
//!
//! A sample of the table runs with all tests. All of it, after any change of what is read and judged:
//!
//! ```sh
//! WALSTAT_REQUIRE_LIVE=1 WALSTAT_RESTORE_ALL=1 cargo test --test live restore:: -- --nocapture
//! ```
//!
//! `WALSTAT_RESTORE=TEXT` runs the cases with TEXT in their names, `WALSTAT_RESTORE_RANDOM=N` makes so
//! many cases by chance (40), `WALSTAT_UNDER_TEST=PROGRAM` runs another build. Without PostgreSQL 15
//! nothing runs, and says so; `WALSTAT_REQUIRE_LIVE=1` makes that a failure.

mod case;
mod codec;
mod content;
mod files;
mod history;
mod judge;
mod origin;
mod promise;
mod random;
mod server;
mod third;
mod tree;

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::{Case, Table, Verdict};
use judge::{Oracle, Said};
use origin::Origin;
use tree::{Layout, Tree};

/// The cases that run by default.
const SAMPLE: [(&str, Layout); 16] = [
    ("as it should be", Layout::Raw),
    ("as it should be", Layout::Barman),
    ("as it should be", Layout::PgBackRestZstd),
    ("both timelines went on", Layout::Raw),
    ("last segment is a .partial", Layout::Raw),
    ("last segment cut in half", Layout::Raw),
    ("last segment all zeros", Layout::Zstd),
    ("last segment has an older one's content", Layout::Raw),
    ("bit in the data of the third record from the end", Layout::Gzip),
    ("middle segment only as .partial", Layout::Raw),
    ("several empty files follow", Layout::Raw),
    ("middle segment missing", Layout::PgBackRestZstd),
    ("middle segment cut off, a good copy beside it", Layout::Raw),
    ("history empty", Layout::Gzip),
    ("history missing", Layout::Barman),
    ("recovery to an earlier place than the newest timeline begins at", Layout::Raw),
];

/// Servers that restore at once; each waits for its disk most of the time.
const AT_ONCE: usize = 2;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn table() -> Vec<Case> {
    let mut table = Table::default();
    content::add(&mut table);
    files::add(&mut table);
    history::add(&mut table);
    codec::add(&mut table);
    random::add(&mut table, number("WALSTAT_RESTORE_RANDOM").unwrap_or(40));
    table.cases
}

/// The cases that the environment asks for.
fn wanted() -> Vec<Case> {
    let mut cases = table();
    let part = std::env::var("WALSTAT_RESTORE").ok();
    let all = std::env::var("WALSTAT_RESTORE_ALL").as_deref() == Ok("1");
    let in_sample = |case: &Case| SAMPLE.contains(&(case.name.as_str(), case.layout));
    cases.retain(|case| match &part {
        Some(part) => format!("{}, {}", case.name, case.layout.name()).contains(part.as_str()),
        None => all || in_sample(case),
    });
    cases
}

/// Both verdicts over one case.
struct Judged<'c> {
    case: &'c Case,
    server: Said,
    walstat: Said,
}

fn judge<'c>(oracle: &Oracle<'_>, origin: &Origin, number: usize, case: &'c Case) -> Judged<'c> {
    let scratch = origin.scratch(&format!("{number:03}"));
    let mut tree = Tree::write(origin, scratch.join("archive"), case.layout, case.state);
    (case.damage)(&mut tree);
    let walstat = judge::walstat(origin, &tree.folder);
    let server = oracle.judge(case, &tree, &scratch);
    fs::remove_dir_all(&scratch).expect("a folder that can be removed");
    Judged { case, server, walstat }
}

impl Judged<'_> {
    /// What is wrong, if anything is.
    fn fault(&self) -> Option<&'static str> {
        match (self.case.expected, self.server.verdict, self.walstat.verdict) {
            (Some(expected), server, _) if expected != server => Some("UNEXPECTED OF THE SERVER"),
            (_, Verdict::Red, Verdict::Green) => Some("FALSE GREEN"),
            (_, Verdict::Green, Verdict::Red) => Some("FALSE RED"),
            _ => None,
        }
    }

    fn head(&self) -> String {
        let Case { name, layout, .. } = self.case;
        let sound = match self.server.verdict {
            Verdict::Green => "sound",
            Verdict::Red => "damaged",
        };
        format!("{}: {name}, {}, {sound}", self.fault().unwrap_or("ok"), layout.name())
    }

    fn text(&self) -> String {
        let Judged { server, walstat, .. } = self;
        format!("{}\n    server:  {}\n    walstat: {}", self.head(), server.why, walstat.why)
    }
}

#[test]
fn green_exactly_where_the_server_reaches_what_the_names_promise() {
    let Some(origin) = Origin::make() else { return };
    let (cases, oracle) = (wanted(), Oracle::new(&origin));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, case)) = take(&cases, &next) {
                    let judged = judge(&oracle, &origin, number, case);
                    println!("{}", judged.head());
                    done.lock().expect("no case has failed").push(judged);
                }
            });
        }
    });
    let done = done.into_inner().expect("no case has failed");
    assert_eq!(done.len(), cases.len(), "all cases were judged");
    let faults: Vec<String> =
        done.iter().filter(|judged| judged.fault().is_some()).map(Judged::text).collect();
    let (count, all) = (faults.len(), cases.len());
    assert!(faults.is_empty(), "{count} of {all} cases:\n{}", faults.join("\n"));
}

fn take<'c>(cases: &'c [Case], next: &AtomicUsize) -> Option<(usize, &'c Case)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, cases.get(number)?))
}

/// The sample names cases that there are, and the table is as large as it is meant to be.
#[test]
fn the_table_has_what_it_is_meant_to_have() {
    let cases = table();
    let count = |verdict| cases.iter().filter(|case| case.expected == Some(verdict)).count();
    assert!(count(Verdict::Red) >= 60, "{} damages", count(Verdict::Red));
    assert!(count(Verdict::Green) >= 15, "{} sound archives", count(Verdict::Green));
    for (name, layout) in SAMPLE {
        let found = cases.iter().filter(|case| case.name == name && case.layout == layout).count();
        assert!(found == 1, "{name}, {}: {found} cases", layout.name());
    }
}
